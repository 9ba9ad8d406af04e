"""Whether a relaunch is put to the DRI after a check, or a question is taken back that no longer fits. Pure."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from bot.actions.relaunch import differences
from bot.model.audit import AuditEntry
from bot.model.conduct import Ending
from bot.model.incident import Incident
from bot.model.job import JobState
from bot.model.plan import Request, RequestState
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.reading import Known, Unknown
from bot.model.record import Decision, Record
from bot.model.run import RunState
from bot.model.snapshot import Snapshot
from bot.model.update import UpdateKind
from bot.model.value import CheckId
from bot.model.verdict import Severity
from checks.preflight.trajectory import TRAJECTORY, propose, say_proposal
from handlers import tellings
from handlers.allowed import carry_out, why_not_allowed
from handlers.context import Context
from handlers.costs import replay_line
from handlers.observed import Seen

type MakePlan = Callable[[Snapshot, Record], RelaunchPlan | NoPlan]
"""Build the relaunch plan from a snapshot; pure."""

NEVER_BLINDLY = frozenset(
    CheckId(name)
    for name in ("job.repeated", "job.duplicate", "numerics.nonfinite", "resume.mismatch", "sources.contradict")
)
"""While one of these is open nothing is proposed: it is escalated, and a relaunch is for people to ask for."""


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
    asked = record.open_relaunch
    held = record.held_by_trial
    if asked is None:
        return Decision() if held else _ask_anew(look)
    if held:
        return _take_back(look, asked, held)
    why_needless = _why_needless(look, asked)
    if not why_needless:
        return _revisit(look, asked)
    back = _take_back(look, asked, why_needless)
    others = tuple(r for r in record.requests if r.number != asked.number)
    anew = _ask_anew(replace(look, record=record.model_copy(update={"requests": (*others, *back.requests)})))
    return anew.model_copy(update={"requests": (*back.requests, *anew.requests), "tell": (*back.tell, *anew.tell)})


def _take_back(look: Look, asked: Request, why: str) -> Decision:
    withdrawn = asked.model_copy(update={"state": RequestState.WITHDRAWN, "decided_at": look.at, "note": why})
    told = tellings.request_closed(look.context, look.record, withdrawn, look.at)
    return Decision(requests=(withdrawn,), tell=(told,))


def _ask_anew(look: Look) -> Decision:
    """Put a relaunch to the DRI when something calls for it that they were not asked about yet."""
    record = look.record
    incident = incident_to_ask_about(record)
    if not record.run.relaunch_wanted_by and (incident is None or record.trial_ending is Ending.ROLLED_BACK):
        return Decision()  # a child that failed its trial is launched again only when somebody wants that
    plan = look.make_plan(look.seen, record)
    if isinstance(plan, NoPlan):
        return _say_why_not(look, incident, plan)
    reason = incident.finding.summary if incident else f"{record.run.relaunch_wanted_by} asked for it"
    return _put(look, plan, reason, incident, extra=_context_lines(look, incident, plan))


def incident_to_ask_about(record: Record) -> Incident | None:
    """Return the recoverable incident that nobody was asked about yet.

    Source: manage-hero-run, "Repeated recoverable failures" (escalate instead of blindly relaunching) and "Numerical
    instability" (do not relaunch as if it were infrastructure).
    """
    alive = [i for i in record.incidents if i.is_open]
    if any(i.check in NEVER_BLINDLY for i in alive):
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
    closed = () if voided is None else (tellings.request_closed(context, record, voided, at),)
    before = () if voided is None else (voided,)
    allowance = record.run.allowance
    if allowance is not None and not why_not_allowed(allowance, plan, incident, context, at):
        done = carry_out(request, allowance, record, context, at)
        return done.model_copy(update={"requests": (*before, *done.requests), "tell": (*closed, *done.tell)})
    audit = AuditEntry(
        at=at,
        run_id=record.run_id,
        who="hero",
        what="request_asked",
        detail=f"{request.name} to {request.dri}, plan {request.digest}: {reason}",
    )
    told = tellings.request_asked(context, record, request, at, extra)
    return Decision(requests=(*before, request), tell=(*closed, told), audit=(audit,))


def _why_needless(look: Look, request: Request) -> str:
    """Say why the reason for asking is gone; empty while it stands.

    Saying yes to such a question would stop a run that is well again. An incident that could not be judged is not over.
    """
    job = look.seen.job
    if look.picture.is_new_launch:
        return "the job was launched again by another hand"
    if job is not None and job.state is JobState.SUCCEEDED:
        return "the job has succeeded"
    blocking = next((i for i in look.record.incidents if i.check in NEVER_BLINDLY and i.is_open), None)
    if request.incident is not None and blocking is not None:
        return f"I{blocking.number} {blocking.check} is open, and while it is nothing is relaunched blindly"
    still_open = {i.number for i in look.record.incidents if i.is_open}
    if request.incident is not None and request.incident not in still_open:
        return f"what it was asked for is over: I{request.incident}"
    return ""


def _revisit(look: Look, request: Request) -> Decision:
    """Void an open request whose plan no longer holds, or that another DRI has to decide now, and ask anew."""
    plan = look.make_plan(look.seen, look.record)
    if isinstance(plan, NoPlan):
        return Decision()
    changed = differences(request.plan, plan) if isinstance(request.plan, RelaunchPlan) else ()
    if request.dri != look.context.contract.dri:
        changed = (f"DRI: {request.dri} → {look.context.contract.dri}", *changed)
    if not changed:
        return Decision()
    note = "; ".join(changed)[:500]
    void = request.model_copy(update={"state": RequestState.VOID, "decided_at": look.at, "note": note})
    incident = next((i for i in look.record.incidents if i.number == request.incident), None)
    news = tuple(f"new since {request.name}: {line}" for line in changed)
    return _put(look, plan, request.reason, incident, extra=(*news, *_context_lines(look, incident, plan)), voided=void)


def _say_why_not(look: Look, incident: Incident | None, plan: NoPlan) -> Decision:
    """Tell once why no relaunch can be proposed; it is tried again at the next check."""
    number = incident.number if incident else 0
    # What could not be read is worded anew at every look; that alone is no news.
    why = "unknown" if plan.is_unknown else hashlib.sha256(plan.reason.encode()).hexdigest()[:12]
    telling = tellings.tell(
        look.context,
        look.record,
        look.at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"incident/{number}/no-plan/{why}",
        headline=f"Hero cannot propose a relaunch yet: {plan.reason}",
        severity=Severity.WARNING,
        evidence=plan.evidence,
        next_=f"{plan.fix}; Hero looks again at the next check",
        asks_dri=not plan.is_unknown,
    )
    return Decision(tell=(telling,))


def _context_lines(look: Look, incident: Incident | None, plan: RelaunchPlan) -> tuple[str, ...]:
    """What helps to decide but is no part of the plan: what is lost, what failed before."""
    lines: list[str] = []
    lines.extend(_after_trial(look.record))
    if look.record.run.state is RunState.COMPLETED:
        lines.append("NOTE: this run is complete; a launch would only repeat or undo its end")
    if isinstance(look.seen.metrics, Unknown):
        lines.append(f"NOT KNOWN: whether the loss was finite up to the end ({look.seen.metrics.detail})")
    replay = replay_line(look.record, look.context, plan.resume_from.step if plan.resume_from else None)
    if replay is not None:
        lines.append(replay)
    if look.record.instance is not None:
        lines.append(f"launches so far: {look.record.instance.number + 1}")
    lines.extend(_which_run(look, incident, plan))
    if incident is not None:
        lines.extend(incident.finding.evidence)
    if isinstance(look.seen.checkpoints, Known):
        newest = look.seen.checkpoints.value[-3:]
        lines.extend(f"not used: {c.path}: {c.fault}" for c in newest if not c.is_complete)
    return tuple(lines)


def _after_trial(record: Record) -> tuple[str, ...]:
    """Say which other run a trial has left in the place of this one."""
    trial = record.run.trial
    if record.trial_of is not None and record.trial_ending is Ending.ROLLED_BACK:
        return (f"NOTE: this run failed its trial, and {record.trial_of} was launched again in its place",)
    if trial is not None and trial.ending is Ending.ACCEPTED:
        return (f"NOTE: {trial.plan.child_run_id} was accepted in the place of this run",)
    return ()


def _which_run(look: Look, incident: Incident | None, plan: RelaunchPlan) -> tuple[str, ...]:
    """Say under which run id it goes on, and why; not at a first launch, nor where the checklist asks that itself."""
    if look.record.instance is None or any(line.startswith(TRAJECTORY.id) for line in plan.accepts):
        return ()
    ended = incident or next((i for i in look.record.incidents if i.is_open and i.finding.crash is not None), None)
    return (say_proposal(propose(ended.finding.crash if ended else None, ())),)
