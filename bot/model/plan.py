"""Plans, requests and grants: exactly what would be done, the question, and the yes to exactly that (laws 2 and 3)."""

import hashlib
import json
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime

from bot.model.value import JobId, PersonName, RunId, Value


class PlannedCheckpoint(Value):
    """The checkpoint from which a launch is expected to resume."""

    step: int
    path: str


class RelaunchPlan(Value):
    """Stop the job if it still lives, then submit the same run once more.

    Every field is a fact that the DRI says yes to; a difference in any of them, seen when the plan is rebuilt just
    before it is carried out, changes the digest and voids the grant. So nothing that moves by itself (the current
    step, an age) belongs here.
    """

    kind: Literal["relaunch"] = "relaunch"
    run_id: RunId
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
    config_digest: str
    changes: tuple[str, ...]
    """What differs from the instance before; empty when nothing does."""

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's canonical JSON."""
        return hashlib.sha256(canonical_json(self).encode()).hexdigest()


type Plan = RelaunchPlan


def canonical_json(value: Value) -> str:
    """Return JSON that is equal for equal content: sorted keys, no spaces."""
    return json.dumps(value.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class RequestState(StrEnum):
    OPEN = "open"
    GRANTED = "granted"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"
    """The world changed: the plan that was asked about would not be carried out as it stands."""
    WITHDRAWN = "withdrawn"
    """The reason for asking is gone, e.g. the job was relaunched by hand."""


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

    def covers(self, plan: Plan, at: AwareDatetime) -> bool:
        """Whether this yes is for that very plan, and still counts."""
        return self.run_id == plan.run_id and self.digest == plan.digest and at < self.expires_at
