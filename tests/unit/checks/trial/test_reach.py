"""Whether a gate can pass at all is said before anything is stopped, and the judge of the gates agrees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.gate import parse_gate
from bot.model.trial import Outcome, Window
from checks.trial.reach import can_pass, what_is_open, why_it_cannot_pass
from tests.unit.checks.trial.runs import FIRST, batches, figure, judge

ALPHA = 0.05
"""That of ``judge``."""


@settings(max_examples=300, deadline=None)
@given(
    window_steps=st.integers(1, 260),
    stride=st.integers(1, 40),
    skip=st.integers(0, 12),
    kind=st.sampled_from(("mean <= +1", "mean within 1", "max <= +1", "p50 <= +1", "p95 >= -1", "p5 <= +1")),
    seed=st.integers(0, 50),
)
def test_equal_runs_pass_a_gate_exactly_where_it_can_pass(
    window_steps: int, stride: int, skip: int, kind: str, seed: int
) -> None:
    gate = f"x {kind} skip {skip} every {stride}"
    first = -(-FIRST // stride) * stride
    window = Window(first_step=first, steps=window_steps)
    steps = np.arange(first, first + window_steps, stride)
    values = batches(seed, len(steps))

    judged = judge(gate, figure(values, steps), figure(values + 1e-3 * (np.arange(len(steps)) % 2), steps), window)

    assert (judged.outcome is Outcome.PASS) is can_pass(parse_gate(gate), window_steps, stride, ALPHA)


@pytest.mark.parametrize(
    ("gate", "window_steps", "why"),
    [
        ("loss mean <= +0.002", 200, ""),
        ("loss mean <= +0.002", 10, ""),
        ("loss mean <= +0.002", 9, "9 steps have 9 rows of it, and at least 10 rows are needed"),
        ("mfu mean >= -1% every 10", 100, ""),
        ("mfu mean >= -1% every 10", 80, ""),
        ("mfu mean >= -1% every 10", 70, "70 steps have 7 rows of it"),
        ("mfu mean >= -1% every 50", 200, "200 steps have 4 rows of it"),
        ("mfu mean >= -1% skip 15 every 10", 200, "5 rows of it behind 15 of warm-up"),
        ("mfu max >= -1% skip 20 every 10", 200, "nothing is left to compare"),
        ("mfu max >= -1% every 50", 200, ""),
        ("mfu max >= -1% every 200", 200, "one alone never changes"),
        ("mfu max >= -1% every 200 flat", 200, ""),
        ("mfu p95 >= -1% every 50", 200, "4 rows of it"),
    ],
)
def test_a_window_that_is_too_short_for_a_gate_is_told(gate: str, window_steps: int, why: str) -> None:
    said = why_it_cannot_pass(parse_gate(gate), window_steps, ALPHA)

    assert bool(said) is bool(why)
    assert why in said


def test_of_a_figure_whose_rhythm_is_not_stated_it_is_told_when_it_could_not_pass() -> None:
    assert "logged every 10 steps: 50 steps have 5 rows" in what_is_open(parse_gate("mfu mean >= -1%"), 50, ALPHA)
    assert what_is_open(parse_gate("mfu mean >= -1%"), 200, ALPHA) == ""
    assert what_is_open(parse_gate("mfu mean >= -1% every 10"), 50, ALPHA) == ""
    assert what_is_open(parse_gate("mfu mean >= -1%"), 5, ALPHA) == ""
