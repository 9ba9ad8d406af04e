"""What people do on Discord, as Hero's events: what was seen in, event and the id of the *work* out. Pure.

One act can come several times: replayed after a resume, and from reading the thread. The id names the act itself, so
that the inbox takes it once.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import AwareDatetime

from bot.model.event import Commanded, Inbound, Place, Pressed, Said, Unsaid
from bot.model.person import Actor, Platform
from bot.model.value import Value
from bot.render.discord import parse_button

COMMAND = "hero"
OPTION = "text"
DECIDING = frozenset({"approve", "deny"})
"""First words that answer a request: said by slash command they count as said in words there."""
_EPOCH_MS = 1_420_070_400_000
"""The first moment of 2015, where Discord's ids begin to count (reference.mdx, "Snowflakes")."""
_NOBODY = "0"
"""Who wrote a message that is gone: the gateway tells its id alone."""


class Act(Value):
    """One thing that somebody did."""

    event_id: str
    payload: Inbound


class Heard(Value):
    """A message, the fields that matter."""

    id: str
    channel: str
    """A thread is a channel of its own."""
    guild: str = ""
    author: str
    author_name: str = ""
    is_bots: bool
    """Written by a bot, an application or a webhook, whatever name it goes by."""
    is_spoken: bool
    """A plain message or reply; others tell of joins, pins, threads."""
    text: str
    is_bare: bool = False
    """Nothing is in it that somebody could have meant: its content is kept from Hero."""
    is_forwarded: bool = False
    """The text is that of another message, quoted."""
    edited_at: AwareDatetime | None = None

    def actor(self) -> Actor:
        return Actor(
            platform=Platform.DISCORD,
            user_id=self.author,
            display_name=self.author_name[:200],
            is_bot=self.is_bots,
        )


class Interaction(Value):
    """A slash command or a press of a button; who did it is ``user``, whatever else it says."""

    id: str
    channel: str
    user: str
    user_name: str = ""
    text: str = ""
    """What follows ``/hero``."""
    button: str = ""
    """The custom id of what was pressed."""
    message: str = ""
    """The message on which it was pressed."""
    message_author: str = ""

    def actor(self) -> Actor:
        return Actor(platform=Platform.DISCORD, user_id=self.user, display_name=self.user_name[:200])

    @property
    def is_deciding(self) -> bool:
        return bool(self.text.split()) and self.text.split()[0].lower() in DECIDING


def map_message(heard: Heard, me: str, is_command: Callable[[str], bool], *, is_watched: bool) -> Act | None:
    """A message that was written, or one found later (then perhaps edited since)."""
    if not heard.is_spoken or heard.author == me:
        return None
    place = Place(conversation=heard.channel, message=heard.id)
    event_id = f"msg:{heard.channel}:{heard.id}"
    mentioned = re.match(rf"\s*<@!?{re.escape(me)}>[:,]?\s*", heard.text)
    if mentioned and not heard.is_bots and heard.edited_at is None:
        rest = heard.text[mentioned.end() :].strip()
        if not is_watched or not rest or is_command(rest.split()[0].lower()):
            payload = Commanded(actor=heard.actor(), place=place, text=rest, said_at=moment(heard.id))
            return Act(event_id=event_id, payload=payload)
    return Act(event_id=event_id, payload=_said(heard, place, moment(heard.id), me)) if is_watched else None


def map_edit(heard: Heard, me: str, *, is_watched: bool) -> Act | None:
    """A message whose author changed its words; Discord also tells of link previews in this way, without a new time."""
    if not is_watched or not heard.is_spoken or heard.is_bots or heard.author == me or heard.edited_at is None:
        return None
    place = Place(conversation=heard.channel, message=heard.id)
    event_id = f"edit:{heard.channel}:{heard.id}:{heard.edited_at.isoformat()}"
    return Act(event_id=event_id, payload=_said(heard, place, heard.edited_at, me))


def map_deletion(channel: str, message: str, at: datetime) -> tuple[Act, ...]:
    """A message of somebody's that is gone.

    First under the id of what was said: a copy of it that comes after its deletion must not count any more.
    """
    payload = Unsaid(
        actor=Actor(platform=Platform.DISCORD, user_id=_NOBODY),
        place=Place(conversation=channel, message=message),
        said_at=at,
    )
    return tuple(Act(event_id=f"{kind}:{channel}:{message}", payload=payload) for kind in ("msg", "del"))


def map_interaction(seen: Interaction, me: str) -> Act | None:
    """A slash command, or a press of one of Hero's own buttons; None for what is neither."""
    if seen.button:
        return _press(seen, me)
    payload: Inbound
    if seen.is_deciding:
        # It stands in the same order of ids as messages, by which the gate tells what was said before a request.
        place = Place(conversation=seen.channel, message=seen.id)
        payload = Said(actor=seen.actor(), place=place, text=seen.text, said_at=moment(seen.id))
    else:
        place = Place(conversation=seen.channel)
        payload = Commanded(actor=seen.actor(), place=place, text=seen.text, said_at=moment(seen.id))
    return Act(event_id=f"cmd:{seen.id}", payload=payload)


def moment(snowflake: str) -> datetime:
    """The time in an id of Discord's.

    Raises:
        ValueError: it is none.
    """
    return datetime.fromtimestamp(((int(snowflake) >> 22) + _EPOCH_MS) / 1000, UTC)


def snowflake_at(at: datetime) -> int:
    """The least id of that moment."""
    return max(0, int(at.timestamp() * 1000) - _EPOCH_MS) << 22


def _press(seen: Interaction, me: str) -> Act | None:
    """The button's id is only what Hero once sent, so it is judged by whoever handles it."""
    pressed = parse_button(seen.button)
    if pressed is None or seen.message_author != me:
        return None
    request, is_approval = pressed
    payload = Pressed(
        actor=seen.actor(),
        place=Place(conversation=seen.channel, message=seen.message),
        request=request,
        is_approval=is_approval,
        said_at=moment(seen.id),
    )
    return Act(event_id=f"press:{seen.id}", payload=payload)


def _said(heard: Heard, place: Place, said_at: datetime, me: str) -> Said:
    # Only before a word: were a mark of a quote or a code block bared, the rest would count as the author's.
    own = re.compile(rf"^([ \t]*)<@!?{re.escape(me)}>[:,]?[ \t]*(?=[A-Za-z]|$)", re.MULTILINE)
    return Said(
        actor=heard.actor(),
        place=place,
        text=own.sub(r"\1", heard.text),
        said_at=said_at,
        is_edited=heard.edited_at is not None,
        is_forwarded=heard.is_forwarded,
    )
