"""Bodies of requests that anybody on the network can send: read up to a bound in size and time, and no further."""

import asyncio
from datetime import timedelta

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

_DEADLINE = timedelta(seconds=10)


class NotTakenError(Exception):
    """A request that goes no further.

    Attributes:
        status: the HTTP status that says why.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status

    def response(self) -> Response:
        """Return the answer; what was not read of the body must not be taken for the next request."""
        return Response(str(self), status_code=self.status, headers={"Connection": "close"})


async def bounded_body(request: Request, most_bytes: int) -> bytes:
    """Return the body, or stop reading where it becomes too long or too slow.

    Raises:
        NotTakenError: 413, 408, or 400 when the sender went away.
    """
    told = request.headers.get("content-length", "0")
    if not told.isdecimal() or len(told) > len(str(most_bytes)) or int(told) > most_bytes:
        raise _too_long(most_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(_DEADLINE.total_seconds()):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most_bytes:
                    raise _too_long(most_bytes)
    except TimeoutError:
        raise NotTakenError(408, "the body did not arrive in time") from None
    except ClientDisconnect:
        raise NotTakenError(400, "the sender went away before the end of the body") from None
    return bytes(body)


def _too_long(most_bytes: int) -> NotTakenError:
    return NotTakenError(413, f"the body is longer than {most_bytes} bytes")
