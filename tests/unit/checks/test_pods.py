"""``pods.contradict`` and ``pods.duplicate``, and pods as a witness of ``run.down`` and ``job.ended``."""

from datetime import datetime
from typing import Any

import pytest

from bot.model.crash import CrashClass
from bot.model.job import Job, JobState, TaskState
from bot.model.pods import Pod
from bot.model.reading import Known, Unknown
from bot.model.snapshot import Snapshot
from bot.model.telemetry import Phase, Telemetry
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.job import ENDED
from checks.pods import CONTRADICT, DUPLICATE
from checks.telemetry import DOWN
from tests.fakes.clock import START
from tests.fakes.snapshots import AT, JOB, attempt, contract, failed_job, job, later, pod, snapshot, task, unknown

TRAIN = f"{JOB}/train"


def look(minutes: float, pods: tuple[Pod, ...] | Unknown, **readings: Any) -> Snapshot:
    at = later(minutes)
    telemetry = readings.pop("telemetry", None)
    seen = snapshot(at, **readings)
    read = pods if isinstance(pods, Unknown) else Known(value=pods, at=at)
    update: dict[str, Any] = {"pods": read}
    if telemetry is not None:
        update["telemetry"] = telemetry
    return seen.model_copy(update=update)


def heard(at: datetime) -> Known[Telemetry]:
    said = Telemetry(phase=Phase.TRAINING, phase_at=at, last_row_at=at, last_step=1500, is_of_current_execution=True)
    return Known(value=said, at=at)


def judge(check: Check[Any, Any], *looks: Snapshot) -> Verdict:
    """Return the verdict on the last of the looks; the memory goes through JSON as in the store."""
    memory, verdict = check.memory, None
    for seen in looks:
        verdict, after = check.judge(seen, contract(), check.thresholds, memory)
        memory = type(after).model_validate_json(after.model_dump_json())
    assert verdict is not None
    return verdict


def finding(verdict: Verdict) -> Finding:
    assert isinstance(verdict, Fail), verdict
    return verdict.finding


def coordinated(child: Job) -> tuple[Job, ...]:
    return job(), child


def trainer(state: JobState = JobState.RUNNING) -> Job:
    return job(state, job_id=TRAIN, parent=JOB)


@pytest.mark.parametrize("check", [CONTRADICT, DUPLICATE])
def test_a_run_of_which_every_task_has_its_pod_passes(check: Check[Any, Any]) -> None:
    assert judge(check, look(0, (pod(0), pod(0, job_id=TRAIN)), jobs=coordinated(trainer()))) == Pass()


def test_where_no_cluster_is_configured_nothing_is_missing_and_an_unread_one_is_unknown() -> None:
    for check in (CONTRADICT, DUPLICATE):
        assert isinstance(judge(check, snapshot()), NotApplicable)
        assert isinstance(judge(check, look(0, unknown())), UnknownVerdict)


def test_pods_of_a_job_that_is_over_are_told_after_a_cadence_and_hold_up_a_relaunch() -> None:
    looks = [look(minutes, (pod(0), pod(1, "Failed")), jobs=failed_job()) for minutes in (0, 15)]

    assert isinstance(judge(CONTRADICT, looks[0]), NotApplicable)
    found = finding(judge(CONTRADICT, *looks))
    assert (found.severity, found.since_at) == (Severity.CRITICAL, AT)
    assert "1 pods have lived on for 15 min" in found.summary
    assert "on node-0" in found.evidence[0]


def test_pods_that_have_been_asked_to_end_wake_nobody() -> None:
    ending = pod(0, deleted_at=later(1))

    found = finding(judge(CONTRADICT, *(look(minutes, (ending,), jobs=failed_job()) for minutes in (0, 15))))

    assert found.severity is Severity.WARNING


@pytest.mark.parametrize("jobs", [(), coordinated(trainer(JobState.FAILED))])
def test_pods_of_a_job_that_vanished_or_of_a_child_that_failed_count_too(jobs: tuple[Job, ...]) -> None:
    looks = [look(minutes, (pod(0, job_id=TRAIN),), jobs=jobs) for minutes in (0, 15)]

    assert TRAIN in finding(judge(CONTRADICT, *looks)).evidence[0]


def test_a_job_that_runs_without_a_pod_is_told_after_a_cadence_once_its_pods_were_seen() -> None:
    gone = [look(minutes, (pod(0, "Failed"),)) for minutes in (5, 20)]

    assert isinstance(judge(CONTRADICT, look(0, ()), look(15, ()), look(30, ())), NotApplicable)
    found = finding(judge(CONTRADICT, look(0, (pod(0),)), *gone))
    assert (found.severity, "no live pod for 15 min" in found.summary) == (Severity.CRITICAL, True)


def test_a_trainer_that_is_heard_makes_it_a_matter_of_the_settings() -> None:
    looks = [look(minutes, (), telemetry=heard(later(minutes))) for minutes in (5, 20)]

    found = finding(judge(CONTRADICT, look(0, (pod(0),)), *looks))

    assert (found.severity, "is still heard" in found.summary) == (Severity.WARNING, True)


def test_the_pause_between_two_attempts_is_no_contradiction() -> None:
    between = job(tasks=(task(0, TaskState.PENDING),))

    assert judge(CONTRADICT, look(0, (pod(0),)), *(look(m, (), jobs=between) for m in (5, 30))) == Pass()


def test_tasks_that_cannot_be_read_leave_it_open() -> None:
    unread = job(tasks=unknown())

    verdict = judge(CONTRADICT, look(0, (pod(0),)), *(look(m, (), jobs=unread) for m in (5, 30)))

    assert isinstance(verdict, UnknownVerdict)


# --- pods.duplicate -----------------------------------------------------------------------------------------------


def test_a_task_that_lives_twice_for_more_than_ten_minutes_is_critical() -> None:
    both = (pod(3, number=0), pod(3, number=1, node="node-9"), pod(4))
    looks = [look(minutes, both) for minutes in (0, 10, 11)]

    assert isinstance(judge(DUPLICATE, *looks[:2]), NotApplicable)
    found = finding(judge(DUPLICATE, *looks))
    assert found.severity is Severity.CRITICAL
    assert len(found.evidence) == 2
    assert f"{JOB}/3 first" in found.summary


@pytest.mark.parametrize("old", [pod(3, deleted_at=later(1)), pod(3, "Unknown")])
def test_one_that_is_ending_or_on_a_lost_node_is_a_warning(old: Pod) -> None:
    looks = [look(minutes, (old, pod(3, number=1))) for minutes in (0, 11)]

    assert finding(judge(DUPLICATE, *looks)).severity is Severity.WARNING


def test_a_dead_pod_beside_a_live_one_is_no_duplicate() -> None:
    assert judge(DUPLICATE, *(look(m, (pod(3, "Failed"), pod(3, number=1))) for m in (0, 30))) == Pass()


# --- run.down -----------------------------------------------------------------------------------------------------


def test_without_telemetry_the_pods_are_the_second_witness_of_a_run_that_is_down() -> None:
    alive = look(0, (pod(0), pod(0, job_id=TRAIN)), jobs=coordinated(trainer()))
    dead = [look(m, (pod(0),), jobs=coordinated(trainer(JobState.FAILED))) for m in (5, 11)]

    assert judge(DOWN, alive) == Pass()
    assert isinstance(judge(DOWN, alive, dead[0]), NotApplicable)
    found = finding(judge(DOWN, alive, *dead))
    assert "no pod of it lives for 11 min" in found.summary
    assert any("0 live pods of a trainer" in line for line in found.evidence)


def test_a_pod_that_lives_speaks_against_down_though_the_orchestrator_and_the_trainer_are_silent() -> None:
    live = (pod(0, job_id=TRAIN),)
    looks = [look(m, live, jobs=coordinated(trainer(JobState.FAILED)), telemetry=heard(AT)) for m in (0, 30)]
    gone = look(45, (), jobs=coordinated(trainer(JobState.FAILED)), telemetry=heard(AT))

    assert isinstance(judge(DOWN, *looks), NotApplicable)
    assert isinstance(judge(DOWN, *looks, gone), Fail)


def test_where_pods_were_never_seen_their_absence_shows_nothing() -> None:
    looks = [look(m, (), jobs=coordinated(trainer(JobState.FAILED))) for m in (0, 30)]

    assert isinstance(judge(DOWN, *looks), NotApplicable)


# --- job.ended ----------------------------------------------------------------------------------------------------


def test_a_bare_killed_is_a_memory_kill_once_the_container_says_so() -> None:
    killed = failed_job(137, "Exit code: 137. stderr: Killed")
    namesake = pod(0, "Failed", reason="OOMKilled", exit_code=137, created_at=START.replace(hour=1))
    mine = pod(0, "Failed", reason="OOMKilled", exit_code=137)

    bare = finding(judge(ENDED, look(0, (namesake,), jobs=killed)))
    proven = finding(judge(ENDED, look(0, (namesake, mine), jobs=killed)))

    assert bare.crash is not None
    assert proven.crash is not None
    assert bare.crash.crash_class is not CrashClass.OOM_HOST
    assert proven.crash.crash_class is CrashClass.OOM_HOST
    assert [line for line in proven.evidence if line.startswith("Kubernetes: ")] == [
        f"Kubernetes: {mine.place}: OOMKilled, exit code 137"
    ]


def test_the_attempts_own_id_tells_its_pod_from_a_namesakes() -> None:
    dead = attempt(0, TaskState.FAILED, uid="mine", exit_code=137, finished_at=AT)
    killed = failed_job(137, tasks=(task(0, TaskState.FAILED, exit_code=137, attempts=(dead,), finished_at=AT),))
    pods = (pod(0, "Failed", uid="theirs", reason="OOMKilled"), pod(0, "Failed", uid="mine", reason="Evicted"))

    found = finding(judge(ENDED, look(0, pods, jobs=killed)))

    assert [line.rpartition(": ")[2] for line in found.evidence if line.startswith("Kubernetes: ")] == ["Evicted"]
