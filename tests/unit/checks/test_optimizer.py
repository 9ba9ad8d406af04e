"""optimizer.skipped: a few skipped steps close to each other."""

import math
import random

import pytest

from bot.model.snapshot import MetricRow
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.optimizer import SKIPPED
from tests.fakes.snapshots import job, later, row, snapshot, unknown
from tests.unit.checks.curves import decay, findings, looks
from tests.unit.checks.story import verdict, verdicts


def flags(*skipped: int, last: int = 600, every: int = 1) -> list[MetricRow]:
    return [row(step, loss=2.0, skipped_step=float(step in skipped)) for step in range(0, last, every)]


@pytest.mark.parametrize(
    ("skipped", "told"),
    [((300, 310), False), ((300, 320, 340), True), ((200, 300, 400), False), ((300, 359, 360), False)],
)
def test_three_skipped_steps_within_sixty_are_told(skipped: tuple[int, ...], told: bool) -> None:
    assert bool(findings(SKIPPED, looks(flags(*skipped)))) is told


def test_the_finding_says_where_and_is_over_when_no_more_are_skipped() -> None:
    found = verdicts(SKIPPED, looks(flags(300, 320, 340)))

    failed = [each for each in found if isinstance(each, Fail)]
    assert failed[0].finding.summary.startswith("3 optimizer steps skipped between step 300 and 340")
    assert failed[0].finding.since_step == 300
    assert failed[0].finding.severity is Severity.WARNING
    assert found[-1] == Pass()


def test_they_are_found_also_in_the_middle_of_one_large_look() -> None:
    assert findings(SKIPPED, looks(flags(300, 301, 302, last=2_000), [2_000]))


def test_ten_wake_the_dri() -> None:
    found = findings(SKIPPED, looks(flags(*range(300, 312))))

    assert found[-1].severity is Severity.CRITICAL


def test_a_count_since_the_start_is_read_by_its_growth() -> None:
    flat = [row(step, skipped_steps=57.0) for step in range(400)]
    grown = [row(step, skipped_steps=57.0 + (step >= 300) * 4) for step in range(400)]

    assert verdict(SKIPPED, *looks(flat)) == Pass()
    assert findings(SKIPPED, looks(grown))[0].summary.startswith("4 optimizer steps skipped")


def test_the_first_steps_may_skip_some_until_a_loss_scale_is_found_but_not_most() -> None:
    assert not findings(SKIPPED, looks(flags(*range(8))))
    assert findings(SKIPPED, looks(flags(*range(80))))


def test_a_replayed_step_is_not_counted_twice() -> None:
    first = flags(300, 310, last=320)
    again = [row(step, skipped_step=float(step in {300, 310})) for step in range(290, 400)]

    assert not findings(SKIPPED, looks([*first, *again], [50]))


def test_a_run_that_skips_a_step_now_and_then_is_fine() -> None:
    dice = random.Random(1)
    rare = [step for step in range(20_000) if dice.random() < 0.0005]

    assert not findings(SKIPPED, looks(flags(*rare, last=20_000), [500]))


def test_a_run_that_does_not_say_and_what_cannot_be_read_are_no_pass() -> None:
    assert isinstance(verdict(SKIPPED, *looks(decay())), NotApplicable)
    assert isinstance(verdict(SKIPPED, *looks(flags()), snapshot(later(9_000), metrics=unknown())), UnknownVerdict)
    assert isinstance(verdict(SKIPPED, *looks(flags()), snapshot(later(9_000), jobs=unknown())), UnknownVerdict)


def test_another_instance_starts_afresh_and_a_nan_is_another_checks() -> None:
    again = job(submitted_at=later(9_000))
    odd = [row(step, skipped_step=math.nan) for step in range(300)]

    after = snapshot(later(9_001), jobs=again, metrics=[row(600, skipped_step=0.0)])

    assert verdict(SKIPPED, *looks(flags(598, 599)), after) == Pass()
    assert not findings(SKIPPED, looks(odd))
