"""Two runs' rows of one figure, joined by step: one execution of each, nothing averaged away, no loop over rows.

What is odd is counted (``SideRows``) and left out: rows of other executions, steps whose rows contradict each other,
values that are not finite. A step with the same value twice counts once. Everything is an array operation, so that a
history of a million steps takes as long as sorting it.
"""

from dataclasses import dataclass

import numpy as np

from bot.model.agreed_names import spelled
from bot.model.series import Figure, Floats, History, Ints
from bot.model.trial import SideRows, Window


def figure_of(history: History, metric: str) -> Figure | None:
    """Return a figure by the name that a gate gives it, or as telemetry spells that (``moe/drops``: ``moe_drops``)."""
    return history.figures.get(metric, history.figures.get(spelled(metric)))


@dataclass(frozen=True, eq=False)
class Side:
    """One execution's values in a window, one a step, sorted by step."""

    steps: Ints
    values: Floats
    """May be NaN or infinite."""
    counts: SideRows
    reached: int | None
    """The last step that the execution logged this figure at, also beyond the window."""


def take_side(figure: Figure, execution: int, window: Window) -> Side:
    """Return what one execution logged of a figure in a window, and count what is left out."""
    inside = (figure.steps >= window.first_step) & (figure.steps <= window.last_step)
    mine = figure.executions == execution
    own = inside & mine
    logged = figure.steps[mine]
    steps, values, odd = one_a_step(figure.steps[own], figure.values[own])
    return Side(
        steps=steps,
        values=values,
        reached=int(logged.max()) if logged.size else None,
        counts=SideRows(
            rows=int(np.count_nonzero(own)),
            steps=len(steps) + odd.contradictions,
            last_step=odd.last_step,
            same_again=odd.same_again,
            contradictions=odd.contradictions,
            steps_back=odd.steps_back,
            not_finite=int(np.count_nonzero(~np.isfinite(values))),
            other_executions=int(np.count_nonzero(inside & ~mine)),
        ),
    )


@dataclass(frozen=True)
class Odd:
    """What ``one_a_step`` found."""

    last_step: int | None
    same_again: int
    contradictions: int
    steps_back: int


def one_a_step(steps: Ints, values: Floats) -> tuple[Ints, Floats, Odd]:
    """Return the steps in rising order with the one value of each; those with several different values are left out."""
    if not steps.size:
        return steps, values, Odd(None, 0, 0, 0)
    ahead = np.diff(steps)
    if (ahead > 0).all():
        return steps, values, Odd(int(steps[-1]), 0, 0, 0)
    order = np.argsort(steps, kind="stable")
    steps, values = steps[order], values[order]
    starts = np.flatnonzero(np.concatenate(([True], steps[1:] != steps[:-1])))
    sizes = np.diff(np.append(starts, steps.size))
    # By their bits, so that a NaN twice is the same again; adding zero makes one zero of the two.
    bits = (values + 0.0).view(np.int64)
    agree = np.minimum.reduceat(bits, starts) == np.maximum.reduceat(bits, starts)
    odd = Odd(
        last_step=int(steps[-1]),
        same_again=int((sizes[agree] - 1).sum()),
        contradictions=int(np.count_nonzero(~agree)),
        steps_back=int(np.count_nonzero(ahead < 0)),
    )
    kept = starts[agree]
    return steps[kept], values[kept], odd


@dataclass(frozen=True, eq=False)
class Pairs:
    """The steps at which both sides have a finite value, and how many there should be."""

    steps: Ints
    control: Floats
    child: Floats
    stride: int | None
    """None where it cannot be said: too few rows."""
    first_expected: int
    last_expected: int
    expected: int
    covered: int
    """Of the expected steps."""
    ended: bool
    """Whether both sides have logged up to the last expected step."""
    child_not_finite: Ints
    """Steps at which the control's value is finite and the child's is not."""
    sides: tuple[Side, Side]
    """What was joined: the control's and the child's."""


def pair_up(control: Side, child: Side, window: Window, *, every: int | None, warmup_rows: int) -> Pairs:
    """Join two sides by step.

    Args:
        control: the old run.
        child: the new one.
        window: what both sides were taken from.
        every: the figure is logged every so many steps; None to take the usual distance of its rows.
        warmup_rows: so many of the first expected rows are left out.
    """
    stride = every or usual_stride(control.steps, child.steps)
    first, expected = _grid(control.steps, window, stride)
    skipped = min(warmup_rows, expected)
    step = stride or 1
    first, expected = first + skipped * step, expected - skipped
    last = first + (expected - 1) * step
    mine, theirs = _shared(control.steps, child.steps, first)
    fine, fine_child = np.isfinite(control.values[mine]), np.isfinite(child.values[theirs])
    both = fine & fine_child
    steps = control.steps[mine][both]
    on_grid = (steps - first) % step == 0
    return Pairs(
        steps=steps,
        control=control.values[mine][both],
        child=child.values[theirs][both],
        stride=stride,
        first_expected=first,
        last_expected=last,
        expected=expected,
        covered=int(np.count_nonzero(on_grid)),
        ended=expected > 0 and all(side.reached is not None and side.reached >= last for side in (control, child)),
        child_not_finite=control.steps[mine][fine & ~fine_child],
        sides=(control, child),
    )


def usual_stride(control: Ints, child: Ints) -> int | None:
    """Return the distance at which a figure is usually logged: the side that logs it more often counts."""
    found = []
    for steps in (control, child):
        distances, counts = np.unique(np.diff(steps), return_counts=True)
        if distances.size:
            found.append(int(distances[counts.argmax()]))
    return min(found, default=None)


def _grid(control: Ints, window: Window, stride: int | None) -> tuple[int, int]:
    """Return the first step of the window at which the figure is due, and how often it is."""
    if stride is None:
        return window.first_step, 0
    phases, counts = np.unique(control % stride, return_counts=True)
    phase = int(phases[counts.argmax()]) if phases.size else window.first_step % stride
    first = window.first_step + (phase - window.first_step) % stride
    return first, max(0, (window.last_step - first) // stride + 1)


def _shared(control: Ints, child: Ints, first: int) -> tuple[Ints, Ints]:
    """Return where the shared steps from one on stand in two rising arrays."""
    if not control.size or not child.size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    places = np.searchsorted(child, control)
    there = child[np.minimum(places, child.size - 1)] == control
    there &= control >= first
    return np.flatnonzero(there), places[there]
