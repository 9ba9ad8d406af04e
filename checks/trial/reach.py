"""Whether a gate can pass at all in a window: said when the plan is agreed, and not after the old run was stopped."""

import math

import numpy as np

from bot.model.gate import Gate, Reduce
from checks.trial.gates import FEWEST_FOR_ALL
from checks.trial.measures import steps_a_block
from checks.trial.sequence import FEWEST_BLOCKS, quantile_bounds

_USUAL_STRIDES = (1, 10)
"""Loss is logged at every step, most others at every tenth."""


def rows_due(gate: Gate, window_steps: int, stride: int) -> int:
    """Return at how many steps of the window a figure is due at most, behind the gate's warm-up."""
    return max(0, -(-window_steps // stride) - gate.warmup_rows)


def can_pass(gate: Gate, window_steps: int, stride: int, alpha: float) -> bool:
    """Say whether two runs that are the same could pass a gate, if every row is there.

    Args:
        gate: the gate.
        window_steps: how long the window is.
        stride: the figure is logged every so many steps.
        alpha: the gate's share of what was agreed for all.
    """
    rows = rows_due(gate, window_steps, stride)
    if not rows or (rows == 1 and not gate.may_be_flat):
        return False  # one row is a control that never changes
    if rows >= FEWEST_FOR_ALL or gate.reduce is Reduce.MAX:
        return True
    blocks = rows * stride // steps_a_block(rows, stride)
    if gate.reduce is Reduce.MEAN:
        return blocks >= FEWEST_BLOCKS
    _, high = quantile_bounds(np.zeros(rows), gate.q or 0.5, alpha, float(rows if blocks else 0))
    return math.isfinite(high)


def why_it_cannot_pass(gate: Gate, window_steps: int, alpha: float) -> str:
    """Say why a gate can never pass in a window of that length; empty where it can, or where nobody can say."""
    stride = gate.every or 1
    if can_pass(gate, window_steps, stride, alpha):
        return ""
    return f"{gate} can never pass: {_rows(gate, window_steps, stride)}"


def what_is_open(gate: Gate, window_steps: int, alpha: float) -> str:
    """Say at which usual rhythm a gate could never pass, where it does not say how often its figure is logged."""
    if gate.every is not None or not can_pass(gate, window_steps, 1, alpha):
        return ""
    stride = next((each for each in _USUAL_STRIDES if not can_pass(gate, window_steps, each, alpha)), None)
    if stride is None:
        return ""
    return f"{gate} could not pass if it is logged every {stride} steps: {_rows(gate, window_steps, stride)}"


def _rows(gate: Gate, window_steps: int, stride: int) -> str:
    rows = rows_due(gate, window_steps, stride)
    skipped = f" behind {gate.warmup_rows} of warm-up" if gate.warmup_rows else ""
    return f"{window_steps} steps have {rows} rows of it{skipped}, and {_needed(gate, rows)}"


def _needed(gate: Gate, rows: int) -> str:
    if not rows:
        return "nothing is left to compare"
    return "one alone never changes" if gate.reduce is Reduce.MAX else f"at least {FEWEST_FOR_ALL} rows are needed"
