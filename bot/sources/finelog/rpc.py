"""Finelog's JSON RPC, thin: one question, one answer, one deadline.

``POST <url>/finelog.stats.StatsService/<Method>``. Answers are camelCase, 64-bit integers are strings, and rows come as
an Arrow stream in base64.
"""

import base64
import binascii
import importlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bot.errors import UnrecognisedError
from bot.sources.finelog.failure import SERVICE, MissingPackageError, of_http
from bot.sources.json_post import JsonPost, Peer
from bot.threads import BoundedThreads

_STATS = "finelog.stats.StatsService"
_PEER = Peer(service=SERVICE, called="Finelog", setting="[finelog] url")


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
        self._url = f"{url.rstrip('/')}/{_STATS}"
        self._deadline = deadline
        self._threads = BoundedThreads(SERVICE, at_once)
        self._post = JsonPost(_PEER, token=token, deadline=deadline, at_once=at_once, of_http=of_http)

    async def close(self) -> None:
        await self._post.close()

    async def namespaces(self) -> Any:
        """Return what tables there are, with their columns.

        Raises:
            ServiceError: there is no answer.
        """
        return await self._post.ask(f"{self._url}/ListNamespaces", {})

    async def rows(self, sql: str) -> tuple[dict[str, Any], ...]:
        """Return the rows that a SELECT gives.

        Raises:
            MissingPackageError: pyarrow is not installed.
            ServiceError: there is no answer, Finelog refuses the question, or it cannot be decoded.
        """
        return await self.answer(sql, parse_arrow)

    async def answer[T](self, sql: str, parse: Callable[[object], T]) -> T:
        """Return what ``parse`` makes of the answer to a SELECT.

        Raises:
            ServiceError: as for ``rows``, or what ``parse`` raises.
        """
        answer = await self._post.ask(f"{self._url}/Query", {"sql": sql})
        # A first import of pyarrow, and many rows, take longer than a chat should wait.
        return await self._threads.call(parse, answer, deadline=self._deadline)

    async def off_loop[T](self, work: Callable[[], T]) -> T:
        """Return what ``work`` makes of answers that are here already; so many rows would hold up a chat.

        Raises:
            ServiceError: it takes too long, or what it raises.
        """
        return await self._threads.call(work, deadline=self._deadline)


def parse_arrow(answer: object) -> tuple[dict[str, Any], ...]:
    """Return the rows in the answer of a query, one dictionary each.

    Raises:
        ServiceError: as for ``arrow_table``.
    """
    try:
        return tuple(arrow_table(answer).to_pylist())
    except (ValueError, OverflowError) as error:  # a text that is no UTF-8, a time beyond what Python has
        raise UnrecognisedError(SERVICE, f"a value of the answer cannot be read: {str(error)[:200]}") from error


def arrow_table(answer: object) -> Any:
    """Return the rows in the answer of a query as a ``pyarrow.Table``, which is read by columns.

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
            table = stream.read_all()
    except (arrow.ArrowException, binascii.Error, OSError, ValueError) as error:
        raise UnrecognisedError(
            SERVICE, f"arrowIpc is no Arrow stream: {' '.join(str(error).split())[:200]}"
        ) from error
    _check_count(answer, table.num_rows)
    return table


def _check_count(answer: object, found: int) -> None:
    """Refuse an answer that holds fewer rows than it tells of."""
    told = answer.get("rowCount", answer.get("row_count", found)) if isinstance(answer, dict) else found
    if str(told) != str(found):
        raise UnrecognisedError(SERVICE, f"the answer tells of {told!r} rows and holds {found}")
