"""All readings of one run at one moment."""

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, Field

from bot.model.code import CodeState
from bot.model.hang import HangEvidence
from bot.model.job import Job
from bot.model.launched import LaunchedConfig
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.run import Instance
from bot.model.telemetry import Telemetry
from bot.model.tracker import TrackerState
from bot.model.value import RunId, Value


class Source(StrEnum):
    """The readings a snapshot is made of; checks name what they need with these words."""

    JOBS = "jobs"
    LOG = "log"
    METRICS = "metrics"
    CHECKPOINTS = "checkpoints"
    TRACKER = "tracker"
    """W&B's word on the run; read where the contract names a tracker and the settings a key."""
    TELEMETRY = "telemetry"
    """Finelog's word on the trainer: its phase and its last sign of life."""
    CODE = "code"
    """Git's word on the checkout; read where the checkout is a repository."""
    CONFIG = "config"
    """The launched, resolved configuration; read where the contract or the tracker tells where it is."""
    PODS = "pods"
    """Kubernetes' word on the tasks; read where the settings name a cluster."""
    EXPORT = "export"
    """What lies at the export root; read where the contract names one and the job has succeeded."""
    NEIGHBOURS = "neighbours"
    """The orchestrator's word on other live jobs of the run: older launches, relaunches under another name."""
    HANG = "hang"
    """What is on record of tasks that stand still; read once a check that needs it has failed."""


OPTIONAL = frozenset(
    {
        *(Source.TRACKER, Source.TELEMETRY, Source.CODE, Source.CONFIG, Source.PODS, Source.NEIGHBOURS),
        *(Source.EXPORT, Source.HANG),
    }
)
"""Sources that many runs do not have: when they are not configured, nothing is missing."""


class LogLine(Value):
    """One line that the run printed."""

    text: str
    at: AwareDatetime | None = None
    task: str | None = None
    attempt: int | None = None


class LogTail(Value):
    """The newest lines of the current instance, oldest first."""

    lines: tuple[LogLine, ...]
    is_cut: bool
    """Whether older lines of this instance exist that are not here."""

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


class MetricRow(Value):
    """What the trainer logged at one optimizer step. Values may be NaN or infinite: that is what we look for."""

    step: int
    values: dict[str, float]
    """By the words of the contract's ``[metrics]``: loss, grad_norm, tokens_per_second, step_time_s, lr …"""
    at: AwareDatetime | None = None


class Metrics(Value):
    """Rows of the current instance that were not handed out before, in the order in which they were logged."""

    rows: tuple[MetricRow, ...]
    cursor: str = ""
    """Where the next read goes on; opaque to everyone but the source."""
    unreadable: int = 0
    """How many lines looked like metrics and could not be read; never silently dropped."""
    is_from_start: bool = True
    """Whether the instance's first row is sure to come: a log scrolls, and W&B shows no step that it had before."""


class Checkpoint(Value):
    """One ``step-N`` directory."""

    step: int
    """The number of the directory's name, as a number: step-0900000 comes after step-100000 (field report R23)."""
    path: str
    is_complete: bool
    """Its ``metadata.json`` parses and names this very step."""
    is_temporary: bool = False
    saved_at: AwareDatetime | None = None
    fault: str = ""
    """Why it does not count as complete."""


def _not_configured(given: dict[str, Any]) -> Unknown:
    return Unknown(reason=Gap.NOT_CONFIGURED, detail="not configured for this run", at=given["at"])


class Snapshot(Value):
    """Everything that was read about one run at one moment; ``at`` is the only now that checks know."""

    run_id: RunId
    at: AwareDatetime
    instance: Instance | None
    """The launch that Hero believes is current; None before the first one was seen."""
    jobs: Reading[tuple[Job, ...]]
    """The current job first, then its children; Known(()) when the orchestrator answered that there is no such job."""
    log: Reading[LogTail]
    metrics: Reading[Metrics]
    checkpoints: Reading[tuple[Checkpoint, ...]]
    """All candidates in all roots, by step ascending; unparsable names are left out and named in the log."""
    tracker: Reading[TrackerState] = Field(default_factory=_not_configured)
    telemetry: Reading[Telemetry] = Field(default_factory=_not_configured)
    code: Reading[CodeState] = Field(default_factory=_not_configured)
    config: Reading[LaunchedConfig] = Field(default_factory=_not_configured)
    """Of the current instance; one that was launched before its configuration was written is Unknown, not the old."""
    pods: Reading[tuple[Pod, ...]] = Field(default_factory=_not_configured)
    export: Reading[int | None] = Field(default_factory=_not_configured)
    """Bytes at the export root, 0 when nothing is there; NOT_YET as long as the job has not succeeded."""
    neighbours: Reading[tuple[Job, ...]] = Field(default_factory=_not_configured)
    """Other live jobs of the run, neither the current one nor below it; their tasks are not read."""
    hang: Reading[HangEvidence] = Field(default_factory=_not_configured)
    """NOT_YET as long as nothing stands still."""

    def gaps(self) -> tuple[tuple[Source, Unknown], ...]:
        """Return what could not be read; no gap is what is not there yet, or an optional source nobody configured."""
        readings = ((source, self.reading(source)) for source in Source)
        return tuple(
            (source, reading)
            for source, reading in readings
            if isinstance(reading, Unknown)
            and reading.reason is not Gap.NOT_YET
            and not (source in OPTIONAL and reading.reason is Gap.NOT_CONFIGURED)
        )

    def reading(self, source: Source) -> Reading[object]:
        """Return the reading that goes by this name."""
        return {
            Source.JOBS: self.jobs,
            Source.LOG: self.log,
            Source.METRICS: self.metrics,
            Source.CHECKPOINTS: self.checkpoints,
            Source.TRACKER: self.tracker,
            Source.TELEMETRY: self.telemetry,
            Source.CODE: self.code,
            Source.CONFIG: self.config,
            Source.PODS: self.pods,
            Source.NEIGHBOURS: self.neighbours,
            Source.EXPORT: self.export,
            Source.HANG: self.hang,
        }[source]  # type: ignore[return-value]  # Known is invariant for mypy, and nobody writes through this one

    @property
    def job(self) -> Job | None:
        """The run's own job when it is known to exist; None is *not* proof of absence, look at ``jobs`` for that."""
        return self.jobs.value[0] if isinstance(self.jobs, Known) and self.jobs.value else None


def newest_complete(checkpoints: tuple[Checkpoint, ...]) -> Checkpoint | None:
    """Return the complete checkpoint with the highest step; among equals the permanent one, then by path."""
    complete = [c for c in checkpoints if c.is_complete]
    return max(complete, key=lambda c: (c.step, not c.is_temporary, c.path), default=None)
