"""Keeps one Socket Mode connection that really hears, and says so when it does not.

The SDK mends a closed connection itself, but not all: it tries a dead address for ever and does not notice that it is
deaf. So the connection is watched from here and replaced whole.
"""

import asyncio
import json
from datetime import timedelta

import structlog
from aiohttp import WSMessage
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp

from bot.channels.slack.api import QUIET, CallError, SlackApi
from bot.channels.slack.link import Link
from bot.channels.slack.outcomes import fix_for
from bot.channels.slack.troubles import Troubles
from bot.clock import Clock
from bot.settings import SlackSettings

log = structlog.get_logger()

_PING_EVERY_S = 3
"""A half-open peer is noticed after about two of them (Bolt's default is 10)."""
_LOOK_EVERY = timedelta(seconds=1)
_DOWN_LIMIT = timedelta(seconds=45)
"""Longer than the SDK needs to mend what it can."""
_DOWN_SAID = timedelta(seconds=15)
_RETRY_FIRST = timedelta(seconds=1)
_RETRY_MOST = timedelta(seconds=60)
_CLOSE_LIMIT_S = 2.0

_SOCKET_FIX = "create an app-level token with connections:write, set HERO_SLACK__APP_TOKEN or app_token_file, restart"
APP_TOKEN_CODES = frozenset({"invalid_auth", "not_authed", "token_revoked", "missing_scope", "not_allowed_token_type"})


def app_token_fix(error: CallError) -> str:
    """What to do when apps.connections.open is refused."""
    return _SOCKET_FIX if error.code in APP_TOKEN_CODES else "turn on Socket Mode in the app's settings"


class SocketMode:
    """The connection through which Slack tells Hero of what people do."""

    def __init__(
        self, settings: SlackSettings, api: SlackApi, app: AsyncApp, clock: Clock, *, link: Link, troubles: Troubles
    ) -> None:
        self._settings = settings
        self._api = api
        self._app = app
        self._clock = clock
        self._link = link
        self._troubles = troubles

    async def authenticate(self) -> None:
        """Wait until Slack says who Hero is: without that, nothing that comes in can be judged."""
        wait = _RETRY_FIRST
        while True:
            try:
                await self._api.me()
            except CallError as error:
                fix = fix_for(error, self._settings.channel or "") or "check [slack] base_url and the network"
                self._troubles.set("token", f"Slack does not say who Hero is ({error.detail}): {fix}")
                await self._clock.sleep(error.retry_after or wait)
                wait = min(2 * wait, _RETRY_MOST)
            else:
                self._troubles.clear("token")
                return

    async def keep(self) -> None:
        """Hold a connection for ever."""
        wait = _RETRY_FIRST
        while True:
            try:
                url = await self._address()
            except CallError as error:
                fix = app_token_fix(error) if error.code else "check [slack] base_url and the network"
                self._troubles.set("link", f"Slack gives no socket ({error.detail}): {fix}")
                await self._clock.sleep(error.retry_after or wait)
                wait = min(2 * wait, _RETRY_MOST)
                continue
            wait = _RETRY_FIRST
            await self._hold(url)

    async def watch_http(self) -> None:
        """In HTTP mode there is no connection to mend; say when nothing comes in that should."""
        self._link.connected()
        while True:
            if self._link.is_deaf(self._settings.quiet_limit):
                self._troubles.set(
                    "link", "no events reach Hero, its threads are read instead: check the app's Request URL"
                )
            else:
                self._troubles.clear("link")
            await self._clock.sleep(_LOOK_EVERY)

    async def _address(self) -> str:
        answer = await self._api.ask(self._api.client.apps_connections_open(app_token=self._app_token))
        url = answer.get("url")
        if not isinstance(url, str):
            raise CallError("apps.connections.open answered without url")
        return url

    @property
    def _app_token(self) -> str:
        return self._settings.app_token.get_secret_value() if self._settings.app_token else ""

    async def _hold(self, url: str) -> None:
        """Use one handler until it is of no use any more."""
        handler = AsyncSocketModeHandler(self._app, self._app_token, logger=QUIET, ping_interval=_PING_EVERY_S)
        handler.client.wss_uri = url  # asked for above, where a refusal can be told apart
        handler.client.on_message_listeners.append(self._greeted)
        try:
            async with asyncio.TaskGroup() as group:
                connect = handler.connect_async()  # type: ignore[no-untyped-call]  # slack_bolt leaves it unannotated
                connecting = group.create_task(connect, name="slack-connect")
                reason = await self._until_useless(handler)
                connecting.cancel()
            log.warning("slack_socket_replaced", reason=reason)
        finally:
            self._link.closed()
            await _close(handler)

    async def _greeted(self, frame: WSMessage) -> None:
        """Note a new connection the moment Slack says hello on it, also one that the SDK made by itself."""
        if '"hello"' in frame.data and json.loads(frame.data).get("type") == "hello":
            self._link.connected()
            self._troubles.clear("link")
            log.info("slack_socket_connected")

    async def _until_useless(self, handler: AsyncSocketModeHandler) -> str:
        down_at = self._clock.monotonic()
        while True:
            if self._link.is_up and await handler.client.is_connected():
                down_at = self._clock.monotonic()
                if self._link.is_deaf(self._settings.quiet_limit):
                    self._troubles.set(
                        "link", "Slack's socket is deaf: it is being replaced, threads are read meanwhile"
                    )
                    return "deaf"
                self._troubles.clear("link")
            else:
                down = timedelta(seconds=self._clock.monotonic() - down_at)
                if down > _DOWN_SAID:
                    self._troubles.set(
                        "link", "Slack's socket is down: it is being replaced, threads are read meanwhile"
                    )
                if down > _DOWN_LIMIT:
                    return "down"
            await self._clock.sleep(_LOOK_EVERY)


async def _close(handler: AsyncSocketModeHandler) -> None:
    """Close a handler whose peer may not answer any more."""
    client = handler.client
    try:
        async with asyncio.timeout(_CLOSE_LIMIT_S):
            await handler.close_async()  # type: ignore[no-untyped-call]  # as above
    except TimeoutError:
        for task in (client.message_processor, client.current_session_monitor, client.message_receiver):
            if task is not None:
                task.cancel()
        await client.aiohttp_client_session.close()
