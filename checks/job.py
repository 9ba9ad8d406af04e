"""What can go wrong with the run's job as such: it ends, it disappears, or it exists twice."""

from datetime import timedelta

from bot.model.contract import Contract
from bot.model.job import Job, JobState
from bot.model.reading import Gap, Known, Unknown
from bot.model.run import Instance
from bot.model.snapshot import Snapshot, Source, newest_complete
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, is_final, listed, say_step, unseen
from checks.endings import end_of, evidence_of
from checks.kin import is_below, rivals
from checks.thresholds import NoMemory, NoThresholds

ENDED_ID = CheckId("job.ended")
DUPLICATE_ID = CheckId("job.duplicate")

_TO_APPEAR = timedelta(minutes=10)
"""How long a submitted job may take to be shown; until then whoever submitted it looks for it and tells."""

VANISHED = "vanished"
"""The key of the finding that a job is gone that was not seen to end."""


class EndMemory(Value):
    """How far the instance got, and what was found when it ended."""

    instance: str = ""
    step: int | None = None
    """The highest step that it logged or saved."""
    finding: Finding | None = None
    """Kept, since logs rotate and jobs are pruned; None while it lives or as long as something could not be read."""

    def after(self, seen: Snapshot) -> "EndMemory":
        """Return the memory with the snapshot's steps taken in; a new instance starts afresh."""
        current = instance_of(seen, self.instance)
        mine = self if current == self.instance else EndMemory(instance=current)
        steps = [mine.step] if mine.step is not None else []
        if isinstance(seen.metrics, Known):
            steps.extend(row.step for row in seen.metrics.value.rows)
        if isinstance(seen.checkpoints, Known) and seen.job is not None:
            began = seen.job.submitted_at
            saved = newest_complete(tuple(c for c in seen.checkpoints.value if c.saved_at and c.saved_at >= began))
            steps.extend([saved.step] if saved else [])
        return mine.model_copy(update={"step": max(steps, default=None)})


def ended(seen: Snapshot, contract: Contract, _limits: NoThresholds, memory: EndMemory) -> tuple[Verdict, EndMemory]:
    """Fail when the job ended in any way but at its final step, or is gone."""
    memory = memory.after(seen)
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the job ended is not known"), memory
    job = seen.job
    if job is None:
        return _gone(seen, memory), memory
    if not job.state.is_terminal:
        return Pass(), memory.model_copy(update={"finding": None})
    if memory.finding is not None:
        return Fail(finding=memory.finding), memory
    finding, is_sure = _end_finding(seen, contract, job, memory)
    return (
        Pass() if finding is None else Fail(finding=finding),
        memory.model_copy(update={"finding": finding if is_sure else None}),
    )


def _end_finding(seen: Snapshot, contract: Contract, job: Job, memory: EndMemory) -> tuple[Finding | None, bool]:
    """Return what there is to say about an ended job, and whether another look could not tell more."""
    match job.state:
        case JobState.SUCCEEDED if is_final(memory.step, contract.final_step):
            return None, False
        case JobState.SUCCEEDED:
            return _short(job, contract, memory, seen), False
        case JobState.KILLED:
            return _stopped(job, memory), True
        case _:
            return _failed(seen, job, memory)


def _gone(seen: Snapshot, memory: EndMemory) -> Verdict:
    if seen.instance is None:
        return NotApplicable(reason="no job of this run was seen yet")
    if memory.finding is not None:
        return Fail(finding=memory.finding)
    if seen.instance.ended_at is not None:
        return NotApplicable(reason="the job ended before, and the orchestrator no longer lists it")
    if seen.instance.submitted_at is None:
        return _never_shown(seen, seen.instance)
    finding = Finding(
        check=ENDED_ID,
        key=VANISHED,
        severity=Severity.CRITICAL,
        summary=f"the job {seen.instance.job_id} is gone: the orchestrator answers that there is no such job, "
        f"and nobody saw it end; last known step: {say_step(memory.step)}",
        evidence=(f"launched {seen.instance.launched_at:%Y-%m-%d %H:%M} UTC", "the query succeeded and listed no job"),
        advice="Find out where it went before anything else: was it renamed, launched under another id, or lost by the "
        "controller? A relaunch while it still trains somewhere would make two writers of one output root.",
        since_step=memory.step,
    )
    return Fail(finding=finding)


def _never_shown(seen: Snapshot, launch: Instance) -> Verdict:
    """Judge a launch that Hero made and that no look has shown: it is not gone, it may never have been there."""
    if seen.at - launch.launched_at < _TO_APPEAR:
        return NotApplicable(reason=f"{launch.job_id} was submitted a moment ago and is not shown yet")
    finding = Finding(
        check=ENDED_ID,
        key=VANISHED,
        severity=Severity.CRITICAL,
        summary=f"{launch.job_id} was submitted, and the orchestrator has never shown it",
        evidence=(f"launched {launch.launched_at:%Y-%m-%d %H:%M} UTC", "the query succeeded and listed no job"),
        advice="See what the submit command really does and to which cluster it submits: it ended well and printed "
        "this id. A relaunch while the job trains somewhere else would make two writers of one output root.",
    )
    return Fail(finding=finding)


def _short(job: Job, contract: Contract, memory: EndMemory, seen: Snapshot) -> Finding:
    final = contract.final_step
    target = "no final step is in the contract" if final is None else f"its final step is {final}"
    gaps = tuple(
        f"{source} could not be read: {reading.detail}"
        for source in (Source.METRICS, Source.CHECKPOINTS)
        if isinstance(reading := seen.reading(source), Unknown)
    )
    return Finding(
        check=ENDED_ID,
        key=job.instance_id,
        severity=Severity.WARNING,
        summary=f"the job succeeded, but ended without its final step seen: {target}, "
        f"the last step seen is {say_step(memory.step)}",
        evidence=(f"state: {job.state}", *gaps),
        advice="Do not take it for complete: look for the final checkpoint and the last lines of the log. If it "
        "stopped early, compare the final step of the launched config with the contract's.",
        since_step=memory.step,
        since_at=job.finished_at,
    )


def _stopped(job: Job, memory: EndMemory) -> Finding:
    said = (f"orchestrator: {' '.join(job.error.split())[:300]}",) if job.error else ()
    return Finding(
        check=ENDED_ID,
        key=job.instance_id,
        severity=Severity.WARNING,
        summary=f"the job was stopped at step {say_step(memory.step)}: somebody, or another tool, ended it on purpose",
        evidence=(f"state: {job.state}", *said),
        advice="If that was not meant, ask who stopped it; Hero proposes no relaunch of a run that was stopped.",
        since_step=memory.step,
        since_at=job.finished_at,
    )


def _failed(seen: Snapshot, job: Job, memory: EndMemory) -> tuple[Finding, bool]:
    """Return the finding, and whether the next look could not tell more."""
    end = end_of(seen, job)
    words = end.classification.crash_class.value.replace("_", " ")
    kind = "could not be scheduled" if job.state is JobState.UNSCHEDULABLE else f"failed ({words})"
    finding = Finding(
        check=ENDED_ID,
        key=job.instance_id,
        severity=Severity.CRITICAL,
        summary=f"the job {kind} at step {say_step(memory.step)}: {end.classification.summary}",
        evidence=evidence_of(end),
        advice=end.advice,
        since_step=memory.step,
        since_at=job.finished_at,
        crash=end.classification,
        is_recoverable=end.is_recoverable,
    )
    return finding, not end.gaps and bool(end.classification.evidence)


ENDED = Check(
    id=ENDED_ID,
    title="The job ended",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.LOG, Source.METRICS, Source.CHECKPOINTS),
    source='manage-hero-run, "What Can Go Wrong": midrun crash, code bug, benign-looking success; '
    'babysit-job, "Check status" and "On terminal state"',
    thresholds=NoThresholds(),
    memory=EndMemory(),
    judge=ended,
)


def duplicate(seen: Snapshot, _contract: Contract, _limits: NoThresholds, memory: NoMemory) -> tuple[Verdict, NoMemory]:
    """Fail when more than one job of the run is alive that is no other's child, whatever it is called.

    Neighbours that cannot be looked for leave the answer open, unless two jobs are seen alive already.
    """
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the job exists twice is not known"), memory
    jobs = listed(seen)
    roots = [
        job
        for job in jobs
        if not job.state.is_terminal and job.parent is None and not any(is_below(job, other) for other in jobs)
    ]
    roots.extend(rivals(seen))
    if len(roots) <= 1:
        return _one_at_most(seen, jobs), memory
    finding = Finding(
        check=DUPLICATE_ID,
        key=",".join(sorted(job.instance_id for job in roots)),
        severity=Severity.CRITICAL,
        summary=f"{len(roots)} live jobs of this run: they write the same checkpoints and metrics",
        evidence=tuple(f"{job.job_id}: {job.state}, submitted {job.submitted_at:%Y-%m-%d %H:%M} UTC" for job in roots),
        advice="Find out which one is the run (steps, tracker identity) and have the DRI stop the other; trust no "
        "checkpoint that was saved while both were alive until its step and lineage are checked.",
        since_at=max(job.submitted_at for job in roots),
    )
    return Fail(finding=finding), memory


def _one_at_most(seen: Snapshot, jobs: tuple[Job, ...]) -> Verdict:
    if isinstance(seen.neighbours, Unknown) and seen.neighbours.reason is not Gap.NOT_CONFIGURED:
        return unseen(seen.neighbours, "whether another job of this run is alive is not known")
    return Pass() if jobs else NotApplicable(reason="there is no job")


DUPLICATE = Check(
    id=DUPLICATE_ID,
    title="More than one job of the run is alive",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.NEIGHBOURS),
    source='deploy checklist, "Rehearse preflight and rollback": exactly one coordinator; BSC-ES/autosubmit#2027',
    thresholds=NoThresholds(),
    memory=NoMemory(),
    judge=duplicate,
)
