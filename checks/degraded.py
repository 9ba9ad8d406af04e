"""What can go wrong around a run that lives: its log complains again and again, and the step does not move.

A single such line means little, and shutdown traces are full of them; only together with a step that stands still,
and in more than one look, are they told.
"""

import hashlib
import re
from datetime import datetime

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.reading import Unknown
from bot.model.snapshot import LogLine, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import is_final, not_running, say_step, unseen
from checks.kin import own_lines
from checks.progress import Pace
from checks.thresholds import Thresholds

DEGRADED_ID = CheckId("log.degraded")

_COMPLAINTS = {
    "an owner died": re.compile(r"OwnerDiedError", re.IGNORECASE),
    "a dead node": re.compile(r"\bdead node\b|\bnode death\b|\bnode\b.{0,60}\b(?:marked|is) dead\b", re.IGNORECASE),
    "unsatisfied resources": re.compile(
        r"autoscaler.{0,40}unsatisf|unsatisf\w+ (?:autoscaler |resource )?(?:resources|demand|requests?)", re.IGNORECASE
    ),
    "device memory": re.compile(
        r"program hbm requirement|largest program allocations|compiler_base\.cc:2587|RESOURCE_EXHAUSTED", re.IGNORECASE
    ),
    "no accelerator": re.compile(r"no accelerator(?:s)? found", re.IGNORECASE),
    "a failed precondition": re.compile(r"failed_precondition", re.IGNORECASE),
    "a busy device": re.compile(r"device or resource busy", re.IGNORECASE),
}
"""babysit-job, "Loop" step 2 and "Error Patterns": what it greps for, less the words that every log has."""
_LINE_CHARS = 2000


class Complaint(Value):
    """One kind of complaint since the step last moved."""

    looks: int
    """In which it was new."""
    digest: str
    """Of its newest line."""
    line: str


class Complaints(Value):
    """What the log has complained of since the step last moved."""

    pace: Pace = Pace()
    still_looks: int = 0
    still_since: AwareDatetime | None = None
    found: dict[str, Complaint] = {}

    def after(self, seen: Snapshot, lines: tuple[LogLine, ...]) -> "Complaints":
        """Return the memory with a look taken in; a step that moves forgets every complaint but what it said."""
        pace = self.pace.after(seen)
        has_moved = pace.instance != self.pace.instance or (pace.step, pace.moved_at) != (
            self.pace.step,
            self.pace.moved_at,
        )
        newest = _newest(lines)
        found: dict[str, Complaint] = {}
        for name in {*newest, *self.found}:
            old, line = self.found.get(name), newest.get(name)
            if line is None or (old is not None and old.digest == _digest(line)):
                if old is not None:
                    found[name] = old.model_copy(update={"looks": 0}) if has_moved else old
                continue
            before = 0 if old is None or has_moved else old.looks
            looks = 0 if has_moved else before + 1  # what was said while the step moved does not count
            found[name] = Complaint(looks=looks, digest=_digest(line), line=" ".join(line.text.split())[:300])
        since = seen.at if has_moved or self.still_since is None else self.still_since
        return Complaints(
            pace=pace, still_looks=0 if has_moved else self.still_looks + 1, still_since=since, found=found
        )


def _newest(lines: tuple[LogLine, ...]) -> dict[str, LogLine]:
    return {name: line for line in lines for name, said in _COMPLAINTS.items() if said.search(line.text[:_LINE_CHARS])}


def _digest(line: LogLine) -> str:
    at = line.at.isoformat() if isinstance(line.at, datetime) else ""
    return hashlib.sha256(f"{at} {line.task} {line.attempt} {line.text}".encode()).hexdigest()[:16]


class DegradedThresholds(Thresholds):
    still: int = Field(default=2, ge=1)
    """So many looks in a row saw no new step. The procedure's "stalls across multiple intervals"."""

    looks: int = Field(default=2, ge=1)
    """And in so many of them a complaint of one kind was new. Single noisy lines are not decisive."""


def degraded(
    seen: Snapshot, contract: Contract, limits: DegradedThresholds, memory: Complaints
) -> tuple[Verdict, Complaints]:
    """Fail when the log complains anew look after look, while no step is finished."""
    if isinstance(seen.log, Unknown) or isinstance(seen.metrics, Unknown):
        gap, what = (seen.log, "what the log says") if isinstance(seen.log, Unknown) else (seen.metrics, "progress")
        assert isinstance(gap, Unknown)  # noqa: S101 - one of the two is
        return unseen(gap, f"{what} is not known"), memory
    memory = memory.after(seen, own_lines(seen))
    if (verdict := not_running(seen)) is not None:
        return verdict, memory
    if is_final(memory.pace.step, contract.final_step):
        return NotApplicable(reason="the run has reached its final step"), memory
    again = {name: each for name, each in memory.found.items() if each.looks >= limits.looks}
    if memory.still_looks < limits.still or not again:
        return Pass(), memory
    return Fail(finding=_finding(again, memory, seen)), memory


def _finding(again: dict[str, Complaint], memory: Complaints, seen: Snapshot) -> Finding:
    waited = seen.at - (memory.still_since or seen.at)
    return Finding(
        check=DEGRADED_ID,
        key=memory.pace.instance,
        severity=Severity.WARNING,
        summary=f"degraded: the log tells again and again of {', '.join(sorted(again))}, and the step stands at "
        f"{say_step(memory.pace.step)} for {say_duration(waited)}",
        evidence=tuple(f"{name}, new in {each.looks} looks: {each.line}" for name, each in sorted(again.items())),
        advice="Tell the DRI. Look at the node or the capacity that is named; a report about device memory is a "
        "failure even without the word OOM. Hero changes no cluster.",
        since_step=memory.pace.step,
        since_at=memory.still_since,
    )


DEGRADED = Check(
    id=DEGRADED_ID,
    title="The log complains again and again while the step stands still",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.LOG, Source.METRICS),
    source='babysit-job, "Error Patterns" and "Loop" step 2',
    thresholds=DegradedThresholds(),
    memory=Complaints(),
    judge=degraded,
)
