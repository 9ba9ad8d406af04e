"""Whether a rolled-back run goes on as it went before: consistency, and not bitwise determinism."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.series import Figure, Floats, History, Ints, RunRows
from bot.model.trial import Outcome
from checks.trial.trajectory import FEWEST_PAIRS, MOST_PAIRS, TrajectorySays, judge_trajectory

FROM = 5000
_SIZES = st.integers(FEWEST_PAIRS, 400)
_SWINGS = st.sampled_from((0.0, 0.001, 0.02, 0.06, 0.3))
_SEEDS = st.integers(0, 10**6)


def past(seed: int, swing: float, *, size: int = 600, level: float = 2.3) -> Floats:
    """Return an old trajectory from FROM on: it falls slowly, and swings with its batches."""
    fall = level * (1 - 2e-5 * np.arange(size))
    return fall + swing * np.random.default_rng(seed).standard_normal(size)


def figure(values: Floats, execution: int, first: int = FROM) -> Figure:
    steps = np.arange(first, first + len(values))
    return Figure(steps, np.full(len(values), execution, np.int64), values)


def judge(*parts: Figure, before: set[int] | None = None, after: set[int] | None = None) -> TrajectorySays:
    columns: tuple[Ints, Ints, Floats] = (
        np.concatenate([each.steps for each in parts]),
        np.concatenate([each.executions for each in parts]),
        np.concatenate([each.values for each in parts]),
    )
    rows = RunRows(History({"loss": Figure(*columns)}), ("a", "b", "c", "d"), int(columns[0].max()))
    return judge_trajectory(
        rows, before=frozenset(before or {0}), after=frozenset(after or {1}), metric="loss", from_step=FROM
    )


def noise(seed: int, size: int, sd: float) -> Floats:
    return sd * np.random.default_rng(seed + 1).standard_normal(size)


@settings(deadline=None)
@given(_SEEDS, _SWINGS, _SIZES, st.sampled_from((0.0, 1e-7, 1e-6, 1e-5)), st.sampled_from((0.4, 2.3, 11.0)))
def test_the_same_trajectory_with_the_noise_of_rounding_passes(
    seed: int, swing: float, size: int, rounding: float, level: float
) -> None:
    old = past(seed, swing * level, level=level)

    says = judge(figure(old, 0), figure(old[:size] + noise(seed, size, rounding * level), 1))

    assert says.outcome is Outcome.PASS, says.detail
    assert says.pairs == min(size, MOST_PAIRS)
    assert (says.first_step, says.last_step) == (FROM, FROM + says.pairs - 1)


@settings(deadline=None)
@given(_SEEDS, _SWINGS, _SIZES, st.sampled_from((-0.05, -0.01, 0.01, 0.05)))
def test_a_trajectory_that_is_off_by_a_hundredth_of_its_level_fails(
    seed: int, swing: float, size: int, share: float
) -> None:
    old = past(seed, swing)

    says = judge(figure(old, 0), figure(old[:size] * (1 + share) + noise(seed, size, 1e-5), 1))

    assert says.outcome is Outcome.FAIL, says.detail
    assert says.mean_delta == pytest.approx(share * 2.3, rel=0.3)


@settings(deadline=None)
@given(_SEEDS, st.sampled_from((0.001, 0.02, 0.06, 0.3)), st.integers(80, 300), st.integers(1, 200))
def test_other_batches_than_the_old_ones_fail(seed: int, swing: float, size: int, shift: int) -> None:
    """It restored another step's state: each step reads what another step read."""
    old = past(seed, swing)

    says = judge(figure(old, 0), figure(old[shift : shift + size], 1))

    assert says.outcome is Outcome.FAIL, says.detail
    assert "do not move together" in says.detail


def test_the_same_batches_on_an_older_state_fail() -> None:
    """The loss of the older state is higher, and falls back to where it was."""
    old = past(3, 0.06)
    away = 0.05 * np.exp(-np.arange(100) / 60)

    says = judge(figure(old, 0), figure(old[:100] + away, 1))

    assert says.outcome is Outcome.FAIL


def test_a_replay_that_runs_away_fails_though_its_mean_is_right() -> None:
    old = past(3, 0.06)
    away = 0.05 * np.linspace(-1, 1, 100)

    says = judge(figure(old, 0), figure(old[:100] + away, 1))

    assert says.outcome is Outcome.FAIL
    assert "runs away" in says.detail


def test_a_replay_that_is_only_loosely_the_same_tells_nothing() -> None:
    old = past(3, 0.06)

    says = judge(figure(old, 0), figure(old[:200] + noise(3, 200, 0.03), 1))

    assert says.outcome is Outcome.CANNOT_TELL
    assert "loosely" in says.detail


@given(st.integers(0, FEWEST_PAIRS - 1))
def test_too_few_replayed_steps_tell_nothing_however_alike(size: int) -> None:
    old = past(1, 0.06)
    beyond = figure(old[:50], 1, FROM + 600 - size)  # the old one ended at FROM + 599

    says = judge(figure(old, 0), beyond)

    assert says.outcome is Outcome.CANNOT_TELL
    assert says.pairs == size
    assert ("nothing to compare" if size == 0 else f"{FEWEST_PAIRS} steps are needed") in says.detail


def test_before_the_first_replayed_step_there_is_nothing_to_say() -> None:
    early = judge(figure(past(1, 0.06), 0), figure(past(1, 0.06), 1, FROM - 600))

    assert early.outcome is Outcome.CANNOT_TELL
    assert "has logged no loss from step 5000 on yet" in early.detail


def test_steps_before_the_checkpoint_are_no_replay() -> None:
    old = past(2, 0.06)
    before_it = figure(old[:30] + 1, 1, FROM - 30)

    says = judge(figure(old, 0), before_it, figure(old[:60], 1))

    assert (says.outcome, says.pairs, says.first_step) == (Outcome.PASS, 60, FROM)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_replayed_step_that_is_no_number_fails_at_once(bad: float) -> None:
    old = past(2, 0.06)
    new = old[:3].copy()
    new[1] = bad

    says = judge(figure(old, 0), figure(new, 1))

    assert says.outcome is Outcome.FAIL
    assert "step 5001" in says.detail


def test_steps_at_which_the_old_one_was_no_number_are_left_out() -> None:
    old = past(2, 0.06)
    torn = old.copy()
    torn[4] = math.nan

    says = judge(figure(torn, 0), figure(old[:50], 1))

    assert (says.outcome, says.pairs) == (Outcome.PASS, 49)


def test_of_several_old_attempts_the_last_that_logged_a_step_counts_and_of_the_new_ones_the_newest() -> None:
    old = past(2, 0.06)
    wrong = old + 1

    says = judge(
        figure(wrong[:300], 0),
        figure(old, 1),
        figure(wrong[:80], 2),
        figure(old[:50], 3),
        before={0, 1},
        after={2, 3},
    )

    assert (says.outcome, says.pairs) == (Outcome.PASS, 50)


def test_rows_that_were_cut_tell_nothing() -> None:
    rows = RunRows(History({}), (), None, is_cut=True)

    assert judge_trajectory(rows, before=frozenset(), after=frozenset(), from_step=0).outcome is Outcome.CANNOT_TELL


_ANY = st.lists(
    st.tuples(st.integers(FROM - 3, FROM + 20), st.integers(0, 3), st.floats(allow_nan=True)), min_size=1, max_size=80
)


@settings(deadline=None)
@given(_ANY)
def test_whatever_was_logged_it_answers_and_passes_only_with_enough_pairs(rows: list[tuple[int, int, float]]) -> None:
    steps, executions, values = (np.array([row[i] for row in rows]) for i in range(3))
    found = Figure(steps.astype(np.int64), executions.astype(np.int64), values.astype(np.float64))

    says = judge(found, before={0, 1}, after={2, 3})

    assert says.outcome is not Outcome.PASS or says.pairs >= FEWEST_PAIRS
    assert says.model_validate_json(says.model_dump_json()) == says
