"""throughput.collapse: far below the instance's own baseline for long; pauses, dips and other launches are none."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.snapshot import MetricRow
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.throughput import COLLAPSE
from tests.fakes.clock import START
from tests.fakes.snapshots import contract, later, row, snapshot, unknown
from tests.unit.checks.curves import HOUR, decay, findings, first_fail, looks, named, scaled, sizes
from tests.unit.checks.story import verdict, verdicts


def _seconds(rows: int = 600, *, every: int = 1, noise: float = 0.03, seed: int = 0) -> list[MetricRow]:
    """Return step times around 2 s: the first compiles, and every hundredth row an evaluation lies in between."""
    run = named(
        decay("flat", rows=rows, every=every, noise=noise, seed=seed), "step_time_s", lambda value: value * 2 / 0.7
    )
    paused = [
        row(each.step, step_time_s=each.values["step_time_s"] * 8) if n % 100 == 99 else each
        for n, each in enumerate(run)
    ]
    return scaled(paused, 30, last=1, name="step_time_s")


@settings(max_examples=40, deadline=None)
@given(
    every=st.sampled_from([1, 10, 100]),
    noise=st.sampled_from([0.0, 0.02, 0.1]),
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 600),
)
def test_a_steady_run_with_pauses_never_alarms(every: int, noise: float, seed: int, rows: int) -> None:
    assert not findings(COLLAPSE, looks(_seconds(rows, every=every, noise=noise, seed=seed)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), start=st.integers(60, 500), cuts=sizes())
def test_a_third_slower_for_a_hundred_steps_alarms_wherever_the_looks_are(
    seed: int, start: int, cuts: list[int]
) -> None:
    run = scaled(_seconds(seed=seed), 1.5, start, start + 99, "step_time_s")

    found = findings(COLLAPSE, looks(run, cuts))

    assert found
    assert abs((found[0].since_step or 0) - start) <= 2
    assert found[0].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("factor", "steps", "is_told"), [(1.25, 300, False), (1.5, 40, False), (2.5, 10, False), (2.5, 20, True)]
)
def test_small_and_short_drops_are_none_and_deep_ones_are_told_sooner(factor: float, steps: int, is_told: bool) -> None:
    run = scaled(_seconds(), factor, 300, 299 + steps, "step_time_s")

    assert bool(findings(COLLAPSE, looks(run))) is is_told


def test_every_tenth_step_may_be_slow_by_design() -> None:
    run = [row(each.step, step_time_s=5.0) if each.step % 10 == 0 else each for each in _seconds()]

    assert not findings(COLLAPSE, looks(run))


def test_a_creep_is_held_against_what_the_instance_could_do() -> None:
    run = [
        row(each.step, step_time_s=each.values["step_time_s"] * (1 + max(0, each.step - 400) / 1000))
        for each in _seconds(1_200)
    ]

    found = findings(COLLAPSE, looks(run))

    assert found
    assert 650 < (found[0].since_step or 0) < 850


def test_tokens_per_second_count_before_step_times_and_are_said_as_such() -> None:
    run = [
        row(
            each.step,
            tokens_per_second=1e6 / each.values["step_time_s"] / (2 if each.step > 400 else 1),
            step_time_s=2.0,
        )
        for each in _seconds()
    ]

    found = findings(COLLAPSE, looks(run))[0]

    assert found.summary.startswith("throughput 50 % below this instance's baseline since step 40")  # 400 pauses
    assert "tokens/s" in found.evidence[0]


def test_no_tokens_at_all_are_a_collapse_and_no_crash() -> None:
    run = [row(step, tokens_per_second=0.0 if step > 100 else 1e6) for step in range(200)]

    assert "100 % below" in findings(COLLAPSE, looks(run))[0].summary


def test_time_that_is_lost_between_rows_is_seen_by_the_clock() -> None:
    """Field report R53: the step duration looked flat while wall-clock gaps between rows showed lost time."""
    run = []
    seconds = 0.0
    for step in range(400):
        seconds += 30 if step <= 250 else 50
        run.append(MetricRow(step=step, values={"step_time_s": 20.0}, at=later(seconds / 60)))

    found = findings(COLLAPSE, looks(run))[0]

    assert "by the time between rows" in found.summary
    assert abs((found.since_step or 0) - 252) <= 4


def test_one_long_pause_by_the_clock_is_none() -> None:
    run = [
        MetricRow(step=step, values={"loss": 2.0}, at=later(step / 2 + (40 if step > 200 else 0)))
        for step in range(400)
    ]

    assert not findings(COLLAPSE, looks(run))


def test_a_launch_on_another_topology_learns_its_own_baseline() -> None:
    run = _seconds()
    slower = scaled(run, 2, name="step_time_s")
    story = [*looks(run), *looks(slower, submitted_at=START + HOUR, minutes=300)]

    assert not findings(COLLAPSE, story)


def test_a_retry_that_replays_steps_keeps_the_baseline() -> None:
    run = _seconds()

    assert not findings(COLLAPSE, looks([*run[:400], *run[200:]]))
    assert findings(COLLAPSE, looks([*run[:400], *scaled(run[200:], 1.6, name="step_time_s")]))


def test_wobbling_around_the_limit_is_one_incident() -> None:
    """Field report R38: metrics near a threshold produced endless pairs of alert and recovery."""
    dice = random.Random(5)
    run = [
        row(
            each.step,
            step_time_s=each.values["step_time_s"]
            * (math.exp(dice.gauss(math.log(1.36), 0.03)) if each.step > 300 else 1),
        )
        for each in _seconds(2_000)
    ]

    found = verdicts(COLLAPSE, looks(run))

    first = first_fail(found)
    assert first is not None
    assert all(isinstance(each, Fail) for each in found[first:])


def test_it_resolves_when_the_speed_is_back() -> None:
    run = scaled(_seconds(), 2, 200, 299, "step_time_s")

    assert verdicts(COLLAPSE, looks(run))[-1] == Pass()


def test_a_contract_may_move_the_limit() -> None:
    run = scaled(_seconds(), 1.25, 300, 500, "step_time_s")
    promised = contract(thresholds={"throughput.collapse": {"drop": 0.1}})

    assert findings(COLLAPSE, looks(run), promised=promised)


def test_what_is_not_logged_or_cannot_be_read_is_no_pass() -> None:
    assert isinstance(verdict(COLLAPSE, *looks(decay())), NotApplicable)
    assert isinstance(verdict(COLLAPSE, *looks(_seconds()), snapshot(metrics=unknown())), UnknownVerdict)
    assert isinstance(verdict(COLLAPSE, *looks(_seconds()), snapshot(jobs=unknown())), UnknownVerdict)
