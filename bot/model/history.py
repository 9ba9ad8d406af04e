"""What was concluded when, and on what grounds: the answer to "why didn't you tell me?"."""

from pydantic import AwareDatetime, Field

from bot.model.incident import News
from bot.model.value import CheckId, RunId, Value
from bot.model.verdict import Fail, NotApplicable, Pass, UnknownVerdict, Verdict


class VerdictChange(Value):
    """A check's verdict, at the moment when it became another than before; it held until the next change."""

    run_id: RunId
    check: CheckId
    at: AwareDatetime
    verdict: Verdict = Field(discriminator="kind")
    seen: str
    """What the snapshot showed, in one line with the numbers."""
    incident: int | None = None
    news: News | None = None
    """Why people were told of it then, or not; None where there was nothing to tell."""

    def says_the_same(self, other: "VerdictChange") -> bool:
        """Whether nothing but the moment and what was seen around it differs."""
        return (self.verdict, self.incident, self.news) == (other.verdict, other.incident, other.news)


def say_verdict(verdict: Verdict) -> str:
    """Return a verdict in words."""
    match verdict:
        case Pass():
            return "fine"
        case Fail(finding=finding):
            return f"{finding.severity}: {finding.summary}"
        case UnknownVerdict(reason=reason, detail=detail):
            return f"unknown ({reason}): {detail}"
        case NotApplicable(reason=reason):
            return f"not applicable: {reason}"
