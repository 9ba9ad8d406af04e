"""What Discord knows: a guild with its channels, threads, people and messages, and what each message would ping."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

type Json = dict[str, Any]

EPOCH_MS = 1_420_070_400_000
ME = "100000000000000001"
APPLICATION = "100000000000000002"
GUILD = "200000000000000001"
HOME = "200000000000000002"
DEFAULT, REPLY = 0, 19


@dataclass
class Place:
    """A channel or a thread."""

    id: str
    name: str
    kind: int
    parent: str | None = None
    archived: bool = False
    locked: bool = False
    refusal: int = 0
    """The error code for every post: a permission that is missing."""
    drops_embeds: bool = False

    def as_json(self) -> Json:
        given: Json = {"id": self.id, "name": self.name, "type": self.kind, "guild_id": GUILD, "position": 0}
        given |= {"permission_overwrites": [], "parent_id": self.parent, "nsfw": False, "topic": None}
        if self.parent:
            given |= {"owner_id": ME, "message_count": 0, "member_count": 1, "rate_limit_per_user": 0}
            given["thread_metadata"] = {
                "archived": self.archived,
                "locked": self.locked,
                "auto_archive_duration": 10080,
                "archive_timestamp": datetime.now(UTC).isoformat(),
            }
        return given


@dataclass
class Account:
    id: str
    name: str
    bot: bool = False
    member: bool = True
    pending: bool = False
    flags: int = 0

    def as_json(self) -> Json:
        given: Json = {"id": self.id, "username": self.name, "discriminator": "0", "avatar": None}
        return given | {"global_name": self.name} | ({"bot": True} if self.bot else {})


@dataclass
class Post:
    """A message."""

    id: str
    channel: str
    author: Account
    content: str
    embeds: list[Json] = field(default_factory=list)
    components: list[Json] = field(default_factory=list)
    nonce: str | None = None
    edited_at: str | None = None
    kind: int = DEFAULT
    webhook: str | None = None
    snapshots: list[Json] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    pings: frozenset[str] = frozenset()
    at: str = ""

    @property
    def shown(self) -> str:
        """All that is read in it."""
        parts = [self.content]
        for embed in self.embeds:
            parts += [embed.get("title", ""), embed.get("description", "")]
            parts += [f"{each['name']}: {each['value']}" for each in embed.get("fields", ())]
        return "\n".join(parts)

    @property
    def buttons(self) -> list[str]:
        return [button["custom_id"] for row in self.components for button in row["components"]]

    def as_json(self, *, reads_content: bool = True) -> Json:
        mentions = re.findall(r"<@!?(\d+)>", self.content)
        is_open = reads_content or self.author.id == ME or ME in mentions
        given: Json = {
            "id": self.id,
            "channel_id": self.channel,
            "author": self.author.as_json(),
            "content": self.content if is_open else "",
            "embeds": self.embeds if is_open else [],
            "components": self.components if is_open else [],
            "timestamp": self.at,
            "edited_timestamp": self.edited_at,
            "tts": False,
            "mention_everyone": False,
            "mentions": [{"id": each, "username": "x", "discriminator": "0", "avatar": None} for each in mentions],
            "mention_roles": [],
            "attachments": [],
            "pinned": False,
            "type": self.kind,
            "flags": 0,
        }
        given |= {"nonce": self.nonce} if self.nonce else {}
        given |= {"webhook_id": self.webhook} if self.webhook else {}
        return given | ({"message_snapshots": self.snapshots} if self.snapshots else {})


class World:
    """One guild; ``now`` is the time in its ids."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = 0
        self.me = Account(ME, "hero", bot=True)
        self.accounts = {ME: self.me}
        self.places = {HOME: Place(HOME, "runs", 0)}
        self.posts: dict[str, Post] = {}
        self.commands: list[Json] = []
        self.reads_content = True
        """Whether the application's page has Message Content Intent switched on."""
        self.refuses_files = False
        """Whether the bot's role lacks Attach Files."""

    def snowflake(self) -> str:
        self._last = max(self._last + 1, (int(self._now() * 1000) - EPOCH_MS) << 22)
        return str(self._last)

    def add_person(self, user: str, name: str = "dana", **how: Any) -> Account:
        self.accounts[user] = Account(user, name, **how)
        return self.accounts[user]

    def add(self, channel: str, author: Account, content: str, **how: Any) -> Post:
        post = Post(self.snowflake(), channel, author, content, at=self.stamp(), **how)
        self.posts[post.id] = post
        return post

    def stamp(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).isoformat()

    def within(self, channel: str) -> list[Post]:
        return sorted((p for p in self.posts.values() if p.channel == channel), key=lambda p: int(p.id))

    def own(self, channel: str) -> list[Post]:
        return [post for post in self.within(channel) if post.author.id == ME]


def pinged(content: str, allowed: Json | None) -> frozenset[str]:
    """Whom a message wakes: what its text names and its allowed mentions let through."""
    users = frozenset(re.findall(r"<@!?(\d+)>", content))
    roles = frozenset(f"&{each}" for each in re.findall(r"<@&(\d+)>", content))
    everyone = frozenset(re.findall(r"@(everyone|here)\b", content))
    if allowed is None:
        return users | roles | everyone
    parse = allowed.get("parse") or []
    return (
        (users if "users" in parse else users & frozenset(map(str, allowed.get("users") or ())))
        | (roles if "roles" in parse else frozenset())
        | (everyone if "everyone" in parse else frozenset())
    )
