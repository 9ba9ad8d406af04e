"""Figures are read from the one place that is nearest to the trainer, and a change of place loses nothing."""

from datetime import datetime
from typing import Any

import pytest

from bot.model.contract import Contract
from bot.model.reading import Known, Reading
from bot.model.snapshot import LogTail, Metrics
from bot.sources.chosen import ChosenMetrics, is_tracked
from tests.fakes.snapshots import AT, contract, row

NO_LOG: Reading[LogTail] = Known(value=LogTail(lines=(), is_cut=False), at=AT)


class Place:
    """A source that says which cursor it was asked with."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def metrics(
        self, contract: Contract, *, since: datetime | None, cursor: str, log: Reading[LogTail]
    ) -> Reading[Metrics]:
        self.asked.append(cursor)
        return Known(value=Metrics(rows=(row(len(self.asked)),), cursor=f"line {len(self.asked)}"), at=AT)


def all_three() -> tuple[ChosenMetrics, dict[str, Place]]:
    places = {"reader": Place(), "wandb": Place(), "finelog": Place()}
    return ChosenMetrics(places["reader"], wandb=places["wandb"], finelog=places["finelog"]), places


async def ask(chosen: ChosenMetrics, of: Contract, cursor: str = "") -> str:
    found = await chosen.metrics(of, since=None, cursor=cursor, log=NO_LOG)
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
    chosen, places = all_three()

    await ask(chosen, contract(**fields))

    assert [name for name, each in places.items() if each.asked] == [place]


async def test_what_is_not_configured_is_passed_over() -> None:
    reader = Place()

    await ask(ChosenMetrics(reader), contract())

    assert reader.asked == [""]


async def test_a_cursor_goes_on_in_its_own_place_and_means_nothing_in_another() -> None:
    chosen, places = all_three()

    first = await ask(chosen, contract())
    second = await ask(chosen, contract(), first)
    await ask(chosen, contract(metrics={"file": "metrics.jsonl"}), second)

    assert places["finelog"].asked == ["", "line 1"]
    assert places["reader"].asked == [""]


def test_a_tracked_run_has_an_id_or_a_name_and_a_mode_that_reaches_a_server() -> None:
    assert is_tracked(contract(tracker={"mode": "online", "name": "hero"}))
    assert not is_tracked(contract(tracker={"mode": "offline", "id": "abc"}))
    assert not is_tracked(contract(tracker={}))
