"""Jobs as an orchestrator reports them, in words of our own that every orchestrator's adapter translates to."""

from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.reading import Reading
from bot.model.value import JobId, Value


class JobState(StrEnum):
    """What a job does now. A state we do not know has no member: it makes the reading Unknown."""

    PENDING = "pending"
    BUILDING = "building"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    WORKER_FAILED = "worker_failed"
    UNSCHEDULABLE = "unschedulable"

    @property
    def is_terminal(self) -> bool:
        return self not in {JobState.PENDING, JobState.BUILDING, JobState.RUNNING}


class TaskState(StrEnum):
    """What one task of a job, or one attempt of a task, does now."""

    PENDING = "pending"
    BUILDING = "building"
    ASSIGNED = "assigned"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    WORKER_FAILED = "worker_failed"
    UNSCHEDULABLE = "unschedulable"
    PREEMPTED = "preempted"
    COSCHED_FAILED = "cosched_failed"
    MISSING = "missing"


class Attempt(Value):
    """One try of a task. Its number restarts at 0 when a namesake job replaces the old one; its uid does not repeat."""

    attempt: int
    uid: str | None
    state: TaskState
    exit_code: int | None
    """None while it runs or when nobody knows; a negative number is the signal that ended it."""
    error: str
    """Prose of the orchestrator, history rather than state."""
    node: str | None
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None


class Task(Value):
    """One process group of a job; on a multi-host job there is one a host."""

    task_id: str
    index: int
    state: TaskState
    exit_code: int | None
    error: str
    attempts: tuple[Attempt, ...]
    """Oldest first; at least the current one when the task was ever started."""
    peak_memory_bytes: int | None
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None

    @property
    def current_attempt(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None


class Job(Value):
    """One job: a coordinator, or a child below it."""

    job_id: JobId
    state: JobState
    submitted_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    pending_reason: str
    """Why it waits; meaningful only while it is pending."""
    error: str
    parent: JobId | None
    tasks: Reading[tuple[Task, ...]]
    accelerator: str | None = None
    """What each of its tasks asks for, e.g. ``v5p-64`` or ``H100``; empty when they ask for none, as a coordinator
    does; None when the orchestrator did not say."""
    accelerators: int | None = None
    """How many of them each task asks for."""
    expected_tasks: int | None = None
    """How many tasks it is to have, whether they exist yet or not."""

    @property
    def instance_id(self) -> str:
        """What tells this launch from a namesake before or after it: ``JOB_ID@SUBMITTED``."""
        return f"{self.job_id}@{self.submitted_at.isoformat()}"
