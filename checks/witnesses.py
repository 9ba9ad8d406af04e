"""Witnesses of one run: what the orchestrator says of whoever trains, when the trainer was last heard, and its pods."""

from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.job import Job, JobState, TaskState
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot
from bot.model.telemetry import Phase, Telemetry
from bot.model.value import Value
from bot.model.verdict import NotApplicable, UnknownVerdict
from checks.current import instance_of, say_step, unseen
from checks.kin import diagnostics, own_jobs

_ON_THE_WAY = frozenset({TaskState.PENDING, TaskState.BUILDING, TaskState.ASSIGNED})
_FAILED = frozenset({JobState.FAILED, JobState.WORKER_FAILED, JobState.UNSCHEDULABLE})

_CLOCKS_DIFFER = timedelta(minutes=1)
"""The controller's clock and the API server's may differ by as much."""


class Standing(StrEnum):
    """What the orchestrator says of whoever trains."""

    LIVE = "live"
    """A task of it runs."""
    WAITING = "waiting"
    """It is on its way: pending, or being started."""
    IDLE = "idle"
    """The job lives, and no task of a trainer does; a coordinator alone trains nothing."""
    ABSENT = "absent"
    """There is no such job."""
    FAILED = "failed"
    OVER = "over"
    """It succeeded, or was stopped."""

    @property
    def is_dead(self) -> bool:
        return self not in {Standing.LIVE, Standing.WAITING}


class Heard(Value):
    """When the trainer of this instance last gave a sign of life, by Hero's clock as far as it can tell."""

    instance: str = ""
    stamp: AwareDatetime | None = None
    """Of the newest sign, by the trainer's clock."""
    at: AwareDatetime | None = None
    phase: Phase | None = None
    step: int | None = None
    read_at: AwareDatetime | None = None
    """When telemetry was last readable."""
    opposed_since: AwareDatetime | None = None
    """Since which look the two witnesses contradict each other."""
    pods_at: AwareDatetime | None = None
    """When a live pod of its trainer was last seen; None when none ever was, as where Iris does without Kubernetes."""

    def after(self, seen: Snapshot) -> "Heard":
        """Return the memory with the snapshot's signs taken in; a new instance starts afresh.

        The trainer's clock may be wrong: a new sign is younger than the last look, which did not show it, and none is
        newer than now. Where its clock says otherwise it counts as heard now.
        """
        current = instance_of(seen, self.instance)
        mine = self if current == self.instance else Heard(instance=current)
        if any(pod.is_live for pod in trainer_pods(seen)):
            mine = mine.model_copy(update={"pods_at": seen.at})
        if isinstance(seen.telemetry, Unknown):
            return mine
        signs = seen.telemetry.value
        stamp = stamp_of(signs)
        read = mine.model_copy(update={"read_at": seen.at})
        if stamp is None or stamp == mine.stamp or _is_of_before(signs, stamp, seen):
            return read
        is_plausible = stamp <= seen.at and (mine.read_at is None or stamp >= mine.read_at)
        at = stamp if is_plausible else seen.at
        return read.model_copy(update={"stamp": stamp, "at": at, "phase": signs.phase, "step": signs.last_step})


def stamp_of(signs: Telemetry) -> datetime | None:
    """Return when the newest sign was written; None when there is none."""
    return max((at for at in (signs.phase_at, signs.last_row_at) if at is not None), default=None)


def _is_of_before(signs: Telemetry, stamp: datetime, seen: Snapshot) -> bool:
    """Return whether this was written before the current instance was submitted."""
    submitted = seen.job.submitted_at if seen.job else seen.instance.submitted_at if seen.instance else None
    return signs.is_of_current_execution is not True and submitted is not None and stamp < submitted


def standing_of(seen: Snapshot, trainer: str) -> Standing | Unknown:
    """Return what the orchestrator says of the trainer; Unknown when it, or tasks of a live job, could not be read.

    Args:
        seen: the snapshot.
        trainer: the job that wrote the telemetry; what stands above it coordinates and does not train. Empty when it
            is not known: then a job with others below it is a coordinator.
    """
    if isinstance(seen.jobs, Unknown):
        return seen.jobs
    if seen.job is None:
        return Standing.ABSENT
    if seen.job.state.is_terminal:
        return Standing.FAILED if seen.job.state in _FAILED else Standing.OVER
    jobs = own_jobs(seen)
    ids = [*(job.job_id for job in jobs), trainer]
    trainers = [job for job in jobs if not any(each.startswith(f"{job.job_id}/") for each in ids)]
    return _of_trainers([job for job in trainers if not job.state.is_terminal])


def _of_trainers(jobs: list[Job]) -> Standing | Unknown:
    states: list[TaskState] = []
    gap: Unknown | None = None
    for job in jobs:
        if job.state is not JobState.RUNNING:
            states.append(TaskState.PENDING)
        elif isinstance(job.tasks, Known):
            states.extend(task.state for task in job.tasks.value)
        else:
            gap = gap or job.tasks
    if TaskState.RUNNING in states:
        return Standing.LIVE
    if gap is not None:
        return gap
    return Standing.WAITING if _ON_THE_WAY.intersection(states) else Standing.IDLE


def ask_both(seen: Snapshot) -> Standing | NotApplicable | UnknownVerdict:
    """Return what the orchestrator says of the trainer, or the verdict when one of the two cannot be read."""
    if isinstance(seen.telemetry, Unknown):
        gap = seen.telemetry
        if gap.reason is Gap.NOT_CONFIGURED:
            return NotApplicable(reason=f"telemetry is not read: {gap.detail}")
        return unseen(gap, "what the trainer says is not known")
    standing = standing_of(seen, seen.telemetry.value.job_id)
    return unseen(standing, "whether tasks run is not known") if isinstance(standing, Unknown) else standing


def ask_two(seen: Snapshot, heard: Heard) -> Standing | NotApplicable | UnknownVerdict:
    """As ``ask_both``, with Kubernetes as the second witness where the trainer's word cannot be read.

    It is one only of a launch whose pods were seen: where there never were any, their absence shows nothing.
    """
    asked = ask_both(seen)
    if isinstance(asked, Standing) or heard.pods_at is None or isinstance(seen.pods, Unknown):
        return asked
    standing = standing_of(seen, "")
    return asked if isinstance(standing, Unknown) else standing


def pods_of_instance(seen: Snapshot) -> tuple[Pod, ...]:
    """Return the pods that were made for the launch that the snapshot shows; those of a namesake before it linger."""
    if isinstance(seen.pods, Unknown):
        return ()
    submitted = seen.job.submitted_at if seen.job else seen.instance.submitted_at if seen.instance else None
    began = None if submitted is None else submitted - _CLOCKS_DIFFER
    return tuple(pod for pod in seen.pods.value if began is None or pod.created_at is None or pod.created_at >= began)


def trainer_pods(seen: Snapshot) -> tuple[Pod, ...]:
    """Return the pods of whoever trains: those of a coordinator, or of a diagnostic beside it, keep no run up."""
    pods = pods_of_instance(seen)
    beside = {job.job_id for job in diagnostics(seen)}
    ids = {*(job.job_id for job in own_jobs(seen)), *(pod.job_id for pod in pods), told(seen).job_id} - beside
    return tuple(
        pod for pod in pods if pod.job_id not in beside and not any(each.startswith(f"{pod.job_id}/") for each in ids)
    )


def told(seen: Snapshot) -> Telemetry:
    """Return what the trainer says; nothing also when it could not be read, so look at that first."""
    return seen.telemetry.value if isinstance(seen.telemetry, Known) else Telemetry()


def say_heard(heard: Heard) -> str:
    """Return the last sign of life as evidence."""
    if heard.at is None:
        return "this launch's trainer was never heard"
    phase = f", phase {heard.phase}" if heard.phase else ""
    return f"last sign of life at {heard.at:%Y-%m-%d %H:%M:%S} UTC{phase}, step {say_step(heard.step)}"


def say_pods(seen: Snapshot, heard: Heard) -> tuple[str, ...]:
    """Return what Kubernetes says of a launch whose pods were seen, as evidence; nothing of any other."""
    if heard.pods_at is None:
        return ()
    if isinstance(seen.pods, Unknown):
        return (f"Kubernetes: {seen.pods.detail}; a live pod was last seen at {heard.pods_at:%H:%M:%S} UTC",)
    live = sum(pod.is_live for pod in trainer_pods(seen))
    last = f"one was last seen at {heard.pods_at:%H:%M:%S} UTC"
    return (f"Kubernetes, read at {seen.pods.at:%H:%M:%S} UTC: {live} live pods of a trainer; {last}",)
