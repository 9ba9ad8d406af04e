"""A Discord on this machine: REST v10 and the gateway, with the limits that the documentation states.

It refuses what Discord would refuse, and keeps what a test asks about: calls, pings, answers that one person saw.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import BodyPartReader, web

from tests.fakes.discord_faults import Answers, Fault, Limited, Lost, Page, Stalls
from tests.fakes.discord_gateway import Gateway
from tests.fakes.discord_limits import message_errors
from tests.fakes.discord_world import APPLICATION, GUILD, HOME, ME, Account, Json, Place, Post, World, pinged

TOKEN = "fake-token-of-a-bot"
_CONTENT_FLAG = 1 << 18


@dataclass
class Aside:
    """What became of one interaction."""

    id: str
    user: str
    kind: int = 0
    """The type of its first answer: 4 a message, 5 thinking, 6 nothing to see, 8 choices; 0 none yet."""
    choices: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    """What only that person saw, in order; an edit replaces the first."""


class FakeDiscord:
    """``async with FakeDiscord(wall=clock.timestamp) as discord``; ``api_base`` is where it is."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self.world = World(wall)
        self.gateway = Gateway(self.world, TOKEN)
        self.calls: list[tuple[str, str]] = []
        self.refused: list[str] = []
        """Payloads outside the documented limits."""
        self.asides: dict[str, Aside] = {}
        self.token = TOKEN
        self._faults: list[tuple[str, Fault]] = []
        self._runner: web.AppRunner | None = None
        self.api_base = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/gateway", self.gateway.serve)
        app.router.add_route("*", "/api/v10/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.api_base = f"http://127.0.0.1:{port}/api/v10"
        self.gateway.url = f"ws://127.0.0.1:{port}/gateway"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.gateway.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def fail_next(self, call: str, *faults: Fault) -> None:
        """Let the next calls that match ``METHOD /path`` (a regular expression) fail, one fault each."""
        self._faults += [(call, fault) for fault in faults]

    def count(self, call: str) -> int:
        return sum(bool(re.fullmatch(call, f"{method} {path}")) for method, path in self.calls)

    # What people do

    async def says(self, channel: str, user: str, text: str, *, told: bool = True, **how: Any) -> Post:
        """Somebody writes; ``told`` False: no event tells of it."""
        post = self.world.add(channel, self.world.accounts[user], text, **how)
        if told:
            await self.tell("MESSAGE_CREATE", post)
        return post

    async def edits(self, post: Post, text: str | None = None) -> None:
        """Its author changes it; without a text it is Discord itself, for a link's preview."""
        if text is not None:
            post.content, post.edited_at = text, self.world.stamp()
        await self.tell("MESSAGE_UPDATE", post)

    async def deletes(self, post: Post) -> None:
        self.world.posts.pop(post.id, None)
        await self.gateway.emit("MESSAGE_DELETE", {"id": post.id, "channel_id": post.channel, "guild_id": GUILD})

    async def commands(self, channel: str, user: str, text: str, *, kind: int = 2, guild: str = GUILD) -> Aside:
        """``/hero text``; kind 4 while it is still typed."""
        option = {"name": "text", "type": 3, "value": text} | ({"focused": True} if kind == 4 else {})
        data = {"id": "1", "name": "hero", "type": 1, "options": [option] if text else []}
        return await self._interact(channel, user, kind, data, guild=guild)

    async def presses(self, post: Post, user: str, custom_id: str) -> Aside:
        data = {"custom_id": custom_id, "component_type": 2}
        return await self._interact(post.channel, user, 3, data, message=post.as_json())

    async def archives(self, thread: str, *, locked: bool = False) -> None:
        place = self.world.places[thread]
        place.archived, place.locked = True, locked
        await self.gateway.emit("THREAD_UPDATE", place.as_json())

    async def deletes_thread(self, thread: str) -> None:
        self.world.places.pop(thread)
        gone = {"id": thread, "guild_id": GUILD, "parent_id": HOME, "type": 11}
        await self.gateway.emit("THREAD_DELETE", gone)

    async def tell(self, kind: str, post: Post) -> None:
        """Send an event about a message to whoever listens."""
        guild = {"guild_id": GUILD} if post.channel in self.world.places else {}
        await self.gateway.emit(kind, post.as_json() | guild, post.as_json(reads_content=False) | guild)

    async def _interact(self, channel: str, user: str, kind: int, data: Json, **more: Any) -> Aside:
        aside = Aside(self.world.snowflake(), user)
        self.asides[f"token-{aside.id}"] = aside
        account = self.world.accounts[user]
        member = {"user": account.as_json(), "roles": [], "flags": 0, "permissions": "0"}
        member |= {"joined_at": "2026-01-01T00:00:00+00:00", "deaf": False, "mute": False, "premium_since": None}
        payload: Json = {
            "id": aside.id,
            "application_id": APPLICATION,
            "type": kind,
            "token": f"token-{aside.id}",
            "version": 1,
            "data": data,
            "channel_id": channel,
            "channel": self.world.places[channel].as_json() | {"permissions": "0"},
            "guild_id": more.get("guild", GUILD),
            "member": member,
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {},
            "context": 0,
            "attachment_size_limit": 1,
        }
        await self.gateway.emit(
            "INTERACTION_CREATE", payload | ({"message": more["message"]} if "message" in more else {})
        )
        return aside

    # REST

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.match_info["path"]
        self.calls.append((request.method, path))
        fault = self._fault(f"{request.method} {path}")
        body = await _body(request)
        match fault:
            case None:
                return await self._perform(request, path, body)
            case Answers(performed=True) | Lost(performed=True) | Stalls(performed=True):
                await self._perform(request, path, body)
        return await _fail(request, fault)

    def _fault(self, call: str) -> Fault | None:
        for place, (pattern, fault) in enumerate(self._faults):
            if re.fullmatch(pattern, call):
                del self._faults[place]
                return fault
        return None

    async def _perform(self, request: web.Request, path: str, body: Json) -> web.StreamResponse:
        is_tokened = re.match(r"/(interactions|webhooks)/", path)
        if not is_tokened and request.headers.get("Authorization") != f"Bot {self.token}":
            return _error(401, 0, "401: Unauthorized")
        for method, pattern, answer in self._routes():
            if method == request.method and (found := re.fullmatch(pattern, path)):
                return await answer(found.groups(), body, request)
        return _error(404, 0, f"no such route: {request.method} {path}")

    def _routes(self) -> list[tuple[str, str, Callable[..., Awaitable[web.StreamResponse]]]]:
        return [
            ("GET", r"/users/@me", self._me),
            ("GET", r"/oauth2/applications/@me", self._application),
            ("GET", r"/gateway/bot", self._where),
            ("GET", r"/channels/(\d+)", self._channel),
            ("PATCH", r"/channels/(\d+)", self._change_channel),
            ("GET", r"/channels/(\d+)/messages", self._history),
            ("POST", r"/channels/(\d+)/messages", self._post),
            ("PATCH", r"/channels/(\d+)/messages/(\d+)", self._edit),
            ("POST", r"/channels/(\d+)/messages/(\d+)/threads", self._start_thread),
            ("GET", rf"/guilds/{GUILD}/members/(\d+)", self._member),
            ("GET", rf"/applications/{APPLICATION}/guilds/{GUILD}/commands", self._commands),
            ("POST", rf"/applications/{APPLICATION}/guilds/{GUILD}/commands", self._add_command),
            ("POST", r"/interactions/(\d+)/([^/]+)/callback", self._callback),
            ("PATCH", rf"/webhooks/{APPLICATION}/([^/]+)/messages/@original", self._edit_original),
            ("POST", rf"/webhooks/{APPLICATION}/([^/]+)", self._follow_up),
            ("GET", r"/users/(\d+)", self._user),
            ("POST", r"/users/@me/channels", self._direct),
        ]

    async def _me(self, *_: Any) -> web.Response:
        return _json(self.world.me.as_json() | {"verified": True, "mfa_enabled": True, "flags": 0})

    async def _application(self, *_: Any) -> web.Response:
        flags = _CONTENT_FLAG if self.world.reads_content else 0
        owner = self.world.me.as_json()
        given: Json = {
            "id": APPLICATION,
            "name": "hero",
            "icon": None,
            "description": "",
            "rpc_origins": [],
            "flags": flags,
        }
        given |= {"bot_public": False, "bot_require_code_grant": False, "owner": owner, "team": None, "summary": ""}
        return _json(given | {"verify_key": "", "bot": owner})

    async def _where(self, *_: Any) -> web.Response:
        limit = {"total": 1000, "remaining": 999, "reset_after": 1, "max_concurrency": 1}
        return _json({"url": self.gateway.url, "shards": 1, "session_start_limit": limit})

    async def _channel(self, ids: tuple[str, ...], *_: Any) -> web.Response:
        place = self.world.places.get(ids[0])
        return _json(place.as_json()) if place else _error(404, 10003, "Unknown Channel")

    async def _change_channel(self, ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        place = self.world.places.get(ids[0])
        if place is None:
            return _error(404, 10003, "Unknown Channel")
        if place.locked:
            return _error(403, 50013, "Missing Permissions")
        place.archived = body.get("archived", place.archived)
        return _json(place.as_json())

    async def _history(self, ids: tuple[str, ...], _body: Json, request: web.Request) -> web.Response:
        place = self.world.places.get(ids[0])
        if place is None:
            return _error(404, 10003, "Unknown Channel")
        if place.refusal:
            return _error(403, place.refusal, "Missing Access")
        after, before = int(request.query.get("after", 0)), int(request.query.get("before", 1 << 63))
        limit = int(request.query.get("limit", 50))
        if not 1 <= limit <= 100:
            return self._refuse(["limit: Must be between 1 and 100"])
        found = [post for post in self.world.within(ids[0]) if after < int(post.id) < before]
        page = found[:limit] if "after" in request.query else found[-limit:]
        reads = self.world.reads_content
        return _json([post.as_json(reads_content=reads) for post in reversed(page)])

    async def _post(self, ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        place = self.world.places.get(ids[0])
        if refusal := _post_refusal(place):
            return refusal
        if errors := message_errors(body):
            return self._refuse(errors)
        if self.world.refuses_files and body.get("files"):
            return _error(403, 50013, "Missing Permissions")
        assert place is not None
        place.archived = False
        nonce = str(body.get("nonce") or "") or None
        same = [p for p in self.world.within(place.id) if nonce and body.get("enforce_nonce") and p.nonce == nonce]
        if same:
            return _json(same[0].as_json())
        post = self.world.add(
            place.id,
            self.world.me,
            body.get("content") or "",
            embeds=[] if place.drops_embeds else list(body.get("embeds") or ()),
            components=list(body.get("components") or ()),
            nonce=nonce,
            pings=pinged(body.get("content") or "", body.get("allowed_mentions")),
        )
        post.files = body.get("files") or {}
        await self.tell("MESSAGE_CREATE", post)
        return _json(post.as_json())

    async def _edit(self, ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        place, post = self.world.places.get(ids[0]), self.world.posts.get(ids[1])
        if place is None:
            return _error(404, 10003, "Unknown Channel")
        if post is None or post.channel != place.id:
            return _error(404, 10008, "Unknown Message")
        if place.archived:
            return _error(400, 50083, "Thread is archived")
        if post.author.id != ME:
            return _error(403, 50005, "Cannot edit a message authored by another user")
        changed: Json = {"content": post.content, "embeds": post.embeds, "components": post.components} | body
        if errors := message_errors(changed):
            return self._refuse(errors)
        post.content = changed["content"] or ""
        post.embeds = [] if place.drops_embeds else list(changed["embeds"] or ())
        post.components = list(changed["components"] or ())
        post.edited_at = self.world.stamp()
        post.pings |= pinged(post.content, body.get("allowed_mentions"))
        await self.tell("MESSAGE_UPDATE", post)
        return _json(post.as_json())

    async def _start_thread(self, ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        if ids[1] not in self.world.posts:
            return _error(404, 10008, "Unknown Message")
        if ids[1] in self.world.places:
            return _error(400, 160004, "A thread has already been created for this message")
        if not 1 <= len(body.get("name") or "") <= 100:
            return self._refuse(["name: Must be between 1 and 100 in length"])
        thread = Place(ids[1], body["name"], 11, parent=ids[0])
        self.world.places[thread.id] = thread
        await self.gateway.emit("THREAD_CREATE", thread.as_json() | {"newly_created": True})
        return _json(thread.as_json(), status=201)

    async def _member(self, ids: tuple[str, ...], *_: Any) -> web.Response:
        account = self.world.accounts.get(ids[0])
        if account is None:
            return _error(404, 10013, "Unknown User")
        if not account.member:
            return _error(404, 10007, "Unknown Member")
        given: Json = {"user": account.as_json(), "nick": None, "roles": [], "joined_at": "2026-01-01T00:00:00+00:00"}
        return _json(given | {"flags": account.flags, "pending": account.pending})

    async def _commands(self, *_: Any) -> web.Response:
        return _json(self.world.commands)

    async def _add_command(self, _ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        command = body | {"id": self.world.snowflake(), "application_id": APPLICATION, "version": "1", "nsfw": False}
        self.world.commands = [c for c in self.world.commands if c["name"] != body["name"]] + [command]
        return _json(command, status=201)

    async def _callback(self, ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        aside = self.asides.get(ids[1])
        if aside is None:
            return _error(404, 10062, "Unknown interaction")
        if aside.kind:
            return _error(400, 40060, "Interaction has already been acknowledged.")
        aside.kind = body["type"]
        data = body.get("data") or {}
        if aside.kind == 8:
            choices = data["choices"]
            if len(choices) > 25 or any(not 1 <= len(c[k]) <= 100 for c in choices for k in ("name", "value")):
                return self._refuse(["choices: at most 25, each of 1 to 100 characters"])
            aside.choices = tuple(choice["value"] for choice in choices)
        if aside.kind == 4:
            assert data.get("flags") == 64
            aside.said = (data["content"],)
        resource = {"type": aside.kind}
        given: Json = {"interaction": {"id": ids[0], "type": 2, "response_message_id": None}, "resource": resource}
        return _json(given)

    async def _edit_original(self, ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        aside = self.asides.get(ids[0])
        if aside is None or aside.kind not in {4, 5}:
            return _error(404, 10015, "Unknown Webhook")
        if errors := message_errors(body):
            return self._refuse(errors)
        aside.said = (_text(body), *aside.said[1:])
        return _json(self._own(body))

    async def _follow_up(self, ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        aside = self.asides.get(ids[0])
        if aside is None or not aside.kind:
            return _error(404, 10015, "Unknown Webhook")
        if errors := message_errors(body):
            return self._refuse(errors)
        assert body.get("flags") == 64
        aside.said = (*aside.said, _text(body))
        return _json(self._own(body))

    def _own(self, body: Json) -> Json:
        post = Post(self.world.snowflake(), HOME, self.world.me, body.get("content") or "", at=self.world.stamp())
        return post.as_json() | {"webhook_id": APPLICATION}

    async def _user(self, ids: tuple[str, ...], *_: Any) -> web.Response:
        account = self.world.accounts.get(ids[0])
        return _json(account.as_json()) if account else _error(404, 10013, "Unknown User")

    async def _direct(self, _ids: tuple[str, ...], body: Json, *_: Any) -> web.Response:
        user: Account = self.world.accounts[str(body["recipient_id"])]
        direct = self.world.places.setdefault(f"9{user.id}", Place(f"9{user.id}", "", 1))
        return _json({"id": direct.id, "type": 1, "recipients": [user.as_json()]})

    def _refuse(self, errors: list[str]) -> web.Response:
        self.refused += errors
        return _error(400, 50035, "Invalid Form Body: " + "; ".join(errors))


def _post_refusal(place: Place | None) -> web.Response | None:
    if place is None:
        return _error(404, 10003, "Unknown Channel")
    if place.refusal:
        return _error(403, place.refusal, "Missing Access" if place.refusal == 50001 else "Missing Permissions")
    return _error(403, 50083, "Thread is archived") if place.locked else None


async def _fail(request: web.Request, fault: Fault) -> web.StreamResponse:
    match fault:
        case Answers(status=status, code=code):
            return _error(status, code, "no")
        case Limited(after_s=after):
            body = {"message": "You are being rate limited.", "retry_after": after, "global": False}
            headers = {"Via": "1.1 fake", "Retry-After": str(round(after)), "X-RateLimit-Scope": "user"}
            return _json(body, status=429, headers=headers)
        case Page():
            return web.Response(text="<html>busy</html>", content_type="text/html")
        case Stalls():
            await asyncio.sleep(30)
        case Lost():
            pass
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def _json(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    # discord.py takes a body for JSON only when the type comes without a charset, as Discord's does.
    given = {"Content-Type": "application/json"} | (headers or {})
    return web.Response(body=json.dumps(body).encode(), status=status, headers=given)


def _error(status: int, code: int, message: str) -> web.Response:
    return _json({"message": message, "code": code}, status=status)


def _text(body: Json) -> str:
    embeds = body.get("embeds") or []
    return "\n".join([body.get("content") or "", *(embed.get("description", "") for embed in embeds)])


async def _body(request: web.Request) -> Json:
    """The JSON of a request; of one with files (multipart, ``payload_json``) with their bytes by name."""
    if not request.can_read_body:
        return {}
    if request.content_type != "multipart/form-data":
        body: Json = await request.json()
        return body
    body, files = {}, {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.name == "payload_json":
            body = await part.json() or {}
        else:
            files[part.filename or ""] = bytes(await part.read())
    return body | {"files": files}
