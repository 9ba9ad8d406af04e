"""Reports over HTTP: what is there, as what it is, and nothing else of the disk."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from bot.web.trials import routes

SECRET = b"outside the directory"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "reports" / "hero-a" / "hero-b"
    place.mkdir(parents=True)
    (place / "index.html").write_text("<!DOCTYPE html><p>a page")
    (place / "overlay.png").write_bytes(b"\x89PNG")
    (place / "comparison.json").write_text('{"outcome": null}')
    (place / ".index.html.half").write_text("half a page")
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "index.html").write_bytes(SECRET)
    (tmp_path / "reports" / "index.html").write_bytes(SECRET)
    (tmp_path / "reports" / "hero-a" / "index.html").write_bytes(SECRET)
    return tmp_path / "reports"


def client_of(directory: Path) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=Starlette(routes=routes(directory)))
    return httpx.AsyncClient(transport=transport, base_url="http://hero.example")


@pytest.fixture
async def client(directory: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(directory) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "kind", "content"),
    [
        ("/trials/hero-a/hero-b/", "text/html; charset=utf-8", b"a page"),
        ("/trials/hero-a/hero-b/overlay.png", "image/png", b"\x89PNG"),
        ("/trials/hero-a/hero-b/comparison.json", "application/json", b'"outcome"'),
        ("/trials/", "text/html; charset=utf-8", b'<a href="hero-a/hero-b/">'),
    ],
)
async def test_a_report_is_served_as_what_it_is_and_kept_by_nobody(
    client: httpx.AsyncClient, path: str, kind: str, content: bytes
) -> None:
    answer = await client.get(path)

    assert answer.status_code == httpx.codes.OK
    assert answer.headers["content-type"] == kind
    assert content in answer.content
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; img-src 'self'; style-src 'unsafe-inline'")


@pytest.mark.parametrize(
    "path",
    [
        "/trials/hero-a/hero-c/",
        "/trials/hero-a/",
        "/trials/hero-a/hero-b/index.html",
        "/trials/hero-a/hero-b/.index.html.half",
        "/trials/hero-a/hero-b/other.png",
        "/trials/../secret",
        "/trials/%2e%2e/%2e%2e/",
        "/trials/hero-a/%2e%2e/",
        "/trials/./hero-a/",
        "/trials/hero-a/%2e%2e%2f%2e%2e/",
        "/trials/hero-a/..%5c../",
        "/trials/hero-a%00/hero-b/",
        "/trials/hero-a/hero-b%0a/",
    ],
)
async def test_anything_else_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert answer.status_code == httpx.codes.NOT_FOUND
    assert SECRET not in answer.content


async def test_a_report_is_only_read(client: httpx.AsyncClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = await client.request(method, "/trials/hero-a/hero-b/")
        assert answer.status_code == httpx.codes.METHOD_NOT_ALLOWED


async def test_a_pipe_in_the_place_of_a_page_holds_nobody_up(client: httpx.AsyncClient, directory: Path) -> None:
    import os  # noqa: PLC0415 - for this test alone

    (directory / "hero-a" / "piped").mkdir()
    os.mkfifo(directory / "hero-a" / "piped" / "index.html")

    assert (await client.get("/trials/hero-a/piped/")).status_code == httpx.codes.NOT_FOUND


async def test_the_list_is_empty_before_the_first_report(tmp_path: Path) -> None:
    async with client_of(tmp_path / "not there yet") as client:
        answer = await client.get("/trials/")

    assert answer.status_code == httpx.codes.OK
    assert b"No report of a trial has been made yet." in answer.content


PART = st.sampled_from(
    ["..", ".", "%2e%2e", "%2F", "hero-a", "hero-b", "index.html", "secret", "%00", "a", "\\"]
) | st.text(alphabet=st.characters(codec="utf-8", exclude_characters="?#"), max_size=8)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PART, max_size=6), ends=st.booleans())
async def test_no_path_leads_out_of_the_directory(directory: Path, parts: list[str], ends: bool) -> None:
    path = "/trials/" + "/".join(parts) + ("/" if ends else "")
    app = Starlette(routes=routes(directory))
    seen: list[bytes] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        body = message.get("body", b"")
        assert isinstance(body, bytes)
        seen.append(body)

    # The path as a server hands it over, decoded: a client would tidy the dots away before they arrive.
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    await app({**scope, "headers": [], "scheme": "http", "server": ("hero.example", 80)}, receive, send)  # type: ignore[arg-type]

    assert SECRET not in b"".join(seen)
    assert b"half a page" not in b"".join(seen)
