"""What a decision adds to the run's record, found by comparing the run before it with what it changes. Pure.

Whichever handler decides, the dispatcher passes its decision through here before it commits it: so nothing material
happens to a run without its entry, and the entry is in the same transaction (law 4).
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime

from bot.model.action import Action, ActionState, Done, Refused, StepName
from bot.model.chronicle import (
    ActionEnded,
    Asked,
    Completed,
    ContractChanged,
    Decided,
    Fact,
    Failed,
    HandedOver,
    Happening,
    Launched,
    MilestoneReached,
    Promoted,
    Recovered,
    RetentionChanged,
    Sealed,
    StepEnded,
    TrackerSeen,
    TrialMoved,
    canonical,
)
from bot.model.conduct import Stage
from bot.model.contract import Basis
from bot.model.delivery import ChannelName
from bot.model.incident import Incident
from bot.model.plan import Plan, RequestState
from bot.model.planned import RelaunchPlan, SealPlan
from bot.model.promotion import is_on_record
from bot.model.reading import Known
from bot.model.record import Decision, Record, Telling
from bot.model.run import Instance, Run, RunState
from bot.model.snapshot import Snapshot
from bot.model.tracker import TrackerState
from bot.model.trialplan import CutOverPlan, RollbackPlan
from bot.model.update import UpdateKind
from bot.model.value import RunId
from bot.model.verdict import Severity
from bot.render.words import say_command
from handlers import tellings
from handlers.context import Context, everywhere
from handlers.plans import deed_of
from handlers.promises import PEOPLE, RETENTION, changes_of, launch_facts, promise_of

RECORD_SLOT = "record"
"""The slot of the record in the body of the run's issue."""

_JOB_ENDED = "job.ended"
_SEEN_ONLY = frozenset({StepName.VERIFY, StepName.CONFIRM, StepName.STABILISE})
"""Steps that change nothing: their success is no news, their refusal is."""


def recorded(
    before: Record,
    decision: Decision,
    context: Context,
    at: datetime,
    *,
    shape: Mapping[str, str],
    seen: Snapshot | None = None,
) -> Decision:
    """Return the decision with what it adds to the record, and with the telling that keeps the issue's body current.

    Args:
        before: the run as this transaction read it.
        decision: of any handler, about this run.
        context: the run's contract and channels.
        at: when it was decided.
        shape: the contract's launch-shaping fields, secrets scrubbed.
        seen: what was read, when the decision follows from a check.
    """
    run = decision.run
    happened = [
        *_launches(before, decision, context, seen),
        *_incidents(before, decision),
        *_requests(before, decision),
        *_actions(before, decision),
        *_arrivals(before, decision),
        *_trial(before, decision),
    ]
    if seen is not None and run is not None:
        promised = promise_of(context.contract, shape)
        happened += _contract(before.run.promised, promised)
        run = run.model_copy(update={"promised": promised})
        if isinstance(seen.tracker, Known) and (tracker := _another_address(run, seen.tracker.value)) is not None:
            happened.append(TrackerSeen(url=tracker.url, id=tracker.id, name=tracker.name))
            known = {"tracker_url": tracker.url, "tracker_name": tracker.name, "tracker_digest": _sha256(tracker.url)}
            run = run.model_copy(update=known)
    elif not before.run.promised and any(isinstance(each, Launched) for each in happened):
        # Else the first look would take this launch for one from before there were records.
        run = (run or before.run).model_copy(update={"promised": promise_of(context.contract, shape)})
    if run is not None and run.promoted != before.run.promoted:
        happened.append(Promoted(reason=run.promoted))
        context = everywhere(context)
    whole = (*decision.happened, *happened)
    is_kept = ChannelName.GITHUB in context.channels and is_on_record(context.contract, run or before.run)
    told = (_keep_record(context, before, whole, at),) if whole and is_kept else ()
    return decision.model_copy(
        update={
            "run": run,
            "happened": whole,
            "beside": _child_launched(decision),
            "tell": (*decision.tell, *told),
        }
    )


def recorded_without_contract(before: Record, decision: Decision) -> Decision:
    """As ``recorded`` while the contract cannot be used: requests and actions go on record all the same."""
    happened = (*decision.happened, *_requests(before, decision), *_actions(before, decision))
    return decision.model_copy(update={"happened": happened})


def _launches(before: Record, decision: Decision, context: Context, seen: Snapshot | None) -> Iterator[Happening]:
    """A new instance; and at the first look with a record, those that were launched before there was one."""
    known = {each.number for each in before.instances}
    fresh = [each for each in decision.instances if each.run_id == before.run_id and each.number not in known]
    older = before.instances if seen is not None and not before.run.promised else ()
    for instance in (*older, *fresh):
        yield Launched(
            instance=instance.number,
            job_id=instance.job_id,
            is_by_hero=bool(instance.command),
            facts=launch_facts(
                instance,
                context.contract,
                seen if instance in fresh else None,
                code=_launched_code(decision) if instance in fresh else "",
            ),
        )


def _child_launched(decision: Decision) -> dict[RunId, tuple[Happening, ...]]:
    """The child of a trial was launched, which stands in its own record too: its own looks have not made it."""
    plans = {each.plan.launch.run_id: each.plan for each in decision.actions if isinstance(each.plan, CutOverPlan)}
    return {
        each.run_id: (
            Launched(
                instance=each.number,
                job_id=each.job_id,
                is_by_hero=True,
                facts=_child_facts(each, plans[each.run_id]),
            ),
        )
        for each in decision.instances
        if each.run_id in plans and each.submitted_at is None
    }


def _child_facts(instance: Instance, plan: CutOverPlan) -> tuple[Fact, ...]:
    stated = (
        ("command", say_command(instance.command)),
        ("source SHA", instance.source_sha or ""),
        ("output root", plan.launch.output_root),
        ("initialize from", plan.handoff.path),
        ("in the place of", plan.run_id),
    )
    return tuple(Fact(label=label, value=value, basis=Basis.STATED) for label, value in stated if value)


def _launched_code(decision: Decision) -> str:
    """Return what was checked out where the launch that this decision notes was made; empty when Hero made none."""
    plans = (each.plan.launch if isinstance(each.plan, RollbackPlan) else each.plan for each in decision.actions)
    return next((plan.code for plan in plans if isinstance(plan, RelaunchPlan)), "")


def _incidents(before: Record, decision: Decision) -> Iterator[Happening]:
    on_record = {each.number for each in before.incidents if _is_failure(each)}
    for incident in decision.incidents:
        if _is_failure(incident) and incident.number not in on_record:
            finding = incident.finding
            yield Failed(
                incident=incident.number,
                check=incident.check,
                severity=finding.severity,
                summary=finding.summary,
                step=finding.since_step,
                crash=finding.crash.crash_class if finding.crash else None,
            )
        if incident.is_resolved and incident.number in on_record:
            yield Recovered(incident=incident.number, check=incident.check)


def _is_failure(incident: Incident) -> bool:
    is_grave = incident.finding.severity is Severity.CRITICAL or incident.check == _JOB_ENDED
    return is_grave and incident.is_open and incident.is_told


def _requests(before: Record, decision: Decision) -> Iterator[Happening]:
    states = {each.number: each.state for each in before.requests}
    for request in decision.requests:
        if request.number not in states:
            yield Asked(
                request=request.number,
                plan=_named(request.plan, before),
                digest=request.digest,
                dri=request.dri,
                reason=request.reason,
            )
        if request.state is not RequestState.OPEN and request.state is not states.get(request.number):
            yield Decided(
                request=request.number,
                outcome=request.state,
                digest=request.digest,
                by=request.decided_by,
                via=request.decided_via,
                note=request.note,
            )


def _actions(before: Record, decision: Decision) -> Iterator[Happening]:
    known = {each.number: each for each in before.actions}
    for action in decision.actions:
        earlier = known.get(action.number)
        yield from _steps(earlier, action)
        if action.state is not ActionState.GRANTED and (earlier is None or earlier.state is ActionState.GRANTED):
            plan = action.plan
            launch = plan.launch if isinstance(plan, CutOverPlan | RollbackPlan) else plan
            resumed = launch.resume_from if isinstance(launch, RelaunchPlan) else None
            yield ActionEnded(
                action=action.number,
                request=action.grant.request,
                plan=_named(plan, before, action),
                outcome=action.state,
                job_id=launch.job_id if isinstance(launch, RelaunchPlan) else None,
                from_step=resumed.step if resumed else None,
                detail=action.noted,
            )
            if isinstance(plan, SealPlan) and action.state is ActionState.DONE:
                yield Sealed(
                    tag=plan.tag,
                    final_step=plan.final_step,
                    checkpoint=plan.checkpoint.path,
                    evidence=tuple(plan.message.splitlines()),
                )


def _named(plan: Plan, before: Record, action: Action | None = None) -> str:
    """Return the plan's kind; a run's first launch is not called a relaunch."""
    return "launch" if deed_of(plan, before, action) == "launch" else plan.kind


def _steps(earlier: Action | None, action: Action) -> Iterator[Happening]:
    ended = {(each.step, each.intent_at) for each in earlier.records if each.outcome} if earlier else set()
    for record in action.records:
        if (record.step, record.intent_at) in ended:
            continue
        match record.outcome:
            case Done(detail=detail) if record.step not in _SEEN_ONLY:
                yield StepEnded(action=action.number, step=record.step, outcome="done", detail=detail)
            case Refused(detail=detail):
                yield StepEnded(action=action.number, step=record.step, outcome="refused", detail=detail)
            case _:
                pass


def _arrivals(before: Record, decision: Decision) -> Iterator[Happening]:
    run = decision.run
    if run is None:
        return
    milestone = run.milestone_step
    if milestone is not None and any(each.update.kind is UpdateKind.MILESTONE for each in decision.tell):
        yield MilestoneReached(step=milestone, checkpoint_step=run.progress.checkpoint_step)
    if run.state is RunState.COMPLETED and before.run.state is not RunState.COMPLETED:
        steps = (run.progress.step, run.progress.checkpoint_step)
        newest = max((step for step in steps if step is not None), default=None)
        yield Completed(step=newest, final_step=_final_step(decision))


def _trial(before: Record, decision: Decision) -> Iterator[Happening]:
    trial = decision.run.trial if decision.run is not None else None
    if trial is None:
        return
    earlier = before.run.trial
    known = len(earlier.steps) if earlier is not None and earlier.request == trial.request else 0
    for step in trial.steps[known:]:
        why = trial.why if step.stage in {Stage.NO_GO, Stage.CLOSED} else ""
        yield TrialMoved(child_run_id=trial.plan.child_run_id, stage=step.stage, why=why)


def _final_step(decision: Decision) -> int | None:
    standings = (each.update.standing for each in decision.tell)
    return next((each.final_step for each in standings if each is not None), None)


def _contract(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Happening]:
    if not before:
        return
    others = tuple(name for name in sorted({*before, *now}) if name not in (*PEOPLE, *RETENTION))
    if changes := changes_of(before, now, RETENTION):
        yield RetentionChanged(changes=changes)
    if changes := changes_of(before, now, PEOPLE):
        yield HandedOver(changes=changes)
    if changes := changes_of(before, now, others):
        yield ContractChanged(changes=changes)


def _another_address(run: Run, tracker: TrackerState) -> TrackerState | None:
    return tracker if tracker.url and _sha256(tracker.url) != run.tracker_digest else None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _keep_record(context: Context, record: Record, happened: tuple[Happening, ...], at: datetime) -> Telling:
    """Ask for the issue's body to be brought up to date; the channel reads the record itself, as it is by then."""
    content = hashlib.sha256(canonical([each.model_dump(mode="json") for each in happened]).encode()).hexdigest()
    telling = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.LIVE_STATUS,
        key=f"record/{at.isoformat()}/{content[:12]}",
        headline="the record of this run has grown",
        slot=RECORD_SLOT,
    )
    return telling.model_copy(update={"channels": (ChannelName.GITHUB,)})
