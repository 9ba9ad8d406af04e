"""eval.regressed: the newest evaluation against the best recent one, beyond the evaluations' own noise."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.snapshot import MetricRow
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.evaluations import REGRESSED
from tests.fakes.snapshots import later, row, snapshot, unknown
from tests.unit.checks.curves import SCHEDULES, decay, findings, looks
from tests.unit.checks.story import verdict, verdicts


def evaluated(
    *losses: float, noise: float = 0.0, seed: int = 0, word: str = "eval_loss", first: int = 0
) -> list[MetricRow]:
    """Return one evaluation every 1000 steps."""
    dice = random.Random(seed)
    return [
        MetricRow(step=first + 1_000 * number, values={word: loss * math.exp(dice.gauss(0, noise))})
        for number, loss in enumerate(losses)
    ]


FALLING = tuple(3.0 * 0.99**number for number in range(10))


@settings(max_examples=60, deadline=None)
@given(
    schedule=st.sampled_from(sorted(SCHEDULES)),
    noise=st.sampled_from([0.0, 0.0005, 0.002, 0.005]),
    seed=st.integers(0, 10_000),
)
def test_a_healthy_decay_never_warns(schedule: str, noise: float, seed: int) -> None:
    curve = SCHEDULES[schedule]
    run = evaluated(*(curve((1 + number) / 60) for number in range(60)), noise=noise, seed=seed)

    assert not [each for each in findings(REGRESSED, looks(run, [1])) if each.severity is not Severity.INFO]


def test_one_worse_evaluation_is_information_and_a_second_in_a_row_is_a_warning_until_it_is_good_again() -> None:
    run = evaluated(*FALLING, 3.0, 3.0, 2.7)

    found = verdicts(REGRESSED, looks(run, [1]))

    severities = [each.finding.severity if isinstance(each, Fail) else None for each in found[-4:]]
    assert severities == [None, Severity.INFO, Severity.WARNING, None]
    first = found[-3]
    assert isinstance(first, Fail)
    assert first.finding.since_step == 10_000
    assert "9.5 % worse than 2.741 at step 9000" in first.finding.summary


def test_it_stays_told_between_two_evaluations() -> None:
    story = [*looks(evaluated(*FALLING, 3.5), [1]), snapshot(later(900), metrics=decay(rows=5))]

    assert isinstance(verdict(REGRESSED, *story), Fail)


@pytest.mark.parametrize("rise", [1.002, 1.009])
def test_a_wobble_below_one_percent_is_none(rise: float) -> None:
    assert not findings(REGRESSED, looks(evaluated(*[2.0] * 8, 2.0 * rise, 2.0 * rise), [1]))


def test_noisy_evaluations_need_a_larger_rise() -> None:
    noisy = evaluated(*[2.0] * 9, noise=0.02, seed=3)

    assert not findings(REGRESSED, looks([*noisy, *evaluated(2.06, first=9_000)], [1]))
    assert findings(REGRESSED, looks([*noisy, *evaluated(3.0, first=9_000)], [1]))


def test_each_kind_of_evaluation_has_its_own_past_and_a_contracts_own_word_counts() -> None:
    code = evaluated(*FALLING, 3.2, word="eval_code")
    web = evaluated(*[9.0] * 11, word="eval_web")
    both = [MetricRow(step=a.step, values={**a.values, **b.values}) for a, b in zip(code, web, strict=True)]

    found = findings(REGRESSED, looks(both, [1]))

    assert len(found) == 1
    assert found[0].summary.startswith("eval_code is 3.2")


def test_after_a_rewind_the_evaluations_of_the_execution_that_is_gone_do_not_count() -> None:
    rewound = [*evaluated(*FALLING), *evaluated(2.85, first=5_000)]

    assert verdict(REGRESSED, *looks(rewound, [1])) == NotApplicable(
        reason="too few evaluations were logged to know their noise"
    ) or not findings(REGRESSED, looks(rewound, [1]))


def test_few_evaluations_and_what_cannot_be_read_are_no_pass() -> None:
    assert isinstance(verdict(REGRESSED, *looks(evaluated(2.0, 1.9, 5.0), [1])), NotApplicable)
    assert isinstance(verdict(REGRESSED, *looks(decay())), NotApplicable)
    assert verdict(REGRESSED, *looks(evaluated(*FALLING), [1])) == Pass()
    assert isinstance(verdict(REGRESSED, *looks(evaluated(*FALLING), [1]), snapshot(metrics=unknown())), UnknownVerdict)
    assert isinstance(verdict(REGRESSED, *looks(evaluated(*FALLING), [1]), snapshot(jobs=unknown())), UnknownVerdict)


@settings(max_examples=30, deadline=None)
@given(losses=st.lists(st.floats(), max_size=40))
def test_nothing_that_is_logged_makes_it_raise(losses: list[float]) -> None:
    verdicts(REGRESSED, looks([row(step, eval_loss=loss) for step, loss in enumerate(losses)], [3]))
