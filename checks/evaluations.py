"""What can go wrong with the evaluations: the newest one is clearly worse than the best recent one."""

import math
from itertools import pairwise
from statistics import median

from pydantic import Field

from bot.model.contract import Contract
from bot.model.reading import Unknown
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.thresholds import Thresholds

REGRESSED_ID = CheckId("eval.regressed")

EVALUATION = "eval_"
"""How the words of evaluations begin (``bot/model/figures.py``); lower is better."""
_KEPT = 32
_RECENT = 6
"""The best of so many evaluations before is the one to hold on to; an older one may be of another data mixture."""
_DIFFERENCE = math.sqrt(math.pi / 2) / math.sqrt(2)
"""Mean absolute difference of neighbours to the standard deviation of one value, for normal noise."""
_FEW = 2.0
"""Noise that was learnt from few differences may be larger than it seems: by this share of one over their number."""


class Evaluation(Value):
    """One evaluation."""

    step: int
    loss: float


class Evaluations(Value):
    """The newest evaluations of each kind, by word."""

    instance: str = ""
    series: dict[str, tuple[Evaluation, ...]] = {}

    def after(self, row: MetricRow) -> "Evaluations":
        """Return the memory with a row taken in; a step that goes back takes the later evaluations away."""
        found = {
            word: Evaluation(step=row.step, loss=value)
            for word, value in row.values.items()
            if word.startswith(EVALUATION) and math.isfinite(value)
        }
        if not found:
            return self
        series = dict(self.series)
        for word, newest in found.items():
            before = tuple(each for each in series.get(word, ()) if each.step < newest.step)
            series[word] = (*before, newest)[-_KEPT:]
        return self.model_copy(update={"series": series})


class RegressedThresholds(Thresholds):
    share: float = Field(default=0.01, gt=0)
    """The newest evaluation is worse than the best recent one by this share of it. Ours; the hero run's own alert has
    no margin, and tells every wobble."""

    sigmas: float = Field(default=5, gt=0)
    """And by so many standard deviations of the evaluations' own noise, learnt from their neighbours. Ours."""

    fewest: int = Field(default=5, ge=3)
    """So many evaluations are needed before, to know the noise. Ours."""


class Regression(Value):
    """One kind of evaluation that has got worse."""

    word: str
    newest: Evaluation
    best: Evaluation
    allowed: float
    """Above the best one."""
    in_a_row: int
    first_step: int

    @property
    def share(self) -> float:
        return (self.newest.loss - self.best.loss) / max(abs(self.best.loss), 1e-12)


def regressed(
    seen: Snapshot, _contract: Contract, limits: RegressedThresholds, memory: Evaluations
) -> tuple[Verdict, Evaluations]:
    """Fail while the newest evaluation of a kind is clearly worse than the best of those just before."""
    current = instance_of(seen, memory.instance)
    memory = memory.model_copy(update={"instance": current})
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "how the evaluations go is not known"), memory
    for row in seen.metrics.value.rows:
        memory = memory.after(row)
    found = [each for word, series in memory.series.items() if (each := _judge(word, series, limits)) is not None]
    if found:
        return Fail(finding=_finding(found, memory)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the evaluations are of is not known"), memory
    if not any(len(series) > limits.fewest for series in memory.series.values()):
        return NotApplicable(reason="too few evaluations were logged to know their noise"), memory
    return Pass(), memory


def _judge(word: str, series: tuple[Evaluation, ...], limits: RegressedThresholds) -> Regression | None:
    """Return the regression that the newest evaluations are; None when they are none."""
    worse = 0
    for number in range(len(series) - 1, limits.fewest - 1, -1):
        if not _is_worse(series[number], series[:number], limits):
            break
        worse += 1
    if not worse:
        return None
    before = series[: len(series) - worse]
    best = min(before[-_RECENT:], key=lambda each: each.loss)
    return Regression(
        word=word,
        newest=series[-1],
        best=best,
        allowed=_allowed(before, limits),
        in_a_row=worse,
        first_step=series[len(series) - worse].step,
    )


def _is_worse(newest: Evaluation, before: tuple[Evaluation, ...], limits: RegressedThresholds) -> bool:
    best = min(each.loss for each in before[-_RECENT:])
    return newest.loss - best > _allowed(before, limits)


def _allowed(before: tuple[Evaluation, ...], limits: RegressedThresholds) -> float:
    """Return by how much an evaluation may be worse than the best before it.

    The differences of neighbours hold the trend too: in a curve that still falls they are large, and there a rise is
    no small thing; it is taken out as their median.
    """
    # In quarters: losses may be as large as any number, and a difference of differences is up to four times that.
    steps = [late.loss / 4 - early.loss / 4 for early, late in pairwise(before)]
    trend = median(steps)
    few = 1 + _FEW / len(steps)
    noise = 4 * few * _DIFFERENCE * sum(abs(step - trend) / len(steps) for step in steps)
    best = min(each.loss for each in before[-_RECENT:])
    return max(limits.share * abs(best), limits.sigmas * noise)


def _finding(found: list[Regression], memory: Evaluations) -> Finding:
    worst = max(found, key=lambda each: (each.in_a_row > 1, each.share))
    return Finding(
        check=REGRESSED_ID,
        key=memory.instance,
        severity=Severity.WARNING if worst.in_a_row > 1 else Severity.INFO,
        summary=f"{worst.word} is {worst.newest.loss:.4g} at step {worst.newest.step}, {100 * worst.share:.1f} % worse "
        f"than {worst.best.loss:.4g} at step {worst.best.step}",
        evidence=tuple(
            f"{each.word}: {each.newest.loss:.6g} at step {each.newest.step}, best recent {each.best.loss:.6g} at step "
            f"{each.best.step}, allowed {each.allowed:.3g} above it; {each.in_a_row} in a row"
            for each in found
        ),
        advice="Compare with the training loss: together they rise for a cause in training, alone the evaluation's "
        "data or code may have changed. One evaluation may be chance; two in a row are not.",
        since_step=worst.first_step,
    )


REGRESSED = Check(
    id=REGRESSED_ID,
    title="The newest evaluation is clearly worse",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.METRICS),
    source='the hero run\'s eval_regressed alert; manage-hero-run, "Babysitting": key losses',
    thresholds=RegressedThresholds(),
    memory=Evaluations(),
    judge=regressed,
)
