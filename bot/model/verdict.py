"""What a check concludes."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from bot.model.crash import Classification
from bot.model.reading import Gap
from bot.model.value import CheckId, Value


class Severity(StrEnum):
    """How bad a finding is; ``critical`` wakes the DRI."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info, rising with the harm."""
        return ("info", "warning", "critical").index(self.value)


class Finding(Value):
    """What is wrong, how bad, since when, on what evidence, and what to do."""

    check: CheckId
    key: str = ""
    """Tells two findings of one check apart, e.g. the instance; a new key is a new incident."""
    severity: Severity
    summary: str
    """One sentence with the numbers in it."""
    evidence: tuple[str, ...] = ()
    """Numbers with units, log lines with their place; each one line."""
    advice: str
    """What to do next; half of a finding's worth."""
    since_step: int | None = None
    since_at: AwareDatetime | None = None
    crash: Classification | None = None
    """Set by the checks about a job's end."""
    is_recoverable: bool = False
    """Whether a relaunch with the same run id and output root may be put to the DRI for this."""


class Pass(Value):
    """Looked at, and fine."""

    kind: Literal["pass"] = "pass"


class Fail(Value):
    """Looked at, and something is wrong."""

    kind: Literal["fail"] = "fail"
    finding: Finding


class UnknownVerdict(Value):
    """Could not be looked at. Ranks above a pass: it neither opens nor resolves an incident of the check."""

    kind: Literal["unknown"] = "unknown"
    reason: Gap
    detail: str


class NotApplicable(Value):
    """Looked at, and the rule does not apply to this run now."""

    kind: Literal["not_applicable"] = "not_applicable"
    reason: str


type Verdict = Pass | Fail | UnknownVerdict | NotApplicable


class Patience(Value):
    """How many looks it takes to open an incident and to close it again: n of m to open, a row of passes to close.

    Both keep one noisy look, and a value that wobbles around its limit, from waking anybody (field report R38).
    """

    fails: int = Field(default=1, ge=1)
    """So many of the newest ``of`` looks must fail before it is told."""
    of: int = Field(default=1, ge=1)
    passes: int = Field(default=1, ge=1)
    """So many looks in a row must pass before it is over."""

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.fails > self.of:
            msg = f"{self.fails} of {self.of} looks can't fail"
            raise ValueError(msg)
        return self


class Judgement(Value):
    """One check's verdict in one snapshot."""

    check: CheckId
    verdict: Verdict
    patience: Patience = Patience()
