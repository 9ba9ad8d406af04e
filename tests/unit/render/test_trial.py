"""A trial in words and as a picture: nothing grave is cut, nothing is averaged away, and it fits."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.curve import MOST_POINTS
from bot.model.gate import Gate, parse_gate
from bot.model.series import History
from bot.model.trial import Judged, Outcome, Window
from bot.model.update import Update, UpdateKind
from bot.model.verdict import Severity
from bot.render.chart import chart_png, spark_lines
from bot.render.console import console_lines
from bot.render.github import github_body
from bot.render.trial import chart_of_trial, comparison_lines, gate_line, verdict_line
from tests.fakes.snapshots import AT, RUN
from tests.fakes.trial_reports import CHILD, WINDOW, a_comparison, a_history, figure, joined


def test_a_comparison_reads_as_its_golden_lines(golden: Callable[[str, str], None]) -> None:
    found = a_comparison()

    lines = (verdict_line(found), *comparison_lines(found, limit=20), "", *comparison_lines(found, limit=4))

    golden("trial/comparison.txt", "\n".join(lines) + "\n")


def test_an_update_of_a_trial_shows_both_runs_where_no_picture_can_be(golden: Callable[[str, str], None]) -> None:
    control, child = a_history(900, 1099), a_history(1000, 1099, seed=2, shift=0.005)
    window = Window(first_step=1000, steps=100)
    update = Update(
        kind=UpdateKind.ROUTINE_STATUS,
        run_id=RUN,
        at=AT,
        severity=Severity.CRITICAL,
        headline=verdict_line(a_comparison()),
        evidence=comparison_lines(a_comparison(), limit=6),
        chart=chart_of_trial(RUN, CHILD, control, child, window),
    )

    github, console = github_body(update, key="k", timezone="UTC"), console_lines(update, "UTC")

    golden("trial/update.md", github + "\n\n---\n\n" + "\n".join(console) + "\n")


def test_before_the_childs_first_step_the_chart_shows_the_control_and_says_so() -> None:
    chart = chart_of_trial(RUN, CHILD, a_history(900, 1250), History({}), WINDOW)

    assert chart is not None
    assert chart_png(chart).startswith(b"\x89PNG")
    lines = spark_lines(chart)
    assert lines[0].startswith(f"loss, control {RUN} ")
    assert lines[1] == f"loss, child {CHILD}: nothing is kept yet"
    assert lines[2] == "loss, difference: no step of both yet"
    assert chart_of_trial(RUN, CHILD, History({}), History({}), WINDOW) is None


def test_the_difference_in_the_chart_is_that_of_the_same_steps() -> None:
    control = History({"loss": figure([1000, 1001, 1002, 1004], [2.0, 3.0, 2.5, 9.0])})
    child = History({"loss": figure([1001, 1002, 1003, 1004], [3.25, 2.5, 7.0, math.nan])})

    chart = chart_of_trial(RUN, CHILD, control, child, WINDOW)

    assert chart is not None
    assert spark_lines(chart)[2].endswith("mean +0.125, largest +0.25 at step 1001")


def test_of_several_attempts_the_newest_is_shown_and_contradicting_rows_are_a_gap() -> None:
    first, second = figure([1000, 1001, 1002], [1.0, 1.0, 1.0], 0), figure([1000, 1001, 1001], [2.0, 3.0, 4.0], 1)

    chart = chart_of_trial(RUN, CHILD, History({"loss": joined(first, second)}), History({}), WINDOW)

    assert chart is not None
    assert chart.points == ((1000, 2.0, None), (1001, None, None))


@pytest.mark.parametrize("steps", [1, 200, 100_000])
def test_a_chart_travels_with_its_message_whatever_the_windows_length(steps: int) -> None:
    window = Window(first_step=1000, steps=steps)
    long = History({"loss": figure(np.arange(1, 60_000), np.linspace(3, 2, 59_999))})

    chart = chart_of_trial(RUN, CHILD, long, long, window)

    assert chart is not None
    assert chart.beside is not None
    assert len(chart.points) <= MOST_POINTS
    assert [step for step, *_ in chart.points] == [step for step, *_ in chart.beside.points]


NUMBER = st.none() | st.floats(allow_nan=False)
HOSTILE = st.text(max_size=300) | st.sampled_from(
    ["a\nb\r\nc", "\x1b[31mred\x1b[0m", "\u202eevil", "@everyone <!channel> `x`"]
)


@given(st.data())
def test_every_line_is_one_line_of_bounded_length_whatever_was_measured(data: st.DataObject) -> None:
    gate: Gate = parse_gate(data.draw(st.sampled_from(["loss mean <= +1", "x p95 within 2%", "x max >= -1%"])))
    judged = Judged(
        gate=gate,
        outcome=data.draw(st.sampled_from(Outcome)),
        reasons=tuple(data.draw(st.lists(HOSTILE, min_size=1, max_size=3))),
        delta=data.draw(NUMBER),
        low=data.draw(NUMBER),
        high=data.draw(NUMBER),
        margin=data.draw(NUMBER),
    )

    line = gate_line(judged)

    assert len(line.splitlines()) == 1
    assert len(line) <= 400
    assert str(gate) in line


@given(
    limit=st.integers(0, 30),
    outcomes=st.lists(st.sampled_from(Outcome), max_size=12),
    notes=st.lists(HOSTILE.filter(str.strip), max_size=5),
)
def test_what_is_grave_comes_first_and_what_is_left_out_is_counted(
    limit: int, outcomes: list[Outcome], notes: list[str]
) -> None:
    gate = parse_gate("loss mean <= +1")
    gates = tuple(Judged(gate=gate, outcome=outcome, reasons=("so",)) for outcome in outcomes)
    found = a_comparison(gates=gates, quiet=None, notes=tuple(notes))

    lines = comparison_lines(found, limit=limit)

    whole = len(gates) + len(notes) + len(found.others)
    assert len(lines) == min(limit, whole)
    if 0 < limit < whole:
        assert lines[-1].startswith(f"… and {whole - limit + 1} more line")
    order = ["✗?·✓".index(line[0]) for line in lines if line[0] in "✗?✓"]
    assert order == sorted(order)
    assert sum(line.startswith("✗") for line in lines) == min(
        outcomes.count(Outcome.FAIL), max(0, limit - (limit < whole))
    )
