"""One item of the launch checklist, and how all of them judge one preparation. Pure."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from bot.model.contract import Basis
from bot.model.preflight import (
    PreflightFinding,
    PreflightReport,
    PreflightValue,
    Preparation,
    Weight,
)
from bot.model.reading import Unknown
from bot.model.value import CheckId, Value


class Told(Value):
    """What one item says: the values that are printed before a launch, and what speaks against it."""

    values: tuple[PreflightValue, ...] = ()
    findings: tuple[PreflightFinding, ...] = ()
    changes: tuple[str, ...] = ()
    """What the launch changes by agreement, one line each."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line of the procedures' list "Before launching, print and validate"."""

    id: CheckId
    """``launch.SOMETHING``."""
    title: str
    source: str
    """The procedure's line."""
    judge: Callable[[Preparation], Told]
    only_first: bool = False
    """Whether it holds for the first launch alone: a relaunch goes on under names that exist already."""

    def finding(self, weight: Weight, message: str, fix: str) -> PreflightFinding:
        return PreflightFinding(check=self.id, weight=weight, message=message, fix=fix)


def stated(name: str, value: object, basis: Basis = Basis.STATED) -> PreflightValue:
    """Return a value as it is printed; what is not there has no basis either."""
    if value in (None, "", ()):
        return PreflightValue(name=name, value=None, basis=None)
    return PreflightValue(name=name, value=str(value), basis=basis)


def unseen(check: CheckId, gap: Unknown, what: str) -> PreflightFinding:
    """Return the finding for something needed that could not be read."""
    return PreflightFinding(
        check=check,
        weight=Weight.UNKNOWN,
        message=f"{what} is not known: {gap.detail}",
        fix="mend the access and ask again; nothing is launched on a guess",
    )


def judge_preparation(items: tuple[Item, ...], prepared: Preparation) -> PreflightReport:
    """Let every item judge; one that raises is an Unknown of its own and hides none of the others."""
    values: dict[str, PreflightValue] = {}
    findings: list[PreflightFinding] = []
    changes: list[str] = []
    for item in items:
        if item.only_first and not prepared.is_first:
            continue
        try:
            told = item.judge(prepared)
        except Exception as error:  # noqa: BLE001 - one of the four borders: a check's run
            said = "".join(traceback.format_exception_only(error)).strip()
            told = Told(findings=(item.finding(Weight.UNKNOWN, f"Hero's own check broke: {said}", "report it"),))
        values |= {each.name: each for each in told.values}  # the item that knows most of a value comes later
        findings += told.findings
        changes += told.changes
    return PreflightReport(values=tuple(values.values()), findings=tuple(findings), changes=tuple(changes))
