"""What Discord says of an account now: a member of the guild, no bot, through its gate. Names decide nothing."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.channels.discord.api import CallError, DiscordApi
from bot.channels.discord.outcomes import UNKNOWN_MEMBER, UNKNOWN_USER
from bot.clock import Clock
from bot.model.person import Actor, Standing
from bot.model.reading import Gap, Known, Reading, Unknown

_IS_GUEST = 1 << 4
"""Guild member flag: here for a voice call only (resources/guild.mdx, "Guild Member Flags")."""


class _User(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    id: str
    bot: bool = False
    """Left out for people."""


class _Member(BaseModel):
    """Get Guild Member, the fields that decide."""

    model_config = ConfigDict(hide_input_in_errors=True)

    user: _User
    flags: int
    pending: bool = False
    """Whether the guild's membership screening is still to be passed; left out where there is none."""
    communication_disabled_until: datetime | None = None


async def standing_of(actor: Actor, api: DiscordApi, guild: str, clock: Clock) -> Reading[Standing]:
    """Ask the guild about one account."""
    at = clock.now()
    if not actor.user_id.isdecimal():
        return Known(value=Standing(is_member=False, is_bot=actor.is_bot, detail="no such account"), at=at)
    try:
        answer: object = await api.ask(lambda client: client.http.get_member(int(guild), int(actor.user_id)))
    except CallError as error:
        if error.code in {UNKNOWN_MEMBER, UNKNOWN_USER}:
            detail = "no member of the server"
            return Known(value=Standing(is_member=False, is_bot=actor.is_bot, detail=detail), at=at)
        return Unknown(reason=_gap(error), detail=error.detail[:500], at=at)
    try:
        member = _Member.model_validate(answer)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, problem["loc"])) for problem in error.errors())
        return Unknown(reason=Gap.UNRECOGNISED, detail=f"guild member: {fields or 'it'} is not as expected", at=at)
    if member.user.id != actor.user_id:
        return Unknown(reason=Gap.UNRECOGNISED, detail="Discord answered about somebody else", at=at)
    return Known(value=_standing(member, at), at=at)


def _standing(member: _Member, at: datetime) -> Standing:
    until = member.communication_disabled_until
    against = {
        "a bot": member.user.bot,
        "a guest": bool(member.flags & _IS_GUEST),
        "not through the server's membership screening": member.pending,
        "in a timeout": until is not None and until > at,
    }
    said = tuple(what for what, holds in against.items() if holds)
    return Standing(is_member=not said, is_bot=member.user.bot, detail=", ".join(said))


def _gap(error: CallError) -> Gap:
    if error.status and not error.is_uncertain and not error.is_limited:
        return Gap.REFUSED
    return Gap.TIMEOUT if isinstance(error.__cause__, TimeoutError) else Gap.UNREACHABLE
