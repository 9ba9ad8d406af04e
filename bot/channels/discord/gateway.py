"""Keeps one session at the gateway that really hears, and says so when it does not.

discord.py mends a broken connection itself, and resumes; what it can't it raises, and a new session is made here. One
that looks healthy and brings nothing is replaced.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta

import discord
import structlog

from bot.channels.discord.api import CallError, DiscordApi, failure_of
from bot.channels.discord.ears import Ears
from bot.channels.discord.inbound import CONTENT_FIX
from bot.channels.discord.link import Link
from bot.channels.discord.outcomes import fix_for
from bot.channels.discord.troubles import Troubles
from bot.clock import Clock
from bot.settings import DiscordSettings

log = structlog.get_logger()

_LOOK_EVERY = timedelta(seconds=1)
_DOWN_SAID = timedelta(seconds=20)
"""Longer than a resume takes."""
_STEADY = timedelta(minutes=1)
_RETRY_FIRST = timedelta(seconds=1)
_RETRY_MOST = timedelta(seconds=60)


class Gateway:
    """The connection through which Discord tells Hero of what people do."""

    def __init__(
        self,
        settings: DiscordSettings,
        api: DiscordApi,
        clock: Clock,
        *,
        link: Link,
        troubles: Troubles,
        ears: Callable[[bool], Ears],
    ) -> None:
        self._settings = settings
        self._api = api
        self._clock = clock
        self._link = link
        self._troubles = troubles
        self._ears = ears
        self.reads_content = True
        """Whether Hero may read what people write without mentioning it."""

    async def authenticate(self) -> None:
        """Wait until Discord says who Hero is: without that, nothing that comes in can be judged."""
        wait = _RETRY_FIRST
        while True:
            try:
                me = await self._api.me()
            except CallError as error:
                fix = fix_for(error, "") or "check [discord] api_base and the network"
                self._troubles.set("token", f"Discord does not say who Hero is ({error.detail}): {fix}")
                await self._clock.sleep(error.retry_after or wait)
                wait = min(2 * wait, _RETRY_MOST)
            else:
                self._troubles.clear("token")
                if not me.reads_content:
                    self._lack_content()
                return

    async def keep(self) -> None:
        """Hold a session for ever."""
        wait = _RETRY_FIRST
        while True:
            began = self._clock.monotonic()
            try:
                await self._api.gateway()
                await self._hold()
            except CallError as error:
                fix = fix_for(error, "") or "check [discord] api_base and the network"
                self._troubles.set("link", f"Discord's gateway is not reached ({error.detail}): {fix}")
                wait = max(wait, error.retry_after or wait)
            if self._clock.monotonic() - began > _STEADY.total_seconds():
                wait = _RETRY_FIRST
            await self._clock.sleep(wait)
            wait = min(2 * wait, _RETRY_MOST)

    async def _hold(self) -> None:
        """Use one session until it is of no use any more.

        Raises:
            CallError: it ended otherwise than by closing.
        """
        ears = self._ears(self.reads_content)
        failure: CallError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(ears), name="discord-watch")
                try:
                    await self._listen(ears)
                except CallError as error:  # not out of the group, which would wrap it
                    failure = error
                finally:
                    watching.cancel()
        finally:
            self._link.closed()
            await ears.close()
        if failure is not None:
            raise failure

    async def _listen(self, ears: Ears) -> None:
        try:
            async with asyncio.timeout(self._settings.deadline.total_seconds()):
                await ears.login(self._api.token)
            await ears.connect(reconnect=False)
        except discord.ConnectionClosed as error:
            self._closed(error.code)
        except Exception as error:
            known = failure_of(error, self._settings.deadline)
            if known is None:
                raise
            raise known from error

    def _closed(self, code: int | None) -> None:
        log.warning("discord_session_ended", code=code)
        match code:  # topics/opcodes-and-status-codes, "Gateway Close Event Codes"
            case 4004:
                raise CallError("Discord does not take the token", status=401)
            case 4014 if self.reads_content:
                self._lack_content()
            case _:
                raise CallError(f"Discord ended the session: close code {code}")

    def _lack_content(self) -> None:
        self.reads_content = False
        self._troubles.set("content", f"Discord keeps the text of replies from Hero: {CONTENT_FIX}")

    async def _watch(self, ears: Ears) -> None:
        down_at = self._clock.monotonic()
        while True:
            if self._link.is_up:
                down_at = self._clock.monotonic()
                self._troubles.clear("link")
                if self._link.is_deaf(self._settings.quiet_limit):
                    log.warning("discord_session_replaced", reason="deaf")
                    self._link.closed()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._settings.deadline.total_seconds()):
                            await ears.close()
            elif timedelta(seconds=self._clock.monotonic() - down_at) > _DOWN_SAID:
                self._troubles.set("link", "Discord's gateway is down: threads are read meanwhile")
            await self._clock.sleep(_LOOK_EVERY)
