"""The ledger of a run's failures, over its instances and their retries: is it failing in the same place again?

One failure is one life that ended badly: an attempt of an innermost job, or the job itself where there are no attempts.
A failure leaves the ledger when a later life gets beyond the window it died in, and by nothing else: a start that lasts
a few minutes, or progress that nobody saw, forgives nothing (field report R50).
"""

from collections.abc import Iterator
from datetime import timedelta

from pydantic import AwareDatetime

from bot.model.crash import CrashClass
from bot.model.job import Attempt, Job, JobState, TaskState
from bot.model.reading import Known, Unknown
from bot.model.snapshot import LogLine, Snapshot
from bot.model.value import Value
from checks.crash.classify import classify
from checks.current import instance_of, known_tasks, listed
from checks.endings import end_of, node_of_cause
from checks.kin import is_below

KEPT = 20
"""So many failures are remembered."""

WHOLE = -1
"""In place of an attempt's number: the job as a whole."""

BY_STATE = {
    TaskState.WORKER_FAILED: ("hardware.worker_lost", CrashClass.INFRA_HARDWARE),
    TaskState.PREEMPTED: ("preemption.taken_back", CrashClass.INFRA_PREEMPTION),
}
"""Signature and class of a life that the machine ended, by the orchestrator's word, where the log does not tell."""

FAILED_JOBS = frozenset({JobState.FAILED, JobState.WORKER_FAILED, JobState.UNSCHEDULABLE})
_FAILED_ATTEMPTS = frozenset({TaskState.FAILED, TaskState.WORKER_FAILED, TaskState.PREEMPTED})
_TAKEN_AWAY = frozenset({TaskState.WORKER_FAILED, TaskState.PREEMPTED})


class Failure(Value):
    """One life that ended badly: an attempt of a job."""

    job: str
    """The instance of the innermost job."""
    attempt: int
    """Its number there; ``WHOLE`` for a job of which no task is known to have died."""
    instance: str = ""
    """The run's own job that it was a life of."""
    signature: str
    """The classifier's; equal for the same root cause."""
    crash_class: CrashClass = CrashClass.UNKNOWN
    was_taken_away: bool = False
    """The orchestrator retried it after it lost the machine: tells nothing about the run, but for how long it lived."""
    step: int | None = None
    """The last step known before it; None when there was none."""
    floor: int = 0
    """The highest step that the run was known to have reached by then."""
    lived: timedelta | None = None
    node: str | None = None
    """Where its cause showed itself; None when that is not known."""
    at: AwareDatetime
    is_settled: bool = True
    """Whether log and metrics were there when it was recorded; until then rows of its own instance are no progress."""

    @property
    def mark(self) -> int:
        """The step beyond which there is progress."""
        return self.floor if self.step is None else self.step


class Ledger(Value):
    """The failures that no progress has passed yet, oldest first, and where the run is."""

    failures: tuple[Failure, ...] = ()
    counted: dict[str, int] = {}
    """Of every listed job instance: the highest attempt that was taken in, so that none is twice."""
    instance: str = ""
    step: int | None = None
    """The newest step of this instance."""
    best: int = 0
    """The highest step of the run."""

    def after(self, seen: Snapshot, window_steps: int, window_fraction: float) -> "Ledger":
        """Return the ledger with a snapshot's progress and failures taken in."""
        rows = seen.metrics.value.rows if isinstance(seen.metrics, Known) else ()
        current = instance_of(seen, self.instance)
        step = self.step if current == self.instance else None
        top = max((row.step for row in rows), default=0)
        book = Ledger(
            failures=tuple(
                f
                for f in self.failures
                if top <= f.mark + window(f.mark, window_steps, window_fraction)
                or (f.instance == current and not f.is_settled)
            ),
            counted=self.counted,
            instance=current,
            step=rows[-1].step if rows else step,
            best=max(self.best, top),
        )
        if isinstance(seen.jobs, Unknown):
            return book
        return book.with_failures(seen, is_first_look=not self.instance)

    def with_failures(self, seen: Snapshot, *, is_first_look: bool) -> "Ledger":
        """Return the ledger with the failures that the listed jobs show, and with those completed that were half read.

        On the first look what was retried before is only counted: Hero did not see how far it got.
        """
        kept = {(failure.job, failure.attempt): failure for failure in self.failures}
        counted = {job.instance_id: self.counted.get(job.instance_id, WHOLE - 1) for job in listed(seen)}
        found: list[Failure] = []
        final = _final_failure(seen)
        if final is not None and self._wants(final.job, final.attempt):
            found.append(final)
            whole = (self.instance, WHOLE)
            if whole in kept and whole != (final.job, final.attempt):
                del kept[whole]  # recorded before its tasks could be read
        for job, number, died in _deaths(seen):
            is_final = final is not None and (final.job, final.attempt) == (job.instance_id, number)
            if not is_final and not is_first_look and self._wants(job.instance_id, number):
                found.append(_retried_failure(seen, job, number, died))
            counted[job.instance_id] = max(counted[job.instance_id], number)
        if final is not None:
            counted[final.job] = max(counted[final.job], final.attempt)
        kept |= {(each.job, each.attempt): self._placed(each, seen) for each in found}
        ordered = sorted(kept.values(), key=lambda each: each.at)
        return self.model_copy(update={"failures": tuple(ordered[-KEPT:]), "counted": counted})

    def _wants(self, job: str, attempt: int) -> bool:
        """Return whether a failure is new, or was recorded half blind."""
        old = next((f for f in self.failures if (f.job, f.attempt) == (job, attempt)), None)
        return attempt > self.counted.get(job, WHOLE - 1) if old is None else not old.is_settled

    def _placed(self, failure: Failure, seen: Snapshot) -> Failure:
        """Return a failure with the step at which it happened, as far as that is known."""
        rows = seen.metrics.value.rows if isinstance(seen.metrics, Known) else ()
        timed = [row.step for row in rows if row.at is not None and row.at <= failure.at]
        return failure.model_copy(
            update={
                "instance": self.instance,
                "step": timed[-1] if timed else self.step,
                "floor": self.best,
                "is_settled": isinstance(seen.metrics, Known) and isinstance(seen.log, Known),
            }
        )


def _final_failure(seen: Snapshot) -> Failure | None:
    """Return the failure that ended the run's job; None when it lives, was stopped, or succeeded."""
    root = seen.job
    if root is None or root.state not in FAILED_JOBS:
        return None
    end = end_of(seen, root)
    died = end.death.task.current_attempt if end.death else None
    began = (died.started_at if died else None) or root.started_at
    at = root.finished_at or seen.at
    return Failure(
        job=(end.death.job if end.death else root).instance_id,
        attempt=WHOLE if end.death is None else died.attempt if died else 0,
        signature=end.classification.signature,
        crash_class=end.classification.crash_class,
        lived=at - began if began else None,
        node=end.node,
        at=at,
    )


def _deaths(seen: Snapshot) -> Iterator[tuple[Job, int, Attempt]]:
    """Yield every attempt of every innermost job that ended badly."""
    jobs = listed(seen)
    for job in jobs:
        if not any(is_below(other, job) for other in jobs):
            for number, died in _first_deaths(job).items():
                yield job, number, died


def _first_deaths(job: Job) -> dict[int, Attempt]:
    """Return of each retry of a job the attempt that died first, leaving out what was taken down with it."""
    first: dict[int, Attempt] = {}
    for _, task in known_tasks((job,)):
        for each in task.attempts:
            if each.state not in _FAILED_ATTEMPTS:
                continue
            known = first.get(each.attempt)
            if known is None or _ended_before(each, known):
                first[each.attempt] = each
    return first


def _ended_before(one: Attempt, other: Attempt) -> bool:
    return one.finished_at is not None and (other.finished_at is None or one.finished_at < other.finished_at)


def _retried_failure(seen: Snapshot, job: Job, number: int, died: Attempt) -> Failure:
    printed: tuple[LogLine, ...] = ()
    if isinstance(seen.log, Known):
        lines = seen.log.value.lines
        printed = tuple(line for line in lines if line.attempt == died.attempt and _is_of(line.task, job))
    found = classify([*(line.text for line in printed), died.error], died.exit_code)
    signature, crash_class = found.signature, found.crash_class
    if crash_class is CrashClass.UNKNOWN:
        signature, crash_class = BY_STATE.get(died.state, (signature, crash_class))
    at = died.finished_at or seen.at
    return Failure(
        job=job.instance_id,
        attempt=number,
        signature=signature,
        crash_class=crash_class,
        was_taken_away=died.state in _TAKEN_AWAY and not job.state.is_terminal,
        lived=at - died.started_at if died.started_at else None,
        node=node_of_cause(found, printed, (job,), died.node),
        at=at,
    )


def _is_of(task: str | None, job: Job) -> bool:
    return task is not None and task.startswith(f"{job.job_id}/")


def window(step: int, steps: int, fraction: float) -> int:
    """Return how far two steps may lie apart and still be the same place."""
    return max(steps, round(step * fraction))
