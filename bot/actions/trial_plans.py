"""The cut-over and the way back, as plans. Pure: from what was read, and from what the guards say of it.

Both hold the plan of a stop and of a launch as parts (``bot.model.trialplan``). They are built once to ask and once
more just before anything is done; what was read then must make the same plan, to the last field.
"""

from datetime import UTC, timedelta

from bot.actions.stopping import plan_stop
from bot.model.conduct import Trial
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.planned import NoPlan, PlannedCheckpoint, RelaunchPlan, StopPlan
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import GuardSays, Rehearsal
from bot.model.snapshot import Checkpoint, Snapshot, newest_complete
from bot.model.trial import Outcome
from bot.model.trialplan import CutOverPlan, PlannedFork, RollbackPlan, TrialPlan
from bot.redaction import Redactor
from bot.sources.checkpoints import absolute
from checks.kin import is_below, own_jobs, rivals

_AFTER_ITS_END = timedelta(minutes=2)
"""A checkpoint that was saved so long after the old job had ended is not that job's: its last save may finish late."""


def plan_cutover(  # noqa: PLR0911 - one return a case
    rehearsal: Rehearsal, trial: Trial, says: tuple[GuardSays, ...], redactor: Redactor
) -> CutOverPlan | NoPlan:
    """Return exactly what the cut-over would do, once every guard passes; a single one that cannot tell bars it.

    Source: deploy checklist, "Rehearse preflight and rollback" and "Execute the trial".

    Args:
        rehearsal: what was read of both runs, and of everything beside them.
        trial: as agreed.
        says: every guard's word on that rehearsal.
        redactor: a plan is made as it may be stored and shown.
    """
    barred = _barred_by_guards(says) or _barred_by_agreement(rehearsal, trial)
    if barred is not None:
        return barred
    launch, stop, limit = rehearsal.launch, plan_stop(rehearsal.contract, rehearsal.seen), _startup_limit(rehearsal)
    if isinstance(launch, NoPlan):
        return launch
    if isinstance(stop, NoPlan):
        return stop
    if isinstance(limit, NoPlan):
        return limit
    if mixed := _mixed_up(rehearsal, launch, stop):
        return mixed
    review = rehearsal.review
    if review is None:
        fix = f"let somebody independent look at the rehearsal: `/hero trial review {trial.plan.run_id}`"
        return NoPlan(reason="nobody independent has looked at the rehearsal", fix=fix, is_unknown=False)
    seconds, source = limit
    plan = CutOverPlan(
        run_id=trial.plan.run_id,
        trial=trial.plan.digest,
        fork=_with_lineage(trial, launch),
        handoff=trial.plan.handoff,
        stop=stop,
        launch=launch,
        number=_number_of(rehearsal),
        startup_limit_s=seconds,
        startup_limit_source=source,
        review=f"{review.by}, {review.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    )
    return CutOverPlan.model_validate(redactor.value(plan.model_dump(mode="json")))


def _root_of(contract: Contract) -> str:
    return absolute(contract.output_root, contract.checkout).rstrip("/")


def _number_of(rehearsal: Rehearsal) -> int:
    """Return which launch of the child it would be: the one after the newest on record."""
    before = rehearsal.child_seen.instance if rehearsal.child_seen is not None else None
    return before.number + 1 if before is not None else 0


def _with_lineage(trial: Trial, launch: RelaunchPlan) -> PlannedFork | None:
    """Return the agreed fork with what launchers hold a child against: where it starts, and from which commit."""
    fork = trial.plan.fork
    if fork is None:
        return None
    lineage = {"hero_handoff_checkpoint": trial.plan.handoff.path, "hero_launch_commit": launch.source_sha or ""}
    return fork.model_copy(update={"lineage": {key: value for key, value in lineage.items() if value}})


def _barred_by_guards(says: tuple[GuardSays, ...]) -> NoPlan | None:
    """Return why the guards bar it: those that fail before those that cannot tell; no guard at all bars it, too."""
    for outcome, what in ((Outcome.FAIL, "does not hold"), (Outcome.CANNOT_TELL, "cannot be told")):
        found = [each for each in says if each.outcome is outcome]
        if found:
            first, *others = found
            more = f" (and {len(others)} more)" if others else ""
            return NoPlan(
                reason=f"{first.guard} {what}: {first.detail}{more}",
                fix=first.fix or "mend what is named, then rehearse again",
                is_unknown=outcome is Outcome.CANNOT_TELL,
                evidence=tuple(each.line for each in others),
            )
    if not says:
        return NoPlan(reason="no guard has looked at it", fix="report it", is_unknown=True)
    return None


def _barred_by_agreement(rehearsal: Rehearsal, trial: Trial) -> NoPlan | None:
    """Return why what was rehearsed is not what was agreed; None when it is."""
    if trial.is_over:
        return NoPlan(reason="the trial is closed", fix="plan another one", is_unknown=False)
    if rehearsal.plan.digest != trial.plan.digest:
        return NoPlan(reason="another plan was rehearsed than was agreed", fix="rehearse again", is_unknown=False)
    return None


def _mixed_up(rehearsal: Rehearsal, launch: RelaunchPlan, stop: StopPlan) -> NoPlan | None:
    """Return why these two launches would be one and the same thing, or not the agreed child's; None when not."""
    child = rehearsal.plan.child_run_id
    wrong = ""
    if launch.run_id != child or launch.run_id == stop.run_id:
        wrong = f"the launch is {launch.run_id}'s, and not the agreed child's"
    elif launch.stop is not None:
        wrong = f"a job of the child is alive: {launch.stop}"
    elif launch.job_id == stop.stop:
        wrong = f"the child's command makes {launch.job_id}, which is the old run's own job"
    elif absolute(launch.output_root, launch.directory).rstrip("/") == _root_of(rehearsal.contract):
        wrong = f"the child would write where the old run does: {launch.output_root}"
    return NoPlan(reason=wrong, fix=f"mend runs/{child}.toml", is_unknown=False) if wrong else None


def _startup_limit(rehearsal: Rehearsal) -> tuple[int, str] | NoPlan:
    """Return how many seconds a start-up may take and where that is from: the watchdog's limit before the contract's.

    Source: deploy checklist, "Execute the trial" 3: the limits are those of the resolved launch configuration.
    """
    limits, stated = rehearsal.limits, rehearsal.contract.trial.startup_limit
    found: timedelta | None = None
    match limits:
        case Known(value=read) if read.startup is not None:
            found, source = read.startup, read.startup_source
        case Unknown(reason=reason, detail=detail) if reason not in {Gap.NOT_CONFIGURED, Gap.NOT_YET}:
            why = f"the start-up limit of the launched configuration is not known: {detail}"
            return NoPlan(reason=why, fix="mend the access to that configuration", is_unknown=True)
        case _:
            found, source = stated, f"[trial] startup_limit in runs/{rehearsal.contract.run_id}.toml"
    if found is None or found < timedelta(seconds=1):
        return NoPlan(
            reason="neither the launched configuration nor the contract says how long a start-up may take",
            fix=f'say it in runs/{rehearsal.contract.run_id}.toml: [trial] startup_limit = "30m"',
            is_unknown=False,
        )
    return round(found.total_seconds()), source


def plan_rollback(
    contract: Contract,
    seen: Snapshot,
    trial: Trial,
    redactor: Redactor,
    *,
    child: Reading[tuple[Job, ...]],
    launch: RelaunchPlan | NoPlan,
    unseen: str = "",
) -> RollbackPlan | NoPlan:
    """Return exactly what the way back would do: end the child's job, launch the old run where it ended.

    Where the old run's own job lives already beside the child's, the child's alone is ended.

    Source: deploy checklist, "Rehearse preflight and rollback" and "Decide".

    Args:
        contract: the old run's.
        seen: of the old run, the child's jobs taken out of its neighbours.
        trial: as agreed.
        redactor: a plan is made as it may be stored and shown.
        child: every live job of the child, whatever launched it; Known(()) when it has none.
        launch: the old run's relaunch (``bot.actions.trial_launches.old_launch``).
        unseen: why it is not certain that the child has ended, though no job of it is shown.
    """
    stop = _stop_child(trial, child)
    if isinstance(stop, NoPlan):
        return stop
    kept = _kept(contract, seen, stop)
    if isinstance(kept, NoPlan):
        return kept
    if not kept:
        if isinstance(launch, NoPlan):
            return launch
        if barred := _barred_by_checkpoint(contract, seen, trial, launch):
            return barred
    plan = RollbackPlan(
        run_id=contract.run_id,
        trial=trial.plan.digest,
        child_run_id=trial.plan.child_run_id,
        stop=stop,
        launch=None if kept or isinstance(launch, NoPlan) else launch,
        keeps=kept,
        unseen=unseen if stop is None else "",
    )
    return RollbackPlan.model_validate(redactor.value(plan.model_dump(mode="json")))


def _kept(contract: Contract, seen: Snapshot, stop: StopPlan | None) -> str | NoPlan:
    """Return the launch of the old run's own job that lives already beside the child's; empty when none does."""
    own = seen.job
    if own is None or own.state.is_terminal:
        return ""
    if stop is None:
        why = f"the old run's job {own.job_id} is alive: there is nothing to roll back"
        return NoPlan(reason=why, fix="nothing to do for it", is_unknown=False)
    live = live_jobs(seen)
    if isinstance(live, Unknown):
        why = f"whether another job of {contract.run_id} is alive is not known: {live.detail}"
        return NoPlan(reason=why, fix="mend the link to its orchestrator", is_unknown=True)
    if len(live.value) > 1:
        names = ", ".join(job.job_id for job in live.value)
        why = f"several jobs of {contract.run_id} are alive beside the child: {names}"
        return NoPlan(reason=why, fix="end all but one of them by hand", is_unknown=False)
    return own.instance_id


def _stop_child(trial: Trial, child: Reading[tuple[Job, ...]]) -> StopPlan | NoPlan | None:
    """Return how the child's job is ended; None when it is positively known to have none that lives."""
    run_id = trial.plan.child_run_id
    if isinstance(child, Unknown):
        return NoPlan(
            reason=f"whether a job of {run_id} is alive is not known: {child.detail}",
            fix="mend the link to its orchestrator; the old run is not launched beside a job that may be there",
            is_unknown=True,
        )
    match tuple(job for job in child.value if not job.state.is_terminal):
        case ():
            return None
        case (job,):
            return StopPlan(run_id=run_id, stop=job.job_id, instance=job.instance_id)
        case several:
            names = ", ".join(job.job_id for job in several)
            why = f"several jobs of {run_id} are alive: {names}"
            return NoPlan(reason=why, fix="end all but one of them by hand", is_unknown=False)


def _barred_by_checkpoint(contract: Contract, seen: Snapshot, trial: Trial, launch: RelaunchPlan) -> NoPlan | None:
    """Return why the old run would not go on where it ended: its own newest complete checkpoint, and none before N."""
    if isinstance(seen.checkpoints, Unknown):
        why = f"the checkpoints cannot be verified: {seen.checkpoints.detail}"
        return NoPlan(reason=why, fix="mend the access to the checkpoint roots", is_unknown=True)
    resume, least = launch.resume_from, trial.plan.handoff.step
    if resume is None or resume.step < least:
        found = f"the newest complete one is of step {resume.step}" if resume else "there is no complete one"
        return NoPlan(
            reason=f"the old run has lost its checkpoint of step {least}: {found}",
            fix=f"find out what became of {trial.plan.handoff.path}; where it goes on is for its DRI to say",
            is_unknown=False,
        )
    own = newest_own(seen, trial.plan)
    if own is None or (own.step, own.path) != (resume.step, resume.path):
        return NoPlan(
            reason=f"{resume.path} is not the old run's own checkpoint: {trial.plan.child_run_id} has written it",
            fix=f"move it out of the checkpoint roots of {contract.run_id}; nothing is resumed from a child's",
            is_unknown=False,
        )
    return None


def newest_own(seen: Snapshot, plan: TrialPlan) -> Checkpoint | None:
    """Return the newest complete checkpoint that the old run itself has saved; None when it has none, or is not known.

    What lies in the child's tree is the child's, and so is what appeared in the old one long after the old job's end.
    """
    if isinstance(seen.checkpoints, Unknown):
        return None
    tree, job = f"{plan.child_root.rstrip('/')}/", seen.job
    ended = job.finished_at if job is not None and job.state.is_terminal else None
    own = (
        each
        for each in seen.checkpoints.value
        if not each.path.startswith(tree)
        and (ended is None or each.saved_at is None or each.saved_at <= ended + _AFTER_ITS_END)
    )
    return newest_complete(tuple(own))


def handoff_fault(seen: Snapshot, handoff: PlannedCheckpoint) -> Reading[str]:
    """Say what is wrong with the handoff checkpoint in the old run's tree; Known("") when it is there and complete."""
    if isinstance(seen.checkpoints, Unknown):
        return seen.checkpoints
    place = handoff.path.rstrip("/")
    found = next((each for each in seen.checkpoints.value if each.path.rstrip("/") == place), None)
    fault = ""
    if found is None:
        fault = f"the handoff checkpoint {place} is gone"
    elif not found.is_complete or found.step != handoff.step:
        fault = f"the handoff checkpoint {place} is not complete: {found.fault or f'it is of step {found.step}'}"
    return Known(value=fault, at=seen.checkpoints.at)


def live_jobs(seen: Snapshot) -> Reading[tuple[Job, ...]]:
    """Return every live job of a run, of a coordinator and what is below it the coordinator alone."""
    if isinstance(seen.jobs, Unknown):
        return seen.jobs
    if isinstance(seen.neighbours, Unknown) and seen.neighbours.reason is not Gap.NOT_CONFIGURED:
        return seen.neighbours
    live = [job for job in (*own_jobs(seen), *rivals(seen)) if not job.state.is_terminal]
    tops = tuple(job for job in live if not any(is_below(job, other) for other in live))
    return Known(value=tops, at=seen.jobs.at)
