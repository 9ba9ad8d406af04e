"""What the launch checklist's report makes of a plan: refused, or put to the DRI with what is not clear. Pure."""

from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.preflight import PreflightFinding, PreflightReport, Weight


def with_checklist(plan: RelaunchPlan | NoPlan, report: PreflightReport | None) -> RelaunchPlan | NoPlan:
    """Return the plan with what the DRI would accept by a yes to it, or why nothing may be launched.

    Args:
        plan: as the world allows it.
        report: what the checklist says of the same moment; None when it was not read, as at a look that asks nothing.
    """
    if report is None or isinstance(plan, NoPlan):
        return plan
    if blocking := report.of(Weight.BLOCKS):
        return _refused("the launch checklist forbids it", blocking, is_unknown=False)
    if unknown := report.of(Weight.UNKNOWN):
        return _refused("the launch checklist is not complete", unknown, is_unknown=True)
    accepts = tuple(f"{each.check}: {each.message}" for each in report.of(Weight.ASKS))
    return plan.model_copy(update={"accepts": accepts, "changes": (*plan.changes, *report.changes)})


def _refused(what: str, findings: tuple[PreflightFinding, ...], *, is_unknown: bool) -> NoPlan:
    first, *others = findings
    more = f" (and {len(others)} more)" if others else ""
    return NoPlan(
        reason=f"{what}: {first.message}{more}",
        fix=first.fix,
        is_unknown=is_unknown,
        evidence=tuple(f"{each.check}: {each.message}; {each.fix}" for each in others),
    )
