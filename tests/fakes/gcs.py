"""Google's object store, as far as Hero asks it: buckets with a location and rules, listings, objects; and its no.

The shapes of the JSON API, version 1. What an account may do is told bucket by bucket: a store that answers everybody
could not show how Hero takes a 403.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from fsspec.registry import _registry
from gcsfs.core import GCSFileSystem


@dataclass
class FakeBucket:
    """One bucket, and what the asking account may not do with it."""

    location: str = "US-EAST5"
    rules: list[dict[str, Any]] = field(default_factory=list)
    objects: dict[str, bytes] = field(default_factory=dict)
    may_list: bool = True
    may_get: bool = True
    """``storage.buckets.get``, which tells location and rules."""
    is_ill: bool = False


class FakeGoogleStorage:
    """The world behind the server."""

    def __init__(self) -> None:
        self.buckets: dict[str, FakeBucket] = {}
        self.url = ""

    @property
    def options(self) -> dict[str, Any]:
        return {"endpoint_url": self.url, "token": "anon", "project": "p"}

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        """Return status and body for a GET."""
        parts = [unquote(each) for each in path.removeprefix("/storage/v1/b/").split("/")]
        bucket = self.buckets.get(parts[0])
        if bucket is None:
            return _error(404, "The specified bucket does not exist.")
        if bucket.is_ill:
            return _error(400, "something else is wrong")
        match parts[1:]:
            case []:
                return self._bucket(parts[0], bucket)
            case ["o"]:
                return self._listing(parts[0], bucket, query)
            case ["o", name]:
                return self._object(parts[0], bucket, name, query)
            case _:
                return _error(404, "no such path")

    def _bucket(self, name: str, bucket: FakeBucket) -> tuple[int, bytes]:
        if not bucket.may_get:
            return _error(403, "anonymous does not have storage.buckets.get access to the Google Cloud Storage bucket.")
        told: dict[str, Any] = {"kind": "storage#bucket", "name": name, "location": bucket.location}
        if bucket.rules:
            told["lifecycle"] = {"rule": bucket.rules}
        return 200, json.dumps(told).encode()

    def _listing(self, name: str, bucket: FakeBucket, query: dict[str, str]) -> tuple[int, bytes]:
        if not bucket.may_list:
            return _error(
                403, "anonymous does not have storage.objects.list access to the Google Cloud Storage bucket."
            )
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        items: list[dict[str, Any]] = []
        prefixes: dict[str, None] = {}
        for key in sorted(bucket.objects):
            if not key.startswith(prefix):
                continue
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if found:
                prefixes[f"{prefix}{head}{delimiter}"] = None
            else:
                items.append(_item(name, key, bucket.objects[key]))
        told = {"kind": "storage#objects", "items": items[: int(query.get("maxResults", 1000))]}
        return 200, json.dumps({**told, "prefixes": list(prefixes)}).encode()

    def _object(self, name: str, bucket: FakeBucket, key: str, query: dict[str, str]) -> tuple[int, bytes]:
        if not bucket.may_list:
            return _error(403, "anonymous does not have storage.objects.get access to the Google Cloud Storage object.")
        if key not in bucket.objects:
            return _error(404, f"No such object: {name}/{key}")
        content = bucket.objects[key]
        return 200, content if query.get("alt") == "media" else json.dumps(_item(name, key, content)).encode()


@contextmanager
def google_storage() -> Iterator[FakeGoogleStorage]:
    """Run the store as long as the block.

    gcsfs is made to use its plain class meanwhile: the other one asks for a bucket's layout over gRPC first, which
    nobody answers here, and takes a minute to give that up.
    """
    world = FakeGoogleStorage()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            status, body = world.answer(url.path.removeprefix("/download"), query)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        world.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(_registry, "gs", GCSFileSystem)
                yield world
        finally:
            server.shutdown()
            thread.join()


def _item(bucket: str, key: str, content: bytes) -> dict[str, Any]:
    return {
        "kind": "storage#object",
        "bucket": bucket,
        "name": key,
        "size": str(len(content)),
        "generation": "1",
        "updated": "2026-11-29T01:00:00.000Z",
        "timeCreated": "2026-11-29T01:00:00.000Z",
    }


def _error(status: int, text: str) -> tuple[int, bytes]:
    return status, json.dumps({"error": {"code": status, "message": text}}).encode()
