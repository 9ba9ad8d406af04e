"""Says, edits and finds again Hero's own messages. Every post carries its delivery's key as hidden metadata.

Slack has no idempotency key: after an uncertain send the message is looked for by that metadata before it is said
again. Edits are safe to repeat.
"""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.channels.slack.api import CallError, Json, Me, SlackApi
from bot.channels.slack.outcomes import REFUSED_CONTENT
from bot.channels.slack.pace import DEFAULT_PAUSE, EDIT_EVERY, POST_EVERY, WHISPER_EVERY, Pace
from bot.model.value import Value
from bot.render.slack import SlackMessage

EVENT_TYPE = "hero_delivery"

_PAGE = 200
_PAGES = 10
_CLOCKS_DIFFER = timedelta(minutes=5)
_SHOWN_LIMIT = 2_000


class Ref(Value):
    """A message: ``CHANNEL:TS`` in the ledger."""

    channel: str
    ts: str

    @classmethod
    def parse(cls, message_id: str) -> "Ref":
        channel, _, ts = message_id.partition(":")
        return cls(channel=channel, ts=ts)

    def __str__(self) -> str:
        return f"{self.channel}:{self.ts}"


class Marker(Value):
    """What Hero hides in a message: the delivery's key, and in the root of a thread its run."""

    key: str
    root_of: str = ""

    def metadata(self) -> Json:
        payload = {"key": self.key} | ({"root_of": self.root_of} if self.root_of else {})
        return {"event_type": EVENT_TYPE, "event_payload": payload}


class Posts:
    """Hero's own messages. All methods raise CallError; ``on_spoken`` hears of each that echoes as an event."""

    def __init__(self, api: SlackApi, pace: Pace, on_spoken: Callable[[], None]) -> None:
        self._api = api
        self._pace = pace
        self._on_spoken = on_spoken
        self._shown: dict[str, str] = {}

    async def post(self, channel: str, message: SlackMessage, marker: Marker, *, root: str = "") -> Ref:
        """Say something new; ``root`` is the ts of a thread's first message, never of a reply."""

        async def once(content: SlackMessage) -> AsyncSlackResponse:
            return await self._paced(
                channel,
                POST_EVERY,
                lambda: self._api.client.chat_postMessage(
                    channel=channel,
                    text=content.text,
                    blocks=list(content.blocks) or None,
                    thread_ts=root or None,
                    metadata=marker.metadata(),
                    unfurl_links=False,
                    unfurl_media=False,
                ),
            )

        answer = await _in_some_form(message, once)
        ts, where = answer.get("ts"), answer.get("channel")
        if not isinstance(ts, str) or not isinstance(where, str):
            raise CallError("chat.postMessage answered without ts and channel", is_uncertain=True)
        self._on_spoken()
        ref = Ref(channel=where, ts=ts)
        self._remember(ref, message)
        return ref

    async def edit(self, ref: Ref, message: SlackMessage) -> None:
        """Let a message say something else; nothing is sent when it says so already.

        The message keeps its marker: chat.update retains metadata that is not given (Slack: chat.update).
        """
        if self._shown.get(str(ref)) == _digest(message):
            return

        async def once(content: SlackMessage) -> AsyncSlackResponse:
            return await self._paced(
                "chat.update",
                EDIT_EVERY,
                lambda: self._api.client.chat_update(
                    channel=ref.channel,
                    ts=ref.ts,
                    text=content.text,
                    blocks=list(content.blocks),
                ),
            )

        await _in_some_form(message, once)
        self._on_spoken()
        self._remember(ref, message)

    async def whisper(self, channel: str, user: str, message: SlackMessage, *, root: str = "") -> str:
        """Show something to one person only; it is not kept by Slack and cannot be found again."""

        async def once(content: SlackMessage) -> AsyncSlackResponse:
            return await self._paced(
                "chat.postEphemeral",
                WHISPER_EVERY,
                lambda: self._api.client.chat_postEphemeral(
                    channel=channel,
                    user=user,
                    text=content.text,
                    blocks=list(content.blocks) or None,
                    thread_ts=root or None,
                ),
            )

        answer = await _in_some_form(message, once)
        return str(answer.get("message_ts") or "")

    async def find(self, channel: str, since: datetime, *, key: str, root: str = "") -> Ref | None:
        """Look for Hero's own message with this key, in a thread or among a channel's roots."""
        async for ref, marker in self._own(channel, since, root):
            if marker.get("key") == key:
                return ref
        return None

    async def find_root(self, channel: str, since: datetime, run_id: str) -> Ref | None:
        """Look for the root of a run's thread that was posted but not remembered."""
        async for ref, marker in self._own(channel, since, ""):
            if marker.get("root_of") == run_id:
                return ref
        return None

    async def _own(self, channel: str, since: datetime, root: str) -> AsyncIterator[tuple[Ref, Json]]:
        me = await self._api.me()
        oldest = f"{(since - _CLOCKS_DIFFER).timestamp():.6f}"
        cursor = ""
        for _ in range(_PAGES):
            how: dict[str, Any] = {"channel": channel, "oldest": oldest, "limit": _PAGE, "include_all_metadata": True}
            how |= {"cursor": cursor} if cursor else {}
            if root:
                answer = await self._api.ask(self._api.client.conversations_replies(ts=root, **how))
            else:
                answer = await self._api.ask(self._api.client.conversations_history(**how))
            for found in answer.get("messages") or ():
                if marker := own_marker(found, me):
                    yield Ref(channel=channel, ts=str(found["ts"])), marker
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return
        raise CallError(
            f"{channel} holds more than {_PAGE * _PAGES} messages since {since:%H:%M} UTC", is_uncertain=True
        )

    async def _paced(self, key: str, every: timedelta, call: Callable[[], Any]) -> AsyncSlackResponse:
        if (wait := await self._pace.turn(key, every)) is not None:
            raise CallError("waiting for Slack's rate", code="ratelimited", retry_after=wait)
        try:
            return await self._api.ask(call())
        except CallError as error:
            if error.code == "ratelimited":
                self._pace.hold(key, error.retry_after or DEFAULT_PAUSE)
            raise

    def _remember(self, ref: Ref, message: SlackMessage) -> None:
        if len(self._shown) >= _SHOWN_LIMIT:
            self._shown.clear()
        self._shown[str(ref)] = _digest(message)


def own_marker(message: Json, me: Me) -> Json:
    """The marker in one of Hero's own messages; metadata on other people's messages proves nothing."""
    if me.bot_id != message.get("bot_id") and me.user_id != message.get("user"):
        return {}
    match message.get("metadata"):
        case {"event_type": str(kind), "event_payload": dict(payload)} if kind == EVENT_TYPE:
            return payload
        case _:
            return {}


async def _in_some_form(message: SlackMessage, once: Callable[[SlackMessage], Any]) -> AsyncSlackResponse:
    """Send it; when Slack does not take its blocks, send its text alone rather than nothing (field report R08)."""
    try:
        answer: AsyncSlackResponse = await once(message)
    except CallError as error:
        if error.code not in REFUSED_CONTENT or not message.blocks:
            raise
        answer = await once(message.plain())
    return answer


def _digest(message: SlackMessage) -> str:
    return sha256(message.model_dump_json().encode()).hexdigest()
