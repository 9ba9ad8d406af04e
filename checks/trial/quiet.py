"""What went wrong with the child beside its figures: crashes, retries, watchdogs, alerts. Pure.

Source: the deploy checklist, "Agree the plan" (require no unexpected crash, retry, watchdog, or alert) and "Execute the
trial", item 5. What nobody could count is None, which passes nothing; zero is said only of what was looked at.
"""

from collections.abc import Iterable
from datetime import datetime

from bot.model.incident import Incident, Pending, Resolved
from bot.model.job import Attempt, Job, JobState, Task, TaskState
from bot.model.reading import Known, Reading, Unknown
from bot.model.snapshot import LogTail
from bot.model.trial import Happened
from bot.model.value import CheckId
from bot.model.verdict import Severity

WATCHDOG_EXIT = 124
"""What a trainer ends with when it ends itself because nothing moved (levanter, callbacks/progress_watchdog.py)."""
_WATCHDOG_WORDS = ("terminating with exit code 124", "watchdog caught collective operation timeout")
"""In lower case: Levanter's own last line, and NCCL's."""
_FAILED = frozenset({TaskState.FAILED, TaskState.WORKER_FAILED, TaskState.UNSCHEDULABLE})
"""Ends of an attempt that are crashes by themselves, whatever the exit code."""
_TAKEN_AWAY = frozenset({TaskState.PREEMPTED, TaskState.COSCHED_FAILED})
"""Preempted, or gone with the rest of the gang: no crash, whatever the exit code; the next attempt is a retry."""
_FAILED_JOBS = frozenset({JobState.FAILED, JobState.WORKER_FAILED, JobState.UNSCHEDULABLE})
_SEVERE = frozenset({Severity.WARNING, Severity.CRITICAL})
_OF_HERO = "monitor."
"""What is about Hero itself: what it can't read, did not check in time, or a check of its own that broke."""
_TRACKER = CheckId("tracker.identity")
_BEHIND = frozenset({"link", "global_step"})
"""The keys of ``tracker.identity`` that are about how far the tracker is."""


def count_happened(
    jobs: Reading[tuple[Job, ...]],
    incidents: tuple[Incident, ...] | None,
    since: datetime,
    *,
    log: Reading[LogTail] | None = None,
) -> Happened:
    """Count what went wrong with the child since its launch.

    An alert is a warning or a critical incident. Two kinds are none, since they say nothing against the child:
    ``monitor.*`` is about Hero's own sight, and what Hero can't see is Unknown here too and passes nothing by
    itself; ``tracker.identity`` where it finds the tracker behind, which shows the history that the child inherited at
    the fork and lags behind its rows (deploy checklist, "Execute the trial", item 5). A tracker that shows another run
    than the child's is an alert.

    Args:
        jobs: the child's job and those below it. All of their attempts count, whenever they began: the orchestrator's
            clock is not Hero's. No job at all is nothing that was looked at.
        incidents: of the child, those that are over too; None when they could not be read.
        since: its launch.
        log: what the job printed, for the words of a watchdog; None where nobody reads it for this, and then a
            watchdog is told by the exit code alone, which it always leaves.
    """
    alerts = None if incidents is None else sum(_is_alert(each, since) for each in incidents)
    tasks = _tasks(jobs)
    if tasks is None or isinstance(jobs, Unknown):
        return Happened(alerts=alerts)
    attempts = tuple(attempt for task in tasks for attempt in task.attempts)
    watchdogs = sum(attempt.exit_code == WATCHDOG_EXIT for attempt in attempts)
    crashes = sum(_is_crash(attempt) for attempt in attempts)
    if not crashes and not watchdogs:
        crashes = sum(job.state in _FAILED_JOBS for job in jobs.value) or sum(map(_is_lost, tasks))
    return Happened(
        crashes=crashes,
        retries=sum(map(_retries, tasks)),
        watchdogs=_with_log(watchdogs, log),
        alerts=alerts,
    )


def _tasks(jobs: Reading[tuple[Job, ...]]) -> tuple[Task, ...] | None:
    """Return the tasks of all jobs; None where those of one are not known, or where there is no job."""
    if isinstance(jobs, Unknown) or not jobs.value:
        return None
    found: list[Task] = []
    for job in jobs.value:
        if isinstance(job.tasks, Unknown):
            return None
        found += job.tasks.value
    return tuple(found)


def _is_crash(attempt: Attempt) -> bool:
    if attempt.exit_code == WATCHDOG_EXIT:
        return False  # counted as what it is
    if attempt.state in _TAKEN_AWAY:
        return False
    return attempt.state in _FAILED or attempt.exit_code not in {None, 0}


def _is_lost(task: Task) -> bool:
    """Whether a task failed though none of its attempts says so."""
    return task.state in _FAILED


def _retries(task: Task) -> int:
    """Return how often a task was tried again; an orchestrator that forgets old attempts still numbers the newest."""
    numbers: Iterable[int] = (attempt.attempt for attempt in task.attempts)
    return max(len(task.attempts) - 1, max(numbers, default=0), 0)


def _with_log(watchdogs: int, log: Reading[LogTail] | None) -> int | None:
    """Return the count of the exit codes, or what the log says of more; None where the log could not be read."""
    match log:
        case None:
            return watchdogs
        case Known(value=tail):
            said = any(words in line.text.lower() for line in tail.lines for words in _WATCHDOG_WORDS)
            return max(watchdogs, int(said))
        case _:
            return watchdogs or None


def _is_alert(incident: Incident, since: datetime) -> bool:
    """Whether people were, or are, told of something against the child; what is not seen often enough yet is none."""
    is_behind = incident.check == _TRACKER and incident.key in _BEHIND
    if incident.check.startswith(_OF_HERO) or is_behind or incident.finding.severity not in _SEVERE:
        return False
    match incident.state:
        case Pending():
            return False
        case Resolved(at=at):
            return incident.is_told and at >= since
        case _:
            return True
