"""Finelog as a source: figures that trainers on Iris log, and their signs of life.

It is independent of the orchestrator's word, and keeps moving while W&B drops the rows of a replay (field report R22).
Rows of another execution under the same name are told apart by who wrote them (field report R37).
"""

from datetime import datetime

from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail, Metrics
from bot.model.telemetry import Telemetry
from bot.settings import FinelogSettings
from bot.sources.finelog.executions import MOST_NAMED, executions_of
from bot.sources.finelog.failure import SERVICE, MissingPackageError
from bot.sources.finelog.reading_on import Cursor, hand_out, next_question, parse_cursor
from bot.sources.finelog.rows import STEP, figure_names, parse_samples
from bot.sources.finelog.rpc import FinelogRpc
from bot.sources.finelog.signs import parse_signs
from bot.sources.finelog.tables import Form, parse_namespaces
from bot.sources.gaps import unknown_of


class FinelogSource:
    """Reads one Finelog; implements ``bot.sources.ports.TelemetrySource``."""

    def __init__(self, settings: FinelogSettings, clock: Clock) -> None:
        """Take ``Settings.finelog_in_use`` and the clock."""
        self._clock = clock
        self._rpc: FinelogRpc | None = None
        if settings.url is not None:
            self._rpc = FinelogRpc(
                settings.url,
                token=settings.token.get_secret_value() if settings.token else None,
                deadline=settings.deadline,
                at_once=settings.threads,
            )

    async def close(self) -> None:
        """Close the connections."""
        if self._rpc is not None:
            await self._rpc.close()

    async def telemetry(self, contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Reading[Telemetry]:
        """Ask for the newest signs of life; a run of which no row is there is Known, with nothing in it."""
        try:
            return Known(value=await self._signs(contract, jobs), at=self._clock.now())
        except ServiceError as error:
            return self.unknown(error)

    async def metrics(
        self, contract: Contract, *, since: datetime | None, cursor: str, jobs: Reading[tuple[Job, ...]]
    ) -> Reading[Metrics]:
        """Ask for the figures after ``cursor`` that the instance submitted at ``since`` logged.

        Args:
            contract: of the run.
            since: the submission.
            cursor: of the last look; empty for the first one.
            jobs: what the orchestrator says, which tells the rows of an earlier namesake and of an earlier attempt for
                sure; when it is Unknown, only the submission and the order of arrival do.
        """
        try:
            found = await self._figures(contract, since, parse_cursor(cursor), jobs)
        except ServiceError as error:
            return self.unknown(error)
        return Known(value=found, at=self._clock.now())

    async def tables(self) -> Reading[tuple[str, ...]]:
        """Ask which tables for training metrics there are, and see that an answer with rows can be decoded here."""
        try:
            rpc = self.asked()
            found = parse_namespaces(await rpc.namespaces())
            await rpc.rows("SELECT 1 AS one")
        except ServiceError as error:
            return self.unknown(error)
        return Known(value=tuple(table.name for table in found), at=self._clock.now())

    async def _signs(self, contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Telemetry:
        rpc = self.asked()
        executions = executions_of(jobs)
        named = sorted(executions.current) if len(executions.current) <= MOST_NAMED else []
        run_ids = run_ids_of(contract)
        tables = parse_namespaces(await rpc.namespaces())
        # Whoever runs now counts first, or a predecessor that still writes would hide it.
        for among in (named, []) if named else ([],):
            for table in tables:
                if rows := await rpc.rows(table.newest_rows(run_ids, among)):
                    return parse_signs(rows, table.form, executions)
        return Telemetry()

    async def _figures(
        self,
        contract: Contract,
        since: datetime | None,
        cursor: Cursor | None,
        jobs: Reading[tuple[Job, ...]],
    ) -> Metrics:
        rpc = self.asked()
        words = figure_names(contract.metrics)
        executions = executions_of(jobs)
        named = sorted(executions.all) if executions.is_exact and len(executions.all) <= MOST_NAMED else []
        for table in parse_namespaces(await rpc.namespaces()):
            question = next_question(cursor, table, since)
            sql = table.figures(
                run_ids_of(contract),
                (*words, STEP) if table.form is Form.GAUGES else words,
                after=question.after,
                since=question.since,
                executions=named,
                limit=question.limit,
            )
            if rows := await rpc.rows(sql):
                return hand_out(
                    parse_samples(rows, table.form, words),
                    table=table.name,
                    question=question,
                    is_cut=len(rows) >= question.limit,
                    cursor=cursor,
                    executions=executions,
                    at=self._clock.now(),
                )
            if cursor is not None and cursor.table == table.name:
                break  # the run writes here, and nothing new; older tables hold nothing newer
        return Metrics(rows=(), cursor=cursor.model_dump_json() if cursor is not None else "")

    def now(self) -> datetime:
        return self._clock.now()

    def asked(self) -> FinelogRpc:
        """Return whom to ask.

        Raises:
            ServiceError: no Finelog is configured; ``unknown`` says so.
        """
        if self._rpc is None:
            raise _NotConfiguredError(SERVICE, "no Finelog is configured; set [finelog] url or [iris] controller_url")
        return self._rpc

    def unknown(self, error: ServiceError) -> Unknown:
        """Return the reading that an error of a question means."""
        at = self._clock.now()
        if isinstance(error, MissingPackageError | _NotConfiguredError):
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=error.detail, at=at)
        return unknown_of(error, at)


class FinelogMetrics:
    """Implements ``bot.sources.ports.MetricsSource`` for runs whose figures are in Finelog."""

    def __init__(self, source: FinelogSource) -> None:
        self._source = source

    async def metrics(
        self,
        contract: Contract,
        *,
        since: datetime | None,
        cursor: str,
        log: Reading[LogTail],  # noqa: ARG002 - the port's; Finelog needs no log
        jobs: Reading[tuple[Job, ...]],
    ) -> Reading[Metrics]:
        """Return the rows after ``cursor`` that belong to the instance submitted at ``since``."""
        return await self._source.metrics(contract, since=since, cursor=cursor, jobs=jobs)


class _NotConfiguredError(ServiceError):
    """Nobody told Hero where Finelog is."""


def run_ids_of(contract: Contract) -> tuple[str, ...]:
    """Return the names that the trainer may write under: its run id is the tracker's, where there is a tracker."""
    return tuple(dict.fromkeys(filter(None, (contract.run_id, contract.tracker.id))))
