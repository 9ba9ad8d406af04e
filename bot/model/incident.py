"""A finding over time: pending → open → (acknowledged) → resolved."""

from enum import StrEnum
from typing import Literal, assert_never

from pydantic import AwareDatetime

from bot.model.value import CheckId, PersonName, RunId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, UnknownVerdict, Verdict


class Open(Value):
    kind: Literal["open"] = "open"


class Acknowledged(Value):
    """Somebody said that they look after it: no reminders, still resolved by itself."""

    kind: Literal["acknowledged"] = "acknowledged"
    by: PersonName
    at: AwareDatetime


class Resolved(Value):
    kind: Literal["resolved"] = "resolved"
    at: AwareDatetime


type IncidentState = Open | Acknowledged | Resolved


class News(StrEnum):
    """Why people are told, or not: the reason travels into the log and the message."""

    OPENED = "opened"
    WORSE = "worse"
    RESOLVED = "resolved"
    NOTHING_NEW = "nothing_new"


class Incident(Value):
    """One finding that lasted for a while; its number is what people call it by (``I4``)."""

    number: int
    run_id: RunId
    check: CheckId
    key: str
    finding: Finding
    opened_at: AwareDatetime
    state: IncidentState = Open()

    @property
    def is_resolved(self) -> bool:
        return isinstance(self.state, Resolved)

    def after(self, verdict: Verdict, at: AwareDatetime) -> tuple["Incident", News]:
        """Return the incident as it is after a verdict of its check, and what is new about it.

        An Unknown never resolves (law 1); neither does a finding of the same check under another key leave this
        one open: the old instance's trouble is over when the check speaks of a new one.
        """
        if self.is_resolved:
            return self, News.NOTHING_NEW
        match verdict:
            case Fail(finding=finding) if finding.key == self.key:
                worse = finding.severity.rank > self.finding.severity.rank
                return self.model_copy(update={"finding": finding}), News.WORSE if worse else News.NOTHING_NEW
            case Fail() | Pass() | NotApplicable():
                return self.model_copy(update={"state": Resolved(at=at)}), News.RESOLVED
            case UnknownVerdict():
                return self, News.NOTHING_NEW
            case _:
                assert_never(verdict)


def open_incident(number: int, run_id: RunId, finding: Finding, at: AwareDatetime) -> Incident:
    """Return the incident that a first finding opens."""
    return Incident(number=number, run_id=run_id, check=finding.check, key=finding.key, finding=finding, opened_at=at)
