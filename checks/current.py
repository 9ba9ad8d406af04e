"""What several checks ask of a snapshot: which instance it shows, since when it lives, how an Unknown is answered."""

from datetime import datetime

from bot.model.job import Job, JobState, Task
from bot.model.launched import LaunchedConfig
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot
from bot.model.verdict import NotApplicable, UnknownVerdict
from checks.kin import is_below as is_below  # noqa: PLC0414 - read from here by checks that ask no more of the tree
from checks.kin import own_jobs


def unseen(gap: Unknown, what: str) -> UnknownVerdict:
    """Return the verdict of a check that could not look: the reading's own reason, and what was not seen."""
    return UnknownVerdict(reason=gap.reason, detail=f"{what}: {gap.detail}")


def instance_of(seen: Snapshot, remembered: str) -> str:
    """Return ``JOB_ID@SUBMITTED`` of the launch that the snapshot shows.

    What the orchestrator says now counts most: a namesake may have replaced the job. When it says nothing, the later
    one of the launch on record and the one that the check remembers counts: a gap must not bring back an older one.

    Args:
        seen: the snapshot.
        remembered: the check's own last answer of this function; empty when there is none.
    """
    if seen.job is not None:
        return seen.job.instance_id
    if seen.instance is None or seen.instance.submitted_at is None:
        return remembered
    on_record = seen.instance.submitted_at
    if remembered and datetime.fromisoformat(remembered.rpartition("@")[2]) > on_record:
        return remembered
    return f"{seen.instance.job_id}@{on_record.isoformat()}"


def launched_in(seen: Snapshot, what: str) -> LaunchedConfig | NotApplicable | UnknownVerdict:
    """Return the launched configuration, or the verdict of a check that is about it and has none to judge.

    Args:
        seen: the snapshot.
        what: what stays unknown without it, as ``unseen`` says it.
    """
    match seen.config:
        case Unknown(reason=Gap.NOT_CONFIGURED, detail=detail):
            return NotApplicable(reason=f"no launched configuration is read: {detail}")
        case Unknown() as gap:
            return unseen(gap, what)
        case Known(value=config):
            if isinstance(seen.jobs, Unknown):
                return unseen(seen.jobs, "whose configuration it is is not known")
            return config


def not_running(seen: Snapshot) -> NotApplicable | UnknownVerdict | None:
    """Return the verdict of a check that is about running jobs when the run's own job does not run; else None."""
    match seen.jobs:
        case Unknown() as gap:
            return unseen(gap, "whether the job runs is not known")
        case Known() if seen.job is None:
            return NotApplicable(reason="there is no job")
        case Known() if seen.job.state is not JobState.RUNNING:
            return NotApplicable(reason=f"the job does not run: it is {seen.job.state}")
        case _:
            return None


def listed(seen: Snapshot) -> tuple[Job, ...]:
    """Return the run's own jobs, as far as known; nothing also when the reading is Unknown, so look at that first.

    Diagnostics beside the run (``checks.kin``) are left out: its health is not judged by them.
    """
    return own_jobs(seen)


def known_tasks(jobs: tuple[Job, ...]) -> tuple[tuple[Job, Task], ...]:
    """Return every task that could be read, with its job."""
    return tuple((job, task) for job in jobs if isinstance(job.tasks, Known) for task in job.tasks.value)


def unread_tasks(jobs: tuple[Job, ...]) -> Unknown | None:
    """Return why the tasks of one of the jobs could not be read; None when all were."""
    return next((job.tasks for job in jobs if isinstance(job.tasks, Unknown)), None)


def life_began(seen: Snapshot) -> datetime | None:
    """Return when the newest attempt among the tasks that still live began.

    A job stays RUNNING while its tasks are retried, and every retry restores and compiles anew. Falls back to the job's
    own start; None when there is no job that started.
    """
    jobs = tuple(job for job in listed(seen) if not job.state.is_terminal)
    started = [
        task.current_attempt.started_at
        for _, task in known_tasks(jobs)
        if task.current_attempt is not None
        and task.current_attempt.started_at is not None
        and task.current_attempt.finished_at is None
    ]
    return max(started, default=seen.job.started_at if seen.job else None)


def is_final(step: int | None, final_step: int | None) -> bool:
    """Return whether ``step`` is the last one of a run of ``final_step`` steps.

    Steps are counted from 0 or from 1: a run of N updates logs N-1 last in the one world and N in the other, so one
    less counts too (the procedure's "Final-step misunderstanding").
    """
    return step is not None and final_step is not None and step >= final_step - 1


def say_step(step: int | None) -> str:
    return "unknown" if step is None else str(step)
