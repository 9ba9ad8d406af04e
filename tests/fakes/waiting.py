"""Waiting for a condition of the real world (a process, a file) with a deadline, instead of sleeping and hoping."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

POLL_S = 0.01


async def until(predicate: Callable[[], object | Awaitable[object]], timeout_s: float = 10.0, what: str = "") -> None:
    """Return as soon as ``predicate`` is true, plain or awaited; fail the test when it is not in ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = predicate()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return
        if time.monotonic() > deadline:
            msg = f"not in {timeout_s:g} s: {what or inspect.getsource(predicate).strip()}"
            raise AssertionError(msg)
        await asyncio.sleep(POLL_S)


def block_until(predicate: Callable[[], object], timeout_s: float = 10.0, what: str = "") -> None:
    """Do the same where there is no event loop."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() > deadline:
            msg = f"not in {timeout_s:g} s: {what or inspect.getsource(predicate).strip()}"
            raise AssertionError(msg)
        time.sleep(POLL_S)
