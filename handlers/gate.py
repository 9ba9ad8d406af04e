"""Who may decide a request: the one place where a yes becomes a grant. Pure, and the strictest function we have.

A reply, a button, a command and a GitHub comment all come through here, so that no way in has a list of its own (field
report R39).
"""

from datetime import datetime, timedelta
from typing import Literal

from bot.model.action import CHANGING, Action
from bot.model.delivery import ChannelName, Posted
from bot.model.event import Place
from bot.model.person import Actor, Person, Standing, find_people
from bot.model.plan import Grant, Request, RequestState
from bot.model.reading import Known, Reading, Unknown
from bot.model.record import Record
from bot.model.value import PersonName, Value
from handlers.context import Context
from handlers.plans import asks_again
from handlers.tellings import say_outcome

_REPLACED = timedelta(minutes=1)
"""So long after one question took another's place, a yes has to name which one it is for."""


class Attempt(Value):
    """Somebody tries to decide."""

    actor: Actor
    standing: Reading[Standing] | None
    """What the platform says of the actor now; None counts as not known."""
    place: Place
    request: str | None
    """``R7`` when it was named."""
    is_approval: bool
    note: str = ""
    said_at: datetime
    is_edited: bool = False
    is_forwarded: bool = False
    is_button: bool = False
    """A button stands on the request's own message, so it is after it by nature."""


class Allowed(Value):
    kind: Literal["allowed"] = "allowed"
    request: Request
    by: PersonName


class Turned(Value):
    """Not allowed: what to answer, and under which name it goes into the audit log."""

    kind: Literal["turned"] = "turned"
    why: str
    answer: str
    """Polite, and says what would work. Empty: no answer at all (bots)."""


def judge_attempt(record: Record, attempt: Attempt, context: Context) -> Allowed | Turned:
    """Return whether this very attempt decides a request of this run."""
    person = _who(attempt, context.people)
    if isinstance(person, Turned):
        return person
    request = _which(record, attempt, context.rules.timezone)
    if isinstance(request, Turned):
        return request
    if request.dri != context.contract.dri:
        return Turned(
            why="another_dri",
            answer=f"{request.name} was put to {request.dri}, and the DRI of {record.run_id} is {context.contract.dri} "
            "now; Hero asks anew at its next check, and nothing was changed.",
        )
    if person.name not in context.contract.approvers:
        return Turned(
            why="not_the_dri",
            answer=f"Thank you, but only {_say_approvers(context)} can decide {request.name}; nothing was changed.",
        )
    stale = _is_stale(record, attempt, request)
    return stale or Allowed(request=request, by=person.name)


def _say_approvers(context: Context) -> str:
    contract = context.contract
    deputies = sorted(contract.approvers - {contract.dri})
    others = f" or a deputy ({', '.join(deputies)})" if deputies else ""
    return f"{contract.dri} (DRI of {contract.run_id}){others}"


def _who(attempt: Attempt, people: tuple[Person, ...]) -> Person | Turned:
    if attempt.is_edited and not attempt.actor.is_bot:
        return Turned(why="edited", answer="An edited message decides nothing. Please send a new one.")
    if attempt.is_forwarded and not attempt.actor.is_bot:
        return Turned(why="forwarded", answer="A forwarded message decides nothing. Please write it yourself.")
    return judge_account(attempt.actor, attempt.standing, people)


def judge_account(actor: Actor, standing: Reading[Standing] | None, people: tuple[Person, ...]) -> Person | Turned:
    """Return the person behind the account, by immutable id and full membership; no name counts."""
    if actor.is_bot:
        return Turned(why="a_bot", answer="")
    found = find_people(actor, people)
    if len(found) != 1:
        who = "is on record for more than one person" if found else "is nobody on record"
        return Turned(
            why="two_people" if found else "nobody_on_record",
            answer=f"Thank you, but the account {actor.user_id[:40]} {who} in [people]; nothing was changed.",
        )
    return _is_outsider(standing) or found[0]


def _is_outsider(standing: Reading[Standing] | None) -> Turned | None:
    """Turn away a bot, a guest, a stranger, and whoever's membership could not be asked just now."""
    match standing:
        case Known(value=Standing(is_bot=True)):
            return Turned(why="a_bot", answer="")
        case Known(value=Standing(is_member=True)):
            return None
        case Known(value=Standing(detail=detail)):
            return Turned(
                why="no_full_member",
                answer=f"Thank you, but this account is no full member here ({detail}); nothing was changed.",
            )
        case Unknown(detail=detail):
            return _unverified(detail)
        case None:
            return _unverified("it was not asked")


def _unverified(detail: str) -> Turned:
    return Turned(
        why="membership_unknown",
        answer=f"Your membership could not be verified ({detail}), so nothing was changed. Please try again.",
    )


def _which(record: Record, attempt: Attempt, timezone: str) -> Request | Turned:
    """Return the open request that is meant; two open ones demand the id."""
    if attempt.request is None:
        waiting = [r for r in record.requests if r.state is RequestState.OPEN]
        if len(waiting) == 1:
            return _replaced_just_now(record, attempt, waiting[0]) or waiting[0]
        if waiting:
            names = ", ".join(r.name for r in waiting)
            return Turned(why="ambiguous", answer=f"More than one request waits ({names}); please name one.")
        last = next(reversed(record.requests), None)
        if last is None:
            return Turned(why="no_request", answer="No request waits here.")
        return last if _may_still_deny(record, attempt, last) else _too_late(last, timezone)
    named = next((r for r in record.requests if r.name == attempt.request.upper()), None)
    if named is None:
        return Turned(
            why="other_request",
            answer=f"{attempt.request[:20]} is no request of {record.run_id}; nothing was changed.",
        )
    is_decidable = named.state is RequestState.OPEN or _may_still_deny(record, attempt, named)
    return named if is_decidable else _too_late(named, timezone)


def _may_still_deny(record: Record, attempt: Attempt, request: Request) -> bool:
    """A no beats a yes for as long as nothing in the world was changed by it.

    A no to a rollback that was begun on the yes in advance, and was void, is a no to the next one too.
    """
    if attempt.is_approval:
        return False
    return untouched_action(record, request) is not None or _ends_standing(record, request)


def _ends_standing(record: Record, request: Request) -> bool:
    trial = record.run.trial
    is_void_rollback = request.state is RequestState.VOID and request.plan.kind == "rollback"
    return is_void_rollback and trial is not None and not trial.is_over and request.number > trial.request


def untouched_action(record: Record, request: Request) -> Action | None:
    """Return the action that a request's yes began, while none of its steps that change the world is begun."""
    action = record.active_action
    if request.state is not RequestState.GRANTED or action is None or action.grant.request != request.number:
        return None
    return None if any(action.record(step) is not None for step in CHANGING) else action


def _replaced_just_now(record: Record, attempt: Attempt, waiting: Request) -> Turned | None:
    """Turn away a yes without a number that may have been typed for the question before this one."""
    before = [r for r in record.requests if r.state is RequestState.VOID and r.number < waiting.number]
    if any(r.decided_at and attempt.said_at - r.decided_at < _REPLACED for r in before):
        return Turned(
            why="replaced",
            answer=f"{waiting.name} replaced {before[-1].name} just now; please look at it and name the one you mean.",
        )
    return None


def _too_late(request: Request, timezone: str) -> Turned:
    return Turned(
        why="already_decided",
        answer=f"{request.name} was already handled: {say_outcome(request, timezone)}. Nothing further was done.",
    )


def _is_stale(record: Record, attempt: Attempt, request: Request) -> Turned | None:
    """Refuse what was said after the request ran out, or before it was there to be read.

    The platform's own order decides where it is known, since its clock and ours differ.
    """
    if attempt.said_at >= request.expires_at and request.state is RequestState.OPEN:
        return Turned(why="expired", answer=f"{request.name} has expired; {asks_again(request)}.")
    asked = record.posted_at(ChannelName(attempt.actor.platform.value), f"request:{request.number}")
    if attempt.is_button:
        return _is_elsewhere(attempt, request, asked)
    if asked is None and not attempt.is_approval and request.state is RequestState.GRANTED:
        # Allowed in advance, it was never asked here. Who names it has read of it; a no only keeps things as they are.
        is_after = attempt.request is not None or attempt.said_at > request.asked_at
    else:
        is_after = asked is not None and _is_after(attempt.place.message, asked.message_id)
    if not is_after:
        return Turned(
            why="before_the_request",
            answer=f"That was said before {request.name} could be read here, so it decides nothing. Please repeat it.",
        )
    return None


def _is_elsewhere(attempt: Attempt, request: Request, asked: Posted | None) -> Turned | None:
    """Refuse a button on another message than the one that asks, as far as that one is known."""
    if asked is None or _last_part(asked.message_id) == _last_part(attempt.place.message):
        return None
    return Turned(
        why="another_message",
        answer=f"That button does not stand on the message by which {request.name} is asked; nothing was changed.",
    )


def _last_part(message_id: str) -> str:
    return message_id.rsplit(":", 1)[-1]


def _is_after(message: str, asked: str) -> bool:
    """Compare two messages of one platform; their ids are numbers that rise with time (Slack ts, GitHub id)."""
    try:
        return _order(message) > _order(_last_part(asked))
    except ValueError:
        return False


def _order(message_id: str) -> tuple[int, int]:
    """Split a Slack ts or a plain number; no float, since a ts has more digits than one holds."""
    whole, _, rest = message_id.partition(".")
    return int(whole), int(rest.ljust(6, "0")) if rest else 0


def grant_for(allowed: Allowed, at: datetime, context: Context) -> Grant:
    """Return the grant that a DRI's yes makes."""
    return Grant(
        request=allowed.request.number,
        run_id=allowed.request.run_id,
        digest=allowed.request.digest,
        by=allowed.by,
        at=at,
        expires_at=at + context.rules.grant_lasts,
    )
