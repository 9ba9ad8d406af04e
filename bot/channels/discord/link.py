"""Whether Discord still reaches Hero. A connection can look healthy and bring nothing.

Hero's own posts come back as events. When it spoke and nothing at all came in for a while, or when a reply was found by
reading that no event had told of, the link is deaf, whatever it says of itself.
"""

import asyncio
from datetime import datetime, timedelta

from bot.clock import Clock

_EVENT_DELAY = timedelta(seconds=30)
"""An event younger than this may still be on its way."""


class Link:
    """Signs of life between Discord and Hero."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unechoed_since: float | None = None
        self._missed = False
        self._up_since: datetime | None = None
        self.is_up = False
        """Whether a session stands, new or resumed."""
        self.reconnected = asyncio.Event()
        """Set when a session stands again: what was said without one has to be read."""

    def heard(self) -> None:
        """An event came in."""
        self._unechoed_since = None

    def spoke(self) -> None:
        """Hero said something that comes back as an event."""
        if self._unechoed_since is None:
            self._unechoed_since = self._clock.monotonic()

    def connected(self, *, is_new: bool) -> None:
        """A session stands; a resumed one replays what was missed, and is as old as it was."""
        self._unechoed_since = None
        if is_new or self._up_since is None:
            self._up_since = self._clock.now()
            self._missed = False
        self.is_up = True
        self.reconnected.set()

    def closed(self) -> None:
        """There is no connection."""
        self.is_up = False

    def found_unheard(self, said_at: datetime) -> None:
        """A message was found by reading that no event had told of."""
        up = self._up_since
        if self.is_up and up is not None and said_at > up and self._clock.now() - said_at > _EVENT_DELAY:
            self._missed = True

    def is_deaf(self, quiet_limit: timedelta) -> bool:
        """Whether events must have come in by now and did not."""
        since = self._unechoed_since
        return self._missed or (since is not None and self._clock.monotonic() - since > quiet_limit.total_seconds())
