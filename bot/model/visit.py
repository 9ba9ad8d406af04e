"""When somebody last looked, so that a person who comes back is told what is new to them and nothing else."""

from datetime import timedelta

from pydantic import AwareDatetime, ValidationError

from bot.model.person import Actor, Person, find_people
from bot.model.value import Value

FIRST = timedelta(hours=24)
"""How far back somebody is told who never looked before."""

_ONE_SITTING = timedelta(minutes=30)
"""Commands no further apart than this are one look: who asks for the status first still catches up on all of it."""


class Visit(Value):
    """The last look: when its first and its last command came, and from when on things were new to it."""

    since: AwareDatetime
    last_at: AwareDatetime

    def after(self, at: AwareDatetime) -> "Visit":
        """Return the look that a command now belongs to: this one, or one that begins where this one ended."""
        since = self.since if at - self.last_at <= _ONE_SITTING else self.last_at
        return Visit(since=since, last_at=max(at, self.last_at))


def visit_at(before: Visit | None, at: AwareDatetime) -> Visit:
    """Return the look that a command belongs to; the first one reaches a day back."""
    return before.after(at) if before else Visit(since=at - FIRST, last_at=at)


def read_visit(stored: str | None) -> Visit | None:
    """Return a look as it was stored; None when there was none, or none that can be read."""
    try:
        return Visit.model_validate_json(stored) if stored else None
    except ValidationError:
        return None


def visitor(actor: Actor, people: tuple[Person, ...]) -> str:
    """Return the name of a cursor: one for a person on all platforms, else one for the account."""
    found = find_people(actor, people)
    return f"looked:{found[0].name}" if len(found) == 1 else f"looked:{actor.platform}:{actor.user_id}"
