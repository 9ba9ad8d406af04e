"""All rows of some steps of a metrics file, and where a contract's rows are read from."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.series import NOTHING, History, RunRows
from bot.sources.chosen_rows import ChosenRows
from bot.sources.metric_rows_window import FileRows
from tests.fakes.clock import START, FakeClock
from tests.fakes.snapshots import contract


def local(tmp_path: Path, **metrics: Any) -> Contract:
    given = {"file": "metrics.jsonl"} | metrics
    return contract(checkout=str(tmp_path), metrics=given)


def write(tmp_path: Path, *rows: object) -> None:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    (tmp_path / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))


async def read(of: Contract, first: int, last: int, *figures: str, **limits: int) -> RunRows:
    reading = await FileRows(FakeClock(), **limits).rows(of, first_step=first, last_step=last, figures=figures)  # type: ignore[arg-type]
    assert isinstance(reading, Known), reading
    return reading.value


async def test_every_figure_of_the_steps_comes_under_its_word_or_its_own_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"step": 4, "train/loss": 3.5, "mine": 1},
        {"step": 5, "train/loss": 3.0, "mine": 2, "throughput/mfu": 0.4, "note": "x", "is_odd": True},
        {"step": 6, "train/loss": "NaN", "timestamp": 1.0},
        "{ torn",
        {"event": "saved", "step": 2},
        {"step": 7, "train/loss": 2.0},
    )

    found = await read(local(tmp_path, loss="train/loss"), 5, 6)

    assert found.history.figures.keys() == {"loss", "mine", "mfu"}
    np.testing.assert_array_equal(found.history.figures["loss"].values, [3.0, math.nan])
    assert found.history.figures["mine"].steps.tolist() == [5]
    assert (found.executions, found.newest_step, found.is_cut) == (("attempt 1",), 7, False)


async def test_a_figure_is_found_by_the_name_that_it_was_asked_for_by(tmp_path: Path) -> None:
    write(tmp_path, {"step": 1, "train/loss": 3.0, "mine": 2, "other": 1})

    found = await read(local(tmp_path, loss="train/loss"), 0, 9, "loss", "train/loss", "mine", "absent")

    assert {name: figure.values.tolist() for name, figure in found.history.figures.items()} == {
        "loss": [3.0],
        "train/loss": [3.0],
        "mine": [2.0],
    }


async def test_a_step_that_goes_back_begins_another_execution_and_so_does_another_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        *({"step": step, "loss": 1.0, "timestamp": START.timestamp() + step} for step in (3, 4, 4, 5)),
        *({"step": step, "loss": 2.0, "timestamp": START.timestamp() + 60 + step} for step in (4, 5, 6)),
        {"step": 5, "loss": 3.0, "attempt": 7},
    )

    found = await read(local(tmp_path), 4, 9)

    assert found.executions == ("attempt 1", "attempt 2", "7")
    loss = found.history.figures["loss"]
    assert loss.steps.tolist() == [4, 4, 5, 4, 5, 6, 5]
    assert loss.executions.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert [at and (at - START).total_seconds() for at in found.began_at] == [3, 64, None]


async def test_a_file_is_read_to_its_end_in_pieces_and_a_row_under_way_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, *({"step": step, "loss": step / 7} for step in range(2000)))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2000, "loss": 1')

    found = await read(local(tmp_path), 0, 10**6, read_bytes=1000)

    assert found.history.figures["loss"].values.tolist() == [step / 7 for step in range(2000)]


async def test_more_rows_than_one_answer_may_have_are_told_as_cut(tmp_path: Path) -> None:
    write(tmp_path, *({"step": step, "loss": 1.0} for step in range(50)))

    whole, cut = [await read(local(tmp_path), 0, 99, most_rows=most) for most in (50, 49)]

    assert (whole.is_cut, cut.is_cut, cut.newest_step) == (False, True, 49)


async def test_a_file_that_is_not_there_yet_has_no_row_and_one_that_cannot_be_is_unknown(tmp_path: Path) -> None:
    none = await read(local(tmp_path), 0, 9)
    nowhere = await FileRows(FakeClock()).rows(local(tmp_path / "gone"), first_step=0, last_step=9, figures=())
    (tmp_path / "metrics.jsonl").mkdir()
    directory = await FileRows(FakeClock()).rows(local(tmp_path), first_step=0, last_step=9, figures=())

    assert (none.history.figures, none.executions, none.newest_step) == ({}, (), None)
    for reading in (nowhere, directory):
        assert isinstance(reading, Unknown)
        assert reading.reason is Gap.REFUSED


class Place:
    """A source of rows that says where it is."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def rows(
        self, contract: Contract, *, first_step: int, last_step: int, figures: tuple[str, ...]
    ) -> Reading[RunRows]:
        said = RunRows(History(dict.fromkeys(figures, NOTHING)), (self._name,), last_step - first_step)
        return Known(value=said, at=START)


@pytest.mark.parametrize(
    ("metrics", "kind", "place"),
    [
        ({"file": "m.jsonl"}, "iris", "file"),
        ({"file": "m.jsonl"}, "local", "file"),
        ({}, "iris", "finelog"),
        ({}, "local", None),
    ],
)
async def test_rows_are_read_where_the_contract_means_and_nowhere_else(
    metrics: dict[str, Any], kind: str, place: str | None
) -> None:
    where = {"directory": "/srv/jobs"} if kind == "local" else {"job_id": "/me/j"}
    of = contract(metrics=metrics, orchestrator={"kind": kind} | where, checkout="/srv/code")
    asked: dict[str, Any] = {"first_step": 3, "last_step": 5, "figures": ("loss",)}

    clock = FakeClock()
    found = await ChosenRows(Place("file"), clock, finelog=Place("finelog")).rows(of, **asked)
    without = await ChosenRows(Place("file"), clock).rows(of, **asked)

    if place is None:
        assert isinstance(found, Unknown)
        assert found.reason is Gap.NOT_CONFIGURED
    else:
        assert isinstance(found, Known)
        assert (found.value.executions, found.value.newest_step) == ((place,), 2)
        assert found.value.history.figures.keys() == {"loss"}
    assert isinstance(without, Known) is (place == "file")
