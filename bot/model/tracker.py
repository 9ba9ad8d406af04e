"""What the experiment tracker says of a run: its identity there, its state, and how far its history goes."""

from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.value import Value


class TrackerRunState(StrEnum):
    """The tracker's word for a run. It is a guess about the process, made from heartbeats; finished is not success."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CRASHED = "crashed"
    """Heartbeats stopped; a trainer with a broken network looks the same (field report R18)."""
    KILLED = "killed"
    PENDING = "pending"
    PREEMPTING = "preempting"
    PREEMPTED = "preempted"
    MISSING = "missing"
    """Ours: the tracker answered that it has no such run, or none that this key may see."""

    @property
    def is_terminal(self) -> bool:
        return self not in {TrackerRunState.RUNNING, TrackerRunState.PENDING, TrackerRunState.PREEMPTING}


class ForkPoint(Value):
    """Up to where a history was taken over from another run."""

    run_id: str
    step: int
    """The tracker's own ``_step``; rows up to here are inherited and no progress (field report R22)."""


class TrackerState(Value):
    """One run as the tracker shows it now."""

    entity: str
    project: str
    id: str
    """Unique in the project and never used again; empty when only a name was given and nothing has it."""
    name: str
    """The display name: editable, and not unique."""
    state: TrackerRunState
    url: str
    """As the tracker itself makes it."""
    heartbeat_at: AwareDatetime | None = None
    created_at: AwareDatetime | None = None
    last_step: int | None = None
    """The tracker's own ``_step`` of the newest row; None when there is no row."""
    last_row_at: AwareDatetime | None = None
    """``_timestamp`` of the newest row."""
    trainer_step: int | None = None
    """The trainer's own step in the summary; None when it logs none."""
    summary: dict[str, float] = {}
    """The last values of the figures of the contract's ``[metrics]``, NaN and infinities included."""
    namesakes: tuple[str, ...] = ()
    """Ids of further runs in the project with the same display name."""
    forked_from: ForkPoint | None = None
    """Another run, whose history this one starts with."""
    resumed_from: int | None = None
    """The ``_step`` to which this run's own history was rewound, where the tracker tells."""
    execution: str = ""
    """What the run's config says of the execution that writes now, e.g. a job id; empty when it says nothing."""
