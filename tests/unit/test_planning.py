"""``/hero plan`` and ``hero plan``: what would be done, what stands in its way, and that nothing is changed."""

from typing import Any

import pytest

from bot.model.contract import Basis, Contract
from bot.model.errand import Answer, Errand, ErrandKind
from bot.model.preflight import Decision, PreflightFinding, PreflightReport, PreflightValue, Weight
from bot.model.record import Record
from bot.model.run import Run
from bot.model.snapshot import Snapshot
from bot.model.value import CheckId, PersonName
from bot.planning import Planned, PlanPreparer, plan_run
from bot.redaction import Redactor
from bot.render.preflight import decision_words
from tests.fakes.clock import START
from tests.fakes.snapshots import RUN, contract, failed_job, instance, snapshot, unknown
from tests.unit.handlers.scene import OneCommand

VALUES = (
    PreflightValue(name="output_root", value="gs://bucket/x", basis=Basis.STATED),
    PreflightValue(name="owner", value="ada", basis=Basis.INFERRED),
    PreflightValue(name="spill", value=None, basis=None),
)


def finding(weight: Weight, message: str) -> PreflightFinding:
    return PreflightFinding(check=CheckId("launch.identity"), weight=weight, message=message, fix="name another")


class Looks:
    """A reader and a checklist that answer as a test says."""

    def __init__(self, seen: Snapshot, *findings: PreflightFinding) -> None:
        self._seen = seen
        self._report = PreflightReport(values=VALUES, findings=findings)

    async def read(self, *_: object) -> Snapshot:
        return self._seen

    async def judge(self, *_: object) -> PreflightReport:
        return self._report


async def planned(looks: Any, promised: Contract | None = None) -> Planned:
    launchers: Any = {"iris": OneCommand()}
    return await plan_run(
        promised or contract(), None, reader=looks, launchers=launchers, checklist=looks, redactor=Redactor()
    )


async def answer(looks: Any, *, is_first: bool = True) -> Answer:
    launchers: Any = {"iris": OneCommand()}
    record = Record(run=Run(run_id=RUN), instances=() if is_first else (instance(),))
    errand = Errand(kind=ErrandKind.PLAN, by=PersonName("ada"), at=START)
    found = await PlanPreparer(looks, launchers, looks, Redactor()).prepare(contract(), record, errand)
    assert isinstance(found, Answer)
    return found


async def test_a_ready_launch_has_the_digest_that_a_request_would_carry() -> None:
    ready = await planned(Looks(snapshot(jobs=failed_job(137))))
    asks = await planned(Looks(snapshot(jobs=failed_job(137)), finding(Weight.ASKS, "unclear")))

    assert ready.report.decision is Decision.READY
    assert ready.digest
    assert asks.digest
    assert ready.digest != asks.digest


@pytest.mark.parametrize("weight", [Weight.BLOCKS, Weight.UNKNOWN])
async def test_what_would_be_refused_has_no_digest(weight: Weight) -> None:
    assert (await planned(Looks(snapshot(jobs=failed_job(137)), finding(weight, "x")))).digest is None


async def test_why_no_plan_can_be_made_is_a_finding_though_no_item_says_it() -> None:
    dark = await planned(Looks(snapshot(jobs=failed_job(137), checkpoints=unknown())))
    foreign = await planned(
        Looks(snapshot()),
        contract(orchestrator={"kind": "local", "directory": "jobs"}, command="x --token hunter2secret"),
    )

    assert dark.report.is_unknown
    assert "the checkpoints cannot be verified" in dark.report.findings[0].message
    assert foreign.digest is None
    assert "hunter2secret" not in " ".join(foreign.command)


async def test_the_answer_in_the_thread_tells_findings_values_and_what_to_type() -> None:
    found = await answer(
        Looks(
            snapshot(jobs=failed_job(137)),
            finding(Weight.NOTE, "a note"),
            finding(Weight.ASKS, "not clear"),
        )
    )

    assert found.headline == f"a launch of {RUN}: the DRI has to accept 1 thing that is not clear"
    assert found.lines[:2] == (
        "! launch.identity: not clear; fix: name another",
        "· launch.identity: a note; fix: name another",
    )
    assert found.lines[2].startswith("digest: ")
    assert found.lines[3:] == ("output_root: gs://bucket/x", "owner: ada (inferred)", "spill: not stated")
    assert found.next == f"`/hero launch {RUN}` puts it to ada; nothing was changed"


async def test_a_blocked_relaunch_is_a_warning_that_says_to_mend_and_look_again() -> None:
    found = await answer(Looks(snapshot(jobs=failed_job(137)), finding(Weight.BLOCKS, "taken")), is_first=False)

    assert found.is_warning
    assert found.headline == f"a relaunch of {RUN}: blocked by 1 finding"
    assert found.lines[0] == "✗ launch.identity: taken; fix: name another"
    assert f"`/hero plan {RUN}` looks again" in found.next


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ((), "ready; nothing stands in the way"),
        ((Weight.ASKS, Weight.ASKS), "the DRI has to accept 2 things that are not clear"),
        ((Weight.UNKNOWN, Weight.ASKS), "not possible yet: 1 thing could not be read"),
        ((Weight.UNKNOWN, Weight.BLOCKS, Weight.BLOCKS), "blocked by 2 findings"),
    ],
)
def test_the_decision_in_words(weights: tuple[Weight, ...], words: str) -> None:
    report = PreflightReport(values=(), findings=tuple(finding(each, "x") for each in weights))

    assert decision_words(report) == words
