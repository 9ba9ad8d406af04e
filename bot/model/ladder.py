"""The ladder of escalation: how people are reached, one rung after the other, while nobody gives a sign."""

from datetime import timedelta
from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.value import Value


class Rung(StrEnum):
    """The ways to reach somebody, quiet ones first."""

    THREAD = "thread"
    """A message in the run's conversation that makes nobody's phone ring."""
    MENTION = "mention"
    """The same, with the DRI mentioned."""
    DIRECT = "direct"
    """A direct message to the DRI."""
    DEPUTIES = "deputies"
    """The deputies, mentioned in the conversation and by direct message."""
    EMAIL = "email"
    PAGER = "pager"


class Ladder(Value):
    """After how long without a sign each rung is due; a rung that is off has no place in it."""

    times: dict[Rung, timedelta] = {}


class Ladders(Value):
    """The settings of the ladder."""

    critical: Ladder
    """For what costs hours now; it waits for nobody's working hours."""
    warning: Ladder
    """For questions by whose waiting nothing is lost; outside the DRI's working hours it waits for them."""
    per_day: int
    """The most messages of the ladder about one run in 24 hours; a page is not held back by it."""


class Climbed(Value):
    """A rung that was taken; none is taken twice for the same matter."""

    rung: Rung
    at: AwareDatetime


class Climb(Value):
    """How far the ladder was climbed for one request or incident."""

    since: AwareDatetime | None
    """When people were told of it, from which the times count. None while it is silenced: they count anew after."""
    rungs: tuple[Climbed, ...] = ()

    def has(self, rung: Rung) -> bool:
        return any(each.rung is rung for each in self.rungs)


class OpenPage(Value):
    """Somebody is being called about a run; there is never a second such page while nobody has given a sign."""

    name: str
    """What it was first about, ``I4`` or ``R7``; with the run the receiver's deduplication key."""
    about: tuple[str, ...]
    """Everything it stands for; it is over when all of them are."""
    is_acknowledged: bool = False


class PageStatus(StrEnum):
    TRIGGER = "trigger"
    ACKNOWLEDGE = "acknowledge"
    """Somebody gave a sign: whoever is being called need not be called on."""
    RESOLVE = "resolve"


class Page(Value):
    """What a pager is told beside the words."""

    key: str
    """The receiver's deduplication key: one key, one page, however often it is sent."""
    status: PageStatus
    link: str = ""
    """The run's conversation; empty when it has no address."""
