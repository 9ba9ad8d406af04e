"""What GitHub says of an account now: whether its word can count in this repository."""

from datetime import datetime

from bot.channels.github.client import GitHubClient
from bot.channels.github.errors import BadTokenError, DeniedError
from bot.clock import Clock
from bot.errors import BusyError, DeadlineError, ServiceError, UnreachableError
from bot.model.person import Actor, Standing
from bot.model.reading import Gap, Known, Reading, Unknown

_MEMBER = frozenset({"admin", "maintain", "write"})
"""``read`` is no sign of trust: on a public repository everybody has it."""


async def ask_standing(client: GitHubClient, actor: Actor, clock: Clock) -> Reading[Standing]:
    """Ask for the account behind the login and for its permission; a login that changed hands stands for nobody."""
    at = clock.now()
    try:
        standing = await _ask(client, actor)
    except ServiceError as error:
        return unknown_of(error, at)
    return Known(value=standing, at=at)


async def _ask(client: GitHubClient, actor: Actor) -> Standing:
    account = await client.ask_account(actor.login)
    if account is None:
        return Standing(is_member=False, is_bot=actor.is_bot, detail=f"there is no account {actor.login} any more")
    if str(account.id) != actor.user_id:
        detail = f"{actor.login} is another account now: id {account.id}, not {actor.user_id}"
        return Standing(is_member=False, is_bot=account.is_bot, detail=detail)
    is_bot = account.is_bot or actor.is_bot
    if account.is_suspended:
        return Standing(is_member=False, is_bot=is_bot, detail=f"{actor.login} is suspended")
    permission = await client.ask_permission(account.login)
    return Standing(is_member=permission in _MEMBER, is_bot=is_bot, detail=f"{permission} on {client.repository}")


def unknown_of(error: ServiceError, at: datetime) -> Unknown:
    """Return the reading that says why GitHub gave no answer."""
    return Unknown(reason=_gap_of(error), detail=str(error)[:2000], at=at)


def _gap_of(error: ServiceError) -> Gap:
    match error:
        case DeadlineError():
            return Gap.TIMEOUT
        case UnreachableError():
            return Gap.UNREACHABLE
        case BusyError():
            return Gap.BUSY
        case DeniedError() | BadTokenError():
            return Gap.REFUSED
        case _:
            return Gap.UNRECOGNISED
