"""Blocking calls off the event loop: a bounded pool for each service, with a deadline on every call (law 5).

A thread cannot be cancelled. After its deadline a hung call lives on and keeps its place; a pool whose places are all
held answers BUSY at once instead of queueing, so that a service that hangs costs its own places and nothing else.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from bot.errors import BusyError, DeadlineError
from bot.model.durations import say_duration


class BoundedThreads:
    """At most ``size`` calls of one service at a time, each in a thread of its own.

    The threads are daemons: a call that hangs cannot keep the program from ending. For the same reason a call may be
    cut off in the middle when the program ends, so whatever it writes is written atomically.
    """

    def __init__(self, name: str, size: int) -> None:
        """Make the pool.

        Args:
            name: of the service, as in the settings; it names the threads and the errors.
            size: how many calls may be held at once, those that hang included.
        """
        if size < 1:
            msg = f"the pool of {name} has {size} threads; it needs at least one"
            raise ValueError(msg)
        self._name = name
        self._size = size
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many places are taken now, by calls that run or hang."""
        return self._held

    async def call[*A, R](self, ask: Callable[[*A], R], *args: *A, deadline: timedelta) -> R:
        """Run ``ask(*args)`` in a thread, in the caller's context, and return what it returns.

        Raises:
            BusyError: every place is held; nothing was started.
            DeadlineError: no answer in ``deadline``; the thread lives on, and so may what it does.
            Exception: what ``ask`` itself raised.
        """
        self._take()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                value = context.run(ask, *args)
            except BaseException as error:  # noqa: BLE001 - it is handed to the caller, whatever it is
                self._free()
                _tell(loop, partial(_fail, answer, error))
            else:
                self._free()
                _tell(loop, partial(_succeed, answer, value))

        try:
            threading.Thread(target=work, name=f"{self._name}-call", daemon=True).start()
        except RuntimeError as error:
            self._free()
            raise BusyError(self._name, "the system gives no further thread") from error
        fence = asyncio.timeout(deadline.total_seconds())
        try:
            async with fence:
                return await answer
        except TimeoutError as error:
            if not fence.expired():
                raise
            raise DeadlineError(self._name, f"no answer in {say_duration(deadline)}") from error

    def _take(self) -> None:
        with self._lock:
            if self._held >= self._size:
                raise BusyError(self._name, f"all {self._size} threads are held by earlier calls")
            self._held += 1

    def _free(self) -> None:
        with self._lock:
            self._held -= 1


def _tell(loop: asyncio.AbstractEventLoop, say: Callable[[], None]) -> None:
    """Hand an answer to the loop; when that has ended, nobody waits for it any more."""
    try:
        loop.call_soon_threadsafe(say)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _succeed[R](answer: asyncio.Future[R], value: R) -> None:
    if not answer.done():
        answer.set_result(value)


def _fail[R](answer: asyncio.Future[R], error: BaseException) -> None:
    if answer.done():
        return
    if isinstance(error, StopIteration):
        error = RuntimeError(f"the call raised {error!r}")
    answer.set_exception(error)
