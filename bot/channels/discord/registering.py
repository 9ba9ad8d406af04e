"""Sees to it that ``/hero`` is a command of the guild: one with a single free text, completed while it is typed."""

from datetime import timedelta
from typing import Any

import structlog

from bot.channels.discord.api import CallError, DiscordApi, Json
from bot.channels.discord.mapping import COMMAND, OPTION
from bot.channels.discord.outcomes import NO_ACCESS
from bot.channels.discord.troubles import Troubles
from bot.clock import Clock

log = structlog.get_logger()

_RETRY_FIRST = timedelta(seconds=5)
_RETRY_MOST = timedelta(minutes=5)
INVITE_FIX = "invite the bot again with the scopes bot and applications.commands"

THE_COMMAND: Json = {
    "name": COMMAND,
    "description": "Ask about training runs and what Hero does",
    "type": 1,
    "options": [
        {
            "name": OPTION,
            "description": "status, runs, incidents … or help; approve R7 inside a run's thread",
            "type": 3,
            "required": False,
            "autocomplete": True,
            "max_length": 1000,
        }
    ],
}


async def is_registered(api: DiscordApi, guild: str) -> bool:
    """Ask whether the command stands as it should.

    Raises:
        CallError: Discord could not be asked.
    """
    me = await api.me()
    found: Any = await api.ask(lambda client: client.http.get_guild_commands(me.application_id, int(guild)))
    return any(_covers(each, THE_COMMAND) for each in found)


async def _register(api: DiscordApi, guild: str) -> None:
    me = await api.me()
    await api.ask(lambda client: client.http.upsert_guild_command(me.application_id, int(guild), THE_COMMAND))
    log.info("discord_command_registered")


async def keep_registered(api: DiscordApi, guild: str, clock: Clock, troubles: Troubles) -> None:
    """Register the command unless it stands; what is there already is left alone, as creations are counted a day."""
    wait = _RETRY_FIRST
    while True:
        try:
            if not await is_registered(api, guild):
                await _register(api, guild)
        except CallError as error:
            fix = INVITE_FIX if error.code == NO_ACCESS else "Hero tries again"
            troubles.set("command", f"/{COMMAND} is not registered ({error.detail}): {fix}")
            await clock.sleep(error.retry_after or wait)
            wait = min(2 * wait, _RETRY_MOST)
        else:
            troubles.clear("command")
            return


def _covers(found: object, wanted: object) -> bool:
    """Whether all that is wanted is there; Discord adds fields of its own, and leaves out what is false."""
    match wanted:
        case dict():
            return isinstance(found, dict) and all(_covers(found.get(key), each) for key, each in wanted.items())
        case list():
            return (
                isinstance(found, list)
                and len(found) == len(wanted)
                and all(_covers(a, b) for a, b in zip(found, wanted, strict=True))
            )
        case False:
            return not found
        case _:
            return found == wanted
