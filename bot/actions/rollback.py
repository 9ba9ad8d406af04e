"""The way back from a trial: end the child's job, launch the old run where it ended. Never another fork.

``RollbackPlanner`` reads and plans it, to ask and once more before anything is done; ``RollbackSteps`` carries it out.

Source: deploy checklist, "Rehearse preflight and rollback" and "Decide" (docs/procedures.md).
"""

from typing import assert_never

from bot.actions.both_runs import (
    BothRuns,
    Side,
    changed_since_launch,
    launches_of,
    unasked,
    unseen_words,
    was_never_launched,
)
from bot.actions.parts import as_part, launch_barred
from bot.actions.ports import Checklist, Fence
from bot.actions.steps import Steps
from bot.actions.stopping import stop_whole
from bot.actions.trial_changes import say_changes
from bot.actions.trial_launches import old_launch, without_jobs_of
from bot.actions.trial_plans import live_jobs, plan_rollback
from bot.clock import Clock
from bot.contracts import BadContract
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.conduct import Trial
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.reading import Known, Reading, Unknown
from bot.model.record import Record
from bot.model.trialplan import CutOverPlan, RollbackPlan
from bot.model.value import JobId
from bot.redaction import Redactor

_NOT_LAUNCHED = "the old run is not launched, and nothing trains in its place"


class RollbackPlanner:
    """Reads both runs, and plans the way back from what they show."""

    def __init__(self, *, runs: BothRuns, checklist: Checklist, redactor: Redactor) -> None:
        """Take the parts.

        Args:
            runs: reads both runs.
            checklist: judges the old run's launch.
            redactor: plans are made as they may be stored and shown.
        """
        self._runs = runs
        self._checklist = checklist
        self._redactor = redactor

    async def plan(self, contract: Contract, record: Record | None) -> RollbackPlan | NoPlan:
        """Return exactly what rolling the run's trial back would do now, or why it can't be done.

        Args:
            contract: the old run's.
            record: what is remembered of the old run, with its trial.

        Raises:
            StoreError: the database refused.
        """
        trial = record.run.trial if record else None
        if record is None or trial is None or trial.is_over:
            fix = f"look at `/hero trial {contract.run_id}`"
            return NoPlan(reason="the run has no trial that is under way", fix=fix, is_unknown=False)
        child = await self._child(trial, record)
        if isinstance(child, NoPlan):
            return child
        unseen = await self._unseen(trial, record, child) if child is not None else ""
        if isinstance(unseen, NoPlan):
            return unseen
        return await self._plan(contract, trial, child, unseen)

    async def _child(self, trial: Trial, record: Record) -> Side | NoPlan | None:
        """Read the child, or say why that can't be done; None when its contract is gone and it was never launched."""
        run_id = trial.plan.child_run_id
        contract = self._runs.contract(run_id)
        if isinstance(contract, Contract):
            return await self._runs.child(contract, record)
        if was_never_launched(run_id, record, await self._runs.record(run_id)):
            return None
        problem = "; ".join(contract.problems)
        why = f"whether a job of the child is alive cannot be asked: {problem}"
        return NoPlan(reason=why, fix=f"mend runs/{run_id}.toml", is_unknown=True)

    async def _unseen(self, trial: Trial, record: Record, child: Side) -> str | NoPlan:
        """Say that a child that was launched is not shown, though nobody saw it end; empty when its end is known."""
        job_id = _launched_job(trial, record)
        launcher = self._runs.launcher(child.contract)
        if isinstance(live_jobs(child.seen), Unknown):
            return ""  # then there is no plan, and that says why
        if job_id is None or launcher is None or _was_seen_to_end(job_id, record, child.record):
            return ""
        jobs = await launcher.jobs(child.contract, job_id)
        if isinstance(jobs, Unknown):
            why = f"whether {job_id} lives cannot be asked: {jobs.detail}"
            return NoPlan(reason=why, fix="mend the link to its orchestrator", is_unknown=True)
        return "" if jobs.value else unseen_words(job_id)

    async def _plan(self, contract: Contract, trial: Trial, child: Side | None, unseen: str) -> RollbackPlan | NoPlan:
        old = await self._runs.old(contract)
        launcher = self._runs.launcher(contract)
        if launcher is None:
            return NoPlan(reason=unasked(contract).detail, fix="configure it again", is_unknown=True)
        beside = child.seen if child is not None else None
        given = without_jobs_of(old.seen, beside) if beside is not None else old.seen
        report = await self._checklist.judge(contract, old.record, given)
        launch = old_launch(contract, old.seen, old.instance, launcher, self._redactor, report=report, child=beside)
        live: Reading[tuple[Job, ...]] = Known(value=(), at=old.seen.at)
        return plan_rollback(
            contract,
            given,
            trial,
            self._redactor,
            child=live_jobs(beside) if beside is not None else live,
            launch=launch,
            unseen=unseen,
        )


def _launched_job(trial: Trial, record: Record) -> JobId | None:
    """Return the job as which the child was launched last, or may have been; None when it never was."""
    made = launches_of(trial.plan.child_run_id, record)
    if trial.child_instance:
        return JobId(trial.child_instance.rpartition("@")[0])
    # A try that ended by itself, and that the orchestrator knew nothing of, has come to nothing.
    return made[-1].relaunch.job_id if made and not _has_failed(made[-1]) else None


def _has_failed(action: Action) -> bool:
    submitted = action.record(StepName.SUBMIT)
    return bool(action.submit_failure) and submitted is not None and isinstance(submitted.outcome, Refused)


def _was_seen_to_end(job_id: JobId, record: Record, child: Record | None) -> bool:
    """Whether the end of the child's newest launch is on record: by its own checks, the cut-over, or a rollback."""
    made = [a for a in record.actions if isinstance(a.plan, CutOverPlan) and a.plan.launch.job_id == job_id]
    begun = made[-1].record(StepName.SUBMIT) if made else None
    for each in child.instances if child else ():
        since = begun.intent_at if begun else each.launched_at
        if each.job_id == job_id and each.ended_at is not None and each.ended_at >= since:
            return True
    if made and any(isinstance(each.outcome, Refused) and each.outcome.has_ended for each in made[-1].records):
        return True
    return any(
        isinstance(action.plan, RollbackPlan)
        and action.plan.stop is not None
        and action.plan.stop.stop == job_id
        and (not made or action.number > made[-1].number)
        and (stopped := action.record(StepName.STOP)) is not None
        and stopped.is_done
        for action in record.actions
    )


class RollbackSteps:
    """The steps of a rollback, over every kind of orchestrator."""

    def __init__(
        self, *, steps: Steps, runs: BothRuns, planner: RollbackPlanner, clock: Clock, redactor: Redactor
    ) -> None:
        """Take the parts.

        Args:
            steps: those of a relaunch, which launch the old run.
            runs: reads both runs.
            planner: plans the rollback once more.
            clock: for times.
            redactor: plans are rebuilt scrubbed, as they were asked.
        """
        self._steps = steps
        self._runs = runs
        self._planner = planner
        self._clock = clock
        self._redactor = redactor

    async def take(
        self, step: StepName, action: Action, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        """Do one step, or look once at what it waits for; ``contract`` is the old run's."""
        plan = action.plan
        if not isinstance(plan, RollbackPlan):
            msg = f"action {action.number} is no rollback"
            raise AssertionError(msg)  # noqa: TRY004 - a bug of ours, not a wrong argument
        match step:
            case StepName.VERIFY:
                return await self._verify(action, plan, contract)
            case StepName.STOP:
                return await self._stop(action, plan, fence)
            case StepName.SUBMIT:
                return await self._submit(action, plan, contract, is_resumed=is_resumed, fence=fence)
            case StepName.CONFIRM | StepName.STABILISE | StepName.RESTORE:
                return await self._watch(step, action, plan, contract, fence)
            case StepName.DELETE | StepName.TAG | StepName.FORK:
                msg = f"a rollback has no step {step}"
                raise AssertionError(msg)
            case _:
                assert_never(step)

    async def _verify(self, action: Action, plan: RollbackPlan, contract: Contract) -> StepOutcome:
        """Plan it anew from the world as it is now; any difference voids the grant, and it is asked again (law 2)."""
        if not action.grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is no longer valid: it has expired or is for another plan")
        match await self._planner.plan(contract, await self._runs.record(action.run_id)):
            case NoPlan(is_unknown=True, reason=reason):
                return Waiting(detail=reason, is_unknown=True)
            case NoPlan(reason=reason):
                return Refused(detail=f"{reason}; nothing was stopped", asks_anew=True)
            case RollbackPlan() as rebuilt if rebuilt.digest != plan.digest:
                changed = say_changes(plan, rebuilt)
                return Refused(detail=f"what would be done has changed since it was asked: {changed}", asks_anew=True)
            case RollbackPlan():
                return Done(detail="the world is as it was when the plan was asked")

    async def _child(self, action: Action, plan: RollbackPlan) -> Contract | Waiting | None:
        """Return the child's contract as it was launched; None when it is gone and the child was never launched."""
        child, record = self._runs.contract(plan.child_run_id), await self._runs.record(action.run_id)
        if isinstance(child, BadContract):
            beside = await self._runs.record(plan.child_run_id)
            if plan.stop is None and was_never_launched(plan.child_run_id, record, beside):
                return None
            return Waiting(detail="; ".join(child.problems), is_unknown=True)
        changed = changed_since_launch(child, record)
        return Waiting(detail=changed, is_unknown=True) if changed else child

    async def _stop(self, action: Action, plan: RollbackPlan, fence: Fence) -> StepOutcome:
        """End the child's job and see all of it gone; where it had none, see once more that it has none."""
        child = await self._child(action, plan)
        if child is None:
            return Done(detail="no job of the child was ever submitted")
        if isinstance(child, Waiting):
            return child
        launcher = self._runs.launcher(child)
        if launcher is None:
            return unasked(child)
        if plan.stop is None:
            lives = await self._child_lives(action, child)
            return lives or Done(detail="no job of the child is alive")
        shown = await launcher.jobs(child, plan.stop.stop)
        if isinstance(shown, Known) and not shown.value:
            return Refused(detail=unseen_words(plan.stop.stop), asks_anew=True)
        grant = action.grant.for_part(plan, plan.stop)
        return await stop_whole(launcher, child, plan.stop, grant, fence, reader=self._runs.reader, clock=self._clock)

    async def _child_lives(self, action: Action, child: Contract) -> Waiting | Refused | None:
        """Return that a job of the child lives, or may; None when it is positively known to have none."""
        side = await self._runs.child(child, await self._runs.record(action.run_id))
        live = live_jobs(side.seen)
        if isinstance(live, Unknown):
            return Waiting(detail=f"whether a job of the child is alive is not known: {live.detail}", is_unknown=True)
        if live.value:
            return Refused(detail=f"a job of the child is alive: {live.value[0].instance_id}", asks_anew=True)
        return None

    async def _submit(
        self, action: Action, plan: RollbackPlan, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        """Launch the old run exactly once, and only when the child is seen to have ended, all of it."""
        launch = plan.launch
        if launch is None:
            return Done(detail=_say_kept(plan))

        async def barred() -> StepOutcome | None:
            return await self._barred(action, plan, launch, contract)

        view = as_part(action, launch, cursor=action.metrics_cursor)
        outcome = await self._steps.take(
            StepName.SUBMIT, view, contract, is_resumed=is_resumed, fence=fence, barred=barred
        )
        if isinstance(outcome, Refused):
            return outcome.model_copy(update={"detail": f"{outcome.detail}; {_NOT_LAUNCHED}"})
        return outcome

    async def _barred(
        self, action: Action, plan: RollbackPlan, launch: RelaunchPlan, contract: Contract
    ) -> StepOutcome | None:
        """Return why the old run may not be launched as approved, by both runs as they are now; None when it may."""
        child = await self._child(action, plan)
        if isinstance(child, Waiting):
            return child
        if child is not None and (lives := await self._lives(action, plan, child)) is not None:
            return lives
        launcher = self._runs.launcher(contract)
        if launcher is None:
            return unasked(contract)
        old = await self._runs.old(contract)
        rebuilt = old_launch(contract, old.seen, old.instance, launcher, self._redactor, report=None, child=None)
        return launch_barred(launch, rebuilt, "nothing was launched", asks_anew=True)

    async def _lives(self, action: Action, plan: RollbackPlan, child: Contract) -> Waiting | Refused | None:
        """Return that the child which was to end lives, or that another job of it does; None when none does."""
        if plan.stop is not None and (lives := await self._runs.another_lives(child, plan.stop.stop)) is not None:
            return lives
        return await self._child_lives(action, child)

    async def _watch(
        self, step: StepName, action: Action, plan: RollbackPlan, contract: Contract, fence: Fence
    ) -> StepOutcome:
        """Watch the old run begin again, and that nothing of the child does."""
        child = await self._child(action, plan)
        if isinstance(child, Waiting):
            return child
        job_id = plan.launch.job_id if plan.launch else JobId(plan.keeps.rpartition("@")[0])
        if child is not None:
            lives = (
                await self._child_lives(action, child)
                if plan.stop is None
                else await self._runs.another_lives(child, plan.stop.stop, beside=job_id)
            )
            if lives is not None:
                return lives
        if plan.launch is None:
            return await self._kept(plan, contract) if step is StepName.CONFIRM else Done(detail=_say_kept(plan))
        view = as_part(action, plan.launch, cursor=action.metrics_cursor)
        return await self._steps.take(step, view, contract, is_resumed=True, fence=fence)

    async def _kept(self, plan: RollbackPlan, contract: Contract) -> StepOutcome:
        """See that the job of the old run that was left as it is lives on, and no other one of that run."""
        old = (await self._runs.old(contract)).seen
        live = live_jobs(old)
        if isinstance(live, Unknown):
            return Waiting(detail=f"whether {plan.keeps} lives is not known: {live.detail}", is_unknown=True)
        match [job.instance_id for job in live.value]:
            case [instance] if instance == plan.keeps:
                return Done(detail=f"exactly one live job: {plan.keeps}")
            case []:
                ended = f"{plan.keeps} does not live any more; {_NOT_LAUNCHED}"
                return Refused(detail=ended, asks_anew=True)
            case names:
                why = f"other jobs of {contract.run_id} live than {plan.keeps}: {', '.join(names)}"
                return Refused(detail=why, asks_anew=True)


def _say_kept(plan: RollbackPlan) -> str:
    return f"the old run's job {plan.keeps} lives already; it is not launched"
