"""Blocking calls off the event loop: a bounded pool for each service, with a deadline on every call (law 5).

A thread cannot be cancelled. After its deadline a hung call lives on and keeps its place; a pool whose places are all
held answers BUSY at once instead of queueing, so that a service that hangs costs its own places and nothing else. With
a ``key`` the same holds within a pool: what hangs for one run takes no second place from the others.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
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
        self._deserted: list[str] = []
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many places are taken now, by calls that run or hang."""
        return self._held

    async def call[*A, R](self, ask: Callable[[*A], R], *args: *A, deadline: timedelta, key: str | None = None) -> R:
        """Run ``ask(*args)`` in a thread, in the caller's context, and return what it returns.

        Args:
            ask: blocks.
            args: for it.
            deadline: after it nobody waits any more.
            key: whom the call is for, e.g. a run; refused while an earlier call for the same hangs.

        Raises:
            BusyError: every place is held, or one by a hung call for the same key; nothing was started.
            DeadlineError: no answer in ``deadline``; the thread lives on, and so may what it does.
            Exception: what ``ask`` itself raised.
        """
        place = self._take(key)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                value = context.run(ask, *args)
            except BaseException as error:  # noqa: BLE001 - it is handed to the caller, whatever it is
                self._free(place)
                _tell(loop, partial(_fail, answer, error))
            else:
                self._free(place)
                _tell(loop, partial(_succeed, answer, value))

        try:
            threading.Thread(target=work, name=f"{self._name}-call", daemon=True).start()
        except RuntimeError as error:
            self._free(place)
            raise BusyError(self._name, "the system gives no further thread") from error
        fence = asyncio.timeout(deadline.total_seconds())
        try:
            async with fence:
                return await answer
        except TimeoutError as error:
            if not fence.expired():
                raise
            raise DeadlineError(self._name, f"no answer in {say_duration(deadline)}") from error
        finally:
            self._desert(place)

    def _take(self, key: str | None) -> "_Place":
        with self._lock:
            if key in self._deserted:
                raise BusyError(self._name, f"an earlier call for {key} hangs and holds its thread")
            if self._held >= self._size:
                raise BusyError(self._name, f"all {self._size} threads are held by earlier calls")
            self._held += 1
        return _Place(key)

    def _free(self, place: "_Place") -> None:
        with self._lock:
            self._held -= 1
            place.is_free = True
            if place.is_deserted and place.key is not None:
                self._deserted.remove(place.key)

    def _desert(self, place: "_Place") -> None:
        """Note that nobody waits for the call any more, in case it still runs."""
        with self._lock:
            if not place.is_free and place.key is not None:
                place.is_deserted = True
                self._deserted.append(place.key)


@dataclass
class _Place:
    key: str | None
    is_free: bool = False
    is_deserted: bool = False


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
