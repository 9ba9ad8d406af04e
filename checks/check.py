"""What a check is, and how a set of them judges a snapshot.

A new check is one function and one value; see ``checks/__init__.py``.
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from bot.model.contract import Contract
from bot.model.reading import Gap
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, Judgement, Pass, Patience, Severity, UnknownVerdict, Verdict
from bot.model.wording import Wrong, nearest, not_bare, wrongs

AT_ONCE = Patience()
"""Opened by the first look that fails, closed by the first that passes."""

BROKEN = CheckId("monitor.check_broken")
"""The finding that a check itself raised: our bug, told as such and apart from the run's health."""


@dataclass(frozen=True, kw_only=True)
class Check[L: Value, M: Value]:
    """One thing that can go wrong: a pure function and what it needs to be called.

    ``judge`` sees the snapshot, the contract (its cadence resolved), the thresholds and the check's own memory, and
    returns a verdict and the next memory. It reads no clock: ``snapshot.at`` is now.
    """

    id: CheckId
    title: str
    severity: Severity
    """The worst that it can find."""
    needs: tuple[Source, ...]
    source: str
    """Where the rule comes from: the procedure's section, a paper, an API page."""
    thresholds: L
    memory: M
    """What it remembers before it was ever called."""
    judge: Callable[[Snapshot, Contract, L, M], tuple[Verdict, M]]
    patience: Patience = AT_ONCE
    """How many looks open and close its incidents."""


@dataclass(frozen=True)
class Broken:
    """A check that raised; the caller logs the traceback."""

    check: CheckId
    trace: str


@dataclass(frozen=True)
class Judged:
    """What a set of checks made of one snapshot."""

    judgements: tuple[Judgement, ...]
    memories: dict[CheckId, str]
    broken: tuple[Broken, ...]


def judge_all(
    checks: tuple[Check[Any, Any], ...], seen: Snapshot, contract: Contract, memories: Mapping[CheckId, str]
) -> Judged:
    """Let every check judge; one that raises becomes Unknown(BROKEN) and a finding of its own, the others go on."""
    judgements: list[Judgement] = []
    kept: dict[CheckId, str] = {}
    broken: list[Broken] = []
    for check in checks:
        try:
            verdict, memory = check.judge(
                seen, contract, thresholds_of(check, contract), _recall(check, memories.get(check.id))
            )
            kept[check.id] = memory.model_dump_json()
        except Exception as error:  # noqa: BLE001 - one of the four borders: a check's run
            verdict = UnknownVerdict(reason=Gap.BROKEN, detail=f"the check raised {type(error).__name__}")
            broken.append(Broken(check.id, "".join(traceback.format_exception(error))))
        judgements.append(Judgement(check=check.id, verdict=verdict, patience=check.patience))
    judgements.append(Judgement(check=BROKEN, verdict=_about_ourselves(tuple(broken))))
    return Judged(tuple(judgements), kept, tuple(broken))


def thresholds_of[L: Value, M: Value](check: Check[L, M], contract: Contract) -> L:
    """Return the check's thresholds with the contract's own in place of defaults.

    Raises:
        ValidationError: the contract names a threshold that there is not, or gives one a wrong value.
    """
    own = contract.thresholds.get(check.id)
    if not own:
        return check.thresholds
    return type(check.thresholds).model_validate({**check.thresholds.model_dump(), **own})


def threshold_problems(checks: tuple[Check[Any, Any], ...], contract: Contract) -> tuple[Wrong, ...]:
    """Return what is wrong with a contract's ``[thresholds]``, each with its fix; empty when nothing is."""
    known = {check.id: check for check in checks}
    problems: list[Wrong] = []
    for check_id in contract.thresholds:
        place = ("thresholds", check_id)
        if check_id not in known:
            guess = nearest(check_id, known) or "`hero checks` lists them,"
            fix = f'{guess} write the id in quotes, as in [thresholds."progress.stalled"]'
            problems.append(Wrong(place, check_id, f"there is no such check; {fix}"))
            continue
        own = type(known[CheckId(check_id)].thresholds)
        try:
            thresholds_of(known[CheckId(check_id)], contract)
        except ValidationError as error:
            problems += [
                each._replace(location=(*place, *each.location))
                for each in wrongs(own, error, what=f"threshold of {check_id}", page="docs/checks.md")
            ]
        said = {each.location for each in problems}
        problems += [
            each for each in not_bare((own,), contract.thresholds[check_id], place) if each.location not in said
        ]
    return tuple(problems)


def _recall[L: Value, M: Value](check: Check[L, M], stored: str | None) -> M:
    """Return the stored memory; a memory of an older shape is forgotten rather than misread."""
    if stored is None:
        return check.memory
    try:
        return type(check.memory).model_validate_json(stored)
    except ValidationError:
        return check.memory


def _about_ourselves(broken: tuple[Broken, ...]) -> Verdict:
    if not broken:
        return Pass()
    names = ", ".join(each.check for each in broken)
    finding = Finding(
        check=BROKEN,
        severity=Severity.WARNING,
        summary=f"Hero's own check broke and says nothing about the run now: {names}",
        evidence=tuple(each.trace.strip().splitlines()[-1] for each in broken),
        advice="Report the traceback in Hero's log; the other checks go on, but nobody looks at this fault until then.",
    )
    return Fail(finding=finding)
