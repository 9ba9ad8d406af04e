"""One part of a larger reading, behind a deadline: whatever goes wrong with it becomes an Unknown."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta

import structlog

from bot.clock import Clock
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Reading, Unknown

log = structlog.get_logger()


class Guarded:
    """Awaits parts, each for itself."""

    def __init__(self, clock: Clock, deadline: timedelta) -> None:
        """Take what holds for every part.

        Args:
            clock: for the moment of the readings.
            deadline: of one part.
        """
        self._clock = clock
        self._deadline = deadline

    async def read[T](self, what: str, question: Awaitable[Reading[T]], *, times: int = 1) -> Reading[T]:
        """Await one answer.

        Args:
            what: the part, for the log.
            question: answers with a reading.
            times: how many such parts it asks one after the other.
        """
        deadline = self._deadline * times
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                return await question
        except TimeoutError:
            detail = f"no answer in {say_duration(deadline)}"
            return Unknown(reason=Gap.TIMEOUT, detail=detail, at=self._clock.now())
        except Exception as error:
            log.exception("reading_broke", part=what)
            detail = f"Hero's own reading of it broke: {type(error).__name__}"
            return Unknown(reason=Gap.BROKEN, detail=detail, at=self._clock.now())

    async def value[T](self, what: str, question: Awaitable[T], *, times: int = 1) -> Reading[T]:
        """Await what is no reading yet: what comes of it is Known."""

        async def known() -> Reading[T]:
            return Known(value=await question, at=self._clock.now())

        return await self.read(what, known(), times=times)
