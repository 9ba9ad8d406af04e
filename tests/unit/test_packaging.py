"""The promises of the locks and of the Dockerfile."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-dev.lock")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(lock: str) -> dict[str, str]:
    """Each pinned package of a lock, in its normal form, with its version, marker and hashes."""
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text())
    return {
        normal(entry): re.sub(r"[\s\\]+", " ", re.sub(r"(?m)^\s*#.*", "", entry)).strip()
        for entry in entries
        if not entry.startswith("#")
    }


def normal(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_is_pinned_with_hashes_and_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()

    unhashed = [name for name, pin in pins(lock).items() if not re.search(r"==\S+.* --hash=sha256:[0-9a-f]{64}\b", pin)]

    assert unhashed == []
    assert "://" not in text
    assert not re.search(r"(?m)^ *-(?!-hash=)", text), "an option, such as an index, is in the lock"


@pytest.mark.parametrize(
    ("lock", "direct"),
    [
        ("requirements.lock", PROJECT["project"]["dependencies"]),
        ("requirements-build.lock", PROJECT["build-system"]["requires"]),
        ("requirements-dev.lock", [*PROJECT["dependency-groups"]["test"], *PROJECT["dependency-groups"]["dev"]]),
    ],
)
def test_a_lock_holds_all_that_pyproject_asks_for(lock: str, direct: list[str]) -> None:
    missing = {normal(requirement) for requirement in direct} - pins(lock).keys()

    assert missing == set(), "run scripts/lock"


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-build.lock"])
def test_the_gate_tests_the_versions_that_the_image_ships(lock: str) -> None:
    tested = pins("requirements-dev.lock")

    other = {name for name, pin in pins(lock).items() if tested.get(name) != pin}

    assert other == set(), "run scripts/lock"


def instructions(keyword: str) -> list[str]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.removeprefix(keyword).strip() for line in text.splitlines() if line.startswith(f"{keyword} ")]


def test_the_image_starts_hero_itself_as_a_numbered_user_so_that_signals_arrive() -> None:
    assert [json.loads(line) for line in instructions("ENTRYPOINT")] == [["hero"]]
    assert [json.loads(line) for line in instructions("CMD")] == [["run"]]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert all(re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) for user in instructions("USER"))
    assert len(instructions("USER")) == 1


def test_the_image_is_built_from_hashed_packages_and_only_from_files_that_the_build_may_see() -> None:
    admitted = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = {name for line in instructions("COPY") if "--from=" not in line for name in line.split()[:-1]}

    assert copied == admitted
    assert all((ROOT / name).exists() for name in copied)
    for line in instructions("RUN"):
        for install in re.findall(r"pip install [^&]*", line):
            assert (
                "--require-hashes" in install or "--no-index --no-deps" in install or "--no-deps --no-index" in install
            )


@contextmanager
def healthz(status: HTTPStatus) -> Iterator[int]:
    """A server whose /healthz answers with `status`; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else HTTPStatus.NOT_FOUND)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def probe(port: int) -> int:
    """Run the image's own health check here, behind a proxy that leads nowhere; its exit code."""
    [check] = instructions("HEALTHCHECK")
    program, *arguments = json.loads(check.partition("CMD")[2])
    assert program == "python"
    env = {key: value for key, value in os.environ.items() if key.lower() != "no_proxy"}
    return subprocess.run(
        [sys.executable, *arguments],
        env=env | {"HERO_BOT__HTTP": f"0.0.0.0:{port}", "http_proxy": "http://127.0.0.1:1"},
        capture_output=True,
        timeout=30,
        check=False,
    ).returncode


@pytest.mark.parametrize(("status", "exit_code"), [(HTTPStatus.OK, 0), (HTTPStatus.SERVICE_UNAVAILABLE, 1)])
def test_the_health_check_asks_the_bot_itself(status: HTTPStatus, exit_code: int) -> None:
    with healthz(status) as port:
        code = probe(port)

    assert code == exit_code


def test_the_health_check_fails_when_nothing_listens() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound but not listening, so nobody else can answer here

        code = probe(reserved.getsockname()[1])

    assert code == 1
