"""log.degraded and data.tokenizer: what a live log says, and when it counts."""

import pytest

from bot.model.job import JobState
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, UnknownVerdict
from checks.degraded import DEGRADED
from checks.tokenizer import TOKENIZER
from tests.fakes.snapshots import instance, job, later, lines, row, snapshot, unknown
from tests.unit.checks.story import finding, verdict, verdicts

COMPLAINTS = (
    "ray.exceptions.OwnerDiedError: Failed to retrieve object",
    "gcs: raylet marked as dead node 10.0.0.3",
    "autoscaler unsatisfied resources: {TPU: 4}",
    "Program hbm requirement 20.1G exceeds 16G",
    "Largest program allocations in hbm:",
    "RuntimeError: No accelerator found.",
    "FAILED_PRECONDITION: DMA map failed",
    "open(/dev/accel0): Device or resource busy",
)


def look(minutes: int, *said: str, step: int | None = None, is_running: bool = True) -> Snapshot:
    moved = [row(step, later(minutes))] if step is not None else []
    state = job() if is_running else job(JobState.FAILED)
    return snapshot(later(minutes), jobs=state, metrics=moved, log=lines(*said, at=later(minutes)))


@pytest.mark.parametrize("said", COMPLAINTS)
def test_a_complaint_that_comes_back_while_the_step_stands_still_is_degraded(said: str) -> None:
    story = [look(0, step=100), look(15, said), look(30, said)]

    assert [isinstance(each, Fail) for each in verdicts(DEGRADED, story)] == [False, False, True]
    found = finding(DEGRADED, *story)
    assert "the step stands at 100 for 30 min" in found.summary
    assert said in found.evidence[0]


def test_a_noisy_log_of_a_run_that_moves_is_nothing() -> None:
    assert verdicts(DEGRADED, [look(15 * n, *COMPLAINTS, step=100 + n) for n in range(6)]) == [Pass()] * 6


def test_one_line_that_stays_in_the_tail_is_not_news_again_and_again() -> None:
    old = lines(COMPLAINTS[0], at=later(15))
    story = [look(0, step=100), *(snapshot(later(m), log=old) for m in (15, 30, 45, 60))]

    assert verdict(DEGRADED, *story) == Pass()


def test_what_was_said_before_the_step_stopped_does_not_count_and_a_step_ends_it() -> None:
    before = [look(0, COMPLAINTS[0], step=100), look(15, COMPLAINTS[0], step=101)]
    still = [look(30, COMPLAINTS[0]), look(45, COMPLAINTS[0])]

    assert verdict(DEGRADED, *before, still[0]) == Pass()
    assert verdict(DEGRADED, *before, still[0], look(45)) == Pass()
    assert isinstance(verdict(DEGRADED, *before, *still), Fail)
    assert verdict(DEGRADED, *before, *still, look(60, COMPLAINTS[0], step=102)) == Pass()


def test_a_job_that_is_dead_or_done_is_not_degraded_and_what_cannot_be_read_is_unknown() -> None:
    story = [look(0, step=100), look(15, COMPLAINTS[0])]

    assert isinstance(verdict(DEGRADED, *story, look(30, COMPLAINTS[0], is_running=False)), NotApplicable)
    assert isinstance(verdict(DEGRADED, look(0, step=9_999), look(15, *COMPLAINTS)), NotApplicable)
    for dark in ({"log": unknown()}, {"metrics": unknown()}, {"jobs": unknown()}):
        assert isinstance(verdict(DEGRADED, *story, look(30, COMPLAINTS[0]).model_copy(update=dark)), UnknownVerdict)


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ("WARNING vocab_size mismatch: tokenizer 128256, model 128000", True),
        ("Tokenizer vocab size (32001) does not match the model's 32000", True),
        ("assert tokenizer.vocab_size != config.vocab_size", True),
        ("size mismatch for model.embed_tokens.weight: copying a param", True),
        ("vocab_size: 128256", False),
        ("padded vocab size to 128256", False),
        ("shape mismatch in attention", False),
    ],
)
def test_a_vocabulary_of_another_size_is_told_from_one_that_is_only_named(said: str, is_told: bool) -> None:
    assert isinstance(verdict(TOKENIZER, snapshot(log=said)), Fail) is is_told


def test_it_stays_told_when_the_line_has_rotated_away_until_the_next_launch() -> None:
    first = snapshot(log="vocab_size mismatch: 1 != 2")
    again = snapshot(later(60), jobs=job(submitted_at=later(50)), launch=instance(1, submitted_at=later(50)))

    assert isinstance(verdict(TOKENIZER, first, snapshot(later(15))), Fail)
    assert isinstance(verdict(TOKENIZER, first, snapshot(later(15), log=unknown())), Fail)
    assert verdict(TOKENIZER, first, again) == Pass()


def test_a_log_or_a_job_that_cannot_be_read_is_no_pass() -> None:
    assert isinstance(verdict(TOKENIZER, snapshot(log=unknown())), UnknownVerdict)
    assert isinstance(verdict(TOKENIZER, snapshot(jobs=unknown())), UnknownVerdict)
    assert isinstance(verdict(TOKENIZER, snapshot(jobs=())), NotApplicable)
