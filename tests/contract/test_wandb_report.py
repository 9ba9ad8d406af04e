"""A trial's own report in W&B, made by the real wandb-workspaces against a local server: once, whatever is lost."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.actions import wandb_report
from bot.actions.submission_lock import SubmissionLocks
from bot.actions.wandb_report import WandbReporter, content_of, title_of
from bot.clock import SystemClock
from bot.model.conduct import Trial
from bot.model.contract import Contract, MetricsContract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.value import PersonName, RunId
from bot.redaction import Redactor
from bot.settings import WandbSettings
from tests.fakes import rehearsals, snapshots
from tests.fakes.wandb import STARTED, FakeWandb, fresh_sdk

PLAN = rehearsals.trial_plan(gates=("loss mean <= +0.002", "router_entropy p95 within 2%"), window_steps=200)
TRIAL = Trial(plan=PLAN, request=3, agreed_by=PersonName("ada"), agreed_at=STARTED)
FIRST, LAST = PLAN.handoff.step, PLAN.handoff.step + 199


@pytest.fixture(scope="module", autouse=True)
def helper_process() -> Iterator[None]:
    with fresh_sdk():
        yield


@pytest.fixture
def wb() -> Iterator[FakeWandb]:
    with FakeWandb() as server:
        old = server.run("hero", "old")
        server.log_steps(old, range(3), **{"throughput/mfu": 0.2, "train/cross_entropy_loss": 2.0, "layer_3/loss": 1.0})
        server.fork("hero", old, "new", 2)
        yield server


def reporter(wb: FakeWandb, locks: Path, *, seconds: float = 30, **fields: Any) -> WandbReporter:
    given = {"entity": wb.entity, "project": "hero", "base_url": wb.url, "api_key": wb.key}
    settings = WandbSettings.model_validate(given | {"deadline": timedelta(seconds=4)} | fields)
    redactor = Redactor([wb.key])
    return WandbReporter(settings, SystemClock(), locks=locks, redactor=redactor, deadline=timedelta(seconds=seconds))


def contract(run_id: str) -> Contract:
    return snapshots.contract(
        run_id=run_id,
        tracker={"mode": "online", "id": run_id},
        metrics={"step": "global_step", "loss": "train/loss"},
    )


async def publish(one: WandbReporter) -> Reading[str]:
    return await one.publish(contract("old"), contract("new"), TRIAL)


async def address(one: WandbReporter) -> str:
    reading = await publish(one)
    assert isinstance(reading, Known), reading
    return reading.value


async def test_both_runs_lie_over_one_another_at_the_windows_steps_as_they_were_logged(
    wb: FakeWandb, tmp_path: Path
) -> None:
    url = await address(reporter(wb, tmp_path))

    assert url.startswith(f"{wb.url}/acme/hero/reports/Trial-")
    (report,) = wb.reports
    assert (report.title, report.kind) == (title_of(TRIAL), "runs")
    blocks = json.loads(report.spec)["blocks"]
    narrow, wide = (block["metadata"] for block in blocks if block["type"] == "panel-grid")
    filters = [each["filters"]["filters"] for each in narrow["runSets"]]
    assert [[(one["key"]["name"], one["value"]) for one in each] for each in filters] == [
        [("name", ["old"])],
        [("name", ["new"])],
    ]
    (panel,) = [each["config"] for each in narrow["panelBankSectionConfig"]["panels"]]
    assert (panel["xAxis"], panel["metrics"]) == ("global_step", ["train/loss"])
    assert (panel["xAxisMin"], panel["xAxisMax"]) == (FIRST, LAST)
    assert (panel["smoothingType"], panel["ignoreOutliers"]) == ("none", False)
    context = [each["config"]["metrics"] for each in wide["panelBankSectionConfig"]["panels"]]
    assert context == [["train/loss"], ["throughput/mfu"], ["train/cross_entropy_loss"]]
    assert "Gate: loss mean <= +0.002" in report.spec
    assert "Not logged here: router_entropy" in report.spec


async def test_a_second_call_finds_the_report_and_makes_no_other(wb: FakeWandb, tmp_path: Path) -> None:
    first = await address(reporter(wb, tmp_path))
    wb.report("hero", "Another", "{}")

    assert await address(reporter(wb, tmp_path)) == first
    assert wb.queries.count("upsertView") == 1


async def test_an_answer_that_is_lost_leads_to_no_second_report(wb: FakeWandb, tmp_path: Path) -> None:
    one = reporter(wb, tmp_path, seconds=12)
    wb.lose("upsertView")

    reading = await publish(one)

    assert isinstance(reading, Unknown)
    assert len(wb.reports) == 1
    assert (await address(one)).endswith(wb.reports[0].id)
    assert wb.queries.count("upsertView") == 1


async def test_what_cannot_be_done_is_unknown_and_makes_nothing(
    wb: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "local-" + "f" * 48
    refused = await publish(reporter(wb, tmp_path, api_key=wrong))
    assert isinstance(refused, Unknown)
    assert refused.reason is Gap.REFUSED
    assert wrong not in refused.detail

    with SubmissionLocks(tmp_path).hold(RunId(f"report-{PLAN.child_run_id}")):
        busy = await publish(reporter(wb, tmp_path))
    assert isinstance(busy, Unknown)
    assert busy.reason is Gap.BUSY

    monkeypatch.setattr(wandb_report, "PACKAGE", "wandb_workspaces_that_nobody_has")
    missing = await publish(reporter(wb, tmp_path))
    assert isinstance(missing, Unknown)
    assert "hero-bot[wandb-reports]" in missing.detail

    wb.delete("hero", "new")
    monkeypatch.undo()
    assert isinstance(await publish(reporter(wb, tmp_path)), Unknown)
    assert wb.reports == []


def test_titles_fit_and_tell_trials_apart() -> None:
    long = [
        TRIAL.model_copy(update={"plan": PLAN.model_copy(update={"child_run_id": RunId("c" * 127 + last)})})
        for last in "ab"
    ]

    titles = {title_of(each) for each in (TRIAL, *long)}

    assert len(titles) == 3
    assert max(map(len, titles)) == 128
    assert title_of(TRIAL) == f"Trial {PLAN.child_run_id}, steps {FIRST} to {LAST}"


def test_a_gates_column_is_shown_under_its_own_name_and_there_are_not_too_many_panels() -> None:
    logged = frozenset({"odd/column", *(f"train/router/routing_entropy_{n}" for n in range(50))})
    plan = PLAN.model_copy(update={"gates": ("odd/column max <= +1",)})

    content = content_of(MetricsContract(), TRIAL.model_copy(update={"plan": plan}), logged, "Step")

    narrow, wide = content["grids"]
    assert (narrow["metrics"], narrow["range"]) == (["odd/column"], (FIRST, LAST))
    assert len(wide["metrics"]) == 24
    assert wide["range"] == (max(0, FIRST - 200), LAST + 200)
