"""What Hero needs of a place where people are."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from bot.model.chronicle import Entry
from bot.model.delivery import Awaited, ChannelName, Delivery, Posted, SendOutcome
from bot.model.event import Inbound
from bot.model.person import Actor, Standing
from bot.model.reading import Reading
from bot.model.record import Record
from bot.model.value import RunId

type Receive = Callable[[str, str, Inbound], Awaitable[bool]]
"""``await receive(source, event_id, payload)``: store what came from outside, durably; False for a repeat."""


class Ledger(Protocol):
    """What a channel may ask and keep: where a run's messages are, and how far it has read."""

    async def posted(self, channel: ChannelName, run_id: str, slot: str) -> Posted | None:
        """Return where the run's message of that slot is (``thread``: the root of its conversation)."""
        ...

    async def threads(self, channel: ChannelName) -> tuple[Posted, ...]:
        """Return the roots of all runs' conversations in the channel, former ones (``thread:…``) too."""
        ...

    async def awaited(self) -> Awaited:
        """Return in which runs' conversations an answer is awaited."""
        ...

    async def save_posted(self, posted: Posted) -> None:
        """Remember a message by its slot; replaces what was remembered there."""
        ...

    async def chronicle(self, run_id: RunId) -> tuple[Entry, ...]:
        """Return the run's record, oldest entry first."""
        ...

    async def record(self, run_id: RunId) -> Record | None:
        """Return what is remembered of a run; to show it, not to decide on it."""
        ...

    async def cursor(self, name: str) -> str | None: ...

    async def save_cursor(self, name: str, value: str) -> None: ...


class Channel(Protocol):
    """One way to people. It renders and sends what it is handed, and never decides whether to."""

    name: ChannelName

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Send one delivery, or find that it was sent before (``attempt`` > 0: look for its marker first).

        Opens the run's thread or issue when there is none, and saves it in the ledger. A delivery with a slot edits
        the message that the ledger knows under it, else sends a new one. Never raises but for CancelledError.
        """
        ...

    async def identify(self, actor: Actor) -> Reading[Standing]:
        """Ask the platform what the account is now: member, guest, bot, gone."""
        ...

    async def run(self, receive: Receive) -> None:
        """Listen for ever and hand what comes in to ``receive``; returns only when cancelled.

        A service that is down or refuses is retried in here and shown by ``trouble``.
        """
        ...

    @property
    def trouble(self) -> str:
        """What is wrong with the link to people now, in one line with the fix; empty when nothing is."""
        ...

    async def close(self) -> None: ...
