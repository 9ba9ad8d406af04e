"""Whether a resumed run goes on at the loss level of the lineage before it: medians of windows against a trend. Pure.

The trend is drawn through the medians of three equal parts of the losses before the resume, in logarithms of step and
loss, where a training curve is nearly straight, and carried on to the window after it. What the parts' noise, the bend
of the curve and the distance make doubtful is allowed in addition.
"""

import math
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from bot.model.value import Value
from checks.thinning import LoggedLoss

FEWEST_BEFORE = 60
"""Losses before the resume that a trend needs."""
FEWEST_AFTER = 20
"""And after it for a level."""
ENOUGH_AFTER = 128
_SIGMAS = 3.0
_MEDIAN_ERROR = 1.25
"""Standard error of a median, against that of a mean."""
_DIFFERENCE = 1.4826 / math.sqrt(2)
"""Median absolute difference of neighbours to the standard deviation of one, for normal noise."""
_FARTHEST = 1.5
"""A trend is carried on for so many times its own length at most …"""
_FARTHEST_STEPS = 0.1
"""… and for so much of ln(step): a tenth of the steps so far. Young curves bend."""
_STRAIGHT = 0.5
"""A trend that is carried on may be wrong by this share of what it changes."""

_TOP = 700.0
"""exp of it is still a float."""


class Shift(Value):
    """How a window after a resume lies against the trend before it."""

    first_step: int
    """Of the window."""
    last_step: int
    level: float
    """The median loss there."""
    expected: float
    share: float
    """By how much of the expected loss it differs; below zero when it is lower."""
    doubt: float
    """How much of that noise, bend and distance explain."""


class _Part(NamedTuple):
    at: float
    """Median of ln(1 + step)."""
    level: float
    """Median of ln(loss)."""
    rows: int


def shift_of(before: tuple[LoggedLoss, ...], after: tuple[LoggedLoss, ...]) -> Shift | None:
    """Return how the losses after a resume lie against the trend of those before; None when that can't be told."""
    older = [each for each in before if each.loss > 0]
    newer = [each for each in after if each.loss > 0]
    if len(older) < FEWEST_BEFORE or len(newer) < FEWEST_AFTER:
        return None
    third = len(older) // 3
    first, middle, last = (_part(older[len(older) - n * third : len(older) - (n - 1) * third]) for n in (3, 2, 1))
    now = _part(newer)
    length, distance = last.at - first.at, now.at - last.at
    if not 0 < distance <= min(_FARTHEST_STEPS, _FARTHEST * length) or not first.at < middle.at < last.at:
        return None
    slope = (last.level - first.level) / length
    bend = (last.level - middle.level) / (last.at - middle.at) - (middle.level - first.level) / (middle.at - first.at)
    noise = max(_noise(older), _noise(newer))
    error = _MEDIAN_ERROR * noise * math.sqrt(1 / now.rows + 1 / last.rows + 2 / first.rows * (distance / length) ** 2)
    expected = last.level + slope * distance
    return Shift(
        first_step=newer[0].step,
        last_step=newer[-1].step,
        level=math.exp(now.level),
        expected=math.exp(min(_TOP, expected)),
        share=math.expm1(min(_TOP, now.level - expected)),
        doubt=_SIGMAS * error + (abs(bend) + _STRAIGHT * abs(slope)) * distance,
    )


def _part(rows: list[LoggedLoss]) -> _Part:
    return _Part(
        median(math.log1p(each.step) for each in rows), median(math.log(each.loss) for each in rows), len(rows)
    )


def _noise(rows: list[LoggedLoss]) -> float:
    levels = [math.log(each.loss) for each in rows]
    return _DIFFERENCE * median(abs(late - early) for early, late in pairwise(levels))
