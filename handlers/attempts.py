"""What is noted of every try to decide, also of one that decides nothing: the audit log, and a hint to whoever tried.

A try is refused by ``handlers.gate``; here is what is no decision at all by its words or by its place. Pure.
"""

from datetime import datetime
from typing import Protocol

from bot.model.answer import Approve, Deny, find_hidden_decision, parse_answer, speaks_of_deciding
from bot.model.audit import AuditEntry
from bot.model.event import Place, Pressed, Said
from bot.model.person import Actor, find_people
from bot.model.plan import Request, RequestState
from bot.model.record import Decision, Record, Telling
from handlers import tellings
from handlers.context import Context
from handlers.links import link_of

_MOST_DIGITS = 9


class Act(Protocol):
    """Something that somebody did somewhere."""

    @property
    def actor(self) -> Actor: ...
    @property
    def place(self) -> Place: ...


def note(
    record: Record,
    act: Act,
    what: str,
    detail: str,
    at: datetime,
    *,
    why: str = "",
    request: Request | None = None,
) -> AuditEntry:
    """Note an attempt: who, by their immutable id, by which message, about which plan, and why it was refused."""
    return AuditEntry(
        at=at,
        run_id=record.run_id,
        who=say_who(act.actor),
        what=what,
        detail=detail,
        why=why,
        digest=request.digest if request else "",
        link=link_of(act.actor.platform, act.place, record.posted),
    )


def say_who(actor: Actor) -> str:
    """Return an account as the audit log names it: by what cannot be changed, then by what the platform calls it."""
    names = ", ".join(name for name in (actor.login, actor.association.lower()) if name)
    return f"{actor.platform}:{actor.user_id}" + (f" ({names})" if names else "")


def decide_unclear(record: Record, event: Said, line: str, context: Context, at: datetime) -> Decision:
    """Note words that speak of deciding and decide nothing; ask the DRI to say it plainly.

    What others discuss is noted and not interrupted; what is said while nothing waits is left alone.
    """
    request = record.open_request or _named_in(record, event.text)
    is_asked = request is not None and not event.actor.is_bot and _is_dri(event.actor, request, context)
    if request is None or not (is_asked or speaks_of_deciding(event.text)):
        return Decision()
    audit = note(record, event, "decision_unclear", _where(event, line), at, why="unclear", request=request)
    if not is_asked:
        return Decision(audit=(audit,))
    headline = f"That was not taken as a decision. {_how_to_say(request)}"
    return Decision(tell=(_hint(event, "unclear", headline, at),), audit=(audit,))


def decide_chatter(record: Record, event: Said, context: Context, at: datetime) -> Decision:
    """Note a decision that stands in a quote, in code or hidden in a message; tell the DRI that it does not count."""
    line = find_hidden_decision(event.text)
    request = record.open_request or _named_in(record, event.text)
    if line is None or request is None:
        return Decision()
    why = "forwarded" if event.is_forwarded else "not_own_words"
    audit = note(record, event, "decision_refused", f"{_where(event, line)}: {why}", at, why=why, request=request)
    if event.actor.is_bot or not _is_dri(event.actor, request, context):
        return Decision(audit=(audit,))
    headline = f"What is quoted, forwarded or in code decides nothing. {_how_to_say(request)}"
    return Decision(tell=(_hint(event, "hidden", headline, at),), audit=(audit,))


def decide_elsewhere(event: Said | Pressed, asked: Record | None, request: Request | None, at: datetime) -> Decision:
    """Note a decision that was given outside of any run's conversation: it decides nothing, wherever that is.

    Args:
        event: what was said or pressed.
        asked: the run whose request it names; None when it names none that there is.
        request: that request.
        at: now.
    """
    if isinstance(event, Pressed):
        words = f"{'approve' if event.is_approval else 'deny'} {event.request}"
    else:
        answer = parse_answer(event.text)
        if not isinstance(answer, Approve | Deny):
            return Decision()
        words = f"{'approve' if isinstance(answer, Approve) else 'deny'} {answer.request or ''}"
    audit = AuditEntry(
        at=at,
        run_id=asked.run_id if asked else None,
        who=say_who(event.actor),
        what="decision_refused",
        detail=f"{words} in {event.place.key} ({event.place.message}): another_place",
        why="another_place",
        digest=request.digest if request else "",
        link=link_of(event.actor.platform, event.place, asked.posted if asked else ()),
    )
    if event.actor.is_bot or asked is None or request is None:
        return Decision(audit=(audit,))
    headline = f"That decides nothing here: {request.name} is decided in the conversation of {asked.run_id}."
    return Decision(tell=(_hint(event, "elsewhere", headline, at),), audit=(audit,))


def named_number(event: Said | Pressed) -> int | None:
    """Return the number of the request that a decision names; None when it names none."""
    if isinstance(event, Pressed):
        name: str | None = event.request
    else:
        answer = parse_answer(event.text)
        name = answer.request if isinstance(answer, Approve | Deny) else None
    digits = (name or "")[1:]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None


def _named_in(record: Record, text: str) -> Request | None:
    """Return the request that a text names, decided or not."""
    words = text.upper().replace("`", " ").replace(".", " ").split()
    return next((r for r in reversed(record.requests) if r.name in words and r.state is not RequestState.OPEN), None)


def _is_dri(actor: Actor, request: Request, context: Context) -> bool:
    return [person.name for person in find_people(actor, context.people)] == [request.dri]


def _where(event: Said, line: str) -> str:
    return f"{line[:300]!r} in {event.place.key} ({event.place.message})"


def _how_to_say(request: Request) -> str:
    return (
        f"To decide, send a line that is exactly `approve {request.name}` or `deny {request.name} because …`; "
        "for other terms, deny and say which."
    )


def _hint(event: Said | Pressed, kind: str, headline: str, at: datetime) -> Telling:
    key = f"{kind}/{event.actor.platform}/{event.place.key}/{event.place.message}/{event.said_at.isoformat()}"
    return tellings.answer(event.actor, event.place, at, key=key, headline=headline)
