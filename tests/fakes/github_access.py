"""Who may ask the fake GitHub: personal tokens, app JWTs, one-hour installation tokens, and the rate limits."""

import functools
import secrets
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes.github_exchange import Answer, Caller, RefusedError
from tests.fakes.github_views import APP_ID, APP_SLUG, Json

JWT_LIFE_MAX_S = 600
BAD_CREDENTIALS = "Bad credentials"
UNREADABLE_JWT = "A JSON web token could not be decoded"


@functools.cache
def _app_key() -> rsa.RSAPrivateKey:
    """One key a process: making it takes longer than any test here."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True, slots=True)
class _Token:
    caller: Caller
    expires_at: datetime | None = None


class Access:
    """Tokens and their ends.

    Expiry goes by the machine's wall clock plus `clock_offset`, not by the fake's injected time, since PyGithub too
    compares `expires_at` and dates its JWTs with the wall clock. Moving `clock_offset` past an hour makes tokens die
    on the server while the client still trusts them: the case PyGithub never renews from.
    """

    def __init__(self) -> None:
        self.clock_offset = timedelta()
        self.token_life = timedelta(hours=1)
        self._tokens: dict[str, _Token] = {}

    def add(self, value: str, login: str, issues: Literal["read", "write"]) -> None:
        self._tokens[value] = _Token(Caller("user", login, issues))

    def revoke(self, value: str) -> None:
        self._tokens.pop(value, None)

    def revoke_installation_tokens(self) -> None:
        self._tokens = {value: token for value, token in self._tokens.items() if not token.caller.by_app}

    def values(self) -> tuple[str, ...]:
        return tuple(self._tokens)

    @property
    def private_key_pem(self) -> str:
        return (
            _app_key()
            .private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
            .decode()
        )

    def issue_installation_token(self, issues: Literal["read", "write"]) -> Json:
        value = f"ghs_{secrets.token_hex(18)}"
        expires_at = (self._wall() + self.token_life).replace(microsecond=0)
        self._tokens[value] = _Token(Caller("installation", f"{APP_SLUG}[bot]", issues), expires_at)
        return {
            "token": value,
            "expires_at": expires_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "permissions": {"issues": issues, "metadata": "read"},
            "repository_selection": "selected",
        }

    def caller(self, authorization: str) -> Caller:
        scheme, _, value = authorization.partition(" ")
        if not authorization:
            raise RefusedError(401, "Requires authentication")
        if scheme.lower() not in ("token", "bearer"):
            raise RefusedError(401, BAD_CREDENTIALS)
        if value.count(".") == 2:
            return self._app(value)
        token = self._tokens.get(value)
        if token is None or (token.expires_at is not None and self._wall() >= token.expires_at):
            raise RefusedError(401, BAD_CREDENTIALS)
        return token.caller

    def _app(self, value: str) -> Caller:
        try:
            claims = jwt.decode(
                value, _app_key().public_key(), algorithms=["RS256"], options={"require": ["exp", "iat", "iss"]}
            )
        except jwt.InvalidTokenError as error:
            raise RefusedError(401, UNREADABLE_JWT) from error
        if str(claims["iss"]) != str(APP_ID):
            raise RefusedError(404, "Integration not found")
        if claims["exp"] > time.time() + JWT_LIFE_MAX_S:
            raise RefusedError(401, "'Expiration time' claim ('exp') is too far in the future")
        return Caller("app", f"{APP_SLUG}[bot]")

    def _wall(self) -> datetime:
        return datetime.now(UTC) + self.clock_offset


class RateLimits:
    """The primary limit (requests an hour, per login) and the secondary one on content (creations a minute)."""

    def __init__(self) -> None:
        self.per_hour = 5000
        self.content_per_minute = 80
        self._windows: dict[str, tuple[datetime, int]] = {}
        self._created: dict[str, deque[datetime]] = {}

    def headers(self, login: str, now: datetime) -> dict[str, str]:
        resets_at, used = self._window(login, now)
        return {
            "X-RateLimit-Limit": str(self.per_hour),
            "X-RateLimit-Remaining": str(max(0, self.per_hour - used)),
            "X-RateLimit-Reset": str(int(resets_at.timestamp())),
            "X-RateLimit-Used": str(used),
            "X-RateLimit-Resource": "core",
        }

    def charge(self, login: str, now: datetime) -> None:
        resets_at, used = self._window(login, now)
        if used >= self.per_hour:
            raise RefusedError(403, f"API rate limit exceeded for user {login}.")
        self._windows[login] = (resets_at, used + 1)

    def refund(self, login: str) -> None:
        """A 304 to a request with a token is free."""
        resets_at, used = self._windows[login]
        self._windows[login] = (resets_at, used - 1)

    def charge_content(self, login: str, now: datetime) -> Answer | None:
        """The refusal, if this creation is one too many within a minute."""
        created = self._created.setdefault(login, deque())
        while created and now - created[0] >= timedelta(minutes=1):
            created.popleft()
        if len(created) >= self.content_per_minute:
            return secondary_limit(60)
        created.append(now)
        return None

    def _window(self, login: str, now: datetime) -> tuple[datetime, int]:
        window = self._windows.get(login)
        if window is None or now >= window[0]:
            window = (now + timedelta(hours=1), 0)
            self._windows[login] = window
        return window


def secondary_limit(retry_after_s: int | None) -> Answer:
    refusal = RefusedError(
        403,
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
        docs="https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
    )
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return Answer(403, refusal.answer.payload, headers)


def primary_limit(login: str, resets_at: datetime) -> Answer:
    refusal = RefusedError(403, f"API rate limit exceeded for user {login}.")
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(resets_at.timestamp()))}
    return Answer(403, refusal.answer.payload, headers)
