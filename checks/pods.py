"""What can go wrong between Kubernetes and the orchestrator: they contradict each other, or a task lives twice.

Pods are found by the whole id of their task. A run whose pods were never seen is not judged: Iris may put it elsewhere.
"""

from datetime import timedelta

from pydantic import AwareDatetime

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.job import Job, JobState, TaskState
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import instance_of, listed, unseen
from checks.thresholds import Thresholds
from checks.witnesses import pods_of_instance, stamp_of, told

CONTRADICT_ID = CheckId("pods.contradict")
DUPLICATE_ID = CheckId("pods.duplicate")

_DEFAULT_CADENCE = timedelta(minutes=15)
_NAMED = 5
_KEPT = 256


class PodThresholds(Thresholds):
    fresh: Duration = timedelta(minutes=10)
    """A trainer that was heard within so long lives, whatever the list of pods says. As ``sources.contradict``."""


class Opposed(Value):
    """Since which look the two contradict each other, and whose pods were ever seen."""

    instance: str = ""
    had_pods: tuple[str, ...] = ()
    """Ids of jobs of this instance."""
    alive_since: AwareDatetime | None = None
    """Pods live whose job does not."""
    missing_since: AwareDatetime | None = None
    """Jobs run that have no live pod."""

    def after(self, seen: Snapshot) -> "Opposed":
        """Return the memory with the snapshot's pods taken in; a new instance starts afresh."""
        current = instance_of(seen, self.instance)
        mine = self if current == self.instance else Opposed(instance=current)
        had = sorted({*mine.had_pods, *(pod.job_id for pod in pods_of_instance(seen))})
        return mine.model_copy(update={"had_pods": tuple(had[:_KEPT])})


def contradict(seen: Snapshot, contract: Contract, limits: PodThresholds, memory: Opposed) -> tuple[Verdict, Opposed]:
    """Fail when, for a cadence, pods live whose job does not, or a job runs that has none."""
    memory = memory.after(seen)
    if (gap := _gap(seen)) is not None:
        return gap, memory
    alive, bare = _without_job(seen), _without_pods(seen, memory)
    unread = next((job.tasks for job in bare if isinstance(job.tasks, Unknown)), None)
    if unread is not None and not alive:
        return unseen(unread, "whether tasks run that have no pod is not known"), memory
    missing = tuple(job for job in bare if _runs(job))
    memory = memory.model_copy(
        update={
            "alive_since": (memory.alive_since or seen.at) if alive else None,
            "missing_since": (memory.missing_since or seen.at) if missing else None,
        }
    )
    cadence = contract.cadence.check or _DEFAULT_CADENCE
    if memory.alive_since is not None and seen.at - memory.alive_since >= cadence:
        return Fail(finding=_alive_finding(seen, alive, memory.instance, memory.alive_since)), memory
    if memory.missing_since is not None and seen.at - memory.missing_since >= cadence:
        return Fail(finding=_missing_finding(seen, missing, memory.instance, memory.missing_since, limits)), memory
    if alive or missing:
        return NotApplicable(reason="the two contradict each other for less than a cadence"), memory
    return (Pass() if memory.had_pods else NotApplicable(reason="no pod of this launch was ever seen")), memory


def _gap(seen: Snapshot) -> UnknownVerdict | NotApplicable | None:
    if isinstance(seen.pods, Unknown):
        if seen.pods.reason is Gap.NOT_CONFIGURED:
            return NotApplicable(reason=f"pods are not read: {seen.pods.detail}")
        return unseen(seen.pods, "what Kubernetes runs is not known")
    return unseen(seen.jobs, "what the jobs are is not known") if isinstance(seen.jobs, Unknown) else None


def _without_job(seen: Snapshot) -> tuple[Pod, ...]:
    """Return the live pods whose job has ended or is not known to the orchestrator; a namesake's old ones too."""
    living = {job.job_id for job in listed(seen) if not job.state.is_terminal}
    pods = seen.pods.value if isinstance(seen.pods, Known) else ()
    return tuple(pod for pod in pods if pod.is_live and pod.job_id not in living)


def _without_pods(seen: Snapshot, memory: Opposed) -> tuple[Job, ...]:
    """Return the running jobs whose pods were seen once and of which none lives."""
    alive = {pod.job_id for pod in pods_of_instance(seen) if pod.is_live}
    return tuple(
        job
        for job in listed(seen)
        if job.state is JobState.RUNNING and job.job_id in memory.had_pods and job.job_id not in alive
    )


def _runs(job: Job) -> bool:
    """Whether a task of it runs; between two attempts a job that runs has no pod."""
    return isinstance(job.tasks, Known) and any(task.state is TaskState.RUNNING for task in job.tasks.value)


def _alive_finding(seen: Snapshot, alive: tuple[Pod, ...], instance: str, since: AwareDatetime) -> Finding:
    is_going = all(pod.deleted_at is not None for pod in alive)
    return Finding(
        check=CONTRADICT_ID,
        key=f"alive {instance}",
        severity=Severity.WARNING if is_going else Severity.CRITICAL,
        summary=f"{len(alive)} pods have lived on for {say_duration(seen.at - since)} whose job is over or gone to the "
        "orchestrator: they may still write, and hold their accelerators"
        + (" (all have been asked to end)" if is_going else ""),
        evidence=tuple(map(_say, alive[:_NAMED])),
        advice="Do not relaunch by hand, there would be two writers of one output root; Hero waits with its own until "
        "they are gone. See whether their node is lost; delete them only when nothing of them runs any more.",
        since_at=since,
    )


def _missing_finding(
    seen: Snapshot, missing: tuple[Job, ...], instance: str, since: AwareDatetime, limits: PodThresholds
) -> Finding:
    stamp = stamp_of(told(seen))
    is_heard = stamp is not None and seen.at - stamp <= limits.fresh
    heard = "and its trainer is still heard" if is_heard else "and no trainer is heard"
    return Finding(
        check=CONTRADICT_ID,
        key=f"missing {instance}",
        severity=Severity.WARNING if is_heard else Severity.CRITICAL,
        summary=f"{missing[0].job_id} runs to the orchestrator, and has had no live pod for "
        f"{say_duration(seen.at - since)}, {heard}",
        evidence=tuple(f"{job.job_id}: {job.state}, no live pod" for job in missing[:_NAMED]),
        advice="If it trains, [kubernetes] namespace or selector misses its pods. If it does not, the orchestrator has "
        "not noticed that they are gone: tell its owners, and relaunch only once it says so too.",
        since_at=since,
    )


def _say(pod: Pod) -> str:
    ending = "" if pod.deleted_at is None else f", to be gone by {pod.deleted_at:%Y-%m-%d %H:%M} UTC"
    return f"{pod.place}: {pod.phase}{f' ({pod.reason})' if pod.reason else ''}{ending}"


CONTRADICT = Check(
    id=CONTRADICT_ID,
    title="Kubernetes and the orchestrator contradict each other",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.PODS),
    source='manage-hero-run, "What Can Go Wrong": stale allocation, duplicate live coordinators; ours: after a cadence',
    thresholds=PodThresholds(),
    memory=Opposed(),
    judge=contradict,
)


class DuplicateThresholds(Thresholds):
    overlap: Duration = timedelta(minutes=10)
    """How long a task's old pod may live beside its new one. Ours: twenty times the grace of 30 s that Kubernetes gives
    a pod to end."""


class Twice(Value):
    """Since which look each task has had more than one live pod."""

    since: dict[str, AwareDatetime] = {}


def duplicate(seen: Snapshot, _contract: Contract, limits: DuplicateThresholds, memory: Twice) -> tuple[Verdict, Twice]:
    """Fail when two pods of one task live for longer than the one takes to end."""
    if isinstance(seen.pods, Unknown):
        gap = _gap(seen)
        return gap if gap is not None else Pass(), memory
    by_task: dict[str, list[Pod]] = {}
    for pod in seen.pods.value:
        if pod.is_live:
            by_task.setdefault(pod.task_id, []).append(pod)
    twice = {task: pods for task, pods in by_task.items() if len(pods) > 1}
    memory = Twice(since={task: memory.since.get(task, seen.at) for task in sorted(twice)[:_KEPT]})
    late = {task: twice[task] for task, since in memory.since.items() if seen.at - since > limits.overlap}
    if not late:
        return (NotApplicable(reason="a pod may live on beside its successor for a while") if twice else Pass()), memory
    since = min(memory.since[task] for task in late)
    return Fail(finding=_twice_finding(seen, late, since, limits.overlap)), memory


def _twice_finding(seen: Snapshot, late: dict[str, list[Pod]], since: AwareDatetime, limit: timedelta) -> Finding:
    writers = {
        task: sum(pod.phase == "Running" and pod.deleted_at is None for pod in pods) for task, pods in late.items()
    }
    first = next(iter(late))
    return Finding(
        check=DUPLICATE_ID,
        key=instance_of(seen, ""),
        severity=Severity.CRITICAL if max(writers.values()) > 1 else Severity.WARNING,
        summary=f"{len(late)} tasks have more than one live pod for {say_duration(seen.at - since)} "
        f"(limit {say_duration(limit)}), {first} first: they write the same checkpoints and metrics",
        evidence=tuple(map(_say, [pod for pods in late.values() for pod in pods][:_NAMED])),
        advice="Find out which pod belongs to the current attempt, and whether the other's node still runs it. Trust "
        "no checkpoint that was saved meanwhile until its step and lineage are checked.",
        since_at=since,
    )


DUPLICATE = Check(
    id=DUPLICATE_ID,
    title="A task lives in two pods",
    severity=Severity.CRITICAL,
    needs=(Source.PODS,),
    source='deploy checklist, "Rehearse preflight and rollback": exactly one coordinator; kubernetes.io, "Pod '
    'Lifecycle": a pod on a lost node may run on',
    thresholds=DuplicateThresholds(),
    memory=Twice(),
    judge=duplicate,
)
