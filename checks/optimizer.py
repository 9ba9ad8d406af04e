"""What can go wrong with the optimizer: it skips steps, since their gradients are not finite or too large."""

from itertools import accumulate
from typing import NamedTuple

from pydantic import Field

from bot.model.contract import Contract
from bot.model.reading import Unknown
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.curves import in_order
from checks.thresholds import Thresholds

SKIPPED_ID = CheckId("optimizer.skipped")

SKIP_NAMES = ("skipped_step", "skipped_steps")
"""Whether this step was skipped, and how many were since the start."""
_ROWS = 64


class SkipRow(Value):
    """How many steps were skipped by what was logged at one step."""

    step: int
    skipped: int


class Skips(Value):
    """The newest rows that say whether steps were skipped."""

    instance: str = ""
    first_step: int | None = None
    rows: tuple[SkipRow, ...] = ()
    counter: float | None = None
    """Where the count since the start stood."""

    def after(self, row: MetricRow) -> "Skips":
        """Return the memory with one more row; a step that goes back takes the rows from there away."""
        now, total = (row.values.get(name) for name in SKIP_NAMES)
        if now is None and total is None:
            return self
        kept = tuple(each for each in self.rows if each.step < row.step)
        counter = self.counter
        if now is not None:
            skipped = int(now > 0)  # also for a mean over several steps; NaN is numerics.nonfinite's
        else:
            assert total is not None  # noqa: S101 - one of the two is there
            grown = total - counter if counter is not None and total >= counter else 0.0
            skipped, counter = int(min(grown, _ROWS)) if grown > 0 else 0, total
        first = row.step if self.first_step is None else min(self.first_step, row.step)
        rows = (*kept, SkipRow(step=row.step, skipped=skipped))[-_ROWS:]
        return self.model_copy(update={"first_step": first, "rows": rows, "counter": counter})


class SkippedThresholds(Thresholds):
    count: int = Field(default=3, ge=1)
    """So many steps were skipped in a window. The hero run's own alert: 3 in 15 minutes."""

    critical: int = Field(default=10, ge=1)
    """So many wake the DRI. Ours."""

    window_steps: int = Field(default=60, ge=1)
    """Steps of a window; in steps, so that it is the same for fast and slow runs. The hero run's 15 minutes are about
    as many."""

    warmup_steps: int = Field(default=100, ge=0)
    """In an instance's first steps only a window of which half was skipped counts: loss scales settle there. Ours."""


class Window(NamedTuple):
    """Skipped steps close to each other."""

    skipped: int
    first_step: int
    last_step: int


def skipped(seen: Snapshot, _contract: Contract, limits: SkippedThresholds, memory: Skips) -> tuple[Verdict, Skips]:
    """Fail when several optimizer steps close to each other were skipped, also if no more were since."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else Skips(instance=current)
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "whether optimizer steps are skipped is not known"), memory
    last = memory.rows[-1].step if memory.rows else None
    worst = _window(memory, limits)
    for row in in_order(seen.metrics.value.rows, last):
        memory = memory.after(row)
        found = _window(memory, limits)
        if found is not None and (worst is None or found.skipped >= worst.skipped):
            worst = found
    if worst is not None:
        return Fail(finding=_finding(worst, memory, limits)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the figures are of is not known"), memory
    if not memory.rows:
        return NotApplicable(reason="this run does not log whether an optimizer step was skipped"), memory
    return Pass(), memory


def _window(memory: Skips, limits: SkippedThresholds) -> Window | None:
    """Return the skipped steps of the newest window when they are too many."""
    if not memory.rows or memory.first_step is None:
        return None
    newest = memory.rows[-1].step
    inside = [row for row in memory.rows if row.step > newest - limits.window_steps]
    count = sum(row.skipped for row in inside)
    is_young = newest - memory.first_step < limits.warmup_steps
    needed = max(limits.count, len(inside) // 2 + 1) if is_young else limits.count
    if count < needed or (is_young and newest - memory.first_step < limits.window_steps // 2):
        return None
    hits = [row.step for row in inside if row.skipped]
    return Window(count, hits[0], hits[-1])


def _finding(window: Window, memory: Skips, limits: SkippedThresholds) -> Finding:
    sums = tuple(accumulate(row.skipped for row in memory.rows))
    return Finding(
        check=SKIPPED_ID,
        key=memory.instance,
        severity=Severity.CRITICAL if window.skipped >= limits.critical else Severity.WARNING,
        summary=f"{window.skipped} optimizer steps skipped between step {window.first_step} and {window.last_step} "
        f"(limit {limits.count} in {limits.window_steps} steps)",
        evidence=(f"{sums[-1] if sums else 0} in the newest {len(memory.rows)} rows that say so",),
        advice="The run trains less than its steps say. Look at gradient norm, loss scale and the data of these steps; "
        "do not relaunch it as if it were infrastructure. If it goes on, let the DRI choose.",
        since_step=window.first_step,
    )


SKIPPED = Check(
    id=SKIPPED_ID,
    title="The optimizer skips steps",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": numerical instability (optimizer instability); the hero run\'s '
    "steps_skipped alert",
    thresholds=SkippedThresholds(),
    memory=Skips(),
    judge=skipped,
)
