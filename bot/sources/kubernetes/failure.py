"""What the API server means by an answer other than 200, told apart into the errors of ``bot.errors``.

Such an answer is a ``Status`` object with a ``reason`` (kubernetes.io, "API concepts" and "Kubernetes API: Status").
"""

import json
from collections.abc import Mapping
from http import HTTPStatus

from bot.errors import RefusedError, ServiceError, UnreachableError, UnrecognisedError

SERVICE = "kubernetes"
_DETAIL_CHARS = 500

_ILL = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_FIXES: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "correct or renew the token",
    HTTPStatus.FORBIDDEN: "let the account list pods in the namespace {namespace}",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "a proxy stands before the API server",
}


class ExpiredError(UnreachableError):
    """The list that was being paged through is too old by now; it has to be begun anew."""


def of_http(status: int, body: bytes, namespace: str) -> ServiceError:
    """Return what it means, and the fix where there is one."""
    said = _said(body)
    detail = f"HTTP {status}{f': {said}' if said else ''}"
    if status == HTTPStatus.GONE:
        return ExpiredError(SERVICE, detail)
    if status in _ILL or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreachableError(SERVICE, detail)
    if status < HTTPStatus.BAD_REQUEST:
        return RefusedError(SERVICE, f"{detail}: the address redirects, and the token is not carried elsewhere")
    if status in _FIXES:
        return RefusedError(SERVICE, f"{detail}; {_FIXES[status].format(namespace=namespace)}")
    return UnrecognisedError(SERVICE, f"{detail}; correct [kubernetes] api_url or selector")


def _said(body: bytes) -> str:
    """Return the server's own words when they are a Status; any other page says nothing for people."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(answer, dict) or answer.get("kind") != "Status":
        return ""
    words = (answer.get("reason"), answer.get("message"))
    return ", ".join(word for word in words if isinstance(word, str) and word)[:_DETAIL_CHARS]
