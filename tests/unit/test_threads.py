"""A service that hangs costs its own places and nothing else."""

import asyncio
import contextvars
import threading
from datetime import timedelta

import pytest

from bot.errors import BusyError, DeadlineError, UnreachableError
from bot.threads import BoundedThreads
from tests.fakes.waiting import until

SOON = timedelta(seconds=10)
AT_ONCE = timedelta(milliseconds=20)


async def test_a_call_answers_in_the_callers_context() -> None:
    run = contextvars.ContextVar[str]("run")
    run.set("hero-1")

    answer = await BoundedThreads("iris", 1).call(run.get, deadline=SOON)

    assert answer == "hero-1"


async def test_an_error_of_the_call_reaches_the_caller() -> None:
    def refuse() -> None:
        raise PermissionError("no")

    with pytest.raises(PermissionError, match="no"):
        await BoundedThreads("iris", 1).call(refuse, deadline=SOON)


async def test_a_hung_call_keeps_its_place_and_a_full_pool_says_busy_at_once() -> None:
    threads, release = BoundedThreads("iris", 1), threading.Event()

    with pytest.raises(DeadlineError, match="no answer") as timeout:
        await threads.call(release.wait, deadline=AT_ONCE)
    with pytest.raises(BusyError, match="all 1 threads"):
        await threads.call(str, deadline=SOON)
    release.set()
    await until(lambda: threads.held == 0)

    assert isinstance(timeout.value, UnreachableError)
    assert await threads.call(str, deadline=SOON) == ""


async def test_a_hung_call_keeps_its_key_out_and_nobody_else() -> None:
    threads, release = BoundedThreads("iris", 4), threading.Event()

    with pytest.raises(DeadlineError):
        await threads.call(release.wait, deadline=AT_ONCE, key="hero-1")
    with pytest.raises(BusyError, match="hero-1 hangs"):
        await threads.call(str, deadline=SOON, key="hero-1")
    other = await threads.call(str, deadline=SOON, key="hero-2")
    held = threads.held
    release.set()
    await until(lambda: threads.held == 0)

    assert (other, held) == ("", 1)
    assert await threads.call(str, deadline=SOON, key="hero-1") == ""


async def test_a_timeout_inside_the_call_is_not_taken_for_our_deadline() -> None:
    def time_out() -> None:
        raise TimeoutError("the service's own")

    with pytest.raises(TimeoutError, match="own"):
        await BoundedThreads("iris", 1).call(time_out, deadline=SOON)


async def test_a_cancelled_caller_leaves_the_place_held_until_the_call_ends() -> None:
    threads, release = BoundedThreads("iris", 2), threading.Event()
    caller = asyncio.create_task(threads.call(release.wait, deadline=SOON))
    await until(lambda: threads.held == 1)

    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller

    assert threads.held == 1
    release.set()
    await until(lambda: threads.held == 0)


def test_a_call_that_outlives_its_loop_ends_quietly() -> None:
    threads, release = BoundedThreads("iris", 1), threading.Event()

    async def give_up() -> None:
        with pytest.raises(DeadlineError):
            await threads.call(release.wait, deadline=AT_ONCE)

    asyncio.run(give_up())
    hung = next(thread for thread in threading.enumerate() if thread.name == "iris-call")
    release.set()
    hung.join(10)

    assert not hung.is_alive()
    assert hung.daemon
