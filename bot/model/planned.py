"""What each kind of action would do, exactly; ``bot.model.plan`` has the union of them, requests and grants."""

import hashlib
import json
from typing import ClassVar, Literal

from pydantic import Field

from bot.model.value import JobId, RunId, Value


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

    @property
    def parts(self) -> tuple["PlanBase", ...]:
        """The plans of which this one is made up, where it is: a yes to it is a yes to each of them."""
        return ()


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


class NoPlan(Value):
    """Why no plan can be made now, and what would make one possible."""

    reason: str
    fix: str
    is_unknown: bool
    """True when something could not be read: it may be possible at the next look, and nothing is concluded."""
    evidence: tuple[str, ...] = ()
    """What else stands in the way, one line each with its fix."""


def canonical_json(content: Value | dict[str, object]) -> str:
    """Return JSON that is equal for equal content: sorted keys, no spaces."""
    if isinstance(content, Value):
        content = content.model_dump(mode="json")
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
