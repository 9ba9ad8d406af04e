"""Ending a job: the step that a relaunch and a stop have in common, and the stop as an action of its own."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import assert_never

from bot.actions.ports import Fence, Launcher
from bot.clock import Clock
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.contract import Contract
from bot.model.errand import CannotYet, Errand, Found, Planned
from bot.model.job import Job, Task, TaskState
from bot.model.plan import Grant
from bot.model.planned import NoPlan, RelaunchPlan, StopPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.record import Record
from bot.model.snapshot import Snapshot
from bot.model.value import JobId
from bot.sources.snapshots import SnapshotReader

_PODS_NAMED = 3

_UNDER_WAY = frozenset({TaskState.PENDING, TaskState.BUILDING, TaskState.ASSIGNED, TaskState.RUNNING})

_ENDS_WITHIN = timedelta(minutes=2)
"""So long after its job a task that was told to end has ended, also where nobody notes when: the orchestrators send
SIGKILL at once, or within 30 s (docs of Kubernetes, ``terminationGracePeriodSeconds``)."""


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
            return Waiting(detail=f"the job to stop cannot be read: {detail}", is_unknown=True)
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


async def stop_whole(
    launcher: Launcher,
    contract: Contract,
    plan: StopPlan,
    grant: Grant,
    fence: Fence,
    *,
    reader: SnapshotReader,
    clock: Clock,
) -> StepOutcome:
    """Stop the plan's job, and see its tasks and, where Kubernetes is read, its pods gone with it. Safe to repeat.

    Source: deploy checklist, "Execute the trial": the coordinator is terminal and its training tasks have stopped
    before anything is launched in its place.
    """
    ended = await stop_job(launcher, contract, plan, grant, fence, clock=clock)
    if not isinstance(ended, Done):
        return ended
    jobs = await launcher.jobs(contract, plan.stop)
    if isinstance(jobs, Unknown):
        gap = f"{ended.detail}; whether its tasks have ended is not known: {jobs.detail}"
        return Waiting(detail=gap, is_unknown=True)
    if left := still_under_way(jobs.value, clock.now()):
        return Waiting(detail=f"{ended.detail}, but not all of it has ended: {left}")
    return await without_pods(reader, contract, plan.stop, ended)


async def without_pods(reader: SnapshotReader, contract: Contract, job_id: JobId, ended: Done) -> StepOutcome:
    """Return that a job has ended once its pods are gone, too: one that lives on is a second writer.

    Where no Kubernetes is read, the orchestrator's word is all there is.
    """
    pods = await reader.pods(contract, job_id)
    if isinstance(pods, Unknown):
        gap = f"{ended.detail}; whether its pods are gone is not known: {pods.detail}"
        return ended if pods.reason is Gap.NOT_CONFIGURED else Waiting(detail=gap, is_unknown=True)
    live = [pod.place for pod in pods.value if pod.is_live]
    if not live:
        return ended
    places = ", ".join(live[:_PODS_NAMED])
    return Waiting(detail=f"{ended.detail}, but {len(live)} of its pods still live and may write: {places}")


def still_under_way(jobs: tuple[Job, ...], at: datetime) -> str:
    """Say what of a job and everything below it is not known to have ended; empty when all of it has. Pure.

    A job that was told to end is terminal at once, while its processes live on for some seconds.
    """
    return "; ".join(_under_way(jobs, at))


def _under_way(jobs: tuple[Job, ...], at: datetime) -> Iterator[str]:
    for job in jobs:
        if not job.state.is_terminal:
            yield f"{job.job_id} is {job.state}"
        elif isinstance(job.tasks, Unknown):
            yield f"the tasks of {job.job_id} cannot be read: {job.tasks.detail}"
        else:
            is_fresh = job.finished_at is None or at - job.finished_at < _ENDS_WITHIN
            yield from (f"task {task.task_id} {how}" for task in job.tasks.value if (how := _lives(task, is_fresh)))


def _lives(task: Task, is_fresh: bool) -> str:  # noqa: FBT001 - private
    """Say how a task of a terminal job may still run; empty when it does not."""
    if task.state in _UNDER_WAY:
        return f"is {task.state}"
    is_open = task.started_at is not None and task.finished_at is None
    return "was told to end and is not seen to have" if task.state is TaskState.KILLED and is_open and is_fresh else ""


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
