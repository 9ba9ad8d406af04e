"""Reads the watched threads from a stored cursor, so that a reply which no event told of still counts, once.

A session that cannot be resumed replays nothing, and events are lost while Hero is down: what people wrote stays in
the thread, and what they deleted meanwhile does not. The same ids are used as for events, so the inbox drops what it
knows. A turn reads the threads in which an answer is awaited, then as many of the others as there is room for, those
read longest ago first; the threads of runs that are over are left out.
"""

import asyncio
from datetime import timedelta

import discord
import structlog

from bot.channels.discord.api import DEFAULT_PAUSE, UNKNOWN_CHANNEL, CallError, DiscordApi
from bot.channels.discord.inbound import Inbox
from bot.channels.discord.link import Link
from bot.channels.discord.mapping import moment
from bot.channels.discord.outcomes import fix_for
from bot.channels.discord.seen import heard
from bot.channels.discord.threads import Threads
from bot.channels.discord.troubles import Troubles
from bot.channels.ports import Ledger
from bot.clock import Clock
from bot.errors import StoreError
from bot.model.delivery import ChannelName

log = structlog.get_logger()

_OVERLAP = 30_000 << 22
"""The last half minute is read again: events and reading overtake each other."""
_READS_A_TURN = 60
"""Of 50 requests a second for everything that Hero does; a thread's own limit is about one a second."""
_MOST_MESSAGES = 1_000
"""Of one thread in one turn; the rest follows in the next."""


class CatchUp:
    """Reads the threads that the ledger knows, regularly and after each new connection."""

    def __init__(
        self,
        api: DiscordApi,
        ledger: Ledger,
        clock: Clock,
        *,
        every: timedelta,
        inbox: Inbox,
        link: Link,
        troubles: Troubles,
        threads: Threads,
    ) -> None:
        self._api = api
        self._ledger = ledger
        self._clock = clock
        self._every = every
        self._inbox = inbox
        self._link = link
        self._troubles = troubles
        self._threads = threads
        self._turns = 0
        self._read_at: dict[str, int] = {}
        """In which turn each thread was read last."""

    async def keep(self) -> None:
        """Read for ever; what fails is tried again at the next turn."""
        while True:
            self._link.reconnected.clear()
            pause = self._every
            try:
                if unread := await self.read_all():
                    self._troubles.set("reading", unread)
                else:
                    self._troubles.clear("reading")
            except CallError as error:
                pause = max(pause, error.retry_after or (DEFAULT_PAUSE if error.is_limited else pause))
                self._troubles.set("reading", f"Discord's threads can't be read: {error.detail}")
            except StoreError as error:
                log.warning("discord_catch_up_stopped", reason=str(error))
            await self._next_turn(pause)

    async def read_all(self) -> str:
        """Read what is new in the threads whose turn it is; return which are refused and the fix, empty for none.

        Raises:
            CallError: Discord could not be asked; the cursors stand where they were.
            StoreError: what was read could not be stored.
        """
        refused = ""
        self._turns += 1
        for thread in (await self._in_order())[:_READS_A_TURN]:
            self._read_at[thread] = self._turns
            try:
                await self._read(thread)
            except CallError as error:
                if error.code == UNKNOWN_CHANNEL:
                    self._threads.lost(thread)
                elif error.is_garbled:  # one message that the library can't take keeps no other thread unread
                    refused = f"replies in thread {thread} can't be read ({error.detail}): answer on another channel"
                elif not error.code or error.is_limited or error.is_uncertain or error.is_refused_token:
                    raise
                else:
                    fix = fix_for(error, thread) or "see Discord's description of this error"
                    refused = f"replies in thread {thread} can't be read ({error.detail}): {fix}"
        return refused

    async def _in_order(self) -> tuple[str, ...]:
        """Return the threads to read: first where an answer is awaited, and of each kind those read longest ago."""
        awaited = await self._ledger.awaited()
        threads = [p for p in await self._ledger.threads(ChannelName.DISCORD) if p.run_id not in awaited.over]
        threads.sort(key=lambda p: (p.run_id not in awaited.asked, self._read_at.get(p.message_id, 0)))
        return tuple(posted.message_id for posted in threads)

    async def _read(self, thread: str) -> None:
        """Read one thread from its cursor on."""
        name = f"discord:{thread}"
        before = newest = int(await self._ledger.cursor(name) or thread)
        since = discord.Object(max(int(thread), before - _OVERLAP))

        async def read(client: discord.Client) -> list[discord.Message]:
            place = client.get_partial_messageable(int(thread))
            return [each async for each in place.history(limit=_MOST_MESSAGES, after=since, oldest_first=True)]

        for message in await self._api.ask(read):
            await self._take(message)
            newest = max(newest, message.id)
        if newest != before:
            await self._ledger.save_cursor(name, str(newest))

    async def _take(self, message: discord.Message) -> None:
        seen = heard(message)
        if await self._inbox.found(seen):
            self._link.found_unheard(moment(seen.id))

    async def _next_turn(self, pause: timedelta) -> None:
        """Wait for the next turn, or for a new connection."""
        async with asyncio.TaskGroup() as group:
            waits = {
                group.create_task(self._clock.sleep(pause), name="discord-catch-up-pause"),
                group.create_task(self._link.reconnected.wait(), name="discord-catch-up-reconnected"),
            }
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
