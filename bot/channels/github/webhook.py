"""GitHub's webhook: what people write arrives at ``/github/webhook`` within a second instead of at the next poll.

Anybody can reach that address, so a delivery is bounded and its signature checked before a byte of it is parsed. It is
answered with 200 only after its event was stored; with 202 when it is none of Hero's business. What is refused or lost
here is found by polling, which goes on at a slower pace. docs.github.com, "Validating webhook deliveries" and "Handling
failed webhook deliveries".
"""

import asyncio
import hashlib
import hmac
import re
from collections import deque
from datetime import timedelta
from typing import Self

import structlog
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bot.channels.bodies import NotTakenError, bounded_body
from bot.channels.github.client import GitHubClient
from bot.channels.github.inbound import Action, Listener, Taken
from bot.channels.github.records import Delivered, Records
from bot.channels.github.seen import Account, Comment, is_bot
from bot.channels.ports import Receive
from bot.clock import Clock
from bot.errors import ServiceError, StoreError

log = structlog.get_logger()

PATH = "/github/webhook"
MOST_BYTES = 4_000_000
"""Above this no body is read: an issue's text, a comment and its earlier wording, each of 65,536 characters escaped as
JSON, stay below it."""
_ANSWER_WITHIN = timedelta(seconds=8)
"""GitHub counts what is not answered within ten seconds as failed."""
_REMEMBERED = 500
_SAVE_EVERY = timedelta(minutes=1)
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_GUID = re.compile(r"[0-9A-Za-z-]{1,64}")


class _Part(BaseModel):
    """A part of a delivery, of which Hero needs some fields."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _User(_Part):
    id: int
    login: str
    type: str | None = None


class _Comment(_Part):
    id: int
    user: _User | None
    body: str | None
    created_at: AwareDatetime
    updated_at: AwareDatetime
    performed_via_github_app: object = None
    author_association: str | None = None
    html_url: str | None = None

    def seen(self) -> Comment:
        user = self.user
        return Comment(
            id=self.id,
            author=Account(id=user.id, login=user.login, is_bot=is_bot(user.type, user.login)) if user else None,
            body=self.body or "",
            created_at=self.created_at,
            updated_at=self.updated_at,
            is_by_app=bool(self.performed_via_github_app),
            association=self.author_association or "",
            link=self.html_url or "",
        )


class _Issue(_Part):
    number: int


class _Repository(_Part):
    id: int
    full_name: str


class _Head(_Part):
    """What every delivery has that may be about a comment."""

    action: str = ""
    repository: _Repository | None = None

    @classmethod
    def of(cls, body: bytes) -> Self:
        """Read it.

        Raises:
            NotTakenError: 400, it has another shape.
        """
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the body"
            raise NotTakenError(400, f"not of a shape that GitHub sends ({where}: {first['type']})") from None


class _CommentEvent(_Head):
    issue: _Issue
    comment: _Comment


class Webhook:
    """Takes deliveries once somebody listens; until then, and on a Hero that stands by, they are refused with 503."""

    def __init__(
        self, secret: str, *, client: GitHubClient, listener: Listener, records: Records, clock: Clock
    ) -> None:
        """Make it.

        Args:
            secret: what GitHub signs with; not empty.
            client: knows the repository.
            listener: takes what was written.
            records: where it is kept that deliveries come at all.
            clock: the time.
        """
        self._secret = secret.encode()
        self._client = client
        self._listener = listener
        self._records = records
        self._clock = clock
        self._receive: Receive | None = None
        self._taken: deque[tuple[str, bytes]] = deque(maxlen=_REMEMBERED)
        self._saved: Delivered | None = None
        self._seen: Delivered | None = None

    def routes(self) -> list[Route]:
        """Return the routes for Hero's web server."""
        return [Route(PATH, self._answer, methods=["POST"])]

    async def begin(self, receive: Receive) -> None:
        """Take deliveries from now on."""
        self._seen = self._saved = await self._records.delivered()
        self._receive = receive

    async def is_reliable(self) -> bool:
        """Say whether deliveries come and none was missed since, so that polls may be rarer."""
        seen, missed_at = self._seen, self._listener.missed_at
        if seen is None:
            return False
        if missed_at is not None and (seen.missed_at is None or missed_at > seen.missed_at):
            if seen.is_reliable:
                log.warning("github_delivery_missed", missed_at=missed_at.isoformat(), last_at=seen.at.isoformat())
            seen = self._seen = seen.model_copy(update={"missed_at": missed_at})
            await self._save(seen)
        return seen.is_reliable

    async def _answer(self, request: Request) -> Response:
        try:
            body = await bounded_body(request, MOST_BYTES)
            self._check_signature(request, body)
            event, guid = _named(request)
            async with asyncio.timeout(_ANSWER_WITHIN.total_seconds()):
                return await self._take(event, guid, body)
        except NotTakenError as error:
            log.warning("github_delivery_refused", status=error.status, reason=str(error))
            return error.response()
        except (TimeoutError, ServiceError, StoreError) as error:
            log.warning("github_delivery_put_off", reason=str(error) or "no answer in time")
            return _later("it cannot be stored now; polling will find it")

    def _check_signature(self, request: Request, body: bytes) -> None:
        told = request.headers.get("x-hub-signature-256", "")
        right = "sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        if not _SIGNATURE.fullmatch(told) or not hmac.compare_digest(told, right):
            raise NotTakenError(401, "not signed with the webhook's secret")

    async def _take(self, event: str, guid: str, body: bytes) -> Response:
        receive = self._receive
        if receive is None:
            return _later("this Hero stands by")
        # The headers are not signed: only the same GUID over the same body is the same delivery.
        delivery = guid, hashlib.sha256(body).digest()
        if delivery in self._taken:
            return PlainTextResponse("known already")
        head = _Head.of(body)
        taken = await self._take_comment(body, receive) if event == "issue_comment" and self._is_ours(head) else None
        await self._note(event)
        if event == "ping":
            return PlainTextResponse("pong")
        if taken in (Taken.STORED, Taken.REPEAT):
            self._taken.append(delivery)
            log.info("github_delivery_taken", delivery=guid, taken=taken)
            return PlainTextResponse(str(taken))
        return PlainTextResponse(taken or Taken.NOT_WATCHED, status_code=202)

    async def _take_comment(self, body: bytes, receive: Receive) -> Taken:
        told = _CommentEvent.of(body)
        return await self._listener.take(told.issue.number, told.comment.seen(), Action(told.action), receive)

    def _is_ours(self, head: _Head) -> bool:
        """Say whether it is about a comment's wording, in our repository."""
        if head.repository is None or head.action not in set(Action):
            return False
        if self._client.repository_id is not None:
            return head.repository.id == self._client.repository_id
        return head.repository.full_name.casefold() == self._client.repository.casefold()

    async def _note(self, event: str) -> None:
        """Remember that deliveries come; in the database at most once a minute."""
        now, before = self._clock.now(), self._seen
        seen = Delivered(at=now, event=event, count=1)
        if before is not None:
            seen = before.model_copy(update={"at": now, "event": event, "count": before.count + 1})
        self._seen = seen
        if self._saved is None or not self._saved.is_reliable or now - self._saved.at >= _SAVE_EVERY:
            await self._save(seen)

    async def _save(self, seen: Delivered) -> None:
        await self._records.save_delivered(seen)
        self._saved = seen


def _named(request: Request) -> tuple[str, str]:
    """Return the event and the delivery's GUID."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise NotTakenError(415, "the webhook's content type must be application/json")
    event, guid = request.headers.get("x-github-event", ""), request.headers.get("x-github-delivery", "")
    if not event or not _GUID.fullmatch(guid):
        raise NotTakenError(400, "no X-GitHub-Event or X-GitHub-Delivery")
    return event[:64], guid


def _later(reason: str) -> Response:
    return PlainTextResponse(reason, status_code=503, headers={"Retry-After": "60"})
