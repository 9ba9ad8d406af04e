"""The judge judged: how often it would fail two runs that are the same, measured on the rows at hand.

If the runs are the same, it does not matter which of the two is called the child. So their names are swapped at random,
block by block, and the judge looks at each of the resulting trials after every block: whatever it fails is a false
alarm. The same is done with the control alone, neighbouring rows of it being the two runs.
"""

import math

import numpy as np

from bot.model.gate import Direction
from bot.model.series import Floats
from bot.model.trial import Doubt
from checks.trial.sequence import FEWEST_BLOCKS, mean_looks

TRIALS = 2000
_SEED = 20_260_101
"""Fixed: the same rows give the same answer."""
_SURE = 3.0
"""So many standard errors above alpha, and the rate is no accident of the trials."""


def judge_itself(blocks: Floats, control: Floats, alpha: float, direction: Direction) -> Doubt | None:
    """Return the measured error rates of a gate on the mean; None with too few blocks to judge anything.

    Args:
        blocks: mean differences, one a block.
        control: the control's own values, in the order of their steps.
        alpha: that of the gate.
        direction: of the gate.
    """
    rate = false_alarms(blocks, alpha, direction)
    if rate is None:
        return None
    rows = control.size // 2
    neighbours = control[1 : 2 * rows : 2] - control[: 2 * rows : 2]
    size = max(1, rows // blocks.size)
    halves = neighbours[: rows // size * size].reshape(-1, size).mean(axis=1)
    return Doubt(trials=TRIALS, swapped=rate, control=false_alarms(halves, alpha, direction))


def false_alarms(blocks: Floats, alpha: float, direction: Direction) -> float | None:
    """Return the share of trials with randomly swapped names that would fail at any look; None with too few blocks."""
    if blocks.size < FEWEST_BLOCKS:
        return None
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), size=(TRIALS, blocks.size))
    looks = mean_looks(signs * blocks, alpha)
    alarms = looks.low > 0
    if direction is Direction.EITHER:
        alarms |= looks.high < 0
    return float(alarms.any(axis=-1).mean())


def is_too_often(doubt: Doubt, alpha: float) -> bool:
    """Whether the judge fails equal runs more often than it says."""
    return doubt.swapped > alpha + _SURE * math.sqrt(alpha * (1 - alpha) / doubt.trials)
