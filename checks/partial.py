"""What can go wrong with a job that runs in part: some of its tasks got no machine, and the others wait for them."""

from datetime import timedelta

from pydantic import AwareDatetime

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.job import Job, JobState, Task, TaskState
from bot.model.reading import Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import known_tasks, listed, unread_tasks, unseen
from checks.thresholds import Thresholds

PARTIAL_ID = CheckId("job.partial")

_WAITING = frozenset(
    {TaskState.PENDING, TaskState.BUILDING, TaskState.ASSIGNED, TaskState.MISSING, TaskState.UNSCHEDULABLE}
)
_NAMED = 5
_KEPT = 256
"""So many waiting tasks are remembered; more wait for the same reason."""


class PartialThresholds(Thresholds):
    wait: Duration = timedelta(minutes=30)
    """How long a task of a running job may go without running. The procedure's "Capacity or scheduling wedge"."""


class Partial(Value):
    """Since when each task of a running job waits."""

    since: dict[str, AwareDatetime] = {}
    """By the job's instance and the task's id; counted from when it was first seen so."""


def partial(seen: Snapshot, _contract: Contract, limits: PartialThresholds, memory: Partial) -> tuple[Verdict, Partial]:
    """Fail when a job runs and one of its tasks has not been running for too long."""
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether all of the job runs is not known"), memory
    running = tuple(job for job in listed(seen) if job.state is JobState.RUNNING)
    if seen.job is None or seen.job.state.is_terminal or not running:
        return NotApplicable(reason="no job of the run is running"), Partial()
    gap = unread_tasks(running)
    waiting = {
        f"{job.instance_id} {task.task_id}": (job, task) for job, task in known_tasks(running) if task.state in _WAITING
    }
    since = {name: memory.since.get(name, seen.at) for name in sorted(waiting)[:_KEPT]}
    if gap is not None:
        since = {**memory.since, **since}  # what was not read may still wait
    late = [waiting[name] for name, at in since.items() if name in waiting and seen.at - at > limits.wait]
    memory = Partial(since=since)
    if late:
        first = min(since[f"{job.instance_id} {task.task_id}"] for job, task in late)
        return Fail(finding=_finding(late, running, seen.at - first, first, limits)), memory
    if gap is not None:
        return unseen(gap, "whether all tasks run is not known"), memory
    return Pass(), memory


def _finding(
    late: list[tuple[Job, Task]],
    running: tuple[Job, ...],
    waited: timedelta,
    since: AwareDatetime,
    limits: PartialThresholds,
) -> Finding:
    job = late[0][0]
    of = [task for each, task in known_tasks(running) if each.job_id == job.job_id]
    mine = [task for each, task in late if each.job_id == job.job_id]
    works = sum(task.state is TaskState.RUNNING for task in of)
    what = "is only partly allocated" if works else "was never scheduled together"
    named = [f"{task.task_id}: {task.state}" + (f" ({_line(task.error)})" if task.error else "") for task in mine]
    more = (f"and {len(named) - _NAMED} more",) if len(named) > _NAMED else ()
    return Finding(
        check=PARTIAL_ID,
        key=job.instance_id,
        severity=Severity.WARNING,
        summary=f"{job.job_id} {what}: {len(mine)} of {len(of)} tasks have not run for {say_duration(waited)} "
        f"(limit {say_duration(limits.wait)}), while the job says that it runs",
        evidence=(*named[:_NAMED], *more),
        advice="Look why these tasks get no machine: capacity, a wrong device type or slice count, a dead node. The "
        "others hold theirs and do nothing meanwhile. Tell the DRI; Hero changes no cluster.",
        since_at=since,
    )


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


PARTIAL = Check(
    id=PARTIAL_ID,
    title="The job runs, but some of its tasks do not",
    severity=Severity.WARNING,
    needs=(Source.JOBS,),
    source='manage-hero-run, "What Can Go Wrong": capacity or scheduling wedge (partially allocated, never '
    "co-scheduled)",
    thresholds=PartialThresholds(),
    memory=Partial(),
    judge=partial,
)
