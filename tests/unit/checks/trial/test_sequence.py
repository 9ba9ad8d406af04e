"""The intervals against plain formulas, and how often they err when one looks again and again."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from bot.model.gate import Direction
from checks.trial.itself import TRIALS, false_alarms, judge_itself
from checks.trial.sequence import DRIFTS_FROM, FEWEST_BLOCKS, mean_looks, quantile_bounds
from tests.unit.checks.trial.runs import noise


def _blocks(values: np.typing.NDArray[np.float64], size: int = 10) -> np.typing.NDArray[np.float64]:
    return values.reshape(len(values), -1, size).mean(axis=2)


def test_the_interval_ends_where_the_mixture_ratio_reaches_one_over_alpha() -> None:
    """The closed form against the likelihood ratio itself, as the paper writes it."""
    size, alpha = 20, 0.05
    # Swings from block to block have no positive autocorrelation, so nothing is inflated.
    values = 0.3 + np.tile([1.0, -1.1], size // 2) + 0.01 * np.arange(size)
    looks = mean_looks(values, alpha)
    limit = float(looks.low[-1])
    shifted = values - limit
    total, square = shifted.sum(), (shifted**2).sum()

    def at(effect: float) -> float:  # the density over an effect size, sigma integrated out with the right Haar prior
        def over(sigma: float) -> float:
            spread = np.exp(-(square - 2 * total * effect * sigma + size * (effect * sigma) ** 2) / (2 * sigma**2))
            return float(spread * sigma ** (-size - 1))

        return float(integrate.quad(over, 1e-3, 60, limit=200)[0])

    mixed = integrate.quad(lambda effect: at(effect) * stats.norm.pdf(effect, scale=0.5), -3, 3)[0]

    assert math.isclose(mixed / at(0.0), 1 / alpha, rel_tol=1e-3)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.5, 0.8, 0.9])
def test_looking_after_every_block_fails_equal_runs_no_more_often_than_agreed(r: float) -> None:
    alpha, trials = 0.05, 2000

    looks = mean_looks(_blocks(noise(7, r=r, trials=trials)), alpha)

    erred = (np.abs(looks.mean) > looks.half).any(axis=1).mean()
    assert erred <= alpha + 2 * math.sqrt(alpha * (1 - alpha) / trials)


def test_a_plain_t_test_at_every_look_would_fail_many() -> None:
    """What the sequence is for: were it no sequence, the test above could not fail."""
    blocks = _blocks(noise(7, trials=2000))
    count = np.arange(FEWEST_BLOCKS, blocks.shape[1] + 1)
    p = np.stack([stats.ttest_1samp(blocks[:, :n], 0, axis=1).pvalue for n in count])

    assert (p < 0.05).any(axis=0).mean() > 0.1


def test_a_look_uses_nothing_that_came_after_it() -> None:
    blocks = _blocks(noise(3, r=0.5, trials=1))[0]

    whole, early = mean_looks(blocks, 0.05), mean_looks(blocks[:12], 0.05)

    np.testing.assert_array_equal(whole.low[:12], early.low)
    np.testing.assert_array_equal(whole.high[:12], early.high)


def test_the_interval_moves_with_the_values_and_grows_with_their_unit() -> None:
    blocks = _blocks(noise(3, r=0.5, trials=1))[0]

    looks, moved = mean_looks(blocks, 0.05), mean_looks(4 * blocks + 8, 0.05)

    np.testing.assert_allclose(moved.low, 4 * looks.low + 8, rtol=1e-12)
    np.testing.assert_allclose(moved.half[-1], 4 * looks.half[-1], rtol=1e-9)


def test_differences_that_wander_have_no_interval() -> None:
    wandering = np.cumsum(np.random.default_rng(1).standard_normal(40))

    looks = mean_looks(wandering, 0.05)

    assert looks.drifts[-1]
    assert looks.half[-1] == math.inf
    assert 0 < DRIFTS_FROM < 1


def test_equal_values_have_an_interval_of_no_width_once_they_are_enough() -> None:
    looks = mean_looks(np.full(FEWEST_BLOCKS, 0.25), 0.05)

    assert looks.half.tolist() == [math.inf] * (FEWEST_BLOCKS - 1) + [0.0]
    assert looks.mean[-1] == 0.25


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_the_bounds_of_a_quantile_hold_at_every_look(q: float) -> None:
    alpha, trials = 0.05, 400
    true = {0.5: 0.0, 0.95: 1.6448536}[q]
    values = np.random.default_rng(5).standard_normal((trials, 200))

    erred = 0
    for row in values:
        bounds = (quantile_bounds(np.sort(row[:n]), q, alpha, float(n)) for n in range(10, 201, 10))
        erred += any(not low <= true <= high for low, high in bounds)

    assert erred / trials <= alpha + 2 * math.sqrt(alpha * (1 - alpha) / trials)


def test_the_bounds_of_a_quantile_are_those_of_the_beta_mixture() -> None:
    q, size, alpha = 0.9, 150, 0.05
    below = np.arange(size + 1)
    mixture = special.betaln(q + below, 1 - q + size - below) - special.betaln(q, 1 - q)
    kept = below[mixture - below * np.log(q) - (size - below) * np.log(1 - q) < -np.log(alpha)]

    low, high = quantile_bounds(np.arange(1.0, size + 1), q, alpha, float(size))

    assert low == kept[0]
    assert high == (kept[-1] + 1 if kept[-1] < size else math.inf)


def test_the_judge_measures_what_it_promises_of_itself() -> None:
    blocks = _blocks(noise(2, trials=1))[0]

    doubt = judge_itself(blocks, 2.3 + noise(4, sd=0.06)[0], 0.05, Direction.EITHER)

    assert doubt is not None
    assert doubt.trials == TRIALS
    assert 0 < doubt.swapped <= 0.05
    assert doubt.control is not None
    assert 0 < doubt.control <= 0.05
    one_way = judge_itself(blocks, noise(4)[0], 0.05, Direction.UP)
    assert one_way is not None
    assert one_way.swapped < doubt.swapped


def test_with_a_laxer_alpha_more_equal_runs_are_failed() -> None:
    blocks = _blocks(noise(2, trials=1))[0]

    rates = [false_alarms(blocks, alpha, Direction.EITHER) or 0.0 for alpha in (0.01, 0.05, 0.2, 0.4)]

    assert rates == sorted(rates)
    assert len(set(rates)) == 4
    assert false_alarms(blocks[: FEWEST_BLOCKS - 1], 0.05, Direction.UP) is None
