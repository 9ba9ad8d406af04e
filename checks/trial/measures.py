"""What a gate measures of the pairs: the mean, the worst or a quantile of the differences, and how sure that is."""

import math
from dataclasses import dataclass

import numpy as np

from bot.model.gate import Direction, Gate, Reduce
from bot.model.series import Floats, Ints
from bot.model.trial import Doubt, finite
from checks.trial.itself import judge_itself
from checks.trial.rows import Pairs
from checks.trial.sequence import mean_looks, quantile_bounds

FEWEST_STEPS_A_BLOCK = 10
"""Most figures are logged at every tenth step; neighbouring steps of the others are averaged as far."""
MOST_BLOCKS = 40
"""A window that is longer has longer blocks, which are less alike their neighbours."""


@dataclass(frozen=True)
class Measured:
    """One number of the differences, in the unit of the gate."""

    delta: float
    low: float
    high: float
    margin: float
    """From ``delta`` to the limit; below zero it is passed."""
    fails: bool
    """Shown to be beyond the limit."""
    holds: bool
    """Shown to be within it, if nothing is missing."""
    all_within: bool
    """Whether no single step is beyond the limit."""
    all_beyond: bool
    """Whether every single step is, on the same side."""
    blocks: int
    drifts: bool = False
    """Whether the differences drift, so that there is no interval of their mean."""
    failed_first_at: int | None = None
    doubt: Doubt | None = None


@np.errstate(all="ignore")  # as in ``judge_gate``
def measure(gate: Gate, pairs: Pairs, alpha: float) -> Measured:
    """Measure what a gate asks for.

    Args:
        gate: the gate.
        pairs: at least one.
        alpha: how likely the interval may ever miss the true value.
    """
    deltas = (pairs.child - pairs.control) / scale_of(gate, pairs.control)
    harm = _harm(gate, deltas)
    blocks = _blocks(pairs, deltas)
    match gate.reduce:
        case Reduce.MEAN:
            return _mean(gate, pairs, deltas, blocks, alpha)
        case Reduce.MAX:
            return _worst(gate, pairs, harm)
        case Reduce.QUANTILE:
            return _quantile(gate, harm, blocks, alpha)


def scale_of(gate: Gate, control: Floats) -> float:
    """Return what one of the gate's unit is in the figure's own: the size of the control's mean, or 1."""
    return abs(float(control.mean())) if gate.is_relative else 1.0


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Neighbouring steps, averaged; the block that is still being filled is none."""

    means: Floats
    sizes: Ints
    """Pairs in each."""
    last_steps: Ints


def steps_a_block(expected: int, stride: int) -> int:
    """Return how many steps are averaged, of so many rows that are logged every so many steps."""
    steps = max(FEWEST_STEPS_A_BLOCK, -(-expected * stride // MOST_BLOCKS))
    return -(-steps // stride) * stride


def _blocks(pairs: Pairs, deltas: Floats) -> _Blocks:
    stride = pairs.stride or 1
    steps = steps_a_block(pairs.expected, stride)
    block = (pairs.steps - pairs.first_expected) // steps
    whole = int((pairs.steps[-1] - pairs.first_expected + stride) // steps)
    block = block[block < whole]
    if not block.size:
        return _Blocks(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    starts = np.flatnonzero(np.concatenate(([True], block[1:] != block[:-1])))
    sizes = np.diff(np.append(starts, block.size))
    means = np.add.reduceat(deltas[: block.size], starts) / sizes
    return _Blocks(means, sizes, pairs.steps[starts + sizes - 1])


def _harm(gate: Gate, deltas: Floats) -> Floats:
    match gate.direction:
        case Direction.UP:
            return deltas
        case Direction.DOWN:
            return -deltas
        case Direction.EITHER:
            return np.abs(deltas)


def _all_beyond(gate: Gate, deltas: Floats) -> bool:
    if gate.direction is Direction.EITHER:
        return bool((deltas > gate.tolerance).all() or (deltas < -gate.tolerance).all())
    return bool((_harm(gate, deltas) > gate.tolerance).all())


def _mean(gate: Gate, pairs: Pairs, deltas: Floats, blocks: _Blocks, alpha: float) -> Measured:
    means = blocks.means
    delta = float(deltas.mean())
    sign = -1.0 if gate.direction is Direction.DOWN else 1.0
    looks = mean_looks(sign * means, alpha)
    failed, held = looks.low > gate.tolerance, looks.high <= gate.tolerance
    if gate.direction is Direction.EITHER:
        failed |= looks.high < -gate.tolerance
        held &= looks.low >= -gate.tolerance
    low, high = (float(looks.low[-1]), float(looks.high[-1])) if means.size else (-math.inf, math.inf)
    return Measured(
        delta=delta,
        low=low if sign > 0 else -high,
        high=high if sign > 0 else -low,
        margin=gate.tolerance - (abs(delta) if gate.direction is Direction.EITHER else sign * delta),
        fails=bool(means.size and failed[-1]),
        holds=bool(means.size and held[-1]),
        all_within=bool((_harm(gate, deltas) <= gate.tolerance).all()),
        all_beyond=_all_beyond(gate, deltas),
        drifts=bool(means.size and looks.drifts[-1]),
        blocks=means.size,
        failed_first_at=int(blocks.last_steps[failed.argmax()]) if failed.any() else None,
        doubt=judge_itself(means, pairs.control, alpha, gate.direction),
    )


def _worst(gate: Gate, pairs: Pairs, harm: Floats) -> Measured:
    """Of the worst step nothing is inferred: it is what it is, so that one step may fail the gate at once."""
    worst = float(harm.max())
    beyond = harm > gate.tolerance
    delta = -worst if gate.direction is Direction.DOWN else worst
    return Measured(
        delta=delta,
        low=delta,
        high=delta,
        margin=gate.tolerance - worst,
        fails=bool(beyond.any()),
        holds=bool((harm <= gate.tolerance).all()),
        all_within=bool((harm <= gate.tolerance).all()),
        all_beyond=bool((harm > gate.tolerance).all()),
        blocks=0,
        failed_first_at=int(pairs.steps[beyond.argmax()]) if beyond.any() else None,
    )


def _quantile(gate: Gate, harm: Floats, blocks: _Blocks, alpha: float) -> Measured:
    q = gate.q or 0.5
    ordered = np.sort(harm)
    value = float(np.quantile(ordered, q))
    low, high = quantile_bounds(ordered, q, alpha, _worth(harm, blocks, alpha))
    is_down = gate.direction is Direction.DOWN
    return Measured(
        delta=-value if is_down else value,
        low=-high if is_down else low,
        high=-low if is_down else high,
        margin=gate.tolerance - value,
        fails=low > gate.tolerance,
        holds=high <= gate.tolerance,
        all_within=bool((harm <= gate.tolerance).all()),
        all_beyond=bool((harm > gate.tolerance).all()),
        blocks=blocks.means.size,
    )


def _worth(harm: Floats, blocks: _Blocks, alpha: float) -> float:
    """Return how many independent values the differences count as: by how much less their block means vary."""
    means = blocks.means
    if not means.size:
        return 0.0
    worth = float(mean_looks(means, alpha).worth[-1])
    of_means, of_each = float(np.var(means)), float(np.var(harm))
    if finite(worth) is None or finite(of_means) is None or finite(of_each) is None:
        return 0.0
    if of_means == 0 or of_each == 0:
        return float(harm.size)
    inflation = of_means * (means.size / worth) * float(blocks.sizes.mean()) / of_each if worth > 0 else math.inf
    return harm.size / max(1.0, inflation)
