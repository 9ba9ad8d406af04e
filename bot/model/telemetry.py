"""What the trainer itself reports of its life, as Finelog keeps it: independent of the orchestrator's word."""

from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.value import Value


class Phase(StrEnum):
    """What the trainer says it does."""

    INITIALIZING = "initializing"
    TRAINING = "training"
    FINISHED = "finished"


class Telemetry(Value):
    """The newest signs of life of one run's trainer."""

    phase: Phase | None = None
    """None when no phase was ever reported."""
    phase_at: AwareDatetime | None = None
    progress_at: AwareDatetime | None = None
    """When the last step was finished, by the trainer's own clock."""
    last_step: int | None = None
    last_row_at: AwareDatetime | None = None
    """The newest row of any kind."""
    execution_uid: str = ""
    """``iris:<attempt uid>`` of whoever wrote the newest row."""
    is_of_current_execution: bool | None = None
    """Whether that is the attempt that the orchestrator shows now; None when that is not known."""
    job_id: str = ""
    """The orchestrator's job that wrote it: the trainer's own, below a coordinator where there is one."""
