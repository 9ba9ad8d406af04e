"""Says, edits and finds again Hero's own messages. Every post carries a mark made of its delivery's key.

The mark is the nonce, by which Discord takes a post once within a few minutes, and stands small at the message's end,
by which it is found later. Edits are safe to repeat.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import discord
import structlog

from bot.channels.discord.api import CallError, DiscordApi
from bot.channels.discord.mapping import snowflake_at
from bot.channels.discord.outcomes import ARCHIVED, BAD_CONTENT
from bot.channels.discord.troubles import Troubles
from bot.model.value import Value
from bot.render.discord import DiscordMessage, signature

log = structlog.get_logger()

_LOOK_BACK = 300
"""Messages that are looked through for a mark."""
_CLOCKS_DIFFER = timedelta(minutes=5)
_SHOWN_LIMIT = 2_000


class Ref(Value):
    """A message: ``CHANNEL:MESSAGE`` in the ledger."""

    channel: int
    message: int

    @classmethod
    def parse(cls, message_id: str) -> "Ref":
        channel, _, message = message_id.partition(":")
        return cls(channel=int(channel), message=int(message))

    def __str__(self) -> str:
        return f"{self.channel}:{self.message}"


class Posts:
    """Hero's own messages. All methods raise CallError; ``on_spoken`` hears of each that echoes as an event."""

    def __init__(self, api: DiscordApi, troubles: Troubles, on_spoken: Callable[[], None]) -> None:
        self._api = api
        self._troubles = troubles
        self._on_spoken = on_spoken
        self._shown: dict[str, str] = {}

    async def post(self, channel: int, message: DiscordMessage, nonce: str) -> Ref:
        """Say something new in a channel or thread; an archived thread opens by it.

        Discord may answer with what was said under this nonce before; that is made to say the present words.
        """

        async def once(content: DiscordMessage) -> discord.Message:
            return await self._api.ask(
                lambda client: client.get_partial_messageable(channel).send(nonce=nonce, **arguments(content))
            )

        sent = await in_some_form(message, once)
        self._on_spoken()
        ref = Ref(channel=sent.channel.id, message=sent.id)
        if sent.content not in {message.content, message.plain.content if message.plain else ""}:
            await self.edit(ref, message)
            return ref
        self._remember(ref, message)
        await self._see_that_embeds_arrived(ref, sent, message)
        return ref

    async def edit(self, ref: Ref, message: DiscordMessage) -> None:
        """Let a message say something else; nothing is sent when it says so already."""
        if self._shown.get(str(ref)) == _digest(message):
            return

        async def once(content: DiscordMessage) -> discord.Message:
            return await self._api.ask(
                lambda client: (
                    client.get_partial_messageable(ref.channel)
                    .get_partial_message(ref.message)
                    .edit(**(arguments(content) | {"view": view_of(content)}))
                )
            )

        try:
            sent = await in_some_form(message, once)
        except CallError as error:
            if error.code != ARCHIVED:
                raise
            await self.unarchive(ref.channel)
            sent = await in_some_form(message, once)
        self._remember(ref, message)
        await self._see_that_embeds_arrived(ref, sent, message)

    async def unarchive(self, thread: int) -> None:
        """Open an archived thread again: nothing in it can be edited before."""
        found = await self._api.ask(lambda client: client.fetch_channel(thread))
        if isinstance(found, discord.Thread):
            await self._api.ask(lambda _client: found.edit(archived=False))
            log.info("discord_thread_reopened", thread=thread)

    async def direct(self, user: int) -> int:
        """Return the channel of the direct conversation with one person; it is opened when there is none."""
        person = await self._api.ask(lambda client: client.fetch_user(user))
        return (await self._api.ask(lambda _client: person.create_dm())).id

    async def find(self, channel: int, since: datetime, mark: str, *, but: frozenset[str] = frozenset()) -> Ref | None:
        """Look for Hero's own message with this mark among the newest ones; ``but`` are ids that are not meant."""
        me = await self._api.me()
        after = discord.Object(snowflake_at(since - _CLOCKS_DIFFER))

        async def look(client: discord.Client) -> int | None:
            place = client.get_partial_messageable(channel)
            async for message in place.history(limit=_LOOK_BACK, after=after, oldest_first=False):
                if message.author.id == me.user_id and bears(message, mark) and str(message.id) not in but:
                    return message.id
            return None

        found = await self._api.ask(look)
        return Ref(channel=channel, message=found) if found else None

    async def _see_that_embeds_arrived(self, ref: Ref, sent: discord.Message, message: DiscordMessage) -> None:
        """Discord drops embeds without a word where the bot may not embed links: say it in plain text then."""
        if not message.embeds or message.plain is None or sent.content == message.plain.content:
            return
        if sent.embeds:
            self._troubles.clear("embeds")
            return
        self._troubles.set("embeds", f"messages on Discord are plain text: allow Embed Links in channel {ref.channel}")
        plain = message.plain
        await self._api.ask(
            lambda client: (
                client.get_partial_messageable(ref.channel)
                .get_partial_message(ref.message)
                .edit(**(arguments(plain) | {"view": view_of(plain)}))
            )
        )

    def _remember(self, ref: Ref, message: DiscordMessage) -> None:
        if len(self._shown) >= _SHOWN_LIMIT:
            self._shown.clear()
        self._shown[str(ref)] = _digest(message)


def arguments(content: DiscordMessage) -> dict[str, Any]:
    """What discord.py sends; nobody is pinged but who is named in ``mentions``."""
    people = [discord.Object(user) for user in content.mentions]
    allowed = discord.AllowedMentions(everyone=False, roles=False, users=people or False, replied_user=False)
    given: dict[str, Any] = {
        "content": content.content,
        "embeds": [discord.Embed.from_dict(embed) for embed in content.embeds],
        "allowed_mentions": allowed,
    }
    return given | ({"view": view_of(content)} if content.buttons else {})


def view_of(content: DiscordMessage) -> discord.ui.View | None:
    """The buttons; presses come as events, so the library need not keep the view."""
    if not content.buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in content.buttons:
        style = discord.ButtonStyle.success if button.is_approval else discord.ButtonStyle.danger
        view.add_item(discord.ui.Button(label=button.label, style=style, custom_id=button.custom_id))
    view.stop()
    return view


async def in_some_form[T](message: DiscordMessage, once: Callable[[DiscordMessage], Awaitable[T]]) -> T:
    """Send it; when Discord does not take its embeds, send its text alone rather than nothing (field report R08)."""
    try:
        return await once(message)
    except CallError as error:
        if error.code != BAD_CONTENT or message.plain is None:
            raise
        return await once(message.plain)


def bears(message: discord.Message, mark: str) -> bool:
    """Whether the message ends with the mark."""
    foot = signature(mark)
    return message.content.endswith(foot) or any(embed.footer.text == foot for embed in message.embeds)


def _digest(message: DiscordMessage) -> str:
    return sha256(message.model_dump_json().encode()).hexdigest()
