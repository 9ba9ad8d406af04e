"""What can go wrong with saved states: steps move and none appears, or the newest one never gets complete."""

from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.reading import Known, Unknown
from bot.model.snapshot import Checkpoint, Snapshot, Source, newest_complete
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import is_final, not_running, unseen
from checks.progress import Pace
from checks.thresholds import Thresholds

STALLED_ID = CheckId("checkpoint.stalled")
INCOMPLETE_ID = CheckId("checkpoint.incomplete")

_INTERVALS_KEPT = 16


class Saves(Value):
    """When this instance saved, and how often it does."""

    pace: Pace = Pace()
    trained_from: AwareDatetime | None = None
    """When this instance logged its first step."""
    first_step: int | None = None
    step: int | None = None
    """Of the newest complete checkpoint."""
    at: AwareDatetime | None = None
    """When that was saved, as near as is known."""
    intervals_s: tuple[float, ...] = ()
    """Seconds between two saves of one instance, the newest ones."""
    interval_steps: tuple[int, ...] = ()

    def after(self, seen: Snapshot) -> "Saves":
        """Return the memory with new rows and new checkpoints taken in; a new instance keeps only the saves."""
        pace = self.pace.after(seen)
        is_same = pace.instance == self.pace.instance
        trained, first = (self.trained_from, self.first_step) if is_same else (None, None)
        if trained is None and pace.moved_at is not None and isinstance(seen.metrics, Known):
            rows = seen.metrics.value.rows
            trained = min(rows[0].at, pace.moved_at) if rows and rows[0].at else pace.moved_at
            first = rows[0].step if rows else pace.step
        mine = self.model_copy(update={"pace": pace, "trained_from": trained, "first_step": first})
        saved = _last_saved(seen.checkpoints.value) if isinstance(seen.checkpoints, Known) else None
        return mine if saved is None or not mine.is_news(saved) else mine.with_save(saved, seen.at)

    def with_save(self, saved: Checkpoint, now: datetime) -> "Saves":
        """Return the memory after a new save; two saves of one instance tell the interval, down time is none."""
        at = min(saved.saved_at or now, now)
        before, trained = self.at, self.trained_from
        if before is None or self.step is None or trained is None or not trained <= before < at:
            return self.model_copy(update={"step": saved.step, "at": at})
        return self.model_copy(
            update={
                "step": saved.step,
                "at": at,
                "intervals_s": (*self.intervals_s, (at - before).total_seconds())[-_INTERVALS_KEPT:],
                "interval_steps": (*self.interval_steps, abs(saved.step - self.step))[-_INTERVALS_KEPT:],
            }
        )

    def is_news(self, saved: Checkpoint) -> bool:
        """Return whether this is another save: also of the same step, or of a lower one after a rollback."""
        return saved.step != self.step or bool(saved.saved_at and self.at and saved.saved_at > self.at)


def _last_saved(checkpoints: tuple[Checkpoint, ...]) -> Checkpoint | None:
    """Return the complete checkpoint that was saved last; by step when not all tell when that was.

    After a rollback a checkpoint of the rejected lineage may have a higher step than the ones that are saved now.
    """
    dated = {c.saved_at: c for c in checkpoints if c.is_complete and c.saved_at is not None}
    if dated and all(c.saved_at is not None for c in checkpoints if c.is_complete):
        return dated[max(dated)]
    return newest_complete(checkpoints)


class Behind(NamedTuple):
    """How much work no checkpoint holds."""

    time: timedelta
    steps: int
    since: datetime


class StalledThresholds(Thresholds):
    factor: float = Field(default=3, gt=1)
    """A save may be late by so many times this run's usual interval, in time and in steps. Ours: two missed saves may
    be bad luck, the third is not."""

    first: Duration = timedelta(hours=3)
    """As long as two saves were not seen: how long steps may move without one. Ours: three times the hourly save that
    is usual for a large run."""

    least: Duration = timedelta(minutes=30)
    """Nothing shorter counts, however often a run saves. Ours: the time one save may take."""


def stalled(seen: Snapshot, contract: Contract, limits: StalledThresholds, memory: Saves) -> tuple[Verdict, Saves]:
    """Fail when steps move and no new complete checkpoint appears for much longer than usual."""
    memory = memory.after(seen)
    if (verdict := not_running(seen)) is not None:
        return verdict, memory
    for reading, what in ((seen.checkpoints, "checkpoints"), (seen.metrics, "steps")):
        if isinstance(reading, Unknown):
            return unseen(reading, f"whether {what} advance is not known"), memory
    behind = _behind(memory)
    if behind is None or is_final(memory.pace.step, contract.final_step):
        return NotApplicable(reason="no steps to save"), memory
    limit, limit_steps = limits.first, 0
    if memory.intervals_s:
        limit = max(limits.least, timedelta(seconds=median(memory.intervals_s)) * limits.factor)
        limit_steps = round(median(memory.interval_steps) * limits.factor)
    if behind.time <= limit or behind.steps < limit_steps:
        return Pass(), memory
    return Fail(finding=_stalled_finding(memory, behind, limit)), memory


def _behind(memory: Saves) -> Behind | None:
    """Return what was trained since the newest save, or since this instance began to train if that is later."""
    pace = memory.pace
    if pace.moved_at is None or pace.step is None or memory.trained_from is None:
        return None
    if memory.at is not None and memory.step is not None and memory.at >= memory.trained_from:
        return Behind(pace.moved_at - memory.at, max(0, pace.step - memory.step), memory.at)
    return Behind(
        pace.moved_at - memory.trained_from, max(0, pace.step - (memory.first_step or 0)), memory.trained_from
    )


def _stalled_finding(memory: Saves, behind: Behind, limit: timedelta) -> Finding:
    newest = "there is none" if memory.step is None else f"the newest is step {memory.step}"
    usual = (
        f"usual interval: {say_duration(timedelta(seconds=median(memory.intervals_s)))}, "
        f"{median(memory.interval_steps):.0f} steps"
        if memory.intervals_s
        else "usual interval: not known yet"
    )
    return Finding(
        check=STALLED_ID,
        key=memory.pace.instance,
        severity=Severity.CRITICAL,
        summary=f"no new complete checkpoint for {say_duration(behind.time)} and {behind.steps} steps of training "
        f"(limit {say_duration(limit)}): {newest}",
        evidence=(f"training is at step {memory.pace.step}", usual),
        advice="Look whether saves start, hang or fail (log, storage quota, credentials, region), and that nothing "
        "deletes the newest complete checkpoint; do not stop the run before a save is complete, or this work is lost.",
        since_step=memory.step,
        since_at=behind.since,
    )


STALLED = Check(
    id=STALLED_ID,
    title="Steps move but no new complete checkpoint appears",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS, Source.CHECKPOINTS),
    source='manage-hero-run, "What Can Go Wrong": checkpoint not advancing',
    thresholds=StalledThresholds(),
    memory=Saves(),
    judge=stalled,
)


class IncompleteThresholds(Thresholds):
    save_time: Duration = timedelta(minutes=30)
    """How long a save may take until it is complete. Ours, for checkpoints of terabytes."""


class Unfinished(Value):
    """The incomplete directory that is the newest one, and since when."""

    path: str = ""
    since: AwareDatetime | None = None


def incomplete(
    seen: Snapshot, _contract: Contract, limits: IncompleteThresholds, memory: Unfinished
) -> tuple[Verdict, Unfinished]:
    """Fail when the newest checkpoint directory stays incomplete for longer than a save takes."""
    if isinstance(seen.checkpoints, Unknown):
        return unseen(seen.checkpoints, "whether checkpoints get complete is not known"), memory
    found = seen.checkpoints.value
    if not found:
        return NotApplicable(reason="there is no checkpoint directory yet"), Unfinished()
    complete = newest_complete(found)
    newest = max(found, key=lambda each: (each.step, each.is_complete, each.path))
    if newest.is_complete:
        return Pass(), Unfinished()
    since = memory.since if memory.path == newest.path and memory.since else min(newest.saved_at or seen.at, seen.at)
    memory = Unfinished(path=newest.path, since=since)
    age = seen.at - since
    if age <= limits.save_time:
        return Pass(), memory
    fallback = "there is no complete one" if complete is None else f"the newest complete one is step {complete.step}"
    finding = Finding(
        check=INCOMPLETE_ID,
        key=newest.path,
        severity=Severity.WARNING,
        summary=f"checkpoint step-{newest.step} is not complete after {say_duration(age)} "
        f"(limit {say_duration(limits.save_time)}); {fallback}",
        evidence=(f"{newest.path}: {newest.fault or 'not complete'}",),
        advice="Look for a save that hangs or was killed. Hero never proposes an incomplete checkpoint; see that "
        "whatever resumes by itself does not take it either.",
        since_step=newest.step,
        since_at=since,
    )
    return Fail(finding=finding), memory


INCOMPLETE = Check(
    id=INCOMPLETE_ID,
    title="The newest checkpoint does not get complete",
    severity=Severity.WARNING,
    needs=(Source.CHECKPOINTS,),
    source='manage-hero-run, "What Can Go Wrong": checkpoint not advancing, wrong checkpoint; RLinf/RLinf#1469',
    thresholds=IncompleteThresholds(),
    memory=Unfinished(),
    judge=incomplete,
)
