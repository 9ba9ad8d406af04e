"""Plans, requests and grants: exactly what would be done, the question, and the yes to exactly that (laws 2 and 3)."""

import hashlib
import json
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import AwareDatetime, Field

from bot.model.ladder import Climb
from bot.model.value import JobId, PersonName, RunId, Value


class PlanBase(Value):
    """Exactly what one action would do.

    Every field is a fact that the DRI says yes to; a difference in any of them, seen when the plan is rebuilt just
    before it is carried out, changes the digest and voids the grant. So nothing that moves by itself (the current
    step, an age) belongs in a plan.
    """

    LATER: ClassVar[frozenset[str]] = frozenset()
    """Fields that came after plans of this kind were first stored: while empty they are no part of the digest, so that
    a yes given before an upgrade still counts after it."""

    run_id: RunId

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's canonical JSON."""
        content = self.model_dump(mode="json")
        content = {name: value for name, value in content.items() if value or name not in self.LATER}
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()


class PlannedCheckpoint(Value):
    """The checkpoint from which a launch is expected to resume."""

    step: int
    path: str


class RelaunchPlan(PlanBase):
    """Stop the job if it still lives, then submit the run: its first launch, or once more."""

    LATER: ClassVar[frozenset[str]] = frozenset({"accepts", "code"})

    kind: Literal["relaunch"] = "relaunch"
    instance: str
    """The instance that is replaced, as ``JOB_ID@SUBMITTED``; empty when no job of the run was found."""
    stop: JobId | None
    """The job to stop first; None when it is terminal already."""
    command: tuple[str, ...]
    """The submit command, argument by argument, secrets scrubbed."""
    command_sha256: str
    """Digest of the command as it will really be run, with its secrets."""
    environment: tuple[str, ...] = ()
    """The names of the variables that the contract adds; their values may be secrets, and are in the digest alone."""
    directory: str
    """Where the command is run."""
    job_id: JobId
    """The job that will exist afterwards."""
    output_root: str
    resume_from: PlannedCheckpoint | None
    """None only when no complete checkpoint exists: training would begin at step 0."""
    source_sha: str | None
    code: str = ""
    """What would be launched from the checkout: its commit, and the digest of what is changed beside it and counts.
    Empty when it is no repository, or when a bundle is submitted in its place."""
    config_digest: str
    changes: tuple[str, ...]
    """What differs from the instance before; empty when nothing does."""
    accepts: tuple[str, ...] = ()
    """What the launch checklist could not clear and leaves to the DRI: a yes to this plan is a yes to each line."""


class StopPlan(PlanBase):
    """End the run's job and see it terminal. The run stays stopped until somebody asks for a launch."""

    kind: Literal["stop"] = "stop"
    stop: JobId
    instance: str
    """The launch that is ended, as ``JOB_ID@SUBMITTED``; a namesake after it is not touched."""


class PlannedRemoval(Value):
    """One checkpoint that would be deleted for good."""

    step: int
    path: str
    size_bytes: int | None
    """None when it could not be measured; shown as unknown."""


class CleanUpPlan(PlanBase):
    """Delete exactly these checkpoints and nothing else."""

    kind: Literal["cleanup"] = "cleanup"
    removals: tuple[PlannedRemoval, ...] = Field(min_length=1)
    """By step ascending."""
    keep: int | None = None
    """How many of the newest stay, when that was asked for; at least what the contract says stays in any case."""


class SealPlan(PlanBase):
    """Create the tag that says: this run is finished and everything of it is where it should be."""

    kind: Literal["seal"] = "seal"
    repository: str
    """``owner/name`` in which the tag is created."""
    tag: str
    sha: str
    """The commit that it points to: the source of the instance that finished."""
    message: str
    """The tag's own text: final step, checkpoint, tracker, DRI."""
    final_step: int
    checkpoint: PlannedCheckpoint


type Plan = Annotated[RelaunchPlan | StopPlan | CleanUpPlan | SealPlan, Field(discriminator="kind")]


def canonical_json(content: Value | dict[str, object]) -> str:
    """Return JSON that is equal for equal content: sorted keys, no spaces."""
    if isinstance(content, Value):
        content = content.model_dump(mode="json")
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


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
