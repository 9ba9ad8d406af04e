"""One question to a JSON RPC by POST: one deadline, so many at once, a bounded answer, and no redirect followed.

What an answer other than 200 means is its service's to say.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import httpx

from bot.errors import DeadlineError, ServiceError, UnreachableError, UnrecognisedError
from bot.model.durations import say_duration
from bot.model.value import Value

_ANSWER_BYTES = 64 * 2**20
_FENCE_S = 2.0


class Peer(Value):
    """Who is asked, as errors name it."""

    service: str
    called: str
    """What should be at the address: ``Iris controller``."""
    setting: str
    """Where the address was set: ``[iris] controller_url``."""


class JsonPost:
    """Asks one server. Use from one event loop; close it at the end."""

    def __init__(
        self,
        peer: Peer,
        *,
        token: str | None,
        deadline: timedelta,
        at_once: int,
        of_http: Callable[[int, bytes], ServiceError],
    ) -> None:
        """Take whom to ask.

        Args:
            peer: for errors.
            token: sent as a bearer token when given.
            deadline: of one question, the wait for a place included.
            at_once: how many questions may be under way.
            of_http: what an answer of this status and body means, when it is not 200.
        """
        # The old generation's proxy compresses even unasked: ask for the plain form.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._peer = peer
        self._deadline = deadline
        self._of_http = of_http
        self._places = asyncio.Semaphore(at_once)
        self._client = httpx.AsyncClient(headers=headers, timeout=deadline.total_seconds() + _FENCE_S)

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, url: str, payload: Mapping[str, object]) -> Any:
        """Return the JSON that answers.

        Raises:
            ServiceError: there is no answer, it is none of this service's, or it is what ``of_http`` makes of it.
        """
        body = await self._post(url, payload)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._unrecognised(f"the answer is no JSON: this is no {self._peer.called}") from error

    async def _post(self, url: str, payload: Mapping[str, object]) -> bytes:
        try:
            async with asyncio.timeout(self._deadline.total_seconds()), self._places:
                request = self._client.build_request("POST", url, content=json.dumps(payload))
                response = await self._client.send(request, stream=True)
                try:
                    body = await self._read_bounded(response)
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            raise DeadlineError(self._peer.service, f"no answer in {say_duration(self._deadline)}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise self._unrecognised(f"{self._peer.setting} is no http(s) address: {error}") from error
        except httpx.DecodingError as error:
            raise self._unrecognised(f"the answer cannot be decoded: {error}") from error
        except httpx.HTTPError as error:
            raise UnreachableError(self._peer.service, f"{type(error).__name__}: {error}") from error
        if response.status_code != httpx.codes.OK:
            raise self._of_http(response.status_code, body)
        return body

    async def _read_bounded(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _ANSWER_BYTES:
                raise self._unrecognised(f"the answer is longer than {_ANSWER_BYTES} bytes")
        return bytes(body)

    def _unrecognised(self, detail: str) -> UnrecognisedError:
        return UnrecognisedError(self._peer.service, detail)
