"""What can go wrong with a mixture's router: few experts do all the work, tokens are dropped, its losses jump."""

import math
from dataclasses import dataclass
from statistics import median

from pydantic import Field

from bot.model.contract import Contract
from bot.model.figures import FURTHER
from bot.model.reading import Unknown
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.curves import Curve, Seen, follow, in_order, say_level, times, worst
from checks.thresholds import Thresholds
from checks.trend import Level, Rule

COLLAPSE_ID = CheckId("router.collapse")

_DROP_OFFSET = 0.02
"""Added to the share of dropped tokens: healthy runs drop next to none, and twice nothing is nothing."""
_ENTROPY = "entropy"


@dataclass(frozen=True)
class Signal:
    """One figure of the router, under the names that trainers give it."""

    key: str
    says: str
    names: tuple[str, ...]

    def figure(self, row: MetricRow) -> float | None:
        """Return ln of what rises when the router gets worse; None where the row has no such figure."""
        value = next((row.values[name] for name in self.names if name in row.values), None)
        if value is None or not math.isfinite(value):
            return None
        match self.key:
            case "entropy":
                return -value  # ln of one over the effective number of experts
            case "drops":
                return math.log(_DROP_OFFSET + max(0.0, value))
            case _:
                return math.log1p(abs(value)) if self.limit == "bias" else _log(value)

    @property
    def limit(self) -> str:
        """Return the name of its threshold; a bias is as bad below zero as above."""
        return self.key.removesuffix("_min")


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


SIGNALS = (
    Signal(_ENTROPY, "effective experts, inverse", FURTHER["router_entropy"]),
    Signal("drops", "share of dropped tokens", FURTHER["token_drops"]),
    Signal("z_loss", "router z-loss", FURTHER["router_z_loss"]),
    Signal("bias", "largest router bias", FURTHER["router_bias"]),
    Signal("bias_min", "lowest router bias", FURTHER["router_bias_min"]),
)


class RouterMemory(Value):
    """The level of each of the router's figures in this instance."""

    instance: str = ""
    curves: dict[str, Curve] = {}
    last_step: int | None = None
    narrow_rows: int = 0
    """Rows in a row whose entropy was below the absolute limit; counted when there is such a limit."""
    narrow_since: int | None = None
    widest: float | None = None
    """ln of the largest effective number of experts that was this instance's level after its warm-up."""


class RouterThresholds(Thresholds):
    experts: int | None = Field(default=None, ge=2)
    """How many experts a layer has; with it the entropy is also held against its greatest value, ln(experts)."""

    narrow: float = Field(default=0.5, gt=0, lt=1)
    """With ``experts``: the effective number of experts, exp(entropy), falls below this share of them. Ours."""

    faded: float = Field(default=0.25, gt=0, lt=1)
    """Without ``experts``: it falls below this share of the largest level that it had after its warm-up, however
    slowly. Ours; routers that specialise lose less, and the run's level follows a slow fall."""

    entropy: float = Field(default=1.1, gt=1)
    """The effective number of experts shrinks by so many times against the run's own level. Ours; the hero run alerts
    at 3 % below uniform (entropy 5.92 of ln 384 = 5.951), which another mixture need not reach."""

    drops: float = Field(default=2, gt=1)
    """The share of dropped tokens plus 0.02 rises by so many times. Ours; healthy hero runs spike to 5 %."""

    z_loss: float = Field(default=3, gt=1)
    """The router's z-loss rises by so many times. Ours."""

    bias: float = Field(default=3, gt=1)
    """ln(1 + bias) rises by so many times. Ours; the hero run alerts at 400."""

    steps: int = Field(default=10, ge=1)
    """For so many optimizer steps, as for a loss spike."""

    rows: int = Field(default=3, ge=2)
    """And so many logged rows."""

    warmup_steps: int = Field(default=1000, ge=0)
    """In an instance's first steps it has to last three times as long; routers find their balance there. Ours."""


def collapse(
    seen: Snapshot, _contract: Contract, limits: RouterThresholds, memory: RouterMemory
) -> tuple[Verdict, RouterMemory]:
    """Fail when a figure of the router has left its own level for long, or when few experts do the work of all."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else RouterMemory(instance=current)
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "how the router does is not known"), memory
    rows = in_order(seen.metrics.value.rows, memory.last_step)
    found: dict[str, Seen] = {}
    for signal in SIGNALS:
        curve = memory.curves.get(signal.key)
        if curve is None and not any(signal.figure(row) is not None for row in rows):
            continue
        found[signal.key] = follow(rows, signal.figure, _rule(limits, signal.limit), curve or Curve())
    memory = _narrowed(
        memory.model_copy(
            update={
                "curves": {key: each.curve for key, each in found.items()},
                "last_step": rows[-1].step if rows else memory.last_step,
            }
        ),
        rows,
        limits,
    )
    if any(each.episodes for each in found.values()) or memory.narrow_rows >= limits.rows:
        return Fail(finding=_finding(found, memory, limits)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the figures are of is not known"), memory
    if not any(each.is_known for each in found.values()):
        return NotApplicable(reason="too few figures of a router were logged; a dense model has none"), memory
    return Pass(), memory


def _rule(limits: RouterThresholds, key: str) -> Rule:
    factor: float = getattr(limits, key)
    return Rule(factor=factor, rows=limits.rows, steps=limits.steps, warmup_steps=limits.warmup_steps)


def _narrowed(memory: RouterMemory, rows: tuple[MetricRow, ...], limits: RouterThresholds) -> RouterMemory:
    """Return the memory with the rows counted whose entropy says that few experts do the work."""
    memory = memory.model_copy(update={"widest": _widest(memory, limits)})
    floor = _floor(memory, limits)
    if floor is None:
        return memory
    count, since = memory.narrow_rows, memory.narrow_since
    for row in rows:
        value = SIGNALS[0].figure(row)
        if value is None:
            continue
        if -value < floor:
            count, since = count + 1, row.step if since is None else since
        else:
            count, since = 0, None
    return memory.model_copy(update={"narrow_rows": count, "narrow_since": since})


def _widest(memory: RouterMemory, limits: RouterThresholds) -> float | None:
    level = memory.curves[_ENTROPY].level if _ENTROPY in memory.curves else Level()
    if not level.past or level.first_step is None:
        return memory.widest
    if level.steps[0] - level.first_step < limits.warmup_steps:
        return memory.widest
    now = -median(level.past)
    return now if memory.widest is None else max(memory.widest, now)


def _floor(memory: RouterMemory, limits: RouterThresholds) -> float | None:
    """Return ln of the effective number of experts below which few do the work; None while it cannot be said."""
    if limits.experts is not None:
        return math.log(limits.narrow * limits.experts)
    return None if memory.widest is None else memory.widest + math.log(limits.faded)


def _finding(found: dict[str, Seen], memory: RouterMemory, limits: RouterThresholds) -> Finding:
    evidence: list[str] = []
    since: list[int] = []
    is_narrow = limits.experts is not None and memory.narrow_rows >= limits.rows
    if memory.narrow_rows >= limits.rows and memory.narrow_since is not None:
        since.append(memory.narrow_since)
        evidence.append(
            f"the effective number of experts is below {_say_floor(memory, limits)} since step {memory.narrow_since}"
        )
    for signal in SIGNALS:
        each = found.get(signal.key)
        if each is None or not each.episodes:
            continue
        one = worst(each.episodes)
        since.append(one.first_step)
        if signal.key == _ENTROPY:
            is_narrow = is_narrow or times(one) >= 1 / limits.narrow
            evidence.append(
                f"effective experts {say_level(-one.level)}, expected {say_level(-one.expected)} "
                f"(entropy {-one.level:.4g}, expected {-one.expected:.4g}), steps {one.first_step} to {one.last_step}"
            )
        else:
            evidence.append(
                f"{signal.says}: {times(one):.3g} times its level (limit {getattr(limits, signal.limit):g}), steps "
                f"{one.first_step} to {one.last_step}"
            )
    return Finding(
        check=COLLAPSE_ID,
        key=memory.instance,
        severity=Severity.CRITICAL if is_narrow else Severity.WARNING,
        summary=f"the router has left its level since step {min(since)}: {evidence[0]}",
        evidence=tuple(evidence),
        advice="Do not relaunch it as if it were infrastructure. Look at load balance by layer, at the auxiliary "
        "losses and at what changed; keep the last checkpoint from before, and let the DRI choose.",
        since_step=min(since),
    )


def _say_floor(memory: RouterMemory, limits: RouterThresholds) -> str:
    if limits.experts is not None or memory.widest is None:
        return f"{limits.narrow:g} of {limits.experts}"
    return f"{limits.faded:g} of the {say_level(memory.widest)} that it had"


COLLAPSE = Check(
    id=COLLAPSE_ID,
    title="The router has collapsed or drops tokens",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": numerical instability; "MarinFold-specific signals"; the hero run\'s '
    "router_entropy, token_drops and router_bias alerts",
    thresholds=RouterThresholds(),
    memory=RouterMemory(),
    judge=collapse,
)
