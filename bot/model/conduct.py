"""A trial under way, as Hero remembers it with the old run: what was agreed, how far it is, and why.

The stages are those of docs/trial.md; ``handlers/trial/`` moves a trial from one to the next, and nothing else does.
"""

from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.trialplan import TrialPlan
from bot.model.value import PersonName, Value


class Stage(StrEnum):
    """How far a trial is. Whatever fails once the old run was stopped goes on at ``NO_GO``."""

    PLANNED = "planned"
    """The DRI has agreed to the plan."""
    RECORDED = "recorded"
    """Code and launch values are on the main branch, and whoever pins the old run is on the list."""
    REHEARSED = "rehearsed"
    """Every guard passed in a dry run against the live cluster, and somebody independent has looked at it."""
    CONTROL_COMPLETE = "control_complete"
    """The old run has logged every step of the window."""
    FORKED = "forked"
    """The tracker's history is forked, where there is one."""
    OLD_STOPPED = "old_stopped"
    """The old job and its tasks are seen to have ended. From here on nothing trains until the child does."""
    LAUNCHED = "launched"
    """Exactly one job of the child lives."""
    RUNNING = "running"
    """The child has loaded the handoff checkpoint and trains."""
    GO = "go"
    NO_GO = "no_go"
    """The child is not accepted, or could not be launched: the old run is launched again."""
    ROLLED_BACK = "rolled_back"
    """The old run trains again; its replayed steps are compared with its own trajectory."""
    CLOSED = "closed"

    @property
    def is_before_the_stop(self) -> bool:
        """Whether the old run is still the one that trains."""
        return self in {Stage.PLANNED, Stage.RECORDED, Stage.REHEARSED, Stage.CONTROL_COMPLETE, Stage.FORKED}

    @property
    def is_cut_over(self) -> bool:
        """Whether the old run was stopped for the child, and nobody has decided for good yet."""
        return self in {Stage.OLD_STOPPED, Stage.LAUNCHED, Stage.RUNNING, Stage.NO_GO}


STAGE_WORDS = {
    Stage.PLANNED: "agreed",
    Stage.RECORDED: "its launch record is on main",
    Stage.REHEARSED: "rehearsed and reviewed",
    Stage.CONTROL_COMPLETE: "the control is complete",
    Stage.FORKED: "the tracker's history is forked",
    Stage.OLD_STOPPED: "the old run is stopped",
    Stage.LAUNCHED: "the child is launched",
    Stage.RUNNING: "the child trains",
    Stage.GO: "go",
    Stage.NO_GO: "no-go",
    Stage.ROLLED_BACK: "rolled back",
    Stage.CLOSED: "closed",
}
"""How people read a stage."""


class Ending(StrEnum):
    """How a trial came to its end."""

    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"
    ABANDONED = "abandoned"
    """Before the old run was stopped."""


class Review(Value):
    """Somebody independent has looked at the plan and its rehearsal."""

    by: PersonName
    at: AwareDatetime
    covers: str = ""
    """The child's contract that was reviewed, as its ``config_digest``; empty on record from before this was noted."""


class Standing(Value):
    """The DRI's yes, given with the plan, to roll a failed trial back."""

    by: PersonName
    at: AwareDatetime
    via: str
    """Platform and event of that yes, for the audit."""


class Step(Value):
    """When a stage was reached."""

    stage: Stage
    at: AwareDatetime


class Told(Value):
    """Something that was told, so that it is not told again before it changes."""

    digest: str
    at: AwareDatetime


class Trial(Value):
    """One trial of a run."""

    plan: TrialPlan
    """What was agreed."""
    request: int
    """The request whose yes that was."""
    agreed_by: PersonName
    agreed_at: AwareDatetime
    stage: Stage = Stage.PLANNED
    steps: tuple[Step, ...] = ()
    """Every stage that was reached, oldest first."""
    review: Review | None = None
    standing: Standing | None = None
    """None: a rollback is put to the DRI."""
    ending: Ending | None = None
    why: str = ""
    """Why it is a no-go, or was abandoned."""
    is_unclear: bool = False
    """Whether it is a no-go because something could not be read: then the yes in advance is not used, since nothing is
    undone on a guess."""
    child_instance: str = ""
    """``JOB_ID@SUBMITTED`` of the child's launch; empty before exactly one was seen."""
    startup_limit_s: int | None = None
    report_url: str = ""
    """Where the comparison is shown; it is told before the child's first step."""
    tracker_report_url: str = ""
    report_tried: int = 0
    """How often the tracker's report was begun; counted before each try."""
    rollback_wanted_by: PersonName | None = None
    """Who asked by command for the rollback; it is planned at the next look."""
    question_wanted_by: PersonName | None = None
    """Who asked by command that a question which was answered or has expired is put once more."""
    window_over_at: AwareDatetime | None = None
    """When the child was first seen beyond the window; what is late still arrives for a while after it."""
    told: dict[str, Told] = {}
    """What was last told at this stage, by what it is about: there are updates on change alone."""
    compared: str = ""
    """The newest comparison, as JSON of ``bot.model.trial.Comparison``; empty before the first."""

    @property
    def is_over(self) -> bool:
        return self.stage is Stage.CLOSED

    def reached(self, stage: Stage, at: AwareDatetime, **changes: object) -> "Trial":
        """Return the trial at a stage, with when it got there, and whatever else changes with that."""
        steps = (*self.steps, Step(stage=stage, at=at))
        return self.model_copy(update={"stage": stage, "steps": steps, **changes})

    def reached_at(self, stage: Stage) -> AwareDatetime | None:
        """When a stage was reached last; None when it was not."""
        return next((each.at for each in reversed(self.steps) if each.stage is stage), None)
