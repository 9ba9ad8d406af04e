"""The small HTTP server: health for whatever starts and watches Hero, status for scripts, Slack's HTTP mode."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator

import uvicorn
from pydantic import AwareDatetime
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot.model.value import Value


class Health(Value):
    """How Hero itself is; says nothing about the runs."""

    is_well: bool
    """False: whoever started Hero should look or start it anew."""
    at: AwareDatetime
    store: str
    """``ok``, or why the database refuses."""
    channels: dict[str, str]
    """By channel: ``ok``, or what is wrong with the link to people, with the fix."""
    watched: int
    late: tuple[str, ...]
    """Runs whose check is overdue."""
    lease: str
    """``held``; ``standing by`` while another Hero is at work; ``ran out`` while the database lets none be renewed."""
    counts: dict[str, int] = {}


type AskHealth = Callable[[], Awaitable[Health]]


def web_app(health: AskHealth, further: tuple[BaseRoute, ...]) -> Starlette:
    """Return the application.

    Args:
        health: asked at every request.
        further: routes of channels that are reached over HTTP.
    """

    async def healthz(_: Request) -> Response:
        answer = await health()
        return JSONResponse(answer.model_dump(mode="json"), status_code=200 if answer.is_well else 503)

    return Starlette(routes=[Route("/healthz", healthz), *further])


class _QuietServer(uvicorn.Server):
    """A server that leaves the process's signals to ``app.py``."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def web_server(app: Starlette, address: str) -> uvicorn.Server:
    """Return a server for ``HOST:PORT``, not yet started; ``serve()`` runs it."""
    host, _, port = address.rpartition(":")
    config = uvicorn.Config(
        app,
        host=host.strip("[]"),
        port=int(port),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    return _QuietServer(config)
