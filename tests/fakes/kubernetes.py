"""A fake Kubernetes API server that lists pods: selectors, paging, authorisation, and every way of going wrong.

It speaks what kubernetes.io, "Kubernetes API concepts", documents: ``PodList`` in chunks of ``limit``, an opaque
``continue``, ``Status`` objects for errors, 410 ``Expired`` for a list that is too old. ``iris_pod`` lets the installed
Iris make the pod, and adds what the server and the kubelet write into it.
"""

import contextlib
import copy
import json
import socket
import ssl
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from iris.cluster.backends.k8s.tasks import _build_pod_manifest
from iris.testing.k8s import make_run_req, pod_config

TOKEN = "a-service-accounts-token"
CREATED = datetime(2026, 11, 29, 12, tzinfo=UTC)


def iris_pod(
    task_id: str,
    *,
    attempt: int = 0,
    phase: str = "Running",
    node: str | None = "node-1",
    terminated: dict[str, Any] | None = None,
    uid: str = "8b61dfda15e90dbe",
    created: datetime = CREATED,
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a pod of one attempt of a task, as Iris makes it and the API server tells it."""
    run_req = make_run_req(task_id, attempt, attempt_uid=uid)
    run_req.environment.env_vars["WANDB_API_KEY"] = "a-secret-in-a-pods-environment"
    pod: dict[str, Any] = _build_pod_manifest(run_req, pod_config(namespace="iris"))
    moment = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    pod["metadata"] |= {
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, pod["metadata"]["name"])),
        "creationTimestamp": moment,
    }
    if node is not None:
        pod["spec"]["nodeName"] = node
    state = {"terminated": terminated} if terminated else {"running": {}} if phase == "Running" else {"waiting": {}}
    pod["status"] = {
        "phase": phase,
        "startTime": moment,
        "containerStatuses": [
            {"name": "output-uploader", "restartCount": 0, "state": {"running": {}}},
            {"name": "task", "restartCount": 0, "state": state},
        ],
        **(status or {}),
    }
    return pod


class KubernetesApi:
    """The server under a test's hand; use it as a context manager.

    Attributes:
        pods: what there is in the namespace ``iris``.
        token: whom it lets in; None for anybody, as ``kubectl proxy`` does.
        page: how many pods it puts on a page at most, whatever is asked for.
        on_page: called with the number of the question, from 1; returns ``(status, body)`` to answer otherwise.
        questions: the paths with their queries, in order.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.pods: list[dict[str, Any]] = []
        self.token: str | None = TOKEN
        self.page = 250
        self.on_page: Callable[[int], tuple[int, Any] | None] = lambda _number: None
        self.questions: list[dict[str, str]] = []
        self.released = threading.Event()
        self._lists: dict[str, list[dict[str, Any]]] = {}
        self._server = _Server(self, tls)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.released.set()
        self._server.close()

    def answer(self, path: str, authorization: str) -> tuple[int, Any]:
        """Answer one GET with a status and a JSON body, or raw bytes."""
        parts = urlsplit(path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.questions.append({"path": parts.path, **query})
        if self.token is not None and authorization != f"Bearer {self.token}":
            return refusal(401, "Unauthorized", "Unauthorized")
        instead = self.on_page(len(self.questions))
        if instead is not None:
            return instead
        prefix, _, namespace = parts.path.rpartition("/api/v1/namespaces/")
        if prefix or not namespace.endswith("/pods"):
            return refusal(404, "NotFound", "the server could not find the requested resource")
        matching = [pod for pod in self.pods if _is_picked(pod, query.get("labelSelector", ""))]
        return self._chunk(matching if namespace == "iris/pods" else [], query)

    def forget_lists(self) -> None:
        """Let every list that was begun expire."""
        self._lists.clear()

    def _chunk(self, matching: list[dict[str, Any]], query: dict[str, str]) -> tuple[int, Any]:
        begun = query.get("continue")
        if begun is not None and begun not in self._lists:
            return refusal(410, "Expired", "The provided continue parameter is too old to display a consistent list")
        left = copy.deepcopy(matching) if begun is None else self._lists.pop(begun)
        size = min(int(query.get("limit", "500")), self.page)
        shown, rest = left[:size], left[size:]
        metadata: dict[str, Any] = {"resourceVersion": "10245"}
        if rest:
            metadata |= {"continue": f"token-{len(self.questions)}", "remainingItemCount": len(rest)}
            self._lists[metadata["continue"]] = rest
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": shown}


def refusal(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    """Return an error as the API server words it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return code, {**body, "code": code}


def _is_picked(pod: dict[str, Any], selector: str) -> bool:
    labels = pod["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, _, value in (each.partition("=") for each in selector.split(",")))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, api: KubernetesApi, tls: ssl.SSLContext | None) -> None:
        self.api = api
        self._tls = tls
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-kubernetes", daemon=True
        )
        self._thread.start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Do the handshake here, in the connection's own thread; a client that breaks it off is part of the tests."""
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        with contextlib.suppress(OSError), self._tls.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    connection: socket.socket

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Keep quiet; the fake records its questions."""

    def do_GET(self) -> None:
        status, body = self.server.api.answer(self.path, self.headers.get("Authorization") or "")
        if status == 0:
            self.server.api.released.wait()
            self.close_connection = True
            return
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)
