"""People, and who is speaking. Authority hangs on platform user ids, never on names (field report R40)."""

from enum import StrEnum

from pydantic import AwareDatetime

from bot.model.hours import WORKING_WEEK, Weekday, WorkingHours
from bot.model.reading import Reading
from bot.model.value import PersonName, Value


class Platform(StrEnum):
    """Where a person can speak from."""

    SLACK = "slack"
    GITHUB = "github"
    DISCORD = "discord"
    CONSOLE = "console"


class Person(Value):
    """One ``[people.NAME]`` table: the accounts that are this person."""

    name: PersonName
    slack: str | None = None
    """Slack user id, ``U…``; ids outlive renaming."""
    github: str | None = None
    """GitHub login, compared without case."""
    github_id: int | None = None
    """GitHub's numeric user id; when given it decides instead of the login, since a login can be renamed and reused."""
    discord: str | None = None
    """Discord's numeric user id, as text."""
    email: str | None = None
    console: bool = False
    """Whether whoever sits at Hero's own terminal is this person."""
    timezone: str | None = None
    """Where they work; None for Hero's own zone."""
    working_hours: str | None = None
    """``09:00-18:00``; None when they may be asked at any time."""
    working_days: tuple[Weekday, ...] = WORKING_WEEK

    def has_account(self, channel: str) -> bool:
        """Whether they can be asked on a channel, by its name in ``Platform``; never where nobody answers."""
        match channel:
            case Platform.GITHUB:
                return self.github is not None or self.github_id is not None
            case Platform.SLACK:
                return self.slack is not None
            case Platform.DISCORD:
                return self.discord is not None
            case _:
                return channel == Platform.CONSOLE and self.console

    def hours(self, timezone: str) -> WorkingHours | None:
        """Return when they work; ``timezone`` is that of those who have none of their own."""
        if self.working_hours is None:
            return None
        return WorkingHours(hours=self.working_hours, days=self.working_days, timezone=self.timezone or timezone)


class Standing(Value):
    """What the platform says about an account at the moment it speaks."""

    is_member: bool
    """An active, full member of our own workspace or repository: not deleted, no guest, no stranger."""
    is_bot: bool
    detail: str = ""


class Actor(Value):
    """Whoever did something on a platform, as the platform itself names them."""

    platform: Platform
    user_id: str
    """Slack user id, GitHub or Discord numeric id as text, or the operating system's user on the console."""
    login: str = ""
    """GitHub login; empty elsewhere."""
    display_name: str = ""
    """For messages only: free text that anybody can set."""
    association: str = ""
    """What GitHub says beside a comment that its author is to the repository, e.g. ``CONTRIBUTOR``. It is shown in the
    audit log and never trusted: it may be stale, and ``read`` access is everybody's."""
    is_bot: bool = False


class IdentifiedActor(Value):
    """An actor and what their platform said of them just now."""

    actor: Actor
    standing: Reading[Standing]
    at: AwareDatetime


def find_people(actor: Actor, people: tuple[Person, ...]) -> tuple[Person, ...]:
    """Return everyone the account may be: one is a match, none or two is a refusal."""
    match actor.platform:
        case Platform.SLACK:
            return tuple(p for p in people if p.slack is not None and p.slack == actor.user_id)
        case Platform.GITHUB:
            return tuple(p for p in people if _is_github_account(p, actor))
        case Platform.DISCORD:
            return tuple(p for p in people if p.discord is not None and p.discord == actor.user_id)
        case Platform.CONSOLE:
            return tuple(p for p in people if p.console)


def _is_github_account(person: Person, actor: Actor) -> bool:
    if person.github_id is not None:
        return str(person.github_id) == actor.user_id
    return person.github is not None and person.github.casefold() == actor.login.casefold()
