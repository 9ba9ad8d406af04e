"""Weights & Biases as a source: what it says of a run, and the rows of its history that are new.

W&B is one witness among several. It says "crashed" of runs that train and "running" of runs that are dead (field report
R18), drops rows below the highest step after a restart (R22), and at times tells of rows that it does not hand out
(R19). What cannot be relied on is Unknown here, and never an empty answer.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import structlog

from bot.clock import Clock
from bot.errors import ServiceError, UnrecognisedError
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail, Metrics
from bot.model.tracker import TrackerRunState, TrackerState
from bot.settings import WandbSettings
from bot.sources.gaps import unknown_of
from bot.sources.wandb.client import WandbClient
from bot.sources.wandb.failure import SERVICE, NoSuchRunError
from bot.sources.wandb.finding import find_run, place_of
from bot.sources.wandb.history import (
    Cursor,
    Gathered,
    Window,
    gather,
    is_empty_handed,
    is_rewritten,
    next_window,
    parse_cursor,
)
from bot.sources.wandb.rows import step_of
from bot.sources.wandb.state import SeenRun, parse_run
from bot.threads import BoundedThreads

log = structlog.get_logger()

_SCAN_SHARE = 0.6
"""Of the deadline; a scan that is not through by then hands out what it has."""


class WandbSource:
    """Readings of W&B, each behind Hero's own deadline and in a bounded pool of threads."""

    def __init__(self, settings: WandbSettings, clock: Clock, *, threads: BoundedThreads | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._client = WandbClient(settings)
        self._threads = threads or BoundedThreads(SERVICE, settings.threads)

    async def tracker(self, contract: Contract) -> Reading[TrackerState]:
        """Ask what W&B says of the contract's run; a run that it does not have is Known, with the state MISSING."""
        at = self._clock.now()
        try:
            state = await self._threads.call(self._ask_state, contract, deadline=self._settings.deadline)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=state, at=at)

    async def metrics(self, contract: Contract, since: datetime | None, cursor: str) -> Reading[Metrics]:
        """Ask for the rows after ``cursor`` that the instance submitted at ``since`` logged itself."""
        at = self._clock.now()
        began = self._clock.monotonic()
        share_s = self._settings.deadline.total_seconds() * _SCAN_SHARE

        def is_late() -> bool:
            return self._clock.monotonic() - began > share_s

        try:
            return await self._threads.call(
                self._ask_rows, contract, since, cursor, at, is_late, deadline=self._settings.deadline
            )
        except NoSuchRunError as error:
            # Before a run has begun there is none, and that is all right; one that is gone is not.
            if cursor:
                return unknown_of(error, at)
            return Known(value=Metrics(rows=()), at=at)
        except ServiceError as error:
            return unknown_of(error, at)

    async def config(self, contract: Contract) -> Reading[Mapping[str, Any]]:
        """Ask for the run's configuration as it is now, secrets and all; only ``bot.sources.config`` may look at it."""
        at = self._clock.now()
        try:
            config = await self._threads.call(self._ask_config, contract, deadline=self._settings.deadline)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=config, at=at)

    async def close(self) -> None:
        """End the SDK's helper process."""
        await self._threads.call(self._client.close, deadline=self._settings.deadline)

    def _ask_state(self, contract: Contract) -> TrackerState:
        entity, project = place_of(contract.tracker, self._settings)
        try:
            seen = parse_run(find_run(self._client, self._settings, contract.tracker), contract.metrics)
        except NoSuchRunError as error:
            log.info("tracker_run_missed", run_id=contract.run_id, detail=error.detail)
            return TrackerState(
                entity=entity or "",
                project=project,
                id=contract.tracker.id or "",
                name=contract.tracker.name or "",
                state=TrackerRunState.MISSING,
                url="",
            )
        others = self._client.named(seen.entity, seen.project, seen.name) if seen.name else ()
        return seen.tracked(tuple(run.id for run in others if run.id != seen.id))

    def _ask_config(self, contract: Contract) -> Mapping[str, Any]:
        config = getattr(find_run(self._client, self._settings, contract.tracker), "config", None)
        if not isinstance(config, Mapping):
            raise UnrecognisedError(SERVICE, "config is no table")
        return config

    def _ask_rows(
        self, contract: Contract, since: datetime | None, text: str, at: datetime, is_late: Callable[[], bool]
    ) -> Reading[Metrics]:
        run = find_run(self._client, self._settings, contract.tracker)
        seen = parse_run(run, contract.metrics)
        cursor = parse_cursor(text, seen.path)
        if seen.last_step < 0:
            return Known(value=Metrics(rows=(), cursor=cursor.model_dump_json()), at=at)
        window = next_window(cursor, seen.history_step, seen.row_count, seen.fork or seen.rewound_to)
        rows, is_whole = self._scan(run, window, is_late)
        if is_rewritten(cursor, window, rows):
            log.info("tracker_history_rewritten", run_id=contract.run_id, path=seen.path)
            cursor = Cursor(path=seen.path)
            window = next_window(cursor, seen.history_step, seen.row_count, seen.fork or seen.rewound_to)
            rows, is_whole = self._scan(run, window, is_late)
        nothing_own = seen.fork is not None and seen.history_step <= seen.fork.step
        is_empty = is_empty_handed(cursor, window, rows, history_step=seen.history_step, told_step=seen.last_step)
        if is_whole and is_empty and not nothing_own:
            return Unknown(reason=Gap.UNRELIABLE, detail=self._other_way(run, seen, window), at=at)
        found = gather(
            rows,
            window=window,
            is_whole=is_whole,
            cursor=cursor,
            last_step=seen.history_step,
            names=contract.metrics,
            key=seen.step_key,
            fork=seen.fork,
            since=since,
        )
        if _is_replaying(seen, found, since):
            detail = (
                f"W&B has shown no row of this launch yet, and after a restart it drops every row up to step "
                f"{seen.history_step}, where the history ends; the trainer may be replaying"
            )
            return Unknown(reason=Gap.UNRELIABLE, detail=detail, at=at)
        return Known(
            value=Metrics(
                rows=found.rows,
                cursor=found.cursor.model_dump_json(),
                unreadable=found.unreadable,
                is_from_start=False,  # of a step that it had before W&B shows no row (field report R22)
            ),
            at=at,
        )

    def _scan(self, run: Any, window: Window, is_late: Callable[[], bool]) -> tuple[list[Any], bool]:
        if window.first >= window.end:
            return [], True
        found, is_whole = self._client.rows(run, window.first, window.end, page=window.page, is_late=is_late)
        return list(found), is_whole

    def _other_way(self, run: Any, seen: SeenRun, window: Window) -> str:
        """Say how far the history goes by what else there is: a sample of it, and the summary."""
        told = f"the scan gave no row from step {window.first} on, although the history goes to step {seen.last_step}"
        try:
            steps = [step for row in self._client.sampled(run) if (step := step_of(row)) is not None]
        except ServiceError as error:
            return f"{told}; a sample of it cannot be read either: {error.detail}"
        sampled = str(max(steps)) if steps else "none"
        summary = "none" if seen.summary_step < 0 else str(seen.summary_step)
        return f"{told}; newest step in a sample of it: {sampled}, in the summary: {summary}"


class WandbMetrics:
    """Implements ``bot.sources.ports.MetricsSource`` for runs whose figures are in W&B."""

    def __init__(self, source: WandbSource) -> None:
        self._source = source

    async def metrics(
        self,
        contract: Contract,
        *,
        since: datetime | None,
        cursor: str,
        log: Reading[LogTail],  # noqa: ARG002 - the port's; W&B needs no log
        jobs: Reading[tuple[Job, ...]],  # noqa: ARG002 - the port's; no row of W&B names its attempt
    ) -> Reading[Metrics]:
        """Return the rows after ``cursor`` that belong to the instance submitted at ``since``."""
        return await self._source.metrics(contract, since, cursor)


def _is_replaying(seen: SeenRun, found: Gathered, since: datetime | None) -> bool:
    """Return whether the trainer is heard of since this launch while every row is from before it (field report R22)."""
    anchor = found.cursor.anchor
    if since is None or found.rows or anchor is None or anchor.logged_at is None or anchor.logged_at >= since:
        return False
    return seen.state is TrackerRunState.RUNNING and seen.heartbeat_at is not None and seen.heartbeat_at > since
