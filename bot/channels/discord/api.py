"""Calls to Discord's REST API through discord.py: each with a deadline, and failures that tell what is known of them.

The library repeats a call by itself after some 5xx answers. Posts stand that: each carries a nonce of ours, by which
Discord itself takes it once. Its addresses are the process's, not a client's; both are set here and nowhere else.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bot.errors import ServiceError
from bot.model.value import Value
from bot.settings import DiscordSettings

type Json = dict[str, Any]

DEFAULT_PAUSE = timedelta(seconds=30)
"""After a refusal for its rate that does not say how long to wait."""
_PATIENCE_S = 5.0
"""A longer wait for Discord's rate is not slept through inside a call: the outbox waits."""
_HTTP_UNAUTHORISED = 401
_HTTP_TOO_MANY = 429
_HTTP_ILL = 500

# The library tells of every reconnect with a traceback; Hero logs the edges itself.
_QUIET = logging.getLogger("discord")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class CallError(ServiceError):
    """A call without a good answer.

    Attributes:
        code: Discord's own number for it (topics/opcodes-and-status-codes); 0 when no answer with one came.
        status: the HTTP status; 0 when no answer came.
        retry_after: what Discord asked to wait for.
        is_limited: whether it was refused for its rate.
        is_uncertain: whether it may have been carried out all the same.
        is_garbled: whether the answer could not be understood.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: int = 0,
        status: int = 0,
        retry_after: timedelta | None = None,
        is_limited: bool = False,
        is_uncertain: bool = False,
        is_garbled: bool = False,
    ) -> None:
        super().__init__("discord", detail)
        self.code = code
        self.status = status
        self.retry_after = retry_after
        self.is_limited = is_limited
        self.is_uncertain = is_uncertain
        self.is_garbled = is_garbled

    @property
    def is_refused_token(self) -> bool:
        """Whether Discord does not take the token any more."""
        return self.status == _HTTP_UNAUTHORISED


class Me(Value):
    """Who Hero is on Discord."""

    user_id: int
    application_id: int
    name: str
    reads_content: bool
    """Whether the application may ask for the content of messages."""
    is_reached_by_socket: bool
    """False when interactions go to an HTTP endpoint, where Hero never sees them."""


class DiscordApi:
    """The guild, reached with the bot token. Logs in when first asked; ``close`` ends its connections."""

    def __init__(self, settings: DiscordSettings) -> None:
        Route.BASE = settings.api_base
        self._settings = settings
        self._deadline_s = settings.deadline.total_seconds()
        self._token = settings.token.get_secret_value() if settings.token else ""
        self._client: discord.Client | None = None
        self._me: Me | None = None
        self._home: discord.TextChannel | None = None
        self._logging_in = asyncio.Lock()

    @property
    def token(self) -> str:
        return self._token

    @property
    def known_me(self) -> Me | None:
        """Who Hero is, if Discord was asked before."""
        return self._me

    async def me(self) -> Me:
        """Who Hero is, asked once.

        Raises:
            CallError: Discord was not reached, or does not take the token.
        """
        async with self._logging_in:
            if self._me is None:
                client = _quiet_client()
                try:
                    await self._within(client.login(self._token))
                    self._me = _me_of(client)
                except BaseException:
                    await client.close()
                    raise
                self._client = client
        return self._me

    async def ask[T](self, call: Callable[[discord.Client], Awaitable[T]]) -> T:
        """Make one call.

        Raises:
            CallError: for every way in which no good answer came.
        """
        await self.me()
        assert self._client is not None, "me() has logged in"  # noqa: S101 - our own order of things
        return await self._within(call(self._client))

    async def home(self) -> discord.TextChannel:
        """The channel of the runs, asked once.

        Raises:
            CallError: it was not found, or is no text channel of the guild.
        """
        if self._home is None:
            found = await self.ask(lambda client: client.fetch_channel(int(self._settings.channel or 0)))
            if not isinstance(found, discord.TextChannel) or str(found.guild.id) != self._settings.guild:
                what = f"{found.id} is no text channel of the guild {self._settings.guild}"
                raise CallError(what, code=UNKNOWN_CHANNEL)
            self._home = found
        return self._home

    async def gateway(self) -> str:
        """Ask where the gateway is, and let the library's clients go there.

        Raises:
            CallError: Discord was not reached or refused.
        """
        _, url, _ = await self.ask(lambda client: client.http.get_bot_gateway())
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(url)
        return url

    async def close(self) -> None:
        """End all connections; what is asked later logs in anew."""
        client, self._client, self._me, self._home = self._client, None, None, None
        if client is not None:
            await client.close()

    async def _within[T](self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._deadline_s):
                return await call
        except Exception as error:
            known = failure_of(error, self._settings.deadline)
            if known is None:
                raise
            raise known from error


UNKNOWN_CHANNEL = 10003


def failure_of(error: Exception, deadline: timedelta) -> CallError | None:
    """Tell what a failed call means; None for a fault that is none of Discord's."""
    match error:
        case CallError():
            known: CallError | None = error
        case TimeoutError():
            known = CallError(f"no answer in {deadline}", is_uncertain=True)
        case discord.RateLimited():
            known = CallError("Discord's rate limit", is_limited=True, retry_after=_pause(error.retry_after))
        case discord.LoginFailure():
            known = CallError("Discord does not take the token", status=_HTTP_UNAUTHORISED)
        case discord.GatewayNotFound() if isinstance(error.__cause__, discord.HTTPException):
            known = _refusal(error.__cause__)
        case discord.HTTPException():
            known = _refusal(error)
        case aiohttp.ClientConnectorError():
            known = CallError(f"no connection: {error.os_error.strerror or type(error).__name__}")
        case aiohttp.ClientError() | OSError():
            known = CallError(f"the connection was lost: {type(error).__name__}", is_uncertain=True)
        case discord.DiscordException() | AttributeError() | KeyError() | TypeError() | ValueError():
            # An answer of another type than JSON (a proxy's page) makes the library stumble over itself.
            known = CallError(
                f"an answer that is not Discord's ({type(error).__name__})", is_uncertain=True, is_garbled=True
            )
        case _:
            known = None
    return known


def _refusal(error: discord.HTTPException) -> CallError:
    if error.status == _HTTP_TOO_MANY:
        # One with Discord's own words was waited for or raised as RateLimited; this is a proxy's, without any.
        return CallError("Discord's rate limit", status=error.status, is_limited=True, retry_after=DEFAULT_PAUSE)
    if error.status >= _HTTP_ILL:
        return CallError(f"Discord is ill: {error.status}", code=error.code, status=error.status, is_uncertain=True)
    detail = f"{error.code} {error.text}".strip()[:500] if error.code else f"HTTP {error.status}"
    return CallError(detail, code=error.code, status=error.status)


def _pause(seconds: float) -> timedelta:
    return timedelta(seconds=min(seconds, 3600)) if 0 <= seconds < math.inf else DEFAULT_PAUSE


def _quiet_client() -> discord.Client:
    """A client for calls alone; it never connects to the gateway."""
    client = discord.Client(intents=discord.Intents(guilds=True), allowed_mentions=discord.AllowedMentions.none())
    client.http.max_ratelimit_timeout = _PATIENCE_S
    return client


def _me_of(client: discord.Client) -> Me:
    user, application = client.user, client.application
    if user is None or application is None:
        raise CallError("Discord's answer to the login names no account")
    flags = application.flags
    return Me(
        user_id=user.id,
        application_id=application.id,
        name=user.name,
        reads_content=flags.gateway_message_content or flags.gateway_message_content_limited,
        is_reached_by_socket=not application.interactions_endpoint_url,
    )
