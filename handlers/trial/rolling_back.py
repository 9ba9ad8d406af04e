"""No-go: the old run is launched again, at once where the DRI said so with the plan, else on their yes. Pure."""

from bot.model.action import Action
from bot.model.conduct import Ending, Stage
from bot.model.plan import Request, RequestState
from bot.model.planned import NoPlan
from bot.model.record import Decision
from bot.model.trialplan import RollbackPlan
from bot.model.update import UpdateKind
from bot.model.verdict import Severity
from handlers import tellings
from handlers.gate import Allowed, grant_for
from handlers.plans import plan_lines
from handlers.trial.scene import Scene

_MOST_BY_ITSELF = 3
"""How often the yes in advance is used for one trial: a plan that changes each time before it is carried out is one
that somebody has to look at."""


def roll_back(scene: Scene) -> Decision:
    """Carry the rollback out on the yes that came with the plan, or put it to the DRI."""
    plan = scene.look.rollback
    if scene.record.active_action is not None or plan is None:
        return scene.keep(scene.trial)
    if scene.look.never_stopped:
        return _never_stopped(scene)
    if isinstance(plan, NoPlan):
        return scene.say(
            "no-rollback",
            f"the rollback cannot be planned: {plan.reason}",
            plan.evidence,
            f"{plan.fix}; Hero looks again every minute",
            about=("unknown",) if plan.is_unknown else (plan.reason,),
            severity=Severity.CRITICAL,
            asks_dri=True,
        )
    why_not = _why_not_by_itself(scene, plan)
    if not why_not:
        return _carry_out(scene, plan)
    before = scene.asked("rollback")
    has_failed = before is not None and before.state is RequestState.GRANTED
    extra = (f"why it is asked: {why_not}",) if scene.trial.standing else ()
    # What was granted and came to nothing leaves the run without a job: each time it is put once more.
    return scene.put(plan, scene.trial.why or "it is a no-go", extra, anew=has_failed)


def _never_stopped(scene: Scene) -> Decision:
    """Close a trial whose cut-over came to nothing before the old run had ended: it trains on."""
    requests, closed = scene.withdraw("rollback", "the old run was never stopped")
    decision = scene.move(
        Stage.CLOSED,
        f"closed: {scene.look.never_stopped} was never stopped and trains on, and the child has no job",
        (f"why it was a no-go: {scene.trial.why}",),
        "nothing is to be rolled back",
        ending=Ending.ABANDONED,
    )
    return decision.model_copy(update={"requests": requests, "tell": (*closed, *decision.tell)})


def _why_not_by_itself(scene: Scene, plan: RollbackPlan) -> str:  # noqa: PLR0911 - one return a reason
    """Say why the DRI is asked although they may have said yes in advance; empty when that yes covers it."""
    standing, contract = scene.trial.standing, scene.context.contract
    if standing is None:
        return "no rollback was agreed in advance"
    if scene.trial.is_unclear:
        return "what happened could not be read, and nothing is undone on a guess"
    if standing.by != contract.dri:
        return f"the yes in advance was {standing.by}'s, and the DRI is {contract.dri} now"
    if contract.approval.quorum > 1:
        return "more than one yes is needed"
    if plan.launch.accepts:
        return "the launch checklist has open points"
    mine = [r for r in scene.record.requests if r.plan.kind == "rollback" and r.number > scene.trial.request]
    if any(r.state in {RequestState.DENIED, RequestState.EXPIRED, RequestState.OPEN} for r in mine):
        return "it was put to them already"
    if any(r.state is RequestState.GRANTED for r in mine):
        return "a rollback was carried out already and did not come to its end"
    if len(mine) >= _MOST_BY_ITSELF:
        return f"it was begun {len(mine)} times, and each time the plan had changed before it could be carried out"
    return ""


def _carry_out(scene: Scene, plan: RollbackPlan) -> Decision:
    standing = scene.trial.standing
    assert standing is not None  # noqa: S101 - asked right before
    asked = scene.request(plan, scene.trial.why or "it is a no-go")
    granted: Request = asked.model_copy(
        update={
            "state": RequestState.GRANTED,
            "decided_by": standing.by,
            "decided_at": scene.at,
            "decided_via": f"in advance: with R{scene.trial.request}, {standing.via}",
        }
    )
    grant = grant_for(Allowed(request=granted, by=standing.by), scene.at, scene.context)
    action = Action(number=scene.record.next_action, run_id=scene.record.run_id, plan=plan, grant=grant)
    run = scene.run(scene.trial.model_copy(update={"rollback_wanted_by": None}), told=True)
    told = tellings.tell(
        scene.context,
        scene.record.model_copy(update={"run": run}),
        scene.at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"request/{granted.number}/standing",
        headline=f"rolling back, as {standing.by} allowed with the plan (R{scene.trial.request})",
        severity=Severity.CRITICAL,
        evidence=(f"why: {granted.reason}",),
        plan=plan_lines(plan),
        next_=f"Hero reads the world once more, carries it out and reports; `deny {granted.name}` stops it before it "
        "begins",
        asks_dri=True,
    )
    detail = f"{granted.name}, plan {granted.digest}, with R{scene.trial.request} of {standing.by}"
    audit = scene.note("approved_in_advance", detail)
    return Decision(run=run, requests=(granted,), actions=(action,), tell=(told,), audit=(audit,))
