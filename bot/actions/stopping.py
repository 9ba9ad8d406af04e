"""Ending a job: the step that a relaunch and a stop have in common, and the stop as an action of its own."""

from collections.abc import Mapping
from typing import assert_never

from bot.actions.ports import Fence, Launcher
from bot.clock import Clock
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.contract import Contract
from bot.model.errand import CannotYet, Errand, Found, Planned
from bot.model.plan import Grant
from bot.model.planned import NoPlan, RelaunchPlan, StopPlan
from bot.model.reading import Known, Unknown
from bot.model.record import Record
from bot.model.snapshot import Snapshot
from bot.sources.snapshots import SnapshotReader


async def stop_job(  # noqa: PLR0911 - one return a case
    launcher: Launcher, contract: Contract, plan: RelaunchPlan | StopPlan, grant: Grant, fence: Fence, *, clock: Clock
) -> StepOutcome:
    """Stop the plan's job unless it is terminal, and see it and its tasks end. Safe to repeat.

    A yes that has run out meanwhile, as while Hero was down, stops nothing.
    """
    if plan.stop is None:
        return Done(
            detail="there was nothing to stop: the old job had ended" if plan.instance else "there was no job yet"
        )
    jobs = await launcher.jobs(contract, plan.stop)
    match jobs:
        case Unknown(detail=detail):
            return Waiting(detail=f"the job to stop cannot be read: {detail}")
        case Known(value=()):
            return Done(detail=f"the orchestrator knows no {plan.stop} any more")
        case Known(value=(job, *_)) if job.instance_id != plan.instance:
            return Refused(detail=f"{plan.stop} is another launch now ({job.instance_id}); it was not touched")
        case Known(value=found) if all(each.state.is_terminal for each in found):
            return Done(detail=f"{plan.stop} is {found[0].state}")
        case Known():
            pass
    if not grant.covers(plan, clock.now()):
        return Refused(detail=f"the approval has expired, and {plan.stop} still lives; ask again to stop it")
    await fence()
    outcome = await launcher.stop(contract, plan, grant)
    if isinstance(outcome, Refused):
        return outcome
    return Waiting(detail=f"{plan.stop} was told to stop and is not terminal yet ({outcome.detail})")


def plan_stop(contract: Contract, seen: Snapshot) -> StopPlan | NoPlan:
    """Return exactly what stopping the run's job would do."""
    if isinstance(seen.jobs, Unknown):
        detail = f"the job's state is unknown: {seen.jobs.detail}"
        return NoPlan(reason=detail, fix="nothing to do but to mend the link to the orchestrator", is_unknown=True)
    job = seen.job
    if job is None or job.state.is_terminal:
        state = "no job of this run is known" if job is None else f"{job.job_id} is {job.state} already"
        return NoPlan(reason=f"there is nothing to stop: {state}", fix="nothing to do", is_unknown=False)
    return StopPlan(run_id=contract.run_id, stop=job.job_id, instance=job.instance_id)


class StopPreparer:
    """Looks into a wish to stop."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:  # noqa: ARG002 - the port's
        """Return the plan to stop the run's job as it is now."""
        seen = await self._reader.read(contract, record.instance, record.run.metrics_cursor)
        match plan_stop(contract, seen):
            case NoPlan(reason=reason, fix=fix, is_unknown=is_unknown):
                return CannotYet(reason=reason, fix=fix, is_unknown=is_unknown)
            case StopPlan() as plan:
                return Planned(plan=plan, evidence=_lost(record))


def _lost(record: Record) -> tuple[str, ...]:
    """Say what a stop would cost, as far as is known."""
    step, saved = record.run.progress.step, record.run.progress.checkpoint_step
    if step is None or saved is None:
        return ("NOT KNOWN: how many steps would be lost",)
    return (f"steps that would have to be trained again: {max(0, step - saved)} (newest complete checkpoint: {saved})",)


class StopSteps:
    """The steps of a stop, over every kind of orchestrator."""

    def __init__(self, *, launchers: Mapping[str, Launcher], clock: Clock) -> None:
        self._launchers = launchers
        self._clock = clock

    async def take(
        self,
        step: StepName,
        action: Action,
        contract: Contract,
        *,
        is_resumed: bool,  # noqa: ARG002 - the port's; both steps are safe to repeat
        fence: Fence,
    ) -> StepOutcome:
        """Do one step, or look once at what it waits for."""
        plan = action.plan
        if not isinstance(plan, StopPlan):
            msg = f"action {action.number} is no stop"
            raise AssertionError(msg)  # noqa: TRY004 - a bug of ours, not a wrong argument
        launcher = self._launchers.get(contract.orchestrator.kind)
        if launcher is None:
            return Waiting(detail=f"[{contract.orchestrator.kind}] is not configured in hero.toml any more")
        match step:
            case StepName.VERIFY:
                return await self._verify(launcher, contract, plan, action.grant)
            case StepName.STOP:
                return await stop_job(launcher, contract, plan, action.grant, fence, clock=self._clock)
            case (
                StepName.SUBMIT
                | StepName.CONFIRM
                | StepName.STABILISE
                | StepName.RESTORE
                | StepName.DELETE
                | StepName.TAG
                | StepName.FORK
            ):
                msg = f"a stop has no step {step}"
                raise AssertionError(msg)
            case _:
                assert_never(step)

    async def _verify(self, launcher: Launcher, contract: Contract, plan: StopPlan, grant: Grant) -> StepOutcome:
        if not grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is no longer valid: it has expired or is for another plan")
        jobs = await launcher.jobs(contract, plan.stop)
        match jobs:
            case Unknown(detail=detail):
                return Waiting(detail=f"the job to stop cannot be read: {detail}")
            case Known(value=(job, *_)) if job.instance_id == plan.instance and not job.state.is_terminal:
                return Done(detail="the job is the one that was asked about")
            case Known():
                return Refused(detail=f"{plan.stop} is not the running job any more that was asked about")
