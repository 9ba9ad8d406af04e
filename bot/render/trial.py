"""What comparing a child with its control found, in words: for a terminal, a chat message, an issue. And its picture.

Everything here is plain text, not yet escaped for any place.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from bot.model.chart import Beside, Chart, Mark
from bot.model.curve import MOST_POINTS, Point
from bot.model.gate import Direction, Gate
from bot.model.series import History, Ints
from bot.model.trial import Comparison, Judged, Moved, Outcome, Quiet, Window
from bot.model.value import RunId
from bot.model.verdict import Severity
from bot.render.text import clean

OUTCOME_WORDS = {Outcome.PASS: "pass", Outcome.FAIL: "FAIL", Outcome.CANNOT_TELL: "cannot tell"}
OUTCOME_SIGNS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.CANNOT_TELL: "?"}
QUIET_GATE = "no crash, retry, watchdog, alert"
"""What the gate on everything beside the figures is called."""

_COUNTED = {Outcome.FAIL: "failed", Outcome.CANNOT_TELL: "could not be told", Outcome.PASS: "passed"}
_GRAVEST_FIRST = tuple(_COUNTED)
_LINE = 400
_LOSS, _SPEED = "loss", "tokens_per_second"


def verdict_line(found: Comparison) -> str:
    """Say what all gates say together, and how many say what: ``FAIL: of 4 gates 1 failed, 3 passed``."""
    outcomes = [each.outcome for each in found.gates] + ([found.quiet.outcome] if found.quiet else [])
    counts = ((outcomes.count(each), what) for each, what in _COUNTED.items())
    said = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"{OUTCOME_WORDS[found.outcome]}: " + (f"of {len(outcomes)} gates {said}" if said else "there is no gate")


def verdict_words(found: Comparison) -> tuple[str, ...]:
    """Say what each gate says, as a yes or no is given to it: ``NOT CLEAR: gate loss mean <= +0.002: cannot tell``.

    No figure that moves with each look: an answer is not outrun by the next, and the same words mean the same gates.
    """
    said = [(each.outcome, f"gate {each.gate}") for each in found.gates]
    said += [(found.quiet.outcome, QUIET_GATE)] if found.quiet is not None else []
    return tuple(
        f"{'' if outcome is Outcome.PASS else 'NOT CLEAR: '}{what}: {outcome.replace('_', ' ')}"
        for outcome, what in said
    )


def gate_line(judged: Judged) -> str:
    """Say what one gate says, by how much, on how many steps, and why.

    ``✗ loss mean <= +0.002: FAIL, +0.0051 (between +0.0048 and +0.0054), 0.0031 beyond the limit; 200 of 200 steps; …``
    """
    numbers = (say_delta(judged), say_margin(judged))
    said = ", ".join((OUTCOME_WORDS[judged.outcome], *(each for each in numbers if each)))
    covered = say_coverage(judged)
    is_said = any(reason.startswith(covered) for reason in judged.reasons)
    parts = (said, *(() if is_said else (covered,)), *judged.reasons)
    return clean(f"{OUTCOME_SIGNS[judged.outcome]} {judged.gate}: {'; '.join(parts)}", _LINE).replace("\n", " ")


def quiet_line(quiet: Quiet) -> str:
    """Say whether anything went wrong beside the figures."""
    said = f"{OUTCOME_SIGNS[quiet.outcome]} {QUIET_GATE}: {OUTCOME_WORDS[quiet.outcome]}, {', '.join(quiet.reasons)}"
    return clean(said, _LINE).replace("\n", " ")


def moved_line(moved: Moved) -> str:
    """Say how a figure moved that no gate is about."""
    share = "" if moved.share is None else f" ({moved.share:+.2%})"
    largest = f"largest {moved.max_delta:+.4g} at step {moved.max_step}"
    return clean(f"· {moved.metric}: mean {moved.mean_delta:+.4g}{share}, {largest}", _LINE).replace("\n", " ")


def comparison_lines(found: Comparison, *, limit: int) -> tuple[str, ...]:
    """Return what was found, the gravest gate first, at most so many lines; what is left out is counted, never lost.

    Gates that fail or cannot tell come before what is odd about the rows, and that before gates that pass and figures
    without a gate.
    """
    grave = grave_lines(found)
    notes = [clean(f"· {note}", _LINE).replace("\n", " ") for note in found.notes]
    fine = [gate_line(each) for each in found.gates if each.outcome is Outcome.PASS]
    if found.quiet is not None and found.quiet.outcome is Outcome.PASS:
        fine.append(quiet_line(found.quiet))
    lines = (*grave, *notes, *fine, *map(moved_line, found.others))
    if len(lines) <= limit:
        return lines
    kept = max(0, limit - 1)
    left = len(lines) - kept
    return (*lines[:kept], f"… and {left} more {'line' if left == 1 else 'lines'} in the report")[: max(0, limit)]


def grave_lines(found: Comparison) -> tuple[str, ...]:
    """Return what keeps the trial from passing: the gates that fail, then those that cannot tell."""
    quiet = found.quiet
    every = [(each.outcome, gate_line(each)) for each in found.gates]
    every += [(quiet.outcome, quiet_line(quiet))] if quiet is not None else []
    return tuple(line for wanted in _GRAVEST_FIRST[:2] for outcome, line in every if outcome is wanted)


def by_gravity(gates: Iterable[Judged]) -> tuple[Judged, ...]:
    """Return gates with those that fail first, then those that cannot tell, then those that pass."""
    return tuple(sorted(gates, key=lambda each: _GRAVEST_FIRST.index(each.outcome)))


def comparison_row(control: str, child: str, found: Comparison) -> dict[str, object]:
    """Return what outsiders rely on, as docs/trial.md describes it; ``control`` and ``child`` name the two runs."""
    window = {"first_step": found.window.first_step, "last_step": found.window.last_step, "steps": found.window.steps}
    return {
        "outcome": found.outcome.value,
        "control": control,
        "child": child,
        "window": window,
        "alpha": found.alpha,
        "gates": [_gate_row(each) for each in found.gates],
        "quiet": found.quiet.model_dump(mode="json") if found.quiet else None,
        "others": [each.model_dump(mode="json") for each in found.others],
        "notes": list(found.notes),
    }


def _gate_row(judged: Judged) -> dict[str, object]:
    kept = judged.model_dump(mode="json", exclude={"gate", "low", "high", "control", "child", "doubt"})
    return {
        "gate": str(judged.gate),
        "metric": judged.gate.metric,
        "basis": judged.gate.basis.value,
        "is_relative": judged.gate.is_relative,
        **kept,
        "interval": [judged.low, judged.high],
        "rows": {
            "control": judged.control.model_dump(mode="json") if judged.control else None,
            "child": judged.child.model_dump(mode="json") if judged.child else None,
        },
        "error_rate": judged.doubt.model_dump(mode="json") if judged.doubt else None,
    }


def say_delta(judged: Judged) -> str:
    """``+0.0051 (between +0.0048 and +0.0054)``; empty where nothing is known."""
    if judged.delta is None and judged.low is None and judged.high is None:
        return ""
    between = say_interval(judged)
    return in_unit(judged.delta, judged.gate) + (f" ({between})" if between else "")


def say_interval(judged: Judged) -> str:
    """``between +0.0048 and +0.0054``, where the true difference lies; empty where that is not known, or exactly."""
    if judged.low == judged.high:
        return ""
    low, high = in_unit(judged.low, judged.gate), in_unit(judged.high, judged.gate)
    match judged.low, judged.high:
        case None, _:
            return f"at most {high}"
        case _, None:
            return f"at least {low}"
        case _:
            return f"between {low} and {high}"


def say_margin(judged: Judged) -> str:
    """``0.0009 left to the limit``, or ``0.0031 beyond the limit``; empty where it is not known."""
    if judged.margin is None:
        return ""
    size = in_unit(abs(judged.margin), judged.gate).lstrip("+")
    return f"{size} beyond the limit" if judged.margin < 0 else f"{size} left to the limit"


def say_coverage(judged: Judged) -> str:
    """``20 of 20 steps, one in 10``: how many of the steps that were due are there on both sides."""
    rhythm = f", one in {judged.stride}" if judged.stride is not None and judged.stride > 1 else ""
    return f"{judged.covered} of {judged.expected} steps{rhythm}"


def in_unit(value: float | None, gate: Gate) -> str:
    """Return a difference with its sign, in the figure's own unit or in percent; ``?`` for what is not known."""
    if value is None:
        return "?"
    sign = "" if gate.direction is Direction.EITHER and value == 0 else "+"
    return f"{value * 100:{sign}.3g}%" if gate.is_relative else f"{value:{sign}.4g}"


def error_line(found: Comparison) -> str:
    """Say how often the judge fails equal runs, by the worst of the gates; empty where no gate infers anything."""
    known = [each.doubt for each in found.gates if each.doubt is not None]
    if not known:
        return ""
    swapped = max(each.swapped for each in known)
    alone = [each.control for each in known if each.control is not None]
    control = f", and {max(alone):.1%} made of the control alone" if alone else ""
    meant = f"the judge's own error: at most {found.alpha:.1%} is meant for all gates together"
    measured = f"of {known[0].trials} trials of equal runs made of these rows the worst gate fails {swapped:.1%}"
    return f"{meant}; {measured}{control}"


def chart_of_trial(run_id: RunId, child_id: RunId, control: History, child: History, window: Window) -> Chart | None:
    """Return both runs' loss and throughput over one another, the window and half as much before and behind it.

    Of each run the rows of the attempt count that is compared. Where there are more steps than a chart can hold, the
    same ones of both are left out, so that differences stay differences. None while the control has nothing to show.
    """
    around = window.steps // 2
    first, last = max(0, window.first_step - around), window.last_step + around
    sides = [_rows_of(each, window, first, last) for each in (control, child)]
    if not sides[0]:
        return None
    steps = sorted(sides[0].keys() | sides[1].keys())
    kept = steps[:: math.ceil(len(steps) / MOST_POINTS)]
    mine, theirs = (tuple(side[step] for step in kept if step in side) for side in sides)
    mark = Mark(
        label="window",
        severity=Severity.INFO,
        step=window.first_step,
        from_step=window.first_step,
        to_step=window.last_step,
    )
    beside = Beside(label=f"child {child_id}", points=theirs)
    return Chart(run_id=run_id, points=mine, marks=(mark,), label=f"control {run_id}", beside=beside)


def compared_execution(history: History, window: Window) -> int | None:
    """Return which execution of a run is compared: the newest with rows in the window; None before there is one."""
    found = history.executions(window.first_step, window.last_step)
    return found[-1] if found else None


def _rows_of(history: History, window: Window, first: int, last: int) -> dict[int, Point]:
    """Return loss and throughput by step, of the compared execution."""
    execution = compared_execution(history, window)
    loss, speed = (
        {} if execution is None else dict(_values(history, each, execution, first, last)) for each in (_LOSS, _SPEED)
    )
    return {step: (step, loss.get(step), speed.get(step)) for step in loss.keys() | speed.keys()}


def _values(history: History, word: str, execution: int, first: int, last: int) -> Iterator[tuple[int, float | None]]:
    """Return each step's value; one that is not finite, or contradicts another row of the step, is a gap."""
    figure = history.figures.get(word)
    if figure is None:
        return
    own = figure.of(execution)
    inside = (own.steps >= first) & (own.steps <= last)
    steps, values = own.steps[inside], own.values[inside]
    torn = _torn(steps, values)
    for step, value in zip(steps.tolist(), values.tolist(), strict=True):
        yield step, float(f"{value:.9g}") if math.isfinite(value) and step not in torn else None


def _torn(steps: Ints, values: Iterable[float]) -> set[int]:
    """Return the steps that have several rows of different values."""
    if np.unique(steps).size == steps.size:
        return set()
    seen: dict[int, float] = {}
    return {step for step, value in zip(steps.tolist(), values, strict=True) if seen.setdefault(step, value) != value}
