"""The checks on training curves take whatever a trainer logs: no number at the edge of a float makes one raise."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.figures import FURTHER
from bot.model.snapshot import MetricRow
from checks.check import Check
from checks.evaluations import REGRESSED
from checks.series import REPLAY_CHECKS, SERIES_CHECKS
from tests.unit.checks.curves import findings, looks
from tests.unit.checks.story import verdicts

CHECKS = tuple(dict.fromkeys(each.id for each in (*SERIES_CHECKS, *REPLAY_CHECKS)))
NAMES = ("loss", "grad_norm", "tokens_per_second", "step_time_s", "lr", "eval_loss", *FURTHER)
HUGE = 1.7976931348623157e308
TINY = 5e-324
EDGES = st.sampled_from([HUGE, -HUGE, 9e307, -9e307, 1e300, 1e154, TINY, -TINY, 2.3e-308, 0.0, -0.0, 1.0, 2.0])
SPECIAL = st.sampled_from([float("nan"), float("inf"), float("-inf")])


def named(check_id: str) -> Check[Any, Any]:
    return next(each for each in (*SERIES_CHECKS, *REPLAY_CHECKS) if each.id == check_id)


def rows(values: list[float], repeat: int) -> list[MetricRow]:
    """Return rows in which every figure has the same extreme value, each one several times in a row."""
    logged = [value for value in values for _ in range(repeat)]
    return [MetricRow(step=step, values=dict.fromkeys(NAMES, value)) for step, value in enumerate(logged)]


@pytest.mark.parametrize("check_id", CHECKS)
@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(EDGES | SPECIAL | st.floats(), min_size=1, max_size=40),
    repeat=st.integers(1, 12),
    every=st.sampled_from([1, 7, 50]),
)
def test_no_number_that_is_logged_makes_a_check_raise(
    check_id: str, values: list[float], repeat: int, every: int
) -> None:
    verdicts(named(check_id), looks(rows(values, repeat), [every]))


def test_evaluations_at_the_edge_of_a_float_are_still_compared() -> None:
    steady = [9e307, 8.9e307, 9e307, 8.9e307, 9e307, 8.9e307, 9e307]
    worse = [*steady, 1.7e308, 1.7e308]

    assert not findings(REGRESSED, looks(rows(steady, 1), [1]))
    assert findings(REGRESSED, looks(rows(worse, 1), [1]))
