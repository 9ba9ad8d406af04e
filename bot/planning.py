"""What a launch or relaunch would do now, and what the launch checklist finds: for ``hero plan`` and ``/hero plan``.

Shows and never asks: a plan is put to the DRI by ``/hero launch`` and ``/hero relaunch``.
"""

from collections.abc import Mapping

from bot.actions.checklist import with_checklist
from bot.actions.ports import Checklist, Launcher
from bot.actions.relaunch import plan_relaunch
from bot.model.contract import Contract
from bot.model.errand import Answer, Errand, Found
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.preflight import Decision, PreflightFinding, PreflightReport, Weight
from bot.model.record import Record
from bot.model.value import CheckId, Value
from bot.redaction import Redactor
from bot.render.preflight import decision_words, finding_lines, value_lines
from bot.sources.snapshots import SnapshotReader

_PLAN = CheckId("launch.plan")


class Planned(Value):
    """What would be done, and what stands in its way."""

    report: PreflightReport
    digest: str | None
    """Of the plan; None when none can be made, or when it would be refused."""
    command: tuple[str, ...]
    """Scrubbed; as the contract has it when nothing can be planned."""


async def plan_run(
    contract: Contract,
    record: Record | None,
    *,
    reader: SnapshotReader,
    launchers: Mapping[str, Launcher],
    checklist: Checklist,
    redactor: Redactor,
) -> Planned:
    """Read the world, judge the checklist and make the plan as a launch would; nothing is changed.

    Raises:
        StoreError: the database refused.
    """
    instance = record.instance if record else None
    seen = await reader.read(
        contract, instance, record.run.metrics_cursor if record else "", record.jobs if record else ()
    )
    report = await checklist.judge(contract, record, seen)
    launcher = launchers.get(contract.orchestrator.kind)
    bare = plan_relaunch(contract, seen, instance, launcher, redactor) if launcher else None
    command = bare.command if isinstance(bare, RelaunchPlan) else redactor.argv(contract.command)
    if isinstance(bare, NoPlan):
        report = _with_plan_finding(report, bare, redactor)
    plan = with_checklist(bare, report) if isinstance(bare, RelaunchPlan) else None
    return Planned(report=report, digest=plan.digest if isinstance(plan, RelaunchPlan) else None, command=command)


def _with_plan_finding(report: PreflightReport, none: NoPlan, redactor: Redactor) -> PreflightReport:
    """Add why no plan can be made, unless an item says so already."""
    weight = Weight.UNKNOWN if none.is_unknown else Weight.BLOCKS
    if report.of(weight):
        return report
    finding = PreflightFinding(
        check=_PLAN, weight=weight, message=redactor.text(none.reason), fix=redactor.text(none.fix)
    )
    return report.model_copy(update={"findings": (*report.findings, finding)})


class PlanPreparer:
    """Looks into ``/hero plan``: the answer goes into the run's thread."""

    def __init__(
        self,
        reader: SnapshotReader,
        launchers: Mapping[str, Launcher],
        checklist: Checklist,
        redactor: Redactor,
    ) -> None:
        self._reader = reader
        self._launchers = launchers
        self._checklist = checklist
        self._redactor = redactor

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:  # noqa: ARG002 - the port's
        """Return what a launch would do and what speaks against it."""
        found = await plan_run(
            contract,
            record,
            reader=self._reader,
            launchers=self._launchers,
            checklist=self._checklist,
            redactor=self._redactor,
        )
        verb = "launch" if record.instance is None else "relaunch"
        asks = f"`/hero {verb} {contract.run_id}` puts it to {contract.dri}"
        mended = f"mend what is marked with ✗ or ?, then `/hero plan {contract.run_id}` looks again"
        is_ready = found.report.decision is not Decision.BLOCKED
        digest = (f"digest: {found.digest[:12]}",) if found.digest else ()
        return Answer(
            headline=f"a {verb} of {contract.run_id}: {decision_words(found.report)}",
            lines=(*finding_lines(found.report), *digest, *value_lines(found.report)),
            next=f"{asks if is_ready else mended}; nothing was changed",
            is_warning=not is_ready,
        )
