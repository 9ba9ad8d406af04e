"""Kubernetes' word on a run's tasks: pods found by task identity, never by their sanitised, truncated names."""

from pydantic import AwareDatetime

from bot.model.value import JobId, Value


class Pod(Value):
    """One pod of one attempt of one task."""

    name: str
    uid: str
    job_id: JobId
    task_index: int
    attempt: int | None
    """None when the pod does not say."""
    attempt_uid: str = ""
    """The orchestrator's own id of this attempt, which no namesake's attempt has; empty when the pod does not say."""
    phase: str
    """Kubernetes' own: Pending, Running, Succeeded, Failed or Unknown."""
    node: str | None
    """None as long as it has not been given one: then it holds no accelerators yet."""
    reason: str = ""
    """The most telling word about its end or its wait: OOMKilled, Evicted, PreemptionByScheduler, Error …"""
    exit_code: int | None = None
    restarts: int = 0
    created_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    deleted_at: AwareDatetime | None = None
    """By when it is to be gone, once its deletion was asked for; on a lost node it may live on after that."""

    @property
    def is_live(self) -> bool:
        """Whether it may still run, or still begin to."""
        return self.phase not in {"Succeeded", "Failed"}

    @property
    def task_id(self) -> str:
        return f"{self.job_id}/{self.task_index}"

    @property
    def place(self) -> str:
        """Which pod it is, for people."""
        attempt = "" if self.attempt is None else f", attempt {self.attempt}"
        return f"pod {self.name} of task {self.task_id}{attempt} on {self.node or 'no node yet'}"
