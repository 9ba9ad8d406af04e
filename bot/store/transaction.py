"""What may be done inside one transaction, as handed out by ``Store.transaction``."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection

from bot.clock import Clock
from bot.errors import StoreError
from bot.model.action import Action
from bot.model.audit import AuditEntry
from bot.model.chronicle import Entry
from bot.model.delivery import ChannelName, Told
from bot.model.plan import Request
from bot.model.record import Decision, Record
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.store import chronicle, inbox, ledger, outbox, records
from bot.store.engine import translated


class Transaction:
    """Reads see what this transaction has written so far.

    Attributes:
        has_deliveries: whether it made any, so that the outbox is woken after the commit.
        has_actions: whether it granted any, so that the executor is.
        is_failed: whether a part of it failed or was cut off; it is not committed then, even if the caller goes on.
    """

    def __init__(self, connection: AsyncConnection, path: Path, clock: Clock, redactor: Redactor) -> None:
        self._connection = connection
        self._path = path
        self._clock = clock
        self._redactor = redactor
        self.has_deliveries = False
        self.has_actions = False
        self.is_failed = False

    async def record(self, run_id: RunId) -> Record:
        """Return what is remembered of a run, a fresh one when nothing is.

        The free numbers in it hold until the next ``apply``: read the record anew after each.
        """
        with self._whole():
            return await records.get(self._connection, run_id)

    async def all_records(self) -> tuple[Record, ...]:
        """Return every run's record; read a run's again before deciding about it when another was applied since."""
        with self._whole():
            return await records.find_all(self._connection)

    async def apply(self, decision: Decision, run_id: RunId | None, at: datetime) -> None:
        """Store a decision.

        Args:
            decision: changed values by number, and what to tell: one delivery a channel, once for each key.
            run_id: whose memories the decision holds; None for a decision about no run.
            at: when it was decided.

        Raises:
            StoreError: it was decided on a record of an earlier transaction, or the database refused.
        """
        with self._whole():
            self.has_actions |= await records.save(self._connection, decision, run_id, self._redactor)
            if run_id is not None:
                await chronicle.append(self._connection, run_id, decision.happened, at, self._redactor)
            for other, happened in decision.beside.items():
                await chronicle.append(self._connection, other, happened, at, self._redactor)
            for telling in decision.tell:
                self.has_deliveries |= await outbox.fill(self._connection, telling, at, self._redactor)

    async def redeem(self, request_number: int, decided: Request) -> bool:
        """Decide an open request; exactly one caller ever gets True (field report R43)."""
        with self._whole():
            return await records.redeem(self._connection, request_number, decided, self._redactor)

    async def save_action(self, action: Action) -> None:
        """Store an action as it is now: a step's intent before it, its outcome after it (law 3)."""
        with self._whole():
            self.has_actions |= await records.save_action(self._connection, action, self._redactor)

    async def audit(self, limit: int, kinds: frozenset[str]) -> tuple[AuditEntry, ...]:
        """Return the newest entries of some kinds, of all runs, the oldest of them first."""
        with self._whole():
            return await records.read_audit(self._connection, None, limit, kinds)

    async def newest_entries(self, run_id: RunId, limit: int) -> tuple[Entry, ...]:
        """Return the newest entries of the run's record, the oldest of them first."""
        with self._whole():
            return await chronicle.read_newest(self._connection, run_id, limit)

    async def cursor(self, name: str) -> str | None:
        """Return what is remembered under this name."""
        with self._whole():
            return await ledger.cursor(self._connection, name)

    async def save_cursor(self, name: str, value: str) -> None:
        with self._whole():
            await ledger.save_cursor(self._connection, name, value)

    async def find_request(self, number: int) -> Request | None:
        with self._whole():
            return await records.find_request(self._connection, number)

    async def open_requests(self) -> tuple[Request, ...]:
        with self._whole():
            return await records.open_requests(self._connection)

    async def find_run_by_thread(self, channel: ChannelName, message_id: str) -> RunId | None:
        """Return whose conversation has exactly this root message."""
        with self._whole():
            return await ledger.find_run_by_thread(self._connection, channel, message_id)

    async def told(self, run_id: RunId, at: datetime) -> Told:
        """Return how many messages about a run there were until now; an edit of one is none."""
        with self._whole():
            day = await outbox.told_since(self._connection, run_id, at - timedelta(days=1))
            return Told(day=day, week=await outbox.told_since(self._connection, run_id, at - timedelta(days=7)))

    async def inbox_done(self, number: int) -> None:
        """Note an event as handled, together with all else that this transaction does.

        Raises:
            StoreError: it was handled already.
        """
        with self._whole():
            await inbox.end(self._connection, number, self._clock.now())

    async def inbox_failed(self, number: int, detail: str, retry_at: datetime | None) -> None:
        """Note that handling failed; without ``retry_at`` the event is given up and kept for people."""
        with self._whole():
            clean = self._redactor.text(detail)
            await inbox.fail(self._connection, number, clean, retry_at, self._clock.now())

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """See to it that nothing is committed, nor even tried, once a part of it failed."""
        if self.is_failed:
            msg = f"{self._path}: an earlier part of this transaction failed; nothing of it is stored"
            raise StoreError(msg)
        self.is_failed = True
        with translated(self._path):
            yield
        self.is_failed = False
