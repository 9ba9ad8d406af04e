"""The launched configuration as a source: from the file that the contract names, else from the tracker's copy.

What is read has to be this instance's. A file that was last written before the job was submitted, and a tracker's run
that has not been heard of since, tell of an earlier one, and that is Unknown here. Before a trainer has had time to
write anything there is nothing to read yet, which is in order (``Gap.NOT_YET``).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.job import Job, JobState
from bot.model.launched import LaunchedConfig
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.tracker import TrackerRunState, TrackerState
from bot.redaction import Redactor
from bot.sources.checkpoints import absolute
from bot.sources.config.files import read_file
from bot.sources.config.flatten import flatten, weigh
from bot.sources.config.parse import SERVICE, parse_config, unwrapped
from bot.sources.config.words import words_of
from bot.sources.gaps import unknown_of
from bot.threads import BoundedThreads

WRITTEN_WITHIN = timedelta(minutes=45)
"""So long a job may run before its configuration has to be there: restoring and compiling may come before it."""
CLOCKS_APART = timedelta(minutes=1)
"""How much earlier than the submission the store's clock may date what was written after it."""


class TrackerConfigs(Protocol):
    """Hands out the tracker's copy, secrets and all."""

    async def config(self, contract: Contract) -> Reading[Mapping[str, Any]]:
        """Ask for the configuration of the contract's run as it is now."""
        ...


class ConfigReader:
    """Implements ``bot.sources.ports.ConfigSource``."""

    def __init__(
        self,
        clock: Clock,
        redactor: Redactor,
        *,
        tracker: TrackerConfigs | None = None,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=20),
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take what is fixed for all runs.

        Args:
            clock: for the moment of the readings.
            redactor: a configuration may hold secrets, and none leaves this source.
            tracker: None when none is configured.
            threads: where files are read and parsed; a call that hangs keeps its thread.
            deadline: of one reading.
            options: by protocol, for fsspec.
        """
        self._clock = clock
        self._redactor = redactor
        self._tracker = tracker
        self._threads = threads or BoundedThreads(SERVICE, 4)
        self._deadline = deadline
        self._options = options or {}

    async def config(
        self, contract: Contract, jobs: Reading[tuple[Job, ...]], tracker: Reading[TrackerState]
    ) -> Reading[LaunchedConfig]:
        """Read the current instance's configuration; NOT_CONFIGURED when nothing tells where it would be."""
        at = self._clock.now()
        untracked = isinstance(tracker, Unknown) and tracker.reason is Gap.NOT_CONFIGURED
        if contract.config.file is None and (self._tracker is None or untracked):
            detail = "the contract names no [config] file, and there is no tracker to ask"
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=at)
        if isinstance(jobs, Unknown):
            return Unknown(reason=jobs.reason, detail=f"whose it would be is not known: {jobs.detail}"[:2000], at=at)
        if not jobs.value:
            return Unknown(reason=Gap.NOT_YET, detail="there is no job that could have written it", at=at)
        try:
            if contract.config.file is not None:
                return await self._of_file(contract, contract.config.file, jobs.value[0], at)
            return await self._of_tracker(contract, jobs.value[0], tracker, at)
        except ServiceError as error:
            return unknown_of(error, at)

    async def _of_file(self, contract: Contract, named: str, job: Job, at: datetime) -> Reading[LaunchedConfig]:
        address = address_of(named, contract)
        shown = self._redactor.text(address)
        found = await self._threads.call(
            read_file, address, self._options, deadline=self._deadline, key=contract.run_id
        )
        if found is None:
            return _missing(job, at, f"{shown} does not exist", Gap.REFUSED)
        if found.changed_at is not None and found.changed_at < job.submitted_at - CLOCKS_APART:
            return _missing(job, at, f"{shown} is {_earlier('written', found.changed_at, job)}", Gap.UNRELIABLE)

        def read() -> LaunchedConfig:
            return launched(parse_config(found.raw, shown), shown, contract, self._redactor)

        config = await self._threads.call(read, deadline=self._deadline, key=contract.run_id)
        return Known(value=config, at=at)

    async def _of_tracker(
        self, contract: Contract, job: Job, tracker: Reading[TrackerState], at: datetime
    ) -> Reading[LaunchedConfig]:
        if isinstance(tracker, Unknown) or self._tracker is None:
            gap = tracker if isinstance(tracker, Unknown) else None
            return gap or Unknown(reason=Gap.NOT_CONFIGURED, detail="there is no tracker to ask", at=at)
        state = tracker.value
        if state.state is TrackerRunState.MISSING:
            return _untold(at, "the tracker does not have the run")
        if state.heartbeat_at is None or state.heartbeat_at < job.submitted_at:
            return _untold(at, f"the tracker's copy is {_earlier('last heard of', state.heartbeat_at, job)}")
        copy = await self._tracker.config(contract)
        if isinstance(copy, Unknown):
            return copy
        origin = f"W&B {state.entity}/{state.project}/{state.id}"
        if not unwrapped(copy.value):
            detail = f"{origin} has no configuration, and the contract names no [config] file"
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=at)

        def read() -> LaunchedConfig:
            found = launched(unwrapped(copy.value), origin, contract, self._redactor)
            return found.model_copy(update={"is_trackers": True})

        config = await self._threads.call(read, deadline=self._deadline, key=contract.run_id)
        return Known(value=config, at=copy.at)


def address_of(named: str, contract: Contract) -> str:
    """Return where the contract's ``[config] file`` lies: an address, or a path below the checkout."""
    filled = named.replace("{output_root}", contract.output_root.rstrip("/")).replace("{run_id}", contract.run_id)
    return absolute(filled, contract.checkout)


def launched(tree: Mapping[Any, Any], origin: str, contract: Contract, redactor: Redactor) -> LaunchedConfig:
    """Return a configuration flattened, scrubbed, and with its keys by Hero's words. Pure.

    Raises:
        UnrecognisedError: it is too much, or ambiguous.
    """
    weigh(tree)
    values = flatten(redactor.value(tree))
    return LaunchedConfig(origin=origin, values=values, words=words_of(values, contract.config.keys))


def _earlier(what: str, moment: datetime | None, job: Job) -> str:
    said = f"{what} {moment:%Y-%m-%d %H:%M:%S} UTC" if moment else f"never {what}"
    return f"of an earlier instance: {said}, and this one was submitted {job.submitted_at:%Y-%m-%d %H:%M:%S} UTC"


def _missing(job: Job, at: datetime, detail: str, reason: Gap) -> Unknown:
    """Return that there is nothing to read: in order while a job is young or has ended, else for the given reason."""
    ran = at - (job.started_at or job.submitted_at)
    is_young = job.state is not JobState.RUNNING or ran <= WRITTEN_WITHIN
    if is_young:
        return Unknown(reason=Gap.NOT_YET, detail=detail, at=at)
    return Unknown(reason=reason, detail=f"{detail}, although the job has run for {say_duration(ran)}", at=at)


def _untold(at: datetime, detail: str) -> Unknown:
    """Return that the tracker has nothing of this launch: tracker.identity says so, and once is enough."""
    return Unknown(reason=Gap.NOT_YET, detail=detail, at=at)
