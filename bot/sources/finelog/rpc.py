"""Finelog's JSON RPC, thin: one question, one answer, one deadline.

``POST <url>/finelog.stats.StatsService/<Method>``. Answers are camelCase, 64-bit integers are strings, and rows come as
an Arrow stream in base64.
"""

import asyncio
import base64
import binascii
import importlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx

from bot.errors import DeadlineError, UnreachableError, UnrecognisedError
from bot.model.durations import say_duration
from bot.sources.finelog.failure import SERVICE, MissingPackageError, of_http
from bot.threads import BoundedThreads

_STATS = "finelog.stats.StatsService"
_ANSWER_BYTES = 64 * 2**20
_FENCE_S = 2.0


class FinelogRpc:
    """Asks one server. Use from one event loop; close it at the end."""

    def __init__(self, url: str, *, token: str | None, deadline: timedelta, at_once: int) -> None:
        """Take where to ask.

        Args:
            url: the server's http(s) address, or that of the controller's proxy to it.
            token: sent as a bearer token when given.
            deadline: of one question.
            at_once: how many questions may be under way, and how many answers are decoded at once.
        """
        # The old generation's proxy compresses even unasked: ask for the plain form.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._url = url.rstrip("/")
        self._deadline = deadline
        self._places = asyncio.Semaphore(at_once)
        self._threads = BoundedThreads(SERVICE, at_once)
        self._client = httpx.AsyncClient(headers=headers, timeout=deadline.total_seconds() + _FENCE_S)

    async def close(self) -> None:
        await self._client.aclose()

    async def namespaces(self) -> Any:
        """Return what tables there are, with their columns.

        Raises:
            ServiceError: there is no answer.
        """
        return _decode(await self._post("ListNamespaces", {}))

    async def rows(self, sql: str) -> tuple[dict[str, Any], ...]:
        """Return the rows that a SELECT gives.

        Raises:
            MissingPackageError: pyarrow is not installed.
            ServiceError: there is no answer, Finelog refuses the question, or it cannot be decoded.
        """
        answer = _decode(await self._post("Query", {"sql": sql}))
        # A first import of pyarrow, and many rows, take longer than a chat should wait.
        return await self._threads.call(parse_arrow, answer, deadline=self._deadline)

    async def _post(self, method: str, payload: Mapping[str, object]) -> bytes:
        path = f"{self._url}/{_STATS}/{method}"
        try:
            async with asyncio.timeout(self._deadline.total_seconds()), self._places:
                request = self._client.build_request("POST", path, content=json.dumps(payload))
                response = await self._client.send(request, stream=True)
                try:
                    body = await _read_bounded(response)
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            raise DeadlineError(SERVICE, f"no answer in {say_duration(self._deadline)}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise UnrecognisedError(SERVICE, f"[finelog] url is no http(s) address: {error}") from error
        except httpx.DecodingError as error:
            raise UnrecognisedError(SERVICE, f"the answer cannot be decoded: {error}") from error
        except httpx.HTTPError as error:
            raise UnreachableError(SERVICE, f"{type(error).__name__}: {error}") from error
        if response.status_code != httpx.codes.OK:
            raise of_http(response.status_code, body)
        return body


def parse_arrow(answer: object) -> tuple[dict[str, Any], ...]:
    """Return the rows in the answer of a query.

    Raises:
        MissingPackageError: pyarrow is not installed.
        UnrecognisedError: the answer is not as known.
    """
    encoded = answer.get("arrowIpc", answer.get("arrow_ipc")) if isinstance(answer, dict) else None
    if not isinstance(encoded, str):
        raise UnrecognisedError(SERVICE, "the answer has no arrowIpc: this is no Finelog that Hero knows")
    try:
        # Not at the top: 40 MB that only runs with telemetry need, so it is an extra and may be missing.
        arrow = importlib.import_module("pyarrow")
        ipc = importlib.import_module("pyarrow.ipc")
    except ImportError as error:
        raise MissingPackageError(SERVICE, f"pyarrow is missing ({error}): pip install hero-bot[finelog]") from error
    try:
        with ipc.open_stream(base64.b64decode(encoded, validate=True)) as stream:
            rows = stream.read_all().to_pylist()
    except (arrow.ArrowException, binascii.Error, OSError, ValueError) as error:
        raise UnrecognisedError(
            SERVICE, f"arrowIpc is no Arrow stream: {' '.join(str(error).split())[:200]}"
        ) from error
    _check_count(answer, len(rows))
    return tuple(rows)


def _check_count(answer: object, found: int) -> None:
    """Refuse an answer that holds fewer rows than it tells of."""
    told = answer.get("rowCount", answer.get("row_count", found)) if isinstance(answer, dict) else found
    if str(told) != str(found):
        raise UnrecognisedError(SERVICE, f"the answer tells of {told!r} rows and holds {found}")


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
        raise UnrecognisedError(SERVICE, "the answer is no JSON: this is no Finelog") from error
