"""One update on its way to one channel: a row of the outbox."""

from datetime import timedelta
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime

from bot.model.update import Update
from bot.model.value import RunId, Value


class ChannelName(StrEnum):
    SLACK = "slack"
    GITHUB = "github"
    DISCORD = "discord"
    EMAIL = "email"
    PAGER = "pager"
    CONSOLE = "console"


ONE_WAY = frozenset({ChannelName.EMAIL, ChannelName.PAGER})
"""Channels in which nobody answers: only what is meant for them goes there, never a run's whole conversation."""


class Target(Value):
    """Where in a channel it goes.

    By default a new message in the run's thread or issue. ``slot`` names a message of the run that is edited in place
    when it was sent before (``live``, ``request:7``, ``incident:4``). ``private_to`` asks for a message that only this
    user sees, where the platform has such; else a short reply. ``conversation`` and ``thread`` answer where a command
    was given, outside of any run's thread. ``direct_to`` is a user id of the platform: a message of its own in Hero's
    direct conversation with them, where the platform has such; else it goes into the run's conversation.
    """

    slot: str = ""
    private_to: str = ""
    conversation: str = ""
    thread: str = ""
    direct_to: str = ""


class Delivery(Value):
    """What to send, where to, and how often it was tried."""

    number: int
    key: str
    """Unique and stable over retries; the hidden marker by which a channel finds its own message again."""
    channel: ChannelName
    run_id: RunId | None
    target: Target
    update: Update
    created_at: AwareDatetime
    attempt: int = 0
    """How many times a send was begun before this one; above 0 the earlier send may have reached people."""
    first_intent_at: AwareDatetime | None = None
    """When the first send was begun: where to start looking for our own marker."""


class Sent(Value):
    """It is there. ``message_id`` is the channel's own reference, by which it can be edited."""

    kind: Literal["sent"] = "sent"
    message_id: str
    link: str = ""


class Later(Value):
    """Not now: a limit, a timeout, a service that is ill. The outbox tries again, after looking for our marker."""

    kind: Literal["later"] = "later"
    reason: str
    after: timedelta | None = None
    """What the service itself asked for; None leaves it to the outbox's own back-off."""
    is_uncertain: bool = False
    """Whether the message may have been stored although no answer came."""


class Never(Value):
    """It can't be sent there, however often it is tried: revoked token, deleted channel, message refused."""

    kind: Literal["never"] = "never"
    reason: str
    fix: str


type SendOutcome = Sent | Later | Never


class Posted(Value):
    """What was told where: the channel's references for a run's messages, by slot.

    ``thread`` is the root of the run's conversation: ``CHANNEL:TS`` on Slack, the issue's number on GitHub, the
    thread's id on Discord, ``console:RUN`` at the console; it equals ``Place.key`` of what people say there. Other
    slots name one message in it: ``CHANNEL:TS`` on Slack, the comment's id on GitHub, ``CHANNEL:MESSAGE`` on Discord.
    """

    channel: ChannelName
    run_id: RunId
    slot: str
    message_id: str
    link: str = ""


class Awaited(Value):
    """In which runs' conversations an answer is awaited, and in which nothing is any more."""

    asked: frozenset[RunId] = frozenset()
    """A request waits for its answer, or what was approved is under way and may be taken back."""
    over: frozenset[RunId] = frozenset()
    """Ended or blocked for a while, and nothing is asked."""


class Told(Value):
    """How many messages about a run each channel got; what is edited in place counts once, the live status not."""

    day: dict[ChannelName, int]
    """In the last 24 hours."""
    week: dict[ChannelName, int]
    """In the last seven days, which is how long the outbox is kept at least."""
