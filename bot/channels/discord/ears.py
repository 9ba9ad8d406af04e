"""What comes over the gateway, taken from discord.py's events one by one. A fault in one of them stops no other."""

from typing import Any

import discord
import structlog
from discord import app_commands

from bot.channels.discord.asides import Asides
from bot.channels.discord.completing import AskNames, complete
from bot.channels.discord.inbound import Inbox
from bot.channels.discord.link import Link
from bot.channels.discord.mapping import COMMAND
from bot.channels.discord.seen import heard, interacted, option_of
from bot.channels.discord.threads import Threads
from bot.errors import HeroError, StoreError

log = structlog.get_logger()

_CHOICE_CHARS = 100
_NOT_STORED = "Hero could not store this, so nothing was done. Please try again in a minute."
_ELSEWHERE = "Hero answers in its own server alone."


class Ears(discord.Client):
    """One session at the gateway; whoever keeps it makes a new one when it ends."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        asides: Asides,
        link: Link,
        threads: Threads,
        names: AskNames,
        guild: str,
        content: bool,
        quiet_limit_s: float,
    ) -> None:
        intents = discord.Intents(guilds=True, guild_messages=True, message_content=content)
        super().__init__(
            intents=intents,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            allowed_mentions=discord.AllowedMentions.none(),
            heartbeat_timeout=quiet_limit_s,
        )
        self._inbox = inbox
        self._asides = asides
        self._link = link
        self._threads = threads
        self._names = names
        self._guild = guild

    async def on_connect(self) -> None:
        self._link.connected(is_new=True)
        log.info("discord_connected")

    async def on_resumed(self) -> None:
        self._link.connected(is_new=False)
        log.info("discord_resumed")

    async def on_disconnect(self) -> None:
        self._link.closed()

    async def on_socket_event_type(self, _event: str) -> None:
        self._link.heard()

    async def on_message(self, message: discord.Message) -> None:
        await self._inbox.message(heard(message))

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        await self._inbox.edit(heard(payload.message))

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        await self._inbox.deletion(str(payload.channel_id), str(payload.message_id))

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        for message in sorted(payload.message_ids):
            await self._inbox.deletion(str(payload.channel_id), str(message))

    async def on_raw_thread_delete(self, payload: discord.RawThreadDeleteEvent) -> None:
        self._threads.lost(str(payload.thread_id))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Store it, then say that it was heard."""
        if interaction.type is discord.InteractionType.autocomplete:
            await self._complete(interaction)
            return
        seen = interacted(interaction)
        if seen is None:
            return
        if str(interaction.guild_id) != self._guild:
            await self._asides.refuse(interaction, _ELSEWHERE)
            return
        try:
            is_new = await self._inbox.interaction(seen)
        except StoreError:
            await self._asides.refuse(interaction, _NOT_STORED)
            raise
        if is_new:
            await self._asides.acknowledge(seen, interaction)

    async def on_error(self, event_method: str, /, *_args: Any, **_kwargs: Any) -> None:
        """Note what an event broke at; the threads are read again."""
        log.exception("discord_event_not_taken", event_method=event_method)  # noqa: LOG004 - discord.py calls this inside its handler

    async def _complete(self, interaction: discord.Interaction) -> None:
        data: Any = interaction.data or {}
        if data.get("name") != COMMAND or str(interaction.guild_id) != self._guild:
            return
        try:
            texts = complete(option_of(data), await self._names())
            choices = [app_commands.Choice(name=text[:_CHOICE_CHARS], value=text) for text in texts]
            await interaction.response.autocomplete(choices)
        except (discord.DiscordException, HeroError, OSError) as error:
            log.debug("discord_completion_failed", kind=type(error).__name__)
