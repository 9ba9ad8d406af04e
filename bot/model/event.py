"""What happens: past tense, frozen, ids and never live objects. Those from outside are rows of the inbox first."""

from typing import Literal

from pydantic import AwareDatetime, Field

from bot.model.action import Action
from bot.model.person import Actor, Standing
from bot.model.preflight import PreflightReport
from bot.model.reading import Reading
from bot.model.snapshot import Snapshot
from bot.model.value import CheckId, RunId, Value
from bot.model.verdict import Judgement


class Place(Value):
    """Where on a platform something was said."""

    conversation: str
    """Slack channel id, GitHub issue number, the id of a Discord thread or channel, or ``console``."""
    thread: str = ""
    """Slack thread root; empty when it was not said in a thread."""
    message: str = ""
    """The message itself: Slack ts, GitHub comment id, Discord snowflake. Numbers that rise with time there."""

    @property
    def key(self) -> str:
        """What a run's conversation is remembered by: the ``message_id`` of its ``Posted`` with the slot ``thread``."""
        return f"{self.conversation}:{self.thread}" if self.thread else self.conversation


class Said(Value):
    """Somebody wrote a message that Hero can see: in a run's thread, on its issue, at the console."""

    kind: Literal["said"] = "said"
    actor: Actor
    place: Place
    text: str
    said_at: AwareDatetime
    is_edited: bool = False
    """The text is that of an edit, or of a message edited before it was read: it decides nothing (field report R45)."""
    is_forwarded: bool = False
    """It passes on somebody's message, which is quoted in the text: what comes with it decides nothing."""


class Unsaid(Value):
    """A message was deleted: a decision in it that has not been carried out is withdrawn."""

    kind: Literal["unsaid"] = "unsaid"
    actor: Actor
    place: Place
    said_at: AwareDatetime


class Pressed(Value):
    """A request's button was pressed."""

    kind: Literal["pressed"] = "pressed"
    actor: Actor
    place: Place
    request: str
    is_approval: bool
    said_at: AwareDatetime


class Commanded(Value):
    """``/hero …``."""

    kind: Literal["commanded"] = "commanded"
    actor: Actor
    place: Place
    text: str
    """What follows ``/hero``."""
    said_at: AwareDatetime


type Inbound = Said | Unsaid | Pressed | Commanded


class InboxEvent(Value):
    """One event from outside, with the id by which its source tells repeats."""

    number: int
    source: str
    event_id: str
    """Unique per source: a second copy is stored nowhere and handled never."""
    payload: Inbound = Field(discriminator="kind")
    received_at: AwareDatetime
    attempt: int = 0
    standing: Reading[Standing] | None = None
    """What the platform says of the actor, asked when the event is taken up; None where a decision needs none."""


class RunChecked(Value):
    """A run was due, its sources were read and its checks have judged."""

    kind: Literal["run_checked"] = "run_checked"
    run_id: RunId
    snapshot: Snapshot
    judgements: tuple[Judgement, ...]
    memories: dict[CheckId, str] = {}
    """Each check's new memory as JSON."""
    lineage: str = ""
    """How a diagnostic changes the lineage of another run, by their contracts; empty when it does not."""
    preparation: PreflightReport | None = None
    """What the launch checklist says; None when nothing calls for a launch, so that it was not read."""


class ActionMoved(Value):
    """The executor came to the end of an action, or to something that people should hear."""

    kind: Literal["action_moved"] = "action_moved"
    action: Action
    snapshot: Snapshot | None = None


class TimePassed(Value):
    """Once a minute: requests expire or are reminded, routine updates fall due, silence is noticed."""

    kind: Literal["time_passed"] = "time_passed"
