"""What comes in from Slack goes into Hero's inbox, and nothing else happens here: no call, no answer, no decision.

Only what was stored is acked, so that Slack sends again what a full disk refused.
"""

from collections.abc import Callable

import structlog
from pydantic import ValidationError

from bot.channels.ports import Ledger, Receive
from bot.channels.slack.api import Json, Me, SlackApi
from bot.channels.slack.mapping import (
    Act,
    Click,
    Command,
    Message,
    map_click,
    map_command,
    map_deletion,
    map_edit,
    map_message,
)
from bot.channels.slack.modals import Submission, map_submission
from bot.channels.slack.troubles import Troubles
from bot.clock import Clock
from bot.errors import StoreError, UnreachableError
from bot.model.delivery import ChannelName

log = structlog.get_logger()

SOURCE = "slack"


class Inbox:
    """Takes payloads, keeps those that concern Hero. ``receive`` is set when Hero begins to listen."""

    def __init__(
        self,
        api: SlackApi,
        ledger: Ledger,
        clock: Clock,
        troubles: Troubles,
        *,
        home: str,
        on_root_gone: Callable[[str], None],
    ) -> None:
        self._api = api
        self._ledger = ledger
        self._clock = clock
        self._troubles = troubles
        self._home = home
        self._on_root_gone = on_root_gone
        self.receive: Receive | None = None

    async def event(self, event: Json) -> None:
        """Take a ``message`` or ``app_mention`` event; others concern nobody.

        Raises:
            StoreError: it could not be stored and must come again.
        """
        me = self.ready()
        if event.get("type") not in {"message", "app_mention"}:
            return
        try:
            for act in await self._acts(event, me):
                await self.hand_on(act)
        except (ValidationError, ValueError) as error:
            log.warning("slack_event_unrecognised", subtype=event.get("subtype"), reason=_fields(error))

    async def click(self, body: Json) -> None:
        """Take a press of a button."""
        self.ready()
        try:
            acts = map_click(Click.model_validate(body))
        except (ValidationError, ValueError) as error:
            log.warning("slack_click_unrecognised", reason=_fields(error))
            return
        for act in acts:
            await self.hand_on(act)

    async def command(self, body: Json) -> None:
        """Take a slash command."""
        self.ready()
        try:
            act = map_command(Command.model_validate(body), self._clock.now())
        except (ValidationError, ValueError) as error:
            log.warning("slack_command_unrecognised", reason=_fields(error))
            return
        await self.hand_on(act)

    async def form(self, body: Json) -> None:
        """Take a form that was sent in; one that is none of Hero's is passed by."""
        self.ready()
        try:
            act = map_submission(Submission.model_validate(body), self._home, self._clock.now())
        except (ValidationError, ValueError) as error:
            log.warning("slack_form_unrecognised", reason=_fields(error))
            return
        if act is not None:
            await self.hand_on(act)

    async def found(self, channel: str, raw: Json) -> bool:
        """Take a message that was read from a watched thread; say whether no event had told of it.

        When it was edited since Hero heard of it, the edit is what is new.
        """
        me = self.ready()
        message = Message.model_validate(raw)
        act = map_message(channel, message, me, is_watched=True)
        if act is None:
            return False
        edit = map_edit(channel, message, None, me, is_watched=True)
        if edit is None:
            return await self.hand_on(act)
        # An edited message is known by two ids. The first is taken even so, or a late copy of the old text would count.
        told = f"slack:edit:{channel}:{message.ts}"
        if await self.hand_on(act):
            await self._ledger.save_cursor(told, edit.event_id)
            return True
        return await self._ledger.cursor(told) != edit.event_id and await self.hand_on(edit)

    async def hand_on(self, act: Act) -> bool:
        """Store one act; False when it was stored before."""
        assert self.receive is not None, "acts are taken only while Hero listens"  # noqa: S101 - our own order of things
        try:
            is_new = await self.receive(SOURCE, act.event_id, act.payload)
        except Exception as error:
            self._troubles.set(
                "store",
                f"what people say on Slack can't be stored ({type(error).__name__}), nothing is acted on:"
                " free disk space or mend the database; Slack sends it again",
            )
            raise StoreError(f"{act.event_id} was not stored") from error
        self._troubles.clear("store")
        return is_new

    async def _acts(self, event: Json, me: Me) -> tuple[Act, ...]:
        channel = str(event.get("channel") or "")
        subtype = event.get("subtype")
        if subtype not in {"message_changed", "message_deleted"}:
            message = Message.model_validate(event)
            act = map_message(channel, message, me, is_watched=await self._watches(channel, message))
            return (act,) if act else ()
        before = Message.model_validate(event["previous_message"]) if event.get("previous_message") else None
        after = Message.model_validate(event["message"]) if subtype == "message_changed" else None
        if after is None or after.subtype == "tombstone":
            return await self._deletion(channel, before, str(event["event_ts"]))
        if before is None:
            return ()
        act = map_edit(channel, after, before, me, is_watched=await self._watches(channel, after))
        return (act,) if act else ()

    async def _deletion(self, channel: str, before: Message | None, event_ts: str) -> tuple[Act, ...]:
        if before is None:
            return ()
        root = f"{channel}:{before.ts}"
        if root in await self._threads():
            self._on_root_gone(root)
        act = map_deletion(channel, before, event_ts, is_watched=await self._watches(channel, before))
        if act is None:
            return ()
        # First under the id of what was said: a copy of it that comes after its deletion must not count any more.
        return act.model_copy(update={"event_id": f"msg:{channel}:{before.ts}"}), act

    async def _watches(self, channel: str, message: Message) -> bool:
        """Whether what is said there may be a reply to Hero."""
        return channel == self._home or f"{channel}:{message.root or message.ts}" in await self._threads()

    async def _threads(self) -> frozenset[str]:
        return frozenset(posted.message_id for posted in await self._ledger.threads(ChannelName.SLACK))

    def ready(self) -> Me:
        """Return who Hero is.

        Raises:
            UnreachableError: it does not listen yet.
        """
        me = self._api.known_me
        if me is None or self.receive is None:
            raise UnreachableError(SOURCE, "Hero does not listen yet; Slack sends it again")
        return me


def _fields(error: ValidationError | ValueError) -> str:
    """The offending fields, never their content."""
    if isinstance(error, ValidationError):
        return ", ".join(".".join(map(str, problem["loc"])) for problem in error.errors())
    return "a timestamp that is none"
