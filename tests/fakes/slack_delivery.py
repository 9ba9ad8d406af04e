"""How the fake Slack reaches the app: Socket Mode envelopes or signed HTTP requests, their acks and retries."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import WSMsgType, web

from tests.fakes.slack_values import APP_ID, BOT_USER_ID, TEAM_ID, Ack, Json, Mistake

SOCKETS_MAX = 10
RETRIES_MAX = 3


@dataclass(eq=False)
class Socket:
    """One open Socket Mode connection and the envelopes on it that wait for an ack."""

    ws: web.WebSocketResponse
    request: web.Request
    waiting: dict[str, asyncio.Future[Json | None]] = field(default_factory=dict)

    def cut(self) -> None:
        """End the TCP connection without a close frame."""
        if self.request.transport is not None:
            self.request.transport.abort()


@dataclass(frozen=True)
class Unacked:
    """An event that Slack will send again: at once, after a minute, after five."""

    event_id: str
    payload: Json
    attempt: int
    reason: str


class Delivery:
    """Takes a payload to the app, through any one open socket or to ``http_url``, and waits for its ack."""

    def __init__(self, signing_secret: str) -> None:
        self.signing_secret = signing_secret
        self.http_url: str | None = None
        self.timestamp_offset_s = 0.0
        self.ack_deadline_s = 3.0
        self.deaf = False
        self.half_open = False
        self.refuse_upgrades = False
        self.sockets: list[Socket] = []
        self.tickets: dict[str, bool] = {}
        self.unacked: dict[str, Unacked] = {}
        self.held: list[Json] = []
        self.late_acks: list[str] = []
        self.refused_upgrades = 0
        self.mistakes: list[Mistake] = []
        self.changed = asyncio.Event()
        self._numbers = count(1)

    def ticket(self) -> str:
        """A ticket for one connection; it is spent by the first try, good or bad."""
        ticket = f"ticket-{next(self._numbers)}"
        self.tickets[ticket] = not self.refuse_upgrades
        return ticket

    async def link(self, request: web.Request) -> web.StreamResponse:
        """The Socket Mode end of an upgrade."""
        good = self.tickets.pop(request.query.get("ticket", ""), False)
        if not good or self.refuse_upgrades:
            self.refused_upgrades += 1
            self.changed.set()
            return web.Response(status=404)
        ws = web.WebSocketResponse(autoping=False)
        await ws.prepare(request)
        socket = Socket(ws, request)
        if len(self.sockets) >= SOCKETS_MAX:
            await ws.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await ws.close()
            return ws
        hello = {"type": "hello", "num_connections": len(self.sockets) + 1, "connection_info": {"app_id": APP_ID}}
        await ws.send_json(hello)
        self.sockets.append(socket)
        self.changed.set()
        try:
            async for frame in ws:
                if frame.type == WSMsgType.PING and not self.half_open:
                    await ws.pong(frame.data)
                elif frame.type == WSMsgType.TEXT:
                    self._acked(socket, json.loads(frame.data))
        finally:
            self.sockets.remove(socket)
            for waiter in socket.waiting.values():
                if not waiter.done():
                    waiter.set_result(None)
            self.changed.set()
        return ws

    def _acked(self, socket: Socket, answer: Json) -> None:
        waiter = socket.waiting.get(str(answer.get("envelope_id")))
        if waiter is None or waiter.done():
            # After the deadline, or on another socket than the envelope came on: a redelivery is to be expected.
            self.late_acks.append(str(answer.get("envelope_id")))
        else:
            waiter.set_result(answer)

    async def disconnect(self, reason: str) -> None:
        """Ask every client to connect anew, as Slack does when it moves connections."""
        for socket in list(self.sockets):
            await socket.ws.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})

    def event_id(self) -> str:
        return f"Ev{next(self._numbers):08d}"

    def callback(self, event: Json, event_id: str) -> Json:
        """The outer object of an Events API event."""
        who = {"enterprise_id": None, "team_id": TEAM_ID, "user_id": BOT_USER_ID, "is_bot": True}
        return {
            "token": "legacy-verification-token",
            "team_id": TEAM_ID,
            "api_app_id": APP_ID,
            "event": event,
            "type": "event_callback",
            "event_id": event_id,
            "event_time": int(float(event["event_ts"])),
            "authorizations": [who | {"is_enterprise_install": False}],
            "is_ext_shared_channel": False,
        }

    async def event(
        self, event: Json, event_id: str | None = None, copies: int = 1, *, marked: bool = True
    ) -> list[Ack]:
        """Send one event, several copies side by side if asked; ``marked`` numbers them as retries."""
        name = event_id or self.event_id()
        payload = self.callback(event, name)
        attempts = [attempt if marked else 0 for attempt in range(copies)]
        sends = (self.send("events_api", payload, attempt, "timeout" if attempt else "") for attempt in attempts)
        acks = list(await asyncio.gather(*sends))
        if any(ack.acked for ack in acks):
            self.unacked.pop(name, None)
        return acks

    async def retry_unacked(self) -> list[Ack]:
        """Let Slack's next retry come due for every event that was not acked."""
        acks = []
        for waiting in list(self.unacked.values()):
            ack = await self.send("events_api", waiting.payload, waiting.attempt + 1, waiting.reason)
            acks.append(ack)
        return acks

    async def send(self, kind: str, payload: Json, attempt: int = 0, reason: str = "") -> Ack:
        """One delivery of one payload; keeps account of what must be sent again."""
        if self.http_url is not None:
            ack, failed = await self._post(self.http_url, kind, payload, attempt, reason)
        else:
            ack, failed = await self._envelope(kind, payload, attempt, reason)
        if ack.event_id is not None:
            if ack.acked or attempt >= RETRIES_MAX or ack.no_retry or (self.deaf and not ack.sent):
                self.unacked.pop(ack.event_id, None)
            else:
                self.unacked[ack.event_id] = Unacked(ack.event_id, payload, attempt, failed)
        return ack

    async def _envelope(self, kind: str, payload: Json, attempt: int, reason: str) -> tuple[Ack, str]:
        event_id = payload.get("event_id")
        never = Ack(kind, event_id, attempt, sent=False, acked=False)
        if self.deaf:
            self.held.append(payload)
            return never, "timeout"
        if not self.sockets:
            return never, "connection_failed"
        number = next(self._numbers)
        socket = self.sockets[number % len(self.sockets)]
        envelope: Json = {"envelope_id": f"envelope-{number}", "type": kind, "payload": payload}
        envelope["accepts_response_payload"] = kind != "events_api"
        if kind == "events_api":
            envelope |= {"retry_attempt": attempt, "retry_reason": reason}
        waiter: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        socket.waiting[envelope["envelope_id"]] = waiter
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.ack_deadline_s):
                await socket.ws.send_json(envelope)
                answer = await waiter
        except ConnectionError:
            answer = None
        except TimeoutError:
            answer = None
            self.mistakes.append(Mistake("unacked", f"{kind} {event_id or ''} after {self.ack_deadline_s} s"))
        finally:
            socket.waiting.pop(envelope["envelope_id"], None)
        if answer is None:
            return Ack(kind, event_id, attempt, sent=True, acked=False), "timeout"
        latency_s = time.monotonic() - began
        carried = answer.get("payload")
        return Ack(kind, event_id, attempt, sent=True, acked=True, latency_s=latency_s, payload=carried), ""

    def sign(self, body: str, *, offset_s: float = 0.0, secret: str | None = None) -> dict[str, str]:
        """The headers that prove a body to be Slack's, made ``offset_s`` away from now."""
        stamp = str(int(time.time() + offset_s))
        key = (secret or self.signing_secret).encode()
        digest = hmac.new(key, f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}

    async def _post(self, url: str, kind: str, payload: Json, attempt: int, reason: str) -> tuple[Ack, str]:
        event_id = payload.get("event_id")
        body, content_type = http_body(kind, payload)
        headers = {"Content-Type": content_type} | self.sign(body, offset_s=self.timestamp_offset_s)
        if attempt:
            headers |= {"x-slack-retry-num": str(attempt), "x-slack-retry-reason": reason}
        began = time.monotonic()
        try:
            status, answer, answered = await self.request(url, body, headers)
        except TimeoutError:
            self.mistakes.append(Mistake("unacked", f"{kind} {event_id or ''} after {self.ack_deadline_s} s"))
            return Ack(kind, event_id, attempt, sent=True, acked=False), "http_timeout"
        except aiohttp.ClientError:
            return Ack(kind, event_id, attempt, sent=False, acked=False), "connection_failed"
        good, latency_s = 200 <= status < 300, time.monotonic() - began
        no_retry = not good and answered.get("X-Slack-No-Retry") == "1"
        outcome = Ack(kind, event_id, attempt, True, good, latency_s, answer, status, no_retry)
        return outcome, "http_error"

    async def request(self, url: str, body: str, headers: Mapping[str, str]) -> tuple[int, Any, Mapping[str, str]]:
        """One POST within Slack's three seconds: status, the body as JSON where it is JSON, headers."""
        timeout = aiohttp.ClientTimeout(total=self.ack_deadline_s)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=body.encode(), headers=headers) as response,
        ):
            text = await response.text()
            answer = json.loads(text) if response.content_type == "application/json" and text else text or None
            return response.status, answer, response.headers


def http_body(kind: str, payload: Json) -> tuple[str, str]:
    """How a payload travels over HTTP: events as JSON, commands as a form, clicks as JSON in a form."""
    match kind:
        case "events_api":
            return json.dumps(payload), "application/json"
        case "slash_commands":
            return urlencode(payload), "application/x-www-form-urlencoded"
        case _:
            return urlencode({"payload": json.dumps(payload)}), "application/x-www-form-urlencoded"
