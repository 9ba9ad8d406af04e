"""job.ended and job.duplicate: what is said of an end, and when a relaunch may be asked for."""

from datetime import timedelta

import pytest

from bot.model.crash import CrashClass
from bot.model.job import Job, JobState, TaskState
from bot.model.reading import Gap
from bot.model.verdict import NotApplicable, Pass, Severity, UnknownVerdict
from checks.job import DUPLICATE, ENDED, VANISHED
from tests.fakes.clock import START
from tests.fakes.snapshots import (
    AT,
    JOB,
    attempt,
    blind,
    checkpoint,
    contract,
    failed_job,
    instance,
    job,
    later,
    lines,
    row,
    rows,
    snapshot,
    task,
    unknown,
)
from tests.unit.checks.story import finding, verdict, verdicts

NAME_ERROR = """\
step 811 loss 2.1
Traceback (most recent call last):
  File "/app/callbacks.py", line 41, in log_figures
    send(figurs)
NameError: name 'figurs' is not defined"""
PREEMPTED = "slurmstepd: error: *** JOB 4242 ON node-3 CANCELLED AT 2026-11-29T03:10:00 DUE TO PREEMPTION ***"
PEER_LOST = "RuntimeError: [1] is setting up NCCL communicator: Socket closed by remote peer node-7"
OOM = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."


def test_a_running_job_passes_and_a_pending_one_too() -> None:
    found = verdicts(ENDED, [snapshot(jobs=job(JobState.PENDING)), snapshot(jobs=job())])

    assert found == [Pass(), Pass()]


@pytest.mark.parametrize(
    ("log", "exit_code", "expected", "is_recoverable"),
    [
        (PREEMPTED, 143, CrashClass.INFRA_PREEMPTION, True),
        (NAME_ERROR, 1, CrashClass.CODE_BUG_SMALL, False),
        (OOM, 1, CrashClass.OOM_DEVICE, False),
        ("ValueError: loss is nan at step 17", 1, CrashClass.NUMERICAL, False),
        ("step 5 loss 2.0", -9, CrashClass.UNKNOWN, True),
        ("step 5 loss 2.0", 137, CrashClass.UNKNOWN, True),
    ],
)
def test_only_infrastructure_and_unknown_causes_may_be_put_to_the_dri(
    log: str, exit_code: int, expected: CrashClass, is_recoverable: bool
) -> None:
    dead = snapshot(jobs=failed_job(exit_code), log=log)

    found = finding(ENDED, dead)

    assert found.crash is not None
    assert found.crash.crash_class is expected
    assert found.is_recoverable is is_recoverable
    assert found.severity is Severity.CRITICAL
    assert found.advice


def test_a_failure_names_exit_code_task_node_place_and_step() -> None:
    healthy = snapshot(metrics=rows(800, 811))
    dead = snapshot(later(15), jobs=failed_job(1, node="node-7", finished_at=later(10)), log=NAME_ERROR)

    found = finding(ENDED, healthy, dead)

    told = "\n".join((found.summary, *found.evidence))
    assert "step 811" in found.summary
    assert "NameError" in found.summary
    assert f"task {JOB}/0 attempt 0 on node-7, exit code 1" in told
    assert "/app/callbacks.py:41 (log_figures)" in told
    assert found.since_step == 811
    assert found.since_at == later(10)
    assert found.key == failed_job().instance_id


def test_the_first_death_of_a_gang_is_told_with_its_memory_and_not_the_ones_taken_down_with_it() -> None:
    gib = 2**30
    tasks = (
        task(0, TaskState.COSCHED_FAILED, exit_code=143, peak_memory_bytes=31 * gib, finished_at=later(1)),
        task(1, TaskState.COSCHED_FAILED, exit_code=143, peak_memory_bytes=33 * gib, finished_at=later(-2)),
        task(2, TaskState.FAILED, exit_code=-9, node="node-9", peak_memory_bytes=61 * gib, finished_at=later(-1)),
    )

    found = finding(ENDED, snapshot(jobs=job(JobState.FAILED, tasks=tasks, finished_at=AT)))

    assert f"first to die: task {JOB}/2 attempt 0 on node-9, killed by signal 9 (exit code -9)" in found.evidence
    assert "exit codes of 3 tasks: 143 (2 tasks), -9 (1 tasks)" in found.evidence
    assert "peak memory of task 2: 61.0 GiB; the other 2 tasks: median 32.0 GiB" in found.evidence


def test_the_childs_task_is_the_cause_and_not_the_coordinator_that_waited_for_it() -> None:
    child_id = f"{JOB}/grug-train"
    dead_child = task(0, TaskState.FAILED, job_id=child_id, exit_code=1, error=f"Exit code: 1. stderr: {PEER_LOST}")
    child = job(JobState.FAILED, job_id=child_id, parent=JOB, tasks=(dead_child,))
    coordinator = failed_job(1, error=f"JobFailedError: Job {child_id} FAILED: Exit code: 1. stderr: {PEER_LOST}")

    found = finding(ENDED, snapshot(jobs=(coordinator, child)))

    assert found.evidence[0].startswith(f"first to die: task {child_id}/0 ")


def test_lines_of_an_earlier_attempt_do_not_explain_this_end() -> None:
    tasks = (
        task(
            0,
            TaskState.FAILED,
            exit_code=-9,
            attempts=(
                attempt(0, TaskState.FAILED, exit_code=1, finished_at=later(-30)),
                attempt(1, TaskState.FAILED, exit_code=-9, finished_at=AT),
            ),
        ),
    )
    old = lines(*NAME_ERROR.splitlines(), task=f"{JOB}/0", attempt=0)
    new = lines("step 900 loss 2.0", task=f"{JOB}/0", attempt=1)
    log = old.model_copy(update={"lines": old.lines + new.lines})

    found = finding(ENDED, snapshot(jobs=job(JobState.FAILED, tasks=tasks), log=log))

    assert found.crash is not None
    assert found.crash.crash_class is CrashClass.UNKNOWN


@pytest.mark.parametrize("what", ["log", "tasks"])
def test_nothing_is_proposed_while_log_or_tasks_cannot_be_read(what: str) -> None:
    """A NaN or a bug may stand in what was not read; the failure itself is told at once."""
    dark = unknown(detail="controller is gone")
    seen = snapshot(jobs=failed_job(-9), log=dark) if what == "log" else snapshot(jobs=job(JobState.FAILED, tasks=dark))

    found = finding(ENDED, seen)

    assert not found.is_recoverable
    assert any("could not be read: controller is gone" in line for line in found.evidence)


def test_an_end_that_was_explained_stays_explained_when_the_log_is_gone() -> None:
    first = snapshot(jobs=failed_job(143), log=PREEMPTED)
    second = snapshot(later(15), jobs=failed_job(143), log=unknown(at=later(15)))

    before, after = finding(ENDED, first), finding(ENDED, first, second)

    assert after == before
    assert after.is_recoverable


def test_an_end_is_explained_once_the_log_can_be_read() -> None:
    first = snapshot(jobs=failed_job(1), log=unknown())
    second = snapshot(later(15), jobs=failed_job(1), log=PREEMPTED)

    found = finding(ENDED, first, second)

    assert found.crash is not None
    assert found.crash.crash_class is CrashClass.INFRA_PREEMPTION
    assert found.is_recoverable


def test_success_at_the_final_step_passes_whether_steps_count_from_0_or_1() -> None:
    for last in (9_999, 10_000):
        done = snapshot(jobs=job(JobState.SUCCEEDED), metrics=rows(last - 3, last))

        assert verdict(ENDED, done) == Pass()


def test_success_counts_also_when_only_the_final_checkpoint_shows_it() -> None:
    seen = snapshot(jobs=job(JobState.SUCCEEDED), metrics=unknown(), checkpoints=[checkpoint(10_000, saved_at=AT)])

    assert verdict(ENDED, seen) == Pass()


def test_a_final_checkpoint_of_an_earlier_instance_does_not_make_this_success() -> None:
    old = checkpoint(10_000, saved_at=START - timedelta(days=1))

    found = finding(ENDED, snapshot(jobs=job(JobState.SUCCEEDED), checkpoints=[old]))

    assert "ended without its final step seen" in found.summary


@pytest.mark.parametrize("final_step", [10_000, None])
def test_a_success_without_its_final_step_is_a_warning(final_step: int | None) -> None:
    seen = snapshot(jobs=job(JobState.SUCCEEDED), metrics=rows(4_000, 4_010))

    found = finding(ENDED, seen, promised=contract(final_step=final_step))

    assert found.severity is Severity.WARNING
    assert "4010" in found.summary
    assert not found.is_recoverable


def test_a_job_that_somebody_stopped_is_told_and_not_brought_back() -> None:
    found = finding(ENDED, snapshot(jobs=job(JobState.KILLED, error="Terminated by user"), log=PREEMPTED))

    assert found.severity is Severity.WARNING
    assert "was stopped" in found.summary
    assert not found.is_recoverable


def test_an_unschedulable_job_is_an_end_without_a_relaunch() -> None:
    found = finding(ENDED, snapshot(jobs=job(JobState.UNSCHEDULABLE, started_at=None, tasks=())))

    assert "could not be scheduled" in found.summary
    assert not found.is_recoverable


def test_a_job_that_disappeared_alive_is_critical_and_no_relaunch_is_offered() -> None:
    found = finding(ENDED, snapshot(metrics=rows(1, 70)), snapshot(later(15), jobs=()))

    assert found.key == VANISHED
    assert found.severity is Severity.CRITICAL
    assert "70" in found.summary
    assert not found.is_recoverable


def test_a_pruned_job_keeps_the_finding_of_its_end() -> None:
    dead = snapshot(jobs=failed_job(143), log=PREEMPTED)
    pruned = snapshot(later(15), jobs=(), launch=instance(ended_at=AT))

    assert finding(ENDED, dead, pruned) == finding(ENDED, dead)


def test_an_ended_instance_that_is_no_longer_listed_has_not_vanished() -> None:
    seen = snapshot(jobs=(), launch=instance(ended_at=AT, exit_code=0))

    assert isinstance(verdict(ENDED, seen), NotApplicable)


def test_a_submission_that_is_never_shown_is_not_called_gone_and_is_no_alarm_in_its_first_minutes() -> None:
    launch = instance(submitted_at=None, launched_at=AT)

    assert isinstance(verdict(ENDED, snapshot(later(9), jobs=(), launch=launch)), NotApplicable)
    assert "never shown" in finding(ENDED, snapshot(later(11), jobs=(), launch=launch)).summary


def test_no_job_before_the_first_launch_is_nothing_to_tell() -> None:
    assert isinstance(verdict(ENDED, snapshot(jobs=(), is_first=True)), NotApplicable)


def test_a_new_instance_starts_with_a_clean_sheet() -> None:
    dead = snapshot(jobs=failed_job(143), log=PREEMPTED, metrics=rows(1, 9_999))
    again = job(JobState.SUCCEEDED, submitted_at=later(30))

    found = finding(ENDED, dead, snapshot(later(60), jobs=again, metrics=[row(3)]))

    assert found.key == again.instance_id
    assert found.since_step == 3


def test_an_unanswered_question_is_no_end() -> None:
    assert isinstance(verdict(ENDED, blind()), UnknownVerdict)


def two(first: JobState, second: Job) -> tuple[Job, ...]:
    return (job(first), second)


def test_two_live_jobs_of_one_run_are_critical() -> None:
    found = finding(DUPLICATE, snapshot(jobs=two(JobState.RUNNING, job(JobState.PENDING, job_id="/me/hero-coord-2"))))

    assert found.severity is Severity.CRITICAL
    assert "2 live jobs" in found.summary
    assert not found.is_recoverable


@pytest.mark.parametrize(
    "jobs",
    [
        two(JobState.RUNNING, job(job_id=f"{JOB}/train", parent=JOB)),
        two(JobState.RUNNING, job(job_id=f"{JOB}/train")),
        two(JobState.RUNNING, job(JobState.FAILED, job_id="/me/hero-coord-old")),
    ],
    ids=["a child", "a child whose parent is not told", "a dead job"],
)
def test_children_and_dead_jobs_are_no_duplicates(jobs: tuple[Job, ...]) -> None:
    assert verdict(DUPLICATE, snapshot(jobs=jobs)) == Pass()


COORD_2 = job(job_id="/me/hero-coord-2", tasks=unknown(Gap.NOT_CONFIGURED), expected_tasks=1)


def test_a_second_coordinator_beside_the_jobs_tree_is_critical_whatever_its_state() -> None:
    tree = (job(), job(job_id=f"{JOB}/train", parent=JOB))

    found = finding(DUPLICATE, snapshot(jobs=tree, neighbours=(COORD_2,)))

    assert found.severity is Severity.CRITICAL
    assert found.key == ",".join(sorted((job().instance_id, COORD_2.instance_id)))
    assert any("/me/hero-coord-2: running" in line for line in found.evidence)
    assert isinstance(verdict(DUPLICATE, snapshot(jobs=(), neighbours=(COORD_2,))), NotApplicable)
    assert verdict(DUPLICATE, snapshot(jobs=failed_job(), neighbours=(COORD_2,))) == Pass()


def test_neighbours_that_cannot_be_looked_for_leave_it_open_unless_two_jobs_are_seen() -> None:
    pair = two(JobState.RUNNING, job(JobState.PENDING, job_id="/me/hero-coord-2"))

    assert isinstance(verdict(DUPLICATE, snapshot(neighbours=unknown())), UnknownVerdict)
    assert verdict(DUPLICATE, snapshot(neighbours=unknown(Gap.NOT_CONFIGURED))) == Pass()
    assert finding(DUPLICATE, snapshot(jobs=pair, neighbours=unknown())).severity is Severity.CRITICAL
