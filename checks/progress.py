"""What can go wrong with a job that runs: it never enters training, or its step stops advancing."""

from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, is_final, life_began, not_running, say_step, unseen
from checks.hang import hang_evidence
from checks.kin import own_lines
from checks.replaying import Replay, Sign, longest_replay, newer_sign, replay_of
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
    step_s: float | None = None
    """Seconds that a step takes, by those rows; what an instance leaves to the next one."""
    sign: Sign | None = None
    """The newest step by another witness."""
    watchdog: timedelta | None = None
    """After so long in one step the trainer ends itself, by the launched config; kept, as that may not be readable."""
    watchdog_key: str = ""

    def after(self, seen: Snapshot) -> "Pace":
        """Return the pace with the snapshot's rows taken in; a new instance starts afresh."""
        current = instance_of(seen, self.instance)
        mine = self if current == self.instance else Pace(instance=current, step_s=self.step_s)
        told = {"sign": newer_sign(seen, mine.sign), **_watchdog_told(seen)}
        return mine.with_rows(seen).model_copy(update=told)

    def with_rows(self, seen: Snapshot) -> "Pace":
        """Return the pace of the same instance with the snapshot's rows taken in."""
        if isinstance(seen.metrics, Unknown):
            return self
        rows = tuple(row for row in seen.metrics.value.rows if row.step != self.step)
        if not rows:
            return self.model_copy(update={"read_at": seen.at})
        moved = _moved_at(rows[-1], self.read_at, seen.at)
        gaps = (*self.gaps_s, *_gaps(rows, self, moved))
        return self.model_copy(
            update={
                "step": rows[-1].step,
                "moved_at": moved,
                "read_at": seen.at,
                "gaps_s": gaps[-_GAPS_KEPT:],
                "step_s": _step_s(rows, self, moved) or self.step_s,
            }
        )

    def has_trained_since(self, began: datetime | None) -> bool:
        """Return whether a row was logged in the life that began then."""
        return self.moved_at is not None and (began is None or self.moved_at >= began)


def _watchdog_told(seen: Snapshot) -> dict[str, object]:
    if isinstance(seen.config, Unknown):
        return {}
    config = seen.config.value
    return {"watchdog": config.duration("step_watchdog"), "watchdog_key": config.key("step_watchdog") or ""}


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


def _step_s(rows: tuple[MetricRow, ...], before: Pace, moved: datetime) -> float | None:
    """Return the seconds a step took over the new rows; None when they do not tell."""
    first, last = rows[0], rows[-1]
    if first.at is not None and last.at is not None and last.at > first.at and last.step > first.step:
        return (last.at - first.at).total_seconds() / (last.step - first.step)
    if before.step is None or before.moved_at is None or last.step <= before.step or moved <= before.moved_at:
        return None
    return (moved - before.moved_at).total_seconds() / (last.step - before.step)


class StallThresholds(Thresholds):
    quiet: Duration = timedelta(minutes=15)
    """A step may take at least this long before it counts as stalled. The hero run's own alert: progress 15 min old."""

    factor: float = Field(default=10, gt=1)
    """It may take so many times the usual time between two logged steps. Ours, as a multiple of the median:
    evaluations and saves take several steps' time."""

    allowance: Duration = timedelta()
    """The longest pause that this run makes on purpose: an evaluation, a save or a compilation. None is assumed, and
    nothing but the contract moves it."""

    watchdog_at_most: Duration = timedelta(hours=2)
    """The step watchdog of the launched config lengthens the limit, as a hung trainer ends itself then; by no more than
    this, as a run that could lengthen its own allowance could hide its own hang. Ours."""


def stalled(seen: Snapshot, contract: Contract, limits: StallThresholds, memory: Pace) -> tuple[Verdict, Pace]:
    """Fail when a training job has logged no new step for longer than its own pace explains."""
    memory = memory.after(seen)
    if (verdict := not_running(seen)) is not None:
        return verdict, memory
    if (replay := replay_of(seen, contract, memory.sign, memory.step, memory.moved_at)) is not None:
        return _judge_replay(seen, limits, memory, replay), memory
    return _judge_rows(seen, contract, limits, memory), memory


def _judge_rows(seen: Snapshot, contract: Contract, limits: StallThresholds, memory: Pace) -> Verdict:
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "whether the step advances is not known")
    if is_final(memory.step, contract.final_step):
        return NotApplicable(reason="the run has reached its final step")
    if memory.moved_at is None or not memory.has_trained_since(life_began(seen)):
        return NotApplicable(reason="training has not begun; progress.startup looks after that")
    quiet, limit = seen.at - memory.moved_at, _limit(limits, memory)
    return Pass() if quiet <= limit else Fail(finding=_finding(seen, memory, memory.step, memory.moved_at, limit))


def _judge_replay(seen: Snapshot, limits: StallThresholds, memory: Pace, replay: Replay) -> Verdict:
    """Judge by the other witness while the tracker drops the rows."""
    sign, limit = replay.sign, _limit(limits, memory)
    hidden = f"tracker silent until step {replay.until}"
    if seen.at - sign.at <= limit:
        return NotApplicable(reason=f"replaying from an earlier checkpoint, at step {sign.step} by {sign.by}: {hidden}")
    said = f"replaying, {hidden}: the last step is that of the {sign.by}"
    return Fail(finding=_finding(seen, memory, sign.step, sign.at, limit, said))


def _usual(memory: Pace) -> timedelta | None:
    seconds = median(memory.gaps_s) if memory.gaps_s else memory.step_s
    return None if seconds is None else timedelta(seconds=seconds)


def _limit(limits: StallThresholds, memory: Pace) -> timedelta:
    usual = _usual(memory)
    watchdog = min(memory.watchdog or timedelta(), limits.watchdog_at_most)
    return max(limits.quiet, limits.allowance, watchdog, usual * limits.factor if usual else timedelta())


def _finding(
    seen: Snapshot, memory: Pace, step: int | None, moved_at: datetime, limit: timedelta, *said: str
) -> Finding:
    usual = _usual(memory)
    return Finding(
        check=STALLED_ID,
        key=memory.instance,
        severity=Severity.CRITICAL,
        summary=f"stalled at step {say_step(step)}: no new step for {say_duration(seen.at - moved_at)} "
        f"(limit {say_duration(limit)}), while the job says that it runs",
        evidence=(
            f"last step logged at {moved_at:%Y-%m-%d %H:%M:%S} UTC",
            f"usual time between logged steps: {say_duration(usual) if usual else 'not known yet'}",
            *said,
            *_watchdog_said(memory, seen.at - moved_at),
            *hang_evidence(seen, moved_at),
            *_last_words(seen),
        ),
        advice="Look at the last log line and at the hosts: a hung collective, a dead node, storage or input that "
        "waits. Tasks that stand apart from the others, and their nodes, are the first to look at. A hung process does "
        "not come back by itself; a relaunch stops it first, and goes on from the newest complete checkpoint.",
        since_step=step,
        since_at=moved_at,
        is_recoverable=True,
    )


def _watchdog_said(memory: Pace, quiet: timedelta) -> tuple[str, ...]:
    if memory.watchdog is None:
        return ()
    named = f"the trainer's own step watchdog ({memory.watchdog_key}: {say_duration(memory.watchdog)})"
    return (f"{named} has {'not ended it either' if quiet > memory.watchdog else 'not run out yet'}",)


def _last_words(seen: Snapshot) -> tuple[str, ...]:
    if isinstance(seen.log, Unknown):
        return (f"the log could not be read: {seen.log.detail}",)
    said = [line.text.strip() for line in own_lines(seen) if line.text.strip()]
    return tuple(f"last log line: {text[:300]}" for text in said[-_LAST_WORDS:])


STALLED = Check(
    id=STALLED_ID,
    title="The step has stopped advancing",
    severity=Severity.CRITICAL,
    needs=(
        *(Source.JOBS, Source.METRICS, Source.TRACKER, Source.TELEMETRY, Source.LOG, Source.CONFIG),
        Source.HANG,
    ),
    source='babysit-job, "Loop" step 7 and "Error Patterns"; the hero run\'s training-stall alert; '
    "marin-community/marin#3297",
    thresholds=StallThresholds(),
    memory=Pace(),
    judge=stalled,
)


class StartupThresholds(Thresholds):
    start: Duration = timedelta(minutes=45)
    """How long restore, compilation and prefetch may take before the first step. The hero run's own alert: running for
    45 min without entering training; its restores took 23 min and its compilations 7. Where steps may be replayed that
    the tracker does not show, and nothing else tells a step, twice their time at the run's own pace is added."""


def startup(seen: Snapshot, contract: Contract, limits: StartupThresholds, memory: Pace) -> tuple[Verdict, Pace]:
    """Fail when a running job, or its newest retry, does not enter training."""
    memory = memory.after(seen)
    if (verdict := not_running(seen)) is not None:
        return verdict, memory
    began = life_began(seen)
    if memory.has_trained_since(began):
        return (
            unseen(seen.metrics, "whether training was entered is not known")
            if isinstance(seen.metrics, Unknown)
            else Pass()
        ), memory
    if (replay := replay_of(seen, contract, memory.sign, memory.step, memory.moved_at)) is not None:
        reason = f"it trains, by its {replay.sign.by} at step {replay.sign.step}: tracker silent until step "
        return NotApplicable(reason=f"{reason}{replay.until}"), memory
    return _judge_waiting(seen, contract, limits, memory, began), memory


def _judge_waiting(
    seen: Snapshot, contract: Contract, limits: StartupThresholds, memory: Pace, began: datetime | None
) -> Verdict:
    """Judge a life of which no witness has seen a step."""
    hidden = longest_replay(seen, contract, memory.step_s)
    if isinstance(seen.metrics, Unknown) and (hidden is None or seen.metrics.reason is not Gap.UNRELIABLE):
        return unseen(seen.metrics, "whether training was entered is not known")
    began = began or (seen.job.submitted_at if seen.job else seen.at)
    waited, limit = seen.at - began, limits.start + (hidden or timedelta())
    if waited > limit:
        return Fail(finding=_startup_finding(seen, memory, began, limit))
    if waited <= limits.start:
        return NotApplicable(reason=f"starting up for {say_duration(waited)}")
    return NotApplicable(
        reason=f"no step seen for {say_duration(waited)}; it may be replaying, which the tracker would not show, and "
        f"which ends within {say_duration(limit)} of its start at the run's pace"
    )


def _startup_finding(seen: Snapshot, memory: Pace, began: datetime, limit: timedelta) -> Finding:
    waited = seen.at - began
    return Finding(
        check=STARTUP_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"running for {say_duration(waited)} without a training step (limit {say_duration(limit)})",
        evidence=(
            f"tasks started at {began:%Y-%m-%d %H:%M} UTC",
            *hang_evidence(seen, None),
            *_last_words(seen),
        ),
        advice="Read the end of the log: is it still restoring or compiling, or does it wait for a peer, for data, or "
        "for storage in another region? Normal compilation is no hang.",
        since_at=began,
    )


STARTUP = Check(
    id=STARTUP_ID,
    title="The job runs but does not enter training",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.METRICS, Source.TRACKER, Source.TELEMETRY, Source.LOG, Source.HANG),
    source='deploy checklist, "Execute the trial" step 3; the hero run\'s training-stall alert',
    thresholds=StartupThresholds(),
    memory=Pace(),
    judge=startup,
)
