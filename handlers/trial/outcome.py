"""An action of a trial moved: the stage that is reached with it, and what people are told.

Pure; runs in the executor's transaction, so that a stage and the step that brought it are committed together.
"""

from dataclasses import dataclass
from datetime import datetime

from bot.model.action import Action, ActionState, Done, Refused, StepName
from bot.model.conduct import Stage, Standing, Step, Trial
from bot.model.record import Record, Telling
from bot.model.run import Instance, Run, RunState
from bot.model.trialplan import CutOverPlan, GoPlan, RollbackPlan, TrialPlan
from bot.model.update import UpdateKind
from bot.model.value import JobId
from bot.model.verdict import Severity
from handlers import tellings
from handlers.context import Context
from handlers.plans import asks_again, deed_of
from handlers.trial.before_cut_over import agreed
from handlers.trial.standing import why_not_standing

TRIAL_KINDS = frozenset({"trial", "cutover", "go", "rollback"})
"""The kinds of plan that belong to a trial."""

_STAGES = {
    StepName.FORK: Stage.FORKED,
    StepName.STOP: Stage.OLD_STOPPED,
    StepName.CONFIRM: Stage.LAUNCHED,
    StepName.RESTORE: Stage.RUNNING,
}
"""What a cut-over's step brings the trial to."""

type News = tuple[Run | None, tuple[Telling, ...]]
"""The run after this commit when something about it has changed, and what people are told."""


def trial_news(record: Record, before: Action | None, action: Action, context: Context, at: datetime) -> News:
    """Return what becomes of the run and of its trial, and what people are told."""
    move = _Move(record, before, action, context, at)
    match action.plan:
        case TrialPlan() as plan:
            return _agreement(move, plan) if move.has_ended else _doubt(move)
        case CutOverPlan():
            return _cut_over(move)
        case GoPlan():
            return _go(move) if move.has_ended else _doubt(move)
        case RollbackPlan():
            return _rollback(move)
        case _:
            msg = f"action {action.number} is a {action.plan.kind} and no trial's"
            raise AssertionError(msg)


@dataclass(frozen=True)
class _Move:
    """One commit of one action."""

    record: Record
    before: Action | None
    """As it was."""
    action: Action
    """As it will be committed."""
    context: Context
    at: datetime

    @property
    def has_ended(self) -> bool:
        was = self.before.state if self.before else ActionState.GRANTED
        return self.action.state is not ActionState.GRANTED and was is ActionState.GRANTED

    @property
    def is_done(self) -> bool:
        return self.action.state is ActionState.DONE

    @property
    def is_void(self) -> bool:
        return self.action.state is ActionState.VOID

    def newly_done(self) -> list[tuple[StepName, Done]]:
        """Return the steps that this commit notes as done, in their order."""
        earlier = self.before.records if self.before else ()
        known = {each.step for each in earlier if isinstance(each.outcome, Done)}
        done = [(each.step, each.outcome) for each in self.action.records if isinstance(each.outcome, Done)]
        return [(step, outcome) for step, outcome in done if step not in known]

    def done_before(self) -> tuple[str, ...]:
        """Name every step that was done, for what people are told of an end."""
        return tuple(f"{r.step}: {r.outcome.detail}" for r in self.action.records if isinstance(r.outcome, Done))

    @property
    def is_unclear(self) -> bool:
        """Whether it ended because something could not be read to the last."""
        last = next((each.outcome for each in reversed(self.action.records) if isinstance(each.outcome, Refused)), None)
        return isinstance(last, Refused) and last.is_unknown

    def refused_step(self) -> str:
        failed = (each.step for each in reversed(self.action.records) if isinstance(each.outcome, Refused))
        return str(next(failed, "?"))

    def run(self, **changes: object) -> Run:
        """Return the run as it is after this commit; people hear of it."""
        return self.record.run.model_copy(update={"last_told_at": self.at, **changes})

    def tell(
        self,
        run: Run,
        key: str,
        headline: str,
        evidence: tuple[str, ...] = (),
        next_: str = "",
        *,
        severity: Severity = Severity.INFO,
        kind: UpdateKind = UpdateKind.ACTION_PROGRESS,
    ) -> Telling:
        return tellings.action_told(
            self.context,
            self.record.model_copy(update={"run": run}),
            self.action,
            self.at,
            kind=kind,
            key=key,
            headline=headline,
            severity=severity,
            evidence=evidence,
            next_=next_,
            asks_dri=severity is not Severity.INFO,
        )


def child_instances(before: Action | None, action: Action, at: datetime) -> tuple[Instance, ...]:
    """Return the child's instance once a cut-over has submitted it, and once its submission time is known.

    Without it a child whose orchestrator is told no job's name beforehand would be nobody's to watch.
    """
    plan = action.plan
    if not isinstance(plan, CutOverPlan):
        return ()
    known = {each.step for each in before.records if isinstance(each.outcome, Done)} if before else set()
    made = {each.step: each for each in action.records if isinstance(each.outcome, Done)}
    fresh = made.keys() - known
    submitted = made.get(StepName.SUBMIT)
    if submitted is None or submitted.outcome is None or not fresh & {StepName.SUBMIT, StepName.CONFIRM}:
        return ()
    confirmed = made.get(StepName.CONFIRM)
    return (
        Instance(
            run_id=plan.launch.run_id,
            number=plan.number,
            job_id=JobId(submitted.outcome.detail),
            submitted_at=_submitted_at(confirmed.outcome.detail) if confirmed and confirmed.outcome else None,
            launched_at=submitted.outcome_at or at,
            command=plan.launch.command,
            source_sha=plan.launch.source_sha,
            config_digest=plan.launch.config_digest,
            from_step=plan.handoff.step,
            replaces=plan.launch.instance,
        ),
    )


def _submitted_at(said: str) -> datetime | None:
    try:
        return datetime.fromisoformat(said.rpartition("@")[2])
    except ValueError:
        return None


def _agreement(move: _Move, plan: TrialPlan) -> News:
    """The DRI has said yes to the plan, and it still held: from here on there is a trial."""
    before = move.record.run.trial
    if not move.is_done or (before is not None and not before.is_over):
        return _not_done(move, f"the trial of {before.plan.child_run_id} is under way" if before else "")
    grant = move.action.grant
    request = next((r for r in move.record.requests if r.number == grant.request), None)
    via = request.decided_via if request else ""
    trial = Trial(
        plan=plan,
        request=grant.request,
        agreed_by=grant.by,
        agreed_at=grant.at,
        steps=(Step(stage=Stage.PLANNED, at=move.at),),
        standing=Standing(by=grant.by, at=grant.at, via=via) if plan.automatic_rollback else None,
    )
    run = move.run(trial=trial)
    told = move.tell(
        run,
        "done",
        f"trial of {plan.child_run_id}: agreed by {grant.by}",
        (*agreed(trial), f"plan {grant.digest[:12]}"),
        "Hero looks at the launch record now; nothing is changed before the cut-over is approved",
    )
    return run, (told,)


def _cut_over(move: _Move) -> News:
    trial = move.record.run.trial
    if trial is None:
        return None, ()
    run: Run | None = None
    told: list[Telling] = []
    for step, outcome in move.newly_done():
        if (stage := _STAGES.get(step)) is None:
            continue
        changes = {"child_instance": outcome.detail.rpartition(" ")[2]} if step is StepName.CONFIRM else {}
        trial = trial.reached(stage, move.at, **changes)
        state = RunState.STOPPED if stage is Stage.OLD_STOPPED else move.record.run.state
        run = move.run(trial=trial, state=state)
        if stage is not Stage.FORKED or trial.plan.fork is not None:
            told.append(_step_told(move, run, trial, outcome.detail))
    if move.has_ended and not move.is_done:
        run, failed = _cut_over_failed(move, trial)
        told.append(failed)
    return (run, tuple(told)) if run is not None else _doubt(move)


_STEP_WORDS = {
    Stage.FORKED: ("the tracker's history is forked", "the old job is stopped next"),
    Stage.OLD_STOPPED: ("the old run is stopped (kill)", "the child is launched next; until it trains nothing does"),
    Stage.LAUNCHED: (
        "the child is launched",
        "restore, compilation and prefetch come first; Hero waits for its first step",
    ),
    Stage.RUNNING: ("the child trains (first steps)", "the gates are looked at from now on"),
}


def _step_told(move: _Move, run: Run, trial: Trial, detail: str) -> Telling:
    headline, next_ = _STEP_WORDS[trial.stage]
    if trial.stage is Stage.OLD_STOPPED and not move.action.tries.get(StepName.STOP):
        headline = "the old run had ended by itself, before it was told to stop"
    return move.tell(
        run,
        trial.stage.value,
        f"trial of {trial.plan.child_run_id}: {headline}",
        (detail,),
        next_,
        kind=UpdateKind.LAUNCHED if trial.stage is Stage.LAUNCHED else UpdateKind.ACTION_PROGRESS,
    )


def _cut_over_failed(move: _Move, trial: Trial) -> tuple[Run, Telling]:
    """Before the old run was told to stop nothing is lost; after it the old run is launched again."""
    child, noted = trial.plan.child_run_id, move.action.noted
    if trial.stage.is_before_the_stop and not move.action.tries.get(StepName.STOP):
        run = move.run(trial=trial.model_copy(update={"rollback_wanted_by": None}))
        again = f"the old run goes on; `/hero trial cutover {move.record.run_id}` asks again once it is mended"
        told = move.tell(
            run,
            "void" if move.is_void else "failed",
            f"trial of {child}: R{move.action.grant.request} was approved, but nothing was cut over: {noted}",
            move.done_before(),
            "Hero looks again and asks anew with the difference" if move.is_void else again,
            severity=Severity.WARNING,
        )
        return run, told
    why = f"the cut-over stopped at `{move.refused_step()}`: {noted}"
    after = trial.reached(Stage.NO_GO, move.at, why=why[:2000], told={}, is_unclear=move.is_unclear)
    run = move.run(trial=after, state=RunState.UNKNOWN)
    told = move.tell(
        run,
        "failed",
        f"trial of {child}: NO-GO: {why}",
        move.done_before(),
        after_no_go(after, move.context),
        severity=Severity.CRITICAL,
        kind=UpdateKind.FAILED,
    )
    return run, told


def after_no_go(trial: Trial, context: Context) -> str:
    """Say what comes of a no-go."""
    if trial.standing is not None and not why_not_standing(trial, context.contract):
        return f"Hero rolls back now, as {trial.standing.by} allowed with the plan, unless it meets something else"
    return f"the rollback is put to {context.contract.dri} next; nothing is changed before that"


def _go(move: _Move) -> News:
    trial = move.record.run.trial
    if not move.is_done or trial is None:
        return _not_done(move)
    if trial.stage is not Stage.RUNNING or trial.rollback_wanted_by is not None:
        return _not_done(move, f"it is a no-go: {trial.why or f'{trial.rollback_wanted_by} asked for the rollback'}")
    run = move.run(trial=trial.reached(Stage.GO, move.at))
    told = move.tell(
        run,
        "done",
        f"trial of {trial.plan.child_run_id}: go, by {move.action.grant.by}",
        (f"plan {move.action.grant.digest[:12]}",),
        "the child stays as it is; the comparison is published and the trial closed",
    )
    return run, (told,)


def _rollback(move: _Move) -> News:
    trial = move.record.run.trial
    if trial is None:
        return None, ()
    if move.has_ended:
        return _rolled_back(move, trial) if move.is_done else _rollback_failed(move)
    run: Run | None = None
    told: list[Telling] = []
    for step, outcome in move.newly_done():
        if step not in {StepName.STOP, StepName.SUBMIT}:
            continue
        run = move.run(state=RunState.RELAUNCHING)
        is_stop = step is StepName.STOP
        launches = isinstance(move.action.plan, RollbackPlan) and move.action.plan.launch is not None
        again = f"{move.record.run_id} {'is launched again' if launches else 'lives already and is not launched'}"
        what = "the child is stopped (kill)" if is_stop else again
        headline = f"trial of {trial.plan.child_run_id}: rolling back, {what}"
        next_ = "the old run is launched next" if is_stop else "Hero waits until it trains"
        told.append(move.tell(run, str(step), headline, (outcome.detail,), next_))
    return (run, tuple(told)) if run is not None else _doubt(move)


def _rolled_back(move: _Move, trial: Trial) -> News:
    restored = move.action.record(StepName.RESTORE)
    detail = restored.outcome.detail if restored and restored.outcome else "not known"
    after = trial.reached(Stage.ROLLED_BACK, move.at, rollback_wanted_by=None, question_wanted_by=None, told={})
    run = move.run(trial=after, state=RunState.RUNNING)
    told = move.tell(
        run,
        "done",
        f"trial of {trial.plan.child_run_id}: rolled back, {move.record.run_id} trains again",
        (f"restore: {detail}", f"approved by {move.action.grant.by}, plan {move.action.grant.digest[:12]}"),
        "its first replayed steps are held against its own past",
        kind=UpdateKind.RELAUNCHED,
    )
    return run, (told,)


def _rollback_failed(move: _Move) -> News:
    run = move.run(state=RunState.UNKNOWN)
    stopped = f"stopped at `{move.refused_step()}`: {move.action.noted}"
    told = move.tell(
        run,
        "void" if move.is_void else "failed",
        f"the rollback {f'was not begun: {move.action.noted}' if move.is_void else stopped}",
        move.done_before(),
        "Hero looks at both runs now and plans it anew",
        severity=Severity.CRITICAL,
        kind=UpdateKind.FAILED,
    )
    return run, (told,)


def _not_done(move: _Move, why: str = "") -> News:
    """Tell that what was approved did not hold; nothing in the world was touched."""
    run = move.run()
    asked = next((r for r in move.record.requests if r.number == move.action.grant.request), None)
    again = f"; {asks_again(asked)}" if asked else ""
    deed = deed_of(move.action.plan, move.record, move.action)
    told = move.tell(
        run,
        "failed",
        f"R{move.action.grant.request} was approved, but the {deed} does not hold: {why or move.action.noted}",
        (),
        f"nothing was changed{again}",
        severity=Severity.WARNING,
    )
    return run, (told,)


def _doubt(move: _Move) -> News:
    """Tell that it is not known how a step went, or that something it waits for has changed."""
    before, action = move.before, move.action
    if before is None or action.noted == before.noted or action.records != before.records:
        return None, ()
    step = action.next_step
    deed = deed_of(action.plan, move.record, action)
    run = move.run()
    told = move.tell(
        run,
        tellings.doubt_key(step),
        f"it is not known whether the step `{step}` of the {deed} happened",
        (action.noted,),
        "Hero asks until it knows, and does not do the step a second time on a guess",
        severity=Severity.WARNING,
    )
    return run, (told,)
