"""An action moved: what becomes of the run, and what people are told. Pure; runs in the executor's transaction."""

from datetime import datetime

from bot.model.action import Action, ActionState, Done, Refused, StepName, StepRecord
from bot.model.audit import AuditEntry
from bot.model.plan import Request, RequestState
from bot.model.record import Decision, Record, Telling
from bot.model.run import Instance, Run, RunState
from bot.model.trialplan import RollbackPlan
from bot.model.update import UpdateKind
from bot.model.value import JobId
from bot.model.verdict import Severity
from bot.render.words import say_command
from handlers import tellings
from handlers.context import Context
from handlers.costs import downtime_line
from handlers.deeds import deed_news
from handlers.plans import deed_of, from_where
from handlers.trial.outcome import TRIAL_KINDS, child_instances, trial_news


def decide_outcome(
    record: Record, action: Action, context: Context, at: datetime, *, shape: dict[str, str]
) -> Decision:
    """Return everything that follows from an action as it stands now.

    Args:
        record: the run before this commit, the action in it as it was.
        action: as it will be committed.
        context: the run's contract and rules.
        at: now.
        shape: the contract's launch-shaping fields, scrubbed, to remember with the new instance.
    """
    before = next((a for a in record.actions if a.number == action.number), None)
    instances = _instances(record, before, action, at, shape)
    own = tuple(each for each in instances if each.run_id == record.run_id)
    latest = record.model_copy(update={"instances": (*record.instances, *own)}) if own else record
    news = _NEWS.get(action.plan.kind, deed_news)
    run, told = news(latest, before, action, context, at)
    return Decision(
        run=run,
        instances=instances,
        requests=voided_request(record, action),
        actions=(action,),
        tell=told,
        audit=_audit(before, action, at),
    )


def _newly_done(before: Action | None, action: Action, step: StepName) -> StepRecord | None:
    """Return a step's record when this commit is the one that notes it as done."""
    record = action.record(step)
    if record is None or not record.is_done:
        return None
    earlier = before.record(step) if before else None
    return None if earlier is not None and earlier.is_done else record


def _instances(
    record: Record, before: Action | None, action: Action, at: datetime, shape: dict[str, str]
) -> tuple[Instance, ...]:
    """Return the new instance once the job is submitted, and its submission time once the orchestrator has said it."""
    if action.plan.kind not in {"relaunch", "rollback"}:
        return child_instances(before, action, at)
    if isinstance(action.plan, RollbackPlan) and action.plan.launch is None:
        return ()  # the job that lives already was launched by another hand, and is found as any such
    submitted = _newly_done(before, action, StepName.SUBMIT)
    if submitted is not None and submitted.outcome is not None:
        plan = action.relaunch
        planned = plan.resume_from
        return (
            Instance(
                run_id=record.run_id,
                number=record.instance.number + 1 if record.instance else 0,
                job_id=JobId(submitted.outcome.detail),
                submitted_at=None,
                launched_at=at,
                command=plan.command,
                source_sha=plan.source_sha,
                config_digest=plan.config_digest,
                shape=shape,
                from_step=planned.step if planned else 0,
                replaces=plan.instance,
            ),
        )
    confirmed = _newly_done(before, action, StepName.CONFIRM)
    if confirmed is not None and confirmed.outcome is not None and record.instance is not None:
        _, _, said_at = confirmed.outcome.detail.rpartition("@")
        try:
            moment = datetime.fromisoformat(said_at)
        except ValueError:
            return ()
        return (record.instance.model_copy(update={"submitted_at": moment}),)
    return ()


def _news(
    record: Record, before: Action | None, action: Action, context: Context, at: datetime
) -> tuple[Run | None, tuple[Telling, ...]]:
    """Return the run after this commit when people are told something, and what they are told."""
    was = before.state if before else None
    submitted = _newly_done(before, action, StepName.SUBMIT)
    state: RunState
    if action.state is ActionState.DONE and was is not ActionState.DONE:
        state, tell = (RunState.UNKNOWN if _has_succeeded(action) else RunState.RUNNING), _relaunched
    elif action.state is ActionState.VOID and was is not ActionState.VOID:
        state, tell = (RunState.UNKNOWN if action.relaunch.stop else RunState.FAILED), _void
    elif action.state is ActionState.FAILED and was is not ActionState.FAILED:
        state, tell = (RunState.UNKNOWN if _may_live(action) else RunState.FAILED), _failed
    elif action.state is ActionState.GRANTED and submitted is not None:
        state, tell = RunState.RELAUNCHING, _submitted
    elif action.state is ActionState.GRANTED and _is_newly_uncertain(before, action):
        state = RunState.RELAUNCHING
        tell = _uncertain if action.next_step is StepName.SUBMIT else _unseen
    else:
        return None, ()
    run = record.run.model_copy(update={"state": state, "last_told_at": at})
    asked = next((r for r in record.requests if r.number == action.grant.request), None)
    is_void = action.state is ActionState.VOID and asked is not None and asked.incident is None
    if asked is not None and (is_void or _asks_anew(action)):
        # No incident calls for it, a person did, or the job is stopped: only this makes the next check ask afresh.
        run = run.model_copy(update={"relaunch_wanted_by": asked.dri})
    return run, (tell(record.model_copy(update={"run": run}), action, context, at),)


def _has_succeeded(action: Action) -> bool:
    """Whether the new job is over already, and ended well: whether the run is complete only the next check tells."""
    outcomes = (record.outcome for step in (StepName.STABILISE, StepName.RESTORE) if (record := action.record(step)))
    return any(isinstance(outcome, Done) and outcome.has_succeeded for outcome in outcomes)


def _asks_anew(action: Action) -> bool:
    """Whether it failed between the stop and the submission, because the plan no longer held."""
    return any(isinstance(each.outcome, Refused) and each.outcome.asks_anew for each in action.records)


def _may_live(action: Action) -> bool:
    """Whether a job of the run may be alive although the action has failed: only the next check can tell."""
    return action.relaunch.stop is not None or action.record(StepName.SUBMIT) is not None


def _is_newly_uncertain(before: Action | None, action: Action) -> bool:
    """Whether a step's fate became unknown with this commit; a step that ended notes its outcome the same way."""
    return before is not None and action.noted != before.noted and action.records == before.records


def _relaunched(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    restore = action.record(StepName.RESTORE)
    submitted = action.record(StepName.SUBMIT)
    is_first = deed_of(action.plan, record, action) == "launch"
    begun = f"{'launched' if is_first else 'relaunched'} {from_where(action.relaunch)}"
    is_over = _has_succeeded(action)
    trains = f"{begun} and training{'' if is_first else ' again'}"
    watches = "Hero watches it" if is_first else "Hero watches it as before"
    if restore and isinstance(restore.outcome, Done) and restore.outcome.step is not None:
        progress = record.run.progress.model_copy(update={"step": restore.outcome.step})
        record = record.model_copy(update={"run": record.run.model_copy(update={"progress": progress})})
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.LAUNCHED if is_first else UpdateKind.RELAUNCHED,
        key="done",
        headline=f"{begun}, and its job has already succeeded" if is_over else trains,
        evidence=(
            f"job {_detail(submitted)}",
            f"restore: {_detail(restore)}",
            _detail(action.record(StepName.CONFIRM)),
            *((idle,) if (idle := downtime_line(record, context, at)) else ()),
            f"approved by {action.grant.by}, plan {action.grant.digest[:12]}",
        ),
        next_="the next check looks whether the run is complete" if is_over else watches,
    )


def _submitted(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.LAUNCHED,
        key="submitted",
        headline=f"submitted {_detail(action.record(StepName.SUBMIT))}",
        evidence=(f"command: {say_command(action.relaunch.command)}",),
        next_=(
            "Hero confirms that exactly one job lives, that it survives its first minutes, loads the planned "
            "checkpoint and trains"
        ),
    )


def _uncertain(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    step = action.next_step
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=tellings.doubt_key(step),
        headline=f"it is not known whether the step `{step}` happened",
        severity=Severity.WARNING,
        evidence=(action.noted,),
        next_="Hero asks the orchestrator until it answers, and does not do the step a second time on a guess",
    )


def _unseen(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    """A command that printed the planned id may have submitted nothing, or somewhere else."""
    step, job = action.next_step, _detail(action.record(StepName.SUBMIT))
    is_first = step is StepName.CONFIRM
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=tellings.doubt_key(step),
        headline=f"the orchestrator does not show the submitted {job} {'yet' if is_first else 'any more'}",
        severity=Severity.WARNING,
        evidence=(action.noted, f"the submit command ended well and printed {job}"),
        next_=(
            "Hero goes on looking, says what comes of it, and submits nothing a second time; meanwhile see whether the "
            "submit command really submits, and to this cluster"
        ),
    )


def _void(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key="void",
        headline=f"R{action.grant.request} was approved, but nothing was done",
        severity=Severity.WARNING,
        evidence=(action.noted,),
        next_="Hero checks the run now and asks afresh if a relaunch is still called for",
        asks_dri=True,
    )


def _failed(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    failed = next((r for r in action.records if isinstance(r.outcome, Refused)), None)
    submitted = action.record(StepName.SUBMIT)
    then = f"Hero does nothing further; `/hero relaunch {record.run_id}` asks again once it is mended"
    if _asks_anew(action):
        then = "Hero checks the run now and asks afresh"
    if failed is not None and isinstance(failed.outcome, Refused) and failed.outcome.has_ended:
        left = f"{_detail(submitted)} has ended, so there is nothing to stop"
    elif failed is not None and isinstance(failed.outcome, Refused) and failed.outcome.is_unseen:
        left = (
            f"the orchestrator shows no job of this launch; see whether the submit command really submits "
            f"{_detail(submitted)}, and to this cluster, before anybody launches it again"
        )
    elif submitted is not None and submitted.is_done:
        left = f"{_detail(submitted)} may still run: look at it, and stop it by hand if it must not train"
    elif action.relaunch.stop is not None and not _is_stopped(action):
        left = f"{action.relaunch.stop} may still run"
    else:
        left = "no job of the run was submitted"
    done = tuple(f"{r.step}: {_detail(r)}" for r in action.records if r.is_done)
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.FAILED,
        key="failed",
        headline=f"the {deed_of(action.plan, record, action)} stopped at "
        f"`{failed.step if failed else '?'}`: {action.noted}",
        severity=Severity.CRITICAL,
        evidence=tuple(f"done before: {line}" for line in done),
        next_=f"{left}; {then}",
        asks_dri=True,
    )


def _is_stopped(action: Action) -> bool:
    stopped = action.record(StepName.STOP)
    return stopped is not None and stopped.is_done


def _detail(record: StepRecord | None) -> str:
    return record.outcome.detail if record is not None and isinstance(record.outcome, Done) else "not known"


def voided_request(record: Record, action: Action) -> tuple[Request, ...]:
    """A request whose action was voided is void too, so that the next check asks afresh with the difference."""
    if action.state is not ActionState.VOID:
        return ()
    granted = next((r for r in record.requests if r.number == action.grant.request), None)
    if granted is None or granted.state is not RequestState.GRANTED:
        return ()
    return (granted.model_copy(update={"state": RequestState.VOID, "note": action.noted[:500]}),)


def _audit(before: Action | None, action: Action, at: datetime) -> tuple[AuditEntry, ...]:
    """One entry for each intent and outcome that this commit adds, and for the action's end."""
    known = set(before.records) if before else set()
    entries = [
        AuditEntry(
            at=at,
            run_id=action.run_id,
            who="hero",
            what="step_ended" if record.outcome else "step_begun",
            detail=f"action {action.number} {record.step}: {record.outcome.detail if record.outcome else 'intent'}",
        )
        for record in action.records
        if record not in known
    ]
    if action.state is not ActionState.GRANTED and (before is None or before.state is ActionState.GRANTED):
        detail = f"action {action.number} {action.state}: {action.noted}"
        entries.append(AuditEntry(at=at, run_id=action.run_id, who="hero", what="action_ended", detail=detail))
    return tuple(entries)


_NEWS = {"relaunch": _news, **dict.fromkeys(TRIAL_KINDS, trial_news)}
"""By the plan's kind; what launches nothing is told by ``deeds``."""
