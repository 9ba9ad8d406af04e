"""The launch checklist inside a launch: what it forbids is not asked, and a new finding voids a yes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.actions.checklist import with_checklist
from bot.model.action import ActionState
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.preflight import PreflightFinding, PreflightReport, Weight
from bot.model.value import CheckId
from tests.unit.actions.world import Bench, a_bench
from tests.unit.handlers.scene import request


def finding(weight: Weight, message: str = "the output root is another run's") -> PreflightFinding:
    return PreflightFinding(check=CheckId("launch.identity"), weight=weight, message=message, fix="name another")


def report(*findings: PreflightFinding) -> PreflightReport:
    return PreflightReport(values=(), findings=findings)


def a_plan() -> RelaunchPlan:
    plan = request(7).plan
    assert isinstance(plan, RelaunchPlan)
    return plan


def test_what_is_not_clear_becomes_part_of_what_the_dri_says_yes_to() -> None:
    plan = with_checklist(a_plan(), report(finding(Weight.ASKS), finding(Weight.NOTE, "a note")))

    assert isinstance(plan, RelaunchPlan)
    assert plan.accepts == ("launch.identity: the output root is another run's",)
    assert plan.digest != a_plan().digest
    assert with_checklist(a_plan(), report(finding(Weight.NOTE))) == a_plan()
    assert with_checklist(a_plan(), None) == a_plan()


@pytest.mark.parametrize(
    ("findings", "is_unknown"),
    [
        ((finding(Weight.BLOCKS), finding(Weight.UNKNOWN, "unread")), False),
        ((finding(Weight.ASKS), finding(Weight.UNKNOWN)), True),
    ],
)
def test_what_forbids_a_launch_or_is_unknown_leaves_no_plan(
    findings: tuple[PreflightFinding, ...], is_unknown: bool
) -> None:
    refused = with_checklist(a_plan(), report(*findings))

    assert isinstance(refused, NoPlan)
    assert refused.is_unknown is is_unknown
    assert "the output root is another run's" in refused.reason
    assert refused.fix == "name another"


def test_every_further_finding_stands_beside_the_first() -> None:
    refused = with_checklist(a_plan(), report(finding(Weight.BLOCKS, "one"), finding(Weight.BLOCKS, "two")))

    assert isinstance(refused, NoPlan)
    assert refused.reason == "the launch checklist forbids it: one (and 1 more)"
    assert refused.evidence == ("launch.identity: two; name another",)


def test_a_plan_that_could_not_be_made_stays_so() -> None:
    none = NoPlan(reason="the job's state is unknown", fix="mend it", is_unknown=True)

    assert with_checklist(none, report(finding(Weight.BLOCKS))) == none


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with a_bench(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "found", [finding(Weight.BLOCKS, "source_sha is not pushed"), finding(Weight.ASKS, "source_sha is not pushed")]
)
async def test_a_finding_that_is_new_since_the_question_voids_the_yes(bench: Bench, found: PreflightFinding) -> None:
    await bench.grant()
    bench.world.findings = (found,)

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.VOID
    assert "source_sha is not pushed" in action.noted
    assert bench.world.submissions == 0


async def test_a_note_that_is_new_voids_nothing(bench: Bench) -> None:
    await bench.grant()
    bench.world.findings = (finding(Weight.NOTE),)

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert bench.world.submissions == 1


async def test_what_cannot_be_read_is_waited_for(bench: Bench) -> None:
    await bench.grant()
    bench.world.findings = (finding(Weight.UNKNOWN, "whether the job exists is not known"),)

    await bench.work()

    action = await bench.action()
    assert action.state is not ActionState.DONE
    assert "whether the job exists is not known" in action.noted
    assert bench.world.submissions == 0
