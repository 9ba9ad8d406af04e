"""Plans, requests and grants: exactly what would be done, the question, and the yes to exactly that (laws 2 and 3)."""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from bot.model.ladder import Climb
from bot.model.planned import CleanUpPlan, PlanBase, RelaunchPlan, SealPlan, StopPlan
from bot.model.trialplan import CutOverPlan, GoPlan, RollbackPlan, TrialPlan
from bot.model.value import PersonName, RunId, Value

type Plan = Annotated[
    RelaunchPlan | StopPlan | CleanUpPlan | SealPlan | TrialPlan | CutOverPlan | GoPlan | RollbackPlan,
    Field(discriminator="kind"),
]


class RequestState(StrEnum):
    OPEN = "open"
    GRANTED = "granted"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"
    """The world changed: the plan that was asked about would not be carried out as it stands."""
    WITHDRAWN = "withdrawn"
    """The reason for asking is gone, e.g. the job was relaunched by hand."""


class Yes(Value):
    """One person's yes, where more than one is needed."""

    by: PersonName
    at: AwareDatetime
    via: str
    """Platform and event, as ``Request.decided_via``."""


class Request(Value):
    """A plan put to the DRI."""

    number: int
    run_id: RunId
    plan: Plan
    reason: str
    """Why it is asked: the finding's summary."""
    incident: int | None
    state: RequestState = RequestState.OPEN
    dri: PersonName
    asked_at: AwareDatetime
    expires_at: AwareDatetime
    reminded_at: AwareDatetime | None = None
    climb: Climb | None = None
    """How far people were reached for it beyond the first message; None before that began."""
    yeses: tuple[Yes, ...] = ()
    """Those that came so far, where more than one is needed; the last one makes the grant."""
    decided_by: PersonName | None = None
    decided_at: AwareDatetime | None = None
    decided_via: str = ""
    """Platform and event of the decision, for the audit."""
    note: str = ""
    """The reason that came with a no, or why it was voided."""

    @property
    def name(self) -> str:
        """What people call it by: ``R7``."""
        return f"R{self.number}"

    @property
    def digest(self) -> str:
        return self.plan.digest


class Grant(Value):
    """The DRI's yes to one plan, by digest, once, before it expires.

    Nothing that changes the world can be called without one. It is made in one place, ``handlers.decision``, from a
    reply that passed every test there.
    """

    request: int
    run_id: RunId
    digest: str
    by: PersonName
    at: AwareDatetime
    expires_at: AwareDatetime

    def covers(self, plan: PlanBase, at: AwareDatetime) -> bool:
        """Whether this yes is for that very plan, and still counts."""
        return self.run_id == plan.run_id and self.digest == plan.digest and at < self.expires_at

    def for_part(self, whole: PlanBase, part: PlanBase) -> "Grant":
        """Return the same yes as it holds for one part of the plan that it is for.

        Raises:
            AssertionError: this yes is for another plan, or that is no part of it; the caller should have known.
        """
        is_for_whole = self.run_id == whole.run_id and self.digest == whole.digest
        if not is_for_whole or part not in whole.parts:
            msg = f"the yes to plan {self.digest[:12]} of {self.run_id} does not hold for {part.digest[:12]}"
            raise AssertionError(msg)
        return self.model_copy(update={"run_id": part.run_id, "digest": part.digest})
