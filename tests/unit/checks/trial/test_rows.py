"""Joining two runs by step: as a loop would do it, and nothing averaged away."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.series import Figure, History
from bot.model.trial import Window
from checks.trial.rows import Pairs, pair_up, take_side, usual_stride
from tests.unit.checks.trial.runs import STEPS, WINDOW, batches, figure

_VALUES = st.sampled_from((0.0, -0.0, 1.0, 2.5, -3.0, math.nan, math.inf))
_ROWS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 1), _VALUES), max_size=30)
type _Row = tuple[int, int, float]


def _figure(rows: list[_Row]) -> Figure:
    steps, executions, values = ([row[i] for row in rows] for i in range(3))
    return Figure(np.array(steps, np.int64), np.array(executions, np.int64), np.array(values, np.float64))


def _by_loop(rows: list[_Row], window: Window) -> dict[int, float]:
    """The one value of each step of execution 1; none where its rows contradict each other."""
    seen: dict[int, list[float]] = {}
    for step, execution, value in rows:
        if execution == 1 and window.first_step <= step <= window.last_step:
            seen.setdefault(step, []).append(value)
    return {step: found[0] for step, found in seen.items() if len({repr(value + 0.0) for value in found}) == 1}


def _join(one: list[_Row], other: list[_Row], window: Window) -> Pairs:
    mine, theirs = (take_side(_figure(rows), 1, window) for rows in (one, other))
    return pair_up(mine, theirs, window, every=1, warmup_rows=0)


@given(_ROWS, _ROWS, st.integers(0, 8), st.integers(1, 10))
def test_the_join_is_what_a_loop_over_the_rows_finds(one: list[_Row], other: list[_Row], first: int, size: int) -> None:
    window = Window(first_step=first, steps=size)
    mine, theirs = _by_loop(one, window), _by_loop(other, window)

    pairs = _join(one, other, window)

    shared = sorted(mine.keys() & theirs.keys())
    both = [step for step in shared if math.isfinite(mine[step]) and math.isfinite(theirs[step])]
    assert pairs.steps.tolist() == both
    assert pairs.control.tolist() == [mine[step] for step in both]
    assert pairs.child.tolist() == [theirs[step] for step in both]
    assert (pairs.covered, pairs.expected) == (len(both), size)
    lost = [step for step in shared if math.isfinite(mine[step]) and not math.isfinite(theirs[step])]
    assert pairs.child_not_finite.tolist() == lost


@given(_ROWS)
def test_every_row_of_the_window_is_counted_as_something(rows: list[_Row]) -> None:
    window = Window(first_step=3, steps=8)
    own = [row for row in rows if 3 <= row[0] <= 10 and row[1] == 1]

    counts = take_side(_figure(rows), 1, window).counts

    assert counts.rows == len(own)
    assert counts.steps == len({row[0] for row in own})
    assert counts.contradictions == counts.steps - len(_by_loop(rows, window))
    assert counts.steps_back == sum(b[0] < a[0] for a, b in pairwise(own))
    assert counts.other_executions == sum(3 <= row[0] <= 10 and row[1] == 0 for row in rows)
    assert counts.last_step == max((row[0] for row in own), default=None)


def test_a_figure_of_every_tenth_step_is_expected_at_every_tenth_step_and_in_its_own_phase() -> None:
    tenth = np.arange(1003, 1200, 10)
    side = take_side(figure(batches(size=20), tenth), 0, WINDOW)

    pairs = pair_up(side, side, WINDOW, every=None, warmup_rows=2)

    assert (pairs.stride, pairs.expected, pairs.covered, pairs.ended) == (10, 18, 18, True)
    assert (pairs.first_expected, pairs.last_expected) == (1023, 1193)


def test_the_side_that_logs_more_often_says_how_often_it_is() -> None:
    assert usual_stride(STEPS[::10], STEPS[::2]) == 2
    assert usual_stride(STEPS[:1], STEPS[:0]) is None


@pytest.mark.parametrize("last", [1198, 1199, 1200, 1500])
def test_the_window_has_ended_when_both_sides_have_come_to_its_last_step(last: int) -> None:
    steps = np.arange(1000, last + 1)
    side = take_side(figure(batches(size=len(steps)), steps), 0, WINDOW)

    assert pair_up(side, side, WINDOW, every=None, warmup_rows=0).ended is (last >= 1199)


def test_the_executions_of_a_run_are_told_from_the_rows_of_the_window_alone() -> None:
    rows = [(1, 0, 1.0), (5, 1, 1.0), (6, 2, 1.0), (20, 3, 1.0)]

    history = History({"loss": _figure(rows)})

    assert history.executions(5, 10) == (1, 2)
    assert history.executions(5) == (1, 2, 3)
