"""No-go: the old run is launched again, at once where the DRI said so with the plan, else on their yes. Pure."""

from bot.model.action import Action, StepName
from bot.model.conduct import Ending, Stage
from bot.model.plan import Request, RequestState
from bot.model.planned import NoPlan
from bot.model.record import Decision
from bot.model.trialplan import RollbackPlan
from bot.model.update import UpdateKind
from bot.model.verdict import Severity
from handlers import tellings
from handlers.gate import Allowed, grant_for
from handlers.plans import deed_of, plan_lines
from handlers.trial.scene import Scene
from handlers.trial.standing import why_asked


def roll_back(scene: Scene) -> Decision:
    """Carry the rollback out on the yes that came with the plan, or put it to the DRI."""
    if (active := scene.record.active_action) is not None:
        return _waits(scene, active)
    plan = scene.look.rollback
    if plan is None:
        return scene.keep(scene.trial)
    if scene.look.never_stopped:
        return _lives_again(scene) if _was_stopped(scene) else _never_stopped(scene)
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
    why = why_asked(scene.record, scene.trial, scene.context.contract, plan)
    if not why:
        return _carry_out(scene, plan)
    before = scene.asked("rollback")
    has_failed = before is not None and before.state is RequestState.GRANTED
    extra = (f"why it is asked: {why}",) if scene.trial.standing else ()
    # What was granted and came to nothing leaves the run without a job: each time it is put once more.
    return scene.put(plan, scene.trial.why or "it is a no-go", extra, anew=has_failed)


def _was_stopped(scene: Scene) -> bool:
    """Whether the job that lives may be another launch than the one the trial began with."""
    rolled = (
        each
        for each in scene.record.actions
        if isinstance(each.plan, RollbackPlan) and each.grant.request > scene.trial.request
    )
    has_launched = any(each.record(StepName.SUBMIT) is not None for each in rolled)
    return has_launched or scene.trial.reached_at(Stage.OLD_STOPPED) is not None


def _waits(scene: Scene, active: Action) -> Decision:
    """Say once that another action of the run has to end first, unless it is the rollback itself."""
    if active.plan.kind == "rollback":
        return scene.keep(scene.trial)
    deed = deed_of(active.plan, scene.record, active)
    return scene.say(
        "rollback-waits",
        f"the rollback waits for the {deed} that is under way",
        (f"R{active.grant.request}: {active.noted}",) if active.noted else (),
        "it is planned as soon as that has ended",
        about=(str(active.number),),
        severity=Severity.CRITICAL,
        asks_dri=True,
    )


def _lives_again(scene: Scene) -> Decision:
    """The old run was launched again, though no rollback came to its end: it is held against its own past all the same.

    Whatever launched it, a wrong restore must not train on unwatched.
    """
    requests, closed = scene.withdraw("rollback", "the old run lives again")
    decision = scene.move(
        Stage.ROLLED_BACK,
        f"{scene.look.never_stopped} lives again, though no rollback of it came to its end",
        (f"why it was a no-go: {scene.trial.why}",),
        "its first steps are held against its own past",
        severity=Severity.CRITICAL,
        asks_dri=True,
        rollback_wanted_by=None,
        question_wanted_by=None,
    )
    return decision.model_copy(update={"requests": requests, "tell": (*closed, *decision.tell)})


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
