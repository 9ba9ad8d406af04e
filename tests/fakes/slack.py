"""A Slack on 127.0.0.1 for the real slack_sdk and slack_bolt: keeps messages, sends events, refuses what Slack refuses.

    async with FakeSlack() as slack:
        slack.add_channel("C1")
        slack.add_user("U1", "Dana")
        client = AsyncWebClient(token=slack.bot_token, base_url=slack.base_url, retry_handlers=[])
        await client.chat_postMessage(channel="C1", text="hello")
        said = await slack.user_says("C1", "U1", "approve")
        assert said.acks[0].acked

What the app did is read from ``messages``, ``ephemerals``, ``calls`` and ``mistakes``; what goes wrong is ordered with
``fail_next``, ``limit_posts``, ``stop`` and the socket switches. Behaviour follows Slack's documentation; where that is
silent the comment beside it says where the knowledge comes from. Read ``slack_api`` for the methods, ``slack_delivery``
for envelopes, signatures and retries, ``slack_people`` for what people do, ``slack_limits`` for the refusals.
"""

import asyncio
import json
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, assert_never

from aiohttp import web

from tests.fakes.slack_api import Upload, WebApi, plain_arguments
from tests.fakes.slack_delivery import Delivery, http_body
from tests.fakes.slack_people import People
from tests.fakes.slack_values import (
    BOT_USER_ID,
    Ack,
    ApiError,
    Call,
    Channel,
    Ephemeral,
    Fault,
    Http500,
    Json,
    Lost,
    LostAfterPerforming,
    LostBeforePerforming,
    Mistake,
    NotJson,
    Post,
    RateLimited,
    Refused,
    Stall,
    User,
)
from tests.fakes.slack_workspace import Workspace


class FakeSlack(People):
    """One workspace with one app in it. ``wall`` and ``monotonic`` are the machine's unless a test has its own."""

    def __init__(
        self, *, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.bot_token = "xoxb-1-hero-fake"
        self.app_token = "xapp-1-A0HERO-fake"
        super().__init__(Workspace(wall), Delivery("signing-secret-of-the-fake"))
        self.api = WebApi(self.workspace, self._announce)
        self.api.origin = lambda: self.origin
        self.calls: list[Call] = []
        self.bot_user_id = BOT_USER_ID
        self.signing_secret = self.delivery.signing_secret
        self._monotonic = monotonic
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._rate: tuple[float, int, bool] | None = None
        self._buckets: dict[str, tuple[float, float]] = {}
        self._events: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None
        self._stopped = asyncio.Event()
        self.port = 0
        self.workspace.changed = self.delivery.changed.set

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        for task in self._events:
            task.cancel()
        await asyncio.gather(*self._events, return_exceptions=True)

    async def start(self) -> None:
        """Listen; after ``stop``, on the same port as before."""
        self._stopped.clear()
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._serve)
        app.router.add_get("/link/", self.delivery.link)
        app.router.add_post("/response/{token}", self._serve_response_url)
        app.router.add_post("/upload/{file}", self._serve_upload)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.origin = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Be gone: sockets cut, calls unanswered, the port closed. What was said is remembered."""
        self._stopped.set()
        self.drop_sockets()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def base_url(self) -> str:
        """For ``AsyncWebClient(base_url=...)``."""
        return f"{self.origin}/api/"

    def add_user(self, user: str, name: str, **flags: Any) -> User:
        """Add or replace a person; flags are the fields of ``User``."""
        self.workspace.users[user] = User(user, name, **flags)
        return self.workspace.users[user]

    def add_channel(self, channel: str, name: str = "", *, member: bool = True, **flags: Any) -> Channel:
        """Add a channel; ``member`` says whether the app is in it, flags are the fields of ``Channel``."""
        new = Channel(channel, name or f"channel-{channel.lower()}", is_member=member, **flags)
        self.workspace.channels[channel] = new
        return new

    def messages(self, channel: str) -> list[Post]:
        """Everything ever said there, oldest first, as it stands now."""
        return [message.post() for message in self.workspace.messages(channel)]

    def own_messages(self, channel: str) -> list[Post]:
        """What the app said there."""
        return [post for post in self.messages(channel) if post.user == BOT_USER_ID]

    @property
    def files(self) -> list[Upload]:
        """What the app has uploaded and shown somewhere."""
        return [upload for upload in self.api.uploads.values() if upload.channel]

    @property
    def ephemerals(self) -> list[Ephemeral]:
        return self.workspace.ephemerals

    @property
    def mistakes(self) -> list[Mistake]:
        """Raw markup, pings, wrong thread roots, missing fallbacks, late acks."""
        return [*self.api.mistakes, *self.delivery.mistakes]

    def allow_mentions(self, *tokens: str) -> None:
        """Mentions that are wanted, as ``<@U1>`` or ``<!here>``."""
        self.api.allowed_mentions.update(tokens)

    @property
    def scopes(self) -> set[str]:
        """What the bot token may do; a test takes some away."""
        return self.api.scopes

    async def until(self, true: Callable[[], bool], *, within_s: float = 5.0) -> None:
        """Wait until something holds, looking again whenever the server has heard or said anything."""
        async with asyncio.timeout(within_s):
            while not true():
                self.delivery.changed.clear()
                await self.delivery.changed.wait()

    async def settled(self) -> None:
        """Wait until the events about the app's own posts are delivered and acked."""
        while self._events:
            await asyncio.gather(*self._events)

    def fail_next(self, method: str, *faults: Fault) -> None:
        """Queue faults for the next calls of a method; ``response_url`` counts as one."""
        self._faults[method].extend(faults)

    def limit_posts(self, per_s: float = 1.0, *, burst: int = 1, say_when: bool = True) -> None:
        """Refuse posts to a channel beyond this rate with 429, with a Retry-After or without (``say_when``)."""
        self._rate = (per_s, burst, say_when)
        self._buckets.clear()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        raw = await _arguments(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or str(raw.get("token", ""))

        def perform() -> Json:
            self._check_token(method, token)
            if method == "apps.connections.open":
                return {"ok": True, "url": f"ws://127.0.0.1:{self.port}/link/?ticket={self.delivery.ticket()}"}
            return self.api.call(method, plain_arguments(raw, json.loads))

        args = {key: value for key, value in raw.items() if key != "token"}
        return await self._answered(request, method, args, perform)

    async def _answered(
        self, request: web.Request, method: str, args: Json, perform: Callable[[], Json]
    ) -> web.StreamResponse:
        """Put the call on record, then let it meet a fault, the rate limit, or its answer."""
        self.calls.append(Call(method, args, self._monotonic()))
        self.delivery.changed.set()
        faults = self._faults[method]
        if not faults:
            limited = self._limited(str(args.get("channel"))) if method == "chat.postMessage" else None
            return _rate_limited(limited) if limited else self._perform(perform)
        match fault := faults.popleft():
            case RateLimited():
                return _rate_limited(fault)
            case ApiError(code=code):
                return web.json_response({"ok": False, "error": code})
            case NotJson():
                return web.Response(text="<html>a proxy's page</html>", content_type="text/html")
            case _:
                if fault.performed:
                    self._perform(perform)
                return await self._broken(request, fault)

    async def _broken(self, request: web.Request, fault: Lost | Http500 | Stall) -> web.StreamResponse:
        match fault:
            case LostAfterPerforming() | LostBeforePerforming():
                return _lost(request)
            case Http500(status=status):
                return web.Response(status=status, text="<html>server error</html>", content_type="text/html")
            case Stall():
                await self._stopped.wait()
                return _lost(request)
            case _:
                assert_never(fault)

    def _perform(self, perform: Callable[[], Json]) -> web.Response:
        headers = {"x-oauth-scopes": ",".join(sorted(self.api.scopes)), "x-slack-req-id": "fake"}
        try:
            return web.json_response(perform(), headers=headers)
        except Refused as refused:
            gone = refused.code in {"expired_url", "used_url"}  # a response_url that is used up is a 404
            return web.json_response(refused.body(), status=404 if gone else 200, headers=headers)

    def _check_token(self, method: str, token: str) -> None:
        if not token:
            raise Refused("not_authed")
        if token not in {self.bot_token, self.app_token}:
            raise Refused("invalid_auth")
        if (method == "apps.connections.open") != (token == self.app_token):
            raise Refused("not_allowed_token_type")

    def _limited(self, channel: str) -> RateLimited | None:
        """A token bucket a channel: Slack documents about a message a second and tolerates short bursts."""
        if self._rate is None:
            return None
        per_s, burst, say_when = self._rate
        now = self._monotonic()
        left, since = self._buckets.get(channel, (float(burst), now))
        left = min(float(burst), left + (now - since) * per_s)
        if left < 1:
            self._buckets[channel] = (left, now)
            return RateLimited(math.ceil((1 - left) / per_s) if say_when else None)
        self._buckets[channel] = (left - 1, now)
        return None

    async def _serve_response_url(self, request: web.Request) -> web.StreamResponse:
        args = await _arguments(request)
        return await self._answered(
            request, "response_url", args, lambda: self._respond(request.match_info["token"], args)
        )

    async def _serve_upload(self, request: web.Request) -> web.Response:
        """Step two of an upload: the bytes themselves, without a token."""
        upload = self.api.uploads.get(request.match_info["file"])
        if upload is None or upload.content or "Authorization" in request.headers:
            return web.Response(status=404)
        upload.content = await request.read()
        return web.Response(text=f"OK - {len(upload.content)}")

    def _announce(self, events: Iterable[Json]) -> None:
        """Tell the app of its own posts, as Slack does, without keeping the call waiting."""
        for event in events:
            task = asyncio.get_running_loop().create_task(self._tell(event), name="slack-own-event")
            self._events.add(task)
            task.add_done_callback(self._events.discard)

    async def _tell(self, event: Json) -> None:
        await self._deliver([event])

    def deliver_to(self, url: str | None) -> None:
        """Send events to this address, signed, instead of through sockets; None returns to sockets."""
        self.delivery.http_url = url

    async def verify_url(self) -> bool:
        """Slack's first request to a new address: whether the challenge came back."""
        challenge = {"type": "url_verification", "token": "legacy-verification-token", "challenge": "c-4711"}
        body, content_type = http_body("events_api", challenge)
        headers = self.delivery.sign(body) | {"Content-Type": content_type}
        status, answer, _ = await self.delivery.request(str(self.delivery.http_url), body, headers)
        return status == 200 and answer in ("c-4711", {"challenge": "c-4711"})

    @property
    def deaf(self) -> bool:
        """Sockets stay open and answer pings, but nothing is delivered; what was held is never sent."""
        return self.delivery.deaf

    @deaf.setter
    def deaf(self, value: bool) -> None:
        self.delivery.deaf = value

    @property
    def dead_tickets(self) -> bool:
        """Every upgrade is refused, though ``apps.connections.open`` succeeds; a refused ticket is spent."""
        return self.delivery.refuse_upgrades

    @dead_tickets.setter
    def dead_tickets(self, value: bool) -> None:
        self.delivery.refuse_upgrades = value

    @property
    def open_sockets(self) -> int:
        return len(self.delivery.sockets)

    def drop_sockets(self) -> None:
        """Reset every socket's connection, without a close frame."""
        for socket in list(self.delivery.sockets):
            socket.cut()

    async def close_sockets(self) -> None:
        """Close every socket properly."""
        for socket in list(self.delivery.sockets):
            await socket.ws.close()

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        """Send the ``disconnect`` envelope."""
        await self.delivery.disconnect(reason)

    async def retry_unacked(self) -> list[Ack]:
        """Let the next retry of every unacked event come due (Slack: at once, after a minute, after five)."""
        return await self.delivery.retry_unacked()


async def _arguments(request: web.Request) -> Json:
    if request.content_type == "application/json":
        found = json.loads(await request.text() or "{}")
        return found if isinstance(found, dict) else {}
    return {**request.query, **{key: str(value) for key, value in (await request.post()).items()}}


def _lost(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _rate_limited(limit: RateLimited) -> web.Response:
    headers = {} if limit.retry_after is None else {"Retry-After": str(limit.retry_after)}
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
