"""The controller's JSON RPC, thin: one question, one answer, one deadline. Works on all three generations.

``POST <controller>/iris.cluster.ControllerService/<Method>``. Answers are camelCase; 64-bit integers are strings.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from bot.errors import UnrecognisedError
from bot.sources.iris.failure import SERVICE, NotFoundError, of_http
from bot.sources.json_post import JsonPost, Peer

_CONTROLLER = "iris.cluster.ControllerService"
_LOGS = "finelog.logging.LogService"
# The new generation serves logs behind the controller's proxy alone, the old one at its root too.
_LOG_ROOTS = ("/proxy/system.log-server", "")
_PEER = Peer(service=SERVICE, called="Iris controller", setting="[iris] controller_url")


class IrisRpc:
    """Asks one controller. Use from one event loop; close it at the end."""

    def __init__(self, url: str, *, token: str | None, deadline: timedelta, at_once: int) -> None:
        """Take where to ask.

        Args:
            url: the controller's http(s) address.
            token: sent as a bearer token when given.
            deadline: of one question.
            at_once: how many questions may be under way.
        """
        self._url = url.rstrip("/")
        self._post = JsonPost(_PEER, token=token, deadline=deadline, at_once=at_once, of_http=of_http)

    async def close(self) -> None:
        await self._post.close()

    async def call(self, method: str, payload: Mapping[str, object]) -> Any:
        """Return the answer of one of the controller's methods.

        Raises:
            NotFoundError: the controller knows no such thing.
            ServiceError: any other way in which there is no answer.
        """
        return await self._post.ask(f"{self._url}/{_CONTROLLER}/{method}", payload)

    async def fetch_logs(self, payload: Mapping[str, object]) -> Any:
        """Return the answer of the log service, wherever this generation has it."""
        for root in _LOG_ROOTS[:-1]:
            try:
                return await self._post.ask(f"{self._url}{root}/{_LOGS}/FetchLogs", payload)
            except UnrecognisedError as error:
                if "HTTP 404" not in error.detail and not isinstance(error, NotFoundError):
                    raise
        return await self._post.ask(f"{self._url}{_LOG_ROOTS[-1]}/{_LOGS}/FetchLogs", payload)
