"""What can go wrong with a single save: by the trainer's own log it takes far longer than usual."""

import re
from datetime import datetime, timedelta
from statistics import median

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.reading import Unknown
from bot.model.snapshot import LogLine, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, not_running, unseen
from checks.regions import crossings, say_crossing
from checks.thresholds import Thresholds

SLOW_ID = CheckId("checkpoint.slow")

_BEGUN = re.compile(r"\bsaving (?:temporary |permanent )?checkpoint\b(?P<rest>.*)", re.IGNORECASE)
_DONE = re.compile(r"\b(?:saved (?:temporary |permanent )?checkpoint|checkpoint saved)\b(?P<rest>.*)", re.IGNORECASE)
_STEP = re.compile(r"\bstep[\s=:/_-]*(\d{1,15})\b", re.IGNORECASE)
_KEPT = 16


class Save(Value):
    """One save that was seen in the log."""

    step: int
    begun_at: AwareDatetime
    is_timed: bool
    """Whether the log told that moment; else it is that of the look which first showed it."""
    took_s: float | None = None
    """None while it goes on, and when the log did not tell."""


class SaveLog(Value):
    """The saves of this instance that the log told of."""

    instance: str = ""
    open: Save | None = None
    last: Save | None = None
    """The newest finished one."""
    usual_s: tuple[float, ...] = ()
    """How long the ones before it took."""

    def after(self, lines: tuple[LogLine, ...], now: datetime) -> "SaveLog":
        """Return the memory with a log's lines taken in; lines that were seen before change nothing."""
        mine = self
        for line in lines:
            done, begun = _DONE.search(line.text), _BEGUN.search(line.text)
            step = _step((done or begun or {"rest": ""})["rest"])
            if step is None:
                continue
            mine = mine.finished(step, line.at) if done else mine.begun(step, line.at, now)
        return mine

    def begun(self, step: int, at: datetime | None, now: datetime) -> "SaveLog":
        known = {each.step for each in (self.open, self.last) if each is not None}
        if step in known or (self.last is not None and step < self.last.step and not _is_newer(at, self.last)):
            return self
        return self.model_copy(update={"open": Save(step=step, begun_at=at or now, is_timed=at is not None)})

    def finished(self, step: int, at: datetime | None) -> "SaveLog":
        """Return the memory after the line that ends a save; what was not seen to begin is passed over."""
        if self.open is None or self.open.step != step:
            return self
        is_timed = self.open.is_timed and at is not None and at >= self.open.begun_at
        took = (at - self.open.begun_at).total_seconds() if is_timed and at is not None else None
        before = () if self.last is None or self.last.took_s is None else (self.last.took_s,)
        return self.model_copy(
            update={
                "open": None,
                "last": self.open.model_copy(update={"took_s": took}),
                "usual_s": (*self.usual_s, *before)[-_KEPT:],
            }
        )


def _is_newer(at: datetime | None, last: Save) -> bool:
    """Return whether a save of a lower step is one of a retry, rather than an old line."""
    return at is not None and last.is_timed and at > last.begun_at


def _step(text: str) -> int | None:
    found = _STEP.findall(text)
    return int(found[-1]) if found else None


class SlowThresholds(Thresholds):
    longest: Duration = timedelta(minutes=15)
    """A save may take so long at most. Ours; half of the time after which an incomplete one is told."""

    factor: float = Field(default=3, gt=1)
    """And so many times what this instance's saves usually take. Ours."""

    least: Duration = timedelta(minutes=3)
    """Nothing shorter is slow, however fast the others were. Ours."""

    fewest: int = Field(default=3, ge=1)
    """So many saves tell what is usual."""


def slow(seen: Snapshot, contract: Contract, limits: SlowThresholds, memory: SaveLog) -> tuple[Verdict, SaveLog]:
    """Fail while a save goes on for too long, and after a slow one until the next that is fast."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else SaveLog(instance=current)
    if isinstance(seen.log, Unknown):
        return unseen(seen.log, "how long saves take is not known"), memory
    memory = memory.after(seen.log.value.lines, seen.at)
    if (verdict := not_running(seen)) is not None:
        return verdict, memory
    limit = limits.longest
    if len(memory.usual_s) >= limits.fewest:
        limit = min(limit, max(limits.least, timedelta(seconds=median(memory.usual_s)) * limits.factor))
    for save in (memory.open, memory.last):
        if save is None or (save is memory.last and save.took_s is None):
            continue
        took = seen.at - save.begun_at if save.took_s is None else timedelta(seconds=save.took_s)
        if took > limit:
            return Fail(finding=_finding(save, took, limit, contract, memory)), memory
    if memory.open is None and memory.last is None:
        return NotApplicable(reason="the log tells of no save"), memory
    return Pass(), memory


def _finding(save: Save, took: timedelta, limit: timedelta, contract: Contract, memory: SaveLog) -> Finding:
    crossed = tuple(f"likely cause: {say_crossing(each)}" for each in crossings(contract))
    usual = say_duration(timedelta(seconds=median(memory.usual_s))) if memory.usual_s else "not known yet"
    what = "is not done after" if save.took_s is None else "took"
    return Finding(
        check=SLOW_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"the save of step {save.step} {what} {say_duration(took)} (limit {say_duration(limit)})"
        + ("; the bucket is in another region than the machines" if crossed else ""),
        evidence=(f"begun at {save.begun_at:%Y-%m-%d %H:%M:%S} UTC", f"usually a save takes {usual}", *crossed),
        advice="Look at the storage and at its region: are other writes slow too, is a quota or a credential in the "
        "way? Until it is complete, a failure loses the work since the last one.",
        since_step=save.step,
        since_at=save.begun_at,
    )


SLOW = Check(
    id=SLOW_ID,
    title="A save takes far longer than usual",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.LOG),
    source='babysit-job, "MarinFold-specific signals": checkpoint writes look slow; manage-hero-run, "What Can Go '
    'Wrong": checkpoint not advancing (writes are stuck)',
    thresholds=SlowThresholds(),
    memory=SaveLog(),
    judge=slow,
)
