"""What Finelog, or whatever stands before it, means by an error: told apart into the errors of ``bot.errors``."""

import json
from collections.abc import Mapping
from typing import Any

from bot.errors import RefusedError, ServiceError, UnreachableError, UnrecognisedError

SERVICE = "finelog"
_DETAIL_CHARS = 500
# Connect's codes.
_REFUSED = frozenset({"unauthenticated", "permission_denied", "failed_precondition"})
_ILL = frozenset({"unavailable", "deadline_exceeded", "resource_exhausted", "aborted", "canceled"})


class MissingPackageError(ServiceError):
    """The answer came, and nothing here can decode it."""


def of_http(status: int, body: bytes) -> ServiceError:
    """Return what an answer other than 200 means, from the body's code first and the status second.

    A table or a field that is not there is UnrecognisedError with Finelog's own words: never an empty answer.
    """
    answer = _json_object(body)
    code, message = answer.get("code"), answer.get("message")
    if isinstance(code, str) and isinstance(message, str):
        detail = f"{message} ({code}, HTTP {status})"[:_DETAIL_CHARS]
        if code in _REFUSED:
            return RefusedError(SERVICE, detail)
        return UnreachableError(SERVICE, detail) if code in _ILL else UnrecognisedError(SERVICE, detail)
    if status in {401, 403, 407} or 300 <= status < 400:  # noqa: PLR2004 - HTTP's own numbers
        return RefusedError(SERVICE, f"HTTP {status}: a login stands before it; set [finelog] token")
    if status in {408, 429} or status >= 500:  # noqa: PLR2004 - HTTP's own numbers
        return UnreachableError(SERVICE, f"HTTP {status} without an answer of Finelog's own")
    return RefusedError(SERVICE, f"HTTP {status}: there is no Finelog at this address; set [finelog] url")


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
