"""The small series of a run: bounded whatever is logged, and the newest row always in it."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from bot.model.curve import MOST_POINTS, Curve, read_curve
from bot.model.snapshot import MetricRow


def rows(count: int, **values: float) -> list[MetricRow]:
    return [MetricRow(step=step, values=values or {"loss": 2.0}) for step in range(count)]


@given(looks=st.lists(st.integers(0, 700), max_size=12))
def test_it_stays_small_keeps_first_and_newest_and_is_the_same_however_the_rows_come(looks: list[int]) -> None:
    every = [
        MetricRow(step=step, values={"loss": step / 7, "tokens_per_second": 1e6 + step}) for step in range(sum(looks))
    ]
    curve, begin = Curve(), 0
    for count in looks:
        curve = curve.followed_by(every[begin : begin + count])
        begin += count

    assert len(curve.points) <= MOST_POINTS
    assert curve.rows == len(every)
    assert curve == Curve().followed_by(every)
    if every:
        assert (curve.points[0][0], curve.points[-1][0]) == (0, every[-1].step)
        assert len(curve.points) > min(len(every), MOST_POINTS) // 2 - 2


def test_a_long_runs_series_is_below_32_kb() -> None:
    long = [
        MetricRow(step=10**7 + step, values={"loss": 2.34567891 + step, "tokens_per_second": 123456.789 + step})
        for step in range(9_999)
    ]

    assert len(Curve().followed_by(long).model_dump_json()) < 32_000


def test_what_is_not_finite_is_a_gap_and_comes_back_as_one() -> None:
    broken = [MetricRow(step=1, values={"loss": math.nan, "tokens_per_second": math.inf}), MetricRow(step=2, values={})]

    stored = Curve().followed_by(broken).model_dump_json()

    assert json.loads(stored)["points"] == [[1, None, None], [2, None, None]]
    assert read_curve(stored).points == ((1, None, None), (2, None, None))


def test_the_usual_throughput_is_the_median_of_enough_of_it() -> None:
    fast, slow = rows(60, tokens_per_second=100.0), rows(20, tokens_per_second=10.0)

    assert Curve().followed_by(rows(19, tokens_per_second=100.0)).usual_tokens_per_second is None
    assert Curve().followed_by([*fast, *slow]).usual_tokens_per_second == 100.0


def test_a_memory_that_is_none_of_ours_is_an_empty_series() -> None:
    assert read_curve('{"points": "x"}') == read_curve(None) == Curve()
