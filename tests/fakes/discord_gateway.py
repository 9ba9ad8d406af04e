"""Discord's gateway, version 10: hello, identify, ready, heartbeats, resume with replay, and the ways it ends."""

import asyncio
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes.discord_world import APPLICATION, GUILD, Json, World

_MESSAGE_CONTENT = 1 << 15


@dataclass
class Session:
    """What was sent to one client, kept for its resume."""

    id: str
    reads_content: bool
    sent: list[Json] = field(default_factory=list)
    socket: "Socket | None" = None


@dataclass(eq=False)
class Socket:
    ws: web.WebSocketResponse
    transport: Any
    packer: Any = None
    is_frozen: bool = False
    """Half-open: nothing is answered and nothing is sent, yet it stands."""

    async def send(self, payload: Json) -> None:
        if self.is_frozen or self.ws.closed:
            return
        text = json.dumps(payload)
        try:
            if self.packer is None:
                await self.ws.send_str(text)
            else:
                await self.ws.send_bytes(self.packer.compress(text.encode()) + self.packer.flush(zlib.Z_SYNC_FLUSH))
        except ConnectionError:
            return


class Gateway:
    """All sessions; the newest is the one that a test means."""

    def __init__(self, world: World, token: str) -> None:
        self._world = world
        self.token = token
        self.url = ""
        self.heartbeat_ms = 20_000
        self.sessions: dict[str, Session] = {}
        self._sockets: set[Socket] = set()
        self.identified = 0
        self.resumed = 0
        self.replays_all = False
        """Whether a resume brings everything once more, also what was seen."""
        self.refuses_connections = False
        self.is_deaf = False
        """Whether no event reaches anybody, though heartbeats are answered."""

    @property
    def session(self) -> Session:
        return next(reversed(self.sessions.values()))

    async def emit(self, kind: str, data: Json, bare: Json | None = None) -> None:
        """Tell every session; ``bare`` is what one without message content is told."""
        if self.is_deaf:
            return
        for session in self.sessions.values():
            told = data if session.reads_content or bare is None else bare
            payload = {"op": 0, "t": kind, "s": len(session.sent) + 1, "d": told}
            session.sent.append(payload)
            if session.socket is not None:
                await session.socket.send(payload)

    def drop(self) -> None:
        """Cut the connection without a word."""
        socket = self.session.socket
        if socket is not None and socket.transport is not None:
            socket.transport.abort()

    def drop_all(self) -> None:
        """Cut every connection, also of sessions that are forgotten."""
        for socket in tuple(self._sockets):
            socket.transport.abort()

    def freeze(self) -> None:
        if self.session.socket is not None:
            self.session.socket.is_frozen = True

    async def say(self, op: int, data: Any = None) -> None:
        """Send an opcode: 7 to reconnect, 9 for an invalid session."""
        if self.session.socket is not None:
            await self.session.socket.send({"op": op, "d": data, "t": None, "s": None})

    async def close(self) -> None:
        for session in self.sessions.values():
            if session.socket is not None:
                await session.socket.ws.close(code=1001)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if self.refuses_connections:
            return web.Response(status=503)
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        packer = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        socket = Socket(ws, request.transport, packer)
        self._sockets.add(socket)
        await socket.send({"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}, "t": None, "s": None})
        try:
            async for frame in ws:
                if frame.type is WSMsgType.TEXT and not socket.is_frozen:
                    await self._take(socket, json.loads(frame.data))
                if socket.is_frozen:
                    await asyncio.Event().wait()
        finally:
            self._sockets.discard(socket)
            for session in self.sessions.values():
                if session.socket is socket:
                    session.socket = None
        return ws

    async def _take(self, socket: Socket, frame: Json) -> None:
        match frame:
            case {"op": 1}:
                await socket.send({"op": 11, "d": None, "t": None, "s": None})
            case {"op": 2, "d": given}:
                await self._identify(socket, given)
            case {"op": 6, "d": given}:
                await self._resume(socket, given)
            case _:
                pass

    async def _identify(self, socket: Socket, given: Json) -> None:
        self.identified += 1
        if given["token"] != self.token:
            await socket.ws.close(code=4004, message=b"Authentication failed.")
            return
        reads_content = bool(given["intents"] & _MESSAGE_CONTENT)
        if reads_content and not self._world.reads_content:
            await socket.ws.close(code=4014, message=b"Disallowed intent(s).")
            return
        session = Session(f"session-{self.identified}", reads_content, socket=socket)
        self.sessions = {session.id: session}
        ready = {
            "v": 10,
            "user": self._world.me.as_json(),
            "guilds": [{"id": GUILD, "unavailable": True}],
            "session_id": session.id,
            "resume_gateway_url": self.url,
            "application": {"id": APPLICATION, "flags": 0},
            "shard": [0, 1],
        }
        await self.emit_to(session, "READY", ready)
        await self.emit_to(session, "GUILD_CREATE", self._guild())

    async def emit_to(self, session: Session, kind: str, data: Json) -> None:
        payload = {"op": 0, "t": kind, "s": len(session.sent) + 1, "d": data}
        session.sent.append(payload)
        if session.socket is not None:
            await session.socket.send(payload)

    async def _resume(self, socket: Socket, given: Json) -> None:
        session = self.sessions.get(given["session_id"])
        if session is None or given["token"] != self.token:
            await socket.send({"op": 9, "d": False, "t": None, "s": None})
            return
        self.resumed += 1
        session.socket = socket
        seen = 2 if self.replays_all else given["seq"]
        for payload in session.sent[seen:]:
            await socket.send(payload)
        await self.emit_to(session, "RESUMED", {"_trace": []})

    def _guild(self) -> Json:
        everyone = {"id": GUILD, "name": "@everyone", "permissions": "0", "position": 0, "color": 0, "hoist": False}
        everyone |= {"managed": False, "mentionable": False, "flags": 0, "colors": {"primary_color": 0}}
        places = self._world.places.values()
        return {
            "id": GUILD,
            "name": "lab",
            "owner_id": "1",
            "channels": [place.as_json() for place in places if place.parent is None],
            "threads": [place.as_json() for place in places if place.parent and not place.archived],
            "roles": [everyone],
            "members": [],
            "member_count": 3,
            "emojis": [],
            "features": [],
            "preferred_locale": "en-US",
        }
