"""Answers that only one person sees, through the token of what they did: a command, or a press of a button.

A token lives for a quarter of an hour and in this process alone. A command's "thinking" is edited, which is safe to
repeat; after a press something new is said. Where there is no token, whoever sends says it in the open.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import discord
import structlog

from bot.channels.discord.api import CallError, failure_of
from bot.channels.discord.mapping import Interaction, moment
from bot.channels.discord.posts import arguments, in_some_form
from bot.clock import Clock
from bot.render.discord import DiscordMessage

log = structlog.get_logger()

_TOKEN_LASTS = timedelta(minutes=14)
_MOST_OPEN = 1_000
_ANSWERED_ALREADY = 40060
_HEARD = "Hero has it; what follows from it is said in the thread."


class _Open(NamedTuple):
    seen: Interaction
    interaction: discord.Interaction
    waits: bool
    """Whether something is shown that is to be replaced by the answer."""


class Asides:
    """What people did and can still be answered to alone."""

    def __init__(self, clock: Clock, deadline: timedelta) -> None:
        self._clock = clock
        self._deadline = deadline
        self._open: deque[_Open] = deque(maxlen=_MOST_OPEN)

    async def acknowledge(self, seen: Interaction, interaction: discord.Interaction) -> None:
        """Tell Discord that it was heard, within its three seconds; what is too late is answered in the open."""
        response = interaction.response
        try:
            if seen.button:
                await response.defer()
            elif seen.is_deciding:
                await response.send_message(_HEARD, ephemeral=True)
            else:
                await response.defer(ephemeral=True, thinking=True)
        except Exception as error:
            known = failure_of(error, self._deadline)
            if known is None:
                raise
            log.info("discord_acknowledgement_failed", reason=known.detail)
            if known.code != _ANSWERED_ALREADY and not known.is_uncertain:
                return
        self._open.append(_Open(seen, interaction, waits=not seen.button and not seen.is_deciding))

    async def refuse(self, interaction: discord.Interaction, reason: str) -> None:
        """Say at once that nothing was done."""
        try:
            await interaction.response.send_message(reason, ephemeral=True)
        except (discord.DiscordException, OSError) as error:
            log.info("discord_refusal_not_said", kind=type(error).__name__)

    async def answer(self, channel: str, user: str, message: DiscordMessage) -> bool:
        """Answer what that person did there; False when nothing of theirs is open any more.

        Raises:
            CallError: the answer may come later the same way.
        """
        opened = self._take(channel, user)
        if opened is None:
            return False
        try:
            await in_some_form(message, lambda content: self._tell(opened, content))
        except CallError as error:
            if error.is_uncertain or error.is_limited or not error.status:
                self._open.appendleft(opened)
                raise
            log.info("discord_aside_refused", reason=error.detail)
            return False
        return True

    async def _tell(self, opened: _Open, content: DiscordMessage) -> None:
        given = arguments(content)
        call: Callable[[], Awaitable[object]]
        if opened.waits:
            call = lambda: opened.interaction.edit_original_response(**given)  # noqa: E731 - one of two ways
        else:
            call = lambda: opened.interaction.followup.send(ephemeral=True, **given)  # noqa: E731
        try:
            await call()
        except Exception as error:
            known = failure_of(error, self._deadline)
            if known is None:
                raise
            raise known from error

    def _take(self, channel: str, user: str) -> _Open | None:
        """What waits for an answer comes first, oldest first; then the newest of the others."""
        now = self._clock.now()
        fresh = [each for each in self._open if _is_fresh(each, now)]
        theirs = [each for each in fresh if (each.seen.channel, each.seen.user) == (channel, user)]
        found = next((each for each in theirs if each.waits), theirs[-1] if theirs else None)
        self._open = deque((each for each in fresh if each is not found or not each.waits), maxlen=_MOST_OPEN)
        return found


def _is_fresh(opened: _Open, now: datetime) -> bool:
    return now - moment(opened.seen.id) < _TOKEN_LASTS
