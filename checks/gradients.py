"""What can go wrong with the gradients: their norm explodes and stays so."""

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

EXPLOSION_ID = CheckId("gradients.explosion")

NORM_NAMES = ("grad_norm", "grad_norm_total", "grad/norm/total")
"""What trainers call the global norm; the first is the contract's own word."""
_NORM = log_of(*NORM_NAMES)


class GradientMemory(Value):
    """The trend of this instance's gradient norm."""

    instance: str = ""
    curve: Curve = Curve()


class ExplosionThresholds(Thresholds):
    factor: float = Field(default=5, gt=1)
    """Times the norm's own level just before. Ours: healthy norms move by a few times, slowly; an absolute limit (the
    hero run's alert has 2.0) would have to be known for each model."""

    steps: int = Field(default=10, ge=1)
    """For so many optimizer steps, as for a loss spike: single batches have single large norms."""

    rows: int = Field(default=3, ge=2)
    """And so many logged rows."""

    critical: float = Field(default=50, gt=1)
    """Times the level from which it wakes the DRI, and from which so many rows are enough. Ours."""

    warmup_steps: int = Field(default=1000, ge=0)
    """In an instance's first steps an explosion has to last three times as long; the norm finds its level there."""


def explosion(
    seen: Snapshot, _contract: Contract, limits: ExplosionThresholds, memory: GradientMemory
) -> tuple[Verdict, GradientMemory]:
    """Fail when the gradient norm of this execution stayed far above its level just before."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else GradientMemory(instance=current)
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "how large the gradients are is not known"), memory
    rule = Rule(
        factor=limits.factor,
        rows=limits.rows,
        steps=limits.steps,
        steep=limits.critical,
        warmup_steps=limits.warmup_steps,
        warmup_steep=limits.critical * 20,
    )
    found = follow(in_order(seen.metrics.value.rows, memory.curve.level.last_step), _NORM, rule, memory.curve)
    memory = GradientMemory(instance=current, curve=found.curve)
    if found.episodes:
        return Fail(finding=_finding(found.episodes, memory, limits)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the gradients are of is not known"), memory
    if not found.is_known:
        return NotApplicable(reason="too few gradient norms were logged to know their level"), memory
    return Pass(), memory


def _finding(episodes: tuple[Stretch, ...], memory: GradientMemory, limits: ExplosionThresholds) -> Finding:
    one = worst(episodes)
    until = "" if memory.curve.last is not None else f", until step {one.last_step}"
    expected = say_level(one.expected)
    return Finding(
        check=EXPLOSION_ID,
        key=memory.instance,
        severity=Severity.CRITICAL if times(one) >= limits.critical else Severity.WARNING,
        summary=f"gradient norm {say_times(one)} its expected {expected} since step {one.first_step}{until}",
        evidence=(
            f"median of the stretch {say_level(one.level)}, highest {say_level(one.top)}, expected {expected}",
            f"{one.rows} logged rows in a row, steps {one.first_step} to {one.last_step}, limit {limits.factor:g} x",
        ),
        advice="Do not relaunch it as if it were infrastructure. Compare with the loss: clipped, it may pass; with a "
        "loss that rises, keep the last checkpoint from before and let the DRI choose the remedy.",
        since_step=episodes[0].first_step,
    )


EXPLOSION = Check(
    id=EXPLOSION_ID,
    title="The gradient norm has exploded",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": numerical instability; the hero run\'s grad_norm_high alert',
    thresholds=ExplosionThresholds(),
    memory=GradientMemory(),
    judge=explosion,
)
