"""After a rollback: whether the steps that the old run trains again go as they went the first time.

Consistency of the trajectory is judged, not bitwise determinism (deploy checklist, "Decide"): sums in another order
give slightly other losses, and those wander apart. So a replayed step is held against the same step of the old
trajectory, and what differs is measured in the old trajectory's own swing from step to step, which the batches make and
which both therefore share. A run that restored another state, or reads other batches, does not share it.
"""

import math
from dataclasses import dataclass

import numpy as np

from bot.model.series import NOTHING, Floats, Ints, RunRows
from bot.model.trial import Outcome, finite
from bot.model.value import Value
from checks.trial.rows import figure_of, one_a_step

FEWEST_PAIRS = 10
"""Below, nobody can tell: a few steps may agree, or not, by chance."""
MOST_PAIRS = 200
"""Only the first replayed steps count: the further, the more two sound runs have wandered apart."""
_OF_SWING = 0.1
"""How far the mean may be off, as a share of the old trajectory's swing from step to step."""
_OF_LEVEL = 0.003
"""And as a share of its level, where the swing is large: a loss of 2.3 may be off by 0.007."""
_FLOAT_NOISE = 1e-4
"""As a share of the level: less is no difference at all, however smooth the trajectory."""
_TOGETHER, _APART = 0.25, 0.5
"""How far three in four replayed steps are from the old ones, as a share of how far those of two unrelated runs are: up
to the one they are the same batches, from the other on they are not."""
_SURE = 3.0
"""So many standard errors."""
_QUARTILE = 0.75
_SIGMA_OF_QUARTILE = 1 / 1.15035
"""Times the distance from the median that three in four keep is the standard deviation of normal values. Robust against
spikes in a fourth of them, and surer than the usual half (the median distance) with few values."""
_FEWEST_FOR_SWING = 5


class TrajectorySays(Value):
    """How the replayed steps lie to the old ones."""

    outcome: Outcome
    detail: str
    pairs: int = 0
    """Steps that both logged with a finite value."""
    mean_delta: float | None = None
    """The replay less the old trajectory, in the figure's own unit."""
    max_delta: float | None = None
    """The difference that is largest in size, with its sign."""
    max_step: int | None = None
    """Where."""
    tolerance: float | None = None
    """How far the mean may be off."""
    first_step: int | None = None
    """Of the pairs."""
    last_step: int | None = None


@np.errstate(all="ignore")  # what overflows is infinite or NaN, and neither passes
def judge_trajectory(
    rows: RunRows, *, before: frozenset[int], after: frozenset[int], metric: str = "loss", from_step: int
) -> TrajectorySays:
    """Hold the first replayed steps against what the run had logged of them before.

    Args:
        rows: of the old run, from the checkpoint that it went on from.
        before: which executions are its earlier ones; of several that logged a step, the last one counts.
        after: which are those of the launch that rolled back; the newest of them that logged anything counts.
        metric: which figure.
        from_step: of that checkpoint; earlier steps are not replayed.
    """
    if rows.is_cut:
        return _open("there are more rows than one answer may have")
    figure = figure_of(rows.history, metric) or NOTHING
    behind = figure.steps >= from_step
    replayed = [number for number in sorted(after) if (behind & (figure.executions == number)).any()]
    if not replayed:
        return _open(f"the rolled-back run has logged no {metric} from step {from_step} on yet")
    old_steps, old = _trajectory(figure.steps, figure.executions, figure.values, sorted(before))
    new_steps, new = _trajectory(figure.steps, figure.executions, figure.values, replayed[-1:])
    steps, mine, theirs = np.intersect1d(old_steps, new_steps, assume_unique=True, return_indices=True)
    kept = (steps >= from_step) & np.isfinite(old[mine])
    steps, mine, theirs = steps[kept][:MOST_PAIRS], mine[kept][:MOST_PAIRS], theirs[kept][:MOST_PAIRS]
    if not steps.size:
        return _open(f"no step from {from_step} on was logged both before and after: there is nothing to compare")
    bad = steps[~np.isfinite(new[theirs])]
    if bad.size:
        return TrajectorySays(
            outcome=Outcome.FAIL,
            detail=f"the replayed {metric} is NaN or infinite at step {bad[0]}, where the old one was finite",
            pairs=int(steps.size - bad.size),
            first_step=int(steps[0]),
            last_step=int(steps[-1]),
        )
    near = slice(max(0, int(mine[0]) - MOST_PAIRS), int(mine[-1]) + MOST_PAIRS)
    return _judge(metric, steps, old[mine], new[theirs], _swing(old[near]))


def _open(detail: str) -> TrajectorySays:
    return TrajectorySays(outcome=Outcome.CANNOT_TELL, detail=detail)


def _trajectory(steps: Ints, executions: Ints, values: Floats, of: list[int]) -> tuple[Ints, Floats]:
    """Return the one value of each step, the last execution's that logged it, in rising order."""
    parts = [one_a_step(steps[executions == number], values[executions == number])[:2] for number in of]
    if not parts:
        return NOTHING.steps, NOTHING.values
    # Latest first, so that the first of several is the last execution's.
    all_steps = np.concatenate([each for each, _ in reversed(parts)])
    all_values = np.concatenate([each for _, each in reversed(parts)])
    once, first = np.unique(all_steps, return_index=True)
    return once, all_values[first]


def _swing(old: Floats) -> float:
    """Return the standard deviation of one step about its neighbours; robust against spikes; NaN for too few steps."""
    changes = np.diff(old[np.isfinite(old)])
    if changes.size < _FEWEST_FOR_SWING:
        return math.nan
    return _spread(changes) / math.sqrt(2)


def _spread(values: Floats) -> float:
    return _SIGMA_OF_QUARTILE * float(np.quantile(np.abs(values - np.median(values)), _QUARTILE))


@dataclass(frozen=True)
class _Measured:
    mean: float
    sure: float
    """How far the true mean may be from it."""
    trend: float
    """From the first pair to the last, along a straight line."""
    sure_of_trend: float
    apart: float
    """The spread of the differences, as a share of that between two unrelated runs."""

    @property
    def is_finite(self) -> bool:
        found = (self.mean, self.sure, self.trend, self.sure_of_trend, self.apart)
        return all(math.isfinite(each) for each in found)


def _judge(metric: str, steps: Ints, old: Floats, new: Floats, swing: float) -> TrajectorySays:
    deltas = new - old
    level = abs(float(np.median(old)))
    floor = _FLOAT_NOISE * level
    tolerance = max(floor, min(_OF_SWING * swing, _OF_LEVEL * level)) if math.isfinite(swing) else math.nan
    measured = _measure(steps, deltas, max(swing, floor))
    outcome, why = _conclude(measured, tolerance, steps.size)
    largest = int(np.argmax(np.abs(deltas)))
    how = f"{steps.size} replayed steps, {steps[0]} to {steps[-1]}: {metric} is off by {measured.mean:+.3g} in the mean"
    usual = f"up to {tolerance:.3g} is usual" if math.isfinite(tolerance) else "nobody knows what is usual"
    return TrajectorySays(
        outcome=outcome,
        detail=f"{how} ({usual}), by {deltas[largest]:+.3g} at most; {why}",
        pairs=int(steps.size),
        mean_delta=finite(measured.mean),
        max_delta=finite(float(deltas[largest])),
        max_step=int(steps[largest]),
        tolerance=finite(tolerance),
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
    )


def _measure(steps: Ints, deltas: Floats, swing: float) -> _Measured:
    size = steps.size
    error = float(np.std(deltas, ddof=1)) / math.sqrt(size) if size > 1 else math.inf
    centred = (steps - steps.mean()) / max(1, int(steps[-1] - steps[0]))
    square = float((centred**2).sum())
    trend = float((centred * deltas).sum()) / square if square else 0.0
    rest = deltas - deltas.mean() - trend * centred
    error_of_trend = math.sqrt(float((rest**2).sum()) / (size - 2) / square) if size > 2 and square else math.inf  # noqa: PLR2004 - two are fitted
    unrelated = math.sqrt(2) * swing
    return _Measured(
        mean=float(deltas.mean()),
        sure=_SURE * error,
        trend=trend,
        sure_of_trend=_SURE * error_of_trend,
        apart=_spread(deltas) / unrelated if unrelated else math.inf,
    )


def _conclude(measured: _Measured, tolerance: float, pairs: int) -> tuple[Outcome, str]:
    """Return what the first rule that holds says."""
    off, run_off = abs(measured.mean), abs(measured.trend)
    is_open = off + measured.sure > tolerance or run_off + measured.sure_of_trend > 2 * tolerance
    rules = (
        (pairs < FEWEST_PAIRS, Outcome.CANNOT_TELL, f"{FEWEST_PAIRS} steps are needed"),
        (not measured.is_finite or not math.isfinite(tolerance), Outcome.CANNOT_TELL, "the values are too large"),
        (measured.apart >= _APART, Outcome.FAIL, "the steps do not move together: another state, or other batches"),
        (off - measured.sure > tolerance, Outcome.FAIL, "that is too much for rounding: it goes on from another state"),
        (
            run_off - measured.sure_of_trend > 2 * tolerance,
            Outcome.FAIL,
            f"and it runs away from the old one, by {measured.trend:+.3g} over these steps",
        ),
        (measured.apart > _TOGETHER, Outcome.CANNOT_TELL, "the steps move together only loosely"),
        (is_open, Outcome.CANNOT_TELL, "the steps differ too much among themselves to tell"),
    )
    found = next(((outcome, why) for holds, outcome, why in rules if holds), None)
    return found or (Outcome.PASS, "it follows its old trajectory")
