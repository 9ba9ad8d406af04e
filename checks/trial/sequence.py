"""Intervals that stay true however often one looks: what makes an early abort legitimate.

**Mean.** The scale-invariant normal mixture for a mean of unknown variance (Lai, "On confidence sequences", 1976; Wang
& Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", 2024). For
normal, independent values the running likelihood ratio is a martingale that starts at 1, so by Ville's inequality it
ever exceeds 1/alpha with a chance of at most alpha. No approximation for many values: it holds from the second one on.

Training figures are neither independent nor normal. So the values are means of *blocks* of steps, and their variance is
taken (1 + r) / (1 - r) times, r being the first-order autocorrelation of the blocks, raised by what so few of them
underestimate it (Marriott & Pope, "Bias in the estimation of autocorrelations", 1954). Where r is too high, the
differences drift instead of varying around a mean, and there is no interval. This part is an approximation;
``docs/trial.md`` has the error rates measured with it.

**Quantile.** The share of steps beyond the limit is a coin; its sequence is the beta mixture (Robbins 1970; Howard &
Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm identification", 2022),
with the counts cut down likewise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bot.model.series import Flags, Floats

FEWEST_BLOCKS = 8
"""Below, there is no interval: the autocorrelation of so few values says nothing."""
DRIFTS_FROM = 0.6
"""An autocorrelation of the blocks from which on the differences drift."""
_PRECISION = 4.0
"""Of the mixture over effect sizes (mean over standard deviation). The interval of 20 blocks is within 3 % of the
narrowest that any precision gives; a smaller one errs more often where blocks are not independent."""
_FEWEST_FOR_CORRELATION = 3
_LARGEST = 0.99


@dataclass(frozen=True, eq=False)
class Looks:
    """The interval of the mean after each block, over the last axis."""

    mean: Floats
    half: Floats
    """Infinite where nothing can be said yet."""
    worth: Floats
    """How many independent blocks they count as."""
    drifts: Flags
    """Whether neighbouring blocks are too alike for an interval."""

    @property
    def low(self) -> Floats:
        return self.mean - self.half

    @property
    def high(self) -> Floats:
        return self.mean + self.half


def mean_looks(blocks: Floats, alpha: float) -> Looks:
    """Return the confidence sequence of the mean; a look uses nothing that came after it.

    Args:
        blocks: shape (..., n), means of neighbouring steps, oldest first.
        alpha: how likely the true mean may ever be outside.
    """
    count = np.arange(1, blocks.shape[-1] + 1, dtype=np.float64)
    with np.errstate(all="ignore"):  # what overflows is infinite or NaN then, and neither passes nor fails anything
        shifted = blocks - blocks[..., :1]
        total = np.cumsum(shifted, axis=-1)
        mean = total / count
        variance = np.maximum(np.cumsum(shifted * shifted, axis=-1) / count - mean * mean, 0.0)
        products = np.zeros_like(shifted)
        products[..., 1:] = np.cumsum(shifted[..., 1:] * shifted[..., :-1], axis=-1)
        lagged = products - mean * (2 * total - shifted) + (count - 1) * mean * mean
        r = np.where(variance > 0, lagged / (count * variance), 0.0)
        r = np.clip((count * r + 1) / (count - _FEWEST_FOR_CORRELATION), 0.0, _LARGEST)
        r = np.where(variance > 0, r, 0.0)
        inflation = (1 + r) / (1 - r)
        # What the variance of n correlated values about their own mean lacks, against that of n independent ones.
        lack = (1 - 1 / count) / np.maximum(1 - inflation / count, 1 / count)
        half = np.sqrt(variance * inflation * lack) * _half_widths(count, alpha)
        half = np.where(variance > 0, half, 0.0)
        half = np.where(np.isnan(variance) | (count < FEWEST_BLOCKS) | (r >= DRIFTS_FROM), np.inf, half)
    return Looks(mean=mean + blocks[..., :1], half=half, worth=count / inflation, drifts=r >= DRIFTS_FROM)


def _half_widths(count: Floats, alpha: float) -> Floats:
    """Return the half width in standard deviations (of n, not n - 1) of so many independent normal values."""
    k = _PRECISION / (count + _PRECISION)
    t = (1 / (alpha * np.sqrt(k))) ** (2 / count)
    room = 1 - t * k
    return np.where(room > 0, np.sqrt((t - 1) / np.where(room > 0, room, 1.0)), np.inf)


def quantile_bounds(ordered: Floats, q: float, alpha: float, worth: float) -> tuple[float, float]:
    """Return between which values the q-quantile lies.

    Args:
        ordered: the values, rising.
        q: the share of values that are no larger than it.
        alpha: how likely it may ever be outside.
        worth: how many independent values they count as; at most their number.
    """
    size = ordered.size
    if not size:
        return -math.inf, math.inf
    scale = worth / size
    middle = round(q * size)
    fewest = _edge(middle, 0, lambda below: _is_refuted(below * scale, worth, q, alpha))
    most = _edge(middle, size, lambda below: _is_refuted(below * scale, worth, q, alpha))
    low = float(ordered[fewest - 1]) if fewest >= 1 else -math.inf
    high = float(ordered[most]) if most < size else math.inf
    return low, high


def _is_refuted(below: float, count: float, q: float, alpha: float) -> bool:
    """Whether so many of ``count`` tosses of a coin can't be the q-coin's, at any look."""
    logarithm = _log_beta(q + below, 1 - q + count - below) - _log_beta(q, 1 - q)
    return logarithm - below * math.log(q) - (count - below) * math.log1p(-q) >= -math.log(alpha)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _edge(inside: int, end: int, is_refuted: Callable[[int], bool]) -> int:
    """Return the last count from ``inside`` towards ``end`` that is not refuted; refuted ones follow each other."""
    if not is_refuted(end):
        return end
    while abs(end - inside) > 1:
        between = (inside + end) // 2
        inside, end = (inside, between) if is_refuted(between) else (between, end)
    return inside
