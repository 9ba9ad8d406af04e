"""Which of the listed jobs are the run's own, and which are diagnostics beside it: a probe, an old debug child. Pure.

The run's health is judged by its own jobs alone. What sets a diagnostic apart is documented nowhere, so only what the
job tree itself shows counts: a word in its name that the run's own name has not, and that it is smaller than the
production child where that has more than one task. What cannot be told apart so counts as the run's own.
"""

import re

from bot.model.job import Job
from bot.model.reading import Gap, Known
from bot.model.snapshot import LogLine, Snapshot
from bot.model.value import JobId, RunId

_DIAGNOSTIC = frozenset(
    {
        *("debug", "dbg", "diag", "diagnostic", "diagnostics", "probe", "repro", "smoke", "canary", "dryrun"),
        *("bench", "benchmark", "profile", "profiling", "trial", "test"),
    }
)
_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")


def is_below(job: Job, other: Job) -> bool:
    """Return whether ``job`` is a child, or a child's child, of ``other``; ids nest, parents are not always told."""
    return job.parent == other.job_id or job.job_id.startswith(f"{other.job_id}/")


def diagnostics(seen: Snapshot) -> tuple[Job, ...]:
    """Return the listed jobs and neighbours that are diagnostics beside the run, live or not.

    Nothing when the run's own jobs are not known.
    """
    if not isinstance(seen.jobs, Known) or seen.job is None:
        return ()
    root = seen.job.job_id
    named = [job for job in (*seen.jobs.value, *_neighbours(seen)) if diagnostic_words(job.job_id, root, seen.run_id)]
    trainer = seen.telemetry.value.job_id if isinstance(seen.telemetry, Known) else ""
    most = max((_task_count(job) or 0 for job in seen.jobs.value if job not in named), default=0)
    return tuple(
        job for job in named if job.job_id != trainer and not _is_above(job, trainer) and _is_smaller(job, most)
    )


def own_jobs(seen: Snapshot) -> tuple[Job, ...]:
    """Return the listed jobs without diagnostics, the run's own job first; nothing when jobs are not known."""
    beside = {job.job_id for job in diagnostics(seen)}
    return tuple(job for job in seen.jobs.value if job.job_id not in beside) if isinstance(seen.jobs, Known) else ()


def rivals(seen: Snapshot) -> tuple[Job, ...]:
    """Return the live jobs that are the run as well: neighbours that neither are diagnostics nor belong to its job.

    Nothing when the neighbours are not known, so look at that first.
    """
    beside = {job.job_id for job in diagnostics(seen)}
    return tuple(
        job
        for job in _neighbours(seen)
        if not job.state.is_terminal
        and job.job_id not in beside
        and not (seen.job and (job.job_id == seen.job.job_id or is_below(job, seen.job) or is_below(seen.job, job)))
    )


def own_lines(seen: Snapshot) -> tuple[LogLine, ...]:
    """Return the lines of the log that no diagnostic printed; nothing when the log is not known."""
    if not isinstance(seen.log, Known):
        return ()
    beside = tuple(f"{job.job_id}/" for job in diagnostics(seen))
    lines = seen.log.value.lines
    return tuple(line for line in lines if not (line.task or "").startswith(beside)) if beside else lines


def diagnostic_words(job_id: JobId, root: JobId, run_id: RunId) -> frozenset[str]:
    """Return the words in a job's name that set it apart as a diagnostic, unless the run's own names have them.

    Of a job below ``root``, the run's own, the names between the two count too.
    """
    if job_id == root:
        return frozenset()
    below = job_id.removeprefix(f"{root}/")
    name = below if below != job_id else job_id.rpartition("/")[2]
    own = _BETWEEN_WORDS.split(f"{root.rpartition('/')[2]} {run_id}".lower())
    return _DIAGNOSTIC.intersection(_BETWEEN_WORDS.split(name.lower())).difference(own)


def _neighbours(seen: Snapshot) -> tuple[Job, ...]:
    return seen.neighbours.value if isinstance(seen.neighbours, Known) else ()


def _is_above(job: Job, trainer: str) -> bool:
    return trainer.startswith(f"{job.job_id}/")


def _is_smaller(job: Job, most: int) -> bool:
    """Return whether a job has fewer tasks than the run's largest; where that has one, the name alone decides."""
    count = _task_count(job)
    return count is not None and (most <= 1 or count < most)


def _task_count(job: Job) -> int | None:
    """Return how many tasks a job has; of one whose tasks are not asked, as a neighbour's, how many it is to have."""
    if isinstance(job.tasks, Known):
        return len(job.tasks.value)
    return job.expected_tasks if job.tasks.reason is Gap.NOT_CONFIGURED else None
