"""Where a request to the fake GitHub is understood, charged, answered or spoiled. Endpoints: github_routes.py."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any, assert_never
from urllib.parse import parse_qsl, urlsplit

import tests.fakes.github_git  # noqa: F401 - registers its endpoints
from tests.fakes.github_access import Access, RateLimits, primary_limit, secondary_limit
from tests.fakes.github_api import Api
from tests.fakes.github_exchange import Answer, Ask, Caller, RefusedError, UnknownRouteError
from tests.fakes.github_faults import (
    Broken,
    Fault,
    Malformed,
    PrimaryLimit,
    SecondaryLimit,
    Stall,
    StoredThenBroken,
    StoredThenLost,
    TooManyRequests,
)
from tests.fakes.github_mistakes import Proofreader
from tests.fakes.github_routes import answer as route
from tests.fakes.github_server import Raw, Reply
from tests.fakes.github_world import World, short_digest
from tests.fakes.openapi import github_description

PREFIX = "/api/v3"
"""GitHub Enterprise serves the same API under it."""
REDIRECTS = "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects"
CREATES_CONTENT = re.compile(r"/repos/[^/]+/[^/]+/issues(/\d+/comments)?")


@dataclass(frozen=True, slots=True)
class Request:
    """A request that arrived, whatever became of it. The token is in none of the fields; `login` says whose it was."""

    verb: str
    path: str
    query: dict[str, str]
    body: Any
    login: str | None


@dataclass(frozen=True, slots=True)
class Understood:
    raw: Raw
    path: str
    query: dict[str, str]
    query_text: str
    base: str
    caller: Caller | RefusedError

    @property
    def login(self) -> str | None:
        return self.caller.login if isinstance(self.caller, Caller) else None

    def record(self) -> Request:
        return Request(self.raw.verb, self.path, self.query, self.raw.body, self.login)


class Desk:
    """Whoever calls holds the fake's lock."""

    def __init__(self, world: World, access: Access, proofreader: Proofreader) -> None:
        self.world = world
        self.access = access
        self.proofreader = proofreader
        self.limits = RateLimits()
        self.api = Api(world, access)

    def understood(self, raw: Raw, url: str) -> Understood:
        target = urlsplit(raw.target)
        enterprise = target.path.startswith(f"{PREFIX}/")
        path = target.path.removeprefix(PREFIX) if enterprise else target.path
        by_id = f"/repositories/{self.world.repository_id}"
        if path == by_id or path.startswith(f"{by_id}/"):
            path = f"/repos/{self.world.full_name}{path.removeprefix(by_id)}"
        caller: Caller | RefusedError
        try:
            caller = self.access.caller(raw.headers.get("authorization", ""))
        except RefusedError as refusal:
            caller = refusal
        base = url + (PREFIX if enterprise else "")
        return Understood(raw, path, dict(parse_qsl(target.query)), target.query, base, caller)

    def reply(self, ask: Understood, fault: Fault | None) -> Reply:  # noqa: PLR0911 - one return a kind of fault
        now = self.world.now()
        match fault:
            case None | Stall():
                return Reply(self.answer(ask))
            case StoredThenLost():
                return Reply(self.answer(ask), "lost")
            case StoredThenBroken(status=status):
                self.answer(ask)
                return Reply(_server_error(status))
            case Broken(status=status):
                return Reply(_server_error(status))
            case PrimaryLimit(reset_in=reset_in):
                return Reply(primary_limit(ask.login or "unknown", now + reset_in))
            case SecondaryLimit(retry_after_s=after_s):
                return Reply(secondary_limit(after_s))
            case TooManyRequests(retry_after_s=after_s):
                return Reply(replace(secondary_limit(after_s), status=429))
            case Malformed(cut_off=cut_off):
                return Reply(self.answer(ask), "cut_off" if cut_off else "malformed")
            case _:
                assert_never(fault)

    def answer(self, asked: Understood) -> Answer:
        now = self.world.now()
        try:
            if isinstance(asked.caller, RefusedError):
                raise asked.caller
            answer = self._allowed(asked, asked.caller, now)
        except UnknownRouteError as refusal:
            self.proofreader.note(f"{asked.raw.verb} {asked.path}: the fake GitHub does not know this endpoint")
            answer = refusal.answer
        except RefusedError as refusal:
            answer = refusal.answer
        if asked.raw.verb == "GET" and answer.status == HTTPStatus.OK:
            etag = f'W/"{short_digest(answer.encoded().decode())}"'
            answer = replace(answer, headers=answer.headers | {"ETag": etag})
            if asked.raw.headers.get("if-none-match") == etag:
                self.limits.refund(asked.login or "")
                answer = replace(answer, status=304, payload=None)
        self._hold_to_description(asked, answer)
        limits = self.limits.headers(asked.login, now) if asked.login else {}
        return replace(answer, headers=limits | answer.headers)

    def _hold_to_description(self, asked: Understood, answer: Answer) -> None:
        """Note what GitHub's own description does not allow of this request, and of this fake's answer to it."""
        described = github_description()
        endpoint = described.find(asked.raw.verb, asked.path)
        if endpoint is None:
            self.proofreader.note(f"{asked.raw.verb} {asked.path}: GitHub's description has no such endpoint")
            return
        body = asked.raw.body
        if isinstance(body, list):  # "You can also pass an `array` of labels directly", says the description in prose
            body = {"labels": body}
        wrong = described.wrong_with_request(endpoint, asked.query, body)
        if answer.status != HTTPStatus.NOT_MODIFIED:
            wrong += described.wrong_with_answer(endpoint, answer.status, answer.payload)
        for each in wrong:
            self.proofreader.note(each)

    def _allowed(self, asked: Understood, caller: Caller, now: datetime) -> Answer:
        if "user-agent" not in asked.raw.headers:
            raise RefusedError(
                403, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header"
            )
        self.limits.charge(caller.login, now)
        moved = self._moved(asked)
        if moved is not None:
            return moved
        creates = asked.raw.verb == "POST" and CREATES_CONTENT.fullmatch(asked.path)
        if creates and (refusal := self.limits.charge_content(caller.login, now)):
            return refusal
        body = {} if asked.raw.body is None else asked.raw.body
        if not isinstance(body, dict) and not (isinstance(body, list) and asked.path.endswith("/labels")):
            raise RefusedError(
                400, "Problems parsing JSON" if isinstance(body, str) else "Body should be a JSON object"
            )
        answer = route(self.api, Ask(asked.raw.verb, asked.path, asked.query, body, caller, asked.base))
        self._proofread(asked, caller)
        return answer

    def _moved(self, asked: Understood) -> Answer | None:
        """The redirect from a former name, to the `/repositories/ID` form. PyGithub drops the query when it follows."""
        parts = asked.path.split("/", 4)
        if parts[1] != "repos" or "/".join(parts[2:4]).lower() not in self.world.old_names:
            return None
        location = "/".join([f"{asked.base}/repositories/{self.world.repository_id}", *parts[4:]])
        if asked.query_text:
            location += f"?{asked.query_text}"
        status, message = (301, "Moved Permanently") if asked.raw.verb == "GET" else (307, "Temporary Redirect")
        payload = {"message": message, "url": location, "documentation_url": REDIRECTS}
        return Answer(status, payload, {"Location": location})

    def _proofread(self, asked: Understood, caller: Caller) -> None:
        body = asked.raw.body
        if asked.raw.verb not in ("POST", "PATCH") or not isinstance(body, dict) or "body" not in body:
            return
        where = f"{asked.raw.verb} {asked.path}"
        self.proofreader.read(where, str(body["body"]))
        if asked.raw.verb == "POST" and asked.path.endswith("/comments"):
            self.proofreader.compare(where, int(asked.path.split("/")[-2]), caller.login)


def _server_error(status: int) -> Answer:
    """502s come as JSON from the API, the others as the web front's page."""
    if status == HTTPStatus.BAD_GATEWAY:
        return Answer(status, {"message": "Server Error"})
    return Answer(
        status, html="<!DOCTYPE html><html><body><h1>Unicorn!</h1><p>No server is available.</p></body></html>"
    )
