"""A real S3 protocol on a port of its own: moto's server, in a process of its own since it brings its own warnings."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest

_RUNNING = re.compile(rb"Running on (http://\S+)")
KEYS = {"key": "testing", "secret": "testing"}


class S3Server:
    """Where it listens, and how a test makes it refuse."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.options: dict[str, Any] = {
            "endpoint_url": url,
            "client_kwargs": {"region_name": "us-east-1"},
            "config_kwargs": {"retries": {"max_attempts": 1}},
            **KEYS,
        }

    @property
    def files(self) -> Any:
        return fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True, **self.options)

    def make(self, bucket: str, *, region: str = "us-east-1", rules: list[dict[str, Any]] | None = None) -> None:
        """Make a bucket, with its lifecycle rules."""
        where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        self.files.call_s3("create_bucket", Bucket=bucket, **where)
        if rules:
            lifecycle = {"Rules": rules}
            self.files.call_s3("put_bucket_lifecycle_configuration", Bucket=bucket, LifecycleConfiguration=lifecycle)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Know none of the keys, as after they were taken away."""
        self._post("reset-auth", b"0")
        try:
            yield
        finally:
            self._post("reset-auth", b"inf")

    def empty(self) -> None:
        """Forget every bucket."""
        self._post("reset", b"")

    def _post(self, what: str, body: bytes) -> None:
        plain = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.url}/moto-api/{what}", data=body, headers=plain, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run the server as long as the block."""
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            said = b""
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if found := _RUNNING.search(line):
                    yield S3Server(found[1].decode())
                    return
            msg = f"the S3 server did not start: {said.decode(errors='replace')[-2000:]}"
            raise RuntimeError(msg)
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def s3_process() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(s3_process: S3Server) -> S3Server:
    """An S3 without buckets."""
    s3_process.empty()
    return s3_process
