"""Something outside hears of Hero as long as it is well, and of nothing else (field report R36)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from aiohttp import web

from bot.heartbeat import beat
from bot.settings import HeartbeatSettings
from tests.fakes.clock import FakeClock
from tests.fakes.waiting import until

EVERY = timedelta(minutes=1)


class Ear:
    """Counts the beats that arrive."""

    def __init__(self) -> None:
        self.heard = 0
        self.status = 200
        self.url = ""


@pytest.fixture
async def ear() -> AsyncIterator[Ear]:
    ear = Ear()

    async def hear(_: web.Request) -> web.Response:
        ear.heard += 1
        return web.Response(status=ear.status)

    app = web.Application()
    app.router.add_get("/beat", hear)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ear.url = f"http://127.0.0.1:{runner.addresses[0][1]}/beat"
    yield ear
    await runner.cleanup()


async def test_it_beats_while_hero_is_well_keeps_silent_while_it_is_not_and_outlives_a_refusal(
    ear: Ear, fake_clock: FakeClock
) -> None:
    asked, well = 0, True

    async def is_well() -> bool:
        nonlocal asked
        asked += 1
        return well

    task = asyncio.create_task(beat(HeartbeatSettings(url=ear.url, every=EVERY), fake_clock, is_well))
    try:
        await until(lambda: ear.heard == 1)

        well = False
        await _pass_a_minute(fake_clock, lambda: asked == 2)
        assert ear.heard == 1, "a Hero that cannot do its work must not sound alive"

        well, ear.status = True, 503
        await _pass_a_minute(fake_clock, lambda: ear.heard == 2)
        ear.status = 200
        await _pass_a_minute(fake_clock, lambda: ear.heard == 3)
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _pass_a_minute(clock: FakeClock, heard: Callable[[], bool]) -> None:
    """Let the minute pass once it is being waited for."""
    await until(lambda: clock._sleepers)
    clock.advance(EVERY)
    await until(heard)
