"""Figures are read from the one place that is nearest to the trainer, and a change of place loses nothing."""

from datetime import datetime
from typing import Any

import pytest

from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail, Metrics
from bot.sources.chosen import ChosenMetrics, is_tracked
from tests.fakes.snapshots import AT, contract, job, row, unknown

NO_LOG: Reading[LogTail] = Known(value=LogTail(lines=(), is_cut=False), at=AT)
JOBS: Reading[tuple[Job, ...]] = Known(value=(job(),), at=AT)


class Place:
    """A source that says which cursor it was asked with; ``rows`` counts down how many answers have a row."""

    def __init__(self, rows: int = 99, gap: Gap | None = None) -> None:
        self.asked: list[str] = []
        self.jobs: Reading[tuple[Job, ...]] | None = None
        self.rows = rows
        self.gap = gap

    async def metrics(
        self,
        contract: Contract,
        *,
        since: datetime | None,
        cursor: str,
        log: Reading[LogTail],
        jobs: Reading[tuple[Job, ...]],
    ) -> Reading[Metrics]:
        self.jobs = jobs
        self.asked.append(cursor)
        if self.gap is not None:
            return unknown(self.gap)
        has_row = len(self.asked) <= self.rows
        rows = (row(len(self.asked)),) if has_row else ()
        return Known(value=Metrics(rows=rows, cursor=f"line {len(self.asked)}"), at=AT)


def places(**changed: Place) -> tuple[ChosenMetrics, dict[str, Place]]:
    all_three = {"reader": Place(), "wandb": Place(), "finelog": Place()} | changed
    return (
        ChosenMetrics(all_three["reader"], wandb=all_three["wandb"], finelog=all_three["finelog"]),
        all_three,
    )


async def ask(chosen: ChosenMetrics, of: Contract, cursor: str = "") -> str:
    found = await chosen.metrics(of, since=None, cursor=cursor, log=NO_LOG, jobs=JOBS)
    assert isinstance(found, Known)
    return found.value.cursor


LOCAL: dict[str, Any] = {"orchestrator": {"kind": "local", "directory": "jobs"}}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"metrics": {"file": "metrics.jsonl"}}, "reader"),
        ({}, "finelog"),
        (LOCAL, "wandb"),
        (LOCAL | {"tracker": {"mode": "disabled", "id": "x"}}, "reader"),
        (LOCAL | {"tracker": {"mode": "online"}}, "reader"),
    ],
)
async def test_a_file_counts_before_finelog_before_wandb_before_the_log(fields: dict[str, Any], place: str) -> None:
    chosen, asked = places()

    await ask(chosen, contract(**fields))

    assert [name for name, each in asked.items() if each.asked] == [place]


async def test_what_is_not_configured_is_passed_over() -> None:
    reader = Place()

    await ask(ChosenMetrics(reader), contract())

    assert reader.asked == [""]


async def test_a_place_that_never_had_a_row_leaves_the_word_to_the_next() -> None:
    chosen, asked = places(finelog=Place(rows=0), wandb=Place(gap=Gap.NOT_CONFIGURED))

    cursor = await ask(chosen, contract())

    assert cursor == "log|line 1"
    assert asked["reader"].asked == [""]


async def test_a_place_that_had_rows_is_kept_while_it_is_silent() -> None:
    """A trainer that has stopped logging to Finelog is silent; old lines of its log are no progress."""
    chosen, asked = places(finelog=Place(rows=1))

    second = await ask(chosen, contract(), await ask(chosen, contract()))

    assert second == "finelog|line 2"
    assert asked["finelog"].asked == ["", "line 1"]
    assert asked["reader"].asked == []


async def test_a_place_that_cannot_be_asked_is_passed_over_only_while_another_has_rows() -> None:
    chosen, _ = places(finelog=Place(gap=Gap.TIMEOUT))
    silent, _ = places(finelog=Place(gap=Gap.TIMEOUT), wandb=Place(rows=0), reader=Place(rows=0))

    assert (await ask(chosen, contract())).startswith("wandb|")
    found = await silent.metrics(contract(), since=None, cursor="", log=NO_LOG, jobs=JOBS)
    assert isinstance(found, Unknown)
    assert found.reason is Gap.TIMEOUT


async def test_the_known_place_that_cannot_be_asked_is_unknown_and_no_other_speaks_for_it() -> None:
    chosen, asked = places(finelog=Place(gap=Gap.UNREACHABLE))

    found = await chosen.metrics(contract(), since=None, cursor="finelog|line 7", log=NO_LOG, jobs=JOBS)

    assert isinstance(found, Unknown)
    assert asked["wandb"].asked == []


async def test_a_cursor_means_nothing_in_another_place() -> None:
    chosen, asked = places()

    first = await ask(chosen, contract())
    await ask(chosen, contract(metrics={"file": "metrics.jsonl"}), first)

    assert asked["reader"].asked == [""]


async def test_every_place_is_told_whose_rows_are_the_runs() -> None:
    chosen, asked = places(finelog=Place(rows=0), wandb=Place(rows=0))

    await ask(chosen, contract())

    assert [each.jobs for each in asked.values()] == [JOBS, JOBS, JOBS]


def test_a_tracked_run_has_an_id_or_a_name_and_a_mode_that_reaches_a_server() -> None:
    assert is_tracked(contract(tracker={"mode": "online", "name": "hero"}))
    assert not is_tracked(contract(tracker={"mode": "offline", "id": "abc"}))
    assert not is_tracked(contract(tracker={}))
