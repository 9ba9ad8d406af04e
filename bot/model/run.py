"""A run and its launches, as Hero remembers them."""

from datetime import timedelta
from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.allowance import Allowance
from bot.model.conduct import Trial
from bot.model.drift import ConfigShape
from bot.model.errand import Errand
from bot.model.ladder import OpenPage
from bot.model.roles import Handover, HeldRole
from bot.model.value import JobId, RunId, Value


class RunState(StrEnum):
    """What people are told a run does."""

    UNKNOWN = "unknown"
    """Not looked at yet, or what was read does not tell."""
    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    """The job ended and the run is not complete."""
    RELAUNCHING = "relaunching"
    COMPLETED = "completed"
    """The job succeeded, the final step was seen, and its checkpoint is there."""
    ENDED_SHORT = "ended_short"
    """The orchestrator says success, but the final step, its checkpoint or another artifact is not there."""
    STOPPED = "stopped"
    """Somebody ended the job on purpose."""
    BLOCKED = "blocked"
    """Its contract cannot be read; nothing is done until it can."""


class Instance(Value):
    """One launched attempt of a run."""

    run_id: RunId
    number: int
    """0 for the first one that Hero saw, then counting up; also the restart count."""
    job_id: JobId
    submitted_at: AwareDatetime | None
    """As the orchestrator says; None until it was asked. Together with job_id it tells namesakes apart."""
    launched_at: AwareDatetime
    """When Hero saw or made the launch."""
    replaces: str = ""
    """``JOB_ID@SUBMITTED`` of the launch before, when Hero made this one: what is shown under that name is not it."""
    command: tuple[str, ...] = ()
    """The submit command with secrets scrubbed; empty for a launch that Hero did not make."""
    source_sha: str | None = None
    config_digest: str | None = None
    """SHA-256 over the contract's fields that shape training; tells what changed between two launches."""
    shape: dict[str, str] = {}
    """The contract's launch-shaping fields at that time, scrubbed, so that a later plan can say what changed."""
    launched: ConfigShape | None = None
    """What is remembered of the configuration that its trainer resolved; None until that was read."""
    from_step: int | None = None
    """The step of the checkpoint it was launched from; None when that is not known."""
    ended_at: AwareDatetime | None = None
    exit_code: int | None = None


class Progress(Value):
    """The newest figures seen of a run, for people; checks keep memories of their own."""

    step: int | None = None
    step_at: AwareDatetime | None = None
    loss: float | None = None
    tokens_per_second: float | None = None
    usual_tokens_per_second: float | None = None
    """The median of what is kept of the run's throughput; None until there is enough of it."""
    checkpoint_step: int | None = None
    checkpoint_at: AwareDatetime | None = None
    """When the newest complete checkpoint was saved, where its storage says so."""
    save_every_steps: int | None = None
    """Steps between the two newest complete checkpoints; None while there are not two."""
    accelerators: int | None = None
    """How many the run's current jobs hold or held last, over all tasks; None when nobody said."""
    steps_per_s: float | None = None
    """Smoothed over the instance's recent checks."""
    final_step: int | None = None
    """By the launched configuration; counts, as inferred, where the contract names none."""

    def eta(self, final_step: int | None) -> timedelta | None:
        """Time left to the final step at the recent pace; None when either is unknown."""
        if self.step is None or not self.steps_per_s or final_step is None or self.step >= final_step:
            return None
        seconds = (final_step - self.step) / self.steps_per_s
        return timedelta(seconds=seconds) if seconds < 10 * 365 * 86400 else None


class Run(Value):
    """What Hero knows of one run between two checks."""

    run_id: RunId
    state: RunState = RunState.UNKNOWN
    progress: Progress = Progress()
    last_checked_at: AwareDatetime | None = None
    last_told_at: AwareDatetime | None = None
    """When people last heard of this run through a new message; a routine status is due 24 h later."""
    metrics_cursor: str = ""
    gaps: tuple[str, ...] = ()
    """The sources that were Unknown at the last check, each with its reason."""
    milestone_step: int | None = None
    """The last milestone that was told."""
    blocked_reason: str = ""
    allowance: Allowance | None = None
    """What the DRI allowed in advance; the newest one, also when it is over."""
    handover: Handover | None = None
    """A part of this run that is being handed over, and waits for the other's yes."""
    roles: tuple[HeldRole, ...] = ()
    """Parts that were handed over by command."""
    promoted: str = ""
    """Why a bounded diagnostic's record is kept where others find it; empty while it goes the light path."""
    seal: str = ""
    """The tag that says that the run is finished and all of it is in its place; empty before that."""
    is_paused: bool = False
    trial: Trial | None = None
    """The trial of a change of this run; the newest one, also when it is over."""
    errands: tuple[Errand, ...] = ()
    """What was asked for by command and is to be looked into after the next check."""
    promised: dict[str, str] = {}
    """The contract as it was last put on record, field by field, secrets scrubbed."""
    tracker_url: str = ""
    """Where the tracker showed the run when it was last seen there."""
    tracker_name: str = ""
    tracker_digest: str = ""
    """SHA-256 of that address as it was read, to tell another one from the same."""
    attended_at: AwareDatetime | None = None
    """When one of the run's people last said or did something about it; the ladder of escalation stops there."""
    escalated_at: tuple[AwareDatetime, ...] = ()
    """When messages of that ladder went out, those of the last day: what its noise budget counts."""
    pages: tuple[OpenPage, ...] = ()
    """For what somebody is being called."""
    relaunch_wanted_by: str = ""
    """Who asked for a relaunch by command; the next check puts the plan to the DRI."""
