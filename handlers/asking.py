"""Whether a relaunch is put to the DRI after a check, or a question is taken back that no longer fits. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from bot.actions.relaunch import NoPlan, differences
from bot.model.audit import AuditEntry
from bot.model.incident import Incident
from bot.model.plan import RelaunchPlan, Request, RequestState
from bot.model.reading import Known
from bot.model.record import Decision, Record
from bot.model.snapshot import Snapshot
from bot.model.update import UpdateKind
from bot.model.value import CheckId
from bot.model.verdict import Severity
from handlers import tellings
from handlers.context import Context
from handlers.observed import Seen

type MakePlan = Callable[[Snapshot, Record], RelaunchPlan | NoPlan]
"""Build the relaunch plan from a snapshot; pure."""

JOB_REPEATED = CheckId("job.repeated")


@dataclass(frozen=True)
class Look:
    """One check of one run, as far as asking is concerned; ``record`` is the picture after the check."""

    context: Context
    record: Record
    seen: Snapshot
    picture: Seen
    make_plan: MakePlan
    at: datetime


def ask(look: Look) -> Decision:
    """Put a relaunch to the DRI, or take back a question that no longer fits the world."""
    record = look.record
    if record.active_action is not None:
        return Decision()
    if record.open_request is not None:
        return _revisit(look, record.open_request)
    incident = _incident_to_ask_about(record)
    if incident is None and not record.run.relaunch_wanted_by:
        return Decision()
    plan = look.make_plan(look.seen, record)
    if isinstance(plan, NoPlan):
        return _say_why_not(look, incident, plan)
    reason = incident.finding.summary if incident else f"{record.run.relaunch_wanted_by} asked for it"
    return _put(look, plan, reason, incident, extra=_context_lines(look, incident, plan))


def _incident_to_ask_about(record: Record) -> Incident | None:
    """Return the recoverable incident that nobody was asked about yet.

    While the same failure repeats nothing is proposed: it is escalated instead (manage-hero-run, "Repeated recoverable
    failures").
    """
    alive = [i for i in record.incidents if not i.is_resolved]
    if any(i.check == JOB_REPEATED for i in alive):
        return None
    settled = {r.incident for r in record.requests if r.state is not RequestState.VOID}
    return next((i for i in alive if i.finding.is_recoverable and i.number not in settled), None)


def _put(
    look: Look,
    plan: RelaunchPlan,
    reason: str,
    incident: Incident | None,
    *,
    extra: tuple[str, ...],
    voided: Request | None = None,
) -> Decision:
    context, record, at = look.context, look.record, look.at
    request = Request(
        number=record.next_request,
        run_id=record.run_id,
        plan=plan,
        reason=reason,
        incident=incident.number if incident else (voided.incident if voided else None),
        dri=context.contract.dri,
        asked_at=at,
        expires_at=at + context.rules.request_expires,
    )
    audit = AuditEntry(
        at=at,
        run_id=record.run_id,
        who="hero",
        what="request_asked",
        detail=f"{request.name} to {request.dri}, plan {request.digest}: {reason}",
    )
    told = [tellings.request_asked(context, record, request, at, extra)]
    changed = [request]
    if voided is not None:
        told.insert(0, tellings.request_closed(context, record, voided, at))
        changed.insert(0, voided)
    return Decision(requests=tuple(changed), tell=tuple(told), audit=(audit,))


def _revisit(look: Look, request: Request) -> Decision:
    """Void an open request whose plan no longer holds, and ask anew with the difference; withdraw a needless one."""
    job = look.seen.job
    if look.picture.is_new_launch or (job is not None and job.state == "succeeded"):
        by_hand = "the job was launched again by another hand"
        note = by_hand if look.picture.is_new_launch else "the job has succeeded"
        withdrawn = request.model_copy(update={"state": RequestState.WITHDRAWN, "decided_at": look.at, "note": note})
        told = tellings.request_closed(look.context, look.record, withdrawn, look.at)
        return Decision(requests=(withdrawn,), tell=(told,))
    plan = look.make_plan(look.seen, look.record)
    if isinstance(plan, NoPlan) or plan.digest == request.digest:
        return Decision()
    changed = differences(request.plan, plan)
    note = "; ".join(changed)[:500]
    void = request.model_copy(update={"state": RequestState.VOID, "decided_at": look.at, "note": note})
    incident = next((i for i in look.record.incidents if i.number == request.incident), None)
    extra = tuple(f"new since {request.name}: {line}" for line in changed)
    return _put(look, plan, request.reason, incident, extra=extra, voided=void)


def _say_why_not(look: Look, incident: Incident | None, plan: NoPlan) -> Decision:
    """Tell once why no relaunch can be proposed; it is tried again at the next check."""
    number = incident.number if incident else 0
    telling = tellings.tell(
        look.context,
        look.record,
        look.at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"incident/{number}/no-plan/{plan.reason[:200]}",
        headline=f"Hero cannot propose a relaunch yet: {plan.reason}",
        severity=Severity.WARNING,
        next_=f"{plan.fix}; Hero looks again at the next check",
        asks_dri=not plan.is_unknown,
    )
    return Decision(tell=(telling,))


def _context_lines(look: Look, incident: Incident | None, plan: RelaunchPlan) -> tuple[str, ...]:
    """What helps to decide but is no part of the plan: what is lost, what failed before."""
    lines: list[str] = []
    step = look.record.run.progress.step
    if plan.resume_from is not None and step is not None and step >= plan.resume_from.step:
        lines.append(f"steps to be trained again: {step - plan.resume_from.step} (last seen step {step})")
    if look.record.instance is not None:
        lines.append(f"launches so far: {look.record.instance.number + 1}")
    if incident is not None:
        lines.extend(incident.finding.evidence)
    if isinstance(look.seen.checkpoints, Known):
        newest = look.seen.checkpoints.value[-3:]
        lines.extend(f"not used: {c.path}: {c.fault}" for c in newest if not c.is_complete)
    return tuple(lines)
