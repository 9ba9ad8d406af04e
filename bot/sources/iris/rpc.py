"""The controller's JSON RPC, thin: one question, one answer, one deadline. Works on all three generations.

``POST <controller>/iris.cluster.ControllerService/<Method>``. Answers are camelCase; 64-bit integers are strings.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx

from bot.errors import DeadlineError, UnreachableError, UnrecognisedError
from bot.model.durations import say_duration
from bot.sources.iris.failure import SERVICE, NotFoundError, of_http

_CONTROLLER = "iris.cluster.ControllerService"
_LOGS = "finelog.logging.LogService"
# The new generation serves logs behind the controller's proxy alone, the old one at its root too.
_LOG_ROOTS = ("/proxy/system.log-server", "")
_ANSWER_BYTES = 64 * 2**20
_FENCE_S = 2.0


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
        # The old generation's proxy compresses even unasked: ask for the plain form.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._url = url.rstrip("/")
        self._deadline = deadline
        self._places = asyncio.Semaphore(at_once)
        self._client = httpx.AsyncClient(headers=headers, timeout=deadline.total_seconds() + _FENCE_S)

    async def close(self) -> None:
        await self._client.aclose()

    async def call(self, method: str, payload: Mapping[str, object]) -> Any:
        """Return the answer of one of the controller's methods.

        Raises:
            NotFoundError: the controller knows no such thing.
            ServiceError: any other way in which there is no answer.
        """
        return _decode(await self._post(f"/{_CONTROLLER}/{method}", payload))

    async def fetch_logs(self, payload: Mapping[str, object]) -> Any:
        """Return the answer of the log service, wherever this generation has it."""
        for root in _LOG_ROOTS[:-1]:
            try:
                return _decode(await self._post(f"{root}/{_LOGS}/FetchLogs", payload))
            except UnrecognisedError as error:
                if "HTTP 404" not in error.detail and not isinstance(error, NotFoundError):
                    raise
        return _decode(await self._post(f"{_LOG_ROOTS[-1]}/{_LOGS}/FetchLogs", payload))

    async def _post(self, path: str, payload: Mapping[str, object]) -> bytes:
        try:
            async with asyncio.timeout(self._deadline.total_seconds()), self._places:
                request = self._client.build_request("POST", self._url + path, content=json.dumps(payload))
                response = await self._client.send(request, stream=True)
                try:
                    body = await _read_bounded(response)
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            raise DeadlineError(SERVICE, f"no answer in {say_duration(self._deadline)}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise UnrecognisedError(SERVICE, f"[iris] controller_url is no http(s) address: {error}") from error
        except httpx.DecodingError as error:
            raise UnrecognisedError(SERVICE, f"the answer cannot be decoded: {error}") from error
        except httpx.HTTPError as error:
            raise UnreachableError(SERVICE, f"{type(error).__name__}: {error}") from error
        if response.status_code != httpx.codes.OK:
            raise of_http(response.status_code, body)
        return body


async def _read_bounded(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _ANSWER_BYTES:
            raise UnrecognisedError(SERVICE, f"the answer is longer than {_ANSWER_BYTES} bytes")
    return bytes(body)


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnrecognisedError(SERVICE, "the answer is no JSON: this is no Iris controller") from error
