"""An action is carried out step by step; each step's intent is committed before it and its outcome after it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime

from bot.model.plan import Grant, Plan
from bot.model.planned import RelaunchPlan
from bot.model.trialplan import CutOverPlan, RollbackPlan
from bot.model.value import RunId, Value


class StepName(StrEnum):
    """The steps of all kinds of actions."""

    VERIFY = "verify"
    """Read the world anew, rebuild the plan, compare digests."""
    STOP = "stop"
    """Stop the old job if it is not terminal, and see it terminal."""
    SUBMIT = "submit"
    """Submit exactly once and learn the job id."""
    CONFIRM = "confirm"
    """See exactly one live job of the run."""
    STABILISE = "stabilise"
    """120 s after the submission: it has not died at once."""
    RESTORE = "restore"
    """It loaded the planned checkpoint and its training loop has begun."""
    DELETE = "delete"
    """Delete the listed checkpoints, one after the other, each looked at right before."""
    TAG = "tag"
    """Create the seal's tag exactly once."""
    FORK = "fork"
    """Fork the tracker's history exactly once."""


STEPS: Mapping[str, tuple[StepName, ...]] = {
    "relaunch": (
        StepName.VERIFY,
        StepName.STOP,
        StepName.SUBMIT,
        StepName.CONFIRM,
        StepName.STABILISE,
        StepName.RESTORE,
    ),
    "stop": (StepName.VERIFY, StepName.STOP),
    "cleanup": (StepName.VERIFY, StepName.DELETE),
    "seal": (StepName.VERIFY, StepName.TAG),
    "trial": (StepName.VERIFY,),
    "cutover": (
        StepName.VERIFY,
        StepName.FORK,
        StepName.STOP,
        StepName.SUBMIT,
        StepName.CONFIRM,
        StepName.STABILISE,
        StepName.RESTORE,
    ),
    "go": (StepName.VERIFY,),
    "rollback": (
        StepName.VERIFY,
        StepName.STOP,
        StepName.SUBMIT,
        StepName.CONFIRM,
        StepName.STABILISE,
        StepName.RESTORE,
    ),
}
"""The steps of each kind of plan, in their order."""

CHANGING = frozenset({StepName.STOP, StepName.SUBMIT, StepName.DELETE, StepName.TAG, StepName.FORK})
"""The steps that change the world; once one is begun, a yes cannot be taken back by deleting it."""


class Done(Value):
    kind: Literal["done"] = "done"
    detail: str
    has_succeeded: bool = False
    """Whether the submitted job was seen to have ended well by then: it trains no more."""
    step: int | None = None
    """The newest optimizer step that the new instance was seen to have logged."""


class Refused(Value):
    """It was not done and the world is as before; the action ends here."""

    kind: Literal["refused"] = "refused"
    detail: str
    has_ended: bool = False
    """Whether the submitted job was seen to be over: there is nothing left to stop by hand."""
    asks_anew: bool = False
    """Whether the old job was ended already and the plan no longer holds: the next check puts it anew by itself."""
    is_unseen: bool = False
    """Whether the orchestrator answered to the last that it shows no job of this submission."""
    is_unknown: bool = False
    """Whether it was given up because something could not be read to the last: nothing is shown to be wrong."""


class Uncertain(Value):
    """It may or may not have happened: the world must be asked before anything else."""

    kind: Literal["uncertain"] = "uncertain"
    detail: str
    is_over: bool = False
    """Whether the try ended by itself: when nothing has come of it, that is why, and it is not tried again."""


class Waiting(Value):
    """Not yet: ask again later. Only for steps that watch and change nothing."""

    kind: Literal["waiting"] = "waiting"
    detail: str
    is_unseen: bool = False
    """Whether the orchestrator answered, and shows no job of this submission."""
    is_unknown: bool = False
    """Whether it waits because something could not be read."""


type StepOutcome = Done | Refused | Uncertain | Waiting


class StepRecord(Value):
    """One row of the actions' ledger."""

    step: StepName
    intent_at: AwareDatetime
    outcome: StepOutcome | None = None
    """None between intent and outcome; after a crash, resolved by asking the world."""
    outcome_at: AwareDatetime | None = None

    @property
    def is_done(self) -> bool:
        return isinstance(self.outcome, Done)


class ActionState(StrEnum):
    GRANTED = "granted"
    """To be carried out, or under way."""
    DONE = "done"
    FAILED = "failed"
    """Refused by the world or by a guard; nothing further is done."""
    VOID = "void"
    """The rebuilt plan differs from the granted one; nothing was done."""


class Action(Value):
    """One granted plan on its way to being done."""

    number: int
    run_id: RunId
    plan: Plan
    grant: Grant
    state: ActionState = ActionState.GRANTED
    records: tuple[StepRecord, ...] = ()
    metrics_cursor: str = ""
    """Where the metrics ended when the new job was submitted: what comes after it is the new instance's."""
    noted: str = ""
    """What it waits for, or why it ended as it did."""
    submits: int = 0
    """How often a submission was begun; counted before each, so it may be one too many but never one too few."""
    submit_failure: str = ""
    """What a submission said that ended by itself, without the planned job being known yet."""
    tries: dict[StepName, int] = {}
    """How often a change was begun, by its step; counted before each, as ``submits`` is."""

    def record(self, step: StepName) -> StepRecord | None:
        """Return the newest record of a step, None when it was never begun."""
        return next((r for r in reversed(self.records) if r.step is step), None)

    @property
    def next_step(self) -> StepName | None:
        """The first step that is not done; None when all are."""
        return next((s for s in STEPS[self.plan.kind] if not ((r := self.record(s)) and r.is_done)), None)

    @property
    def relaunch(self) -> RelaunchPlan:
        """The plan of an action that launches.

        Raises:
            AssertionError: the action is of another kind; the caller should have known.
        """
        match self.plan:
            case RelaunchPlan() as plan:
                return plan
            case CutOverPlan(launch=launch) | RollbackPlan(launch=RelaunchPlan() as launch):
                return launch
            case _:
                msg = f"action {self.number} is a {self.plan.kind} and launches nothing"
                raise AssertionError(msg)

    @property
    def launches(self) -> bool:
        """Whether a job is submitted on the way."""
        return StepName.SUBMIT in STEPS[self.plan.kind]

    @property
    def runs(self) -> frozenset[RunId]:
        """Every run whose jobs it stops or launches, and its own: of two that share one, only one is under way."""
        others = {self.plan.child_run_id} if isinstance(self.plan, RollbackPlan) else set()
        return frozenset({self.run_id, *(part.run_id for part in self.plan.parts), *others})

    def begun(self, step: StepName, at: AwareDatetime) -> "Action":
        """Return the action with the intent of a step noted."""
        return self.model_copy(update={"records": (*self.records, StepRecord(step=step, intent_at=at))})

    def ended(self, step: StepName, outcome: StepOutcome, at: AwareDatetime) -> "Action":
        """Return the action with the outcome of its begun step noted."""
        last = self.record(step)
        if last is None:
            msg = f"step {step} of action {self.number} has an outcome but no intent"
            raise AssertionError(msg)
        closed = last.model_copy(update={"outcome": outcome, "outcome_at": at})
        return self.model_copy(update={"records": tuple(closed if r is last else r for r in self.records)})
