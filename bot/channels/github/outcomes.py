"""From what went wrong with GitHub to what the outbox does next, and to the words that tell a person the fix."""

from datetime import timedelta

from bot.channels.github.errors import (
    BadTokenError,
    DeniedError,
    LimitedError,
    MovedError,
    SettlingError,
    UncertainError,
)
from bot.errors import ServiceError
from bot.model.delivery import Later, Never

CREDENTIALS_FIX = (
    "put a new token into HERO_GITHUB__TOKEN, or into the file that token_file names; for an app see its app_id, its "
    "private key, and that it is installed and not suspended"
)


def outcome_of(  # noqa: PLR0911 - one return a kind of error
    error: ServiceError, repository: str, issue: int | None
) -> Later | Never:
    """Say whether a message that met ``error`` is tried again, and when."""
    match error:
        case DeniedError():
            reason, fix = _denied(error, repository, issue)
            return Never(reason=reason, fix=fix)
        case BadTokenError():
            return Later(reason=f"GitHub refuses the token ({error.detail}); {CREDENTIALS_FIX}")
        case LimitedError(after=after):
            return Later(reason=f"GitHub's rate limit: {error.detail}", after=after)
        case SettlingError(after=after):
            return Later(reason=error.detail, after=after, is_uncertain=True)
        case MovedError():
            return Later(reason=error.detail, after=timedelta(seconds=1))
        case UncertainError():
            return Later(reason=error.detail, is_uncertain=True)
        case _:
            return Later(reason=error.detail)


def say_trouble(error: ServiceError, repository: str, issue: int | None) -> str:
    """Return one line about ``error`` with the fix."""
    match outcome_of(error, repository, issue):
        case Never(reason=reason, fix=fix):
            return f"{reason}: {fix}"
        case Later(reason=reason):
            return f"GitHub, {repository}: {reason}"


def _denied(  # noqa: PLR0911 - one return a refusal
    error: DeniedError, repository: str, issue: int | None
) -> tuple[str, str]:
    """Tell the refusals apart; only here are GitHub's words read, since a 403 says no more than its message."""
    where = f"issue #{issue} of {repository}" if issue else repository
    words = error.message.lower()
    other = f"name another issue as channels.github_issue in the run's contract, or free it: {where}"
    match error.status:
        case 403 if "locked" in words:
            return f"{where} is locked", "unlock it, or name another as channels.github_issue in the run's contract"
        case 403 if "commenting is disabled" in words:
            return (
                f"{where} is full: GitHub takes no more than 2,500 comments",
                "open a successor issue and name it as channels.github_issue in the run's contract",
            )
        case 403 if "archived" in words:
            return f"{repository} is archived", "unarchive it, or set another [github] repository"
        case 403:
            return (
                f"the token may not write to {where} ({error.message})",
                f"give the token the permission Issues: read and write on {repository}",
            )
        case 404:
            return (
                f"{where} is not there for this token",
                f"check [github] repository and channels.github_issue, and that the token may see {repository}",
            )
        case 410:
            return f"{where} was deleted or issues are switched off", other
        case _:
            return f"GitHub refuses the message for {where} ({error.message})", "report it as a fault of Hero"
