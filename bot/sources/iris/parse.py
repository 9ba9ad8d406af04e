"""From what Iris answers to the words of ``bot.model.job``; pure, and never raising: what is not recognised is Unknown.

A job's own exit code is 0 or NULL whatever happened (marin-iris 0.2.20 and 0.2.227, run), so it is not looked at: the
tasks' are. ``request`` and the environment columns hold secrets and are not looked at either.
"""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Concatenate

from bot.model.job import Attempt, Job, JobState, Task, TaskState
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.value import JobId
from bot.sources.iris.devices import device_of
from bot.sources.iris.shape import Fields, ShapeError, job_state, storable, task_state

_PROSE_CHARS = 4000
_MIB = 2**20
_INDEX_DIGITS = 9

NO_TASKS = "the tasks were not asked yet"

# An exit code of 0 is protobuf's default: beside other ends it means that nobody said (a timeout ends as "failed, 0").
_ENDED_WELL = TaskState.SUCCEEDED
_GOING_ON = frozenset({TaskState.PENDING, TaskState.BUILDING, TaskState.ASSIGNED, TaskState.RUNNING})


def recognised[**P, T](
    parse: Callable[Concatenate[object, P], T],
) -> Callable[Concatenate[object, datetime, P], Reading[T]]:
    """Turn a parser that raises ShapeError into one that answers a Reading and takes the moment of the answer."""

    def reading(payload: object, at: datetime, /, *args: P.args, **kwargs: P.kwargs) -> Reading[T]:
        try:
            return Known(value=parse(payload, *args, **kwargs), at=at)
        except ShapeError as error:
            return Unknown(reason=Gap.UNRECOGNISED, detail=str(error)[:500], at=at)
        except RecursionError:
            return Unknown(reason=Gap.UNRECOGNISED, detail="the answer is nested too deeply", at=at)

    return wraps(parse)(reading)


@recognised
def parse_job_status(payload: object, job_id: JobId) -> tuple[Job, bool | None]:
    """Read GetJobStatus: the job, its tasks not asked yet, and whether it says that it has children."""
    job = Fields(Fields(payload, "answer").get("job"), "job")
    found = _job(job)
    if found.job_id != job_id:
        raise ShapeError(f"job.job_id is {found.job_id!r}, but {job_id} was asked")
    children = job.get("has_children")
    return found, children if isinstance(children, bool) else None


@recognised
def parse_descendants(payload: object, job_id: JobId) -> tuple[tuple[Job, ...], bool]:
    """Read one page of ListJobs, or the old CLI's list: the jobs below ``job_id``, and whether there are more pages.

    A neighbour whose name merely begins alike is not below it.
    """
    return _page(payload, lambda found: found.startswith(f"{job_id}/"))


@recognised
def parse_listed_job(payload: object, job_id: JobId) -> Job | None:
    """Find exactly one job in a list; None when the list does not hold it."""
    jobs = Fields({"jobs": payload} if isinstance(payload, list) else payload, "answer").messages("jobs")
    return next((_job(each) for each in jobs if each.text("job_id") == job_id), None)


@recognised
def parse_named(payload: object, is_wanted: Callable[[str], bool]) -> tuple[tuple[Job, ...], bool]:
    """Read one page of ListJobs, or the old CLI's list: the jobs whose ids are wanted, and whether more pages follow.

    The others are strangers: whatever their rows hold, nothing hangs on it.
    """
    return _page(payload, is_wanted)


@recognised
def parse_states(payload: object) -> dict[str, JobState]:
    """Read GetJobState: the state of each job that the controller knows; an id that it left out is unknown to it."""
    states = Fields(payload, "answer").get("states")
    if states is None:
        return {}
    if not isinstance(states, dict):
        raise ShapeError(f"answer.states is {type(states).__name__}, not an object")
    return {storable(str(name)): job_state(value, f"answer.states[{name!r:.80}]") for name, value in states.items()}


@recognised
def parse_tasks(payload: object, job_id: JobId) -> tuple[Task, ...]:
    """Read ListTasks, or the tasks of the old CLI's summary; of each task, the attempts that the answer holds."""
    tasks = tuple(_task(each, job_id) for each in Fields(payload, "answer").messages("tasks"))
    return tuple(sorted(tasks, key=lambda task: task.index))


@recognised
def parse_task(payload: object, job_id: JobId) -> Task:
    """Read GetTaskStatus: one task with all its attempts."""
    return _task(Fields(Fields(payload, "answer").get("task"), "task"), job_id)


def task_count(payload: object) -> int:
    """How many tasks GetJobStatus says there are; 0 when it does not say."""
    try:
        return Fields(Fields(payload, "answer").get("job"), "job").number("task_count") or 0
    except ShapeError:
        return 0


def _job(job: Fields) -> Job:
    job_id = job.required_text("job_id")
    if not job_id.startswith("/") or job_id.count("/") < 2:  # noqa: PLR2004 - /user/job
        raise ShapeError(f"{job.name('job_id')} is {job_id[:80]!r}, no /USER/JOB")
    submitted_at = job.moment("submitted_at") or job.moment("submitted_at_ms")
    if submitted_at is None:
        raise ShapeError(f"{job.name('submitted_at')} is missing")
    state = job_state(job.get("state"), job.name("state"))
    is_waiting = state in {JobState.PENDING, JobState.BUILDING}
    device = device_of(job.get("resources"))
    return Job(
        job_id=JobId(job_id),
        state=state,
        submitted_at=submitted_at,
        started_at=job.moment("started_at") or job.moment("started_at_ms"),
        finished_at=job.moment("finished_at") or job.moment("finished_at_ms"),
        # Filled with the error's text for jobs that have ended: the state decides whether it means anything.
        pending_reason=job.text("pending_reason")[:_PROSE_CHARS] if is_waiting else "",
        error=job.text("error")[:_PROSE_CHARS],
        parent=parent_of(JobId(job_id)),
        tasks=Unknown(reason=Gap.NOT_CONFIGURED, detail=NO_TASKS, at=submitted_at),
        accelerator=device.accelerator,
        accelerators=device.accelerators,
        expected_tasks=job.number("task_count") or None,
    )


def _task(task: Fields, job_id: JobId) -> Task:
    task_id = task.required_text("task_id")
    index = task_id.removeprefix(f"{job_id}/")
    if index == task_id or not (index.isascii() and index.isdigit() and len(index) <= _INDEX_DIGITS):
        raise ShapeError(f"{task.name('task_id')} is {task_id[:80]!r}, no task of {job_id}")
    state = task_state(task.get("state"), task.name("state"))
    usage = task.get("resource_usage")
    peak = (Fields(usage, task.name("resource_usage")) if usage is not None else task).number("memory_peak_mb")
    attempts = tuple(sorted((_attempt(each) for each in task.messages("attempts")), key=lambda each: each.attempt))
    return Task(
        task_id=task_id,
        index=int(index),
        state=state,
        exit_code=exit_code_of(state, task.number("exit_code")),
        error=task.text("error")[:_PROSE_CHARS],
        attempts=attempts,
        peak_memory_bytes=peak * _MIB if peak and peak > 0 else None,
        started_at=task.moment("started_at"),
        finished_at=task.moment("finished_at"),
    )


def _attempt(attempt: Fields) -> Attempt:
    state = task_state(attempt.get("state"), attempt.name("state"))
    return Attempt(
        attempt=attempt.number("attempt_id") or 0,
        uid=attempt.text("attempt_uid") or None,
        state=state,
        exit_code=exit_code_of(state, attempt.number("exit_code")),
        error=attempt.text("error")[:_PROSE_CHARS],
        node=attempt.text("node_name") or attempt.text("worker_id") or None,
        started_at=attempt.moment("started_at"),
        finished_at=attempt.moment("finished_at"),
    )


def exit_code_of(state: TaskState, given: int | None) -> int | None:
    """Return the exit code where it means something."""
    if state in _GOING_ON or (given == 0 and state is not _ENDED_WELL):
        return None
    return given


def parent_of(job_id: JobId) -> JobId | None:
    """Return the parent by the id, ``/user/parent/child``: the list leaves the field empty (marin-iris 0.2.227)."""
    above = job_id.rsplit("/", 1)[0]
    return JobId(above) if above.count("/") >= 2 else None  # noqa: PLR2004 - /user/job


def _page(payload: object, is_wanted: Callable[[str], bool]) -> tuple[tuple[Job, ...], bool]:
    answer = Fields({"jobs": payload} if isinstance(payload, list) else payload, "answer")
    jobs = tuple(_job(each) for each in answer.messages("jobs") if is_wanted(each.text("job_id")))
    more = answer.get("has_more")
    if more is not None and not isinstance(more, bool):
        raise ShapeError("answer.has_more is no yes or no")
    return jobs, bool(more)
