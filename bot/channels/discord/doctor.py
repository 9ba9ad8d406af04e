"""Is every part of the connection to Discord in order, and if not, what exactly is to be done."""

import discord

from bot.channels.discord.api import CallError, DiscordApi
from bot.channels.discord.inbound import CONTENT_FIX
from bot.channels.discord.outcomes import NO_ACCESS, fix_for
from bot.channels.discord.registering import INVITE_FIX, is_registered
from bot.settings import DiscordSettings

type Finding = tuple[str, bool, str, str]
"""Connection, whether it is well, what was seen, and the fix when it is not."""

_NETWORK_FIX = "check [discord] api_base and the network"


async def examine(settings: DiscordSettings, api: DiscordApi) -> tuple[Finding, ...]:
    """Check the token first; without it nothing else can be asked."""
    if settings.token is None:
        return (("discord token", False, "not set", "set HERO_DISCORD__TOKEN or token_file"),)
    try:
        me = await api.me()
    except CallError as error:
        return (("discord token", False, error.detail, fix_for(error, "") or _NETWORK_FIX),)
    return (
        ("discord token", True, f"bot {me.name} ({me.user_id})", ""),
        _content(reads=me.reads_content),
        _interactions(by_socket=me.is_reached_by_socket),
        await _gateway(api),
        await _channel(settings, api),
        await _command(settings, api),
    )


def _content(*, reads: bool) -> Finding:
    if reads:
        return ("discord replies", True, "the Message Content Intent is on", "")
    return ("discord replies", False, "the Message Content Intent is off: replies can't be read", CONTENT_FIX)


def _interactions(*, by_socket: bool) -> Finding:
    if by_socket:
        return ("discord buttons", True, "commands and buttons come over the gateway", "")
    fix = "empty Interactions Endpoint URL on the application's General Information page"
    return ("discord buttons", False, "commands and buttons go to an HTTP address, and never reach Hero", fix)


async def _gateway(api: DiscordApi) -> Finding:
    try:
        url = await api.gateway()
    except CallError as error:
        return ("discord gateway", False, error.detail, fix_for(error, "") or _NETWORK_FIX)
    return ("discord gateway", True, f"at {url}", "")


async def _channel(settings: DiscordSettings, api: DiscordApi) -> Finding:
    name, channel = "discord channel", settings.channel or ""
    if not channel or not settings.guild:
        return (name, False, "not set", "set [discord] guild and channel to their numeric ids")
    try:
        home = await api.home()
        await api.ask(lambda _client: _newest(home))
    except CallError as error:
        return (name, False, error.detail, fix_for(error, channel) or _NETWORK_FIX)
    return (name, True, f"#{home.name} can be seen and read", "")


async def _newest(home: discord.TextChannel) -> None:
    """Read one message, which needs the permission to read the history."""
    async for _ in home.history(limit=1):
        return


async def _command(settings: DiscordSettings, api: DiscordApi) -> Finding:
    name = "discord command"
    if not settings.guild:
        return (name, False, "the guild is not set", "set [discord] guild to its numeric id")
    try:
        stands = await is_registered(api, settings.guild)
    except CallError as error:
        fix = INVITE_FIX if error.code == NO_ACCESS else fix_for(error, "") or _NETWORK_FIX
        return (name, False, error.detail, fix)
    return (name, True, "/hero is registered" if stands else "/hero is registered when Hero runs", "")
