"""Everything that survives a crash, in one SQLite file.

``tables.py`` has the tables, ``transaction.py`` what a handler may do inside a transaction, ``engine.py`` how SQLite is
opened and what its errors become.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

import structlog
from sqlalchemy import func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.clock import Clock
from bot.errors import ConfigurationError, LeaseLostError, StoreError
from bot.model.action import Action
from bot.model.audit import AuditEntry
from bot.model.chronicle import Entry
from bot.model.delivery import Awaited, ChannelName, Delivery, Posted, SendOutcome
from bot.model.event import Inbound, InboxEvent
from bot.model.history import VerdictChange
from bot.model.incident import Incident
from bot.model.record import Record
from bot.model.run import Run
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.store import chronicle, inbox, leases, ledger, outbox, records
from bot.store.bells import Bell
from bot.store.engine import BUSY_TIMEOUT, open_engine, reading, writing
from bot.store.file import DatabaseFile
from bot.store.leases import Lease
from bot.store.tables import actions, incidents, requests
from bot.store.transaction import Transaction
from bot.store.upgrade import is_current, upgrade

log = structlog.get_logger()

KEEP = timedelta(days=7)
"""Handled events are kept at least this long: until then no source sends a repeat any more."""

_OVER_AFTER = timedelta(days=1)
"""So long after the last news of a run that ended, its conversation counts as over."""

_PROBE = "store.probe"


class Store:
    """One open database. Every writing transaction of this process waits its turn at one lock.

    Attributes:
        inbox_arrived: rings after an event was stored.
        outbox_filled: rings after deliveries were made; each channel's worker listens for itself.
        actions_granted: rings after an action was granted.
        trouble: why the last write failed, with the fix; empty when it succeeded.
    """

    def __init__(self, engine: AsyncEngine, file: DatabaseFile, clock: Clock, redactor: Redactor) -> None:
        """Use ``open``."""
        self._engine = engine
        self._file = file
        self._path = file.path
        self._clock = clock
        self._redactor = redactor
        self._turn = asyncio.Lock()
        self._writer: asyncio.Task[object] | None = None
        self._scratch: Path | None = None
        self.inbox_arrived = Bell()
        self.outbox_filled = Bell()
        self.actions_granted = Bell()
        self.trouble = ""

    @classmethod
    async def open(cls, url: str, clock: Clock, redactor: Redactor, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> Self:
        """Open the database, create or upgrade its tables first.

        Args:
            url: ``sqlite:///PATH``, relative to the working directory; ``sqlite://`` is a file that ``close`` removes.
            clock: where every time that is stored comes from.
            redactor: what cuts secrets from every text that is stored.
            busy_timeout: how long a writer waits for another process.

        Raises:
            ConfigurationError: the URL, the directory, or a file of a newer Hero or of another program.
            StoreError: the file cannot be read, written or locked.
        """
        path = database_path(url)
        scratch = None
        if path is None:
            scratch = Path(tempfile.mkdtemp(prefix="hero-"))
            path = scratch / "hero.db"
        copy = await asyncio.to_thread(upgrade, path, clock.now(), busy_timeout)
        if copy is not None:
            log.info("store_upgraded", path=str(path), copy=str(copy))
        file = DatabaseFile(path)
        store = cls(open_engine(file, busy_timeout), file, clock, redactor)
        store._scratch = scratch
        return store

    @classmethod
    async def open_existing(
        cls, url: str, clock: Clock, redactor: Redactor, *, busy_timeout: timedelta = BUSY_TIMEOUT
    ) -> Self | None:
        """Open a database beside the Hero that owns it; nothing is created or upgraded.

        Args:
            url: as for ``open``.
            clock: as for ``open``.
            redactor: as for ``open``.
            busy_timeout: as for ``open``.

        Returns:
            None when there is no such file yet, or none that lasts.

        Raises:
            ConfigurationError: the URL, or a file of another Hero than this one or of another program.
            StoreError: the file cannot be read.
        """
        path = database_path(url)
        if path is None or not path.exists():
            return None
        if not await asyncio.to_thread(is_current, path, busy_timeout):
            problem = f"[bot] database: {path} is of an older Hero; `hero run` upgrades it, after putting a copy aside"
            raise ConfigurationError((problem,))
        file = DatabaseFile(path)
        return cls(open_engine(file, busy_timeout), file, clock, redactor)

    async def close(self) -> None:
        """Wait for the transaction that is under way, then close every connection."""
        async with self._turn:
            await self._engine.dispose()
        if self._scratch is not None:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)

    # Writing

    def transaction(self, lease: Lease | None = None) -> AbstractAsyncContextManager[Transaction]:
        """Begin the one writing transaction; it commits at a normal exit and is rolled back at any other.

        Inside it there is no network and no other call of the store but its own: the next writer waits.

        Args:
            lease: under which it writes; its number is checked inside the transaction.

        Raises:
            LeaseLostError: another process took the lease.
            StoreFullError: no space is left; nothing was stored.
            StoreError: the database is locked by another process, refused, or its file was removed or replaced; nothing
                was stored.
        """
        return self._transaction(lease)

    @asynccontextmanager
    async def _transaction(self, lease: Lease | None) -> AsyncIterator[Transaction]:
        transaction: Transaction | None = None
        try:
            async with self._write(lease) as connection:
                transaction = Transaction(connection, self._path, self._clock, self._redactor)
                yield transaction
                if transaction.is_failed:
                    msg = f"{self._path}: a part of the transaction failed and its caller went on; nothing was stored"
                    raise StoreError(msg)
        finally:
            # Also when a cancellation arrived during the commit; ringing for nothing costs one look.
            if transaction is not None and transaction.has_deliveries:
                self.outbox_filled.set()
            if transaction is not None and transaction.has_actions:
                self.actions_granted.set()

    @asynccontextmanager
    async def _write(self, lease: Lease | None = None) -> AsyncIterator[AsyncConnection]:
        assert self._writer is not asyncio.current_task(), "a transaction inside a transaction would wait for itself"  # noqa: S101 - our own bug
        async with self._turn:
            self._writer = asyncio.current_task()
            try:
                async with writing(self._engine, self._file) as connection:
                    if lease is not None:
                        await leases.check(connection, lease, self._clock.now())
                    yield connection
                self.trouble = ""
            except LeaseLostError:
                raise
            except StoreError as error:
                self.trouble = str(error)
                raise
            finally:
                self._writer = None

    async def receive(self, source: str, event_id: str, payload: Inbound) -> bool:
        """Store an event from outside before it is acknowledged; False when it is a repeat."""
        is_new = False
        try:
            async with self._write() as connection:
                at = self._clock.now()
                is_new = await inbox.receive(connection, source, event_id, payload, at=at, redactor=self._redactor)
        finally:
            if is_new:
                self.inbox_arrived.set()
        return is_new

    async def delivery_begun(self, number: int, *, lease: Lease | None = None) -> Delivery | None:
        """Commit the intent to send before the send; None when it is not to be sent now.

        None: it was superseded or ended meanwhile, or an older one of its conversation came back to be sent first. The
        delivery's ``attempt`` counts the sends begun before this one: above 0, look for the marker first.
        """
        async with self._write(lease) as connection:
            return await outbox.begin(connection, number, self._clock.now())

    async def delivery_ended(
        self, number: int, outcome: SendOutcome, *, retry_after: timedelta | None = None, lease: Lease | None = None
    ) -> None:
        """Commit what became of a send.

        Args:
            number: the delivery's.
            outcome: ``Sent`` remembers the message of the slot, ``Never`` marks it failed, ``Later`` lets it wait.
            retry_after: how long it waits; None for what the outcome itself says, else not at all.
            lease: under which it was sent.
        """
        async with self._write(lease) as connection:
            at = self._clock.now()
            await outbox.end(connection, number, outcome, at=at, retry_after=retry_after, redactor=self._redactor)

    async def acquire_lease(self, name: str, holder: str, ttl: timedelta) -> Lease | None:
        """Take a lease; None while another holder has it."""
        async with self._write() as connection:
            return await leases.acquire(connection, name, holder, ttl, self._clock.now())

    async def current_lease(self, name: str) -> Lease | None:
        """Return who holds or last held a lease; to show it, or to give back one whose holder is known to be dead."""
        async with self._read() as connection:
            return await leases.current(connection, name)

    async def renew_lease(self, lease: Lease, ttl: timedelta) -> Lease:
        """Return the lease with its new end.

        Raises:
            LeaseLostError: another holder took it.
        """
        async with self._write() as connection:
            return await leases.renew(connection, lease, ttl, self._clock.now())

    async def release_lease(self, lease: Lease) -> None:
        """Give a lease back, so that the next holder need not wait; nothing happens when it was lost already."""
        async with self._write() as connection:
            await leases.release(connection, lease, self._clock.now())

    async def prune(self, before: datetime) -> int:
        """Forget what was handled or sent before then, and never what is younger than ``KEEP``; return how much."""
        before = min(before, self._clock.now() - KEEP)
        async with self._write() as connection:
            forgotten = await inbox.prune(connection, before) + await outbox.prune(connection, before)
            return forgotten + await records.prune_verdicts(connection, before)

    async def probe(self) -> None:
        """Find out whether something can be written now; raises as ``transaction`` does."""
        async with self._write() as connection:
            await ledger.save_cursor(connection, _PROBE, self._clock.now().isoformat())

    # Reading

    def _read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        return reading(self._engine, self._file)

    async def runs(self) -> tuple[Run, ...]:
        """Return every run, by id."""
        async with self._read() as connection:
            return await records.all_runs(connection)

    async def record(self, run_id: RunId) -> Record | None:
        """Return what is remembered of a run; to show it, not to decide on it."""
        async with self._read() as connection:
            return await records.find(connection, run_id)

    async def pending_inbox(self, limit: int = 50) -> tuple[InboxEvent, ...]:
        """Return the events to be handled now, oldest first."""
        async with self._read() as connection:
            return await inbox.pending(connection, self._clock.now(), limit)

    async def due_deliveries(self, channel: ChannelName, limit: int = 20) -> tuple[Delivery, ...]:
        """Return what may be sent in a channel now, in the order in which to send it."""
        async with self._read() as connection:
            return await outbox.due(connection, channel, self._clock.now(), limit)

    async def unfinished_actions(self) -> tuple[Action, ...]:
        """Return every granted action, oldest first."""
        async with self._read() as connection:
            return await records.unfinished_actions(connection)

    async def audit(
        self, run_id: RunId | None = None, limit: int = 200, kinds: frozenset[str] | None = None
    ) -> tuple[AuditEntry, ...]:
        """Return the newest entries, of one run or of all, of some kinds or of all, the oldest of them first."""
        async with self._read() as connection:
            return await records.read_audit(connection, run_id, limit, kinds)

    async def verdicts_at(self, run_id: RunId, at: datetime) -> tuple[VerdictChange, ...]:
        """Return what each check had concluded at a moment."""
        async with self._read() as connection:
            return await records.verdicts_at(connection, run_id, at)

    async def incidents_since(self, run_id: RunId, since: datetime) -> tuple[Incident, ...]:
        """Return the run's incidents that were opened since a moment, those that are over too, oldest first."""
        async with self._read() as connection:
            return await records.incidents_since(connection, run_id, since)

    async def counts(self) -> dict[str, int]:
        """Return how much waits and how much failed, for status and health."""
        unfinished = {
            "incidents_open": select(func.count()).select_from(incidents).where(~incidents.c.is_resolved),
            "requests_open": select(func.count()).select_from(requests).where(requests.c.state == "open"),
            "actions_granted": select(func.count()).select_from(actions).where(actions.c.state == "granted"),
        }
        async with self._read() as connection:
            counted = {name: (await connection.execute(each)).scalar_one() for name, each in unfinished.items()}
            return await inbox.counts(connection) | await outbox.counts(connection) | counted

    # What a channel asks and keeps: channels.ports.Ledger

    async def posted(self, channel: ChannelName, run_id: str, slot: str) -> Posted | None:
        """Return where the run's message of that slot is."""
        async with self._read() as connection:
            return await ledger.find(connection, channel, run_id, slot)

    async def threads(self, channel: ChannelName) -> tuple[Posted, ...]:
        """Return the roots of all runs' conversations in the channel, former ones too."""
        async with self._read() as connection:
            return await ledger.threads(connection, channel)

    async def awaited(self) -> Awaited:
        """Return in which runs' conversations an answer is awaited, and in which nothing is any more."""
        async with self._read() as connection:
            return await records.awaited(connection, self._clock.now() - _OVER_AFTER)

    async def chronicle(self, run_id: RunId) -> tuple[Entry, ...]:
        """Return the run's record, oldest entry first."""
        async with self._read() as connection:
            return await chronicle.read(connection, run_id)

    async def save_posted(self, posted: Posted) -> None:
        """Remember a message by its slot; replaces what was remembered there."""
        async with self._write() as connection:
            await ledger.save(connection, posted)

    async def cursor(self, name: str) -> str | None:
        """Return how far was read under this name; None when it was never said."""
        async with self._read() as connection:
            return await ledger.cursor(connection, name)

    async def save_cursor(self, name: str, value: str) -> None:
        """Remember how far was read."""
        async with self._write() as connection:
            await ledger.save_cursor(connection, name, value)


def database_path(url: str) -> Path | None:
    """Return the file that a database URL names; None for one that nobody needs afterwards.

    Raises:
        ConfigurationError: it names nothing that Hero can open.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise _no_database(url) from None
    if parsed.drivername not in {"sqlite", "sqlite+aiosqlite"} or parsed.host or parsed.query:
        raise _no_database(parsed.render_as_string(hide_password=True))
    return None if parsed.database in {None, "", ":memory:"} else Path(str(parsed.database)).absolute()


def _no_database(url: str) -> ConfigurationError:
    problem = f"[bot] database: {url!r} is nothing that Hero can open; write it as sqlite:///PATH"
    return ConfigurationError((problem,))
