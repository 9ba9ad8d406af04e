"""The two launches of a trial: the child's once the old run has ended, and the old run's once the child has. Pure.

Both are ordinary relaunch plans, made before the job beside them has ended: so that job is taken out of what was read,
and of nothing else. Whether something lives right now is ``live_rivals``, which takes nothing out.
"""

from bot.actions.checklist import with_checklist
from bot.actions.ports import Launcher
from bot.actions.relaunch import plan_relaunch
from bot.model.contract import Contract
from bot.model.job import Job, JobState
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.preflight import PreflightReport
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.redaction import Redactor
from checks.kin import is_below, own_jobs, rivals
from checks.preflight.paired import PAIRED


def child_launch(
    contract: Contract,
    seen: Snapshot,
    instance: Instance | None,
    launcher: Launcher,
    redactor: Redactor,
    *,
    report: PreflightReport | None,
    old: Snapshot,
) -> RelaunchPlan | NoPlan:
    """Return what launching the child would do once the old run's job has ended.

    A job of the child that lives is in the way, and is not stopped for it: the cut-over ends the old run's alone.
    Without a checkpoint of its own the child begins at its contract's ``initialize_from``, and ``resume_from`` is None.

    Args:
        contract: the child's.
        seen: of the child, as it was read.
        instance: the child's newest launch on record; None before the first.
        launcher: of the child's orchestrator.
        redactor: for the plan.
        report: the launch checklist's word on ``without_jobs_of(seen, old)``; None at a look that asks nothing.
        old: of the old run, read at the same time.
    """
    if alive := tuple(job for job in own_jobs(seen) if not job.state.is_terminal):
        names = ", ".join(job.job_id for job in alive)
        return NoPlan(
            reason=f"a job of the child is alive: {names}; a launch would make two writers of one output root",
            fix=f"find out who launched it, and end it: `/hero stop {contract.run_id}`, or by hand",
            is_unknown=False,
        )
    plan = plan_relaunch(contract, without_jobs_of(seen, old), instance, launcher, redactor)
    return with_checklist(plan, _without_pair(report))


def old_launch(
    contract: Contract,
    seen: Snapshot,
    instance: Instance | None,
    launcher: Launcher,
    redactor: Redactor,
    *,
    report: PreflightReport | None,
    child: Snapshot | None,
    as_if_stopped: bool = False,
) -> RelaunchPlan | NoPlan:
    """Return what launching the old run again would do once the child's job has ended.

    Args:
        contract: the old run's.
        seen: of the old run, as it was read.
        instance: the old run's current launch on record.
        launcher: of the old run's orchestrator.
        redactor: for the plan.
        report: the launch checklist's word on what is planned from here; None at a look that asks nothing.
        child: of the child, read at the same time; None when its contract cannot be used.
        as_if_stopped: whether the old run's own job counts as ended, too: then there is nothing to stop, and what is
            replaced is its current launch. In a rehearsal it still trains.
    """
    given = without_jobs_of(seen, child) if child is not None else seen
    plan = plan_relaunch(contract, as_ended(given) if as_if_stopped else given, instance, launcher, redactor)
    return with_checklist(plan, _without_pair(report))


def _without_pair(report: PreflightReport | None) -> PreflightReport | None:
    """Return the report without its word on the other run: in a trial that one's end is part of the plan itself."""
    if report is None:
        return None
    left = tuple(each for each in report.findings if each.check != PAIRED.id)
    return report.model_copy(update={"findings": left})


def without_jobs_of(seen: Snapshot, other: Snapshot) -> Snapshot:
    """Return the snapshot with the other run's job, and what is below that, taken out of the neighbours.

    Another coordinator of the other run stays: it is nobody's to end here, and so it is in the way.
    """
    root = other.job
    if root is None or not isinstance(seen.neighbours, Known):
        return seen
    named = {job.job_id for job in own_jobs(other)}
    left = tuple(job for job in seen.neighbours.value if job.job_id not in named and not is_below(job, root))
    return seen.model_copy(update={"neighbours": Known(value=left, at=seen.neighbours.at)})


def as_ended(seen: Snapshot) -> Snapshot:
    """Return the snapshot as if its own jobs had been stopped; what is not known stays so."""
    if not isinstance(seen.jobs, Known):
        return seen
    ended = tuple(
        job if job.state.is_terminal else job.model_copy(update={"state": JobState.KILLED}) for job in seen.jobs.value
    )
    return seen.model_copy(update={"jobs": Known(value=ended, at=seen.jobs.at)})


def live_rivals(old: Snapshot, child: Snapshot) -> Reading[tuple[Job, ...]]:
    """Return every live job of either run: with one of them alive the child is not launched.

    The two runs may be called anything, so that an orchestrator asked for the one need not know of the other: both
    snapshots are looked at. What cannot be told of one of them makes the whole answer Unknown.

    Source: deploy checklist, "Rehearse preflight and rollback": launch refuses a live parent or child coordinator.
    """
    found: dict[str, Job] = {}
    for seen in (old, child):
        if isinstance(seen.jobs, Unknown):
            return _not_known(seen, seen.jobs)
        if isinstance(seen.neighbours, Unknown) and seen.neighbours.reason is not Gap.NOT_CONFIGURED:
            return _not_known(seen, seen.neighbours)
        found |= {job.job_id: job for job in (*own_jobs(seen), *rivals(seen)) if not job.state.is_terminal}
    return Known(value=tuple(found.values()), at=min(old.at, child.at))


def say_rivals(jobs: tuple[Job, ...]) -> str:
    """Return live jobs in words, for a refusal: each with its state and when it was submitted."""
    return "; ".join(f"{job.job_id} is {job.state}, submitted {job.submitted_at:%Y-%m-%d %H:%M} UTC" for job in jobs)


def _not_known(seen: Snapshot, gap: Unknown) -> Unknown:
    detail = f"whether a job of {seen.run_id} is alive is not known: {gap.detail}"
    return Unknown(reason=gap.reason, detail=detail[:2000], at=gap.at)
