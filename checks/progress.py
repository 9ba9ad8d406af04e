"""What can go wrong with a job that runs: it never enters training, or its step stops advancing."""

from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.reading import Unknown
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, is_final, life_began, not_running, say_step, unseen
from checks.thresholds import Thresholds

STALLED_ID = CheckId("progress.stalled")
STARTUP_ID = CheckId("progress.startup")

_GAPS_KEPT = 32
_LAST_WORDS = 2


class Pace(Value):
    """How far this instance got, when it last moved, and how fast it moves."""

    instance: str = ""
    step: int | None = None
    """Of the newest row; it goes back when a retry or a restore replays steps, and that is movement too."""
    moved_at: AwareDatetime | None = None
    """When the newest row was logged, as near as is known."""
    read_at: AwareDatetime | None = None
    """When the metrics were last readable."""
    gaps_s: tuple[float, ...] = ()
    """Seconds between rows that followed each other, the newest ones."""

    def after(self, seen: Snapshot) -> "Pace":
        """Return the pace with the snapshot's rows taken in; a new instance starts afresh."""
        current = instance_of(seen, self.instance)
        mine = self if current == self.instance else Pace(instance=current)
        if isinstance(seen.metrics, Unknown):
            return mine
        rows = tuple(row for row in seen.metrics.value.rows if row.step != mine.step)
        if not rows:
            return mine.model_copy(update={"read_at": seen.at})
        moved = _moved_at(rows[-1], mine.read_at, seen.at)
        gaps = (*mine.gaps_s, *_gaps(rows, mine, moved))
        return Pace(
            instance=current,
            step=rows[-1].step,
            moved_at=moved,
            read_at=seen.at,
            gaps_s=gaps[-_GAPS_KEPT:],
        )

    def has_trained_since(self, began: datetime | None) -> bool:
        """Return whether a row was logged in the life that began then."""
        return self.moved_at is not None and (began is None or self.moved_at >= began)


def _moved_at(row: MetricRow, read_at: datetime | None, now: datetime) -> datetime:
    """Return when a new row was logged.

    The trainer's clock may be wrong, so its word counts only between the last look, which did not show it, and now.
    """
    if row.at is None:
        return now
    return min(now, row.at if read_at is None else max(row.at, read_at))


def _gaps(rows: tuple[MetricRow, ...], before: Pace, moved: datetime) -> list[float]:
    timed = [row.at for row in rows if row.at is not None]
    if len(timed) == len(rows):
        return [(late - early).total_seconds() for early, late in pairwise(timed) if late > early]
    if before.moved_at is None:
        return []
    return [(moved - before.moved_at).total_seconds() / len(rows)]


class StallThresholds(Thresholds):
    quiet: Duration = timedelta(minutes=15)
    """A step may take at least this long before it counts as stalled. The hero run's own alert: progress 15 min old."""

    factor: float = Field(default=10, gt=1)
    """It may take so many times the usual time between two logged steps. Ours, as a multiple of the median:
    evaluations and saves take several steps' time."""

    allowance: Duration = timedelta()
    """The longest pause that this run makes on purpose, an evaluation, a save or a compilation, and its step watchdog
    where the launched config has one: read it there and state it here. None is assumed, and nothing but the contract
    moves it: a run that could lengthen its own allowance could hide its own hang."""


def stalled(seen: Snapshot, contract: Contract, limits: StallThresholds, memory: Pace) -> tuple[Verdict, Pace]:
    """Fail when a training job has logged no new step for longer than its own pace explains."""
    memory = memory.after(seen)
    if (verdict := not_running(seen)) is not None:
        return verdict, memory
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "whether the step advances is not known"), memory
    if is_final(memory.step, contract.final_step):
        return NotApplicable(reason="the run has reached its final step"), memory
    if memory.moved_at is None or not memory.has_trained_since(life_began(seen)):
        return NotApplicable(reason="training has not begun; progress.startup looks after that"), memory
    usual = timedelta(seconds=median(memory.gaps_s)) if memory.gaps_s else None
    limit = max(limits.quiet, limits.allowance, usual * limits.factor if usual else timedelta())
    quiet = seen.at - memory.moved_at
    if quiet <= limit:
        return Pass(), memory
    finding = Finding(
        check=STALLED_ID,
        key=memory.instance,
        severity=Severity.CRITICAL,
        summary=f"stalled at step {say_step(memory.step)}: no new step for {say_duration(quiet)} "
        f"(limit {say_duration(limit)}), while the job says that it runs",
        evidence=(
            f"last step logged at {memory.moved_at:%Y-%m-%d %H:%M:%S} UTC",
            f"usual time between logged steps: {say_duration(usual) if usual else 'not known yet'}",
            *_last_words(seen),
        ),
        advice="Look at the last log line and at the hosts: a hung collective, a dead node, storage or input that "
        "waits. A hung process does not come back by itself; a relaunch stops it first, and goes on from the newest "
        "complete checkpoint.",
        since_step=memory.step,
        since_at=memory.moved_at,
        is_recoverable=True,
    )
    return Fail(finding=finding), memory


def _last_words(seen: Snapshot) -> tuple[str, ...]:
    if isinstance(seen.log, Unknown):
        return (f"the log could not be read: {seen.log.detail}",)
    said = [line.text.strip() for line in seen.log.value.lines if line.text.strip()]
    return tuple(f"last log line: {text[:300]}" for text in said[-_LAST_WORDS:])


STALLED = Check(
    id=STALLED_ID,
    title="The step has stopped advancing",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS),
    source='babysit-job, "Loop" step 7 and "Error Patterns"; the hero run\'s training-stall alert; '
    "marin-community/marin#3297",
    thresholds=StallThresholds(),
    memory=Pace(),
    judge=stalled,
)


class StartupThresholds(Thresholds):
    start: Duration = timedelta(minutes=45)
    """How long restore, compilation and prefetch may take before the first step. The hero run's own alert: running for
    45 min without entering training; its restores took 23 min and its compilations 7."""


def startup(seen: Snapshot, _contract: Contract, limits: StartupThresholds, memory: Pace) -> tuple[Verdict, Pace]:
    """Fail when a running job, or its newest retry, does not enter training."""
    memory = memory.after(seen)
    if (verdict := not_running(seen)) is not None:
        return verdict, memory
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "whether training was entered is not known"), memory
    began = life_began(seen)
    if memory.has_trained_since(began):
        return Pass(), memory
    began = began or (seen.job.submitted_at if seen.job else seen.at)
    waited = seen.at - began
    if waited <= limits.start:
        return NotApplicable(reason=f"starting up for {say_duration(waited)}"), memory
    finding = Finding(
        check=STARTUP_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"running for {say_duration(waited)} without a training step (limit {say_duration(limits.start)})",
        evidence=(f"tasks started at {began:%Y-%m-%d %H:%M} UTC", *_last_words(seen)),
        advice="Read the end of the log: is it still restoring or compiling, or does it wait for a peer, for data, or "
        "for storage in another region? Normal compilation is no hang.",
        since_at=began,
    )
    return Fail(finding=finding), memory


STARTUP = Check(
    id=STARTUP_ID,
    title="The job runs but does not enter training",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.METRICS),
    source='deploy checklist, "Execute the trial" step 3; the hero run\'s training-stall alert',
    thresholds=StartupThresholds(),
    memory=Pace(),
    judge=startup,
)
