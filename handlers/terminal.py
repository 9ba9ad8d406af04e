"""What is typed at Hero's own terminal, where all runs share one conversation. Pure."""

from datetime import datetime
from typing import Literal

from bot.model.answer import Approve, Chatter, Deny, Unclear, find_hidden_decision, parse_answer
from bot.model.audit import AuditEntry
from bot.model.delivery import ChannelName
from bot.model.event import Said
from bot.model.plan import Request
from bot.model.record import Decision, Record, Telling
from bot.model.value import RunId, Value
from handlers import tellings
from handlers.attempts import say_who
from handlers.context import Context


class Meant(Value):
    """The run whose request is decided; None when there is none to decide."""

    kind: Literal["meant"] = "meant"
    run_id: RunId | None


class NotMeant(Value):
    """What to answer instead of deciding anything."""

    kind: Literal["not_meant"] = "not_meant"
    answer: str


def named_request(text: str) -> int | None:
    """Return the number of the request that a decision names; None when it names none or is no decision."""
    answer = parse_answer(text)
    if not isinstance(answer, Approve | Deny) or answer.request is None:
        return None
    return int(answer.request[1:])


def which_run(text: str, named: Request | None, waiting: tuple[Request, ...], here: RunId | None) -> Meant | NotMeant:
    """Return whose request a typed line is about.

    Args:
        text: the line.
        named: the request that it names, when there is such a one.
        waiting: every open request, of all runs.
        here: the run that was told of last.
    """
    match parse_answer(text):
        case Approve(request=str() as name) | Deny(request=str() as name):
            return Meant(run_id=named.run_id) if named else NotMeant(answer=f"{name} is no request; {_how(waiting)}")
        case Approve() | Deny() | Unclear() if len(waiting) == 1:
            return Meant(run_id=waiting[0].run_id)
        case Approve() | Deny() | Unclear() if waiting:
            return NotMeant(answer=f"More than one request waits, so please name one; {_how(waiting)}")
        case Approve() | Deny() | Unclear():
            return Meant(run_id=here) if here else NotMeant(answer=_how(waiting))
        case Chatter():
            return NotMeant(answer=_how(waiting))


def _how(waiting: tuple[Request, ...]) -> str:
    asked = ", ".join(f"{r.name} ({r.run_id})" for r in waiting)
    if not asked:
        return "Nothing waits for an answer yet; `/hero help` lists the commands."
    name = waiting[0].name
    return (
        f"waiting: {asked}. Decide with `approve {name}` or `deny {name} because …`; `/hero help` lists the commands."
    )


def say_instead(event: Said, instead: NotMeant, at: datetime) -> Decision:
    """Answer a typed line that decides nothing: at a terminal silence looks like a fault."""
    key = f"terminal/{event.place.message}/{event.said_at.isoformat()}"
    told = tellings.answer(event.actor, event.place, at, key=key, headline=instead.answer)
    is_chatter = isinstance(parse_answer(event.text), Chatter) and find_hidden_decision(event.text) is None
    if is_chatter:
        return Decision(tell=(told,))
    where = f"{event.text[:200]!r} in {event.place.key} ({event.place.message})"
    audit = AuditEntry(
        at=at,
        run_id=None,
        who=say_who(event.actor),
        what="decision_refused",
        detail=f"{where}: no_request_meant",
        why="no_request_meant",
    )
    return Decision(tell=(told,), audit=(audit,))


def remind_at_start(context: Context, record: Record, at: datetime) -> Telling | None:
    """Show a waiting request once more at the terminal after a start: the screen may be another one."""
    if record.open_request is None or ChannelName.CONSOLE not in context.channels:
        return None
    reminder = tellings.request_reminder(context, record, record.open_request, at)
    return reminder.model_copy(update={"channels": (ChannelName.CONSOLE,)})
