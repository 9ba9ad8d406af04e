"""The network side of the fake W&B: a threaded endpoint that can be ill, slow, silent or busy on purpose."""

import contextlib
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


STALLED = Reply(0, None)
"""No answer at all; the connection stays open until the server ends."""


def expected_authorization(key: str) -> str:
    return "Basic " + b64encode(f"api:{key}".encode()).decode()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        respond: Callable[[str, Any], Reply],
        complain: Callable[[str], None],
        stream: Callable[[str, str, Any], Reply],
    ) -> None:
        self.respond = respond
        self.stream = stream
        self.released = threading.Event()
        self._complain = complain
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-wandb", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self.shutdown()
        self._thread.join()
        with self._guard:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def hold(self, connection: socket.socket) -> None:
        with self._guard:
            self._connections.add(connection)

    def forget(self, connection: socket.socket) -> None:
        with self._guard:
            self._connections.discard(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests; anything else is a fault of the fake."""
        import sys  # noqa: PLC0415 - only for the exception in flight

        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self._complain(f"the fake W&B itself broke: {error!r}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.hold(self.connection)

    def finish(self) -> None:
        self.server.forget(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Keep quiet; the fake records its requests."""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.endswith("/file_stream"):
            self._send(self.server.stream(self.headers.get("Authorization") or "", self.path, json.loads(content)))
            return
        if self.path != "/graphql":
            self._send(Reply(HTTPStatus.NOT_FOUND, {"error": "not found"}))
            return
        reply = self.server.respond(self.headers.get("Authorization") or "", json.loads(content))
        if reply is STALLED:
            self.server.released.wait()
            self.close_connection = True
            return
        self._send(reply)

    def do_PUT(self) -> None:
        """Take a file of a run; nobody reads it."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._send(Reply(HTTPStatus.OK, {}))

    def _send(self, reply: Reply) -> None:
        content = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
