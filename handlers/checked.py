"""A run was checked: what has changed, who is told, and whether a relaunch is put to the DRI. Pure, no I/O.

The main loop ends here: ``app.py`` → ``scheduler.py`` → ``watcher.py`` → ``checks/`` → this file → the outbox.
"""

import hashlib
from datetime import datetime

from bot.model.action import Action, ActionState, StepName
from bot.model.conduct import Stage
from bot.model.curve import CURVE, Curve, read_curve
from bot.model.durations import say_duration
from bot.model.event import RunChecked
from bot.model.incident import Incident, News
from bot.model.plan import Request
from bot.model.planned import NoPlan, RelaunchPlan, StopPlan
from bot.model.reading import Known
from bot.model.record import Decision, Record, Telling
from bot.model.run import Run, RunState
from bot.model.snapshot import Snapshot
from bot.model.trialplan import CutOverPlan, RollbackPlan
from bot.model.update import UpdateKind
from bot.model.value import CheckId
from bot.model.verdict import Judgement, Severity
from bot.render.words import say_time
from handlers import tellings
from handlers.asking import Look, MakePlan, ask
from handlers.context import Context
from handlers.explained import verdict_changes
from handlers.news import Changes, changes_after
from handlers.observed import Seen, is_launching, observe

JOB_ENDED = CheckId("job.ended")
_LAUNCHING = frozenset({Stage.OLD_STOPPED, Stage.LAUNCHED, Stage.RUNNING})
"""The stages of a trial in which a launch of its child is what Hero itself has made; the executor sees to it that there
is no other."""
_STORM = 4
"""From so many new findings at one check on, they are told as one."""


def decide_checked(
    record: Record, event: RunChecked, context: Context, *, make_plan: MakePlan, shape: dict[str, str]
) -> Decision:
    """Return everything that one check of one run changes."""
    at = event.snapshot.at
    picture = observe(record, event.snapshot, context, shape, event.judgements)
    curve = _curve(record, event.snapshot)
    picture = picture.model_copy(update={"run": _with_usual(picture.run, curve)})
    after = _with(record, picture).model_copy(update={"memories": {**record.memories, CURVE: curve.model_dump_json()}})
    judgements = tuple(each for each in event.judgements if not _is_own_stop(record, event.snapshot, each))
    changes = changes_after(after, judgements, at)
    after = after.model_copy(update={"incidents": changes.incidents})
    look = Look(context, after, event.snapshot, picture, make_plan, at)
    told = [*_greet(context, after, picture, at), *_warn_in_time(look), *_tell_incidents(context, after, changes, at)]
    told.extend(_tell_arrival(context, record, after, at))
    milestone, milestone_told = _milestone(context, record, after, at)
    told.extend(milestone_told)
    asking = ask(look)
    told.extend(asking.tell)
    run = (asking.run or after.run).model_copy(
        update={
            "milestone_step": milestone,
            "relaunch_wanted_by": "" if asking.requests else after.run.relaunch_wanted_by,
            "last_told_at": at if told else record.run.last_told_at or at,
        }
    )
    after = after.model_copy(update={"run": run, "requests": _merge_requests(after.requests, asking.requests)})
    told.append(tellings.live_status(context, after, at))
    return Decision(
        run=run,
        instances=picture.instances,
        incidents=tuple(c.incident for c in changes.changes if c.incident not in record.incidents),
        verdicts=verdict_changes(record, event, changes),
        requests=asking.requests,
        actions=asking.actions,
        memories={**event.memories, CURVE: curve.model_dump_json()} if curve.rows else event.memories,
        tell=tuple(told),
        audit=asking.audit,
    )


def _curve(record: Record, seen: Snapshot) -> Curve:
    """Return the series that is kept for the run's picture, with what this look has brought."""
    rows = seen.metrics.value.rows if isinstance(seen.metrics, Known) else ()
    return read_curve(record.memories.get(CURVE)).followed_by(rows)


def _with_usual(run: Run, curve: Curve) -> Run:
    usual = curve.usual_tokens_per_second
    return run.model_copy(update={"progress": run.progress.model_copy(update={"usual_tokens_per_second": usual})})


def _is_own_stop(record: Record, seen: Snapshot, judgement: Judgement) -> bool:
    """Whether the end that a check found is what Hero itself was told to do: that is told as the action goes on."""
    if judgement.check != JOB_ENDED or seen.job is None:
        return False
    return any(_ends(action, seen.job.instance_id) for action in (*record.actions, *record.rollbacks))


def _ends(action: Action, instance: str) -> bool:
    """Whether an action under way, or a stop that was carried out, has ended that very launch."""
    if action.record(StepName.STOP) is None:
        return False
    match action.plan:
        case RelaunchPlan() as plan:
            return action.state is ActionState.GRANTED and plan.stop is not None and plan.instance == instance
        case StopPlan() as plan:
            return action.state in {ActionState.GRANTED, ActionState.DONE} and plan.instance == instance
        case CutOverPlan(stop=stop) | RollbackPlan(stop=StopPlan() as stop):
            # Also when the launch after it failed: the job was ended on purpose all the same.
            return action.state is not ActionState.VOID and stop.instance == instance
        case _:
            return False


def _with(record: Record, picture: Seen) -> Record:
    kept = tuple(i for i in record.instances if i.number not in {n.number for n in picture.instances})
    return record.model_copy(update={"run": picture.run, "instances": (*kept, *picture.instances)})


def _merge_requests(before: tuple[Request, ...], changed: tuple[Request, ...]) -> tuple[Request, ...]:
    by_number = {request.number: request for request in (*before, *changed)}
    return tuple(by_number[number] for number in sorted(by_number))


def _tell_incidents(context: Context, record: Record, changes: Changes, at: datetime) -> list[Telling]:
    """Tell what is new; many findings that open at once are one message, but a failure always stands by itself."""
    told: list[Telling] = []
    opened: list[Incident] = []
    for change in changes.changes:
        incident = change.incident
        match change.news:
            case News.OPENED if incident.check == JOB_ENDED and incident.finding.severity is Severity.CRITICAL:
                told.append(tellings.incident_opened(context, record, incident, at, is_failure=True))
            case News.OPENED:
                opened.append(incident)
            case News.WORSE:
                told.append(tellings.incident_worse(context, record, incident, at))
            case News.SILENCE_ENDED:
                told.append(tellings.silence_ended(context, record, incident, at))
            case News.RESOLVED:
                told.append(tellings.incident_resolved(context, record, incident, at))
            case _:
                pass
    if len(opened) >= _STORM:
        told.append(tellings.storm(context, record, tuple(opened), at))
    else:
        told.extend(tellings.incident_opened(context, record, i, at, is_failure=False) for i in opened)
    return told


def _greet(context: Context, record: Record, picture: Seen, at: datetime) -> list[Telling]:
    """Tell of a run that is watched from now on, or of a launch that Hero did not make."""
    instance = record.instance
    if instance is None or not (picture.is_first_sight or picture.is_new_launch):
        return []
    if picture.is_first_sight:
        return [
            tellings.tell(
                context,
                record,
                at,
                kind=UpdateKind.WATCHING,
                key="watching",
                headline=f"Hero watches this run from now on, every {say_duration(context.cadence)}",
                evidence=(f"job {instance.job_id}", f"output root {context.contract.output_root}"),
                next_=f"failures and requests come here; the DRI is {context.contract.dri}",
            )
        ]
    if record.trial_of is not None and record.trial_stage in _LAUNCHING:
        headline, severity = f"launched by the cut-over of {record.trial_of}: {instance.job_id}", Severity.INFO
    else:
        headline, severity = f"a new launch appeared that Hero did not make: {instance.job_id}", Severity.WARNING
    return [
        tellings.tell(
            context,
            record,
            at,
            kind=UpdateKind.LAUNCHED,
            key=f"launched/{instance.number}",
            headline=headline,
            severity=severity,
            evidence=(f"launch number {instance.number}, submitted {_time(context, instance.submitted_at)}",),
            next_="Hero watches it as this run's current instance",
        )
    ]


def _warn_in_time(look: Look) -> list[Telling]:
    """Say at first sight, and not at the first failure at night, that a run could not be relaunched as it stands."""
    if not (look.picture.is_first_sight or look.picture.is_new_launch):
        return []
    plan = look.make_plan(look.seen, look.record)
    if not isinstance(plan, NoPlan) or plan.is_unknown:
        return []
    return [
        tellings.tell(
            look.context,
            look.record,
            look.at,
            kind=UpdateKind.INCIDENT_OPENED,
            key=f"unlaunchable/{hashlib.sha256(plan.reason.encode()).hexdigest()[:12]}",
            headline=f"as it stands Hero could not relaunch this run: {plan.reason}",
            severity=Severity.WARNING,
            next_=plan.fix,
            asks_dri=True,
        )
    ]


def _time(context: Context, at: datetime | None) -> str:
    return say_time(at, context.rules.timezone) if at else "at an unknown time"


def _reached(record: Record) -> tuple[str, ...]:
    """How far the run has got, by its metrics and by its checkpoints."""
    step, saved = record.run.progress.step, record.run.progress.checkpoint_step
    return (
        f"last logged step: {'unknown' if step is None else step}",
        f"newest complete checkpoint: {'none seen' if saved is None else f'step {saved}'}",
    )


def _tell_arrival(context: Context, before: Record, after: Record, at: datetime) -> list[Telling]:
    """Tell that the run has completed."""
    if after.run.state is not RunState.COMPLETED or before.run.state is RunState.COMPLETED:
        return []
    final = context.contract.ending_at(after.run.progress.final_step).final_step
    seal = f"; `/hero seal {after.run_id}` looks whether all is there, and asks" if context.rules.can_seal else ""
    return [
        tellings.tell(
            context,
            after,
            at,
            kind=UpdateKind.COMPLETED,
            key=f"completed/{after.instance.number if after.instance else 0}",
            headline=f"complete: the job succeeded and the final step {final} was seen",
            evidence=_reached(after),
            next_=f"verify the final artifacts{seal}",
        )
    ]


def _share(context: Context, step: int, record: Record) -> str:
    """`` (40 %)``; nothing where the final step is not known."""
    final = context.contract.ending_at(record.run.progress.final_step).final_step
    return f" ({100 * step / final:.0f} %)" if final else ""


def _after_milestone(context: Context, step: int, record: Record) -> str:
    """Say at which step the next milestone is, as the contract sets them."""
    plan = context.contract.milestones
    final = context.contract.ending_at(record.run.progress.final_step).final_step
    coming = [s for s in plan.steps if s > step]
    if plan.every:
        coming.append(step + plan.every)
    following = min(coming, default=None)
    if following is None or (final is not None and following > final):
        return "nothing to do; no further milestone is set"
    return f"nothing to do; the next milestone is step {following}"


def _milestone(context: Context, before: Record, after: Record, at: datetime) -> tuple[int | None, tuple[Telling, ...]]:
    """Tell the newest milestone that was passed since the last look.

    Those passed before the first look are history, unless it was Hero that launched the run: it has seen all of it.
    """
    step, told = after.run.progress.step, before.run.milestone_step
    if told is None and after.instance is not None and after.instance.command:
        told = after.instance.from_step or 0
    if step is None or (told is None and is_launching(after)):
        return told, ()
    plan = context.contract.milestones
    passed = [s for s in plan.steps if s <= step]
    if plan.every:
        passed.append(step // plan.every * plan.every)
    newest = max(passed, default=0)
    if told is None or newest <= told:
        return max(newest, told or 0), ()
    telling = tellings.tell(
        context,
        after,
        at,
        kind=UpdateKind.MILESTONE,
        key=f"milestone/{newest}",
        headline=f"step {newest} is reached{_share(context, newest, after)}",
        evidence=_reached(after),
        next_=_after_milestone(context, newest, after),
    )
    return newest, (telling,)
