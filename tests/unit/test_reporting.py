"""Reports of trials on disk: whole files or the old ones, an address that leads there, or Unknown."""

import asyncio
import json
import math
import os
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import reporting
from bot.model.conduct import Stage, Trial
from bot.model.reading import Gap, Known, Unknown
from bot.model.series import History
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.reporting import COMPARISON, PAGE, PICTURE, TrialReports, is_name
from tests.fakes.clock import FakeClock
from tests.fakes.markup import Page
from tests.fakes.snapshots import RUN, contract
from tests.fakes.trial_reports import CHILD, a_comparison, a_history, a_trial, figure

CONTROL, YOUNG = a_history(900, 1250), a_history(1000, 1150, seed=2)
NOTHING = History({})


@pytest.fixture
def reports(tmp_path: Path, fake_clock: FakeClock) -> TrialReports:
    return TrialReports(tmp_path / "reports", "https://hero.example/base/", fake_clock, timezone="Europe/Berlin")


async def test_a_report_is_a_page_a_picture_and_numbers_under_its_address(
    reports: TrialReports, tmp_path: Path, fake_clock: FakeClock
) -> None:
    answer = await reports.publish(
        contract(),
        a_trial(),
        CONTROL,
        YOUNG,
        a_comparison(),
        unknown=("wandb: timeout",),
        links=(("issue", "https://x"),),
    )

    assert answer == Known(value=f"https://hero.example/base/trials/{RUN}/{CHILD}/", at=fake_clock.now())
    place = tmp_path / "reports" / RUN / CHILD
    assert sorted(each.name for each in place.iterdir()) == [COMPARISON, PAGE, PICTURE]
    assert (place / PICTURE).read_bytes().startswith(b"\x89PNG")
    row = json.loads((place / COMPARISON).read_text())
    assert (row["outcome"], row["control"], row["child"], row["stage"]) == ("fail", RUN, CHILD, "running")
    assert row["unknown"] == ["wandb: timeout"]
    assert row["made_at"] < row["believe_until"]
    assert len(row["gates"]) == 4
    assert "FAIL: of 5 gates" in Page((place / PAGE).read_text()).text


async def test_before_the_childs_first_step_there_is_a_report_of_the_control(
    reports: TrialReports, tmp_path: Path
) -> None:
    answer = await reports.publish(contract(), a_trial(Stage.LAUNCHED), CONTROL, NOTHING, None)

    assert isinstance(answer, Known)
    place = tmp_path / "reports" / RUN / CHILD
    row = json.loads((place / COMPARISON).read_text())
    assert row["outcome"] is None
    assert row["window"] == {"first_step": 1000, "last_step": 1199, "steps": 200}
    text = Page((place / PAGE).read_text()).text
    assert "no step of the child yet" in text
    assert "token_drops control 20 of 20" in text


async def test_without_a_public_address_the_path_is_told(tmp_path: Path, fake_clock: FakeClock) -> None:
    reports = TrialReports(tmp_path, None, fake_clock)

    answer = await reports.publish(contract(), a_trial(), NOTHING, NOTHING, None)

    assert isinstance(answer, Known)
    assert answer.value == str(tmp_path / RUN / CHILD / PAGE)


async def test_a_trial_that_is_over_is_believed_for_good(reports: TrialReports, tmp_path: Path) -> None:
    await reports.publish(contract(), a_trial(Stage.CLOSED), CONTROL, YOUNG, a_comparison())

    assert json.loads((tmp_path / "reports" / RUN / CHILD / COMPARISON).read_text())["believe_until"] is None


async def test_a_report_that_cannot_be_written_is_unknown(tmp_path: Path, fake_clock: FakeClock) -> None:
    (tmp_path / "file").write_text("no directory")

    answer = await TrialReports(tmp_path / "file", None, fake_clock).publish(
        contract(), a_trial(), NOTHING, NOTHING, None
    )

    assert isinstance(answer, Unknown)
    assert answer.reason is Gap.REFUSED
    assert "the report cannot be written" in answer.detail


async def test_a_failed_writing_leaves_the_old_report_whole_and_no_rubbish(
    reports: TrialReports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "reports" / RUN / CHILD
    await reports.publish(contract(), a_trial(), CONTROL, YOUNG, a_comparison())
    before = {each.name: each.read_bytes() for each in place.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    answer = await reports.publish(contract(), a_trial(), CONTROL, NOTHING, None)

    assert isinstance(answer, Unknown)
    assert "No space left on device" in answer.detail
    assert {each.name: each.read_bytes() for each in place.iterdir()} == before


async def test_whoever_reads_while_it_is_written_gets_one_whole_page(reports: TrialReports, tmp_path: Path) -> None:
    page = tmp_path / "reports" / RUN / CHILD / PAGE
    await reports.publish(contract(), a_trial(), NOTHING, NOTHING, None)
    seen: set[str] = set()
    writing = asyncio.create_task(reports.publish(contract(), a_trial(), NOTHING, NOTHING, a_comparison()))

    while not writing.done():
        seen.add(page.read_text())
        await asyncio.sleep(0)
    seen.add(page.read_text())

    assert len(seen) == 2
    assert all(text.rstrip().endswith("</html>") for text in seen)


async def test_a_picture_that_cannot_be_drawn_keeps_nobody_from_the_numbers(
    reports: TrialReports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reports.publish(contract(), a_trial(), CONTROL, YOUNG, a_comparison())

    def broken(*_: object) -> bytes:
        raise RuntimeError("no fonts")

    monkeypatch.setattr(reporting, "overlay_png", broken)
    answer = await reports.publish(contract(), a_trial(), CONTROL, YOUNG, a_comparison())

    assert isinstance(answer, Known)
    place = tmp_path / "reports" / RUN / CHILD
    assert not (place / PICTURE).exists(), "an old picture beside new numbers would mislead"
    text = Page((place / PAGE).read_text()).text
    assert "There is no picture: drawing it failed with RuntimeError" in text
    assert "FAIL: of 5 gates" in text


async def test_a_drawing_that_hangs_is_given_up_and_the_numbers_are_published(
    reports: TrialReports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading  # noqa: PLC0415 - for this test alone

    over = threading.Event()
    monkeypatch.setattr(reporting, "overlay_png", lambda *_: over.wait(60))
    monkeypatch.setattr(reporting, "_DRAWING", timedelta(milliseconds=20))

    answers = [await reports.publish(contract(), a_trial(), CONTROL, YOUNG, a_comparison()) for _ in range(3)]
    over.set()

    assert all(isinstance(each, Known) for each in answers)
    assert "There is no picture: " in Page((tmp_path / "reports" / RUN / CHILD / PAGE).read_text()).text


async def test_secrets_and_numbers_that_are_none_do_not_leave(tmp_path: Path, fake_clock: FakeClock) -> None:
    reports = TrialReports(tmp_path, None, fake_clock, redactor=Redactor(("tr0ub4dor&3",)))
    lost = History({"loss": figure([1000, 1001], [math.nan, math.inf])})

    await reports.publish(contract(), a_trial(), lost, lost, None, unknown=("finelog said tr0ub4dor&3",))

    place = tmp_path / RUN / CHILD
    assert "tr0ub4dor" not in (place / PAGE).read_text() + (place / COMPARISON).read_text()

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    json.loads((place / COMPARISON).read_text(), parse_constant=refuse)


@pytest.mark.parametrize("child", ["..", ".hidden", "a/b", "../../etc", "a\x00", "a\n", "", "x" * 300, "\u0430"])
async def test_a_child_whose_name_leads_elsewhere_has_no_report(
    reports: TrialReports, tmp_path: Path, child: str
) -> None:
    trial: Trial = a_trial(plan={"child_run_id": RunId(child)})

    answer = await reports.publish(contract(), trial, NOTHING, NOTHING, None)

    assert isinstance(answer, Unknown)
    place = tmp_path / "reports"
    assert not place.exists()


@given(st.text())
def test_a_name_is_one_part_of_a_path(text: str) -> None:
    if is_name(text):
        assert Path("/reports", text).resolve().parent == Path("/reports")
        assert Path("/reports", text).resolve().name == text
