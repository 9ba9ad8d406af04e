"""Tells something outside that Hero lives, so that it notices when that stops: Hero cannot tell of its own death."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import structlog

from bot.clock import Clock
from bot.settings import HeartbeatSettings

log = structlog.get_logger()

_DEADLINE_S = 10.0


async def beat(settings: HeartbeatSettings, clock: Clock, is_well: Callable[[], Awaitable[bool]]) -> None:
    """Ask the address with GET every ``settings.every``, for ever, and only while Hero is well.

    A Hero that is alive and cannot do its work keeps silent as well: to whoever waits for the beat that is the same.
    """
    if settings.url is None:
        await asyncio.Event().wait()
        return
    is_lost = False
    async with httpx.AsyncClient(timeout=_DEADLINE_S) as client:
        while True:
            if await is_well():
                failed = await _is_refused(client, settings.url)
                if failed != is_lost:
                    is_lost = failed
                    log.warning("heartbeat_lost" if failed else "heartbeat_back")
            await clock.sleep(settings.every)


async def _is_refused(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(url)).is_error
    except httpx.HTTPError:
        return True
