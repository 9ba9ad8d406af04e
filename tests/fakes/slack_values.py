"""What the fake Slack is told and what it reports: people, channels, messages, acks and the faults a test can order.

Start at ``tests/fakes/slack.py``; this file only names things.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Self

type Json = dict[str, Any]

TEAM_ID = "T0HERO"
APP_ID = "A0HERO"
BOT_ID = "B0HERO"
BOT_USER_ID = "U0HERO"


@dataclass(frozen=True, slots=True)
class User:
    """A person or a bot, with the flags that ``users.info`` shows and an approval must look at."""

    id: str
    name: str
    display_name: str = ""
    deleted: bool = False
    is_bot: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    team_id: str = TEAM_ID


@dataclass(slots=True)
class Channel:
    """A conversation; a test may change it while the server runs."""

    id: str
    name: str
    is_member: bool = True
    is_archived: bool = False
    is_private: bool = False
    is_im: bool = False
    is_ext_shared: bool = False
    members: tuple[str, ...] | None = None
    """None means everybody."""

    @property
    def kind(self) -> str:
        """The ``channel_type`` of events."""
        if self.is_im:
            return "im"
        return "group" if self.is_private else "channel"


@dataclass(frozen=True, slots=True)
class Post:
    """A message as it stands now; deleted ones stay visible to the test."""

    channel: str
    ts: str
    thread_ts: str | None
    user: str | None
    text: str
    blocks: tuple[Json, ...] = ()
    metadata: Json | None = None
    edited: bool = False
    deleted: bool = False
    bot_id: str | None = None
    reactions: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """What a reader sees: the texts of the blocks, or the text where there are none."""
        return "\n".join(texts_in(list(self.blocks))) if self.blocks else self.text


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """A message that only ``user`` sees; no history holds it."""

    channel: str
    ts: str
    user: str
    text: str
    blocks: tuple[Json, ...] = ()
    thread_ts: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One Web API call as it came in, whatever became of it. ``at`` is the fake's monotonic time in seconds."""

    method: str
    args: Json
    at: float


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something that Slack lets pass and that a reader or an on-call engineer would regret."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Ack:
    """What became of one delivery to the app."""

    kind: str
    event_id: str | None
    attempt: int
    sent: bool
    """False when there was no way to the app, or when the socket is deaf."""

    acked: bool
    latency_s: float | None = None
    payload: Any = None
    """What the ack carried: a command's or a click's answer."""

    status: int | None = None
    """The HTTP status, in HTTP mode."""

    no_retry: bool = False
    """The app answered with ``X-Slack-No-Retry: 1``."""


class Said(str):
    """A message's ``ts`` that also knows how the events about it were acked."""

    __slots__ = ("acks",)
    acks: tuple[Ack, ...]

    @classmethod
    def of(cls, ts: str, acks: tuple[Ack, ...]) -> Self:
        said = cls(ts)
        said.acks = acks
        return said


@dataclass(frozen=True, slots=True)
class LostAfterPerforming:
    """The call is carried out, then the connection dies without an answer."""

    performed: Literal[True] = True


@dataclass(frozen=True, slots=True)
class LostBeforePerforming:
    """The connection dies and nothing was done."""

    performed: Literal[False] = False


@dataclass(frozen=True, slots=True)
class Http500:
    """A server error without a JSON body."""

    performed: bool = False
    status: int = 500


@dataclass(frozen=True, slots=True)
class Stall:
    """No answer until the server stops."""

    performed: bool = False


@dataclass(frozen=True, slots=True)
class RateLimited:
    """429; ``retry_after`` in whole seconds, None leaves the header out."""

    retry_after: int | None = 1


@dataclass(frozen=True, slots=True)
class ApiError:
    """``ok: false`` with this code."""

    code: str


@dataclass(frozen=True, slots=True)
class NotJson:
    """A 200 whose body is somebody's proxy page."""


type Lost = LostAfterPerforming | LostBeforePerforming
type Fault = Lost | Http500 | Stall | RateLimited | ApiError | NotJson


class Refused(Exception):  # noqa: N818 - it is Slack's answer, not a fault of the program
    """The Web API says no."""

    def __init__(self, code: str, *, messages: tuple[str, ...] = (), **extra: Any) -> None:
        super().__init__(code)
        self.code = code
        self.messages = messages
        self.extra = extra

    def body(self) -> Json:
        answer: Json = {"ok": False, "error": self.code, **self.extra}
        if self.messages:
            answer["errors"] = list(self.messages)
            answer["response_metadata"] = {"messages": [f"[ERROR] {message}" for message in self.messages]}
        return answer


@dataclass(slots=True)
class Message:
    """A message in the server's hands."""

    channel: str
    ts: str
    user: str | None
    text: str
    thread_ts: str | None = None
    blocks: list[Json] = field(default_factory=list)
    metadata: Json | None = None
    edited: Json | None = None
    deleted: bool = False
    subtype: str | None = None
    bot_id: str | None = None
    app_id: str | None = None
    username: str | None = None
    team: str = TEAM_ID
    broadcast: bool = False
    attachments: list[Json] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_reply(self) -> bool:
        return self.thread_ts is not None and self.thread_ts != self.ts

    def post(self) -> Post:
        return Post(
            channel=self.channel,
            ts=self.ts,
            thread_ts=self.thread_ts,
            user=self.user,
            text=self.text,
            blocks=tuple(self.blocks),
            metadata=self.metadata,
            edited=self.edited is not None,
            deleted=self.deleted,
            bot_id=self.bot_id,
            reactions=tuple(self.reactions),
        )

    def payload(self, *, metadata: bool = False) -> Json:
        """The message object of Slack's events and histories; metadata only for those who ask."""
        said: Json = {"type": "message", "ts": self.ts, "text": self.text}
        optional = {
            "subtype": self.subtype,
            "user": self.user,
            "username": self.username,
            "team": self.team if self.user else None,
            "bot_id": self.bot_id,
            "app_id": self.app_id,
            "thread_ts": self.thread_ts,
            "blocks": list(self.blocks),
            "attachments": list(self.attachments),
            "edited": self.edited,
            "metadata": self.metadata if metadata else None,
            "reactions": [{"name": n, "users": u, "count": len(u)} for n, u in self.reactions.items()],
        }
        said |= {key: value for key, value in optional.items() if value}
        if self.bot_id and self.user:
            said["bot_profile"] = {"id": self.bot_id, "app_id": self.app_id, "team_id": self.team, "name": self.user}
        return said


def texts_in(part: Any) -> Iterator[str]:
    """Every text that a reader of these blocks sees, in order."""
    match part:
        case {"text": str(text)}:
            yield text
        case dict():
            for key in ("text", "fields", "elements", "accessory", "title"):
                yield from texts_in(part.get(key))
        case list():
            for piece in part:
                yield from texts_in(piece)
        case _:
            return
