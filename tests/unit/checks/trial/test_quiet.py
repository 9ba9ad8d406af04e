"""What went wrong with the child beside its figures: counted, and never taken for zero."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.incident import Acknowledged, Incident, Open, Pending, Resolved, Silenced
from bot.model.job import Job, JobState, TaskState
from bot.model.reading import Known, Reading
from bot.model.snapshot import LogLine, LogTail
from bot.model.trial import Happened, Outcome
from bot.model.value import CheckId, PersonName
from bot.model.verdict import Finding, Severity
from checks import CHECKS
from checks.check import BROKEN
from checks.monitor import STALE_ID
from checks.trial.compare import judge_quiet
from checks.trial.quiet import count_happened
from handlers.timers import UNCHECKED
from tests.fakes.snapshots import AT, RUN, attempt, failed_job, job, later, task, unknown

SINCE = AT - timedelta(minutes=30)
ADA = PersonName("ada")
CALM = Happened(crashes=0, retries=0, watchdogs=0, alerts=0)


def jobs(*found: Job) -> Reading[tuple[Job, ...]]:
    return Known(value=found or (job(),), at=AT)


def of_task(*attempts: Any, state: TaskState = TaskState.RUNNING) -> Reading[tuple[Job, ...]]:
    return jobs(job(tasks=(task(0, state, attempts=attempts),)))


def incident(
    check: str = "loss.spike", severity: Severity = Severity.WARNING, key: str = "", **fields: Any
) -> Incident:
    finding = Finding(check=CheckId(check), key=key, severity=severity, summary="x", evidence=(), advice="y")
    given: dict[str, Any] = {"number": 1, "run_id": RUN, "check": finding.check, "key": key, "finding": finding}
    return Incident(**(given | {"opened_at": AT} | fields))


def count(found: Reading[tuple[Job, ...]] | None = None, *incidents: Incident, **given: Any) -> Happened:
    return count_happened(jobs() if found is None else found, incidents, SINCE, **given)


def log(*lines: str) -> Reading[LogTail]:
    return Known(value=LogTail(lines=tuple(LogLine(text=line, at=AT) for line in lines), is_cut=False), at=AT)


def test_a_child_that_runs_in_its_first_attempt_is_calm() -> None:
    assert count() == CALM


def test_each_further_attempt_of_each_task_is_a_retry() -> None:
    twice = (attempt(0, TaskState.PREEMPTED, exit_code=137), attempt(1))
    gang = jobs(job(tasks=(task(0, attempts=twice), task(1, attempts=twice), task(2))))

    assert count(gang) == CALM.model_copy(update={"retries": 2})


def test_an_orchestrator_that_forgot_the_old_attempts_still_tells_of_retries() -> None:
    assert count(of_task(attempt(3))).retries == 3


@pytest.mark.parametrize(
    ("state", "exit_code", "crashes", "watchdogs"),
    [
        (TaskState.FAILED, 1, 1, 0),
        (TaskState.FAILED, 0, 1, 0),
        (TaskState.WORKER_FAILED, None, 1, 0),
        (TaskState.KILLED, -9, 1, 0),
        (TaskState.FAILED, 124, 0, 1),
        (TaskState.SUCCEEDED, 0, 0, 0),
        (TaskState.KILLED, 0, 0, 0),
        (TaskState.PREEMPTED, 143, 0, 0),
        (TaskState.COSCHED_FAILED, 137, 0, 0),
    ],
)
def test_an_attempt_that_ended_badly_is_a_crash_or_a_watchdog(
    state: TaskState, exit_code: int | None, crashes: int, watchdogs: int
) -> None:
    found = count(of_task(attempt(0, state, exit_code=exit_code), attempt(1)))

    assert (found.crashes, found.watchdogs, found.retries) == (crashes, watchdogs, 1)


def test_a_failed_job_is_a_crash_also_where_no_attempt_says_so() -> None:
    assert count(jobs(job(JobState.FAILED, tasks=()))).crashes == 1
    assert count(jobs(job(JobState.UNSCHEDULABLE, tasks=()))).crashes == 1
    assert count(jobs(job(tasks=(task(0, TaskState.FAILED, attempts=()),)))).crashes == 1
    assert count(jobs(failed_job(1))).crashes == 1


def test_the_coordinator_and_the_trainer_below_it_both_count() -> None:
    trainer = job(job_id="/me/hero-coord/train", parent="/me/hero-coord", tasks=(task(0, attempts=(attempt(1),)),))

    assert count(jobs(job(), trainer)).retries == 1


@pytest.mark.parametrize(
    "unseen", [unknown(), Known(value=(), at=AT), jobs(job(), job(job_id="/me/hero-coord/train", tasks=unknown()))]
)
def test_what_nobody_could_look_at_is_no_zero(unseen: Reading[tuple[Job, ...]]) -> None:
    found = count(unseen)

    assert found == Happened(crashes=None, retries=None, watchdogs=None, alerts=0)
    quiet = judge_quiet(found, 1)
    assert quiet is not None
    assert quiet.outcome is Outcome.CANNOT_TELL
    assert count_happened(jobs(), None, SINCE) == CALM.model_copy(update={"alerts": None})


@pytest.mark.parametrize(
    "line",
    [
        "No progress after train_step_started for 1805.2 seconds (timeout 1800.0); terminating with exit code 124",
        "[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=96120)",
    ],
)
def test_the_log_tells_of_a_watchdog_before_the_orchestrator_does(line: str) -> None:
    assert count(log=log("step 12", line)).watchdogs == 1
    assert count(log=log("step 12", "watchdog armed")).watchdogs == 0
    assert count(log=unknown()).watchdogs is None
    assert count(of_task(attempt(0, TaskState.FAILED, exit_code=124)), log=unknown()).watchdogs == 1


@pytest.mark.parametrize(
    ("found", "alerts"),
    [
        (incident(state=Open()), 1),
        (incident(severity=Severity.CRITICAL, state=Open()), 1),
        (incident(severity=Severity.INFO, state=Open()), 0),
        (incident(state=Acknowledged(by=ADA, at=AT)), 1),
        (incident(state=Silenced(by=ADA, at=AT, until=later(60))), 1),
        (incident(state=Pending(looks=(True,)), is_told=False), 0),
        (incident(state=Resolved(at=AT)), 1),
        (incident(state=Resolved(at=AT), is_told=False), 0),
        (incident(state=Resolved(at=SINCE - timedelta(seconds=1))), 0),
        *(
            (incident(each, severity, state=Open()), 0)
            for each in (STALE_ID, BROKEN, UNCHECKED)
            for severity in Severity
        ),
        (incident("monitoring.lost", state=Open()), 1),
        (incident("tracker.identity", key="global_step", state=Open()), 0),
        (incident("tracker.identity", key="link", state=Open()), 0),
        (incident("tracker.identity", key="id", state=Open()), 1),
    ],
)
def test_an_alert_is_what_people_are_told_against_the_child_since_its_launch(found: Incident, alerts: int) -> None:
    assert count(None, found) == CALM.model_copy(update={"alerts": alerts})


def test_the_checks_that_are_no_alerts_are_there() -> None:
    assert {"monitor.stale", "tracker.identity"} <= {check.id for check in CHECKS}
