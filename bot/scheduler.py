"""When a run is due. APScheduler keeps the times; a guardian beside it trusts no single clock.

APScheduler waits on the loop's monotonic clock and plans on the wall clock: a laptop that slept, or an NTP step
backwards, would silence it for as long as the jump. So each due time is kept on both clocks, and whichever passes first
makes the run due.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger

from bot.clock import Clock
from bot.errors import LeaseLostError
from bot.model.conduct import Stage
from bot.model.contract import Contract, RunKind
from bot.model.record import Record
from bot.model.value import RunId, Value

log = structlog.get_logger()

type CheckRun = Callable[[RunId], Awaitable[timedelta]]
"""Check one run now and return the pause until the next check."""

GUARD_EVERY = timedelta(seconds=5)
GUARD_GRACE = timedelta(seconds=5)
"""How late a check may be before the guardian starts it in APScheduler's place."""
_AFTER_FAILURE = timedelta(minutes=1)
_JITTER_FRACTION = 0.1


def pause_until_next(record: Record | None, contract: Contract, cadence: timedelta, at: datetime) -> timedelta:
    """Return how long to wait after a check at ``at``.

    120 s after a submission there is one look for an immediate failure; then every 570 s while a job is only being
    babysat (a diagnostic whose contract names no ``check``), else every ``cadence``, 15 minutes by default.
    While a trial is cut over its two runs are looked at every ``[trial] look``.
    Source: babysit-job, "Cadence and Tooling Notes"; manage-hero-run, "Babysitting".
    """
    is_babysat = contract.effective_kind is RunKind.DIAGNOSTIC and contract.cadence.check is None
    regular = contract.cadence.steady if is_babysat else cadence
    if record is not None and _is_on_trial(record):
        regular = min(regular, contract.trial.look)
    instance = record.instance if record else None
    if instance is not None and instance.ended_at is None:
        early = instance.launched_at + contract.cadence.after_submit - at
        if timedelta() < early < regular:
            return early
    return regular


def _is_on_trial(record: Record) -> bool:
    """Whether the run, or the run in whose place it is tried, was stopped for a trial that is not decided yet."""
    trial = record.run.trial
    stage = trial.stage if trial is not None else record.trial_stage
    return stage is not None and (stage.is_cut_over or stage in {Stage.GO, Stage.ROLLED_BACK})


class Due(Value):
    """When a run is next due, on both clocks."""

    at: datetime
    monotonic_s: float


class Scheduler:
    """Starts checks when they are due: one at a time for a run, late ones once, none forgotten."""

    def __init__(self, check: CheckRun, clock: Clock, *, jitter: timedelta) -> None:
        self._check = check
        self._clock = clock
        self._jitter = jitter
        self._timer = AsyncIOScheduler(timezone=UTC)
        self._due: dict[RunId, Due] = {}
        self._running: set[RunId] = set()
        self._again: set[RunId] = set()
        self._starts: asyncio.Queue[RunId] = asyncio.Queue()

    @property
    def watched(self) -> frozenset[RunId]:
        return frozenset(self._due) | frozenset(self._running)

    def due_at(self, run_id: RunId) -> datetime | None:
        """When the run is next due; None while it is being checked or is not watched."""
        due = self._due.get(run_id)
        return due.at if due else None

    def watch(self, run_id: RunId) -> None:
        """Begin to watch a run, its first check at once; nothing changes for one that is watched already."""
        if run_id not in self.watched:
            self._plan(run_id, timedelta())

    def check_soon(self, run_id: RunId) -> None:
        """Make a run due now; while it is being checked, once more right after."""
        if run_id in self._running:
            self._again.add(run_id)
        else:
            self._plan(run_id, timedelta())

    async def run(self) -> None:
        """Start checks for ever; returns only when cancelled."""
        self._timer.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._guard(), name="scheduler-guardian")
                while True:
                    run_id = await self._starts.get()
                    if run_id in self._due and run_id not in self._running:
                        self._begin(run_id)
                        group.create_task(self._run_one(run_id), name=f"check-{run_id}")
        finally:
            self._timer.shutdown(wait=False)

    def _begin(self, run_id: RunId) -> None:
        due = self._due.pop(run_id)
        self._running.add(run_id)
        late = self._clock.now() - due.at
        if late > GUARD_GRACE * 2:
            log.warning("check_started_late", run_id=run_id, late_s=round(late.total_seconds(), 1))

    async def _run_one(self, run_id: RunId) -> None:
        """Check one run and plan the next check, whatever came of this one."""
        pause = _AFTER_FAILURE
        try:
            pause = await self._check(run_id)
        except LeaseLostError:
            raise
        except Exception:
            log.exception("check_broke", run_id=run_id)
        finally:
            self._running.discard(run_id)
            if run_id in self._again:
                self._again.discard(run_id)
                pause = timedelta()
            self._plan(run_id, pause + self._spread(pause))

    def _spread(self, pause: timedelta) -> timedelta:
        """Up to the configured jitter, at most a tenth of the pause: runs do not ask in step."""
        most = min(self._jitter, pause * _JITTER_FRACTION)
        return most * random.random()

    def _plan(self, run_id: RunId, pause: timedelta) -> None:
        at = self._clock.now() + pause
        self._due[run_id] = Due(at=at, monotonic_s=self._clock.monotonic() + pause.total_seconds())
        if pause <= timedelta():
            self._starts.put_nowait(run_id)
            return
        self._timer.add_job(
            self._ring,
            DateTrigger(run_date=at),
            args=(run_id,),
            id=run_id,
            replace_existing=True,
            misfire_grace_time=None,  # the default second would drop a late check for good (field report R16)
            coalesce=True,
            max_instances=1,
        )

    async def _ring(self, run_id: RunId) -> None:
        """Make a run due; a coroutine, since APScheduler calls plain functions in a thread, where no queue wakes up."""
        self._starts.put_nowait(run_id)

    def overdue(self, grace: timedelta = GUARD_GRACE) -> tuple[RunId, ...]:
        """Return the runs whose time has passed, on either clock, by more than the grace."""
        now, ticks = self._clock.now() - grace, self._clock.monotonic() - grace.total_seconds()
        return tuple(run_id for run_id, due in self._due.items() if due.at < now or due.monotonic_s < ticks)

    async def _guard(self) -> None:
        while True:
            await self._clock.sleep(GUARD_EVERY)
            for run_id in self.overdue():
                log.warning("check_was_missed_by_timer", run_id=run_id)
                self._starts.put_nowait(run_id)
