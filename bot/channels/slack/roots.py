"""The first message of each run's thread: remembered, named by the contract, found again, or made.

A root is Hero's own message and shows the live status, unless the contract names an existing thread.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import structlog

from bot.channels.ports import Ledger
from bot.channels.slack.api import CallError, SlackApi
from bot.channels.slack.posts import Marker, Posts, Ref
from bot.clock import Clock
from bot.model.delivery import ChannelName, Posted
from bot.model.value import RunId
from bot.render.slack import SlackMessage, render_moved, render_thread_root

log = structlog.get_logger()

THREAD = "thread"
LIVE = "live"

_LOOK_BACK = timedelta(days=1)


class Roots:
    """Where each run's thread begins. All methods raise CallError."""

    def __init__(
        self,
        api: SlackApi,
        posts: Posts,
        ledger: Ledger,
        clock: Clock,
        *,
        channel: str,
        threads: Callable[[RunId], str | None],
    ) -> None:
        self._api = api
        self._posts = posts
        self._ledger = ledger
        self._clock = clock
        self._channel = channel
        self._threads = threads
        self._gone: set[str] = set()
        self._making = asyncio.Lock()

    def lost(self, message_id: str) -> None:
        """The root ``CHANNEL:TS`` was deleted: the run's next message opens a new thread."""
        if message_id not in self._gone:
            self._gone.add(message_id)
            log.warning("slack_thread_lost", root=message_id)

    async def known(self, run_id: RunId) -> Posted | None:
        """The root that is remembered or named by the contract; None when there is none or it is gone."""
        remembered = await self._ledger.posted(ChannelName.SLACK, run_id, THREAD)
        if remembered is not None and remembered.message_id not in self._gone:
            return remembered
        named = self._threads(run_id)
        if not named:
            return None
        ref = Ref.parse(named if ":" in named else f"{self._channel}:{named}")
        if str(ref) in self._gone:
            return None
        return await self._save(run_id, ref, THREAD)

    async def find(self, run_id: RunId) -> Posted | None:
        """The known root, or one that was posted before a crash and never remembered."""
        known = await self.known(run_id)
        if known is not None:
            return known
        found = await self._posts.find_root(self._channel, self._clock.now() - _LOOK_BACK, run_id)
        return await self._made(run_id, found) if found and str(found) not in self._gone else None

    async def make(self, run_id: RunId, key: str, content: SlackMessage | None = None) -> tuple[Posted, bool]:
        """The run's root, made if need be: with ``content``, which the returned flag says it now shows, or a stub."""
        async with self._making:
            found = await self.find(run_id)
            if found is not None:
                return found, False
            before = await self._ledger.posted(ChannelName.SLACK, run_id, THREAD)
            marker = Marker(key=key if content else f"root:{run_id}", root_of=run_id)
            ref = await self._posts.post(self._channel, content or render_thread_root(run_id), marker)
            root = await self._made(run_id, ref)
        if before is not None:
            await self._say_moved(run_id, root)
        return root, content is not None

    async def _say_moved(self, run_id: RunId, root: Posted) -> None:
        ref = Ref.parse(root.message_id)
        try:
            await self._posts.post(ref.channel, render_moved(run_id), Marker(key=f"moved:{ref}"), root=ref.ts)
        except CallError as error:
            log.warning("slack_move_not_told", run_id=run_id, reason=error.detail)

    async def _made(self, run_id: RunId, ref: Ref) -> Posted:
        """Remember a root of Hero's own, which is the live message too."""
        await self._save(run_id, ref, LIVE)
        return await self._save(run_id, ref, THREAD)

    async def _save(self, run_id: RunId, ref: Ref, slot: str) -> Posted:
        me = await self._api.me()
        posted = Posted(
            channel=ChannelName.SLACK,
            run_id=run_id,
            slot=slot,
            message_id=str(ref),
            link=me.link(ref.channel, ref.ts),
        )
        await self._ledger.save_posted(posted)
        return posted
