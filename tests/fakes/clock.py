"""A clock that moves when the test says so."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)


class FakeClock:
    """Wall and monotonic time under the test's hand; sleepers wake when time has passed them."""

    def __init__(self, at: datetime = START) -> None:
        self._now = at
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, delay: timedelta) -> None:
        if delay <= timedelta():
            await asyncio.sleep(0)
            return
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._monotonic + delay.total_seconds(), sleeper))
        await sleeper

    def advance(self, delta: timedelta) -> None:
        """Let time pass, on both clocks."""
        self._monotonic += delta.total_seconds()
        self._now += delta
        for due, sleeper in list(self._sleepers):
            if due <= self._monotonic:
                self._sleepers.remove((due, sleeper))
                if not sleeper.done():
                    sleeper.set_result(None)

    def jump(self, delta: timedelta) -> None:
        """Move the wall clock alone, as NTP or a resumed laptop does."""
        self._now += delta
