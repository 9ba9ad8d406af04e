"""The fake Slack's memory: people, channels, messages, and the events that each change gives rise to.

Every change returns the ``event`` objects that Slack would send to the app; ``slack_delivery`` carries them out.
"""

import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.fakes.slack_values import (
    APP_ID,
    BOT_ID,
    BOT_USER_ID,
    TEAM_ID,
    Channel,
    Ephemeral,
    Json,
    Message,
    Refused,
    User,
)

_MENTION = re.compile(r"<([@#])([A-Z0-9]+)>")


class Workspace:
    """What is said where. Timestamps follow ``wall`` and never repeat, as Slack's do."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self.wall = wall
        self.users: dict[str, User] = {
            BOT_USER_ID: User(BOT_USER_ID, "hero", is_bot=True),
            "USLACKBOT": User("USLACKBOT", "slackbot"),
        }
        self.channels: dict[str, Channel] = {}
        self.log: dict[tuple[str, str], Message] = {}
        self.ephemerals: list[Ephemeral] = []
        self.changed: Callable[[], None] = lambda: None
        self._last_ts_us = 0

    def next_ts(self) -> str:
        self._last_ts_us = max(self._last_ts_us + 100, int(self.wall() * 1_000_000))
        return f"{self._last_ts_us // 1_000_000}.{self._last_ts_us % 1_000_000:06d}"

    def messages(self, channel: str) -> list[Message]:
        """All of a channel's messages, oldest first, deleted ones too."""
        return sorted((m for m in self.log.values() if m.channel == channel), key=lambda m: _us(m.ts))

    def find(self, ts: str, channel: str | None = None) -> Message:
        """The message with this timestamp; a test's slip is a LookupError."""
        found = [m for m in self.log.values() if m.ts == ts and channel in {None, m.channel}]
        if len(found) != 1:
            raise LookupError(f"{len(found)} messages with ts {ts}")
        return found[0]

    def replies(self, root: Message) -> list[Message]:
        return [m for m in self.messages(root.channel) if m.is_reply and m.thread_ts == root.ts and m.ts != root.ts]

    def payload(self, message: Message, *, metadata: bool = False) -> Json:
        """The message object, with the thread fields that depend on the others."""
        said = message.payload(metadata=metadata)
        if message.is_reply:
            root = self.log.get((message.channel, str(message.thread_ts)))
            return said | ({"parent_user_id": root.user} if root and root.user else {})
        below = [reply for reply in self.replies(message) if not reply.deleted]
        if below:
            people = list(dict.fromkeys(reply.user for reply in below if reply.user))
            said |= {
                "thread_ts": message.ts,
                "reply_count": len(below),
                "reply_users": people,
                "reply_users_count": len(people),
                "latest_reply": below[-1].ts,
            }
        return said

    def direct(self, user: str) -> Channel:
        """The conversation of the app with one person, made when first asked for."""
        name = f"D{user}"
        known = Channel(name, name, is_im=True, is_private=True, members=(user, BOT_USER_ID))
        return self.channels.setdefault(name, known)

    def members(self, channel: Channel) -> tuple[str, ...]:
        if channel.members is not None:
            return channel.members
        return tuple(user for user in self.users if user != BOT_USER_ID or channel.is_member)

    def as_typed(self, text: str) -> str:
        """What Slack makes of text from a keyboard: all markup escaped, except mentions of whom it knows."""

        def keep(token: re.Match[str]) -> str:
            known = self.users if token.group(1) == "@" else self.channels
            return f"\x00{token.group(1)}{token.group(2)}\x01" if token.group(2) in known else token.group(0)

        marked = _MENTION.sub(keep, text)
        escaped = marked.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return escaped.replace("\x00", "<").replace("\x01", ">")

    def add(self, message: Message) -> list[Json]:
        self.log[message.channel, message.ts] = message
        self.changed()
        if message.broadcast:
            message.subtype = "thread_broadcast"
        events = [self._event(message, self.payload(message))]
        return events + self._mention(message)

    def edit(self, message: Message, editor: str, **new: Any) -> list[Json]:
        """Change what a message says and leave the mark of an edit."""
        before = self.payload(message)
        for key, value in new.items():
            setattr(message, key, value)
        message.edited = {"user": editor, "ts": self.next_ts()}
        self.changed()
        return [self._changed(message, before), *self._mention(message)]

    def touch(self, message: Message) -> list[Json]:
        """A change that nobody made: a link preview appears. Text and ``edited`` stay."""
        before = self.payload(message)
        message.attachments = [*message.attachments, {"from_url": "https://example.com/", "title": "Example"}]
        self.changed()
        return [self._changed(message, before)]

    def delete(self, message: Message) -> list[Json]:
        """Take a message away; a root with replies stays as a tombstone (and is told of as a change)."""
        before = self.payload(message)
        message.deleted = True
        self.changed()
        if not message.is_reply and any(not reply.deleted for reply in self.replies(message)):
            message.subtype, message.user, message.text = "tombstone", "USLACKBOT", "This message was deleted."
            message.blocks, message.metadata, message.bot_id, message.app_id = [], None, None, None
            return [self._changed(message, before)]
        gone = {"subtype": "message_deleted", "hidden": True, "deleted_ts": message.ts, "previous_message": before}
        return [self._event(message, {"type": "message", "ts": self.next_ts()} | gone)]

    def own(self, channel: str, text: str, **fields: Any) -> Message:
        """A message of the app itself, not yet said."""
        ts = self.next_ts()
        return Message(channel, ts, BOT_USER_ID, text, bot_id=BOT_ID, app_id=APP_ID, team=TEAM_ID, **fields)

    def rename(self, user: str, **changes: Any) -> User:
        """Change a person's names or flags."""
        self.users[user] = replace(self.users[user], **changes)
        return self.users[user]

    def _event(self, message: Message, body: Json) -> Json:
        event: Json = body | {"channel": message.channel, "channel_type": self.channels[message.channel].kind}
        return event | {"event_ts": event["ts"]}

    def _changed(self, message: Message, before: Json) -> Json:
        now = {"message": self.payload(message), "previous_message": before, "hidden": True}
        return self._event(message, {"type": "message", "subtype": "message_changed", "ts": self.next_ts()} | now)

    def _mention(self, message: Message) -> list[Json]:
        if f"<@{BOT_USER_ID}>" not in message.text or message.user == BOT_USER_ID:
            return []
        if self.channels[message.channel].is_im:
            return []  # app_mention is not sent for direct messages
        event = self._event(message, self.payload(message) | {"type": "app_mention"})
        return [{key: value for key, value in event.items() if key != "channel_type"}]


def page_of_history(found: list[Json], args: Json) -> Json:
    """One page of ``conversations.history``: newest first; forward from ``oldest`` when there is no ``latest``.

    Source: conversations.history, "the messages returned are the closest to ``oldest``".
    """
    forward = bool(args.get("oldest")) and not args.get("latest")
    chosen = _between(found, args)
    ordered = chosen if forward else chosen[::-1]
    page, rest = _page(ordered, args, default=100)
    return {"messages": sorted(page, key=lambda m: -_us(m["ts"])), **rest}


def page_of_replies(root: Json, found: list[Json], args: Json) -> Json:
    """One page of ``conversations.replies``: the root always first, then replies from old to new."""
    page, rest = _page(_between(found, args), args, default=1000)
    return {"messages": [root, *page], **rest}


def page_of(found: list[Any], args: Json, key: str) -> Json:
    page, rest = _page(found, args, default=100)
    return {key: page, "response_metadata": rest.get("response_metadata", {"next_cursor": ""})}


def _between(found: list[Json], args: Json) -> list[Json]:
    inclusive = truth(args.get("inclusive"))
    oldest, latest = args.get("oldest"), args.get("latest")

    def inside(ts: int) -> bool:
        if inclusive and ts in {_us(str(edge)) for edge in (oldest, latest) if edge}:
            return True
        return (not oldest or ts > _us(str(oldest))) and (not latest or ts < _us(str(latest)))

    return [message for message in found if inside(_us(message["ts"]))]


def _page(found: list[Any], args: Json, *, default: int) -> tuple[list[Any], Json]:
    limit = int(args.get("limit") or default)
    if not 0 < limit < 1001:
        raise Refused("invalid_limit")
    start = 0
    if args.get("cursor"):
        try:
            start = int(urlsafe_b64decode(str(args["cursor"])).decode().removeprefix("next:"))
        except ValueError as error:
            raise Refused("invalid_cursor") from error
    page, more = found[start : start + limit], start + limit < len(found)
    rest: Json = {"has_more": more}
    if more:
        rest["response_metadata"] = {"next_cursor": urlsafe_b64encode(f"next:{start + limit}".encode()).decode()}
    return page, rest


def truth(flag: object) -> bool:
    """A boolean as JSON or as a form writes it."""
    return flag in {True, "1", "true", "True"}


def _us(ts: str) -> int:
    try:
        seconds, _, fraction = ts.partition(".")
        return int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6])
    except ValueError as error:
        raise Refused("invalid_ts_oldest") from error
