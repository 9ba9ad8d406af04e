"""One PyGithub client in one thread at a time.

A ``Github`` object keeps the verb, URL and body of a request as attributes, so two threads on one object mix up each
other's requests (PyGithub, open PR 2052). A call that outlives its deadline keeps its object for itself, and the next
call gets a new one.
"""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

from github import Github

from bot.channels.github.errors import FAMILIES, SERVICE, BadTokenError, translated
from bot.clock import Clock
from bot.errors import BusyError, HeroError
from bot.threads import BoundedThreads


class Worker:
    """Asks GitHub off the loop, one question after the other, each with a deadline."""

    def __init__(
        self,
        build: Callable[[], Github],
        *,
        clock: Clock,
        deadline: timedelta,
        most: int,
        is_renewable: bool = False,
    ) -> None:
        """Make one role's worker.

        Args:
            build: makes a client; called in the worker's thread, since it may read the token's file.
            clock: for answers that tell of a time without saying their own.
            deadline: of one call, waiting for its turn included.
            most: threads at once, those that hang included; above it calls are refused.
            is_renewable: whether a new client may have a better token, so that a refused one is tried once more.
        """
        self._build = build
        self._clock = clock
        self._deadline = deadline
        self._is_renewable = is_renewable
        self._threads = BoundedThreads(SERVICE, most)
        self._turn = asyncio.Lock()
        self._held: _Held | None = None

    @property
    def held(self) -> int:
        """How many threads are in a call now, those that hang included."""
        return self._threads.held

    async def call[R](self, ask: Callable[[Github], R]) -> R:
        """Run ``ask`` with this worker's client; once more with a new one when the token is refused, if that may help.

        A request whose token is refused has done nothing, so that a write too may be made again.

        Raises:
            ServiceError: of the kinds in errors.py; BusyError means that nothing was asked.
        """
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                await self._turn.acquire()
        except TimeoutError as error:
            raise BusyError(SERVICE, "an earlier call takes long") from error
        try:
            return await self._in_turn(ask)
        except BadTokenError:
            if not self._is_renewable:
                raise
            self.drop()
            return await self._in_turn(ask)
        finally:
            self._turn.release()

    async def _in_turn[R](self, ask: Callable[[Github], R]) -> R:
        held = self._held = self._held or _Held(self._build)
        is_answered = False
        try:
            answer = await self._threads.call(lambda: held.use(ask), deadline=self._deadline)
            is_answered = True
        except HeroError:
            raise
        except FAMILIES as error:
            is_answered = True
            raise translated(error, self._clock.now()) from error
        finally:
            if not is_answered:
                self.drop()
        return answer

    def drop(self) -> None:
        """Part with the client; the next call makes a new one, with the token as it is then."""
        held, self._held = self._held, None
        if held is not None:
            held.leave()


class _Held:
    """A client and whether a thread is in it: whoever comes out last closes it."""

    def __init__(self, build: Callable[[], Github]) -> None:
        self._build = build
        self._client: Github | None = None
        self._lock = threading.Lock()
        self._is_used = False
        self._is_left = False

    def use[R](self, ask: Callable[[Github], R]) -> R:
        with self._lock:
            self._is_used = True
        try:
            if self._client is None:
                self._client = self._build()
            return ask(self._client)
        finally:
            with self._lock:
                self._is_used = False
                is_last = self._is_left
            if is_last:
                self._close()

    def leave(self) -> None:
        with self._lock:
            self._is_left = True
            is_last = not self._is_used
        if is_last:
            self._close()

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
