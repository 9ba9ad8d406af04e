"""Why a job ended: which task died first and how, what the log says of it, and what to do then.

The checks ``job.ended`` and ``job.repeated`` judge by what is gathered here.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

from bot.model.crash import Classification, CrashClass, RelaunchAdvice
from bot.model.job import Job, JobState, Task, TaskState
from bot.model.pods import Pod
from bot.model.reading import Known, Unknown
from bot.model.snapshot import LogLine, Snapshot
from checks.crash.classify import classify
from checks.current import known_tasks, listed, unread_tasks
from checks.kin import own_lines
from checks.witnesses import pods_of_instance

_CASCADE = frozenset({TaskState.KILLED, TaskState.COSCHED_FAILED})
"""States of tasks that were taken down with another one."""
_ALIVE_OR_WELL = frozenset(
    {TaskState.PENDING, TaskState.BUILDING, TaskState.ASSIGNED, TaskState.RUNNING, TaskState.SUCCEEDED}
)
_LATEST = datetime.max.replace(tzinfo=UTC)
_CONSEQUENCES = "network."
"""The classifier's rules for lost peers and collective time-outs: what one rank's end looks like to the others."""
_EVIDENCE_LINES = 3
_EXITS_SHOWN = 6
_SAYS_NOTHING = frozenset({"", "Error", "Completed"})
"""What Kubernetes says of a container that ended by itself."""

ADVICE: dict[CrashClass, str] = {
    CrashClass.INFRA_PREEMPTION: "Relaunch the same run from its newest complete checkpoint, and see that it gets past "
    "this step.",
    CrashClass.INFRA_HARDWARE: "Relaunch the same run from its newest complete checkpoint; if this node fails again, "
    "keep the run off it.",
    CrashClass.OOM_HOST: "The same command would run out of host memory again: raise the memory of the request "
    "(iris: --memory) or find the leak, then relaunch.",
    CrashClass.OOM_DEVICE: "The same command would run out of accelerator memory again: reduce what is held per device "
    "(batch, sequence, rematerialisation, mesh), which may change the trajectory; the DRI decides.",
    CrashClass.CODE_BUG_SMALL: "Fix the named place first. A fix outside model, loop, optimizer and data keeps the "
    "run's id; anything else needs the DRI's word and a new run id.",
    CrashClass.CODE_BUG_COMPLEX: "Find the cause first; a blind relaunch would meet the same bug.",
    CrashClass.CONFIG: "Correct the configuration first: compare it with the last instance that ran.",
    CrashClass.DATA: "Look at the named file, shard or checkpoint first; a relaunch would read it again.",
    CrashClass.CAPACITY: "There are no machines for it: wait, or ask the cluster's owners. Hero changes no cluster.",
    CrashClass.NUMERICAL: "Do not relaunch it as if it were infrastructure: look at loss and gradient norm before "
    "this step, and let the DRI choose a checkpoint and a remedy.",
    CrashClass.BENIGN: "The log tells of a good end but the job failed: check the final checkpoint and artifacts by "
    "hand.",
    CrashClass.UNKNOWN: "The cause is not known. Look at host memory, the node's kernel log and the scheduler's events "
    "around that time; a relaunch may meet the same end again.",
}


class Death(NamedTuple):
    """The task that died first, as far as the states tell."""

    job: Job
    task: Task

    @property
    def exit_code(self) -> int | None:
        attempt = self.task.current_attempt
        return self.task.exit_code if attempt is None or attempt.exit_code is None else attempt.exit_code

    @property
    def node(self) -> str | None:
        return self.task.current_attempt.node if self.task.current_attempt else None

    @property
    def place(self) -> str:
        """``task /me/job/3 attempt 1 on node-7``."""
        attempt = self.task.current_attempt
        tried = "" if attempt is None else f" attempt {attempt.attempt}"
        return f"task {self.task.task_id}{tried}{f' on {self.node}' if self.node else ''}"


class End(NamedTuple):
    """All that a snapshot tells about the end of the run's job."""

    job: Job
    death: Death | None
    classification: Classification
    gaps: tuple[str, ...]
    """What could not be read; with any of these nothing may be proposed."""
    pods: tuple[str, ...] = ()
    """What Kubernetes says of the pod that died first, where it says why."""
    node: str | None = None
    """Where the cause showed itself: of the task that printed the deciding line, else of the one that died first. None
    when all that is known are consequences, a collective's time-out or a lost peer, which show on every other node."""

    @property
    def is_recoverable(self) -> bool:
        """Whether a relaunch may be put to the DRI as a question: infrastructure, or a cause that nobody can tell.

        For an unknown cause the question says that it is unknown. Code, configuration, data, numbers, memory and
        capacity need something else first.
        """
        advised = self.classification.relaunch is RelaunchAdvice.SAME_ID
        asked = self.classification.crash_class in {
            CrashClass.UNKNOWN,
            CrashClass.INFRA_PREEMPTION,
            CrashClass.INFRA_HARDWARE,
        }
        return (advised or asked) and self.job.state is not JobState.UNSCHEDULABLE and not self.gaps

    @property
    def advice(self) -> str:
        if self.job.state is JobState.UNSCHEDULABLE:
            return ADVICE[CrashClass.CAPACITY]
        advice = ADVICE[self.classification.crash_class]
        if self.gaps:
            return f"Hero could not read everything, so it proposes nothing yet; look by hand. If this is it: {advice}"
        if self.classification.relaunch is RelaunchAdvice.ASK and self.is_recoverable:
            return f"The signs do not prove a cause, so read the log before you say yes. {advice}"
        return advice


def end_of(seen: Snapshot, job: Job) -> End:
    """Return what is known about the end of ``job`` and its children."""
    jobs = listed(seen)
    death = first_death(jobs)
    printed = tuple(_last_words(seen, jobs))
    pods = _pods_of(seen, death)
    text = (*(line.text for line in printed), *_errors(job, death), *(f"Kubernetes: {pod.reason}" for pod in pods))
    gaps = []
    if isinstance(seen.log, Unknown):
        gaps.append(f"the log could not be read: {seen.log.detail}")
    if gap := unread_tasks(jobs):
        gaps.append(f"tasks could not be read: {gap.detail}")
    found = classify(text, death.exit_code if death else None)
    node = node_of_cause(found, printed, jobs, death.node if death else None)
    return End(job, death, found, tuple(gaps), tuple(map(_say_pod, pods)), node)


def _pods_of(seen: Snapshot, death: Death | None) -> tuple[Pod, ...]:
    """Return the pods of the attempt that died and that say why.

    The container's OOMKilled proves what an exit code of 137 or a bare "Killed" does not.
    """
    attempt = death.task.current_attempt if death is not None else None
    if death is None or attempt is None:
        return ()
    mine = [pod for pod in pods_of_instance(seen) if pod.task_id == death.task.task_id and not pod.is_live]
    if any(pod.attempt_uid == attempt.uid for pod in mine):
        mine = [pod for pod in mine if pod.attempt_uid == attempt.uid]
    return tuple(pod for pod in mine if pod.attempt == attempt.attempt and pod.reason not in _SAYS_NOTHING)


def _say_pod(pod: Pod) -> str:
    return f"{pod.place}: {pod.reason}" + ("" if pod.exit_code is None else f", exit code {pod.exit_code}")


def node_of_cause(
    found: Classification, printed: tuple[LogLine, ...], jobs: tuple[Job, ...], first_to_die: str | None
) -> str | None:
    """Return the node on which the cause showed itself; None when only consequences of one are known.

    Whoever dies first need not be the one to blame: peers of a rank that hangs or is lost time out and abort, often
    before that rank itself is taken down.

    Args:
        found: what the classifier made of the log.
        printed: the lines that it read, in that order.
        jobs: where the tasks are looked up.
        first_to_die: the node of the task that died first.
    """
    if found.signature.startswith(_CONSEQUENCES):
        return None
    line = _line(found.evidence[0].line, printed) if found.evidence else None
    if line is None or line.task is None:
        return first_to_die
    for _, task in known_tasks(jobs):
        if task.task_id == line.task:
            attempts = [each for each in task.attempts if line.attempt in {None, each.attempt}]
            return attempts[-1].node if attempts else None
    return None


def _line(number: int, printed: tuple[LogLine, ...]) -> LogLine | None:
    """Return the printed line that holds line ``number`` of their text, counted from 1; None beyond their end."""
    for line in printed:
        number -= 1 + line.text.count("\n")
        if number <= 0:
            return line
    return None


def first_death(jobs: tuple[Job, ...]) -> Death | None:
    """Return the task that most likely began it: no victim of another, in the innermost job, the earliest.

    A coordinator fails because its child did, and a gang is taken down with its first victim.
    """
    dead = [Death(job, task) for job, task in known_tasks(jobs) if task.state not in _ALIVE_OR_WELL]
    return min(
        dead,
        key=lambda each: (
            each.task.state in _CASCADE,
            -each.job.job_id.count("/"),
            each.task.finished_at or _LATEST,
            each.task.index,
        ),
        default=None,
    )


def _last_words(seen: Snapshot, jobs: tuple[Job, ...]) -> Iterator[LogLine]:
    """Yield the log without what earlier attempts of the same tasks printed."""
    if isinstance(seen.log, Unknown):
        return
    newest = {task.task_id: task.current_attempt.attempt for _, task in known_tasks(jobs) if task.current_attempt}
    for line in own_lines(seen):
        wanted = newest.get(line.task) if line.task is not None else None
        if wanted is None or line.attempt is None or line.attempt == wanted:
            yield line


def _errors(job: Job, death: Death | None) -> tuple[str, ...]:
    """Return what the orchestrator says, innermost first: often the trainer's last line, also without a log."""
    said = [job.error]
    if death is not None:
        attempt = death.task.current_attempt
        said = [attempt.error if attempt else "", death.task.error, death.job.error, job.error]
    return tuple(dict.fromkeys(text for text in said if text))


def evidence_of(end: End) -> tuple[str, ...]:
    """Return the facts of an end for people, each one line."""
    found: list[str] = []
    if end.death is not None:
        found.append(f"first to die: {end.death.place}, {say_exit(end.death.exit_code)}")
        if exits := _exits(end):
            found.append(exits)
        if memory := _memory(end.death):
            found.append(memory)
    if end.classification.location is not None:
        where = end.classification.location
        found.append(f"in {where.file}:{where.line} ({where.function})")
    found.extend(f"Kubernetes: {each}" for each in end.pods)
    found.extend(f"log: {line.text}" for line in end.classification.evidence[:_EVIDENCE_LINES])
    if not end.classification.evidence and end.job.error:
        found.append(f"orchestrator: {' '.join(end.job.error.split())[:300]}")
    found.extend(end.gaps)
    return tuple(found)


def say_exit(code: int | None) -> str:
    """``exit code 1``, ``killed by signal 9``, or that nobody knows."""
    if code is None:
        return "exit code not known"
    return f"killed by signal {-code} (exit code {code})" if code < 0 else f"exit code {code}"


def _exits(end: End) -> str:
    tasks = end.death.job.tasks if end.death else None
    if not isinstance(tasks, Known) or len(tasks.value) == 1:
        return ""
    counted = Counter(task.exit_code for task in tasks.value)
    shown = ", ".join(f"{_say_code(code)} ({n} tasks)" for code, n in counted.most_common(_EXITS_SHOWN))
    return f"exit codes of {len(tasks.value)} tasks: {shown}"


def _say_code(code: int | None) -> str:
    return "none" if code is None else str(code)


def _memory(death: Death) -> str:
    peak = death.task.peak_memory_bytes
    if peak is None:
        return ""
    others = [
        task.peak_memory_bytes
        for _, task in known_tasks((death.job,))
        if task is not death.task and task.peak_memory_bytes is not None
    ]
    beside = f"; the other {len(others)} tasks: median {_say_bytes(median(others))}" if others else ""
    return f"peak memory of task {death.task.index}: {_say_bytes(peak)}{beside}"


def _say_bytes(value: float) -> str:
    return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"
