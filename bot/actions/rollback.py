"""The way back from a trial: end the child's job, launch the old run where it ended. Never another fork.

``RollbackPlanner`` reads and plans it, to ask and once more before anything is done; ``RollbackSteps`` carries it out.

Source: deploy checklist, "Rehearse preflight and rollback" and "Decide" (docs/procedures.md).
"""

from typing import assert_never

from bot.actions.both_runs import BothRuns, Side, unasked
from bot.actions.parts import as_part, launch_barred
from bot.actions.ports import Checklist, Fence
from bot.actions.steps import Steps
from bot.actions.stopping import stop_whole
from bot.actions.trial_launches import old_launch, without_jobs_of
from bot.actions.trial_plans import live_jobs, plan_rollback, say_changes
from bot.clock import Clock
from bot.contracts import BadContract
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.conduct import Trial
from bot.model.contract import Contract
from bot.model.planned import NoPlan
from bot.model.reading import Unknown
from bot.model.record import Record
from bot.model.trialplan import RollbackPlan
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
        if trial is None or trial.is_over:
            fix = f"look at `/hero trial {contract.run_id}`"
            return NoPlan(reason="the run has no trial that is under way", fix=fix, is_unknown=False)
        child = await self.child(trial, record)
        if isinstance(child, NoPlan):
            return child
        return await self._plan(contract, trial, child)

    async def child(self, trial: Trial, record: Record | None) -> Side | NoPlan:
        """Read the child, or say why that can't be done."""
        contract = self._runs.contract(trial.plan.child_run_id)
        if isinstance(contract, BadContract):
            problem = "; ".join(contract.problems)
            why = f"whether a job of the child is alive cannot be asked: {problem}"
            return NoPlan(reason=why, fix=f"mend runs/{trial.plan.child_run_id}.toml", is_unknown=True)
        return await self._runs.child(contract, record)

    async def _plan(self, contract: Contract, trial: Trial, child: Side) -> RollbackPlan | NoPlan:
        old = await self._runs.old(contract)
        launcher = self._runs.launcher(contract)
        if launcher is None:
            return NoPlan(reason=unasked(contract).detail, fix="configure it again", is_unknown=True)
        report = await self._checklist.judge(contract, old.record, without_jobs_of(old.seen, child.seen))
        launch = old_launch(contract, old.seen, old.instance, launcher, self._redactor, report=report, child=child.seen)
        return plan_rollback(contract, old.seen, trial, self._redactor, child=live_jobs(child.seen), launch=launch)


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

    async def _stop(self, action: Action, plan: RollbackPlan, fence: Fence) -> StepOutcome:
        """End the child's job and see all of it gone; where it had none, see once more that it has none."""
        child = self._runs.contract(plan.child_run_id)
        if isinstance(child, BadContract):
            return Waiting(detail="; ".join(child.problems), is_unknown=True)
        launcher = self._runs.launcher(child)
        if launcher is None:
            return unasked(child)
        if plan.stop is None:
            lives = await self._child_lives(action, child)
            return lives or Done(detail="no job of the child is alive")
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

        async def barred() -> StepOutcome | None:
            return await self._barred(action, plan, contract)

        view = as_part(action, plan.launch, cursor=action.metrics_cursor)
        outcome = await self._steps.take(
            StepName.SUBMIT, view, contract, is_resumed=is_resumed, fence=fence, barred=barred
        )
        if isinstance(outcome, Refused):
            return outcome.model_copy(update={"detail": f"{outcome.detail}; {_NOT_LAUNCHED}"})
        return outcome

    async def _barred(self, action: Action, plan: RollbackPlan, contract: Contract) -> StepOutcome | None:
        """Return why the old run may not be launched as approved, by both runs as they are now; None when it may."""
        child = self._runs.contract(plan.child_run_id)
        if isinstance(child, BadContract):
            return Waiting(detail="; ".join(child.problems), is_unknown=True)
        if plan.stop is not None and (lives := await self._runs.another_lives(child, plan.stop.stop)) is not None:
            return lives
        if (lives := await self._child_lives(action, child)) is not None:
            return lives
        launcher = self._runs.launcher(contract)
        if launcher is None:
            return unasked(contract)
        old = await self._runs.old(contract)
        rebuilt = old_launch(contract, old.seen, old.instance, launcher, self._redactor, report=None, child=None)
        return launch_barred(plan.launch, rebuilt, "nothing was launched", asks_anew=True)

    async def _watch(
        self, step: StepName, action: Action, plan: RollbackPlan, contract: Contract, fence: Fence
    ) -> StepOutcome:
        """Watch the old run begin again, and that nothing of the child does."""
        child = self._runs.contract(plan.child_run_id)
        if isinstance(child, BadContract):
            return Waiting(detail="; ".join(child.problems), is_unknown=True)
        lives = (
            await self._child_lives(action, child)
            if plan.stop is None
            else await self._runs.another_lives(child, plan.stop.stop, beside=plan.launch.job_id)
        )
        if lives is not None:
            return lives
        view = as_part(action, plan.launch, cursor=action.metrics_cursor)
        return await self._steps.take(step, view, contract, is_resumed=True, fence=fence)
