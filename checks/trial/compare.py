"""Two runs compared over a window: every gate, what no gate is about, and what is odd about the rows."""

import numpy as np

from bot.model.gate import Gate, Reduce
from bot.model.series import History
from bot.model.trial import Comparison, Happened, Judged, Moved, Outcome, Quiet, Window, finite, worst
from checks.trial.gates import judge_gate
from checks.trial.rows import figure_of, pair_up, take_side

_COUNTS = ("crashes", "retries", "watchdogs", "alerts")


def compare(
    control: History,
    child: History,
    gates: tuple[Gate, ...],
    window: Window,
    *,
    alpha: float,
    happened: Happened | None,
) -> Comparison:
    """Judge a child against the run that it was forked off.

    Args:
        control: what the old run logged.
        child: what the new run logged.
        gates: what was agreed.
        window: the steps that are compared.
        alpha: how likely all gates together may be to fail two runs that are the same; shared out evenly among those
            that infer anything.
        happened: what else went wrong with the child; None where that is no gate.
    """
    share = share_of(alpha, gates)
    old, new = _newest(control, window), _newest(child, window)
    judged = tuple(
        judge_gate(gate, (figure_of(control, gate.metric), old), (figure_of(child, gate.metric), new), window, share)
        for gate in gates
    )
    attempts = child.executions(window.first_step)
    quiet = judge_quiet(happened, len(attempts))
    outcomes = (*(each.outcome for each in judged), *((quiet.outcome,) if quiet else ()))
    return Comparison(
        window=window,
        alpha=alpha,
        outcome=worst(outcomes) if judged else worst((*outcomes, Outcome.CANNOT_TELL)),
        gates=judged,
        quiet=quiet,
        others=_others(control, child, gates, window, (old, new)),
        notes=(
            *_executions("control", control, window, old),
            *_executions("child", child, window, new),
            *_late_start(control, child, gates, window, (old, new)),
            *_odd(judged),
        ),
    )


def share_of(alpha: float, gates: tuple[Gate, ...]) -> float:
    """Return each gate's share of how likely all together may be to err: of those that infer anything."""
    return alpha / max(1, sum(gate.reduce is not Reduce.MAX for gate in gates))


def judge_quiet(happened: Happened | None, attempts: int) -> Quiet | None:
    """Judge that nothing else went wrong; None where that was not agreed on and the rows show no retry.

    Args:
        happened: the counts that are known.
        attempts: how many executions of the child logged rows from the window's first step on.
    """
    seen = attempts - 1
    if happened is None:
        if seen < 1:
            return None
        happened = Happened()
    if seen > (happened.retries or 0):
        happened = happened.model_copy(update={"retries": seen})
    counts = {name: getattr(happened, name) for name in _COUNTS}
    bad = tuple(f"{count} {name}" for name, count in counts.items() if count)
    unknown = tuple(name for name, count in counts.items() if count is None)
    if bad:
        return Quiet(outcome=Outcome.FAIL, reasons=bad, happened=happened)
    if unknown:
        return Quiet(outcome=Outcome.CANNOT_TELL, reasons=(f"nobody counted {', '.join(unknown)}",), happened=happened)
    return Quiet(outcome=Outcome.PASS, reasons=("none of each",), happened=happened)


def _newest(history: History, window: Window) -> int:
    found = history.executions(window.first_step, window.last_step)
    return found[-1] if found else 0


def _executions(name: str, history: History, window: Window, chosen: int) -> tuple[str, ...]:
    found = history.executions(window.first_step, window.last_step)
    if len(found) < 2:  # noqa: PLR2004 - one is as it should be
        return ()
    numbers = ", ".join(map(str, found))
    return (f"attempts {numbers} of the {name} logged steps of the window; only {chosen}, the newest, is compared",)


def _late_start(
    control: History, child: History, gates: tuple[Gate, ...], window: Window, executions: tuple[int, int]
) -> tuple[str, ...]:
    """Say that the window's first steps can never be compared.

    A trainer that logs a step before it saves it begins one step behind the checkpoint. A child that came back lacks
    steps for another reason.
    """
    if len(child.executions(window.first_step)) > 1:
        return ()
    firsts: dict[tuple[int, int], list[str]] = {}
    for metric in dict.fromkeys(gate.metric for gate in gates):
        sides = (figure_of(control, metric), figure_of(child, metric))
        if sides[0] is None or sides[1] is None:
            continue
        mine, theirs = take_side(sides[0], executions[0], window), take_side(sides[1], executions[1], window)
        if mine.steps.size and theirs.steps.size and theirs.steps[0] > mine.steps[0]:
            firsts.setdefault((int(theirs.steps[0]), int(mine.steps[0])), []).append(metric)
    return tuple(
        f"the child's {', '.join(names)} begins with step {begun} and not with {due}, so the window cannot become "
        f"whole; where the trainer is like that, the next trial agrees on `[trial] first_step = {begun}`"
        for (begun, due), names in firsts.items()
    )


def _odd(judged: tuple[Judged, ...]) -> tuple[str, ...]:
    """Say what is odd about rows; the same of several figures once."""
    said = [
        f"the {name}'s {each.gate.metric}: {count} {what}"
        for each in judged
        for name, side in (("control", each.control), ("child", each.child))
        if side is not None
        for count, what in (
            (side.contradictions, "steps with rows that contradict each other, left out"),
            (side.not_finite, "steps that are NaN or infinite, left out"),
            (side.same_again, "rows that repeat a step with the same value, counted once"),
            (side.steps_back, "times the step goes back within one attempt"),
        )
        if count
    ]
    return tuple(dict.fromkeys(said))


def _others(
    control: History, child: History, gates: tuple[Gate, ...], window: Window, executions: tuple[int, int]
) -> tuple[Moved, ...]:
    gated = {gate.metric for gate in gates}
    found = []
    for metric in sorted(control.figures.keys() & child.figures.keys() - gated):
        mine = take_side(control.figures[metric], executions[0], window)
        theirs = take_side(child.figures[metric], executions[1], window)
        pairs = pair_up(mine, theirs, window, every=None, warmup_rows=0)
        if not pairs.steps.size:
            continue
        with np.errstate(all="ignore"):
            deltas = pairs.child - pairs.control
            largest = int(np.argmax(np.abs(deltas)))
            mean, level, most = float(deltas.mean()), abs(float(pairs.control.mean())), float(deltas[largest])
        if finite(mean) is None or finite(most) is None:
            continue
        found.append(
            Moved(
                metric=metric,
                pairs=len(pairs.steps),
                mean_delta=mean,
                max_delta=most,
                max_step=int(pairs.steps[largest]),
                share=finite(mean / level) if level else None,
            )
        )
    return tuple(found)
