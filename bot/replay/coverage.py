"""What each of two runs logged of a figure in a window: how much of it is there, which steps are not, and its level."""

from typing import Literal

import numpy as np

from bot.model.series import NOTHING, History, Ints
from bot.model.trial import Window, finite
from bot.render.trial import compared_execution
from bot.render.trial_page import LoggedFigure
from checks.trial.rows import Side, pair_up, take_side

_MOST_RANGES = 6


def logged_in(control: History, child: History, window: Window, figures: tuple[str, ...]) -> tuple[LoggedFigure, ...]:
    """Return what there is of each figure, of the control and of the child."""
    executions = tuple(compared_execution(each, window) or 0 for each in (control, child))
    found: list[LoggedFigure] = []
    for figure in figures:
        mine, theirs = (
            take_side(history.figures.get(figure, NOTHING), execution, window)
            for history, execution in zip((control, child), executions, strict=True)
        )
        pairs = pair_up(mine, theirs, window, every=None, warmup_rows=0)
        step = pairs.stride or 1
        due = np.arange(pairs.first_expected, pairs.last_expected + 1, step) if pairs.expected else NOTHING.steps
        found.append(_logged(figure, "control", mine, due, pairs.stride))
        found.append(_logged(figure, "child", theirs, due, pairs.stride))
    return tuple(found)


def attempts_of(name: str, history: History, window: Window) -> tuple[str, ...]:
    """Say that several attempts logged steps of the window, and which of them is compared."""
    found = history.executions(window.first_step, window.last_step)
    if len(found) < 2:  # noqa: PLR2004 - one is as it should be
        return ()
    numbers = ", ".join(map(str, found))
    return (f"attempts {numbers} of the {name} logged steps of the window; only {found[-1]}, the newest, counts",)


@np.errstate(all="ignore")  # a mean that overflows is not shown
def _logged(figure: str, run: Literal["control", "child"], side: Side, due: Ints, stride: int | None) -> LoggedFigure:
    reached = int(side.steps[-1]) if side.steps.size else None
    lacking = np.setdiff1d(due, side.steps)
    late = lacking > reached if reached is not None else np.ones(lacking.size, np.bool_)
    values = side.values[np.isfinite(side.values)]
    is_any = bool(values.size)
    return LoggedFigure(
        figure=figure,
        run=run,
        there=int(due.size - lacking.size),
        due=int(due.size),
        stride=stride,
        missing=say_ranges(lacking[~late], stride or 1),
        to_come=int(np.count_nonzero(late)),
        mean=finite(float(values.mean())) if is_any else None,
        low=finite(float(values.min())) if is_any else None,
        high=finite(float(values.max())) if is_any else None,
        last=finite(float(values[-1])) if is_any else None,
        rows=side.counts,
    )


def say_ranges(steps: Ints, stride: int) -> tuple[str, ...]:
    """Return rising steps as ``12010 to 12030 (3)``, a few of them, and how many steps are not listed."""
    if not steps.size:
        return ()
    starts = np.flatnonzero(np.concatenate(([True], np.diff(steps) != stride)))
    ends = np.append(starts[1:], steps.size)
    said = [
        str(steps[start]) if end - start == 1 else f"{steps[start]} to {steps[end - 1]} ({end - start})"
        for start, end in list(zip(starts.tolist(), ends.tolist(), strict=True))[:_MOST_RANGES]
    ]
    left = int(steps.size - ends[min(len(ends), _MOST_RANGES) - 1])
    return (*said, f"{left} more") if left else tuple(said)
