"""How Hero itself is. Whoever asks gets an answer at once, also while the database gives none."""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta

from bot.channels.ports import Channel
from bot.clock import Clock
from bot.errors import StoreError
from bot.model.delivery import ChannelName
from bot.scheduler import Scheduler
from bot.store.store import Store
from bot.tenure import Tenure
from bot.web.server import Health

PATIENCE = timedelta(seconds=1.5)
"""How long the database is waited for; watchdogs commonly give up after a few seconds themselves."""
LATE_AFTER = timedelta(minutes=2)
"""How late a check may be before Hero is said to be unwell. Less than that, as after a clock that was set, is mended by
the scheduler's guardian within seconds."""
NO_ANSWER = "does not answer in time"


class Examination:
    """Answers what ``/healthz`` asks. There is one look at the database at a time: who asks meanwhile shares it."""

    def __init__(
        self,
        *,
        store: Store,
        scheduler: Scheduler,
        tenure: Tenure,
        channels: Mapping[ChannelName, Channel],
        clock: Clock,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._tenure = tenure
        self._channels = channels
        self._clock = clock
        self._patience = patience
        self._look: asyncio.Task[tuple[str, dict[str, int]]] | None = None

    async def health(self) -> Health:
        """Return how Hero is; takes no longer than the patience."""
        trouble, counts = await self._store_state()
        late = self._scheduler.overdue(LATE_AFTER)
        return Health(
            is_well=not trouble and not late,
            at=self._clock.now(),
            store=trouble or "ok",
            channels={name: channel.trouble or "ok" for name, channel in self._channels.items()},
            watched=len(self._scheduler.watched),
            late=late,
            lease=self._lease_state(),
            counts=counts,
        )

    async def close(self) -> None:
        """End the look that is under way."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait((self._look,))

    def _lease_state(self) -> str:
        lease = self._tenure.lease
        if lease is None:
            return "standing by"
        return "held" if lease.expires_at > self._clock.now() else "ran out"

    async def _store_state(self) -> tuple[str, dict[str, int]]:
        """Return the database's trouble, empty for none, and its counts."""
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._look_at_store(), name="health")
        look = self._look
        # Not cancelled when time is up: SQLite cannot be interrupted while it waits for a lock, and a new attempt for
        # every question would pile up behind it.
        await asyncio.wait((look,), timeout=self._patience.total_seconds())
        if not look.done():
            return NO_ANSWER, {}
        with contextlib.suppress(asyncio.CancelledError):  # the look was ended by ``close``
            return look.result()
        return NO_ANSWER, {}

    async def _look_at_store(self) -> tuple[str, dict[str, int]]:
        try:
            await self._store.probe()
            counts = await self._store.counts()
        except StoreError as error:
            return str(error), {}
        return self._store.trouble, counts
