"""What to do when the database itself refuses: tell people on a path that needs none (field report R29)."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import structlog

from bot.channels.ports import Channel
from bot.clock import Clock
from bot.errors import StoreError
from bot.model.delivery import ChannelName, Delivery, Sent, Target
from bot.model.update import Update, UpdateKind
from bot.model.verdict import Severity

log = structlog.get_logger()

_EVERY = timedelta(hours=1)
_AGAIN_WHEN_UNHEARD = timedelta(minutes=1)
"""Pause before it rings again when no channel took it."""
_DEADLINE_S = 20.0


class Alarm:
    """Rings once an hour at most (or until somebody is reached), straight through the channels, with nothing stored."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._channels: tuple[Channel, ...] = ()
        self._quiet_until = float("-inf")
        self._pending: asyncio.Queue[StoreError] = asyncio.Queue(maxsize=1)

    def through(self, channels: Iterable[Channel]) -> None:
        """Say which channels there are; a pager is left out, since nothing would ever tell it that this is over."""
        self._channels = tuple(each for each in channels if each.name is not ChannelName.PAGER)

    def ring(self, error: StoreError) -> None:
        """Note that the database refused; the telling happens in ``run``."""
        log.error("store_refused", detail=str(error))
        if not self._pending.full():
            self._pending.put_nowait(error)

    async def run(self) -> None:
        """Tell what was rung, for ever."""
        while True:
            error = await self._pending.get()
            if self._clock.monotonic() < self._quiet_until:
                continue
            reached = [await self._tell(channel, error) for channel in self._channels]
            pause = _EVERY if any(reached) else _AGAIN_WHEN_UNHEARD
            self._quiet_until = self._clock.monotonic() + pause.total_seconds()

    async def _tell(self, channel: Channel, error: StoreError) -> bool:
        """Tell one channel; whether it took it."""
        at = self._clock.now()
        update = Update(
            kind=UpdateKind.NOTICE,
            run_id=None,
            at=at,
            severity=Severity.CRITICAL,
            headline="Hero cannot write its database: it carries out nothing and takes in nothing until it can",
            evidence=(str(error),),
            next="mend it (free disk space, permissions); Hero goes on by itself, and what it accepted before is kept",
        )
        key = f"alarm/{int(at.timestamp() // _EVERY.total_seconds())}/{channel.name}"
        delivery = Delivery(
            number=0, key=key, channel=channel.name, run_id=None, target=Target(), update=update, created_at=at
        )
        try:
            async with asyncio.timeout(_DEADLINE_S):
                outcome = await channel.send(delivery)
        except Exception:
            log.exception("alarm_failed", channel=channel.name)
            return False
        log.info("alarm_sent", channel=channel.name, outcome=outcome.kind)
        return isinstance(outcome, Sent)
