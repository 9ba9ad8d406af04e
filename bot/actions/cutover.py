"""What each step of a cut-over does: fork the tracker's history, stop the old run's job, launch the child.

The launch is a relaunch of the child, and is done by ``bot/actions/steps.py``. What is of a trial is here: nothing of
it is begun while a guard does not pass, the child is not launched before the old run is seen to have ended, and from
the launch on a retry, a hang or a second coordinator ends it.

Source: deploy checklist, "Execute the trial" (docs/procedures.md).
"""

from collections.abc import Callable
from datetime import timedelta
from typing import assert_never

from bot.actions.both_runs import BothRuns, Side, changed_since_launch, unasked
from bot.actions.executor import without_contract
from bot.actions.forking import Forking
from bot.actions.parts import as_part, launch_barred
from bot.actions.ports import Fence, Launcher, Rehearses
from bot.actions.startup import hang_of, own_tree, retries_of, unread_tasks
from bot.actions.steps import EXPIRED, Steps
from bot.actions.stopping import stop_whole
from bot.actions.trial_changes import say_changes
from bot.actions.trial_launches import child_launch
from bot.actions.trial_plans import handoff_fault, live_jobs, plan_cutover
from bot.clock import Clock
from bot.contracts import BadContract
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Uncertain, Waiting
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.planned import NoPlan
from bot.model.reading import Known, Unknown
from bot.model.rehearsal import GuardSays, Rehearsal
from bot.model.trialplan import CutOverPlan
from bot.redaction import Redactor
from checks.trial.guards.judging import judge_guards

type Judge = Callable[[Rehearsal], tuple[GuardSays, ...]]
"""Every guard's word on a rehearsal."""

_STAYS_STOPPED = "the old run is stopped, and nothing trains in its place"


class CutOverSteps:
    """The steps of a cut-over, over every kind of orchestrator."""

    def __init__(
        self,
        *,
        steps: Steps,
        runs: BothRuns,
        rehearses: Rehearses,
        forking: Forking,
        clock: Clock,
        redactor: Redactor,
        judge: Judge = judge_guards,
    ) -> None:
        """Take the parts.

        Args:
            steps: those of a relaunch, which launch the child.
            runs: reads both runs.
            rehearses: reads what the guards judge.
            forking: creates the tracker's fork.
            clock: for times.
            redactor: plans are rebuilt scrubbed, as they were asked.
            judge: lets every guard judge.
        """
        self._steps = steps
        self._runs = runs
        self._rehearses = rehearses
        self._forking = forking
        self._clock = clock
        self._redactor = redactor
        self._judge = judge

    async def take(
        self, step: StepName, action: Action, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        """Do one step, or look once at what it waits for; ``contract`` is the old run's."""
        plan = action.plan
        if not isinstance(plan, CutOverPlan):
            msg = f"action {action.number} is no cut-over"
            raise AssertionError(msg)  # noqa: TRY004 - a bug of ours, not a wrong argument
        match step:
            case StepName.VERIFY:
                return await self._verify(action, plan, contract)
            case StepName.FORK:
                return await self._forking.fork(plan.fork, action, fence)
            case StepName.STOP:
                return await self._stop(action, plan, contract, fence)
            case StepName.SUBMIT:
                return await self._submit(action, plan, contract, is_resumed=is_resumed, fence=fence)
            case StepName.CONFIRM | StepName.STABILISE | StepName.RESTORE:
                return await self._watch(step, action, plan, contract, fence)
            case StepName.DELETE | StepName.TAG:
                msg = f"a cut-over has no step {step}"
                raise AssertionError(msg)
            case _:
                assert_never(step)

    async def _verify(self, action: Action, plan: CutOverPlan, contract: Contract) -> StepOutcome:
        """Rehearse anew: every guard passes again, and what would be done is what was approved (law 2)."""
        if not action.grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is no longer valid: it has expired or is for another plan")
        record = await self._runs.record(action.run_id)
        trial = record.run.trial if record else None
        if record is None or trial is None or trial.plan.digest != plan.trial:
            return Refused(detail="the trial that it was approved for is not the agreed one any more")
        rehearsal = await self._rehearses.rehearse(contract, record, trial.plan)
        match plan_cutover(rehearsal, trial, self._judge(rehearsal), self._redactor):
            case NoPlan(is_unknown=True, reason=reason):
                return Waiting(detail=reason, is_unknown=True)
            case NoPlan(reason=reason):
                return Refused(detail=f"{reason}; nothing was forked or stopped")
            case CutOverPlan() as rebuilt if rebuilt.digest != plan.digest:
                changed = say_changes(plan, rebuilt)
                return Refused(detail=f"what would be done has changed since it was asked: {changed}")
            case CutOverPlan():
                return Done(detail="every guard passes again, and the world is as it was when the plan was asked")

    async def _stop(self, action: Action, plan: CutOverPlan, contract: Contract, fence: Fence) -> StepOutcome:
        """Stop the old job and see all of it gone; before that, look once more at what the child begins with.

        Source: deploy checklist, "Execute the trial" 2.
        """
        launcher = self._runs.launcher(contract)
        if launcher is None:
            return unasked(contract)
        shown = await launcher.jobs(contract, plan.stop.stop)
        if isinstance(shown, Known) and not shown.value:
            gone = f"the orchestrator shows no {plan.stop.stop} any more, and nobody saw it end"
            return Waiting(detail=gone, is_unknown=True)
        agreed = await self._runs.agreed(action.run_id, plan.trial)
        grant = action.grant.for_part(plan, plan.stop)

        async def checked() -> None:
            was_told = bool(action.tries.get(StepName.STOP))
            end = agreed.rollback_by if agreed is not None else None
            if end is not None and self._clock.now() >= end and not was_told:
                raise _BarredError(Refused(detail="the time for a rollback is over; nothing was stopped"))
            nothing = "it may have been told to stop" if was_told else "nothing was stopped"
            why = await self._barred(plan, contract, nothing, old_lives=True)
            if why is not None:
                raise _BarredError(why)
            await fence()

        try:
            outcome = await stop_whole(
                launcher, contract, plan.stop, grant, checked, reader=self._runs.reader, clock=self._clock
            )
        except _BarredError as barred:
            return barred.outcome
        if isinstance(outcome, Done) and not action.tries.get(StepName.STOP):
            # A crash is no kill: whoever leads the run has to know which of the two it was.
            by_itself = f"{outcome.detail}; it had ended by itself before it was told to stop"
            return outcome.model_copy(update={"detail": by_itself})
        return outcome

    async def _submit(
        self, action: Action, plan: CutOverPlan, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        """Launch the child exactly once, and only when the old run is seen to have ended, all of it."""
        child = self._runs.contract(plan.launch.run_id)
        if isinstance(child, BadContract):
            return _said_stopped(without_contract(child, StepName.SUBMIT, is_resumed=is_resumed))
        if changed := changed_since_launch(child, await self._runs.record(action.run_id)):
            return Uncertain(detail=f"whether the child was launched cannot be asked: {changed}")

        async def barred() -> StepOutcome | None:
            record = await self._runs.record(action.run_id)
            trial = record.run.trial if record else None
            if trial is not None and trial.rollback_wanted_by is not None:
                return Refused(detail="a rollback was asked for; the child was not launched")
            return await self._barred(plan, contract, "nothing was launched", old_lives=False)

        view = as_part(action, plan.launch, cursor="")
        outcome = await self._steps.take(
            StepName.SUBMIT, view, child, is_resumed=is_resumed, fence=fence, barred=barred
        )
        return _said_stopped(self._or_unread(outcome, action))

    def _or_unread(self, outcome: StepOutcome, action: Action) -> StepOutcome:
        """Say of a launch whose yes has run out while it was waited for that nothing is shown to be wrong.

        Once begun, it waits for nothing but what could not be read, as the child's orchestrator.
        """
        begun = action.record(StepName.SUBMIT)
        has_waited = begun is not None and begun.intent_at < action.grant.expires_at
        if isinstance(outcome, Refused) and EXPIRED in outcome.detail and has_waited:
            return outcome.model_copy(update={"is_unknown": True})
        return outcome

    async def _barred(
        self, plan: CutOverPlan, contract: Contract, nothing: str, *, old_lives: bool
    ) -> StepOutcome | None:
        """Return why the child may not be launched as approved, by both runs as they are now; None when it may.

        Args:
            plan: what was approved.
            contract: the old run's.
            nothing: what was not done yet, for people.
            old_lives: whether the old job is still to be stopped: then that alone is no reason.
        """
        child = self._runs.contract(plan.launch.run_id)
        if isinstance(child, BadContract):
            return Refused(detail=f"{'; '.join(child.problems)}; {nothing}")
        if not old_lives:
            lives = await self._runs.another_lives(contract, plan.stop.stop)
            if lives is not None:
                return lives
        old = await self._runs.old(contract)
        fault = handoff_fault(old.seen, plan.handoff)
        if isinstance(fault, Unknown):
            gap = f"whether the handoff checkpoint is still there is not known: {fault.detail}"
            return Waiting(detail=gap, is_unknown=True)
        if fault.value:
            return Refused(detail=f"{fault.value}; {nothing}")
        return self._child_barred(plan, old, await self._runs.child(child, old.record), nothing)

    def _child_barred(self, plan: CutOverPlan, old: Side, child: Side, nothing: str) -> StepOutcome | None:
        """Return why the child's launch is not the approved one any more: by its code, tree, contract and jobs."""
        launcher = self._runs.launcher(child.contract)
        if launcher is None:
            return unasked(child.contract)
        live = live_jobs(child.seen)
        if isinstance(live, Unknown):
            return Waiting(detail=f"whether the child lives already is not known: {live.detail}", is_unknown=True)
        if live.value:
            return Refused(detail=f"the child lives already: {live.value[0].instance_id}; {nothing}")
        rebuilt = child_launch(
            child.contract, child.seen, child.instance, launcher, self._redactor, report=None, old=old.seen
        )
        if (barred := launch_barred(plan.launch, rebuilt, nothing)) is not None:
            return barred
        found = child.seen.checkpoints.value if isinstance(child.seen.checkpoints, Known) else ()
        if plan.launch.resume_from is None and found:
            return Refused(detail=f"the child's tree is not empty any more: {found[-1].path}; {nothing}")
        return None

    async def _watch(  # noqa: PLR0911 - one return a case
        self, step: StepName, action: Action, plan: CutOverPlan, contract: Contract, fence: Fence
    ) -> StepOutcome:
        """Watch the child's first minutes: a second coordinator, a retry or a hang ends the trial."""
        child = self._runs.contract(plan.launch.run_id)
        if isinstance(child, BadContract):
            return without_contract(child, step, is_resumed=True)
        if changed := changed_since_launch(child, await self._runs.record(action.run_id)):
            return Waiting(detail=changed, is_unknown=True)
        launcher = self._runs.launcher(child)
        if launcher is None:
            return unasked(child)
        beside = await self._runs.another_lives(contract, plan.stop.stop, beside=plan.launch.job_id)
        if beside is not None:
            return beside
        jobs = await self._child_jobs(launcher, child, plan)
        if isinstance(jobs, Waiting):
            return jobs
        agreed = await self._runs.agreed(action.run_id, plan.trial)
        if again := retries_of(jobs, quiet=agreed is None or agreed.quiet):
            return Refused(detail=f"{again}; a trial waits for no further attempt")
        view = as_part(action, plan.launch, cursor="")
        if step is not StepName.RESTORE:
            return await self._steps.take(step, view, child, is_resumed=True, fence=fence)
        outcome = await self._steps.restore(view, child, handoff=plan.handoff)
        return self._or_hang(outcome, action, plan, jobs)

    async def _child_jobs(self, launcher: Launcher, child: Contract, plan: CutOverPlan) -> tuple[Job, ...] | Waiting:
        """Return the launched job and what is below it, with every attempt; none while it is not shown."""
        jobs = await launcher.jobs(child, plan.launch.job_id)
        if isinstance(jobs, Unknown):
            return Waiting(detail=f"{plan.launch.job_id} cannot be read: {jobs.detail}", is_unknown=True)
        if not jobs.value or jobs.value[0].instance_id == plan.launch.instance:
            return ()
        tree = own_tree(jobs.value, child.run_id)
        if gap := unread_tasks(tree):
            detail = f"the attempts of {plan.launch.job_id} cannot be read: {gap.detail}"
            return Waiting(detail=detail, is_unknown=True)
        return tree

    def _or_hang(self, outcome: StepOutcome, action: Action, plan: CutOverPlan, jobs: tuple[Job, ...]) -> StepOutcome:
        """Return the outcome, or that the start-up hangs: never while something that would show it cannot be read."""
        if not isinstance(outcome, Waiting) or outcome.is_unknown:
            return outcome
        submitted = action.record(StepName.SUBMIT)
        at = submitted.outcome_at if submitted else None
        if at is None:
            return outcome
        hang = hang_of(jobs, at, timedelta(seconds=plan.startup_limit_s), self._clock.now())
        if not hang:
            return outcome
        return Refused(detail=f"the start-up hangs: {hang} ({plan.startup_limit_source}); {outcome.detail}")


class _BarredError(Exception):
    """The stop that was about to be told is not: what the child begins with is not as approved any more."""

    def __init__(self, outcome: StepOutcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


def _said_stopped(outcome: StepOutcome) -> StepOutcome:
    """Add to a refusal that nothing trains now, so that nobody has to find that out."""
    if isinstance(outcome, Refused):
        return outcome.model_copy(update={"detail": f"{outcome.detail}; {_STAYS_STOPPED}"})
    return outcome
