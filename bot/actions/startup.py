"""How the start-up of a trial's child is judged: what counts as a retry, and when silence is a hang. Pure.

Source: deploy checklist, "Agree the plan" (no unexpected crash, retry), "Execute the trial" 3 (compilation is no hang)
and "Decide" (a retry loop or an unexplained hang is rolled back without waiting for further attempts).
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from bot.model.durations import say_duration
from bot.model.job import Job, JobState, Task, TaskState
from bot.model.reading import Known, Unknown
from bot.model.value import RunId
from checks.kin import diagnostic_words


def own_tree(jobs: tuple[Job, ...], run_id: RunId) -> tuple[Job, ...]:
    """Return a listed job and what is below it, without diagnostics beside the run."""
    if not jobs:
        return ()
    root = jobs[0].job_id
    return tuple(job for job in jobs if not diagnostic_words(job.job_id, root, run_id))


def retries_of(jobs: tuple[Job, ...], *, quiet: bool) -> str:
    """Say what was tried again, or crashed below a coordinator that goes on; empty when nothing was.

    Args:
        jobs: the child's job and what is below it.
        quiet: whether any further attempt counts, as agreed; else those alone that ended by themselves.
    """
    return "; ".join(line for job in jobs for line in _retries(job, quiet=quiet))


def _retries(job: Job, *, quiet: bool) -> Iterator[str]:
    crashed = {JobState.FAILED, JobState.WORKER_FAILED} if quiet else {JobState.FAILED}
    if job.parent is not None and job.state in crashed:
        yield f"{job.job_id} is {job.state}{f': {job.error}' if job.error else ''}"
    for task in job.tasks.value if isinstance(job.tasks, Known) else ():
        newest = task.current_attempt
        failed = [each for each in task.attempts if each.state is TaskState.FAILED and each is not newest]
        if failed:
            code = "exit code unknown" if failed[-1].exit_code is None else f"exit code {failed[-1].exit_code}"
            yield f"retry of {task.task_id}: attempt {failed[-1].attempt} failed, {code}"
        elif quiet and newest is not None and newest.attempt > 0:
            yield f"retry of {task.task_id}: it is attempt {newest.attempt} by now"


def unread_tasks(jobs: tuple[Job, ...]) -> Unknown | None:
    """Return why the attempts of a job or of one below it are not known; None when all are."""
    return next((job.tasks for job in jobs if isinstance(job.tasks, Unknown)), None)


def hang_of(jobs: tuple[Job, ...], submitted_at: datetime, limit: timedelta, now: datetime) -> str:
    """Say that a start-up has taken longer than it may; empty before that, and while it waits for its machines.

    Args:
        jobs: the child's job and what is below it.
        submitted_at: when it was submitted.
        limit: the resolved watchdog's, for restore, compilation and prefetch.
        now: when its silence was last seen.
    """
    tasks = [task for job in jobs if isinstance(job.tasks, Known) for task in job.tasks.value]
    begun = [at for task in tasks if (at := _started_at(task)) is not None]
    if len(begun) < len(tasks) or not begun:
        return ""
    silent = now - max(submitted_at, *begun)
    if silent <= limit:
        return ""
    allowed = f"{say_duration(limit)} are allowed"
    return f"it has not entered its training loop {say_duration(silent)} after its start; {allowed}"


def _started_at(task: Task) -> datetime | None:
    newest = task.current_attempt
    return (newest.started_at if newest else None) or task.started_at
