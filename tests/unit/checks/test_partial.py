"""job.partial: a running job whose tasks do not all run."""

import pytest

from bot.model.job import JobState, TaskState
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, UnknownVerdict
from checks.partial import PARTIAL
from tests.fakes.snapshots import JOB, contract, job, later, snapshot, task, unknown
from tests.unit.checks.story import finding, verdict, verdicts


def look(minutes: int, *states: TaskState) -> Snapshot:
    tasks = tuple(task(index, state, started_at=None) for index, state in enumerate(states))
    return snapshot(later(minutes), jobs=job(tasks=tasks))


@pytest.mark.parametrize("state", [TaskState.PENDING, TaskState.ASSIGNED, TaskState.BUILDING, TaskState.MISSING])
def test_a_task_that_does_not_run_is_found_half_an_hour_after_it_was_first_seen_so(state: TaskState) -> None:
    story = [look(minutes, TaskState.RUNNING, state) for minutes in (0, 15, 30, 45)]

    assert [isinstance(each, Fail) for each in verdicts(PARTIAL, story)] == [False, False, False, True]
    found = finding(PARTIAL, *story)
    assert "is only partly allocated: 1 of 2 tasks have not run for 45 min" in found.summary
    assert found.evidence == (f"{JOB}/1: {state}",)
    assert not found.is_recoverable


def test_a_gang_of_which_no_task_runs_was_never_scheduled_together() -> None:
    story = [look(minutes, *[TaskState.ASSIGNED] * 8) for minutes in (0, 31)]

    found = finding(PARTIAL, *story)

    assert "was never scheduled together: 8 of 8" in found.summary
    assert found.evidence[-1] == "and 3 more"


def test_tasks_that_wait_by_turns_for_a_short_while_each_are_none() -> None:
    first, second = (TaskState.PENDING, TaskState.RUNNING), (TaskState.RUNNING, TaskState.PENDING)

    assert verdicts(PARTIAL, [look(20 * n, *(second if n % 2 else first)) for n in range(6)]) == [Pass()] * 6


def test_a_child_that_runs_in_part_is_found_and_the_finished_tasks_of_it_are_not_missed() -> None:
    child = f"{JOB}/train"
    parts = (task(0, TaskState.SUCCEEDED, job_id=child), task(1, TaskState.PENDING, job_id=child, started_at=None))
    jobs = (job(), job(job_id=child, parent=JOB, tasks=parts))

    found = finding(PARTIAL, snapshot(jobs=jobs), snapshot(later(31), jobs=jobs))

    assert found.evidence == (f"{child}/1: pending",)


def test_a_contract_may_give_it_longer() -> None:
    promised = contract(thresholds={"job.partial": {"wait": "2h"}})

    assert verdict(PARTIAL, look(0, TaskState.PENDING), look(90, TaskState.PENDING), promised=promised) == Pass()


def test_a_job_that_waits_as_a_whole_is_for_another_check() -> None:
    waiting = job(JobState.PENDING, started_at=None, tasks=())

    assert isinstance(verdict(PARTIAL, snapshot(jobs=waiting), snapshot(later(60), jobs=waiting)), NotApplicable)
    assert isinstance(verdict(PARTIAL, snapshot(jobs=job(JobState.FAILED))), NotApplicable)


def test_what_was_not_read_does_not_pass_and_does_not_start_the_wait_again() -> None:
    dark = snapshot(later(15), jobs=job(tasks=unknown()))

    assert isinstance(verdict(PARTIAL, snapshot(jobs=unknown())), UnknownVerdict)
    assert isinstance(verdict(PARTIAL, look(0, TaskState.PENDING), dark), UnknownVerdict)
    assert isinstance(verdict(PARTIAL, look(0, TaskState.PENDING), dark, look(31, TaskState.PENDING)), Fail)
