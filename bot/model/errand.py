"""What somebody asked for by command and what needs a look at the world first: a plan to show, a stop, a clean-up."""

from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime

from bot.model.plan import Plan
from bot.model.value import PersonName, Value


class ErrandKind(StrEnum):
    PLAN = "plan"
    """Show what a launch would do and what the launch checklist finds; asks for nothing."""
    STOP = "stop"
    CLEANUP = "cleanup"
    SEAL = "seal"
    TRIAL = "trial plan"
    """Agree on the trial that the contract describes."""
    REHEARSAL = "rehearsal"
    """Run every guard of the trial dry; asks for nothing."""


class Errand(Value):
    """One such wish; kept with the run until it was looked into, so that a crash loses none."""

    kind: ErrandKind
    by: PersonName
    at: AwareDatetime
    argument: str = ""
    """What followed the command, e.g. how many checkpoints to keep."""


class Planned(Value):
    """It can be done: the plan is put to the DRI."""

    kind: Literal["planned"] = "planned"
    plan: Plan
    evidence: tuple[str, ...] = ()
    """What helps to decide and is no part of the plan."""


class Answer(Value):
    """Nothing is to be decided: what was found."""

    kind: Literal["answer"] = "answer"
    headline: str
    lines: tuple[str, ...] = ()
    next: str = ""
    is_warning: bool = False


class CannotYet(Value):
    """No plan can be made; what would make one possible."""

    kind: Literal["cannot_yet"] = "cannot_yet"
    reason: str
    fix: str
    evidence: tuple[str, ...] = ()
    is_unknown: bool = False
    """Something could not be read; nothing is concluded."""


type Found = Planned | Answer | CannotYet
