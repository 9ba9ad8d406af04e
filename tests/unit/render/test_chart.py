"""A run's picture: a file that any figures can be drawn into, and one line of text where none can be shown."""

import math
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bot.model.chart import Beside, Chart, Mark
from bot.model.value import RunId
from bot.model.verdict import Severity
from bot.render.chart import chart_png, spark_lines

RUN = RunId("hero-$x_{1}")


def chart(*points: Any, marks: tuple[Mark, ...] = ()) -> Chart:
    return Chart(run_id=RUN, points=points, marks=marks)


def test_a_falling_loss_falls_and_a_steady_throughput_is_flat() -> None:
    loss, speed = spark_lines(chart(*((step, 8.0 - step, 1000.0 + step % 2) for step in range(8))))

    assert loss == "loss █▇▆▅▄▃▂▁ 8 → 1 (steps 0 to 7)"
    assert speed == "tokens/s ████████ 1,000 → 1,001 (steps 0 to 7)"


def test_a_collapse_of_the_throughput_is_seen() -> None:
    speed = spark_lines(chart(*((step, None, 1000.0 if step < 4 else 100.0) for step in range(8))))[1]

    assert "████▂▂▂▂" in speed


def test_a_run_without_figures_has_a_picture_that_says_so() -> None:
    assert chart_png(chart()).startswith(b"\x89PNG")
    assert spark_lines(chart()) == ("loss: nothing is kept yet", "tokens/s: nothing is kept yet")


FIGURE = st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32)
POINTS = st.lists(st.tuples(st.integers(0, 10**9), FIGURE, FIGURE), max_size=30)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(points=POINTS, at=st.integers(0, 10**9))
def test_whatever_was_logged_can_be_drawn(points: list[tuple[int, float | None, float | None]], at: int) -> None:
    mark = Mark(label="I1 $\\frac", severity=Severity.CRITICAL, step=at, from_step=at, to_step=at)

    assert chart_png(chart(*points, marks=(mark,))).startswith(b"\x89PNG")


@settings(
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],  # each takes half a second: it fails soon, and is not made smaller
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mine=POINTS, theirs=POINTS, label=st.text(st.characters(max_codepoint=126), max_size=60))
def test_whatever_two_runs_logged_can_be_drawn_over_one_another(
    mine: list[tuple[int, float | None, float | None]],
    theirs: list[tuple[int, float | None, float | None]],
    label: str,
) -> None:
    both = chart(*mine).model_copy(update={"label": "$x", "beside": Beside(label=label, points=tuple(theirs))})

    assert chart_png(both).startswith(b"\x89PNG")
    lines = spark_lines(both)
    assert len(lines) == 5
    assert all(len(line.splitlines()) == 1 and len(line) < 200 for line in lines)


def test_a_figure_of_every_tenth_row_is_a_line_and_no_row_of_gaps() -> None:
    points = [(step, 2.0, 1e6 if step % 10 == 0 else None) for step in range(400)]

    assert chart_png(chart(*points)) != chart_png(chart(*((step, loss, None) for step, loss, _ in points)))


def test_a_chart_that_was_stored_before_there_were_two_runs_is_read() -> None:
    stored = chart((1, 2.0, None)).model_dump(mode="json", exclude={"label", "beside"})

    assert Chart.model_validate(stored) == chart((1, 2.0, None))


@given(points=POINTS)
def test_a_line_of_text_is_short_and_finite(points: list[tuple[int, float | None, float | None]]) -> None:
    for line in spark_lines(chart(*points)):
        assert len(line) < 140
        assert str(math.nan) not in line
