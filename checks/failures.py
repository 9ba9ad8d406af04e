"""The ledger of a run's failures, over its instances and their retries: is it failing in the same place again?

One failure is one life that ended badly: an attempt of an innermost job, or the job itself where there are no attempts.
A failure leaves the ledger when a later life gets beyond the window it died in, and by nothing else: a start that lasts
a few minutes, or progress that nobody saw, forgives nothing (field report R50).
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import NamedTuple

from pydantic import AwareDatetime

from bot.model.job import Attempt, Job, JobState, TaskState
from bot.model.reading import Known, Unknown
from bot.model.snapshot import MetricRow, Snapshot
from bot.model.value import Value
from checks.crash.classify import classify
from checks.current import instance_of, is_below, known_tasks, listed
from checks.endings import end_of

KEPT = 20
"""So many failures are remembered."""

FAILED_JOBS = frozenset({JobState.FAILED, JobState.WORKER_FAILED, JobState.UNSCHEDULABLE})
_FAILED_ATTEMPTS = frozenset({TaskState.FAILED, TaskState.WORKER_FAILED, TaskState.PREEMPTED})
_TAKEN_AWAY = frozenset({TaskState.WORKER_FAILED, TaskState.PREEMPTED})


class Failure(Value):
    """One life that ended badly."""

    life: str
    """The innermost job's instance and the number of its attempt."""
    instance: str = ""
    """The run's own job that it was a life of."""
    signature: str
    """The classifier's; equal for the same root cause."""
    was_taken_away: bool = False
    """The orchestrator retried it after it lost the machine: tells nothing about the run, but for how long it lived."""
    step: int | None = None
    """The last step known before it; None when there was none."""
    floor: int = 0
    """The highest step that the run was known to have reached by then."""
    lived: timedelta | None = None
    node: str | None = None
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
        top = max((row.step for row in rows), default=None)
        left = self.failures
        if top is not None:
            reach = tuple(f.mark + window(f.mark, window_steps, window_fraction) for f in left)
            left = tuple(
                f
                for f, end in zip(left, reach, strict=True)
                if top <= end or (f.instance == current and not f.is_settled)
            )
        book = Ledger(
            failures=left,
            instance=current,
            step=rows[-1].step if rows else step,
            best=max(self.best, top or 0),
        )
        return book.with_failures(_failures_in(seen, history=bool(self.instance)), rows, seen)

    def with_failures(self, found: Iterable[Failure], rows: tuple[MetricRow, ...], seen: Snapshot) -> "Ledger":
        """Return the ledger with failures added, and those completed that were recorded half blind."""
        kept = {failure.life: failure for failure in self.failures}
        for failure in found:
            old = kept.get(failure.life)
            if old is not None and old.is_settled:
                continue
            step = _step_before(failure, rows)
            known = {
                "instance": self.instance,
                "step": self.step if step is None else step,
                "floor": self.best,
                "is_settled": _is_lit(seen),
            }
            kept[failure.life] = failure.model_copy(update=known)
        ordered = sorted(kept.values(), key=lambda each: each.at)
        return self.model_copy(update={"failures": tuple(ordered[-KEPT:])})


class Pattern(NamedTuple):
    """Failures that belong together, and how."""

    what: str
    failures: tuple[Failure, ...]


def window(step: int, steps: int, fraction: float) -> int:
    """Return how far two steps may lie apart and still be the same place."""
    return max(steps, round(step * fraction))


def pattern_in(
    failures: tuple[Failure, ...], *, loop: int, short: timedelta, window_steps: int, window_fraction: float
) -> Pattern | None:
    """Return how the newest failures repeat; None when they do not.

    Args:
        failures: that no progress has passed, oldest first.
        loop: so many short lives in a row are a crash loop.
        short: a life below this is short.
        window_steps: steps within so many of each other are the same place,
        window_fraction: or within this fraction of the step.
    """
    told = tuple(failure for failure in failures if not failure.was_taken_away)
    if told:
        last = told[-1]
        same = tuple(failure for failure in told if failure.signature == last.signature)
        if len(same) > 1:
            return Pattern(f"the same failure {len(same)} times", same)
        near = tuple(
            failure
            for failure in told
            if failure.step is not None
            and last.step is not None
            and abs(failure.step - last.step) <= window(last.step, window_steps, window_fraction)
        )
        if len(near) > 1:
            return Pattern(f"{len(near)} failures in the same place", near)
    lives = failures[-loop:]
    if len(lives) == loop and all(life.lived is not None and life.lived < short for life in lives):
        return Pattern(f"{loop} short lives in a row", lives)
    return None


def _is_lit(seen: Snapshot) -> bool:
    return not isinstance(seen.metrics, Unknown) and not isinstance(seen.log, Unknown)


def _step_before(failure: Failure, rows: tuple[MetricRow, ...]) -> int | None:
    """Return the last step logged before the failure, as far as the rows are timed."""
    timed = [row.step for row in rows if row.at is not None and row.at <= failure.at]
    return timed[-1] if timed else None


def _failures_in(seen: Snapshot, *, history: bool) -> Iterator[Failure]:
    """Yield the lives that a snapshot shows to have ended badly.

    Args:
        seen: the snapshot.
        history: False when Hero looks at this run for the first time: what was retried before is not counted then.
    """
    jobs = listed(seen)
    root = seen.job
    ended = ""
    if root is not None and root.state in FAILED_JOBS:
        final = _final_failure(seen, root)
        ended = final.life
        yield final
    if not history:
        return
    for job in jobs:
        if any(is_below(other, job) for other in jobs):
            continue
        for number, first in _first_deaths(job).items():
            life = f"{job.instance_id}#{number}"
            if life != ended:
                yield _retried_failure(seen, job, life, first)


def _final_failure(seen: Snapshot, root: Job) -> Failure:
    end = end_of(seen, root)
    at = root.finished_at or seen.at
    if end.death is None:
        life, began = root.instance_id, root.started_at
    else:
        attempt = end.death.task.current_attempt
        life = f"{end.death.job.instance_id}#{attempt.attempt if attempt else 0}"
        began = (attempt.started_at if attempt else None) or root.started_at
    return Failure(
        life=life,
        signature=end.classification.signature,
        lived=at - began if began else None,
        node=end.death.node if end.death else None,
        at=at,
    )


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


def _retried_failure(seen: Snapshot, job: Job, life: str, died: Attempt) -> Failure:
    said = [died.error]
    if isinstance(seen.log, Known):
        printed = seen.log.value.lines
        said = [line.text for line in printed if line.attempt == died.attempt and _is_of(line.task, job)] + said
    at = died.finished_at or seen.at
    return Failure(
        life=life,
        signature=classify(said, died.exit_code).signature,
        was_taken_away=died.state in _TAKEN_AWAY and not job.state.is_terminal,
        lived=at - died.started_at if died.started_at else None,
        node=died.node,
        at=at,
    )


def _is_of(task: str | None, job: Job) -> bool:
    return task is not None and task.startswith(f"{job.job_id}/")
