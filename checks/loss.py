"""What can go wrong with the loss: it stays above its expected trend. One bad row is no spike."""

from pydantic import Field

from bot.model.contract import Contract
from bot.model.reading import Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.curves import Curve, follow, in_order, log_of, say_level, say_times, times, worst
from checks.thresholds import Thresholds
from checks.trend import Rule, Stretch

SPIKE_ID = CheckId("loss.spike")

_LOSS = log_of("loss")


class LossMemory(Value):
    """The trend of this instance's loss."""

    instance: str = ""
    curve: Curve = Curve()
    highest_lr: float = 0.0
    """While the learning rate rises to values never had before, the run warms up."""
    warm_until: int | None = None
    """The last step at which it rose so."""


class SpikeThresholds(Thresholds):
    factor: float = Field(default=1.5, gt=1)
    """Times the expected trend. Manage-hero-run, "Sustained loss spike": more than 50 % above it."""

    steps: int = Field(default=10, ge=1)
    """For so many consecutive optimizer steps; a logged row stands for the steps since the row before. As above."""

    rows: int = Field(default=3, ge=2)
    """And at least so many logged rows: with one row in a hundred steps, one bad row is no spike. Ours."""

    steep: float = Field(default=4, gt=1)
    """Times the trend at which so many rows are enough, however few steps they are. Ours: a loss that explodes."""

    warmup_steps: int = Field(default=100, ge=0)
    """In an instance's first steps, and while its learning rate rises, a spike has to last three times as long. Ours;
    the procedure expects fast changes in warm-up."""

    critical: float = Field(default=2, gt=1)
    """Times the trend from which a spike wakes the DRI. Ours."""


def spike(
    seen: Snapshot, _contract: Contract, limits: SpikeThresholds, memory: LossMemory
) -> tuple[Verdict, LossMemory]:
    """Fail when the loss of this execution stayed far above its own trend, also if it has come back since."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else LossMemory(instance=current)
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "whether the loss is on its trend is not known"), memory
    rows = in_order(seen.metrics.value.rows, memory.curve.level.last_step)
    highest, warm_until = memory.highest_lr, memory.warm_until
    for row in rows:
        lr = row.values.get("lr", 0.0)
        if lr > highest:
            highest, warm_until = lr, row.step
    first = memory.curve.level.first_step
    first = first if first is not None else (rows[0].step if rows else 0)
    warmup = max(limits.warmup_steps, 0 if warm_until is None else warm_until - first)
    rule = Rule(
        factor=limits.factor,
        rows=limits.rows,
        steps=limits.steps,
        steep=limits.steep,
        warmup_steps=warmup,
        warmup_steep=limits.steep * 2.5,
    )
    found = follow(rows, _LOSS, rule, memory.curve)
    memory = LossMemory(instance=current, curve=found.curve, highest_lr=highest, warm_until=warm_until)
    if found.episodes:
        return Fail(finding=_finding(found.episodes, memory, limits)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the losses are of is not known"), memory
    if not found.is_known:
        return NotApplicable(reason="too few losses above zero were logged to know their trend"), memory
    return Pass(), memory


def _finding(episodes: tuple[Stretch, ...], memory: LossMemory, limits: SpikeThresholds) -> Finding:
    one = worst(episodes)
    until = "" if memory.curve.last is not None else f", until step {one.last_step}"
    more = f"; {len(episodes)} such stretches since the last look" if len(episodes) > 1 else ""
    expected, level, top = say_level(one.expected), say_level(one.level), say_level(one.top)
    return Finding(
        check=SPIKE_ID,
        key=memory.instance,
        severity=Severity.CRITICAL if times(one) >= limits.critical else Severity.WARNING,
        summary=f"loss {say_times(one)} its expected {expected} since step {one.first_step}{until}{more}",
        evidence=(
            f"median of the stretch {level}, highest {top}, expected {expected}, limit {limits.factor:g} times that",
            f"{one.rows} logged rows in a row, steps {one.first_step} to {one.last_step}",
        ),
        advice="Look at gradient norm, learning rate and the data of the first of these steps. Keep the last "
        "checkpoint from before it from being cleaned up, and let the DRI choose: wait, skip the data, or go back. A "
        "new stage of the data mixture moves the loss on purpose; silence it then.",
        since_step=episodes[0].first_step,
    )


SPIKE = Check(
    id=SPIKE_ID,
    title="The loss stays above its expected trend",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": sustained loss spike; the hero run\'s loss-spike alert; '
    "marin-community/marin#8568",
    thresholds=SpikeThresholds(),
    memory=LossMemory(),
    judge=spike,
)
