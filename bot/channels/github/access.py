"""With what Hero shows who it is: a token, or a GitHub App's key, out of which hour-long tokens are made.

PyGithub renews an app's token shortly before it ends, by the machine's own clock. One that is refused earlier (revoked,
or the clock is off) is not renewed by it: whoever holds the client drops it and takes a new one (``Worker``).
docs.github.com, "Authenticating as a GitHub App installation".
"""

import math
from typing import Any

import jwt
from github import Auth, Github, GithubIntegration
from pydantic import SecretStr

from bot.channels.github.errors import SERVICE, BadTokenError
from bot.settings import GitHubSettings

_JWT_LIFE_S = 300
_JWT_BEFORE_S = -60
"""GitHub takes no token that begins in its future, and none that ends more than ten minutes ahead: with these a clock
may be a minute ahead, or some five minutes behind (docs.github.com, "Generating a JSON Web Token")."""
_PAGE = 100


class Access:
    """Makes clients; blocking, so it is called in worker threads alone."""

    def __init__(self, settings: GitHubSettings) -> None:
        """Make it; nothing is asked and no file read yet. ``settings`` have a token or an app."""
        self._settings = settings
        self._installations: dict[str, int] = {}

    @property
    def is_app(self) -> bool:
        return self._settings.app_id is not None

    @property
    def is_renewable(self) -> bool:
        """Whether a refused token may be followed by another one without anybody's doing."""
        return self.is_app or self._settings.token_file is not None

    def connect(self, repository: str) -> Github:
        """Return a client for a repository.

        Raises:
            BadTokenError: there is no token, or its file or the app's key cannot be used.
            GithubException: GitHub refuses the app, or has no installation of it at that repository.
        """
        if not self.is_app:
            return Github(auth=Auth.Token(self._token()), lazy=True, per_page=_PAGE, **self._manner())
        auth = self._app_auth()
        installation = auth.get_installation_auth(self._installation(auth, repository))
        return Github(auth=installation, lazy=True, per_page=_PAGE, **self._manner())

    def bot_login(self) -> str:
        """Return the login under which the app's comments stand.

        Raises:
            BadTokenError: as ``connect``.
            GithubException: as ``connect``.
        """
        with self._integration(self._app_auth()) as integration:
            return f"{integration.get_app().slug}[bot]"

    def forget(self) -> None:
        """Look for the installation anew: the app may have been taken out and installed again."""
        self._installations.clear()

    def _installation(self, auth: Auth.AppAuth, repository: str) -> int:
        if self._settings.app_installation is not None:
            return self._settings.app_installation
        known = self._installations.get(repository)
        if known is None:
            owner, _, name = repository.partition("/")
            with self._integration(auth) as integration:
                known = self._installations[repository] = integration.get_repo_installation(owner, name).id
        return known

    def _integration(self, auth: Auth.AppAuth) -> GithubIntegration:
        return GithubIntegration(auth=auth, **self._manner())

    def _app_auth(self) -> Auth.AppAuth:
        key, app_id = self._settings.app_private_key, self._settings.app_id
        if key is None or app_id is None:
            raise BadTokenError(SERVICE, "there is no private key of the app")
        auth = Auth.AppAuth(app_id, _pem(key), jwt_expiry=_JWT_LIFE_S, jwt_issued_at=_JWT_BEFORE_S)
        try:
            auth.create_jwt()
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            detail = f"the app's private key cannot be used ({type(error).__name__})"
            raise BadTokenError(SERVICE, detail) from None  # its text may show parts of the key
        return auth

    def _manner(self) -> dict[str, Any]:
        """How every client asks: without PyGithub's retries and pauses, see ``client``."""
        return {
            "base_url": self._settings.base_url,
            "retry": None,
            # A second fence behind the worker's own deadline; whole seconds, as PyGithub insists.
            "timeout": max(1, math.ceil(self._settings.deadline.total_seconds())) + 1,
            "seconds_between_requests": None,
            "seconds_between_writes": None,
        }

    def _token(self) -> str:
        """Read the token's file anew if there is one, since whoever renews a token writes it there."""
        file, token = self._settings.token_file, self._settings.token
        if file is not None and file.is_file():
            try:
                return file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise BadTokenError(SERVICE, f"{file} cannot be read ({type(error).__name__})") from error
        if token is None:
            raise BadTokenError(SERVICE, "there is no token")
        return token.get_secret_value()


def _pem(key: SecretStr) -> str:
    r"""Return the key's text; an environment variable often holds it in one line, with ``\n`` in words."""
    return key.get_secret_value().replace("\\n", "\n").strip() + "\n"
