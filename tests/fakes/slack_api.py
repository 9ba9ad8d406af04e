"""The Web API of the fake Slack: arguments in, the documented answer or ``Refused`` out. No I/O.

Method names map to functions in ``METHODS``; what each needs of the token stands beside it.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes import slack_limits as limits
from tests.fakes.slack_values import (
    APP_ID,
    BOT_ID,
    BOT_USER_ID,
    TEAM_ID,
    Channel,
    Ephemeral,
    Json,
    Message,
    Mistake,
    Refused,
)
from tests.fakes.slack_workspace import Workspace, page_of, page_of_history, page_of_replies, truth

TRIGGER_LASTS_S = 3.0
_TS = re.compile(r"\d{1,10}\.\d{6}")


@dataclass
class Upload:
    """A file: announced, sent, then shown somewhere."""

    name: str
    length: int
    content: bytes = b""
    channel: str = ""
    thread: str | None = None


class WebApi:
    """Carries out calls on a workspace. Events that follow are handed to ``announce``."""

    def __init__(self, workspace: Workspace, announce: Callable[[list[Json]], None]) -> None:
        self.workspace = workspace
        self.announce = announce
        self.scopes = set(ALL_SCOPES)
        self.uploads: dict[str, Upload] = {}
        self.origin: Callable[[], str] = lambda: ""
        self.mistakes: list[Mistake] = []
        self.allowed_mentions: set[str] = set()
        self.triggers: dict[str, float] = {}
        """Those that were handed out and not used, by the time at which they were."""
        self.spent: set[str] = set()
        self.views: dict[str, Json] = {}
        self.workspace_url = "https://hero.slack.example/"

    def call(self, method: str, args: Json) -> Json:
        """The answer to one call; raises Refused."""
        if method not in METHODS:
            raise Refused("unknown_method", req_method=method)
        known = METHODS[method]
        needed = known.scope(self._kind(args)) if callable(known.scope) else known.scope
        if needed and needed not in self.scopes:
            raise Refused("missing_scope", needed=needed, provided=",".join(sorted(self.scopes)))
        return {"ok": True, **known.answer(self, args)}

    def post_message(self, args: Json) -> Json:
        channel = self._writable(self._addressed(args))
        self._check_content(args)
        thread_ts = self._thread(channel, args)
        warning: Json = {}
        text = str(args.get("text") or args.get("markdown_text") or "")
        if len(text) > limits.TEXT_CUT:
            self.mistakes.append(Mistake("text_cut", f"{len(text)} characters, cut at {limits.TEXT_CUT}"))
            text = text[: limits.TEXT_CUT]
            warning = {"warning": "message_truncated", "response_metadata": {"warnings": ["message_truncated"]}}
        message = self.workspace.own(
            channel.id,
            text,
            thread_ts=thread_ts,
            blocks=list(args.get("blocks") or []),
            attachments=list(args.get("attachments") or []),
            metadata=args.get("metadata"),
            broadcast=truth(args.get("reply_broadcast")),
        )
        self.announce(self.workspace.add(message))
        said = self.workspace.payload(message, metadata=True)
        return {"channel": channel.id, "ts": message.ts, "message": said, **warning}

    def update(self, args: Json) -> Json:
        channel = self._writable(self._channel(args))
        message = self.workspace.log.get((channel.id, str(args.get("ts", ""))))
        if message is None or message.deleted:
            raise Refused("message_not_found")
        if message.bot_id != BOT_ID:
            raise Refused("cant_update_message")
        if len(str(args.get("text") or "")) > limits.TEXT_ADVISED:
            raise Refused("msg_too_long")
        self._check_content(args)
        new: Json = {"blocks": list(args.get("blocks") or [])}
        if args.get("text"):
            new["text"] = str(args["text"])
        if "attachments" in args:
            new["attachments"] = list(args["attachments"])
        if "metadata" in args:
            new["metadata"] = args["metadata"] or None
        self.announce(self.workspace.edit(message, BOT_USER_ID, **new))
        said = self.workspace.payload(message)
        return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": said}

    def post_ephemeral(self, args: Json) -> Json:
        channel = self._writable(self._channel(args))
        user = str(args.get("user", ""))
        if user not in self.workspace.members(channel):
            raise Refused("user_not_in_channel")
        self._check_content(args)
        return {"message_ts": self.whisper(channel.id, user, args)}

    def whisper(self, channel: str, user: str, args: Json) -> str:
        """Show something to one person; also where ephemeral answers to commands and clicks end."""
        ts = self.workspace.next_ts()
        blocks, thread = tuple(args.get("blocks") or ()), args.get("thread_ts")
        self.workspace.ephemerals.append(Ephemeral(channel, ts, user, str(args.get("text") or ""), blocks, thread))
        self.workspace.changed()
        return ts

    def upload_address(self, args: Json) -> Json:
        """Step one of an upload: where to send so many bytes."""
        length, name = int(args.get("length") or 0), str(args.get("filename") or "")
        if length <= 0 or not name:
            raise Refused("invalid_arguments")
        file = f"F{len(self.uploads) + 1:08}"
        self.uploads[file] = Upload(name=name, length=length)
        return {"upload_url": f"{self.origin()}/upload/{file}", "file_id": file}

    def complete_upload(self, args: Json) -> Json:
        """Step three: show files, whose bytes have come whole, in a channel or a thread."""
        channel = self._writable(self._channel({"channel": args.get("channel_id")}))
        thread = self._thread(channel, args)
        files = json.loads(str(args.get("files") or "[]"))
        for each in files:
            upload = self.uploads.get(each["id"])
            if upload is None or len(upload.content) != upload.length:
                raise Refused("file_not_found")
            upload.channel, upload.thread = channel.id, thread
        return {"files": [{"id": each["id"], "title": each.get("title", "")} for each in files]}

    def get_permalink(self, args: Json) -> Json:
        channel = self._readable(args)
        message = self._message(channel, str(args.get("message_ts", "")))
        link = f"{self.workspace_url}archives/{channel.id}/p{message.ts.replace('.', '')}"
        if message.is_reply:
            link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
        return {"channel": channel.id, "permalink": link}

    def add_reaction(self, args: Json) -> Json:
        channel = self._writable(self._channel(args))
        message = self._message(channel, str(args.get("timestamp", "")))
        people = message.reactions.setdefault(str(args.get("name", "")), [])
        if BOT_USER_ID in people:
            raise Refused("already_reacted")
        people.append(BOT_USER_ID)
        self.workspace.changed()
        return {}

    def history(self, args: Json) -> Json:
        channel = self._readable(args)
        metadata = truth(args.get("include_all_metadata"))
        found = [
            self.workspace.payload(message, metadata=metadata)
            for message in self.workspace.messages(channel.id)
            if _still_shown(message) and (not message.is_reply or message.broadcast)
        ]
        return page_of_history(found, args)

    def replies(self, args: Json) -> Json:
        channel = self._readable(args)
        root = self.workspace.log.get((channel.id, str(args.get("ts", ""))))
        if root is None or not _still_shown(root):
            raise Refused("thread_not_found")
        metadata = truth(args.get("include_all_metadata"))
        below = [message for message in self.workspace.replies(root) if not message.deleted]
        found = [self.workspace.payload(message, metadata=metadata) for message in below]
        return page_of_replies(self.workspace.payload(root, metadata=metadata), found, args)

    def channel_of(self, args: Json) -> Json:
        channel = self._channel(args)
        flags = {"is_archived": channel.is_archived, "is_member": channel.is_member, "is_private": channel.is_private}
        kinds = {"is_channel": channel.kind == "channel", "is_group": channel.kind == "group", "is_im": channel.is_im}
        shared = {"is_ext_shared": channel.is_ext_shared, "is_shared": channel.is_ext_shared}
        return {"channel": {"id": channel.id, "name": channel.name, **flags, **kinds, **shared}}

    def members(self, args: Json) -> Json:
        return page_of(list(self.workspace.members(self._channel(args))), args, "members")

    def open_direct(self, args: Json) -> Json:
        user = str(args.get("users", ""))
        if user not in self.workspace.users:
            raise Refused("user_not_found")
        return {"channel": {"id": self.workspace.direct(user).id}}

    def user(self, args: Json) -> Json:
        user = self.workspace.users.get(str(args.get("user", "")))
        if user is None:
            raise Refused("user_not_found")
        flags = {"is_bot": user.is_bot, "is_restricted": user.is_restricted, "deleted": user.deleted}
        flags["is_ultra_restricted"] = user.is_ultra_restricted
        if user.is_stranger:  # Slack leaves the field out where it is false
            flags["is_stranger"] = True
        profile = {"display_name": user.display_name or user.name, "real_name": user.name, "team": user.team_id}
        names = {"id": user.id, "team_id": user.team_id, "name": user.name.lower(), "real_name": user.name}
        return {"user": {**names, **flags, "profile": profile}}

    def open_view(self, args: Json) -> Json:
        """A trigger opens one view, within three seconds (Slack: "Handling user interaction in your app")."""
        trigger = str(args.get("trigger_id") or "")
        given_at = self.triggers.get(trigger)
        if given_at is None:
            raise Refused("exchanged_trigger_id" if trigger in self.spent else "invalid_trigger")
        if time.monotonic() - given_at > TRIGGER_LASTS_S:
            raise Refused("expired_trigger_id")
        limits.check_view(args.get("view"))
        self.spent.add(trigger)
        del self.triggers[trigger]
        name = f"V{len(self.views) + 1:08}"
        self.views[name] = {"id": name, "team_id": TEAM_ID, "app_id": APP_ID, **args["view"]}
        self.workspace.changed()
        return {"view": self.views[name]}

    def auth_test(self, _args: Json) -> Json:
        names = {"url": self.workspace_url, "team": "Hero", "user": "hero", "is_enterprise_install": False}
        return {**names, "team_id": TEAM_ID, "user_id": BOT_USER_ID, "bot_id": BOT_ID, "app_id": APP_ID}

    def _kind(self, args: Json) -> str:
        channel = self.workspace.channels.get(str(args.get("channel", "")))
        return channel.kind if channel else "channel"

    def _addressed(self, args: Json) -> Channel:
        """chat.postMessage also takes a channel's name, and a person's id for the direct conversation."""
        asked = str(args.get("channel", ""))
        if asked in self.workspace.users:
            return self.workspace.direct(asked)
        named = [c for c in self.workspace.channels.values() if c.name == asked.removeprefix("#")]
        return named[0] if named else self._channel(args)

    def _channel(self, args: Json) -> Channel:
        channel = self.workspace.channels.get(str(args.get("channel", "")))
        if channel is None or (channel.is_private and not channel.is_member):
            raise Refused("channel_not_found")
        return channel

    def _readable(self, args: Json) -> Channel:
        channel = self._channel(args)
        if not channel.is_member:
            raise Refused("not_in_channel")
        return channel

    def _writable(self, channel: Channel) -> Channel:
        if channel.is_archived:
            raise Refused("is_archived")
        if not channel.is_member and "chat:write.public" not in self.scopes:
            raise Refused("not_in_channel")
        return channel

    def _message(self, channel: Channel, ts: str) -> Message:
        message = self.workspace.log.get((channel.id, ts))
        if message is None or message.deleted:
            raise Refused("message_not_found")
        return message

    def _thread(self, channel: Channel, args: Json) -> str | None:
        """The ``thread_ts`` of a post. A reply's ts is taken, and the post is then lost to the thread's readers."""
        asked = args.get("thread_ts")
        if asked is None:
            return None
        if not isinstance(asked, str) or not _TS.fullmatch(asked):
            raise Refused("invalid_thread_ts")
        root = self.workspace.log.get((channel.id, asked))
        if root is None or not _still_shown(root):
            raise Refused("thread_not_found")
        if root.is_reply:
            self.mistakes.append(Mistake("wrong_thread_root", f"{asked} is a reply; its root is {root.thread_ts}"))
        return asked

    def _check_content(self, args: Json) -> None:
        if not any(args.get(key) for key in ("text", "blocks", "attachments", "markdown_text")):
            raise Refused("no_text")
        blocks = args.get("blocks")
        if blocks:
            limits.check_blocks(blocks)
        for attachment in args.get("attachments") or ():
            if attachment.get("blocks"):
                limits.check_blocks(attachment["blocks"])
        if args.get("metadata"):
            limits.check_metadata(args["metadata"])
        self.note_mistakes(args)

    def note_mistakes(self, args: Json) -> None:
        self.mistakes.extend(limits.mistakes_in(args, frozenset(self.allowed_mentions)))


def _still_shown(message: Message) -> bool:
    return not message.deleted or message.subtype == "tombstone"


def _history_scope(kind: str) -> str:
    return {"im": "im:history", "group": "groups:history"}.get(kind, "channels:history")


def _read_scope(kind: str) -> str:
    return {"im": "im:read", "group": "groups:read"}.get(kind, "channels:read")


@dataclass(frozen=True)
class Method:
    answer: Callable[[WebApi, Json], Json]
    scope: str | Callable[[str], str] | None = None


METHODS: dict[str, Method] = {
    "auth.test": Method(WebApi.auth_test),
    "chat.postMessage": Method(WebApi.post_message, "chat:write"),
    "chat.update": Method(WebApi.update, "chat:write"),
    "chat.postEphemeral": Method(WebApi.post_ephemeral, "chat:write"),
    "chat.getPermalink": Method(WebApi.get_permalink),
    "conversations.history": Method(WebApi.history, _history_scope),
    "conversations.replies": Method(WebApi.replies, _history_scope),
    "conversations.info": Method(WebApi.channel_of, _read_scope),
    "conversations.members": Method(WebApi.members, _read_scope),
    "conversations.open": Method(WebApi.open_direct, "im:write"),
    "users.info": Method(WebApi.user, "users:read"),
    "files.getUploadURLExternal": Method(WebApi.upload_address, "files:write"),
    "files.completeUploadExternal": Method(WebApi.complete_upload, "files:write"),
    "views.open": Method(WebApi.open_view),
    "reactions.add": Method(WebApi.add_reaction, "reactions:write"),
}
ALL_SCOPES: frozenset[str] = frozenset(
    {"app_mentions:read", "commands", "chat:write", "users:read", "reactions:write", "im:write", "files:write"}
    | {f"{kind}:{verb}" for kind in ("channels", "groups", "im") for verb in ("history", "read")}
)


def plain_arguments(raw: dict[str, Any], decode: Callable[[str], Any]) -> Json:
    """Arguments as values: forms and query strings carry blocks, attachments and metadata as JSON text."""
    structured = {"blocks", "attachments", "metadata", "view"}
    try:
        return {k: decode(v) if k in structured and isinstance(v, str) else v for k, v in raw.items() if k != "token"}
    except ValueError as error:
        raise Refused("invalid_blocks_format") from error
