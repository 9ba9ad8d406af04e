"""Whether the old run has recorded the whole matched control window: nothing is stopped before it has.

The control is what one execution logged, the newest that logged any step of the window, as in ``compare``. Source: the
deploy checklist, "Agree the plan" (the old run must record those steps before it is stopped) and "Execute the trial",
item 1.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from bot.model.gate import Gate, parse_gate
from bot.model.series import NOTHING, RunRows
from bot.model.trial import Outcome, Window, worst
from bot.model.trialplan import TrialPlan
from bot.model.value import Value
from checks.trial.gates import flat
from checks.trial.rows import Pairs, figure_of, pair_up, take_side


class ControlKind(StrEnum):
    """What there is to say of the control. It stays while the numbers in the detail move from look to look."""

    COMPLETE = "complete"
    WAITING = "waiting"
    """The old run has steps of the window before it."""
    UNLOGGED = "unlogged"
    """A gated figure is not logged, or so rarely that nobody can say how often."""
    WARM_UP = "warm_up"
    """The gate skips the whole window."""
    BEHIND = "behind"
    """The one execution that counts began to log behind the window's first due step."""
    RESTARTED = "restarted"
    """So it did, since the old run restarted inside the window."""
    GAP = "gap"
    """Due rows are missing for good."""
    FLAT = "flat"
    """A gated figure never changes."""
    STRANGER = "stranger"
    """The newest rows are by no execution of the old run."""
    CUT = "cut"
    """There are more rows than one answer may have."""
    NO_GATE = "no_gate"


class ControlSays(Value):
    """How far the control is."""

    outcome: Outcome
    """``PASS``: it is complete. ``FAIL``: it can't become complete. ``CANNOT_TELL``: not yet, or nobody knows."""
    detail: str
    kind: ControlKind | None = None
    """Of ``detail``: who tells of a fault tells it once a kind. None where nobody judged any rows."""
    lines: tuple[str, ...] = ()
    """One for each gated figure, and what is odd."""
    last_step: int | None = None
    """The newest step of the window that the control's execution logged; None before the first."""


def judge_control(rows: RunRows, plan: TrialPlan, *, executions: frozenset[str] | None) -> ControlSays:
    """Say whether every gated figure is there at every step of the window at which it is due, in one execution.

    A figure is due in its own rhythm, as its gate says (``every``, ``skip``, ``coverage``); it must be finite and must
    change, or no gate could pass by it.

    Args:
        rows: the old run's, of the window's steps at least.
        plan: the agreed one.
        executions: those of the old run's job, by name; None when they are not known. One that is not among them and
            began after them is somebody else's, and no control; an earlier one was an earlier launch.
    """
    window = Window(first_step=plan.window_first, steps=plan.window_steps)
    last = window.last_step
    found = rows.history.executions(window.first_step, last)
    if rows.is_cut:
        return _unclear(ControlKind.CUT, "there are more rows than one answer may have")
    if not plan.gates:
        return _unclear(ControlKind.NO_GATE, "no gate was agreed")
    if not found:
        return _unclear(ControlKind.WAITING, f"no step from {window.first_step} to {last} is recorded yet")
    if (stranger := _stranger(rows, found[-1], executions)) is not None:
        detail = f"the newest rows of the window are by {stranger}, which is none of the old run's executions"
        return _unclear(ControlKind.STRANGER, detail)
    reached = max(
        int(figure.steps[figure.executions == found[-1]].max())
        for figure in rows.history.figures.values()
        if (figure.executions == found[-1]).any()
    )
    judged = tuple(_judge(parse_gate(line), rows, found[-1], window, has_passed=reached >= last) for line in plan.gates)
    outcome = worst(tuple(each.outcome for each in judged))
    return ControlSays(
        outcome=outcome,
        detail=_detail(judged, outcome, rows.executions[found[-1]], window, min(reached, last)),
        kind=_kind(judged, outcome, is_restarted=len(found) > 1),
        lines=(*_restarted(rows, found), *dict.fromkeys(each.line for each in judged)),
        last_step=min(reached, last),
    )


def _unclear(kind: ControlKind, detail: str) -> ControlSays:
    return ControlSays(outcome=Outcome.CANNOT_TELL, detail=detail, kind=kind)


@dataclass(frozen=True)
class _Judged:
    outcome: Outcome
    kind: ControlKind
    line: str
    covered: int
    expected: int


def _judge(gate: Gate, rows: RunRows, execution: int, window: Window, *, has_passed: bool) -> _Judged:
    side = take_side(figure_of(rows.history, gate.metric) or NOTHING, execution, window)
    pairs = pair_up(side, side, window, every=gate.every, warmup_rows=gate.warmup_rows)
    outcome, kind, why = _conclude(gate, pairs, has_passed=has_passed)
    how = f", one in {pairs.stride}" if pairs.stride is not None and pairs.stride > 1 else ""
    line = f"{gate.metric}: {pairs.covered} of {pairs.expected} steps{how}{f'; {why}' if why else ''}"
    return _Judged(outcome, kind, line, pairs.covered, pairs.expected)


def _conclude(gate: Gate, pairs: Pairs, *, has_passed: bool) -> tuple[Outcome, ControlKind, str]:
    side = pairs.sides[0]
    is_over = Outcome.FAIL if has_passed else Outcome.CANNOT_TELL
    if side.reached is None:
        return is_over, ControlKind.UNLOGGED, "it is not logged" if has_passed else "not logged yet"
    if pairs.stride is None:
        return is_over, ControlKind.UNLOGGED, "so few rows that nobody can say how often it is logged"
    if not pairs.expected:
        return Outcome.FAIL, ControlKind.WARM_UP, "the window has no row left behind the warm-up"
    needed = math.ceil(gate.coverage * pairs.expected - 1e-9)
    if not pairs.ended:
        return _under_way(pairs, needed)
    if pairs.covered < needed:
        missing = pairs.expected - pairs.covered
        why = f"{missing} are missing for good, and {needed} are needed{_odd(pairs)}"
        return Outcome.FAIL, ControlKind.GAP, why
    reasons = flat(gate, pairs)
    return (Outcome.FAIL, ControlKind.FLAT, reasons[0]) if reasons else (Outcome.PASS, ControlKind.COMPLETE, "")


def _under_way(pairs: Pairs, needed: int) -> tuple[Outcome, ControlKind, str]:
    """Judge a window that is still being filled: what was not logged when the execution began never will be."""
    side, stride = pairs.sides[0], pairs.stride or 1
    first = int(side.steps[0]) if side.steps.size else pairs.first_expected
    unseen = max(0, -(-(first - pairs.first_expected) // stride))
    if pairs.expected - unseen < needed:
        why = f"its first row of the window is of step {first}, behind {pairs.first_expected}"
        return Outcome.FAIL, ControlKind.BEHIND, why
    why = f"recorded up to step {side.reached} of {pairs.last_expected}{_odd(pairs)}"
    return Outcome.CANNOT_TELL, ControlKind.WAITING, why


def _odd(pairs: Pairs) -> str:
    counts = pairs.sides[0].counts
    said = [
        f"{count} {what}"
        for count, what in (
            (counts.not_finite, "NaN or infinite"),
            (counts.contradictions, "logged with several values"),
        )
        if count
    ]
    return f" ({', '.join(said)})" if said else ""


def _detail(judged: tuple[_Judged, ...], outcome: Outcome, name: str, window: Window, reached: int) -> str:
    by = f" by {name}" if name else ""
    if outcome is Outcome.FAIL:
        return next(each.line for each in judged if each.outcome is outcome)
    if outcome is Outcome.PASS:
        return f"steps {window.first_step} to {window.last_step} are recorded{by}, each figure as often as it is due"
    missing = max(each.expected - each.covered for each in judged)
    return f"recorded up to step {reached} of {window.last_step}{by}; {missing} due rows of one figure are missing yet"


def _kind(judged: tuple[_Judged, ...], outcome: Outcome, *, is_restarted: bool) -> ControlKind:
    """Return the kind of the line that ``_detail`` is about; a control that waits for anything waits."""
    if outcome is Outcome.CANNOT_TELL:
        return ControlKind.WAITING
    kind = next(each.kind for each in judged if each.outcome is outcome)
    return ControlKind.RESTARTED if is_restarted and kind in {ControlKind.BEHIND, ControlKind.GAP} else kind


def _restarted(rows: RunRows, found: tuple[int, ...]) -> tuple[str, ...]:
    if len(found) == 1:
        return ()
    names = ", ".join(rows.executions[number] or "one that names nobody" for number in found)
    return (
        f"the old run restarted inside the window: {names} logged steps of it, and the newest alone is the control",
    )


def _stranger(rows: RunRows, chosen: int, executions: frozenset[str] | None) -> str | None:
    """Return who logged the newest rows when that is known to be no execution of the old run; None otherwise."""
    known = [number for number, name in enumerate(rows.executions) if executions and name in executions]
    if not known or chosen in known or chosen < known[-1]:
        return None
    return rows.executions[chosen] or "somebody who names nobody"
