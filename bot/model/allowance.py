"""A yes in advance: so many relaunches of a named kind of failure, for a time, for one run (a standing grant)."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from bot.model.crash import Classification, CrashClass, RelaunchAdvice
from bot.model.value import PersonName, Value

MOST_USES = 10
_REVOKED = "revoked by"


class AllowedKind(StrEnum):
    """What may be allowed in advance: failures that are nobody's doing, and nothing else."""

    INFRA = "infra"
    PREEMPTION = "preemption"
    HARDWARE = "hardware"

    @property
    def classes(self) -> frozenset[CrashClass]:
        """The crash classes that it stands for."""
        match self:
            case AllowedKind.INFRA:
                return frozenset({CrashClass.INFRA_PREEMPTION, CrashClass.INFRA_HARDWARE})
            case AllowedKind.PREEMPTION:
                return frozenset({CrashClass.INFRA_PREEMPTION})
            case AllowedKind.HARDWARE:
                return frozenset({CrashClass.INFRA_HARDWARE})


class Use(Value):
    """One relaunch that was made by it."""

    at: AwareDatetime
    request: int
    step: int | None
    """Where the run had failed; None when that was not known."""


class Allowance(Value):
    """What the DRI allowed in advance."""

    number: int
    """1 for the first of the run; people call it ``A1``."""
    kind: AllowedKind
    most: int = Field(ge=1, le=MOST_USES)
    until: AwareDatetime
    by: PersonName
    at: AwareDatetime
    via: str
    """Platform and event of the command, for the audit."""
    uses: tuple[Use, ...] = ()
    ended: str = ""
    """Why it is over before its time and number; empty while it is not."""

    @property
    def name(self) -> str:
        return f"A{self.number}"

    @property
    def left(self) -> int:
        return self.most - len(self.uses)

    def is_alive(self, at: AwareDatetime) -> bool:
        """Whether it may still be used."""
        return not self.ended and self.left > 0 and at < self.until

    def revoked(self, by: PersonName) -> "Allowance":
        """Return it ended by somebody's word."""
        return self.model_copy(update={"ended": f"{_REVOKED} {by}"})

    def why_void(self, crash: Classification | None) -> str:
        """Say why a relaunch that was granted by it, and has not begun, must not begin; empty while it may.

        Args:
            crash: what the failure is taken for by now; None when it is not open any more.
        """
        if self.ended.startswith(_REVOKED):
            return f"{self.name}, by which it was allowed in advance, was {self.ended}"
        if crash is None:
            return ""
        if crash.crash_class not in self.kind.classes or crash.relaunch is not RelaunchAdvice.SAME_ID:
            return f"{self.name} is for {self.kind} alone, and the failure is taken for {crash.crash_class} by now"
        return ""

    def used(self, use: Use) -> "Allowance":
        """Return it with one more use; two at the same step end it: that is no accident any more."""
        again = use.step is not None and any(each.step == use.step for each in self.uses)
        ended = f"used twice at step {use.step}" if again else ""
        return self.model_copy(update={"uses": (*self.uses, use), "ended": ended})
