"""Reads the watched threads from a stored cursor, so that a reply which no event told of still counts, once.

Sockets go deaf, events are lost while Hero is down: what people wrote stays in the thread, and what they deleted
meanwhile does not. The same ids are used as for events, so the inbox drops what it knows.

Slack allows 50 such reads a minute. So a turn reads the threads in which an answer is awaited, then as many of the
others as there is room for, those read longest ago first; the threads of runs that are over are left out.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import structlog
from pydantic import ValidationError

from bot.channels.ports import Ledger
from bot.channels.slack.api import CallError, Json, SlackApi
from bot.channels.slack.inbound import Inbox
from bot.channels.slack.link import Link
from bot.channels.slack.mapping import moment
from bot.channels.slack.outcomes import GONE, fix_for
from bot.channels.slack.pace import DEFAULT_PAUSE
from bot.channels.slack.posts import Ref
from bot.channels.slack.troubles import Troubles
from bot.clock import Clock
from bot.errors import StoreError
from bot.model.delivery import ChannelName
from bot.settings import SlackSettings

log = structlog.get_logger()

_MINUTE = timedelta(minutes=1)
_OVERLAP_US = 30_000_000
"""Slack's order of appearance is not promised: the last half minute is read again."""
_PAGE = 200
_READS_A_MINUTE = 40
"""conversations.replies is in tier 3, 50 a minute in the whole workspace (Slack: Rate limits); the rest is for finding
posts of uncertain fate."""
_FEWEST_READS = 5


class CatchUp:
    """Reads the threads that the ledger knows, regularly and after each new connection."""

    def __init__(
        self,
        settings: SlackSettings,
        api: SlackApi,
        ledger: Ledger,
        clock: Clock,
        *,
        inbox: Inbox,
        link: Link,
        troubles: Troubles,
        on_root_gone: Callable[[str], None],
    ) -> None:
        self._every = settings.catch_up
        self._api = api
        self._ledger = ledger
        self._clock = clock
        self._inbox = inbox
        self._link = link
        self._troubles = troubles
        self._on_root_gone = on_root_gone
        self._most = max(_FEWEST_READS, int(_READS_A_MINUTE * self._every / _MINUTE))
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
                pause = max(pause, error.retry_after or (DEFAULT_PAUSE if error.code == "ratelimited" else pause))
                self._troubles.set("reading", f"Slack's threads can't be read: {error.detail}")
            except StoreError as error:
                log.warning("slack_catch_up_stopped", reason=str(error))
            await self._next_turn(pause)

    async def read_all(self) -> str:
        """Read what is new in the threads whose turn it is; return which are refused and the fix, empty for none.

        Raises:
            CallError: Slack could not be asked; the cursors stand where they were.
            StoreError: what was read could not be stored.
        """
        refused = ""
        self._turns += 1
        left = self._most
        for root in await self._in_order():
            if left <= 0:
                break
            self._read_at[str(root)] = self._turns
            try:
                left -= await self._read(root)
            except CallError as error:
                if error.code in GONE:
                    self._on_root_gone(str(root))
                elif not error.code or error.code == "ratelimited" or error.is_uncertain:
                    raise
                else:
                    fix = fix_for(error, root.channel) or "see Slack's description of this error"
                    refused = f"replies in {root.channel} can't be read ({error.detail}): {fix}"
        return refused

    async def _in_order(self) -> tuple[Ref, ...]:
        """Return the threads to read: first where an answer is awaited, and of each kind those read longest ago."""
        awaited = await self._ledger.awaited()
        threads = [p for p in await self._ledger.threads(ChannelName.SLACK) if p.run_id not in awaited.over]
        threads.sort(key=lambda p: (p.run_id not in awaited.asked, self._read_at.get(p.message_id, 0)))
        return tuple(Ref.parse(posted.message_id) for posted in threads)

    async def _read(self, root: Ref) -> int:
        """Read one thread from its cursor on; return how many questions that took."""
        name = f"slack:{root.channel}:{root.ts}"
        before = newest = _us(await self._ledger.cursor(name) or root.ts)
        since = max(_us(root.ts), before - _OVERLAP_US)
        page, asked = "", 0
        while True:
            asked += 1
            answer = await self._api.ask(
                self._api.client.conversations_replies(
                    channel=root.channel, ts=root.ts, oldest=_ts(since), limit=_PAGE, cursor=page or None
                )
            )
            for raw in answer.get("messages") or ():
                newest = max(newest, await self._take(root, raw))
            page = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not page:
                break
        if newest != before:
            await self._ledger.save_cursor(name, _ts(newest))
        return asked

    async def _take(self, root: Ref, raw: Json) -> int:
        """Hand on one message; return its time."""
        ts = str(raw.get("ts") or "0.0")
        if ts == root.ts:
            if raw.get("subtype") == "tombstone":
                self._on_root_gone(str(root))
            return 0
        try:
            if await self._inbox.found(root.channel, raw):
                self._link.found_unheard(moment(ts))
        except (ValidationError, ValueError) as error:
            log.warning("slack_message_unrecognised", channel=root.channel, ts=ts, kind=type(error).__name__)
        return _us(ts)

    async def _next_turn(self, pause: timedelta) -> None:
        """Wait for the next turn, or for a new connection."""
        async with asyncio.TaskGroup() as group:
            waits = {
                group.create_task(self._clock.sleep(pause), name="slack-catch-up-pause"),
                group.create_task(self._link.reconnected.wait(), name="slack-catch-up-reconnected"),
            }
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()


def _us(ts: str) -> int:
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1_000_000 + int(f"{fraction:0<6.6}")


def _ts(us: int) -> str:
    return f"{us // 1_000_000}.{us % 1_000_000:06d}"
