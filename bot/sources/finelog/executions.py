"""Which executions belong to the run's current job: Finelog's ``execution_uid`` is ``iris:<attempt uid>``. Pure.

Names repeat: a job that is submitted again replaces its namesake, a retry goes on under the same task. The uid of an
attempt does not, so it tells whose rows are whose.
"""

from collections.abc import Mapping
from typing import Any

from bot.model.job import Attempt, Job, Task
from bot.model.reading import Known, Reading, Unknown
from bot.model.value import Value
from bot.sources.finelog.tables import EXECUTION_PREFIX

MOST_NAMED = 512
"""How many executions one question names; beyond it all are asked for."""


class Executions(Value):
    """Whose rows are this job's."""

    current: frozenset[str] = frozenset()
    """The newest attempt of each task."""
    all: frozenset[str] = frozenset()
    """Every attempt of each task, earlier ones included."""
    attempts: tuple[tuple[str, ...], ...] = ()
    """The attempts of each task that has several, oldest first."""
    is_exact: bool = False
    """Whether these are all that there are; then a row of any other execution is another job's."""

    def is_current(self, execution: str) -> bool | None:
        """Whether rows of this execution are of the current attempt; None when that is not known."""
        if execution in self.current:
            return True
        return False if self.is_exact and execution.startswith(EXECUTION_PREFIX) else None

    def later_than(self, execution: str) -> frozenset[str]:
        """Return the attempts that took this execution's place; empty when none is known."""
        for tried in self.attempts:
            if execution in tried:
                return frozenset(tried[tried.index(execution) + 1 :])
        return frozenset()

    def is_foreign(self, execution: str) -> bool:
        """Whether rows of this execution are known to be another job's."""
        return self.is_exact and execution.startswith(EXECUTION_PREFIX) and execution not in self.all


def executions_of(jobs: Reading[tuple[Job, ...]]) -> Executions:
    """Return the executions of a job and of everything below it.

    Args:
        jobs: what the orchestrator says.
    """
    if isinstance(jobs, Unknown):
        return Executions()
    current: set[str] = set()
    every: set[str] = set()
    several: list[tuple[str, ...]] = []
    is_exact = True
    for job in jobs.value:
        if not isinstance(job.tasks, Known):
            is_exact = False
            continue
        for task in job.tasks.value:
            uids = [_uid(task, attempt) for attempt in task.attempts]
            every.update(uids)
            current.update(uids[-1:])
            if len(uids) > 1:
                several.append(tuple(uids))
            is_exact = is_exact and all(attempt.uid for attempt in task.attempts)
    return Executions(
        current=frozenset(current),
        all=frozenset(every),
        attempts=tuple(several),
        is_exact=is_exact and bool(every),
    )


def is_newest(raw: Mapping[str, Any], column: str, tasks: Mapping[str, Task]) -> bool:
    """Whether a row that Iris itself wrote is of a task's newest attempt; such rows number the attempts, without uids.

    Args:
        raw: with ``attempt_id``.
        column: that names the task.
        tasks: by id.
    """
    task = tasks.get(str(raw.get(column)))
    current = task.current_attempt if task else None
    return current is not None and raw.get("attempt_id") == current.attempt


def _uid(task: Task, attempt: Attempt) -> str:
    """Return what the trainer writes: without a uid the name of the task, which a namesake has too (iris, source)."""
    return f"{EXECUTION_PREFIX}{attempt.uid or f'{task.task_id}:attempt:{attempt.attempt}'}"
