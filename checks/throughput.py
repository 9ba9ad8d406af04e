"""What can go wrong with the speed: the run lives, but trains far slower than it can. Pauses are no collapse."""

import math

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.reading import Unknown
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.curves import Curve, Seen, follow, in_order, logarithm, times, worst
from checks.thresholds import Thresholds
from checks.trend import Rule, Stretch

COLLAPSE_ID = CheckId("throughput.collapse")

_CHUNK_S = 60.0
"""The wall clock is read over at least so long: rows carry the second at best."""
_STOPPED = 50.0
"""ln of the seconds a step of a throughput of nothing: far above everything, and finite."""
_FEWEST = 10
"""Rows before there is a baseline; the first steps compile."""


class WallClock(Value):
    """The last moment from which the wall clock was read."""

    step: int
    at: AwareDatetime


class SpeedMemory(Value):
    """What this instance can do; another instance may run on another topology and learns its own."""

    instance: str = ""
    logged: Curve = Curve()
    """Of what the trainer logs: seconds a step, or the inverse of tokens a second."""
    wall: Curve = Curve()
    """Of the time between rows, evaluations and saves included."""
    clock: WallClock | None = None
    last_step: int | None = None


class CollapseThresholds(Thresholds):
    drop: float = Field(default=0.25, gt=0, lt=1)
    """The throughput lies this share below the instance's own baseline. Manage-hero-run, "Throughput collapse": more
    than 20-30 %."""

    steps: int = Field(default=50, ge=1)
    """For so many optimizer steps: a few cadences of a large run whose step takes seconds; of the procedure's "several
    cadences". Evaluations and saves of dozens of steps are shorter."""

    rows: int = Field(default=5, ge=2)
    """And so many logged rows, since a row may stand for many steps and hold one pause. Ours."""

    deep_drop: float = Field(default=0.5, gt=0, lt=1)
    """A drop of this share is told sooner …"""

    deep_steps: int = Field(default=15, ge=1)
    """… after so many steps …"""

    deep_rows: int = Field(default=3, ge=2)
    """… and so many rows. Ours, all three."""

    @property
    def rule(self) -> Rule:
        """Of the seconds that a step takes."""
        return Rule(
            factor=1 / (1 - self.drop),
            rows=self.rows,
            steps=self.steps,
            steep=1 / (1 - self.deep_drop),
            steep_rows=self.deep_rows,
            steep_steps=self.deep_steps,
            fewest=_FEWEST,
            looks_back=True,
        )


def collapse(
    seen: Snapshot, _contract: Contract, limits: CollapseThresholds, memory: SpeedMemory
) -> tuple[Verdict, SpeedMemory]:
    """Fail when this instance has trained far slower than its baseline for long, by its own figures or by the clock."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else SpeedMemory(instance=current)
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "how fast the run trains is not known"), memory
    rows = in_order(seen.metrics.value.rows, memory.last_step)
    logged = follow(rows, _logged, limits.rule, memory.logged)
    chunks, clock = _chunks(rows, memory.clock)
    wall = follow(chunks, _wall, limits.rule, memory.wall)
    memory = SpeedMemory(
        instance=current,
        logged=logged.curve,
        wall=wall.curve,
        clock=clock,
        last_step=rows[-1].step if rows else memory.last_step,
    )
    if logged.episodes or wall.episodes:
        return Fail(finding=_finding(logged, wall, rows, memory, limits)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the figures are of is not known"), memory
    if not logged.is_known and not wall.is_known:
        return NotApplicable(
            reason="too few rows with a throughput, a step time or a moment to know a baseline"
        ), memory
    return Pass(), memory


def _logged(row: MetricRow) -> float | None:
    """Return ln of the seconds a step took, up to a constant; None when the row does not say."""
    if "tokens_per_second" in row.values:
        speed = row.values["tokens_per_second"]
        if not math.isfinite(speed) or speed < 0:
            return None
        return min(_STOPPED, -math.log(speed)) if speed > 0 else _STOPPED
    seconds = row.values.get("step_time_s")
    return logarithm(seconds) if seconds is not None and math.isfinite(seconds) else None


def _wall(row: MetricRow) -> float:
    return row.values["wall"]


def _chunks(rows: tuple[MetricRow, ...], clock: WallClock | None) -> tuple[tuple[MetricRow, ...], WallClock | None]:
    """Return rows whose ``wall`` is ln of the seconds a step took by the clock, each over at least a minute."""
    found: list[MetricRow] = []
    for row in rows:
        if row.at is None:
            continue
        if clock is None or row.step <= clock.step or row.at < clock.at:
            clock = WallClock(step=row.step, at=row.at)
            continue
        elapsed_s = (row.at - clock.at).total_seconds()
        if elapsed_s >= _CHUNK_S:
            found.append(MetricRow(step=row.step, values={"wall": math.log(elapsed_s / (row.step - clock.step))}))
            clock = WallClock(step=row.step, at=row.at)
    return tuple(found), clock


def _finding(
    logged: Seen, wall: Seen, rows: tuple[MetricRow, ...], memory: SpeedMemory, limits: CollapseThresholds
) -> Finding:
    is_by_clock = not logged.episodes
    episodes = logged.episodes or wall.episodes
    one = worst(episodes)
    goes_on = memory.logged.last is not None or memory.wall.last is not None
    until = "" if goes_on else f", until step {one.last_step}"
    how = ", by the time between rows" if is_by_clock else ""
    return Finding(
        check=COLLAPSE_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"throughput {100 * (1 - 1 / times(one)):.0f} % below this instance's baseline since step "
        f"{one.first_step}{until}{how}",
        evidence=(
            _numbers(one, rows, is_by_clock=is_by_clock),
            f"{one.rows} rows in a row, steps {one.first_step} to {one.last_step}; limit {100 * limits.drop:.0f} %",
        ),
        advice="Look for one slow host or device, input that waits, slow or cross-region writes, recompilation, and "
        "retries. A change that was planned, of sequence length or depth, looks the same: silence it then.",
        since_step=episodes[0].first_step,
    )


def _numbers(one: Stretch, rows: tuple[MetricRow, ...], *, is_by_clock: bool) -> str:
    if not is_by_clock and any("tokens_per_second" in row.values for row in rows):
        return f"median {math.exp(-one.level):.4g} tokens/s, baseline {math.exp(-one.expected):.4g} tokens/s"
    return f"median {math.exp(one.level):.4g} s a step, baseline {math.exp(one.expected):.4g} s a step"


COLLAPSE = Check(
    id=COLLAPSE_ID,
    title="The throughput has collapsed",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": throughput collapse; BLOOM chronicles 2022-04-28; '
    "marin-community/marin#9205",
    thresholds=CollapseThresholds(),
    memory=SpeedMemory(),
    judge=collapse,
)
