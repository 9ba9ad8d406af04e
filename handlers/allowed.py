"""Whether a relaunch that is about to be asked for was allowed in advance, and what becomes of it then. Pure.

Never for a stop of a living job, another lineage, a change of anything that shapes the launch, an open point of the
launch checklist, a code bug or a numerical failure: those are asked about, however much was allowed.
"""

from datetime import datetime

from bot.model.action import Action
from bot.model.allowance import Allowance, Use
from bot.model.audit import AuditEntry
from bot.model.crash import RelaunchAdvice
from bot.model.incident import Incident
from bot.model.plan import Request, RequestState
from bot.model.planned import RelaunchPlan
from bot.model.record import Decision, Record
from bot.model.run import RunState
from bot.model.update import UpdateKind
from bot.model.value import CheckId
from bot.model.verdict import Severity
from bot.render.words import say_time
from handlers import tellings
from handlers.context import Context
from handlers.gate import Allowed, grant_for
from handlers.plans import from_where, plan_lines

_JOB_ENDED = CheckId("job.ended")
_BY_HERO = "added by Hero: "


def why_not_allowed(  # noqa: PLR0911 - one return a reason
    allowance: Allowance | None, plan: RelaunchPlan, incident: Incident | None, context: Context, at: datetime
) -> str:
    """Say why the DRI has to be asked all the same; empty when what was allowed covers exactly this."""
    if allowance is None or not allowance.is_alive(at):
        return "nothing is allowed in advance"
    if allowance.by != context.contract.dri:
        return f"{allowance.name} is {allowance.by}'s, and the DRI is {context.contract.dri} now"
    if context.contract.approval.quorum > 1:
        return "more than one yes is needed"
    crash = incident.finding.crash if incident is not None and incident.check == _JOB_ENDED else None
    if crash is None or crash.crash_class not in allowance.kind.classes:
        return f"{allowance.name} is for {allowance.kind} alone"
    if crash.relaunch is not RelaunchAdvice.SAME_ID or crash.trajectory_affecting:
        return "it is not certain that this was no more than infrastructure"
    if plan.stop is not None:
        return "a job still lives"
    if plan.resume_from is None:
        return "it would begin at step 0"
    if plan.accepts:
        return "the launch checklist has open points"
    if any(not change.startswith(_BY_HERO) for change in plan.changes):
        return "something that shapes the launch has changed"
    return ""


def carry_out(asked: Request, allowance: Allowance, record: Record, context: Context, at: datetime) -> Decision:
    """Return the decision that the DRI's yes in advance makes of a request; it is announced at once."""
    plan = asked.plan
    if not isinstance(plan, RelaunchPlan):
        msg = f"{asked.name} is no relaunch"
        raise AssertionError(msg)  # noqa: TRY004 - a bug of ours, not a wrong argument
    after = allowance.used(Use(at=at, request=asked.number, step=record.run.progress.step))
    granted = asked.model_copy(
        update={
            "state": RequestState.GRANTED,
            "decided_by": allowance.by,
            "decided_at": at,
            "decided_via": f"in advance: {allowance.name}, {allowance.via}",
        }
    )
    grant = grant_for(Allowed(request=granted, by=allowance.by), at, context)
    action = Action(number=record.next_action, run_id=record.run_id, plan=plan, grant=grant)
    run = record.run.model_copy(
        update={
            "state": RunState.RELAUNCHING,
            "last_told_at": at,
            "allowance": after,
        }
    )
    left = f"{after.left} of {after.most} left until {say_time(after.until, context.rules.timezone)}"
    told = tellings.tell(
        context,
        record.model_copy(update={"run": run}),
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"request/{granted.number}/allowed",
        headline=f"relaunching {from_where(plan)} as {allowance.by} allowed in advance ({allowance.name})",
        severity=Severity.WARNING,
        evidence=(f"why: {granted.reason}", left if not after.ended else f"{after.name} is over: {after.ended}"),
        plan=plan_lines(plan),
        next_=f"Hero reads the world once more, carries it out and reports; `deny {granted.name}` stops it before it "
        f"begins, `/hero revoke {record.run_id}` ends {after.name}",
        asks_dri=True,
    )
    detail = f"{granted.name}, plan {granted.digest}, by {allowance.name} of {allowance.by}"
    audit = AuditEntry(at=at, run_id=record.run_id, who="hero", what="approved_in_advance", detail=detail)
    return Decision(run=run, requests=(granted,), actions=(action,), tell=(told,), audit=(audit,))
