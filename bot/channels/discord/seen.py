"""discord.py's objects as Hero's own: what decides is taken out here, once, so that the rest knows no SDK."""

from typing import Any

import discord

from bot.channels.discord.mapping import COMMAND, OPTION, Heard, Interaction

_SPOKEN = frozenset({discord.MessageType.default, discord.MessageType.reply})


def heard(message: discord.Message) -> Heard:
    """A message; a forwarded one holds nothing of its author's own, and its words are quoted."""
    forwarded = bool(message.message_snapshots)
    passed_on = [line for each in message.message_snapshots for line in each.content.splitlines()]
    content = "\n".join(f"> {line}" for line in passed_on) if forwarded else message.content
    other = (message.attachments, message.embeds, message.stickers, message.components, message.poll, forwarded)
    author = message.author
    return Heard(
        id=str(message.id),
        channel=str(message.channel.id),
        guild=str(message.guild.id) if message.guild else "",
        author=str(author.id),
        author_name=author.name,
        is_bots=bool(author.bot or message.webhook_id or message.application_id),
        is_spoken=message.type in _SPOKEN and not author.system,
        text=content,
        is_bare=not content and not any(other),
        is_forwarded=forwarded,
        edited_at=message.edited_at,
    )


def interacted(interaction: discord.Interaction) -> Interaction | None:
    """A slash command of Hero's or a press; None for anything else."""
    data: Any = interaction.data or {}
    common: dict[str, Any] = {
        "id": str(interaction.id),
        "channel": str(interaction.channel_id or 0),
        "user": str(interaction.user.id),
        "user_name": interaction.user.name,
    }
    if interaction.type is discord.InteractionType.application_command and data.get("name") == COMMAND:
        return Interaction(text=option_of(data).strip(), **common)
    if interaction.type is discord.InteractionType.component and interaction.message is not None:
        message = interaction.message
        pressed = str(data.get("custom_id") or "")
        return Interaction(button=pressed, message=str(message.id), message_author=str(message.author.id), **common)
    return None


def option_of(data: Any) -> str:
    """The text of the one option, as far as it was typed."""
    given = {str(option.get("name")): option.get("value") for option in data.get("options") or ()}
    return str(given.get(OPTION) or "")
