"""resume.mismatch, its second rule: after the warm-up of a resume the loss level is that of the lineage before."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.snapshot import MetricRow, Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, Severity
from checks.lineage import shift_of
from checks.resume import MISMATCH
from checks.thinning import LoggedLoss
from tests.fakes.snapshots import instance, job, later, row, snapshot
from tests.unit.checks.story import finding, verdict, verdicts

LAST = 20_000


def losses(
    first: int, last: int, *, every: int = 1, noise: float = 0.01, seed: int = 0, factor: float = 1.0
) -> list[MetricRow]:
    """Return a power law's losses."""
    dice = random.Random(first + seed)
    return [
        row(step, loss=factor * (1.5 + 20 * (step + 1) ** -0.35) * math.exp(dice.gauss(0, noise)))
        for step in range(first, last, every)
    ]


def resumed(
    factor: float, *, noise: float = 0.01, seed: int = 0, every: int = 1, warm_up: float = 1.0
) -> list[Snapshot]:
    """Return a run that logged up to ``LAST`` and the launch that went on from there, with its level times a factor."""
    again, launch = job(submitted_at=later(30)), instance(1, from_step=LAST, submitted_at=later(30))
    begin = losses(LAST, LAST + 50, every=every, noise=noise, seed=seed, factor=warm_up)
    after = losses(LAST + 50, LAST + 50 + 600 * every, every=every, noise=noise, seed=seed, factor=factor)
    before = losses(LAST - 500 * every, LAST, every=every, noise=noise, seed=seed)
    looks = [begin, *(after[start : start + 60] for start in range(0, len(after), 60))]
    return [
        snapshot(metrics=before),
        *(
            snapshot(later(40 + 15 * number), jobs=again, launch=launch, metrics=rows)
            for number, rows in enumerate(looks)
        ),
    ]


@settings(max_examples=40, deadline=None)
@given(noise=st.sampled_from([0.0, 0.003, 0.01, 0.05]), seed=st.integers(0, 10_000), every=st.sampled_from([1, 5, 25]))
def test_a_resume_that_goes_on_at_its_level_never_alarms(noise: float, seed: int, every: int) -> None:
    assert not any(
        isinstance(each, Fail) for each in verdicts(MISMATCH, resumed(1.0, noise=noise, seed=seed, every=every))
    )


@pytest.mark.parametrize(("factor", "said"), [(1.03, "% above the trend"), (0.97, "% below the trend")])
def test_a_level_that_is_another_is_a_warning_that_stays(factor: float, said: str) -> None:
    """Field report R51: the loader's position was lost, and the loss moved by a little for good."""
    found = finding(MISMATCH, *resumed(factor, noise=0.003))

    assert found.severity is Severity.WARNING
    assert said in found.summary
    assert found.since_step == LAST + 50


def test_the_warm_up_of_the_resume_does_not_count() -> None:
    assert verdict(MISMATCH, *resumed(1.0, noise=0.003, warm_up=1.2)) == Pass()


def test_a_shift_within_the_noise_is_not_verifiable_rather_than_fine() -> None:
    found = verdict(MISMATCH, *resumed(1.01, noise=0.2))

    assert isinstance(found, NotApplicable)
    assert found.reason.startswith("not verifiable")


def test_the_lineage_of_a_rejected_future_is_not_the_trend() -> None:
    """Before the roll-back to step 20,000 the loss had gone astray: only what was shared counts."""
    story = resumed(1.0, noise=0.003)
    astray = losses(LAST + 1_000, LAST + 1_200, factor=3.0)
    first = snapshot(metrics=[*losses(LAST - 200, LAST, noise=0.003), *astray])

    assert verdict(MISMATCH, first, *story[1:]) == Pass()


@pytest.mark.parametrize(("before", "after", "known"), [(59, 60, False), (60, 19, False), (60, 20, True)])
def test_few_losses_tell_no_level(before: int, after: int, known: bool) -> None:
    older = tuple(LoggedLoss(step=10_000 + n, loss=2.0) for n in range(before))
    newer = tuple(LoggedLoss(step=10_070 + n, loss=2.0) for n in range(after))

    assert (shift_of(older, newer) is not None) is known


def test_a_young_curve_is_not_carried_on() -> None:
    older = tuple(LoggedLoss(step=n, loss=9.0 - n / 50) for n in range(200))
    newer = tuple(LoggedLoss(step=250 + n, loss=4.0) for n in range(100))

    assert shift_of(older, newer) is None


@settings(max_examples=60, deadline=None)
@given(
    before=st.lists(st.floats(0, exclude_min=True, allow_infinity=False), min_size=60, max_size=80),
    after=st.lists(st.floats(0, exclude_min=True, allow_infinity=False), min_size=20, max_size=40),
)
def test_no_finite_loss_makes_it_raise(before: list[float], after: list[float]) -> None:
    shift_of(
        tuple(LoggedLoss(step=10_000 + n, loss=loss) for n, loss in enumerate(before)),
        tuple(LoggedLoss(step=10_200 + n, loss=loss) for n, loss in enumerate(after)),
    )
