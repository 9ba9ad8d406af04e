"""Which of the listed jobs are the run's own, and which are diagnostics beside it: a probe, an old debug child. Pure.

The run's health is judged by its own jobs alone. What sets a diagnostic apart is documented nowhere, so only what the
job tree itself shows counts: a word in its name that the run's own name has not, and that it is smaller than the
production child where that has more than one task. What cannot be told apart so counts as the run's own.
"""

import re

from bot.model.job import Job
from bot.model.reading import Known
from bot.model.snapshot import LogLine, Snapshot

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
    """Return the listed jobs that are diagnostics beside the run, live or not; nothing when jobs are not known."""
    if not isinstance(seen.jobs, Known) or seen.job is None:
        return ()
    named = [job for job in seen.jobs.value if _words(job, seen.job) - _own_words(seen)]
    trainer = seen.telemetry.value.job_id if isinstance(seen.telemetry, Known) else ""
    most = max((_task_count(job) or 0 for job in seen.jobs.value if job not in named), default=0)
    return tuple(
        job for job in named if job.job_id != trainer and not _is_above(job, trainer) and _is_smaller(job, most)
    )


def own_jobs(seen: Snapshot) -> tuple[Job, ...]:
    """Return the listed jobs without diagnostics, the run's own job first; nothing when jobs are not known."""
    beside = {job.job_id for job in diagnostics(seen)}
    return tuple(job for job in seen.jobs.value if job.job_id not in beside) if isinstance(seen.jobs, Known) else ()


def own_lines(seen: Snapshot) -> tuple[LogLine, ...]:
    """Return the lines of the log that no diagnostic printed; nothing when the log is not known."""
    if not isinstance(seen.log, Known):
        return ()
    beside = tuple(f"{job.job_id}/" for job in diagnostics(seen))
    lines = seen.log.value.lines
    return tuple(line for line in lines if not (line.task or "").startswith(beside)) if beside else lines


def _words(job: Job, root: Job) -> frozenset[str]:
    """Return the diagnostic words in a job's name; of one below the run's job, also in the names between the two."""
    if job.job_id == root.job_id:
        return frozenset()
    below = job.job_id.removeprefix(f"{root.job_id}/")
    name = below if below != job.job_id else job.job_id.rpartition("/")[2]
    return _DIAGNOSTIC.intersection(_BETWEEN_WORDS.split(name.lower()))


def _own_words(seen: Snapshot) -> frozenset[str]:
    """Return the words of the run's own names: what is called after them is not set apart by them."""
    root = seen.job.job_id if seen.job else ""
    return frozenset(_BETWEEN_WORDS.split(f"{root.rpartition('/')[2]} {seen.run_id}".lower()))


def _is_above(job: Job, trainer: str) -> bool:
    return trainer.startswith(f"{job.job_id}/")


def _is_smaller(job: Job, most: int) -> bool:
    """Return whether a job has fewer tasks than the run's largest; where that has one, the name alone decides."""
    count = _task_count(job)
    return count is not None and (most <= 1 or count < most)


def _task_count(job: Job) -> int | None:
    return len(job.tasks.value) if isinstance(job.tasks, Known) else None
