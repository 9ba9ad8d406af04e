"""What becomes of an errand that was looked into: a question to the DRI, an answer, or why there is none. Pure."""

from datetime import datetime

from bot.model.audit import AuditEntry
from bot.model.errand import Answer, CannotYet, Errand, Found, Planned
from bot.model.plan import Request
from bot.model.record import Decision, Record, Telling
from bot.model.update import UpdateKind
from bot.model.verdict import Severity
from handlers import tellings
from handlers.context import Context
from handlers.plans import deed_of


def decide_found(record: Record, errand: Errand, found: Found, context: Context, at: datetime) -> Decision:
    """Return what is asked or told, and take the errand off."""
    if errand not in record.run.errands:
        return Decision()
    run = record.run.model_copy(
        update={"errands": tuple(each for each in record.run.errands if each != errand), "last_told_at": at}
    )
    match found:
        case Planned() if why := _why_not_asked(record, found):
            cannot = CannotYet(reason=why, fix="answer or wait for that first, then ask again")
            return Decision(run=run, tell=(_cannot(context, record, errand, cannot, at),))
        case Planned():
            return _put(context, record, errand, found, at).model_copy(update={"run": run})
        case Answer():
            return Decision(run=run, tell=(_answer(context, record, errand, found, at),))
        case CannotYet():
            return Decision(run=run, tell=(_cannot(context, record, errand, found, at),))


def _why_not_asked(record: Record, found: Planned) -> str:
    if (action := record.active_action) is not None:
        return f"a {deed_of(action.plan, record, action)} of this run is under way"
    trial = record.run.trial
    if found.plan.kind == "trial" and trial is not None and not trial.is_over:
        return f"the trial of {trial.plan.child_run_id} is under way"
    same = (r for r in record.requests if r.state == "open" and r.plan.kind == found.plan.kind)
    waiting = next(same, None)
    return f"{waiting.name} asks for a {found.plan.kind} already and waits for {waiting.dri}" if waiting else ""


def _put(context: Context, record: Record, errand: Errand, found: Planned, at: datetime) -> Decision:
    request = Request(
        number=record.next_request,
        run_id=record.run_id,
        plan=found.plan,
        reason=f"{errand.by} asked for it",
        incident=None,
        dri=context.contract.dri,
        asked_at=at,
        expires_at=at + context.rules.request_expires,
    )
    detail = f"{request.name} to {request.dri}, plan {request.digest}: {request.reason}"
    audit = AuditEntry(at=at, run_id=record.run_id, who="hero", what="request_asked", detail=detail)
    told = tellings.request_asked(context, record, request, at, found.evidence)
    return Decision(requests=(request,), tell=(told,), audit=(audit,))


def _answer(context: Context, record: Record, errand: Errand, found: Answer, at: datetime) -> Telling:
    return tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=_key(errand),
        headline=found.headline,
        severity=Severity.WARNING if found.is_warning else Severity.INFO,
        evidence=found.lines,
        next_=found.next,
    )


def _cannot(context: Context, record: Record, errand: Errand, found: CannotYet, at: datetime) -> Telling:
    return tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=_key(errand),
        headline=f"no {errand.kind}: {found.reason}",
        severity=Severity.WARNING,
        evidence=found.evidence,
        next_=f"{found.fix}; nothing was changed",
    )


def _key(errand: Errand) -> str:
    return f"errand/{errand.kind}/{errand.at.isoformat()}"
