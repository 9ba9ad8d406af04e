"""What Slack says of an account now. Names decide nothing, and an unclear answer is Unknown (field report R40)."""

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.channels.slack.api import CallError, Me, SlackApi
from bot.clock import Clock
from bot.model.person import Actor, Standing
from bot.model.reading import Gap, Known, Reading, Unknown

_SLACKBOT = "USLACKBOT"  # its is_bot is false
_NO_SUCH_USER = frozenset({"user_not_found", "users_not_found", "user_not_visible"})


class _EnterpriseUser(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    teams: tuple[str, ...] = ()


class _User(BaseModel):
    """users.info, the fields that decide. A deleted account lacks the later ones."""

    model_config = ConfigDict(hide_input_in_errors=True, strict=True)

    id: str
    team_id: str
    deleted: bool
    is_bot: bool | None = None
    is_restricted: bool | None = None
    is_ultra_restricted: bool | None = None
    is_stranger: bool = False
    enterprise_user: _EnterpriseUser | None = None


async def standing_of(actor: Actor, api: SlackApi, clock: Clock) -> Reading[Standing]:
    """Ask users.info about one account."""
    at = clock.now()
    try:
        me = await api.me()
        answer = await api.ask(api.client.users_info(user=actor.user_id))
    except CallError as error:
        if error.code in _NO_SUCH_USER:
            return Known(value=Standing(is_member=False, is_bot=actor.is_bot, detail="no such account"), at=at)
        return Unknown(reason=_gap(error), detail=error.detail[:500], at=at)
    try:
        user = _User.model_validate(answer.get("user"))
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, problem["loc"])) for problem in error.errors())
        return Unknown(reason=Gap.UNRECOGNISED, detail=f"users.info: {fields or 'user'} is not as expected", at=at)
    if user.id != actor.user_id:
        return Unknown(reason=Gap.UNRECOGNISED, detail="users.info answered about somebody else", at=at)
    lacking = None in {user.is_bot, user.is_restricted, user.is_ultra_restricted}
    if lacking and not user.deleted:
        return Unknown(
            reason=Gap.UNRECOGNISED, detail="users.info does not say whether this is a guest or a bot", at=at
        )
    return Known(value=_standing(user, me), at=at)


def _standing(user: _User, me: Me) -> Standing:
    teams = (user.team_id, *(user.enterprise_user.teams if user.enterprise_user else ()))
    against = {
        "deactivated": user.deleted,
        "a bot": bool(user.is_bot) or user.id == _SLACKBOT,
        "a guest": bool(user.is_restricted or user.is_ultra_restricted),
        "from another workspace": user.is_stranger or me.team_id not in teams,
    }
    said = tuple(what for what, holds in against.items() if holds)
    return Standing(is_member=not said, is_bot=against["a bot"], detail=", ".join(said))


def _gap(error: CallError) -> Gap:
    if error.code and error.code != "ratelimited":
        return Gap.REFUSED
    return Gap.TIMEOUT if isinstance(error.__cause__, TimeoutError) else Gap.UNREACHABLE
