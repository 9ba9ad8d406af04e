"""loss.spike: more than 50 % above its own trend for about ten steps; one bad row is none, a restore is none."""

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.snapshot import MetricRow
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.check import judge_all
from checks.loss import SPIKE
from tests.fakes.clock import START
from tests.fakes.snapshots import contract, row, snapshot, unknown
from tests.unit.checks.curves import HOUR, SCHEDULES, decay, findings, first_fail, looks, scaled, sizes
from tests.unit.checks.story import finding, verdict, verdicts


@settings(max_examples=60, deadline=None)
@given(
    schedule=st.sampled_from(sorted(SCHEDULES)),
    noise=st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.2]),
    every=st.sampled_from([1, 5, 20, 100, 500]),
    outliers=st.sampled_from([0.0, 0.02]),
    rows=st.integers(1, 600),
    seed=st.integers(0, 10_000),
)
def test_a_healthy_noisy_decay_never_alarms(  # noqa: PLR0917 - hypothesis names them
    schedule: str, noise: float, every: int, outliers: float, rows: int, seed: int
) -> None:
    run = decay(schedule, rows=rows, every=every, noise=noise, seed=seed, outliers=outliers)

    assert findings(SPIKE, looks(run)) == []


def test_a_step_up_of_60_percent_for_12_steps_is_found_in_a_noisy_curve_too() -> None:
    """One row differs from the next by 5 %: the median of twelve is still surely above the limit."""
    runs = [
        scaled(decay(schedule, rows=600, noise=0.05, seed=seed), 1.6, 400, 411)
        for schedule in SCHEDULES
        for seed in range(6)
    ]

    missed = sum(not findings(SPIKE, looks(run)) for run in runs)

    assert missed <= len(runs) // 50


@settings(max_examples=60, deadline=None)
@given(
    schedule=st.sampled_from(sorted(SCHEDULES)),
    noise=st.floats(0, 0.02),
    start=st.integers(250, 560),
    seed=st.integers(0, 10_000),
    cuts=sizes(),
)
def test_a_step_up_of_60_percent_for_12_steps_always_alarms(
    schedule: str, noise: float, start: int, seed: int, cuts: list[int]
) -> None:
    run = scaled(decay(schedule, rows=600, noise=noise, seed=seed), 1.6, start, start + 11)

    found = findings(SPIKE, looks(run, cuts))

    assert found
    assert abs((found[0].since_step or 0) - start) <= 2


@pytest.mark.parametrize("every", [10, 100, 1000])
def test_of_a_thinned_log_three_high_rows_are_a_spike_and_two_are_none(every: int) -> None:
    run = decay(rows=300, every=every)
    at = 1 + 200 * every

    assert findings(SPIKE, looks(scaled(run, 1.7, at, at + 2 * every)))
    assert not findings(SPIKE, looks(scaled(run, 1.7, at, at + every)))


def test_a_spike_of_nine_steps_that_are_all_logged_is_none() -> None:
    assert not findings(SPIKE, looks(scaled(decay(rows=400), 1.7, 200, 208)))


@settings(max_examples=30, deadline=None)
@given(factor=st.floats(1e-9, 1e9), seed=st.integers(0, 1000))
def test_the_loss_s_unit_changes_nothing(factor: float, seed: int) -> None:
    run = scaled(decay(rows=300, noise=0.05, seed=seed), 1.6, 150, 165)

    plain = [found.since_step for found in findings(SPIKE, looks(run))]

    assert [found.since_step for found in findings(SPIKE, looks(scaled(run, factor)))] == plain


@settings(max_examples=30, deadline=None)
@given(cuts=sizes(), seed=st.integers(0, 1000))
def test_other_cadences_find_the_same_from_the_same_row_on(cuts: list[int], seed: int) -> None:
    run = scaled(scaled(decay(rows=500, noise=0.03, seed=seed), 2.2, 200, 240), 2.0, 320, 345)

    one_by_one = verdicts(SPIKE, looks(run, [1]))
    in_looks = verdicts(SPIKE, looks(run, cuts))

    first, row_count, look = first_fail(one_by_one), 0, 0
    assert first is not None
    while row_count <= first:
        row_count += cuts[look % len(cuts)]
        look += 1
    assert first_fail(in_looks) == look - 1


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000))
def test_rows_that_arrive_shuffled_within_a_look_are_judged_alike(seed: int) -> None:
    dice = random.Random(seed)
    run = scaled(decay(rows=400, noise=0.03, seed=seed), 1.8, 200, 230)
    shuffled: list[MetricRow] = []
    for start in range(0, len(run), 50):
        batch = run[start : start + 50]
        dice.shuffle(batch)
        shuffled += batch

    assert verdicts(SPIKE, looks(shuffled)) == verdicts(SPIKE, looks(run))


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(
        st.one_of(
            st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([math.nan, math.inf, 0.0, -1.0, 2.0])
        ),
        max_size=120,
    ),
    steps=st.lists(st.integers(0, 200), min_size=120, max_size=120),
)
def test_nothing_that_is_logged_makes_it_raise_and_its_memory_goes_through_json(
    values: list[float], steps: list[int]
) -> None:
    rows = [row(step, loss=value) for step, value in zip(steps, values, strict=False)]

    for seen in looks(rows, [7]):
        judged = judge_all((SPIKE,), seen, contract(), {})
        assert not judged.broken
        assert json.loads(judged.memories[SPIKE.id])
    verdicts(SPIKE, looks(rows, [7]))


def test_its_memory_is_small_and_does_not_grow() -> None:
    memories: dict[object, str] = {}
    sizes_seen = []
    for seen in looks(scaled(decay(rows=3_000, noise=0.05), 3, 1_000, 2_900)):
        memories = judge_all((SPIKE,), seen, contract(), memories).memories  # type: ignore[arg-type,assignment] # CheckId
        sizes_seen.append(len(memories[SPIKE.id]))

    assert max(sizes_seen) < 6_000
    assert max(sizes_seen[40:]) <= 1.2 * max(sizes_seen[:40])


def test_a_spike_between_two_looks_is_told_at_the_second_and_resolves_at_the_third() -> None:
    """Field report R20: a spike of 12 steps in a long run is found, though the loss is back when Hero looks."""
    run = scaled(decay(rows=300), 1.8, 210, 225)

    found = verdicts(SPIKE, looks(run))

    assert [number for number, each in enumerate(found) if isinstance(each, Fail)] == [4]
    assert isinstance(found[4], Fail)
    assert ", until step 225" in found[4].finding.summary
    assert found[5] == Pass()


def test_a_loss_that_stays_up_stays_one_finding_and_does_not_become_the_new_trend() -> None:
    run = scaled(decay(rows=2_000), 1.8, 500)

    found = findings(SPIKE, looks(run))

    assert len(found) == 30
    assert {(each.since_step, each.key) for each in found} == {(500, found[0].key)}


def test_a_spike_wakes_the_dri_from_twice_the_trend_on() -> None:
    run = decay(rows=400)

    assert findings(SPIKE, looks(scaled(run, 1.7, 300, 320)))[0].severity is Severity.WARNING
    assert findings(SPIKE, looks(scaled(run, 2.5, 300, 320)))[0].severity is Severity.CRITICAL


def test_an_explosion_that_ends_in_nan_is_a_spike_too() -> None:
    run = [*decay(rows=200), row(201, loss=40.0), row(202, loss=4e6), row(203, loss=math.nan)]

    assert findings(SPIKE, looks(run))[0].since_step == 201


def test_nan_alone_is_the_other_check_s() -> None:
    run = [*decay(rows=200), *(row(step, loss=math.nan) for step in range(201, 260))]

    assert not findings(SPIKE, looks(run))


def test_a_restore_to_an_earlier_higher_loss_is_none() -> None:
    """Field report R37: rows of two attempts in one window read a normal restore as a jump."""
    run = decay("linear", rows=600)

    assert not findings(SPIKE, looks([*run[:500], *run[200:600]], [37]))


def test_a_launch_that_starts_from_scratch_is_none() -> None:
    run = decay("exponential", rows=400)
    story = [*looks(run), *looks(run, submitted_at=START + HOUR, minutes=200)]

    assert not findings(SPIKE, story)


def test_a_rise_after_a_restore_still_alarms() -> None:
    run = decay("linear", rows=600)
    again = scaled(run[200:500], 1.8, 400, 430)

    assert findings(SPIKE, looks([*run[:500], *again]))


def test_rows_that_come_twice_change_nothing() -> None:
    run = scaled(decay(rows=400, noise=0.03), 1.7, 250, 265)
    story = [*looks(run[:100]), *looks(run[99:], minutes=100)]

    assert [each.since_step for each in findings(SPIKE, story)] == [250]


def test_warm_up_is_allowed_fast_changes_unless_they_stay() -> None:
    run = decay("flat", rows=200)

    assert not findings(SPIKE, looks(scaled(run, 1.8, 40, 60)))
    assert findings(SPIKE, looks(scaled(run, 1.8, 40, 75)))


def test_warm_up_lasts_as_long_as_the_learning_rate_rises() -> None:
    def warmed(last: int) -> list[MetricRow]:
        run = scaled(decay("flat", rows=500), 1.8, 300, 320)
        return [each.model_copy(update={"values": {**each.values, "lr": min(each.step, last) * 1e-6}}) for each in run]

    assert not findings(SPIKE, looks(warmed(400)))
    assert findings(SPIKE, looks(warmed(100)))


def test_data_that_swings_by_a_factor_from_row_to_row_needs_a_longer_stretch() -> None:
    """A batch of mixed images every few steps: the floor falls steadily, and nothing is wrong."""
    dice = random.Random(3)
    run = [
        row(each.step, loss=each.values["loss"] * (2.2 if dice.random() < 0.3 else 1))
        for each in decay(rows=1_500, every=100, noise=0.05)
    ]

    assert not findings(SPIKE, looks(run))


def test_without_losses_above_zero_the_rule_does_not_apply() -> None:
    assert isinstance(verdict(SPIKE, snapshot()), NotApplicable)
    assert isinstance(verdict(SPIKE, *looks([row(step, loss=-2.0) for step in range(100)])), NotApplicable)


def test_what_cannot_be_read_says_nothing_and_forgets_nothing() -> None:
    run = scaled(decay(rows=400), 2, 300)
    before = list(looks(run))

    assert isinstance(verdict(SPIKE, *before, snapshot(metrics=unknown())), UnknownVerdict)
    assert finding(SPIKE, *before, snapshot(metrics=unknown()), snapshot()).since_step == 300
    assert isinstance(verdict(SPIKE, *looks(run[:100]), snapshot(jobs=unknown())), UnknownVerdict)
