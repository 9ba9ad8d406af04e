"""The HTTP side of the fake GitHub: threads, connections that can be cut, answers written badly on purpose."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.fakes.github_exchange import Answer


@dataclass(frozen=True, slots=True)
class Raw:
    """A request as it came in; `body` is None when there was none, and text when it was no JSON."""

    verb: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """How to put an answer on the wire. "lost" resets the connection instead."""

    answer: Answer
    manner: Literal["whole", "lost", "malformed", "cut_off"] = "whole"


class Server(ThreadingHTTPServer):
    """One listening port. `close` hangs up on everybody and joins the threads, and leaves the port to a successor."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 64

    def __init__(
        self, port: int, respond: Callable[[Raw], Reply], now: Callable[[], datetime], complain: Callable[[str], None]
    ) -> None:
        self.respond = respond
        self.now = now
        self._complain = complain
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._closing = False
        super().__init__(("127.0.0.1", port), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-github", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        with self._guard:
            self._closing = True
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def adopt(self, connection: socket.socket) -> bool:
        with self._guard:
            if not self._closing:
                self._connections.add(connection)
            return not self._closing

    def forget(self, connection: socket.socket) -> None:
        with self._guard:
            self._connections.discard(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests; anything else is a fault of the fake, and must fail them."""
        import sys  # noqa: PLC0415 - only for the exception in flight

        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self._complain(f"the fake GitHub itself broke: {error!r}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes, and would wait 40 ms for each other
    server: Server

    def setup(self) -> None:
        super().setup()
        if not self.server.adopt(self.connection):
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        self.server.forget(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(self.server.now(), usegmt=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Keep quiet; the fake records its requests."""

    def _serve(self) -> None:
        raw = Raw(
            verb=self.command,
            target=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self._body(),
        )
        reply = self.server.respond(raw)
        if reply.manner == "lost":
            self._reset()
            return
        content = reply.answer.encoded()
        promised = len(content)
        if reply.manner != "whole":
            content = content[: promised // 2]
            promised = len(content) if reply.manner == "malformed" else promised
        self.send_response(reply.answer.status)
        for name, value in reply.answer.headers.items():
            self.send_header(name, value)
        if content:
            kind = "application/json" if reply.answer.html is None else "text/html"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(content)
        if reply.manner == "cut_off":
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 - looked up by these names

    def _body(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        if not length:
            return None
        content = self.rfile.read(length)
        try:
            return json.loads(content)
        except ValueError:
            return content.decode(errors="replace")

    def _reset(self) -> None:
        """Hang up with RST: the client sees a reset, not the orderly end of a connection."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
