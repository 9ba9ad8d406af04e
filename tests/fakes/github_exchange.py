"""One request and its answer, as the fake GitHub's parts hand them to each other."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.github_views import Json

DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    payload: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    html: str | None = None
    """A proxy's error page in place of JSON."""

    def encoded(self) -> bytes:
        if self.html is not None:
            return self.html.encode()
        return b"" if self.payload is None else json.dumps(self.payload).encode()


class RefusedError(Exception):
    """GitHub says no. Carries the documented error object."""

    def __init__(self, status: int, message: str, *, errors: tuple[Json, ...] = (), docs: str = DOCS) -> None:
        super().__init__(message)
        payload: Json = {"message": message, "documentation_url": docs, "status": str(status)}
        if errors:
            payload["errors"] = list(errors)
        self.answer = Answer(status, payload)


class UnknownRouteError(RefusedError):
    """An endpoint that this fake does not have; the client sees 404, the test a mistake."""

    def __init__(self) -> None:
        super().__init__(404, "Not Found")


def invalid(resource: str, field_name: str, code: str, message: str | None = None) -> RefusedError:
    error = {"resource": resource, "field": field_name, "code": code}
    if message is not None:
        error["message"] = message
    return RefusedError(422, "Validation Failed", errors=(error,))


def missing() -> RefusedError:
    return RefusedError(404, "Not Found")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom the token belongs to. `kind` "app" is a JWT: good for the app's own endpoints and nothing else."""

    kind: Literal["user", "installation", "app"]
    login: str
    issues: Literal["read", "write"] = "write"

    @property
    def by_app(self) -> bool:
        return self.kind == "installation"

    def refuse_without_issues_write(self) -> None:
        if self.issues == "write":
            return
        what = "integration" if self.by_app else "personal access token"
        raise RefusedError(403, f"Resource not accessible by {what}")


@dataclass(frozen=True, slots=True)
class Ask:
    verb: str
    path: str
    """In its `/repos/OWNER/NAME/…` form, also for those who came through `/repositories/ID/…` or `/api/v3`."""
    query: dict[str, str]
    body: Any
    caller: Caller
    base: str

    def text(self, name: str, default: str = "") -> str:
        value = self.body.get(name, default) if isinstance(self.body, dict) else default
        return value if isinstance(value, str) else default
