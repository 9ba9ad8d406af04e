"""What GitHub and PyGithub do wrong, in our own words: each family of exceptions becomes one of ours, by what to do."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import requests
from github import BadAttributeException, GithubException, RateLimitExceededException

from bot.errors import RefusedError, ServiceError, UnreachableError, UnrecognisedError
from bot.render.text import clean

SERVICE = "github"

FAMILIES = (
    GithubException,
    BadAttributeException,
    requests.RequestException,
    json.JSONDecodeError,
    # PyGithub's own: an answer that points to another port, one that is no object, a redirect to another host.
    AssertionError,
    AttributeError,
    KeyError,
    TypeError,
    RuntimeError,
    UnicodeDecodeError,
    OSError,
)
"""Everything that PyGithub was seen to raise about an answer (real library, 2.10)."""

_LIMIT_WAIT = timedelta(seconds=60)
"""When GitHub names no time: docs.github.com, "Rate limits for the REST API"."""
_LIMIT_MOST = timedelta(seconds=3700)
_MESSAGE_LIMIT = 200


class BadTokenError(RefusedError):
    """The token is refused. Mend: give a new one; it may also be a token that has just run out."""


class DeniedError(RefusedError):
    """GitHub answered no to this request.

    Attributes:
        status: 403, 404, 410, 422 …
        message: GitHub's own words, short.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(SERVICE, f"{status} {message}")
        self.status = status
        self.message = message


class LimitedError(ServiceError):
    """A rate limit. Mend: none, wait.

    Attributes:
        after: how long, as GitHub says.
    """

    def __init__(self, after: timedelta, message: str) -> None:
        super().__init__(SERVICE, message)
        self.after = after


class MovedError(UnreachableError):
    """The repository has another name now and the write was not done: PyGithub drops a redirected POST silently."""


class UncertainError(UnreachableError):
    """No usable answer came to a write: it may be stored. Mend: look for its marker before writing again."""


class SettlingError(ServiceError):
    """An earlier write may still turn up in GitHub's lists, which lag (R11). Mend: look again later.

    Attributes:
        after: how long until it counts as lost.
    """

    def __init__(self, after: timedelta) -> None:
        super().__init__(SERVICE, "an earlier post may still turn up, so it is looked for once more")
        self.after = after


def translated(error: Exception, now: datetime) -> ServiceError:
    """Return ``error``, one of ``FAMILIES``, as one of ours; ``now`` serves where the answer has no date."""
    match error:
        case GithubException():
            return _of_answer(error, now)
        case requests.Timeout():
            return UnreachableError(SERVICE, "no answer in time")
        case requests.RequestException() | OSError():
            return UnreachableError(SERVICE, f"the connection broke ({type(error).__name__})")
        case _:
            return UnrecognisedError(SERVICE, f"an answer that is not understood ({type(error).__name__})")


def _of_answer(error: GithubException, now: datetime) -> ServiceError:
    headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
    message = _message(error.data) or HTTPStatus(error.status).phrase if _is_status(error.status) else "no status"
    if error.status == HTTPStatus.UNAUTHORIZED:
        return BadTokenError(SERVICE, f"401 {message}")
    if _is_limit(error, headers):
        return LimitedError(_wait(headers, now), f"{error.status} {message}")
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.REQUEST_TIMEOUT:
        return UnreachableError(SERVICE, f"{error.status} {message}")
    known = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE, HTTPStatus.UNPROCESSABLE_ENTITY)
    if error.status in known:
        return DeniedError(error.status, message)
    return UnrecognisedError(SERVICE, f"{error.status} {message}")


def _is_status(status: int) -> bool:
    return status in HTTPStatus


def _message(payload: Any) -> str:
    if not isinstance(payload, Mapping):
        return ""
    words = [str(payload.get("message", ""))]
    errors = payload.get("errors")
    if isinstance(errors, list):
        words += [str(each.get("message", "")) for each in errors if isinstance(each, Mapping)]
    return clean(" ".join(word for word in words if word), _MESSAGE_LIMIT)


def _is_limit(error: GithubException, headers: Mapping[str, str]) -> bool:
    if error.status == HTTPStatus.TOO_MANY_REQUESTS or isinstance(error, RateLimitExceededException):
        return True
    refused = error.status == HTTPStatus.FORBIDDEN
    return refused and ("retry-after" in headers or headers.get("x-ratelimit-remaining") == "0")


def _wait(headers: Mapping[str, str], now: datetime) -> timedelta:
    """Obey ``Retry-After``, else the reset by the server's own clock, else wait a minute."""
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdecimal():
        wait = timedelta(seconds=int(after))
    elif headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        wait = datetime.fromtimestamp(int(reset), UTC) - (_server_time(headers) or now)
    else:
        wait = _LIMIT_WAIT
    # A second more, since nobody says when within its second the limit ends.
    return min(max(wait, timedelta()), _LIMIT_MOST) + timedelta(seconds=1)


def _server_time(headers: Mapping[str, str]) -> datetime | None:
    try:
        found = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None
    return found if found.tzinfo else None
