"""What Iris means by an error: HTTP answers and dead CLI processes, told apart into the errors of ``bot.errors``.

"There is no such job" is an error of its own here, since only a positive answer may count as absence.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from bot.errors import RefusedError, ServiceError, UnreachableError, UnrecognisedError
from bot.model.value import JobId

SERVICE = "iris"
_DETAIL_CHARS = 500

# Connect's codes. ``internal`` and ``unknown`` come with HTTP 500 for a malformed id or field of ours: the controller
# is not ill, and asking again does not help.
_REFUSED = frozenset({"unauthenticated", "permission_denied", "failed_precondition"})
_ILL = frozenset({"unavailable", "deadline_exceeded", "resource_exhausted", "aborted", "canceled"})

_USAGE_EXIT = 2
_NO_CONNECTION = re.compile(
    r"error sending request|connection (refused|reset|closed|error)|client error \(connect\)|timed? ?out|dns error"
    r"|bad gateway|service unavailable|gateway time-?out|too many requests|network is unreachable",
    re.IGNORECASE,
)
_NO_ACCESS = re.compile(
    r"no credentials|credentials|missing authentication|authentication failed|identity verification failed"
    r"|admin role required|permission denied|unauthori[sz]ed|forbidden|no controller specified|unknown cluster"
    r"|failed to spawn",
    re.IGNORECASE,
)
_SPOKEN = re.compile(r"^(?:connectrpc\.errors\.ConnectError|Error|[\w.]+(?:Error|Exception)): ?(?P<message>.*)$")


class NotFoundError(UnrecognisedError):
    """The controller answered that it knows no such thing; ``detail`` is its message."""


class NoVerbError(UnrecognisedError):
    """This generation of the CLI lacks the verb."""


def says_no_such_job(error: NotFoundError, job_id: JobId) -> bool:
    """Whether the controller itself says that this very job does not exist."""
    named = re.escape(job_id)
    return re.match(rf"(Job {named} not found|No job named '{named}')", error.detail) is not None


def of_http(status: int, body: bytes) -> ServiceError:
    """Return what an answer other than 200 means, from the body's code first and the status second."""
    answer = _json_object(body)
    code, message = answer.get("code"), answer.get("message")
    if isinstance(code, str) and isinstance(message, str):
        detail = f"{message} ({code}, HTTP {status})"[:_DETAIL_CHARS]
        if code == "not_found":
            return NotFoundError(SERVICE, message[:_DETAIL_CHARS])
        if code in _REFUSED:
            return RefusedError(SERVICE, detail)
        return UnreachableError(SERVICE, detail) if code in _ILL else UnrecognisedError(SERVICE, detail)
    if status in {401, 403, 407} or 300 <= status < 400:  # noqa: PLR2004 - HTTP's own numbers
        return RefusedError(SERVICE, f"HTTP {status}: a login stands before the controller; set [iris] token")
    if status in {408, 429} or status >= 500:  # noqa: PLR2004 - HTTP's own numbers
        return UnreachableError(SERVICE, f"HTTP {status} without an answer of the controller's own")
    return UnrecognisedError(SERVICE, f"HTTP {status}: this is no Iris controller, or it lacks the method")


def of_cli(exit_code: int, stderr: str) -> ServiceError:
    """Return what a CLI call that ended in failure means, from its last message."""
    message = last_message(stderr)
    if exit_code < 0:
        return UnreachableError(SERVICE, f"the iris CLI was ended by signal {-exit_code}")
    if re.search(r"Job \S+ not found|^No job named '|Task \S+ not found", message):
        return NotFoundError(SERVICE, message)
    if exit_code == _USAGE_EXIT and re.search(r"No such (command|option)", message):
        return NoVerbError(SERVICE, f"this iris CLI does not know the question: {message}")
    if _NO_ACCESS.search(message):
        return RefusedError(SERVICE, message)
    if _NO_CONNECTION.search(message):
        return UnreachableError(SERVICE, message)
    return UnrecognisedError(SERVICE, f"the iris CLI ended with exit code {exit_code}: {message or 'nothing was said'}")


def last_message(stderr: str) -> str:
    """Return the last error line of a traceback or of click, without its prefix; else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for line in reversed(lines):
        if spoken := _SPOKEN.match(line):
            return spoken["message"][:_DETAIL_CHARS]
    return lines[-1][:_DETAIL_CHARS] if lines else ""


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
