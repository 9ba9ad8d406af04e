"""job.pending: waiting is said after 30 minutes, and capacity is told from a wrong request."""

import pytest

from bot.model.job import JobState
from bot.model.verdict import NotApplicable, Pass, UnknownVerdict
from checks.waiting import PENDING
from tests.fakes.clock import START
from tests.fakes.snapshots import JOB, contract, job, later, snapshot, unknown
from tests.unit.checks.story import finding, verdict, verdicts


def test_a_job_may_wait_for_half_an_hour() -> None:
    found = verdicts(
        PENDING,
        [snapshot(later(minutes), jobs=job(JobState.PENDING, started_at=None, tasks=())) for minutes in (-30, -29)],
    )

    assert found[0] == Pass()
    assert found[1] != Pass()


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Autoscaler: waiting for scale-up of v5p-64", "waits for capacity"),
        ("Scheduler: Insufficient quota in us-east5", "waits for capacity"),
        ("Unsatisfied autoscaler demand: coschedule_mismatch: needs 4 tasks", "do not match its request"),
        ("", "is still pending"),
    ],
)
def test_a_capacity_wait_is_told_from_a_request_that_nothing_matches(reason: str, said: str) -> None:
    stuck = job(JobState.PENDING, started_at=None, tasks=(), pending_reason=reason)

    found = finding(PENDING, snapshot(jobs=stuck))

    assert said in found.summary
    assert "1 h" in found.summary
    assert "Hero changes no cluster" in found.advice
    assert not found.is_recoverable


def test_a_child_that_waits_behind_a_running_coordinator_is_found() -> None:
    child = job(JobState.PENDING, job_id=f"{JOB}/train", parent=JOB, started_at=None, tasks=())

    found = finding(PENDING, snapshot(jobs=(job(), child)))

    assert f"{JOB}/train" in found.summary


def test_a_requeued_job_counts_from_when_it_was_seen_waiting_again() -> None:
    """It was submitted long ago and has run since: the wait is a new one."""
    again = job(JobState.PENDING, submitted_at=START, started_at=START)

    assert verdict(PENDING, snapshot(later(600)), snapshot(later(615), jobs=again)) == Pass()


def test_a_contract_may_give_it_longer() -> None:
    stuck = snapshot(jobs=job(JobState.PENDING, started_at=None, tasks=()))

    assert verdict(PENDING, stuck, promised=contract(thresholds={"job.pending": {"wait": "2h"}})) == Pass()


def test_what_was_not_read_does_not_pass() -> None:
    assert isinstance(verdict(PENDING, snapshot(jobs=unknown())), UnknownVerdict)


def test_an_ended_job_waits_for_nothing() -> None:
    assert isinstance(verdict(PENDING, snapshot(jobs=job(JobState.FAILED))), NotApplicable)
