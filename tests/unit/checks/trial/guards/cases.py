"""One case of one guard: a rehearsal that is green but for one thing, what the guard says of it, and a word of that."""

from collections.abc import Iterable
from typing import NamedTuple

from bot.model.rehearsal import GuardSays, Rehearsal
from bot.model.trial import Outcome
from checks.trial.guards import GUARDS

PASS, FAIL, DARK = Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL
GUARD_OF = {guard.id: guard for guard in GUARDS}


class Case(NamedTuple):
    guard: str
    rehearsal: Rehearsal
    outcome: Outcome
    words: str
    """Part of the detail or of the fix."""


def judged(case: Case) -> GuardSays:
    """Let the guard judge, without what catches its errors."""
    return GUARD_OF[case.guard].judge(case.rehearsal)  # type: ignore[index]  # a CheckId is a str


def ids(cases: Iterable[Case]) -> list[str]:
    return [f"{case.guard}-{case.outcome}-{case.words[:24]}" for case in cases]


def hold(case: Case) -> None:
    """Assert that the guard says what the case says, and how to mend it unless it passes."""
    said = judged(case)
    assert said.outcome is case.outcome, said.line
    assert case.words in f"{said.detail} {said.fix}", said.line
    assert bool(said.fix) is (case.outcome is not PASS), said.line
