"""What people do on Slack, as Hero's events: payload in, event and the id of the *work* out. Pure.

One act can come several times under different event ids: redelivered, as ``message`` and ``app_mention``, from a socket
and from reading the thread. The id names the act itself, so that the inbox takes it once.
"""

import re
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from bot.channels.slack.api import Json, Me
from bot.model.answer import unescape_slack
from bot.model.event import Commanded, Inbound, Place, Pressed, Said, Unsaid
from bot.model.person import Actor, Platform
from bot.model.value import Value
from bot.model.verbs import VERBS
from bot.render.slack import APPROVE_ACTION, DENY_ACTION

_SPOKEN = frozenset({None, "thread_broadcast", "file_share", "bot_message", "me_message"})
"""Subtypes by which somebody says something; the others tell of joins, topics, pins."""


class Act(Value):
    """One thing that somebody did."""

    event_id: str
    payload: Inbound


class _Edited(BaseModel):
    ts: str = ""


class Message(BaseModel):
    """A message object, the fields that matter."""

    model_config = ConfigDict(hide_input_in_errors=True)

    ts: str
    text: str = ""
    user: str | None = None
    thread_ts: str | None = None
    subtype: str | None = None
    edited: _Edited | None = None
    bot_id: str | None = None
    app_id: str | None = None
    bot_profile: Json | None = None
    attachments: tuple[Json, ...] | None = None

    @property
    def shared(self) -> tuple[str, ...]:
        """The words of the messages that it passes on; a link's preview is none of them."""
        below = self.attachments or ()
        return tuple(str(each.get("text") or each.get("fallback") or "") for each in below if each.get("is_share"))

    @property
    def root(self) -> str:
        """The thread's first message; empty for a message that is none's reply."""
        return self.thread_ts if self.thread_ts and self.thread_ts != self.ts else ""

    @property
    def is_bots(self) -> bool:
        return bool(self.bot_id or self.app_id or self.bot_profile or self.subtype == "bot_message")

    def is_own(self, me: Me) -> bool:
        return me.user_id == self.user or me.bot_id == self.bot_id

    def actor(self) -> Actor:
        return Actor(platform=Platform.SLACK, user_id=self.user or self.bot_id or "", is_bot=self.is_bots)


def map_message(channel: str, message: Message, me: Me, *, is_watched: bool) -> Act | None:
    """A message that was written, or one found later (then perhaps edited since)."""
    if message.subtype not in _SPOKEN or message.is_own(me) or not message.actor().user_id:
        return None
    place = Place(conversation=channel, thread=message.root, message=message.ts)
    event_id = f"msg:{channel}:{message.ts}"
    mentioned = re.match(rf"\s*<@{re.escape(me.user_id)}(?:\|[^<>]*)?>[:,]?\s*", message.text)
    if mentioned and not message.is_bots and message.edited is None:
        rest = unescape_slack(message.text[mentioned.end() :]).strip()
        if not is_watched or not rest or rest.split()[0].lower() in VERBS:
            said_at = moment(message.ts)
            return Act(
                event_id=event_id,
                payload=Commanded(actor=message.actor(), place=place, text=rest, said_at=said_at),
            )
    return Act(event_id=event_id, payload=_said(message, place, message.ts, me)) if is_watched else None


def map_edit(channel: str, message: Message, before: Message | None, me: Me, *, is_watched: bool) -> Act | None:
    """A message whose author changed its words; ``before`` is None when only its present state is known.

    Slack also tells of link previews and of changes by apps in this way: the same text, or no mark of an edit.
    """
    if not is_watched or message.is_bots or message.edited is None or message.subtype not in _SPOKEN:
        return None
    if before is not None and (before.text == message.text or before.is_bots):
        return None
    edited_at = message.edited.ts or message.ts
    place = Place(conversation=channel, thread=message.root, message=message.ts)
    return Act(event_id=f"edit:{channel}:{message.ts}:{edited_at}", payload=_said(message, place, edited_at, me))


def map_deletion(channel: str, before: Message, event_ts: str, *, is_watched: bool) -> Act | None:
    """A person's message that is gone."""
    if not is_watched or before.is_bots or before.user is None:
        return None
    return Act(
        event_id=f"del:{channel}:{before.ts}",
        payload=Unsaid(
            actor=before.actor(),
            place=Place(conversation=channel, thread=before.root, message=before.ts),
            said_at=moment(event_ts),
        ),
    )


class _Id(BaseModel):
    id: str
    name: str = ""


class _Container(BaseModel):
    channel_id: str
    message_ts: str
    thread_ts: str = ""


class _Pressed(BaseModel):
    action_id: str
    action_ts: str
    value: str = ""


class Click(BaseModel):
    """A ``block_actions`` payload; who clicked is ``user``, whatever the message says."""

    model_config = ConfigDict(hide_input_in_errors=True)

    user: _Id
    container: _Container
    actions: tuple[_Pressed, ...]
    message: Message | None = None


def map_click(click: Click) -> tuple[Act, ...]:
    """Presses of a request's buttons; the value is only what Hero once sent, so it is judged by whoever handles it."""
    where, thread = click.container, click.container.thread_ts
    if not thread and click.message is not None:
        thread = click.message.root
    return tuple(
        Act(
            event_id=f"press:{where.message_ts}:{click.user.id}:{pressed.action_id}:{pressed.action_ts}",
            payload=Pressed(
                actor=Actor(platform=Platform.SLACK, user_id=click.user.id, display_name=click.user.name[:200]),
                place=Place(conversation=where.channel_id, thread=thread, message=where.message_ts),
                request=pressed.value[:50],
                is_approval=pressed.action_id == APPROVE_ACTION,
                said_at=moment(pressed.action_ts),
            ),
        )
        for pressed in click.actions
        if pressed.action_id in {APPROVE_ACTION, DENY_ACTION} and pressed.value
    )


class Command(BaseModel):
    """A slash command; its text is raw, names in it decide nothing."""

    model_config = ConfigDict(hide_input_in_errors=True)

    user_id: str
    channel_id: str
    trigger_id: str
    user_name: str = ""
    text: str = ""


def map_command(command: Command, at: datetime) -> Act:
    """``/hero …``; it carries no time of its own."""
    actor = Actor(platform=Platform.SLACK, user_id=command.user_id, display_name=command.user_name[:200])
    place = Place(conversation=command.channel_id)
    payload = Commanded(actor=actor, place=place, text=command.text.strip(), said_at=at)
    return Act(event_id=f"cmd:{command.trigger_id}", payload=payload)


def moment(ts: str) -> datetime:
    """The time in a Slack timestamp.

    Raises:
        ValueError: it is none.
    """
    return datetime.fromtimestamp(int(ts.partition(".")[0]), UTC).replace(
        microsecond=int(f"{ts.partition('.')[2]:0<6.6}")
    )


def _said(message: Message, place: Place, said_ts: str, me: Me) -> Said:
    # Hero's own mention is taken away while it still differs from typed brackets, which Slack escapes. Only before a
    # word: were a mark of a quote or of a mail's end bared, the rest would no longer count as the author's.
    own = re.compile(rf"^([ \t]*)<@{re.escape(me.user_id)}(?:\|[^<>|\n]*)?>[:,]?[ \t]*(?=[A-Za-z]|$)", re.MULTILINE)
    quoted = [f"> {line}" for words in message.shared for line in words.splitlines()]
    text = "\n".join((own.sub(r"\1", message.text), *(("", *quoted) if quoted else ())))
    return Said(
        actor=message.actor(),
        place=place,
        text=unescape_slack(text),
        said_at=moment(said_ts),
        is_edited=message.edited is not None,
        is_forwarded=bool(message.shared),
    )
