"""Rows of W&B's history become rows of figures, whatever a trainer logged."""

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UnrecognisedError
from bot.model.contract import MetricsContract
from bot.model.tracker import ForkPoint
from bot.sources.wandb.history import Cursor, Gathered, Window, gather, next_window, parse_cursor
from bot.sources.wandb.rows import find, parse_row, step_key
from bot.sources.wandb.state import parse_utc
from tests.fakes.wandb_world import to_wire

NAMES = MetricsContract(step="global_step", loss="train/loss", grad_norm="optim.grad_norm")
PATH = "acme/hero/abc123"
START = datetime(2026, 11, 29, 3, tzinfo=UTC)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["_step", "_timestamp", "global_step", "train/loss", "optim", "optim.grad_norm", "lr", "x"])


@given(st.dictionaries(keys, anything, max_size=8) | anything, st.none() | st.integers(0, 10))
def test_no_row_breaks_the_reader_and_every_figure_of_it_is_a_float(raw: Any, before: int | None) -> None:
    found = parse_row(raw, NAMES, "global_step", before)

    if found is not None and found.figures is not None:
        assert all(type(value) is float for value in found.figures.values.values())


@given(st.floats() | st.integers(-(2**70), 2**70))
def test_a_number_survives_the_wire_in_every_spelling(value: float) -> None:
    """Field report R21: the live store sends NaN and infinities as text, exported files as floats."""
    row = {"_step": 3, "global_step": 7, "train/loss": value}
    sent = json.loads(json.dumps(to_wire(row)))

    for raw in (row, sent):
        found = parse_row(raw, NAMES, "global_step", None)
        assert found is not None
        assert found.figures is not None
        loss = found.figures.values["loss"]
        assert loss == float(value) or (math.isnan(loss) and math.isnan(value))
        assert (found.step, found.figures.step) == (3, 7)


def test_a_null_loss_is_not_a_number_and_another_null_was_not_logged() -> None:
    found = parse_row({"_step": 0, "global_step": 1, "train/loss": None, "lr": None}, NAMES, "global_step", None)

    assert found is not None
    assert found.figures is not None
    assert {name: str(value) for name, value in found.figures.values.items()} == {"loss": "nan"}


def test_what_cannot_be_read_is_counted_and_not_guessed() -> None:
    found = parse_row({"_step": 0, "global_step": 1, "train/loss": "high"}, NAMES, "global_step", None)

    assert found is not None
    assert found.has_faults
    assert found.figures is not None
    assert found.figures.values == {}


def test_nested_tables_are_found_by_their_dotted_name() -> None:
    assert find({"optim": {"grad_norm": 2.0}}, "optim.grad_norm") == 2.0
    assert find({"optim.grad_norm": 3.0, "optim": {"grad_norm": 2.0}}, "optim.grad_norm") == 3.0
    assert find({"train/loss": {"min": 1.0, "last": 2.0}}, "train/loss") == 2.0


@pytest.mark.parametrize(
    ("logged", "key"),
    [
        ({"global_step": 3, "trainer/global_step": 4}, "global_step"),
        ({"trainer/global_step": 4, "_step": 9}, "trainer/global_step"),
        ({"_step": 9}, "_step"),
        ({}, "_step"),
    ],
)
def test_the_trainers_own_step_counts_before_the_trackers(logged: dict[str, int], key: str) -> None:
    assert step_key(NAMES, logged) == key


@pytest.mark.parametrize("text", ["2026-11-29T03:00:00", "2026-11-29T03:00:00Z", "2026-11-29T05:00:00+02:00"])
def test_times_with_and_without_a_zone_are_utc(text: str) -> None:
    assert parse_utc(text, "heartbeatAt") == START


@pytest.mark.parametrize("raw", ["yesterday", 5, ""])
def test_what_is_no_time_is_not_taken_for_none(raw: object) -> None:
    with pytest.raises(UnrecognisedError, match="heartbeatAt"):
        parse_utc(raw, "heartbeatAt")


def history(*steps: int) -> list[dict[str, Any]]:
    return [
        {
            "_step": step,
            "global_step": step,
            "train/loss": 2.0,
            "_timestamp": (START + timedelta(seconds=step)).timestamp(),
        }
        for step in steps
    ]


def gathered(
    rows: list[Any],
    window: Window,
    cursor: Cursor | None = None,
    *,
    fork: ForkPoint | None = None,
    since: datetime | None = None,
    last: int,
) -> Gathered:
    return gather(
        rows,
        window=window,
        is_whole=True,
        cursor=cursor or Cursor(path=PATH),
        last_step=last,
        names=NAMES,
        key="global_step",
        fork=fork,
        since=since,
    )


@given(st.lists(st.integers(0, 60), unique=True, min_size=1), st.data())
def test_whatever_the_looks_and_the_order_every_row_comes_once(steps: list[int], data: st.DataObject) -> None:
    """Pages overlap and arrive shuffled, and some servers send rows that nobody asked for."""
    cursor, handed_out = Cursor(path=PATH), list[int]()
    told = data.draw(st.lists(st.sampled_from(sorted(steps)), max_size=3).map(sorted))
    for last in (*told, max(steps)):
        there = history(*(step for step in steps if step <= last))
        window = next_window(cursor, last, len(there), None)
        sent = data.draw(st.permutations(there)) + there[:2]
        found = gathered(sent, window, cursor, last=last)
        handed_out += [row.step for row in found.rows]
        cursor = parse_cursor(found.cursor.model_dump_json(), PATH)

    assert handed_out == sorted(steps)


def test_rows_of_the_fork_and_of_an_earlier_launch_are_told_apart_from_new_ones() -> None:
    window = Window(first=0, end=10, page=1000, is_anew=True)
    fork = ForkPoint(run_id="parent", step=3)

    found = gathered(history(*range(10)), window, fork=fork, since=START + timedelta(seconds=6), last=9)

    assert [row.step for row in found.rows] == [6, 7, 8, 9]
    assert (found.inherited, found.earlier) == (4, 2)


def test_a_wide_gap_of_steps_is_crossed() -> None:
    """One row at the start and one far behind it: the windows between are empty, and the reading goes on."""
    rows, cursor, looks = history(0, 500_000), Cursor(path=PATH), 0
    found = gathered(rows[:1], next_window(cursor, 0, 0, None), cursor, last=0)
    while found.cursor.anchor is None or found.cursor.anchor.step < 500_000:
        window = next_window(found.cursor, 500_000, 0, None)
        sent = [row for row in rows if window.first <= row["_step"] < window.end]
        found = gathered(sent, window, found.cursor, last=500_000)
        looks += 1

    assert [row.step for row in found.rows] == [500_000]
    assert looks < 30


def test_the_cursor_of_another_run_is_not_gone_on_with() -> None:
    cursor = Cursor(path=PATH, next_step=50, last_step=49)

    assert parse_cursor(cursor.model_dump_json(), PATH) == cursor
    assert parse_cursor(cursor.model_dump_json(), "acme/hero/other") == Cursor(path="acme/hero/other")
    assert parse_cursor('{"inode": 4}', PATH) == Cursor(path=PATH)
