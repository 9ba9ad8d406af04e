"""What can go wrong with the numbers: NaN or infinity in the loss or in any other figure that is watched."""

import math

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.thresholds import Thresholds

NONFINITE_ID = CheckId("numerics.nonfinite")


class BadRow(Value):
    """A row that held NaN or infinity; the values are words, since JSON has none for them."""

    step: int
    values: dict[str, str]
    at: AwareDatetime

    @property
    def text(self) -> str:
        """``step 1201: loss nan, grad_norm inf``."""
        return f"step {self.step}: {', '.join(f'{name} {value}' for name, value in self.values.items())}"


class Sanity(Value):
    """Whether this instance's figures were finite so far."""

    instance: str = ""
    has_rows: bool = False
    first: BadRow | None = None
    """Where it began; None when all is well, or well again."""
    last: BadRow | None = None
    bad_rows: int = 0
    finite_from: int | None = None
    """The first step of the unbroken series of finite rows after ``last``."""
    finite_step: int | None = None
    """The newest finite step before it began, and its loss."""
    finite_loss: float | None = None

    def after(self, row: MetricRow, seen: Snapshot, clear_steps: int) -> "Sanity":
        """Return the memory with one more row taken in."""
        bad = {name: str(value) for name, value in row.values.items() if not math.isfinite(value)}
        if bad:
            worst = BadRow(step=row.step, values=bad, at=row.at or seen.at)
            update = {"first": self.first or worst, "last": worst, "bad_rows": self.bad_rows + 1, "finite_from": None}
        elif self.first is None:
            update = {"finite_step": row.step, "finite_loss": row.values.get("loss")}
        else:
            since = row.step if self.finite_from is None or row.step < self.finite_from else self.finite_from
            update = {"finite_from": since}
            if row.step - since >= clear_steps:
                update = {"first": None, "last": None, "bad_rows": 0, "finite_from": None, "finite_step": row.step}
        return self.model_copy(update={"has_rows": True, **update})


class NonfiniteThresholds(Thresholds):
    clear_steps: int = Field(default=100, ge=1)
    """The figures count as well again after so many steps with nothing but finite values. Ours: long enough that a
    value that comes and goes stays one incident."""


def nonfinite(
    seen: Snapshot, _contract: Contract, limits: NonfiniteThresholds, memory: Sanity
) -> tuple[Verdict, Sanity]:
    """Fail at once when a figure of this instance is NaN or infinite, until it has long been finite again."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else Sanity(instance=current)
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "whether the figures are finite is not known"), memory
    for row in seen.metrics.value.rows:
        memory = memory.after(row, seen, limits.clear_steps)
    if memory.first is not None:
        return Fail(finding=_finding(memory, memory.first)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the figures are of is not known"), memory
    if seen.metrics.value.unreadable:
        detail = f"{seen.metrics.value.unreadable} lines look like figures and cannot be read; a NaN may be among them"
        return UnknownVerdict(reason=Gap.UNRECOGNISED, detail=detail), memory
    if not memory.has_rows:
        return NotApplicable(reason="no figures were logged yet"), memory
    return Pass(), memory


def _finding(memory: Sanity, first: BadRow) -> Finding:
    names = ", ".join(sorted(first.values))
    evidence = [first.text]
    if memory.last is not None and memory.last != first:
        evidence.append(f"{memory.last.text}; {memory.bad_rows} such rows so far")
    if memory.finite_step is not None:
        loss = "" if memory.finite_loss is None else f", loss {memory.finite_loss:.6g}"
        evidence.append(f"last finite row before: step {memory.finite_step}{loss}")
    return Finding(
        check=NONFINITE_ID,
        key=memory.instance,
        severity=Severity.CRITICAL,
        summary=f"{names} not finite since step {first.step}",
        evidence=tuple(evidence),
        advice="Do not relaunch it as if it were infrastructure. Keep the last checkpoint from before step "
        f"{first.step} from being cleaned up; look at gradient norm, learning rate and the data of that step, and let "
        "the DRI choose the remedy.",
        since_step=first.step,
        since_at=first.at,
    )


NONFINITE = Check(
    id=NONFINITE_ID,
    title="Loss or another figure is NaN or infinite",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": numerical instability; wandb/sweeps#32',
    thresholds=NonfiniteThresholds(),
    memory=Sanity(),
    judge=nonfinite,
)
