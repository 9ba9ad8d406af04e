"""A finding over time: pending → open → (acknowledged, silenced) → resolved.

Why people are told of it, or not, is a reason with a name (``News``); it travels into the message, the log and the
record of verdicts that ``hero explain`` reads.
"""

from enum import StrEnum
from typing import Literal, Self, assert_never

from pydantic import AwareDatetime, Field, model_validator

from bot.model.ladder import Climb
from bot.model.value import CheckId, PersonName, RunId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Patience, Severity, UnknownVerdict, Verdict


class Pending(Value):
    """Seen, but not often enough to tell: one bad look is no incident yet."""

    kind: Literal["pending"] = "pending"
    looks: tuple[bool, ...]
    """The newest looks that told something, oldest first; True failed. Unknown ones are left out."""


class Open(Value):
    kind: Literal["open"] = "open"
    passes: int = 0
    """How many looks in a row have found it gone."""


class Acknowledged(Value):
    """Somebody said that they look after it: no reminders, still resolved by itself."""

    kind: Literal["acknowledged"] = "acknowledged"
    by: PersonName
    at: AwareDatetime
    severity: Severity | None = None
    """How grave it was when they said so; graver, it is open again. None: on record from before this was noted."""
    passes: int = 0


class Silenced(Value):
    """Somebody wants to hear nothing of it until then; it is still judged, and still resolved by itself."""

    kind: Literal["silenced"] = "silenced"
    by: PersonName
    at: AwareDatetime
    until: AwareDatetime
    passes: int = 0


class Resolved(Value):
    kind: Literal["resolved"] = "resolved"
    at: AwareDatetime


type IncidentState = Pending | Open | Acknowledged | Silenced | Resolved


class News(StrEnum):
    """Why people are told, or not."""

    OPENED = "opened"
    WORSE = "worse"
    SILENCE_ENDED = "silence_ended"
    """The silence has run out and it is still there."""
    RESOLVED = "resolved"
    NOTHING_NEW = "nothing_new"
    PENDING = "pending"
    """Not seen often enough yet."""
    CLOSING = "closing"
    """Gone, but not for long enough to say so."""
    INHIBITED = "inhibited"
    """Another open incident explains it."""
    SILENCED = "silenced"
    DROPPED = "dropped"
    """Over before anybody was told of it."""
    UNKNOWN = "unknown"
    """The check could not look: the incident stays as it was."""

    @property
    def is_told(self) -> bool:
        return self in {News.OPENED, News.WORSE, News.SILENCE_ENDED, News.RESOLVED}


class Incident(Value):
    """One finding that lasted for a while; its number is what people call it by (``I4``)."""

    number: int
    run_id: RunId
    check: CheckId
    key: str
    finding: Finding
    opened_at: AwareDatetime
    state: IncidentState = Field(default=Open(), discriminator="kind")
    is_told: bool = True
    """Whether people have heard of it; what they never heard of is not reported as over."""
    climb: Climb | None = None
    """How far people were reached for it beyond the first message; None before that began."""

    @property
    def is_resolved(self) -> bool:
        return isinstance(self.state, Resolved)

    @property
    def is_open(self) -> bool:
        """Whether it is there for people: neither pending nor over."""
        return not isinstance(self.state, Pending | Resolved)

    @model_validator(mode="after")
    def _pending_is_untold(self) -> Self:
        if isinstance(self.state, Pending) and self.is_told:
            msg = "a pending incident was told"
            raise ValueError(msg)
        return self

    def after(self, verdict: Verdict, at: AwareDatetime, patience: Patience | None = None) -> tuple["Incident", News]:
        """Return the incident as it is after a verdict of its check, and what is new about it.

        An Unknown never resolves (law 1); neither does a finding of the same check under another key leave this
        one open: the old instance's trouble is over when the check speaks of a new one.
        """
        if self.is_resolved:
            return self, News.NOTHING_NEW
        match verdict:
            case Fail(finding=finding) if finding.key == self.key:
                return self._failed(finding, at, patience or Patience())
            case Fail() | NotApplicable():
                return self._over(at)
            case Pass():
                return self._passed(at, patience or Patience())
            case UnknownVerdict():
                return self, News.UNKNOWN
            case _:
                assert_never(verdict)

    def _failed(self, finding: Finding, at: AwareDatetime, patience: Patience) -> tuple["Incident", News]:
        worse = finding.severity.rank > self.finding.severity.rank
        seen = self.model_copy(update={"finding": finding})
        match self.state:
            case Pending(looks=looks):
                return seen.pended((*looks, True)[-patience.of :], patience)
            case Silenced(until=until) if at >= until:
                return seen.model_copy(update={"state": Open()}), News.SILENCE_ENDED
            case Acknowledged(severity=then) if then and finding.severity.rank > then.rank:
                # Who took on the lesser thing has said nothing about this one: it may wake people again.
                return seen.model_copy(update={"state": Open()}), News.WORSE
            case Silenced() as state:
                return seen.model_copy(update={"state": state.model_copy(update={"passes": 0})}), News.SILENCED
            case Open() | Acknowledged() as state:
                again = seen.model_copy(update={"state": state.model_copy(update={"passes": 0})})
                return again, News.WORSE if worse else News.NOTHING_NEW
            case Resolved():
                return self, News.NOTHING_NEW
            case _:
                assert_never(self.state)

    def _passed(self, at: AwareDatetime, patience: Patience) -> tuple["Incident", News]:
        match self.state:
            case Pending(looks=looks):
                kept = (*looks, False)[-patience.of :]
                return self.pended(kept, patience) if any(kept) else self._over(at)
            case Open() | Acknowledged() | Silenced() as state if state.passes + 1 < patience.passes:
                waiting = state.model_copy(update={"passes": state.passes + 1})
                return self.model_copy(update={"state": waiting}), News.CLOSING
            case _:
                return self._over(at)

    def pended(self, looks: tuple[bool, ...], patience: Patience) -> tuple["Incident", News]:
        """Return the incident with its newest looks: still pending, or open when enough of them failed."""
        if sum(looks) >= patience.fails:
            return self.model_copy(update={"state": Open()}), News.OPENED
        return self.model_copy(update={"state": Pending(looks=looks)}), News.PENDING

    def _over(self, at: AwareDatetime) -> tuple["Incident", News]:
        over = self.model_copy(update={"state": Resolved(at=at)})
        return over, News.RESOLVED if self.is_told else News.DROPPED


def begin_incident(
    number: int, run_id: RunId, finding: Finding, at: AwareDatetime, patience: Patience | None = None
) -> tuple[Incident, News]:
    """Return the incident that a first finding begins: open at once, unless its check asks for patience."""
    begun = Incident(
        number=number,
        run_id=run_id,
        check=finding.check,
        key=finding.key,
        finding=finding,
        opened_at=at,
        state=Pending(looks=()),
        is_told=False,
    )
    return begun.pended((True,), patience or Patience())


def open_incident(number: int, run_id: RunId, finding: Finding, at: AwareDatetime) -> Incident:
    """Return an incident that is open and told."""
    begun, _ = begin_incident(number, run_id, finding, at)
    return begun.model_copy(update={"is_told": True})
