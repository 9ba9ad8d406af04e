"""Ways in which the fake GitHub can let a request go wrong, and the queue in which tests order them."""

import re
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class StoredThenLost:
    """The request takes effect; the connection is reset instead of an answer."""


@dataclass(frozen=True, slots=True)
class StoredThenBroken:
    """The request takes effect; the answer is a 5xx all the same."""

    status: int = 502


@dataclass(frozen=True, slots=True)
class Broken:
    """A 5xx, and nothing has happened."""

    status: int = 503


@dataclass(frozen=True, slots=True)
class PrimaryLimit:
    """403 "API rate limit exceeded" with x-ratelimit-remaining 0 and a reset that far ahead of the server's clock."""

    reset_in: timedelta = timedelta(minutes=40)


@dataclass(frozen=True, slots=True)
class SecondaryLimit:
    """403 "secondary rate limit"; None leaves the Retry-After header out, as happens."""

    retry_after_s: int | None = 60


@dataclass(frozen=True, slots=True)
class TooManyRequests:
    """429, by default without Retry-After: PyGithub then raises a plain GithubException."""

    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """The request takes effect; the answer is half of its JSON. `cut_off` also hangs up before the promised length."""

    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """No answer until `release()`; stopping the fake hangs up instead.

    Not `stored`: the request takes effect on release only, as a slow write that lands after the client has given up.
    """

    stored: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self.released.set()


type Fault = (
    StoredThenLost | StoredThenBroken | Broken | PrimaryLimit | SecondaryLimit | TooManyRequests | Malformed | Stall
)


@dataclass(slots=True)
class _Order:
    verb: str
    route: re.Pattern[str]
    fault: Fault
    times: int


class FaultQueue:
    """Orders by (verb, route), served first come first served. Whoever calls holds the fake's lock."""

    def __init__(self) -> None:
        self._orders: deque[_Order] = deque()
        self._stalls: list[Stall] = []

    def order(self, verb: str, route: str, fault: Fault, times: int) -> None:
        """Queue a fault; in `route` a `*` is one path segment (`/repos/*/*/issues/*/comments`); verb `*` is any."""
        pattern = re.compile("[^/]+".join(re.escape(part) for part in route.split("*")))
        self._orders.append(_Order(verb, pattern, fault, times))
        if isinstance(fault, Stall):
            self._stalls.append(fault)

    def take(self, verb: str, path: str) -> Fault | None:
        for order in self._orders:
            if order.verb in ("*", verb) and order.route.fullmatch(path):
                order.times -= 1
                if order.times == 0:
                    self._orders.remove(order)
                return order.fault
        return None

    def pending(self) -> int:
        """How many ordered faults have not been met yet; a test that expects all of them asserts 0."""
        return sum(order.times for order in self._orders)

    def clear(self) -> None:
        self._orders.clear()

    def release_all(self) -> None:
        """Let go of the requests that hang now; stalls not met yet stay in the queue."""
        for stall in self._stalls:
            if stall.reached.is_set():
                stall.release()
