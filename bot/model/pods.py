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
    phase: str
    """Kubernetes' own: Pending, Running, Succeeded, Failed or Unknown."""
    node: str | None
    reason: str = ""
    """Of the newest terminated or waiting container, e.g. OOMKilled; else of the pod, e.g. Evicted."""
    exit_code: int | None = None
    restarts: int = 0
    started_at: AwareDatetime | None = None
    deleted_at: AwareDatetime | None = None
    """When its deletion was asked for; it may still run for its grace period."""

    @property
    def is_live(self) -> bool:
        """Whether it may still hold accelerators."""
        return self.phase not in {"Succeeded", "Failed"}
