"""Each run's thread: remembered, named by the contract, found again, or made.

A thread hangs on a message of Hero's in the channel of the runs, which shows the live status, and has that message's
id. So a thread is made once: a second one on the same message is refused, and the message itself is found by its mark.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import discord
import structlog

from bot.channels.discord.api import UNKNOWN_CHANNEL, CallError, DiscordApi
from bot.channels.discord.outcomes import ARCHIVED, HAS_THREAD, LOCKED, NO_ACCESS, NO_PERMISSION
from bot.channels.discord.posts import Posts, Ref
from bot.channels.ports import Ledger
from bot.clock import Clock
from bot.model.delivery import ChannelName, Posted
from bot.model.value import RunId
from bot.render.discord import DiscordMessage, mark_of, render_moved, render_thread_root

log = structlog.get_logger()

THREAD = "thread"
LIVE = "live"

type Shown = Callable[[str], DiscordMessage]
"""What a message shows, given its mark."""

_LOOK_BACK = timedelta(days=1)
_NAME_CHARS = 100
_WEEK_MIN: Final = 10_080
"""The longest time after which Discord archives a quiet thread by itself."""
_SHUT = frozenset({ARCHIVED, LOCKED, NO_ACCESS, NO_PERMISSION})


def root_mark(run_id: RunId) -> str:
    """The mark of the message that a run's thread hangs on, whatever else it shows."""
    return mark_of(f"thread of {run_id}")


class Threads:
    """Where each run's conversation is. All methods raise CallError."""

    def __init__(
        self,
        api: DiscordApi,
        posts: Posts,
        ledger: Ledger,
        clock: Clock,
        *,
        guild: str,
        named: Callable[[RunId], str | None],
    ) -> None:
        self._api = api
        self._posts = posts
        self._ledger = ledger
        self._clock = clock
        self._guild = guild
        self._named = named
        self._gone: set[str] = set()
        self._making = asyncio.Lock()

    def lost(self, thread: str) -> None:
        """The thread was deleted or locked: the run's next message opens a new one."""
        if thread not in self._gone:
            self._gone.add(thread)
            log.warning("discord_thread_lost", thread=thread)

    async def is_shut(self, error: CallError, thread: str) -> bool:
        """Whether a refused post or edit is the thread's own fault, so that a new one has to be opened."""
        if error.code == UNKNOWN_CHANNEL:
            return True
        if error.code not in _SHUT:
            return False
        try:
            found = await self._api.ask(lambda client: client.fetch_channel(int(thread)))
        except CallError as again:
            return again.code == UNKNOWN_CHANNEL
        return isinstance(found, discord.Thread) and found.locked

    async def known(self, run_id: RunId) -> Posted | None:
        """The thread that is remembered or named by the contract; None when there is none or it is gone."""
        remembered = await self._ledger.posted(ChannelName.DISCORD, run_id, THREAD)
        if remembered is not None and remembered.message_id not in self._gone:
            return remembered
        named = self._named(run_id)
        return await self._save(run_id, THREAD, named) if named and named not in self._gone else None

    async def make(self, run_id: RunId, shown: Shown | None = None) -> tuple[Posted, bool]:
        """The run's thread, made if need be: on a message that shows the status, as the returned flag says, or a stub.

        A message that an earlier Hero left without its thread, or without remembering it, is found and used.
        """
        async with self._making:
            known = await self.known(run_id)
            if known is not None:
                return known, False
            before = await self._ledger.posted(ChannelName.DISCORD, run_id, THREAD)
            mark = root_mark(run_id)
            home = await self._api.home()
            ref = await self._posts.find(home.id, self._clock.now() - _LOOK_BACK, mark, but=frozenset(self._gone))
            is_shown = ref is None and shown is not None
            if ref is None:
                content = shown(mark) if shown is not None else render_thread_root(run_id, mark)
                nonce = mark_of(f"thread of {run_id} after {before.message_id if before else 'none'}")
                ref = await self._posts.post(home.id, content, nonce)
            await self._start(home, ref, run_id)
            await self._save(run_id, LIVE, str(ref))
            made = await self._save(run_id, THREAD, str(ref.message))
        if before is not None:
            await self._say_moved(run_id, made)
        return made, is_shown

    def link(self, channel: str, message: str = "") -> str:
        """The address of a thread or of a message in it."""
        return f"https://discord.com/channels/{self._guild}/{channel}" + (f"/{message}" if message else "")

    async def _start(self, home: discord.TextChannel, ref: Ref, run_id: RunId) -> None:
        name = " ".join(run_id.split())[:_NAME_CHARS] or "run"
        message = home.get_partial_message(ref.message)
        try:
            await self._api.ask(lambda _client: message.create_thread(name=name, auto_archive_duration=_WEEK_MIN))
        except CallError as error:
            if error.code != HAS_THREAD:
                raise

    async def _say_moved(self, run_id: RunId, thread: Posted) -> None:
        mark = mark_of(f"moved to {thread.message_id}")
        try:
            await self._posts.post(int(thread.message_id), render_moved(run_id, mark), mark)
        except CallError as error:
            log.warning("discord_move_not_told", run_id=run_id, reason=error.detail)

    async def _save(self, run_id: RunId, slot: str, message_id: str) -> Posted:
        channel, _, message = message_id.partition(":")
        posted = Posted(
            channel=ChannelName.DISCORD,
            run_id=run_id,
            slot=slot,
            message_id=message_id,
            link=self.link(channel, message),
        )
        await self._ledger.save_posted(posted)
        return posted
