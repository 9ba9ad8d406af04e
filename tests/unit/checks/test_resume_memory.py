"""resume.mismatch, its memory: small after a million steps, and still exact where a restart begins."""

import math
import random
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.snapshot import Checkpoint, MetricRow
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding
from checks.check import judge_all
from checks.resume import MISMATCH, Lineage
from checks.thinning import REPLAY, TREND, LoggedLoss, logged_loss, thinned
from tests.fakes.snapshots import checkpoint, contract, instance, job, later, row, rows, snapshot, unknown
from tests.unit.checks.story import finding

MILLION = 1_000_000
EVERY = 10
A_LOOK = 2_000
MOST_BYTES = 8_000
SAVES = 5_000
DICE = random.Random(0)
NOISE = [DICE.gauss(0, 0.003) for _ in range(9_973)]


def loss_at(step: int) -> float:
    """Return a long run's loss with noise that is the same whenever the step is trained."""
    level = 1.5 + 20 * math.exp(-0.35 * math.log(step + 1))
    return level * math.exp(NOISE[step % len(NOISE)])


def saved(step: int) -> list[Checkpoint]:
    """Return what is kept of a run at that step: two resume checkpoints, and one for good every 200,000 steps."""
    newest = step // SAVES * SAVES
    permanent = range(200_000, newest, 200_000)
    return [checkpoint(each) for each in sorted({*permanent, newest - SAVES, newest}) if each > 0]


@cache
def after_a_million() -> tuple[dict[CheckId, str], int]:
    """Return the memory after a million steps, every tenth of them logged, and the most bytes that it ever had."""
    memories: dict[CheckId, str] = {}
    largest = 0
    for begin in range(0, MILLION, A_LOOK):
        logged = tuple(
            MetricRow.model_construct(step=step, values={"loss": loss_at(step)}, at=None)
            for step in range(begin, begin + A_LOOK, EVERY)
        )
        seen = snapshot(later(begin / A_LOOK), checkpoints=saved(begin + A_LOOK), metrics=logged)
        memories = judge_all((MISMATCH,), seen, contract(), memories).memories
        largest = max(largest, len(memories[MISMATCH.id]))
    return memories, largest


def relaunched(from_step: int, last: int, *, apart: float = 0.0, since: int = 0, factor: float = 1.0) -> Finding | None:
    """Return what is found when a launch from a checkpoint has logged up to ``last``, with losses apart ``since``."""
    memories, _ = after_a_million()
    again = job(submitted_at=later(1_000))
    launch = instance(1, from_step=from_step, submitted_at=later(1_000))
    logged = [row(s, loss=factor * loss_at(s) + (apart if s >= since else 0.0)) for s in range(from_step, last, EVERY)]
    seen = snapshot(later(1_100), jobs=again, launch=launch, checkpoints=saved(MILLION), metrics=logged)
    judged = judge_all((MISMATCH,), seen, contract(), memories)
    assert len(judged.memories[MISMATCH.id]) <= MOST_BYTES
    found = judged.judgements[0].verdict
    return found.finding if isinstance(found, Fail) else None


def test_the_memory_of_a_million_steps_stays_below_8_kb() -> None:
    assert after_a_million()[1] <= MOST_BYTES


@pytest.mark.parametrize("from_step", [200_000, MILLION - SAVES, MILLION])
def test_a_loss_that_differs_is_found_in_the_first_steps_after_any_checkpoint(from_step: int) -> None:
    """Of the newest ones and of the oldest; at the very end of the log there is nothing to compare with yet."""
    assert relaunched(from_step, from_step + 20) is None
    found = relaunched(from_step, from_step + 20, apart=0.003)

    assert (found is None) is (from_step == MILLION)
    assert found is None or "0.003 apart" in found.summary


def test_a_loss_that_differs_later_in_the_replay_is_found_after_a_few_hundred_steps_at_most() -> None:
    """Thinning delays: of 5,000 steps trained again, every 256th or so can be compared, each exactly."""
    begin = MILLION - SAVES + 1_000

    assert relaunched(MILLION - SAVES, begin + 300, apart=0.0025, since=begin) is not None
    assert relaunched(MILLION - SAVES, begin + 300, apart=0.0015, since=begin) is None


def test_the_level_after_a_resume_is_still_held_against_the_trend() -> None:
    found = relaunched(MILLION, MILLION + 3_000, factor=1.03)

    assert found is not None
    assert "% above the trend" in found.summary
    assert relaunched(MILLION, MILLION + 3_000) is None


def test_checkpoints_that_cannot_be_read_are_remembered_as_they_were() -> None:
    first = snapshot(metrics=rows(1, 20_000), checkpoints=[checkpoint(5_000)])
    dark = snapshot(later(15), metrics=rows(20_001, 40_000), checkpoints=unknown())
    again = job(submitted_at=later(30))
    launch = instance(1, from_step=5_000, submitted_at=later(30))
    replayed = snapshot(later(40), jobs=again, launch=launch, metrics=[row(5_001, loss=2.01)])

    assert "0.01 apart at step 5001" in finding(MISMATCH, first, dark, replayed).summary


def test_a_memory_of_an_older_shape_or_a_broken_one_is_begun_anew() -> None:
    for stored in ('{"earlier": "12 two"}', '{"earlier": "x 1.0"}'):
        seen = snapshot(metrics=[row(1)])
        assert not judge_all((MISMATCH,), seen, contract(), {MISMATCH.id: stored}).broken


@given(
    steps=st.lists(st.integers(0, 10**9), unique=True, max_size=600).map(sorted),
    checkpoints=st.lists(st.integers(0, 10**9), unique=True, max_size=8).map(sorted),
    loss=st.floats(allow_nan=False, allow_infinity=False),
)
def test_thinning_keeps_losses_as_they_are_the_newest_stretch_and_order(
    steps: list[int], checkpoints: list[int], loss: float
) -> None:
    every = tuple(logged_loss(step, loss) for step in steps)

    kept = thinned(every, tuple(checkpoints))

    assert set(kept) <= set(every)
    assert all(early.step < late.step for early, late in pairwise(kept))
    assert len(kept) <= REPLAY + TREND + 5 * 6
    assert len(kept) >= min(len(every), REPLAY // 2)
    stored = Lineage(own=kept).model_dump_json()
    assert Lineage.model_validate_json(stored).own == kept


def test_thinning_again_keeps_a_part_of_what_was_kept() -> None:
    every = tuple(LoggedLoss(step=step, loss=2.0) for step in range(0, 30_000, 3))
    once = thinned(every[:8_000], (9_000,))

    twice = thinned((*once, *every[8_000:]), (9_000,))

    assert {each.step for each in twice if each.step < 24_000} <= {each.step for each in once}
