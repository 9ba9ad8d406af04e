"""Where a history would be forked, and which reports pin a run: the real SDK against a local server."""

import base64
import json
import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.clock import SystemClock
from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import Boundary, Pin
from bot.settings import WandbSettings
from bot.sources.wandb.boundary import WandbBoundary
from bot.sources.wandb.reports import MOST, WandbReports, names_word
from tests.fakes import snapshots
from tests.fakes.wandb import FakeWandb, StoredRun, fresh_sdk


@pytest.fixture(scope="module", autouse=True)
def helper_process() -> Iterator[None]:
    with fresh_sdk():
        yield


@pytest.fixture
def wb() -> Iterator[FakeWandb]:
    with FakeWandb() as server:
        yield server


def settings(wb: FakeWandb, **fields: Any) -> WandbSettings:
    given = {"entity": wb.entity, "project": "hero", "base_url": wb.url, "api_key": wb.key}
    return WandbSettings.model_validate(given | {"deadline": timedelta(seconds=8)} | fields)


def contract(**metrics: Any) -> Contract:
    return snapshots.contract(
        tracker={"mode": "online", "id": "old"}, metrics={"step": "global_step", "loss": "train/loss"} | metrics
    )


async def at(wb: FakeWandb, fork_step: int, of: Contract | None = None) -> Reading[Boundary | None]:
    return await WandbBoundary(settings(wb), SystemClock()).boundary(of or contract(), fork_step)


async def find(wb: FakeWandb, global_step: int, of: Contract | None = None) -> Reading[Boundary | None]:
    return await WandbBoundary(settings(wb), SystemClock()).find_boundary(of or contract(), global_step)


def told(reading: Reading[Boundary | None]) -> tuple[int, int | None, int | None] | None:
    assert isinstance(reading, Known), reading
    found = reading.value
    return None if found is None else (found.fork_step, found.global_step, found.next_global_step)


def rows(wb: FakeWandb, *steps: int | None) -> StoredRun:
    """Log a row for each trainer's step, one after the other; None is a row without it."""
    run = wb.run("hero", "old")
    for step in steps:
        wb.log(run, {"train/loss": 2.0} if step is not None else {"eval/loss": 3.0})
        if step is not None:
            run.rows[-1]["global_step"] = step
            run.summary["global_step"] = step
    return run


async def test_the_row_and_the_one_behind_it_are_told(wb: FakeWandb) -> None:
    rows(wb, *range(10))

    assert told(await at(wb, 4)) == (4, 4, 5)
    assert told(await at(wb, 9)) == (9, 9, None)
    assert told(await at(wb, 10)) == (10, None, None)
    assert told(await find(wb, 4)) == (4, 4, 5)
    assert told(await find(wb, 9)) == (9, 9, None)
    assert told(await find(wb, 10)) is None


async def test_rows_of_other_kinds_have_no_step_and_the_next_one_that_has_counts(wb: FakeWandb) -> None:
    rows(wb, 0, None, 1, 1, None, 2)

    assert told(await at(wb, 1)) == (1, None, 1)
    assert told(await at(wb, 2)) == (2, 1, 1)
    assert told(await at(wb, 3)) == (3, 1, 2)
    assert told(await find(wb, 1)) == (3, 1, 2)


async def test_a_step_that_was_trained_again_counts_where_it_was_logged_last(wb: FakeWandb) -> None:
    rows(wb, 0, 1, 2, 3, 4, 2, 3, 4, 5)

    assert told(await find(wb, 3)) == (6, 3, 4)
    assert told(await at(wb, 3)) == (3, 3, 4)


async def test_a_gap_and_a_step_that_is_no_number_are_no_boundary(wb: FakeWandb) -> None:
    run = wb.run("hero", "old")
    wb.log(run, {"global_step": 0}, step=0)
    wb.log(run, {"global_step": math.nan}, step=5)
    wb.log(run, {"global_step": "NaN"}, step=6)
    wb.log(run, {"global_step": 2000}, step=2000)

    assert told(await at(wb, 3)) == (3, None, 2000)
    assert told(await at(wb, 5)) == (5, None, 2000)
    assert told(await at(wb, 6)) == (6, None, 2000)
    assert told(await find(wb, 0)) == (0, 0, 2000)


async def test_without_a_trainers_step_there_is_none_unless_its_owner_says_that_the_trackers_is_it(
    wb: FakeWandb,
) -> None:
    rows(wb, *(None,) * 5)

    assert told(await at(wb, 2)) == (2, None, None)
    assert told(await find(wb, 2)) is None
    assert told(await find(wb, 2, contract(step="_step"))) == (2, 2, 3)


async def test_steps_of_the_trainer_that_are_far_from_the_trackers_are_found(wb: FakeWandb) -> None:
    rows(wb, *(None,) * 1500, *range(500, 4000))

    assert told(await find(wb, 600)) == (1600, 600, 601)


async def test_a_hundred_thousand_steps_are_not_all_read(wb: FakeWandb) -> None:
    rows(wb, *range(100_000))
    costs = {}
    for step in (99_800, 95_000, 1_234, 0):
        before = len(wb.queries)
        assert told(await find(wb, step)) == (step, step, step + 1)
        costs[step] = wb.queries[before:].count("HistoryPage")

    assert costs[99_800] == 1
    assert costs[95_000] == 5
    assert max(costs.values()) <= 20 + 8 + 1, costs
    before = len(wb.queries)
    assert told(await at(wb, 50_000)) == (50_000, 50_000, 50_001)
    assert wb.queries[before:].count("HistoryPage") == 1


async def test_a_step_far_back_that_was_never_logged_is_none(wb: FakeWandb) -> None:
    rows(wb, *(step for step in range(60_000) if step != 1234))

    assert told(await find(wb, 1234)) is None


async def test_a_run_that_is_missing_is_none_and_what_cannot_be_asked_is_unknown(wb: FakeWandb) -> None:
    wb.run("hero", "other")
    assert told(await at(wb, 4)) is None
    assert told(await find(wb, 4)) is None

    wrong = WandbBoundary(settings(wb, api_key="local-" + "e" * 48), SystemClock())
    refused = await wrong.find_boundary(contract(), 4)
    assert isinstance(refused, Unknown)
    assert refused.reason is Gap.REFUSED

    wb.keep_failing(503)
    ill = await at(wb, 4)
    assert isinstance(ill, Unknown)


async def test_rows_that_are_told_of_and_not_handed_out_are_unknown(wb: FakeWandb) -> None:
    rows(wb, *range(10)).hides_rows = True

    for reading in (await at(wb, 4), await find(wb, 4)):
        assert isinstance(reading, Unknown)
        assert reading.reason is Gap.UNRELIABLE


async def pins(wb: FakeWandb, *words: str) -> Reading[tuple[Pin, ...]]:
    return await WandbReports(settings(wb), SystemClock()).pinning("acme", "hero", words)


async def test_reports_that_name_the_run_or_the_metric_are_told_with_their_address(wb: FakeWandb) -> None:
    wb.run("hero", "old-12d8")
    wb.report("hero", "Public report", json.dumps({"blocks": [{"runSets": [{"selections": {"tree": ["old-12d8"]}}]}]}))
    node = base64.b64encode(b"Run:v1:old-12d8:hero:acme").decode()
    wb.report("hero", "Colours", json.dumps({"colors": {node: "red"}}))
    wb.report("hero", "Longer", json.dumps({"runs": ["old-12d8-b", "x-old-12d8"], "y": ["train/loss_ema"]}))
    wb.report("hero", "Metric", json.dumps({"y": ["train/loss"]}))

    reading = await pins(wb, "old-12d8", "train/loss")

    assert isinstance(reading, Known)
    assert [(each.where.rsplit("/", 1)[-1].split("--")[0], each.what) for each in reading.value] == [
        ("Public-report", "old-12d8"),
        ("Colours", "old-12d8"),
        ("Metric", "train/loss"),
    ]
    assert reading.value[0].where.startswith(f"{wb.url}/acme/hero/reports/")


async def test_no_report_is_an_answer_and_every_look_asks_anew(wb: FakeWandb) -> None:
    wb.run("hero", "old")
    source = WandbReports(settings(wb), SystemClock())
    first = await source.pinning("acme", "hero", ("old",))
    wb.report("hero", "New", '{"a": "old"}')
    second = await source.pinning("acme", "hero", ("old",))

    assert isinstance(first, Known)
    assert first.value == ()
    assert isinstance(second, Known)
    assert len(second.value) == 1


async def test_all_pages_are_read_and_too_many_reports_are_unknown(wb: FakeWandb) -> None:
    wb.run("hero", "old")
    for n in range(120):
        wb.report("hero", f"Report {n}", '{"a": "old"}' if n == 119 else "{}")
    reading = await pins(wb, "old")
    assert isinstance(reading, Known)
    assert [each.where.rsplit("/", 1)[-1].split("--")[0] for each in reading.value] == ["Report-119"]

    for n in range(120, MOST + 1):
        wb.report("hero", f"Report {n}", "{}")
    assert isinstance(await pins(wb, "old"), Unknown)


async def test_a_missing_project_or_a_service_that_is_ill_is_no_empty_answer(wb: FakeWandb) -> None:
    assert isinstance(await pins(wb, "old"), Unknown)
    wb.run("hero", "old")
    wb.keep_failing(500, "ProjectViews")
    assert isinstance(await pins(wb, "old"), Unknown)


@given(
    st.text(alphabet="ab-_1", min_size=1),
    st.sampled_from(["", "x", "x-", "_", "1", "x."]),
    st.sampled_from(["", "x", "-x", "_", "1", ".x"]),
)
def test_a_word_is_found_between_quotes_and_slashes_and_never_inside_a_longer_one(
    word: str, before: str, after: str
) -> None:
    assert names_word(f'{{"run": "{word}"}}', word)
    assert names_word(f"https://wandb.example/acme/hero/runs/{word}?nw=1", word)
    assert names_word(f"See {word}.", word)
    assert names_word(f'"{before}{word}{after}"', word) == (before == after == "")
