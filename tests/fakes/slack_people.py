"""What people and other bots do on the fake Slack: talk, edit, delete, click, command. Each tells how it was acked."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.fakes.slack_api import WebApi
from tests.fakes.slack_delivery import Delivery
from tests.fakes.slack_limits import check_blocks
from tests.fakes.slack_values import (
    APP_ID,
    TEAM_ID,
    Ack,
    Ephemeral,
    Json,
    Message,
    Post,
    Refused,
    Said,
)
from tests.fakes.slack_workspace import Workspace

RESPONSES_MAX = 5


@dataclass
class ResponseUrl:
    """An address for answers to one command or click: five uses in half an hour."""

    channel: str
    user: str
    message_ts: str | None = None
    uses: int = 0
    expired: bool = False


class People:
    """The half of the fake that acts on the app. ``copies`` sends an event several times under one event_id."""

    api: WebApi
    origin: str = ""

    def __init__(self, workspace: Workspace, delivery: Delivery) -> None:
        self.workspace = workspace
        self.delivery = delivery
        self.response_urls: dict[str, ResponseUrl] = {}
        self.unsubscribed: frozenset[str] = frozenset()
        """Event types that the app has not subscribed to."""
        self._sent: dict[str, Json] = {}
        self._numbers = count(1)

    async def user_says(
        self,
        channel: str,
        user: str,
        text: str,
        thread_ts: str | None = None,
        event_id: str | None = None,
        *,
        copies: int = 1,
        marked: bool = True,
        broadcast: bool = False,
    ) -> Said:
        """A person types ``text``; Slack escapes all of it except mentions of people and channels it knows."""
        self._may_speak(channel, user)
        message = Message(
            channel,
            self.workspace.next_ts(),
            user,
            self.workspace.as_typed(text),
            thread_ts=thread_ts,
            broadcast=broadcast,
            team=self.workspace.users[user].team_id,
        )
        acks = await self._deliver(self.workspace.add(message), event_id, copies, marked=marked)
        return Said.of(message.ts, acks)

    async def bot_says(
        self,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        user: str | None = "UOTHERBOT",
        bot_id: str = "BOTHER",
        app_id: str = "AOTHER",
        **how: Any,
    ) -> Said:
        """Another app posts: ``user`` and ``bot_id`` without a subtype, or a classic one when ``user`` is None."""
        message = Message(channel, self.workspace.next_ts(), user, text, thread_ts, bot_id=bot_id, app_id=app_id)
        if user is None:
            message.subtype, message.app_id, message.username = "bot_message", None, "Dana (DRI)"
        return Said.of(message.ts, await self._deliver(self.workspace.add(message), **how))

    async def user_edits(self, ts: str, new_text: str, *, editor: str | None = None, **how: Any) -> tuple[Ack, ...]:
        """A person rewrites a message: ``message_changed``, and ``app_mention`` again where the app is named."""
        message = self.workspace.find(ts)
        by = editor or str(message.user)
        return await self._deliver(self.workspace.edit(message, by, text=self.workspace.as_typed(new_text)), **how)

    async def user_deletes(self, ts: str, **how: Any) -> tuple[Ack, ...]:
        """A message goes; a root with replies leaves a tombstone."""
        return await self._deliver(self.workspace.delete(self.workspace.find(ts)), **how)

    async def unfurls(self, ts: str, **how: Any) -> tuple[Ack, ...]:
        """A link preview appears: ``message_changed`` with the same text."""
        return await self._deliver(self.workspace.touch(self.workspace.find(ts)), **how)

    async def redeliver(self, event_id: str, attempt: int = 1, reason: str = "timeout") -> Ack:
        """Send an event once more under its own id, acked or not, as Slack was seen to do."""
        payload = self._sent[event_id]
        return await self.delivery.send("events_api", payload, attempt, reason)

    async def slash(self, user: str, channel: str, command: str, text: str = "") -> Ack:
        """A person sends a command (never from a thread). Its ack's answer is shown to them."""
        person, where = self.workspace.users[user], self.workspace.channels[channel]
        payload = {
            "token": "legacy-verification-token",
            "team_id": person.team_id,
            "team_domain": "hero",
            "channel_id": channel,
            "channel_name": where.name,
            "user_id": user,
            "user_name": person.name.lower(),
            "command": command,
            "text": text,
            "api_app_id": APP_ID,
            "is_enterprise_install": "false",
            "response_url": self._response_url(ResponseUrl(channel, user)),
            "trigger_id": self._trigger(),
        }
        ack = await self.delivery.send("slash_commands", payload)
        self._show_answer(ack, channel, user)
        return ack

    async def user_clicks(
        self, user: str, message_ts: str, action_id: str, value: str | None = None, *, channel: str | None = None
    ) -> Ack:
        """A person presses a button. One that is no longer there can be pressed: an old screen still shows it."""
        shown = self._shown(message_ts, channel)
        where, person = self.workspace.channels[shown.channel], self.workspace.users[user]
        button = _button(list(shown.blocks), action_id)
        action = {
            "type": "button",
            "action_id": action_id,
            "block_id": button.get("block_id", "gone"),
            "text": button.get("text", {"type": "plain_text", "text": "gone"}),
            "value": value if value is not None else button.get("value", ""),
            "action_ts": self.workspace.next_ts(),
        }
        ephemeral = isinstance(shown, Ephemeral)
        container: Json = {"type": "message", "message_ts": shown.ts, "channel_id": shown.channel}
        container["is_ephemeral"] = ephemeral
        if shown.thread_ts is not None and shown.thread_ts != shown.ts:
            container["thread_ts"] = shown.thread_ts
        payload: Json = {
            "type": "block_actions",
            "team": {"id": TEAM_ID, "domain": "hero"},
            "user": {
                "id": user,
                "username": person.name.lower(),
                "name": person.name.lower(),
                "team_id": person.team_id,
            },
            "api_app_id": APP_ID,
            "token": "legacy-verification-token",
            "container": container,
            "channel": {"id": shown.channel, "name": where.name},
            "state": {"values": {}},
            "trigger_id": self._trigger(),
            "response_url": self._response_url(ResponseUrl(shown.channel, user, None if ephemeral else shown.ts)),
            "actions": [action],
        }
        if not ephemeral:  # an ephemeral message has no message object
            payload["message"] = self.workspace.payload(self.workspace.find(shown.ts, shown.channel))
        return await self.delivery.send("interactive", payload)

    async def user_submits(self, user: str, view_id: str, chosen: str, **changes: Any) -> Ack:
        """A person chooses in the only menu of a view and sends it in; ``changes`` are what the view says then."""
        view = self.api.views[view_id]
        (block,) = [block for block in view["blocks"] if block["type"] == "input"]
        element = block["element"]
        option = next(each for each in element["options"] if each["value"] == chosen)
        state = {"type": element["type"], "selected_option": option}
        person = self.workspace.users[user]
        payload = {
            "type": "view_submission",
            "team": {"id": TEAM_ID, "domain": "hero"},
            "user": {
                "id": user,
                "username": person.name.lower(),
                "name": person.name.lower(),
                "team_id": person.team_id,
            },
            "api_app_id": APP_ID,
            "token": "legacy-verification-token",
            "trigger_id": self._trigger(),
            "view": view | {"state": {"values": {block["block_id"]: {element["action_id"]: state}}}} | changes,
            "response_urls": [],
        }
        return await self.delivery.send("interactive", payload)

    def _trigger(self) -> str:
        trigger = f"trigger-{next(self._numbers)}"
        self.api.triggers[trigger] = time.monotonic()
        return trigger

    def expire_response_urls(self) -> None:
        """Half an hour passes."""
        for answer in self.response_urls.values():
            answer.expired = True

    async def _deliver(
        self, events: Iterable[Json], event_id: str | None = None, copies: int = 1, *, marked: bool = True
    ) -> tuple[Ack, ...]:
        """Send events about channels that the app is in; the first bears ``event_id``."""
        acks: list[Ack] = []
        for event in events:
            if event["type"] in self.unsubscribed or not self.workspace.channels[event["channel"]].is_member:
                continue
            name = event_id or self.delivery.event_id()
            event_id = None
            self._sent[name] = self.delivery.callback(event, name)
            acks += await self.delivery.event(event, name, copies, marked=marked)
        return tuple(acks)

    def _may_speak(self, channel: str, user: str) -> None:
        if user not in self.workspace.users:
            raise LookupError(f"no user {user}; add_user first")
        if self.workspace.channels[channel].is_archived:
            raise ValueError(f"{channel} is archived: nobody can talk there")

    def _shown(self, ts: str, channel: str | None) -> Post | Ephemeral:
        for ephemeral in self.workspace.ephemerals:
            if ephemeral.ts == ts:
                return ephemeral
        return self.workspace.find(ts, channel).post()

    def _response_url(self, answer: ResponseUrl) -> str:
        token = f"r{next(self._numbers)}"
        self.response_urls[token] = answer
        return f"{self.origin}/response/{token}"

    def _show_answer(self, ack: Ack, channel: str, user: str) -> None:
        """A command's ack may carry a message; ephemeral unless it says ``in_channel``."""
        answer = {"text": ack.payload} if isinstance(ack.payload, str) else ack.payload
        if not ack.acked or not answer or not (answer.get("text") or answer.get("blocks")):
            return
        self._say(answer, channel, user)

    def _say(self, answer: Json, channel: str, user: str) -> None:
        if answer.get("blocks"):
            check_blocks(answer["blocks"])
        self.api.note_mistakes(answer)
        if answer.get("response_type") != "in_channel":
            self.api.whisper(channel, user, answer)
            return
        fields = {"blocks": list(answer.get("blocks") or []), "thread_ts": answer.get("thread_ts")}
        self.api.announce(self.workspace.add(self.workspace.own(channel, str(answer.get("text") or ""), **fields)))

    def _respond(self, token: str, answer: Json) -> Json:
        """An answer through a response_url; raises Refused."""
        known = self.response_urls.get(token)
        if known is None or known.expired:
            raise Refused("expired_url")
        if known.uses >= RESPONSES_MAX:
            raise Refused("used_url")
        known.uses += 1
        original = self.workspace.log.get((known.channel, known.message_ts or ""))
        if answer.get("delete_original") and original:
            self.api.announce(self.workspace.delete(original))
        elif answer.get("replace_original") and original:
            new = {"text": str(answer.get("text") or ""), "blocks": list(answer.get("blocks") or [])}
            check_blocks(new["blocks"])
            self.api.note_mistakes(answer)
            self.api.announce(self.workspace.edit(original, str(original.user), **new))
        else:
            self._say(answer, known.channel, known.user)
        return {"ok": True}


def _button(blocks: list[Json], action_id: str) -> Json:
    for block in blocks:
        for element in (*(block.get("elements") or ()), block.get("accessory") or {}):
            if element.get("action_id") == action_id:
                return {**element, "block_id": block.get("block_id", "generated")}
    return {}
