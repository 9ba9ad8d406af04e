"""One guard of a trial: a line of the deploy checklist that has to hold before anything is changed. Pure.

A guard passes when what it demands was shown, and only then. What could not be read is never fine: the guard cannot
tell. ``Known(())`` is an answer, "asked and found none", and no gap.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from bot.model.reading import Unknown
from bot.model.rehearsal import GuardSays, Rehearsal
from bot.model.trial import Outcome, worst
from bot.model.value import CheckId, Value


class Group(StrEnum):
    """Which section of the deploy checklist a guard is of."""

    PLAN = "plan"
    """1, "Agree the plan"."""
    RECORD = "record"
    """2, "Land the launch record"."""
    REHEARSE = "rehearse"
    """3, "Rehearse preflight and rollback"."""


class Word(Value):
    """One thing that a guard has to say."""

    outcome: Outcome
    detail: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One line of the deploy checklist."""

    id: CheckId
    """``FAMILY.DEMAND``, stable."""
    title: str
    """What it demands."""
    source: str
    """The procedure's line."""
    group: Group
    rule: Callable[[Rehearsal], Word]

    def judge(self, rehearsal: Rehearsal) -> GuardSays:
        """Say whether what it demands was shown."""
        return self.says(self.rule(rehearsal))

    def says(self, word: Word) -> GuardSays:
        return GuardSays(guard=self.id, title=self.title, outcome=word.outcome, detail=word.detail, fix=word.fix)


def passes(detail: str) -> Word:
    return Word(outcome=Outcome.PASS, detail=detail)


def fails(detail: str, fix: str) -> Word:
    return Word(outcome=Outcome.FAIL, detail=detail, fix=fix)


def cannot_tell(detail: str, fix: str) -> Word:
    return Word(outcome=Outcome.CANNOT_TELL, detail=detail, fix=fix)


def unseen(gap: Unknown, what: str) -> Word:
    """Return the word for a reading that is not there."""
    return cannot_tell(f"{what} is not known: {gap.detail}", "mend the access, then rehearse again")


def all_of(good: str, against: Iterable[Word]) -> Word:
    """Return what one guard says: everything of the worst kind that speaks against it; ``good`` when nothing does."""
    words = tuple(against)
    if not words:
        return passes(good)
    outcome = worst(tuple(word.outcome for word in words))
    said = [word for word in words if word.outcome is outcome]
    return Word(
        outcome=outcome,
        detail="; ".join(dict.fromkeys(word.detail for word in said)),
        fix="; ".join(dict.fromkeys(word.fix for word in said if word.fix)),
    )
