"""What comes in from Discord goes into Hero's inbox, and nothing else happens here: no call, no answer, no decision.

The gateway does not send again what could not be stored; the thread is read again for that.
"""

from collections.abc import Callable

import structlog

from bot.channels.discord.api import DiscordApi
from bot.channels.discord.mapping import (
    Act,
    Heard,
    Interaction,
    map_deletion,
    map_edit,
    map_interaction,
    map_message,
    moment,
)
from bot.channels.discord.troubles import Troubles
from bot.channels.ports import Ledger, Receive
from bot.clock import Clock
from bot.errors import StoreError, UnreachableError
from bot.model.answer import Approve, Deny, parse_answer
from bot.model.delivery import ChannelName

log = structlog.get_logger()

SOURCE = "discord"

CONTENT_FIX = (
    "turn on Message Content Intent on the application's Bot page and restart Hero; until then people answer by button,"
    " by `/hero approve R7`, or by a message that begins with @hero, or on another channel"
)


class Inbox:
    """Takes what was seen, keeps what concerns Hero. ``receive`` is set when Hero begins to listen."""

    def __init__(
        self,
        api: DiscordApi,
        ledger: Ledger,
        clock: Clock,
        troubles: Troubles,
        *,
        guild: str,
        home: str,
        is_command: Callable[[str], bool],
    ) -> None:
        self._api = api
        self._ledger = ledger
        self._clock = clock
        self._troubles = troubles
        self._guild = guild
        self._home = home
        self._is_command = is_command
        self.receive: Receive | None = None

    async def message(self, heard: Heard) -> None:
        """Take a message that an event told of.

        Raises:
            StoreError: it could not be stored; the thread is read again.
        """
        is_watched = await self._watches(heard.channel)
        if not is_watched and heard.guild != self._guild:
            return
        if self._is_kept_from_us(heard, is_watched=is_watched):
            return
        # A decision beside the threads, in Hero's own channel, decides nothing; but it is an attempt, and noted as one.
        is_lost = heard.channel == self._home and isinstance(parse_answer(heard.text), Approve | Deny)
        act = map_message(heard, self._me(), self._is_command, is_watched=is_watched or is_lost)
        if act is not None:
            await self.hand_on(act)

    async def edit(self, heard: Heard) -> None:
        """Take a change of a message; StoreError as above."""
        act = map_edit(heard, self._me(), is_watched=await self._watches(heard.channel))
        if act is not None:
            await self.hand_on(act)

    async def deletion(self, channel: str, message: str) -> None:
        """Take the end of a message; StoreError as above."""
        if not await self._watches(channel):
            return
        for act in map_deletion(channel, message, max(self._clock.now(), moment(message))):
            await self.hand_on(act)

    async def interaction(self, seen: Interaction) -> bool | None:
        """Take a command or a press; say whether it is new, or None when it is none of Hero's.

        Raises:
            StoreError: it could not be stored, and must not be acknowledged.
        """
        act = map_interaction(seen, self._me())
        return None if act is None else await self.hand_on(act)

    async def found(self, heard: Heard) -> bool:
        """Take a message that was read from a watched thread; say whether no event had told of it.

        When it was edited since Hero heard of it, the edit is what is new.
        """
        me = self._me()
        if self._is_kept_from_us(heard, is_watched=True):
            return False
        act = map_message(heard, me, self._is_command, is_watched=True)
        if act is None:
            return False
        edit = map_edit(heard, me, is_watched=True)
        if edit is None:
            return await self.hand_on(act)
        # An edited message is known by two ids. The first is taken even so, or a late copy of the old text would count.
        told = f"discord:edit:{heard.channel}:{heard.id}"
        if await self.hand_on(act):
            await self._ledger.save_cursor(told, edit.event_id)
            return True
        return await self._ledger.cursor(told) != edit.event_id and await self.hand_on(edit)

    async def hand_on(self, act: Act) -> bool:
        """Store one act; False when it was stored before."""
        if self.receive is None:
            raise UnreachableError(SOURCE, "Hero does not listen yet")
        try:
            is_new = await self.receive(SOURCE, act.event_id, act.payload)
        except Exception as error:
            self._troubles.set(
                "store",
                f"what people say on Discord can't be stored ({type(error).__name__}), nothing is acted on:"
                " free disk space or mend the database; Hero reads the threads again",
            )
            raise StoreError(f"{act.event_id} was not stored") from error
        self._troubles.clear("store")
        return is_new

    def _is_kept_from_us(self, heard: Heard, *, is_watched: bool) -> bool:
        """Whether a person's words came without the words: they are neither a yes nor a no (field report R06)."""
        if not heard.is_bare or not heard.is_spoken or heard.is_bots or not is_watched:
            return False
        log.warning("discord_message_unreadable", channel=heard.channel, message=heard.id)
        self._troubles.set("content", f"a reply on Discord came without its text: {CONTENT_FIX}")
        return True

    async def _watches(self, channel: str) -> bool:
        """Whether what is said there may be a reply to Hero."""
        return any(posted.message_id == channel for posted in await self._ledger.threads(ChannelName.DISCORD))

    def _me(self) -> str:
        me = self._api.known_me
        if me is None:
            raise UnreachableError(SOURCE, "Hero does not listen yet")
        return str(me.user_id)
