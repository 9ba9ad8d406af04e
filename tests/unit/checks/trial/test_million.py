"""Histories of a million steps, with all that goes wrong in them, against numpy's and scipy's own way."""

import math

import numpy as np
import pytest
from scipy import special, stats

from bot.model.gate import parse_gate
from bot.model.series import Figure, Flags, Floats, History, Ints
from bot.model.trial import Judged, Outcome, Window
from checks.trial.compare import compare
from checks.trial.gates import judge_gate
from checks.trial.measures import MOST_BLOCKS
from checks.trial.rows import pair_up, take_side
from checks.trial.sequence import mean_looks, quantile_bounds

SIZE = 1_000_000
WINDOW = Window(first_step=0, steps=SIZE)
LOSSES = 2 + np.random.default_rng(0).random(SIZE)
_SHIFT = 0.001


class Messy:
    """One side: gaps, rows logged twice or with two values, NaN, and an earlier attempt's rows between."""

    def __init__(self, seed: int, shift: float, *, nans: int = 500) -> None:
        random = np.random.default_rng(seed)
        self.gone = random.random(SIZE) < 0.01
        there = random.permutation(np.flatnonzero(~self.gone))
        twice, contradicted, nan = np.split(there[: 23_000 + nans], [20_000, 23_000])
        self.nan = _flags(nan)
        self.values = LOSSES + shift + 1e-4 * random.standard_normal(SIZE)
        self.values[nan] = math.nan
        self.usable = ~self.gone & ~self.nan & ~_flags(contradicted)
        # Every hundred thousand steps the run goes back by a thousand: those rows come again, by another execution.
        replayed = np.concatenate([np.arange(n - 1000, n) for n in range(100_000, SIZE, 100_000)])
        steps = np.concatenate((there, twice, contradicted, replayed))
        values = np.concatenate(
            (self.values[there], self.values[twice], self.values[contradicted] + 1, np.full(len(replayed), -1.0))
        )
        executions = np.ones(len(steps), np.int64)
        executions[-len(replayed) :] = 0
        # Some thousand rows come a little late, behind those of later steps.
        late = steps + np.where(random.random(len(steps)) < 0.005, 3.5, 0.0)
        order = np.argsort(late, kind="stable")
        self.figure = Figure(steps[order], executions[order], values[order])


def _flags(steps: Ints) -> Flags:
    found = np.zeros(SIZE, np.bool_)
    found[steps] = True
    return found


@pytest.fixture(scope="module")
def control() -> Messy:
    return Messy(1, 0.0)


@pytest.fixture(scope="module")
def child() -> Messy:
    return Messy(2, _SHIFT)


def judge(gate: str, control: Messy, child: Messy) -> Judged:
    return judge_gate(parse_gate(gate), (control.figure, 1), (child.figure, 1), WINDOW, alpha=0.05)


def deltas_of(control: Messy, child: Messy) -> tuple[Ints, Floats]:
    shared = np.flatnonzero(control.usable & child.usable)
    return shared, child.values[shared] - control.values[shared]


def test_the_join_is_that_of_sets(control: Messy, child: Messy) -> None:
    mine, theirs = (take_side(each.figure, 1, WINDOW) for each in (control, child))
    pairs = pair_up(mine, theirs, WINDOW, every=None, warmup_rows=0)

    shared, deltas = deltas_of(control, child)
    np.testing.assert_array_equal(pairs.steps, shared)
    np.testing.assert_array_equal(pairs.child - pairs.control, deltas)
    assert (pairs.stride, pairs.expected, pairs.covered) == (1, SIZE, len(shared))
    for side, messy in ((mine, control), (theirs, child)):
        counts = side.counts
        assert (counts.contradictions, counts.same_again, counts.other_executions) == (3_000, 20_000, 9_000)
        assert counts.steps == SIZE - np.count_nonzero(messy.gone)
        assert counts.not_finite == 500
        assert counts.steps_back > 1_000
    np.testing.assert_array_equal(pairs.child_not_finite, np.flatnonzero(control.usable & child.nan))


def test_the_mean_its_blocks_and_its_interval_are_scipys(control: Messy, child: Messy) -> None:
    shared, deltas = deltas_of(control, child)
    blocks = stats.binned_statistic(shared, deltas, "mean", bins=MOST_BLOCKS, range=(0, SIZE)).statistic

    judged = judge("loss mean <= +0.01 coverage 90%", control, child)

    assert judged.delta == pytest.approx(stats.tmean(deltas), rel=1e-9)
    assert judged.mean_delta == pytest.approx(_SHIFT, abs=1e-5)
    assert judged.max_step == shared[np.abs(deltas).argmax()]
    looks = mean_looks(blocks, 0.05)
    assert judged.blocks == MOST_BLOCKS
    assert judged.low == pytest.approx(looks.low[-1], rel=1e-9)
    assert judged.high == pytest.approx(looks.high[-1], rel=1e-9)
    # One look by a t-test is narrower than the interval of every look, and lies within it.
    once = stats.ttest_1samp(blocks, 0).confidence_interval(0.95)
    assert judged.low is not None
    assert judged.high is not None
    assert judged.low < once.low < _SHIFT < once.high < judged.high


def test_the_quantile_and_its_bounds_are_scipys(control: Messy, child: Messy) -> None:
    q, alpha = 0.95, 0.05
    _, deltas = deltas_of(control, child)
    size = len(deltas)
    below = np.arange(size + 1.0)
    mixture = special.betaln(q + below, 1 - q + size - below) - special.betaln(q, 1 - q)
    kept = np.flatnonzero(mixture - below * np.log(q) - (size - below) * np.log(1 - q) < -np.log(alpha))

    judged = judge("loss p95 <= +0.01 coverage 90%", control, child)
    ordered = np.sort(deltas)
    low, high = quantile_bounds(ordered, q, alpha, float(size))

    assert judged.delta == pytest.approx(stats.mstats.mquantiles(deltas, q, alphap=1, betap=1)[0], rel=1e-9)
    assert (low, high) == (ordered[kept[0] - 1], ordered[kept[-1]])
    assert judged.low is not None
    assert judged.high is not None
    assert judged.delta is not None
    assert judged.low <= low < judged.delta < high <= judged.high


def test_it_is_judged_like_a_short_one(control: Messy, child: Messy) -> None:
    """A child that is NaN where the control is finite fails, whatever else it does; without that it passes."""
    clean = Messy(2, _SHIFT, nans=0).figure
    gates = tuple(map(parse_gate, ("loss mean <= +0.002 coverage 95%", "loss max <= +0.1 coverage 95%")))

    good, bad = (
        compare(History({"loss": control.figure}), History({"loss": each}), gates, WINDOW, alpha=0.05, happened=None)
        for each in (clean, child.figure)
    )

    assert [each.outcome for each in good.gates] == [Outcome.PASS] * 2
    assert [each.outcome for each in bad.gates] == [Outcome.FAIL] * 2
    assert good.quiet is not None, "two attempts logged rows: a retry"
    assert "attempts 0, 1 of the child logged steps of the window; only 1, the newest, is compared" in good.notes
