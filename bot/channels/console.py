"""The same conversation in the terminal that Hero runs in: for a box of one's own, and for the demo."""

import asyncio
import contextlib
import getpass
import os
import threading
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from bot.channels.ports import Ledger, Receive
from bot.clock import Clock
from bot.model.delivery import ChannelName, Delivery, Posted, SendOutcome, Sent
from bot.model.event import Commanded, Place, Said
from bot.model.person import Actor, Platform, Standing
from bot.model.reading import Known, Reading
from bot.model.update import UpdateKind
from bot.model.verdict import Severity
from bot.render.console import console_lines

SOURCE = "console"
_COLOURS = {Severity.INFO: "default", Severity.WARNING: "yellow", Severity.CRITICAL: "bold red"}
_MOST = 64 * 1024
"""Longest line that is taken from the keyboard."""


class ConsoleChannel:
    """Prints updates, and takes lines typed at the terminal as replies and commands."""

    name = ChannelName.CONSOLE

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        *,
        console: Console,
        timezone: str,
        listens: bool = True,
        on_sent: Callable[[Delivery], None] | None = None,
    ) -> None:
        """Take the parts.

        Args:
            ledger: remembers which run was spoken of last, so that `approve` needs no run's name.
            clock: for the times of what is typed.
            console: where to print.
            timezone: of the people who read.
            listens: whether lines are read from standard input.
            on_sent: called after each message is shown; the demo answers through it.
        """
        self._ledger = ledger
        self._clock = clock
        self._console = console
        self._timezone = timezone
        self._listens = listens
        self._on_sent = on_sent
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._talked_about = ""
        self._last = 0

    @property
    def trouble(self) -> str:
        return ""

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Print one delivery; the live status is for places where a message can be edited, and not shown here."""
        update = delivery.update
        if delivery.run_id is not None:
            self._talked_about = delivery.run_id
            root = f"{SOURCE}:{delivery.run_id}"
            await self._ledger.save_posted(
                Posted(channel=self.name, run_id=delivery.run_id, slot="thread", message_id=root)
            )
        if update.kind is not UpdateKind.LIVE_STATUS:
            lines = console_lines(update, self._timezone)
            self._console.print(Text(lines[0], style=_COLOURS[update.severity]))
            for line in lines[1:]:
                self._console.print(Text(line, style="dim" if line.startswith("    ·") else ""), soft_wrap=True)
        if self._on_sent is not None:
            self._on_sent(delivery)
        return Sent(message_id=f"{SOURCE}:{self._next_number()}")

    def note(self, line: str) -> None:
        """Print what concerns whoever sits here and is no news of a run, as a fault of Hero's own."""
        self._console.print(Text(line, style="yellow"), soft_wrap=True)

    async def identify(self, actor: Actor) -> Reading[Standing]:
        """Whoever sits at Hero's own terminal could do anything that Hero can: they count as a member."""
        standing = Standing(is_member=actor.platform is Platform.CONSOLE, is_bot=False)
        return Known(value=standing, at=self._clock.now())

    async def run(self, receive: Receive) -> None:
        """Take typed lines for ever; after the end of the input Hero goes on without a keyboard."""
        if self._listens:
            threading.Thread(target=self._read_keyboard, args=(asyncio.get_running_loop(),), daemon=True).start()
        while True:
            line = (await self._typed.get()).strip()
            if line:
                await self._hand_on(line, receive)

    def type(self, line: str) -> None:
        """Take a line as if it had been typed."""
        self._typed.put_nowait(line)

    async def close(self) -> None:
        """Nothing is held open."""

    async def _hand_on(self, line: str, receive: Receive) -> None:
        at = self._clock.now()
        number = self._next_number()
        actor = Actor(platform=Platform.CONSOLE, user_id=getpass.getuser())
        place = Place(conversation=SOURCE, thread=self._talked_about, message=number)
        event_id = f"{at.isoformat()}/{number}"
        words = line.removeprefix("/hero").strip() if line.startswith("/hero") else None
        if words is not None:
            await receive(SOURCE, event_id, Commanded(actor=actor, place=place, text=words, said_at=at))
        else:
            await receive(SOURCE, event_id, Said(actor=actor, place=place, text=line, said_at=at))

    def _next_number(self) -> str:
        """Return a number that rises over everything that was shown and typed here, also over restarts."""
        self._last = max(self._last + 1, int(self._clock.now().timestamp() * 1_000_000))
        return str(self._last)

    def _read_keyboard(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read lines in a thread of its own: a terminal cannot be waited for on the loop.

        It reads the bare descriptor, since a thread that holds Python's own stdin would block the program's end.
        """
        left = b""
        while True:
            try:
                chunk = os.read(0, 4096)
            except OSError:
                chunk = b""
            if not chunk:
                break
            *lines, left = (left + chunk)[-_MOST:].split(b"\n")
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody listens any more
                for raw in lines:
                    loop.call_soon_threadsafe(self._typed.put_nowait, raw.decode("utf-8", "replace"))
