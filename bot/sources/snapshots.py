"""Reads all sources of a run side by side. It always ends with a snapshot, with Unknowns where needed."""

import asyncio
from collections.abc import Awaitable, Mapping
from datetime import datetime, timedelta

import structlog

from bot.clock import Clock
from bot.model.code import CodeState
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.job import Job, JobState
from bot.model.launched import LaunchedConfig
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.run import Instance
from bot.model.snapshot import OPTIONAL, LogTail, Snapshot, Source
from bot.model.telemetry import Telemetry
from bot.model.tracker import TrackerState
from bot.model.value import JobId, RunId
from bot.sources.chosen import is_tracked
from bot.sources.ports import (
    CheckpointSource,
    CodeSource,
    ConfigSource,
    ExportSource,
    HangSource,
    MetricsSource,
    Orchestrator,
    PodSource,
    TelemetrySource,
    TrackerSource,
)

log = structlog.get_logger()


class SnapshotReader:
    """Every source of every run, each behind its own deadline."""

    def __init__(
        self,
        *,
        orchestrators: Mapping[str, Orchestrator],
        metrics: MetricsSource,
        checkpoints: CheckpointSource,
        clock: Clock,
        deadline: timedelta,
        tracker: TrackerSource | None = None,
        telemetry: TelemetrySource | None = None,
        code: CodeSource | None = None,
        config: ConfigSource | None = None,
        pods: PodSource | None = None,
        exports: ExportSource | None = None,
        hang: HangSource | None = None,
    ) -> None:
        """Take the sources.

        Args:
            orchestrators: by the contract's ``[orchestrator] kind``.
            metrics: figures that trainers logged.
            checkpoints: directories of saved states.
            clock: for the moment of the readings.
            deadline: of one source's answer. The sources have deadlines of their own inside; this fence is for one
                that forgets.
            tracker: None when none is configured.
            telemetry: None when none is configured.
            code: git.
            config: launched configurations.
            pods: None when no Kubernetes is configured.
            exports: None when nobody looks at export roots.
            hang: None when nothing keeps what tells one hang from another.
        """
        self._hang = hang
        self._exports = exports
        self._tracker = tracker
        self._telemetry = telemetry
        self._code = code
        self._config = config
        self._pods = pods
        self._orchestrators = orchestrators
        self._metrics = metrics
        self._checkpoints = checkpoints
        self._clock = clock
        self._deadline = deadline
        self._dark: dict[tuple[RunId, Source], datetime] = {}

    async def read(
        self, contract: Contract, instance: Instance | None, cursor: str, past: tuple[JobId, ...] = ()
    ) -> Snapshot:
        """Ask every source now.

        Args:
            contract: of the run.
            instance: the launch that is believed to be current.
            cursor: where the last read of the metrics ended.
            past: the jobs of all launches on record.
        """
        async with asyncio.TaskGroup() as group:
            checkpoints = group.create_task(
                self._guard(contract, Source.CHECKPOINTS, self._checkpoints.checkpoints(contract)), name="checkpoints"
            )
            tracker = group.create_task(self._read_tracker(contract), name="tracker")
            code = group.create_task(self._read_code(contract), name="code")
            job_id = instance.job_id if instance else contract.orchestrator.job_id
            pods = group.create_task(self.pods(contract, job_id), name="pods")
            neighbours = group.create_task(self.neighbours(contract, job_id, past), name="neighbours")
            jobs = await self._read_jobs(contract, job_id)
            since = _submitted_at(jobs, instance)
            export = group.create_task(self._read_export(contract, jobs), name="export")
            telemetry = group.create_task(self._read_telemetry(contract, jobs), name="telemetry")
            config = group.create_task(self._read_config(contract, jobs, tracker), name="config")
            lines = await self._read_log(contract, job_id, since)
            metrics = await self._guard(
                contract,
                Source.METRICS,
                self._metrics.metrics(contract, since=since, cursor=cursor, log=lines, jobs=jobs),
            )
        return Snapshot(
            run_id=contract.run_id,
            at=self._clock.now(),
            instance=instance,
            jobs=jobs,
            log=lines,
            metrics=metrics,
            checkpoints=checkpoints.result(),
            tracker=tracker.result(),
            telemetry=telemetry.result(),
            code=code.result(),
            config=config.result(),
            pods=pods.result(),
            neighbours=neighbours.result(),
            export=export.result(),
            hang=self._not_hung(contract),
        )

    async def with_hang(self, contract: Contract, seen: Snapshot) -> Snapshot:
        """Return the same look, and what is on record of its tasks: for a run that was found to stand still."""
        if self._hang is None or contract.orchestrator.kind != "iris":
            return seen
        return seen.model_copy(
            update={"hang": await self._guard(contract, Source.HANG, self._hang.hang(contract, seen.jobs))}
        )

    def _not_hung(self, contract: Contract) -> Unknown:
        if self._hang is None or contract.orchestrator.kind != "iris":
            return self._absent("no Finelog is configured for this run")
        detail = "nothing stands still, so it is not asked"
        return Unknown(reason=Gap.NOT_YET, detail=detail, at=self._clock.now())

    async def _read_tracker(self, contract: Contract) -> Reading[TrackerState]:
        if self._tracker is None or not is_tracked(contract):
            return self._absent("the contract names no tracked run, or [wandb] has no key")
        return await self._guard(contract, Source.TRACKER, self._tracker.tracker(contract))

    async def _read_telemetry(self, contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Reading[Telemetry]:
        if self._telemetry is None or contract.orchestrator.kind != "iris":
            return self._absent("no Finelog is configured for this run")
        return await self._guard(contract, Source.TELEMETRY, self._telemetry.telemetry(contract, jobs))

    async def _read_code(self, contract: Contract) -> Reading[CodeState]:
        if self._code is None:
            return self._absent("no git is configured")
        return await self._guard(contract, Source.CODE, self._code.code(contract))

    async def _read_config(
        self, contract: Contract, jobs: Reading[tuple[Job, ...]], tracker: asyncio.Task[Reading[TrackerState]]
    ) -> Reading[LaunchedConfig]:
        if self._config is None:
            return self._absent("no source of launched configurations is configured")
        return await self._guard(contract, Source.CONFIG, self._config.config(contract, jobs, await tracker))

    async def pods(self, contract: Contract, job_id: JobId | None) -> Reading[tuple[Pod, ...]]:
        """Ask Kubernetes alone, as an action does that must know whether an old job's pods are gone."""
        if self._pods is None or contract.orchestrator.kind != "iris" or job_id is None:
            return self._absent("no Kubernetes is configured for this run")
        return await self._guard(contract, Source.PODS, self._pods.pods(contract, job_id))

    async def _read_export(self, contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Reading[int | None]:
        """Look at the export root once the job has succeeded: before that it costs, and says nothing."""
        if self._exports is None or contract.export_root is None:
            return self._absent("the contract names no export_root, or nobody reads it")
        if not isinstance(jobs, Known) or not jobs.value or jobs.value[0].state is not JobState.SUCCEEDED:
            detail = "the job is not seen to have succeeded, so its export is not looked at"
            return Unknown(reason=Gap.NOT_YET, detail=detail, at=self._clock.now())
        return await self._guard(contract, Source.EXPORT, self._exports.exported_bytes(contract))

    async def neighbours(
        self, contract: Contract, job_id: JobId | None, past: tuple[JobId, ...]
    ) -> Reading[tuple[Job, ...]]:
        """Ask alone whether other jobs of the run live, as an action does that may start none beside them."""
        orchestrator = self._orchestrators.get(contract.orchestrator.kind)
        if orchestrator is None:
            return self._not_configured(contract)
        return await self._guard(contract, Source.NEIGHBOURS, orchestrator.neighbours(contract, job_id, past))

    def _absent(self, detail: str) -> Unknown:
        return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=self._clock.now())

    async def _read_jobs(self, contract: Contract, job_id: JobId | None) -> Reading[tuple[Job, ...]]:
        if job_id is None:
            return Known(value=(), at=self._clock.now())
        orchestrator = self._orchestrators.get(contract.orchestrator.kind)
        if orchestrator is None:
            return self._not_configured(contract)
        return await self._guard(contract, Source.JOBS, orchestrator.jobs(contract, job_id))

    async def _read_log(self, contract: Contract, job_id: JobId | None, since: datetime | None) -> Reading[LogTail]:
        if job_id is None:
            return Known(value=LogTail(lines=(), is_cut=False), at=self._clock.now())
        orchestrator = self._orchestrators.get(contract.orchestrator.kind)
        if orchestrator is None:
            return self._not_configured(contract)
        return await self._guard(contract, Source.LOG, orchestrator.log(contract, job_id, since))

    def _not_configured(self, contract: Contract) -> Unknown:
        kind = contract.orchestrator.kind
        detail = f"[{kind}] is not configured in hero.toml"
        return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=self._clock.now())

    async def _guard[T](self, contract: Contract, source: Source, question: Awaitable[Reading[T]]) -> Reading[T]:
        """Await one source's answer; whatever goes wrong with it becomes an Unknown."""
        reading: Reading[T]
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                reading = await question
        except TimeoutError:
            detail = f"no answer in {say_duration(self._deadline)}"
            reading = Unknown(reason=Gap.TIMEOUT, detail=detail, at=self._clock.now())
        except Exception as error:
            log.exception("source_broke", run_id=contract.run_id, source=source)
            detail = f"Hero's own reading of it broke: {type(error).__name__}"
            reading = Unknown(reason=Gap.BROKEN, detail=detail, at=self._clock.now())
        self._log_edge(contract.run_id, source, reading)
        return reading

    def _log_edge[T](self, run_id: RunId, source: Source, reading: Reading[T]) -> None:
        """Log once when a source goes dark and once when it is back."""
        since = self._dark.get((run_id, source))
        match reading:
            case Unknown(reason=Gap.NOT_CONFIGURED) if source in OPTIONAL:
                pass
            case Unknown(reason=Gap.NOT_YET):
                pass
            case Unknown(reason=reason, detail=detail) if since is None:
                self._dark[run_id, source] = reading.at
                log.warning("source_went_dark", run_id=run_id, source=source, reason=reason, detail=detail)
            case Known() if since is not None:
                del self._dark[run_id, source]
                log.info("source_came_back", run_id=run_id, source=source, dark_s=(reading.at - since).total_seconds())
            case _:
                pass


def _submitted_at(jobs: Reading[tuple[Job, ...]], instance: Instance | None) -> datetime | None:
    """Return when the current job was submitted: what the orchestrator says now counts before what we remember."""
    if isinstance(jobs, Known) and jobs.value:
        return jobs.value[0].submitted_at
    return instance.submitted_at if instance else None
