"""The launch checklist: what is read before a launch, what each item of the list finds, and the decision over all."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from bot.model.contract import Basis, Contract
from bot.model.drift import ConfigShape
from bot.model.job import Job
from bot.model.launched import LaunchedConfig
from bot.model.reading import Reading
from bot.model.snapshot import Checkpoint, Snapshot
from bot.model.value import CheckId, JobId, PersonName, RunId, Value
from bot.model.verdict import Severity


class LaunchRules(Value):
    """The settings' ``[launch]``: what this house demands of every launch."""

    prefix: str = ""
    """Where durable outputs lie, e.g. ``gs://marin-us-east5``; below it ``users/NAME/``. Empty: not demanded."""
    cluster_prefixes: tuple[str, ...] = ("iris/",)
    """Path parts below the prefix that belong to a cluster and never to a run."""
    temporary_prefixes: tuple[str, ...] = ("tmp/", "ttl=")
    """Path parts that say: this is deleted by a lifecycle rule."""
    temporary_days: int = Field(default=30, gt=0)
    """How long such data lives at least, as the house's lifecycle rules say."""
    most_resume: int = 2
    """How many resume checkpoints may be kept without the DRI's word (manage-hero-run, "Launch")."""
    local_prefixes: tuple[str, ...] = ("/tmp/", "/dev/shm/", "/scratch/", "/local/")  # noqa: S108 - named, not used
    """Where node-local data may lie."""


class OtherRun(Value):
    """What another run, live or past, already has for its own."""

    run_id: RunId
    is_live: bool
    jobs: frozenset[JobId]
    """Of its contract and of every launch on record."""
    places: frozenset[str]
    """Its output, checkpoint, export, trace and session roots, as its contract writes them."""
    tracker: str = ""
    """``entity/project/id``; empty when it names none."""
    tracker_name: str = ""


class PairedRun(Value):
    """The other run of a trial that this one is in, or was."""

    run_id: RunId
    live: Reading[tuple[JobId, ...]]
    """Its jobs that live now; Known(()) when all that were ever launched are known not to."""


class Location(Value):
    """What a storage service says of one address of the contract."""

    address: str
    exists: bool
    """Whether anything lies there."""
    region: str = ""
    """Where its bucket is; empty for a file system, or when the service does not say."""
    expires_days: int | None = None
    """The shortest lifecycle rule that deletes what lies there; None when none does, or the service does not say."""
    is_told: bool = False
    """Whether the service told its bucket's lifecycle rules; to read them is a permission of its own."""
    has_bucket: bool = True
    """Whether there is such a bucket at all."""


class StepCount(Value):
    """How many steps the launched configuration trains for, and how that is known."""

    steps: int
    origin: str
    """The file and key, or the command, that it is from."""
    basis: Basis


class Preparation(Value):
    """Everything that was read before a launch. Items judge it and read nothing themselves."""

    contract: Contract
    """Its cadence resolved."""
    rules: LaunchRules
    at: AwareDatetime
    seen: Snapshot
    """Jobs, checkpoints, tracker, code and configuration of the run as it is."""
    is_first: bool
    """Whether no launch of this run is on record: some items hold for new names only."""
    trial_of: RunId | None = None
    """The run of whose trial this one is the child, while that is not over: its history in the tracker is forked from
    that run's, and it starts from the checkpoint that was agreed, and not from the newest."""
    planned_job: JobId | None
    """The job that the command would make; None when the command may not be submitted."""
    command: tuple[str, ...] = Field(repr=False)
    """As it would be run, secrets scrubbed."""
    problems: tuple[str, ...] = ()
    """Why the command may not be submitted, each with its fix."""
    planned: Reading[tuple[Job, ...]]
    """What the orchestrator says of the planned job's name now."""
    others: tuple[OtherRun, ...]
    paired: tuple[PairedRun, ...] = ()
    """The runs that this one was in a trial with."""
    start: Reading[tuple[Checkpoint, ...]]
    """The checkpoints beside ``initialize_from``, itself among them; Known(()) when the run starts from nothing."""
    checkpoint_bytes: Reading[int | None]
    """Measured size of the newest complete checkpoint; Known(None) when there is none yet."""
    steps: Reading[StepCount | None]
    """Known(None) when nothing that is launched tells."""
    reference: Reading[ConfigShape | None]
    """The configuration of the job that this launch has to preserve; Known(None) when the contract names none."""
    coming: Reading[LaunchedConfig | None]
    """The configuration that the command launches with; Known(None) when the contract names none."""
    launched_before: ConfigShape | None = None
    """Of the newest launch whose configuration was read; None when there is none."""
    code_changes: Reading[tuple[str, ...]] | None = None
    """The paths that differ between the commit of the launch before and the contract's; None when they are the same, or
    when one of the two is not on record."""
    locations: dict[str, Reading[Location]] = {}
    """By the contract's field: ``output_root``, ``resume_root``, ``export_root`` … ``datasets.0``."""
    reachable: dict[PersonName, tuple[str, ...]] = {}
    """By person of ``[people]``: the channels on which they can be asked. Nobody else is a key."""


class Weight(StrEnum):
    """What a finding means for the launch."""

    BLOCKS = "blocks"
    """It must be mended."""
    ASKS = "asks"
    """The DRI may accept it, by a yes to a plan that names it."""
    UNKNOWN = "unknown"
    """Something that is needed could not be read: nothing is launched on a guess."""
    NOTE = "note"
    """Worth a look; holds nothing up."""


class PreflightFinding(Value):
    """One thing that speaks against a launch."""

    check: CheckId
    weight: Weight
    message: str
    """What is wrong, with the value and its basis."""
    fix: str

    @property
    def severity(self) -> Severity:
        """In the words of all findings."""
        match self.weight:
            case Weight.BLOCKS:
                return Severity.CRITICAL
            case Weight.ASKS | Weight.UNKNOWN:
                return Severity.WARNING
            case Weight.NOTE:
                return Severity.INFO


class PreflightValue(Value):
    """One value of the launch, printed before it."""

    name: str
    """The contract's field where there is one, e.g. ``output_root`` or ``tracker.id``; else a word of the item's."""
    value: str | None
    """In words, secrets scrubbed; ``none`` is written out. None for what is not stated and not known otherwise."""
    basis: Basis | None
    """None beside no value."""


class Decision(StrEnum):
    READY = "ready"
    BLOCKED = "blocked"
    NEEDS_DRI = "needs_dri"


class PreflightReport(Value):
    """What the whole list says."""

    values: tuple[PreflightValue, ...]
    findings: tuple[PreflightFinding, ...]
    changes: tuple[str, ...] = ()
    """What this launch changes by agreement, one line each, for the request."""

    @property
    def decision(self) -> Decision:
        """Blocked by whatever must be mended or is not known; else whether the DRI has to accept something."""
        weights = {finding.weight for finding in self.findings}
        if weights & {Weight.BLOCKS, Weight.UNKNOWN}:
            return Decision.BLOCKED
        return Decision.NEEDS_DRI if Weight.ASKS in weights else Decision.READY

    @property
    def is_unknown(self) -> bool:
        """Whether nothing but what could not be read stands in the way."""
        weights = {finding.weight for finding in self.findings}
        return Weight.UNKNOWN in weights and Weight.BLOCKS not in weights

    def of(self, weight: Weight) -> tuple[PreflightFinding, ...]:
        return tuple(finding for finding in self.findings if finding.weight is weight)
