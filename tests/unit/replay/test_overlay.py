"""Two runs over one another: whatever was logged can be drawn, and what is not there is named."""

import io
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bot.model.series import History
from bot.model.trial import Window
from bot.replay.coverage import attempts_of, logged_in, say_ranges
from bot.replay.overlay import MOST_PANELS, overlay_png
from bot.replay.panels import shown_figures
from tests.fakes.trial_reports import GATES, WINDOW, a_comparison, a_history, figure, joined

NOTHING = History({})


def size_of(png: bytes) -> tuple[int, int]:
    height, width = matplotlib.image.imread(io.BytesIO(png), format="png").shape[:2]
    return width, height


def test_a_picture_is_as_wide_as_a_screen_and_grows_with_what_there_is_to_show() -> None:
    control, child = a_history(800, 1399), a_history(1000, 1150, seed=2, shift=0.005)

    whole = size_of(overlay_png(control, child, WINDOW, a_comparison().gates, "$x_{1} <b>"))
    before = size_of(overlay_png(control, NOTHING, WINDOW, (), "before the first step"))
    empty = size_of(overlay_png(NOTHING, NOTHING, WINDOW, (), "nothing yet"))

    assert whole[0] == before[0] == empty[0] == 1080
    assert whole[1] > before[1] > empty[1]


FLOATS = st.floats() | st.sampled_from([0.0, 1e308, -1e308, float("nan"), float("inf"), 5e-324])


@st.composite
def histories(draw: st.DrawFn) -> History:
    def one() -> Any:
        size = draw(st.integers(0, 12))
        steps = draw(st.lists(st.integers(0, 40), min_size=size, max_size=size))
        values = draw(st.lists(FLOATS, min_size=size, max_size=size))
        return figure(steps, values, draw(st.integers(0, 2)))

    words = draw(st.lists(st.sampled_from(["loss", "tokens_per_second", "grad_norm", "x$"]), unique=True, max_size=3))
    return History({word: joined(one(), one()) for word in words})


@settings(
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],  # each takes a second: it fails soon, and is not made smaller
    suppress_health_check=[HealthCheck.too_slow],
)
@given(control=histories(), child=histories(), first=st.integers(0, 30), steps=st.integers(1, 20))
def test_whatever_two_runs_logged_can_be_drawn(control: History, child: History, first: int, steps: int) -> None:
    window = Window(first_step=first, steps=steps)

    assert overlay_png(control, child, window, a_comparison().gates, "x").startswith(b"\x89PNG")
    logged_in(control, child, window, ("loss", "grad_norm"))


def test_the_loss_is_first_then_what_gates_are_about_then_what_matters_and_no_layers_own_figures() -> None:
    words = [
        "train/router/layer_3/entropy", "lr", "peak_memory_bytes", "moe/dropped_assignments", "router_entropy",
        "load_balancing_loss", "train/cross_entropy_loss", "my_gated_figure", "mfu", "loss", "step_time_s", "unknown",
    ]  # fmt: skip
    logged = History({word: figure([1], [1.0]) for word in words})

    shown = shown_figures(logged, NOTHING, ("my_gated_figure", "never_logged"), 50)

    assert shown == (
        "loss", "my_gated_figure", "train/cross_entropy_loss", "mfu", "step_time_s", "moe/dropped_assignments",
        "router_entropy", "load_balancing_loss", "peak_memory_bytes", "lr",
    )  # fmt: skip
    many = History({f"router_{n}_loss": figure([1], [1.0]) for n in range(100)})
    assert len(shown_figures(many, logged, (), MOST_PANELS)) == MOST_PANELS
    assert shown_figures(many, logged, (), MOST_PANELS)[0] == "loss"


def test_each_step_that_was_due_is_there_or_missing_or_still_to_come() -> None:
    steps = [step for step in range(1000, 1150) if step not in {1010, 1011, 1012, 1100}]
    control = a_history(900, 1250)
    child = History(
        {"loss": joined(figure(list(range(1000, 1050)), [9.0] * 50, 0), figure(steps, [2.0] * len(steps), 1))}
    )

    mine, theirs = logged_in(control, child, WINDOW, ("loss",))

    assert (mine.there, mine.due, mine.missing, mine.to_come) == (200, 200, (), 0)
    assert (theirs.there, theirs.due, theirs.to_come) == (146, 200, 50)
    assert theirs.missing == ("1010 to 1012 (3)", "1100")
    assert (theirs.mean, theirs.low, theirs.high, theirs.last) == (2.0, 2.0, 2.0, 2.0), "the newest attempt counts"
    assert theirs.rows.other_executions == 50
    assert attempts_of("child", child, WINDOW) == (
        "attempts 0, 1 of the child logged steps of the window; only 1, the newest, counts",
    )
    assert attempts_of("control", control, WINDOW) == ()


@given(st.sets(st.integers(0, 200)), st.integers(1, 10))
def test_ranges_name_every_step_or_count_it(steps: set[int], stride: int) -> None:
    said = say_ranges(np.array(sorted(each * stride for each in steps), np.int64), stride)

    named = 0
    for each in said:
        first, _, rest = each.partition(" to ")
        match rest.split(" "):
            case [last, count]:
                assert (int(last) - int(first)) // stride + 1 == int(count.strip("()"))
                named += int(count.strip("()"))
            case _:
                named += int(first.removesuffix(" more")) if first.endswith(" more") else 1
    assert named == len(steps)
    assert len(said) <= 7


@pytest.mark.parametrize("word", ["loss", "tokens_per_second"])
def test_a_million_steps_are_drawn_as_fast_as_they_are_thinned(word: str) -> None:
    steps = np.arange(1_000_000)
    long = History({word: figure(steps, np.sin(steps / 1e4) + 2)})
    window = Window(first_step=200_000, steps=600_000)

    assert overlay_png(long, long, window, (), "long").startswith(b"\x89PNG")
    assert logged_in(long, long, window, (word,))[1].there == 600_000


def test_gates_of_all_kinds_have_their_limits_drawn_in_the_figures_own_unit() -> None:
    control, child = a_history(900, 1250), a_history(1000, 1199, seed=2)
    gated = tuple(
        each.model_copy(update={"gate": each.gate.model_copy(update={"metric": word})})
        for each, word in zip(a_comparison().gates, ("loss", "mfu", "grad_norm", "token_drops"), strict=True)
    )

    with_gates = overlay_png(control, child, WINDOW, gated, "x")

    assert len(gated) == len(GATES)
    assert size_of(with_gates)[1] > size_of(overlay_png(control, child, WINDOW, (), "x"))[1]
