"""What a snapshot is read from. Sources only read; a deadline of their own is on every question."""

from datetime import datetime
from typing import Protocol

from bot.model.code import CodeState
from bot.model.contract import Contract
from bot.model.hang import HangEvidence
from bot.model.job import Job
from bot.model.launched import LaunchedConfig
from bot.model.pods import Pod
from bot.model.reading import Reading
from bot.model.series import RunRows
from bot.model.snapshot import Checkpoint, LogTail, Metrics
from bot.model.telemetry import Telemetry
from bot.model.tracker import TrackerState
from bot.model.value import JobId


class Orchestrator(Protocol):
    """Jobs and what they print."""

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        """Ask for a job and its children, the job first; Known(()) only when it answered that there is none."""
        ...

    async def neighbours(
        self, contract: Contract, job_id: JobId | None, past: tuple[JobId, ...]
    ) -> Reading[tuple[Job, ...]]:
        """Ask which other jobs of the run live, that are neither this one nor below it.

        Args:
            contract: of the run.
            job_id: the job that is believed to be the run; None before there was one.
            past: the jobs of its recorded launches.
        """
        ...

    async def log(self, contract: Contract, job_id: JobId, since: datetime | None) -> Reading[LogTail]:
        """Ask for the newest lines of the job and its children that were printed after ``since``.

        ``since`` is the instance's submission: a namesake's older lines stay under the same key.
        """
        ...


class MetricsSource(Protocol):
    """Figures that the trainer logged."""

    async def metrics(
        self,
        contract: Contract,
        *,
        since: datetime | None,
        cursor: str,
        log: Reading[LogTail],
        jobs: Reading[tuple[Job, ...]],
    ) -> Reading[Metrics]:
        """Return the rows after ``cursor`` that belong to the instance submitted at ``since``.

        Rows come from the contract's metrics file where there is one, else from the lines in ``log``. ``jobs`` is what
        the orchestrator says now: a source whose rows name who wrote them tells attempts apart by it, and not by time.
        """
        ...


class CheckpointSource(Protocol):
    """Saved states of a run."""

    async def checkpoints(self, contract: Contract) -> Reading[tuple[Checkpoint, ...]]:
        """List the ``step-N`` directories of all the contract's roots, by step ascending.

        Known(()) only when every root answered; a root that does not exist yet holds none, one that may not be read
        makes the whole reading Unknown (field report R25).
        """
        ...


class TrackerSource(Protocol):
    """The experiment tracker, as a witness."""

    async def tracker(self, contract: Contract) -> Reading[TrackerState]:
        """Say what the tracker shows of the run; a run that it does not have is Known, as MISSING."""
        ...


class TelemetrySource(Protocol):
    """What the trainer reports of its own life."""

    async def telemetry(self, contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Reading[Telemetry]:
        """Say what the newest signs of life are, and whether they are of the attempt that ``jobs`` shows."""
        ...


class ExportSource(Protocol):
    """What a run leaves for others."""

    async def exported_bytes(self, contract: Contract) -> Reading[int | None]:
        """Return the size of all that lies at the export root, 0 when nothing does; Known(None) without such a root."""
        ...


class CodeSource(Protocol):
    """The run's source, as git tells it."""

    async def code(self, contract: Contract) -> Reading[CodeState]:
        """Say what the contract's checkout holds and how its source commit lies to the remote's branches.

        NOT_CONFIGURED when the contract names no commit and its checkout is no repository.
        """
        ...


class ConfigSource(Protocol):
    """The configuration that the trainer resolved."""

    async def config(
        self, contract: Contract, jobs: Reading[tuple[Job, ...]], tracker: Reading[TrackerState]
    ) -> Reading[LaunchedConfig]:
        """Read the current instance's configuration; NOT_CONFIGURED when nothing tells where it would be."""
        ...


class PodSource(Protocol):
    """Kubernetes, as a witness."""

    async def pods(self, contract: Contract, job_id: JobId) -> Reading[tuple[Pod, ...]]:
        """List the pods of a job's tasks and of those below it; Known(()) only when the cluster answered so.

        The job is told by its id and not by what the orchestrator knows of it: pods may outlive their job.
        """
        ...


class HangSource(Protocol):
    """What is on record of a run that stands still. Nothing is asked of the tasks themselves."""

    async def hang(self, contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Reading[HangEvidence]:
        """Gather it for the tasks that ``jobs`` shows alive; each part that cannot be read is Unknown by itself."""
        ...


class RowsSource(Protocol):
    """What a run logged between two steps, every row of it, told apart by who logged it."""

    async def rows(
        self, contract: Contract, *, first_step: int, last_step: int, figures: tuple[str, ...]
    ) -> Reading[RunRows]:
        """Return every row of these steps, of all executions of the run.

        Args:
            contract: of the run; its ``[metrics]`` says what its figures are called.
            first_step: of the rows.
            last_step: inclusive.
            figures: Hero's words, or the figures' own names; empty for all that the run logs.
        """
        ...
