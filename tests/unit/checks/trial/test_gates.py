"""What passes, what fails, and what nobody can tell: one gate over one window."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bot.model.series import Figure
from bot.model.trial import Outcome
from tests.unit.checks.trial.runs import FIRST, STEPS, batches, figure, judge, noise

_GATE = "loss mean <= +0.001"


def _without(of: Figure, kept: np.typing.NDArray[np.bool_]) -> Figure:
    return Figure(of.steps[kept], of.executions[kept], of.values[kept])


def _changed(of: Figure, at: int, value: float) -> Figure:
    values = of.values.copy()
    values[at] = value
    return Figure(of.steps, of.executions, values)


@pytest.mark.parametrize("shift", [0.002, 0.005])
def test_a_small_shift_under_large_common_swings_is_seen_every_time(shift: float) -> None:
    outcomes = {
        judge(
            _GATE, figure(batches(seed)), figure(batches(seed) + shift + noise(seed + 500, r=0.3, sd=0.001)[0])
        ).outcome
        for seed in range(40)
    }

    assert outcomes == {Outcome.FAIL}


def test_an_unpaired_rank_test_sees_nothing_of_the_larger_of_them() -> None:
    """Why steps are paired."""
    mine, theirs = batches(1), batches(1) + 0.005 + noise(501, sd=0.001)[0]

    assert stats.mannwhitneyu(mine, theirs).pvalue > 0.3
    assert judge(_GATE, figure(mine), figure(theirs)).outcome is Outcome.FAIL


@pytest.mark.parametrize("sd", [0.0, 1e-9, 1e-5, 1e-4])
@pytest.mark.parametrize("r", [0.0, 0.9])
def test_equal_runs_pass_whether_or_not_they_are_equal_to_the_last_bit(sd: float, r: float) -> None:
    for seed in range(10):
        judged = judge(_GATE, figure(batches(seed)), figure(batches(seed) + noise(seed + 500, r=r, sd=sd)[0]))

        assert judged.outcome is Outcome.PASS
        assert any("last bit" in reason for reason in judged.reasons) is (sd == 0)


def test_numbers_are_those_of_plain_numpy() -> None:
    mine, theirs = batches(1), batches(1) + noise(501)[0]

    judged = judge("loss mean <= +1%", figure(mine), figure(theirs))

    deltas = theirs - mine
    assert judged.delta == pytest.approx(deltas.mean() / mine.mean())
    assert judged.margin == pytest.approx(0.01 - deltas.mean() / mine.mean())
    assert judged.mean_delta == pytest.approx(deltas.mean())
    assert judged.max_delta == pytest.approx(deltas[np.abs(deltas).argmax()])
    assert judged.max_step == FIRST + np.abs(deltas).argmax()
    assert judged.low is not None
    assert judged.high is not None
    assert judged.low < (deltas / mine.mean()).mean() < judged.high


@pytest.mark.parametrize(
    ("gate", "shift", "outcome"),
    [
        ("x mean <= +0.01", 0.02, Outcome.FAIL),
        ("x mean <= +0.01", -0.02, Outcome.PASS),
        ("x mean >= -0.01", -0.02, Outcome.FAIL),
        ("x mean >= -0.01", 0.02, Outcome.PASS),
        ("x mean within 0.01", 0.02, Outcome.FAIL),
        ("x mean within 0.01", -0.02, Outcome.FAIL),
        ("x mean within 0.01", 0.0, Outcome.PASS),
        ("x mean >= +0.01", 0.02, Outcome.PASS),
        ("x mean >= +0.01", 0.0, Outcome.FAIL),
        ("x mean <= -0.01", -0.02, Outcome.PASS),
        ("x mean >= -1%", -0.03, Outcome.FAIL),
        ("x mean >= -1%", -0.01, Outcome.PASS),
        ("x p95 <= +0.01", 0.02, Outcome.FAIL),
        ("x p50 <= +0.01", 0.0, Outcome.PASS),
        ("x p50 >= -0.01", -0.02, Outcome.FAIL),
        ("x max <= +0.01", 0.02, Outcome.FAIL),
        ("x max <= +0.01", 0.0, Outcome.PASS),
        ("x max >= -0.01", -0.02, Outcome.FAIL),
        ("x max within 0.01", -0.02, Outcome.FAIL),
    ],
)
def test_a_gate_knows_which_way_is_bad(gate: str, shift: float, outcome: Outcome) -> None:
    judged = judge(gate, figure(batches(1)), figure(batches(1) + shift + noise(501, sd=0.001)[0]))

    assert judged.outcome is outcome
    assert judged.margin is not None
    assert (judged.margin > 0) is (outcome is Outcome.PASS)


def test_one_bad_step_fails_the_worst_and_not_the_mean() -> None:
    child = _changed(figure(batches(1) + noise(501, sd=1e-4)[0]), 120, 2.5 + batches(1)[120])

    worst = judge("loss max <= +0.05", figure(batches(1)), child)

    assert (worst.outcome, worst.failed_first_at) == (Outcome.FAIL, FIRST + 120)
    assert judge("loss max <= +0.05 skip 121", figure(batches(1)), child).outcome is Outcome.PASS
    assert judge("loss p95 <= +0.05", figure(batches(1)), child).outcome is Outcome.PASS


def test_a_gate_may_fail_long_before_the_window_ends_and_passes_only_at_its_end() -> None:
    bad, good = (batches(1) + shift + noise(501, sd=0.001)[0] for shift in (0.005, 0.0))

    early = [judge(_GATE, figure(batches(1)), figure(bad[:n], STEPS[:n])).outcome for n in (50, 100, 199)]
    late = [judge(_GATE, figure(batches(1)), figure(good[:n], STEPS[:n])) for n in (50, 100, 199, 200)]

    assert early == [Outcome.CANNOT_TELL, Outcome.FAIL, Outcome.FAIL]
    assert [each.outcome for each in late] == [Outcome.CANNOT_TELL] * 3 + [Outcome.PASS]
    assert late[1].reasons == (
        "100 of 200 steps, and 200 are needed",
        "the child has come to step 1099, and the window goes to 1199",
    )


def test_a_shift_within_the_noise_is_neither_passed_nor_failed() -> None:
    judged = judge(_GATE, figure(batches(1)), figure(batches(1) + 0.001 + noise(501, sd=0.01)[0]))

    assert judged.outcome is Outcome.CANNOT_TELL
    assert judged.reasons[0].startswith("the interval reaches over the limit")


@pytest.mark.parametrize("level", [0.0, 5.0])
@pytest.mark.parametrize("gate", ["x mean <= +0.01", "x max <= +0.01", "x p50 <= +0.01"])
def test_a_control_that_never_changes_passes_nothing_but_may_fail(level: float, gate: str) -> None:
    flat = figure(np.full(200, level))

    equal, worse = judge(gate, flat, flat), judge(gate, flat, figure(np.full(200, level + 1)))

    assert equal.outcome is Outcome.CANNOT_TELL
    assert worse.outcome is Outcome.FAIL
    assert judge(gate + " flat", flat, flat).outcome is (Outcome.PASS if level else Outcome.CANNOT_TELL)


def test_nothing_is_nothing() -> None:
    some = figure(batches(1))

    for control, child in ((None, None), (some, None), (None, some), (some, figure(batches(1), STEPS + 5000))):
        judged = judge(_GATE, control, child)

        assert judged.outcome is Outcome.CANNOT_TELL
        assert "loss: the" in judged.reasons[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_child_that_is_no_number_where_the_control_is_one_fails(value: float) -> None:
    judged = judge(_GATE, figure(batches(1)), _changed(figure(batches(1)), 60, value))

    assert judged.outcome is Outcome.FAIL
    assert "at step 1060" in judged.reasons[0]


def test_a_control_that_is_no_number_is_a_gap() -> None:
    judged = judge(_GATE, _changed(figure(batches(1)), 60, math.nan), figure(batches(1)))

    assert judged.outcome is Outcome.CANNOT_TELL
    assert judged.reasons[:2] == (
        "199 of 200 steps, and 200 are needed",
        "the control has 1 steps that are NaN or infinite",
    )


def test_rows_that_contradict_each_other_are_a_gap_and_rows_that_agree_are_none() -> None:
    child = figure(batches(1))
    again = Figure(np.append(STEPS, 1050), np.zeros(201, np.int64), np.append(child.values, child.values[50]))
    other = Figure(again.steps, again.executions, np.append(child.values, 9.0))

    agreeing, contradicting = judge(_GATE, figure(batches(1)), again), judge(_GATE, figure(batches(1)), other)

    assert agreeing.outcome is Outcome.PASS
    assert agreeing.child is not None
    assert agreeing.child.same_again == 1
    assert contradicting.outcome is Outcome.CANNOT_TELL
    assert contradicting.reasons[1] == "the child has 1 steps with rows that contradict each other"


def test_a_gap_is_no_gap_where_it_was_agreed_on() -> None:
    kept = np.arange(200) % 40 != 7
    child = _without(figure(batches(1) + noise(501, sd=1e-4)[0]), kept)

    assert judge(_GATE, figure(batches(1)), child).outcome is Outcome.CANNOT_TELL
    assert judge(f"{_GATE} coverage 97%", figure(batches(1)), child).outcome is Outcome.PASS
    assert judge(f"{_GATE} coverage 98%", figure(batches(1)), child).outcome is Outcome.CANNOT_TELL


def test_a_figure_of_every_tenth_step_is_whole_with_every_tenth_step() -> None:
    tenth = np.arange(1000, 1200, 10)
    speed = 1e6 + 2000 * np.random.default_rng(1).standard_normal((2, 20))

    equal = judge("tokens_per_second mean >= -1%", figure(speed[0], tenth), figure(speed[1], tenth))
    slow = judge("tokens_per_second mean >= -1%", figure(speed[0], tenth), figure(0.98 * speed[1], tenth))
    sparse = judge("tokens_per_second mean >= -1%", figure(speed[0], tenth), figure(speed[1][::2], tenth[::2]))
    every = judge("tokens_per_second mean >= -1% every 1", figure(speed[0], tenth), figure(speed[1], tenth))

    assert (equal.outcome, equal.covered, equal.expected, equal.stride) == (Outcome.PASS, 20, 20, 10)
    assert slow.outcome is Outcome.FAIL
    assert (sparse.outcome, sparse.covered) == (Outcome.CANNOT_TELL, 10)
    assert (every.outcome, every.expected) == (Outcome.CANNOT_TELL, 200)


def test_losses_of_other_batches_are_remarked_on() -> None:
    judged = judge("loss mean <= +0.1", figure(batches(1)), figure(batches(2)))

    assert any("are these the same batches?" in reason for reason in judged.reasons)


def test_values_too_large_to_add_up_pass_nothing() -> None:
    huge = np.where(np.arange(200) % 2 == 0, 1.7e308, -1.7e308)

    for gate in ("x mean <= +1", "x mean <= +1%", "x p50 <= +1", "x max <= +1", "x mean within 1"):
        judged = judge(gate, figure(huge), figure(-huge))

        assert judged.outcome is not Outcome.PASS


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 500),
    sd=st.sampled_from((1e-4, 1e-3, 5e-3)),
    shift=st.sampled_from((-0.002, 0.0, 0.001, 0.003)),
    gate=st.sampled_from((_GATE, "loss max <= +0.004", "loss p90 <= +0.002", "loss mean within 0.1%")),
    gaps=st.sets(st.integers(0, 199), min_size=1, max_size=30),
)
def test_a_gap_never_makes_a_pass(seed: int, sd: float, shift: float, gate: str, gaps: set[int]) -> None:
    control, child = figure(batches(seed)), figure(batches(seed) + shift + noise(seed + 500, sd=sd)[0])
    kept = np.ones(200, bool)
    kept[list(gaps)] = False

    for one, other in ((control, _without(child, kept)), (_without(control, kept), child)):
        assert judge(gate, one, other).outcome is not Outcome.PASS


_KINDS = st.sampled_from(("mean <= +1e3", "max <= +1e3", "p50 >= -1e3", "mean within 1e3", "mean <= +99%"))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 500), level=st.sampled_from((0.0, -0.0, 2.3, -1.0, 1e-9)), kind=_KINDS, is_flat=st.booleans()
)
def test_a_child_that_never_changes_passes_nothing_where_the_control_moves(
    seed: int, level: float, kind: str, is_flat: bool
) -> None:
    still = figure(np.full(200, level))

    judged = judge(f"x {kind}{' flat' * is_flat}", figure(batches(seed)), still)

    assert judged.outcome is not Outcome.PASS
    assert judged.outcome is Outcome.FAIL or any("child's x is" in reason for reason in judged.reasons)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 500), at=st.integers(0, 199), kind=_KINDS)
def test_a_child_that_changes_but_once_is_judged_by_the_limit(seed: int, at: int, kind: str) -> None:
    control, level = batches(seed), float(batches(seed).mean())
    child = _changed(figure(np.full(200, level)), at, level + 1e-3)

    assert judge(f"x {kind}", figure(control), child).outcome is Outcome.PASS


def test_a_child_that_is_beyond_the_limit_fails_also_where_it_never_changes() -> None:
    judged = judge("tokens_per_second mean >= -1%", figure(batches(1)), figure(np.zeros(200)))

    assert judged.outcome is Outcome.FAIL


@pytest.mark.parametrize(("child", "outcome"), [(80.0, Outcome.PASS), (70.0, Outcome.PASS), (0.0, Outcome.CANNOT_TELL)])
def test_a_constant_child_is_fine_where_a_constant_control_was_agreed_on_and_zero_is_not(
    child: float, outcome: Outcome
) -> None:
    judged = judge("peak_memory max <= +1% flat", figure(np.full(200, 80.0)), figure(np.full(200, child)))

    assert judged.outcome is outcome


@given(seed=st.integers(0, 500), kind=_KINDS)
def test_rows_that_are_equal_to_the_last_bit_are_remarked_on_and_bar_nothing(seed: int, kind: str) -> None:
    """Two runs of one program may well log the same; whose rows they are is told by the execution."""
    judged = judge(f"x {kind}", figure(batches(seed)), figure(batches(seed)))

    assert judged.outcome is Outcome.PASS
    assert any("equal to the last bit" in reason for reason in judged.reasons)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 500),
    shift=st.sampled_from((-0.05, 0.0, 0.02, 0.05)),
    scale=st.integers(-20, 20).map(lambda power: 2.0**power),
    gate=st.sampled_from(("loss mean <= +1%", "loss max within 2%", "loss p80 >= -1%")),
)
def test_the_unit_of_a_figure_changes_nothing_in_a_relative_gate(
    seed: int, shift: float, scale: float, gate: str
) -> None:
    mine, theirs = batches(seed), batches(seed) + shift + noise(seed + 500)[0]

    plain, scaled = judge(gate, figure(mine), figure(theirs)), judge(gate, figure(scale * mine), figure(scale * theirs))

    assert scaled.outcome is plain.outcome
    assert scaled.delta == plain.delta
    assert scaled.reasons == plain.reasons
