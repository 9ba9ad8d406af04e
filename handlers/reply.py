"""Somebody said, pressed or took back something in a run's conversation. Pure."""

from datetime import datetime

from bot.model.action import Action, ActionState
from bot.model.answer import Approve, Chatter, Deny, Unclear, parse_answer
from bot.model.delivery import ChannelName
from bot.model.event import Pressed, Said, Unsaid
from bot.model.person import Actor, Standing
from bot.model.plan import Request, RequestState, Yes
from bot.model.reading import Reading
from bot.model.record import Decision, Record
from bot.model.run import RunState
from bot.model.update import UpdateKind
from handlers import tellings
from handlers.attempts import decide_chatter, decide_unclear, note
from handlers.context import Context
from handlers.gate import Allowed, Attempt, Turned, grant_for, judge_attempt, untouched_action
from handlers.plans import asks_again, deed_of, first_of
from handlers.trial.outcome import TRIAL_KINDS


def decide_said(
    record: Record, event: Said, standing: Reading[Standing] | None, context: Context, at: datetime
) -> Decision:
    """Take a message for a decision only when a line of it is exactly one."""
    answer = parse_answer(event.text)
    match answer:
        case Chatter():
            return decide_chatter(record, event, context, at)
        case Unclear(line=line):
            return decide_unclear(record, event, line, context, at)
        case Approve() | Deny():
            attempt = Attempt(
                actor=event.actor,
                standing=standing,
                place=event.place,
                request=answer.request,
                is_approval=isinstance(answer, Approve),
                note=(answer.reason or "") if isinstance(answer, Deny) else "",
                said_at=event.said_at,
                is_edited=event.is_edited,
                is_forwarded=event.is_forwarded,
            )
            return _decide(record, attempt, context, at)


def awaits_its_request(record: Record, event: Said) -> bool:
    """Whether a decision is about a request whose message is there, but not noted yet as being there.

    A crash between sending and noting leaves that for a while; the reply is looked at again once it is settled,
    rather than refused as said too early (field report R01).
    """
    answer = parse_answer(event.text)
    if not isinstance(answer, Approve | Deny):
        return False
    waiting = [r for r in record.requests if r.state is RequestState.OPEN]
    meant = [r for r in waiting if answer.request is None or r.name == answer.request.upper()]
    channel = ChannelName(event.actor.platform.value)
    return len(meant) == 1 and record.posted_at(channel, f"request:{meant[0].number}") is None


def decide_pressed(
    record: Record, event: Pressed, standing: Reading[Standing] | None, context: Context, at: datetime
) -> Decision:
    """Take a button for exactly what the same words would be."""
    attempt = Attempt(
        actor=event.actor,
        standing=standing,
        place=event.place,
        request=event.request,
        is_approval=event.is_approval,
        said_at=event.said_at,
        is_button=True,
    )
    return _decide(record, attempt, context, at)


def decide_unsaid(record: Record, event: Unsaid, context: Context, at: datetime) -> Decision:
    """Withdraw a decision whose message was deleted before anything in the world was changed (field report R45).

    One that was deleted later stands, and that is said.
    """
    via = via_of(event)
    request = decided_by_words(record, via)
    if request is None:
        return Decision()
    if request.state is RequestState.OPEN:
        left = tuple(yes for yes in request.yeses if yes.via != via)
        taken_back = note(
            record, event, "yes_withdrawn", f"{request.name}: its message was deleted", at, request=request
        )
        return Decision(requests=(request.model_copy(update={"yeses": left}),), audit=(taken_back,))
    action = untouched_action(record, request)
    if action is None:
        return _stands(record, event, request, context, at)
    why = "the approval was deleted before it was carried out"
    withdrawn = request.model_copy(update={"state": RequestState.WITHDRAWN, "note": why})
    ended = action.model_copy(update={"state": ActionState.VOID, "noted": why})
    audit = note(record, event, "approval_withdrawn", f"{request.name}: {why}", at, request=request)
    told = tellings.request_closed(context, record, withdrawn, at)
    return Decision(requests=(withdrawn,), actions=(ended,), tell=(told,), audit=(audit,))


def _stands(record: Record, event: Unsaid, request: Request, context: Context, at: datetime) -> Decision:
    """Say that a decision stands although its words are gone: whoever reads the thread later would not find them."""
    if request.state not in {RequestState.GRANTED, RequestState.DENIED}:
        return Decision()
    is_yes = request.state is RequestState.GRANTED
    detail = f"{request.name}: the message that decided it was deleted"
    told = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"request/{request.number}/words-deleted",
        headline=f"the message by which {request.name} was {'approved' if is_yes else 'denied'} was deleted; it stands",
        evidence=(f"decided by {request.decided_by}",),
        next_="what was approved is carried out or has ended already" if is_yes else asks_again(request),
    )
    audit = note(record, event, "decision_words_deleted", detail, at, request=request)
    return Decision(tell=(told,), audit=(audit,))


def via_of(event: Unsaid) -> str:
    """Return how a decision is noted that was given by the words which are taken back."""
    return _via(event.actor, event.place.key, event.place.message)


def decided_by_words(record: Record, via: str) -> Request | None:
    """Return the request that those words decided, or said yes to."""
    return next((r for r in record.requests if r.decided_via == via or _said_by(r, via)), None)


def _said_by(request: Request, via: str) -> bool:
    return any(yes.via == via for yes in request.yeses)


def _decide(record: Record, attempt: Attempt, context: Context, at: datetime) -> Decision:
    verdict = judge_attempt(record, attempt, context)
    match verdict:
        case Turned():
            return _turn_away(record, attempt, verdict, at)
        case Allowed() if attempt.is_approval:
            return _approve(record, attempt, verdict, context, at)
        case Allowed():
            return _deny(record, attempt, verdict, context, at)


def _approve(record: Record, attempt: Attempt, allowed: Allowed, context: Context, at: datetime) -> Decision:
    if record.active_action is not None:
        busy = Turned(why="busy", answer="An action of this run is under way already; nothing further was started.")
        return _turn_away(record, attempt, busy, at)
    # Whoever may not decide any more, because the part went to somebody else meanwhile, does not count any more.
    yeses = tuple(yes for yes in allowed.request.yeses if yes.by in context.contract.approvers)
    if any(yes.by == allowed.by for yes in yeses):
        twice = Turned(why="said_already", answer=f"Your yes to {allowed.request.name} counts already.")
        return _turn_away(record, attempt, twice, at)
    via = _via(attempt.actor, attempt.place.key, attempt.place.message)
    yeses = (*yeses, Yes(by=allowed.by, at=at, via=via))
    if len(yeses) < context.contract.approval.quorum:
        asked = allowed.request.model_copy(update={"yeses": yeses})
        return _approve_in_part(record, attempt, asked, context, at)
    granted = allowed.request.model_copy(
        update={
            "state": RequestState.GRANTED,
            "decided_by": allowed.by,
            "decided_at": at,
            "decided_via": via,
            "yeses": yeses,
        }
    )
    action = Action(
        number=record.next_action,
        run_id=record.run_id,
        plan=granted.plan,
        grant=grant_for(allowed, at, context),
    )
    state = RunState.RELAUNCHING if granted.plan.kind in {"relaunch", "rollback"} else record.run.state
    run = record.run.model_copy(update={"state": state, "last_told_at": at})
    after = record.model_copy(update={"run": run})
    deed = deed_of(granted.plan, record)
    progress = tellings.action_told(
        context,
        after,
        action,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key="granted",
        headline=f"{granted.name} was approved by {allowed.by}; the {deed} begins",
        evidence=(f"plan digest {granted.digest[:12]}",),
        next_=f"Hero reads the world once more and, if the plan still holds, will {first_of(granted.plan)}; it reports "
        "here",
    )
    detail = f"{granted.name}, plan {granted.digest}, by {allowed.by}, via {via}"
    audit = note(record, attempt, "approved", detail, at, request=granted)
    return Decision(
        run=run,
        requests=(granted,),
        actions=(action,),
        tell=(tellings.request_closed(context, after, granted, at), progress),
        audit=(audit,),
    )


def _approve_in_part(record: Record, attempt: Attempt, asked: Request, context: Context, at: datetime) -> Decision:
    """Note a yes that is not the last one needed."""
    yeses, newest = asked.yeses, asked.yeses[-1].by
    quorum = context.contract.approval.quorum
    others = ", ".join(sorted(context.contract.approvers - {yes.by for yes in yeses}))
    told = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"request/{asked.number}/yes/{newest}",
        headline=f"{newest} says yes to {asked.name}: {len(yeses)} of {quorum}",
        next_=f"{quorum - len(yeses)} more of {others}; nothing is changed before that",
    )
    detail = f"{asked.name}, plan {asked.digest}, by {newest}: {len(yeses)} of {quorum}"
    audit = note(record, attempt, "approved_in_part", detail, at, request=asked)
    run = record.run.model_copy(update={"last_told_at": at})
    return Decision(run=run, requests=(asked,), tell=(told,), audit=(audit,))


def _deny(record: Record, attempt: Attempt, allowed: Allowed, context: Context, at: datetime) -> Decision:
    if (action := untouched_action(record, allowed.request)) is not None:
        return _deny_after_yes(record, attempt, allowed, action, context, at=at)
    denied = allowed.request.model_copy(
        update={
            "state": RequestState.DENIED,
            "decided_by": allowed.by,
            "decided_at": at,
            "decided_via": _via(attempt.actor, attempt.place.key, attempt.place.message),
            "note": attempt.note[:500],
        }
    )
    told = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"request/{denied.number}/denied",
        headline=f"{denied.name} was denied by {allowed.by}; {_after_no(denied)}",
        evidence=(f"because: {attempt.note}",) if attempt.note else (),
        next_=_next_after_no(denied),
    )
    detail = f"{denied.name} by {allowed.by}: {attempt.note}"
    audit = note(record, attempt, "denied", detail, at, request=denied)
    run = record.run.model_copy(update={"last_told_at": at})
    return Decision(
        run=run,
        requests=(denied,),
        tell=(tellings.request_closed(context, record, denied, at), told),
        audit=(audit,),
    )


def _after_no(denied: Request) -> str:
    return "that is a no-go" if denied.plan.kind == "go" else "nothing is changed"


def _next_after_no(denied: Request) -> str:
    """Say what comes of a no; a no to a go is no wish to leave things as they are."""
    if denied.plan.kind == "go":
        return f"the old run is launched again, at once where that was agreed, else when {denied.dri} says yes to it"
    return f"Hero goes on watching; {asks_again(denied)}"


def _deny_after_yes(
    record: Record, attempt: Attempt, allowed: Allowed, action: Action, context: Context, *, at: datetime
) -> Decision:
    """Let a no beat the yes before it, since nothing was changed by that yet."""
    yes = allowed.request
    because = f": {attempt.note[:400]}" if attempt.note else ""
    why = f"{allowed.by} said no after the yes of {yes.decided_by}, before it was carried out{because}"
    # In a trial a no has a meaning of its own: a no to the go is a no-go, and a rollback is not begun by itself then.
    state = RequestState.DENIED if yes.plan.kind in TRIAL_KINDS else RequestState.WITHDRAWN
    by = allowed.by if state is RequestState.DENIED else yes.decided_by
    withdrawn = yes.model_copy(update={"state": state, "decided_by": by, "note": why})
    ended = action.model_copy(update={"state": ActionState.VOID, "noted": why})
    audit = note(record, attempt, "denied", f"{yes.name} by {allowed.by}, after its yes{because}", at, request=yes)
    run = record.run.model_copy(update={"last_told_at": at})
    told = tellings.request_closed(context, record, withdrawn, at)
    return Decision(run=run, requests=(withdrawn,), actions=(ended,), tell=(told,), audit=(audit,))


def _turn_away(record: Record, attempt: Attempt, turned: Turned, at: datetime) -> Decision:
    words = "approve" if attempt.is_approval else "deny"
    detail = f"{words} {attempt.request or ''} in {attempt.place.key} ({attempt.place.message}): {turned.why}"
    audit = note(record, attempt, "decision_refused", detail, at, why=turned.why, request=_meant(record, attempt))
    if not turned.answer:
        return Decision(audit=(audit,))
    key = f"{attempt.actor.platform}/{attempt.place.key}/{attempt.place.message}/{attempt.said_at.isoformat()}"
    told = tellings.answer(attempt.actor, attempt.place, at, key=f"turned/{key}", headline=turned.answer)
    return Decision(tell=(told,), audit=(audit,))


def _meant(record: Record, attempt: Attempt) -> Request | None:
    """Return the request that a refused attempt was about: the one it names, else the only one that waits."""
    if attempt.request is not None:
        return next((r for r in record.requests if r.name == attempt.request.upper()), None)
    waiting = [r for r in record.requests if r.state is RequestState.OPEN]
    return waiting[0] if len(waiting) == 1 else None


def _via(actor: Actor, conversation: str, message: str) -> str:
    return f"{actor.platform}:{conversation}:{message}"
