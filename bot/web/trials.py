"""Serves the reports of trials: pages, pictures and JSON as ``bot.reporting`` wrote them, and nothing else."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.errors import BusyError, DeadlineError
from bot.regular_files import open_regular
from bot.render.trial_page import TrialPages
from bot.reporting import COMPARISON, PAGE, PICTURE, is_name
from bot.threads import BoundedThreads

_HTML = "text/html; charset=utf-8"
_KINDS = {PAGE: _HTML, PICTURE: "image/png", COMPARISON: "application/json"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_DEADLINE = timedelta(seconds=10)
_THREADS = 4

type Answer = Callable[[Request], Awaitable[Response]]


def routes(directory: Path) -> tuple[BaseRoute, ...]:
    """Return the routes below ``/trials/``.

    Args:
        directory: where the reports are; it may not exist yet.
    """
    threads = BoundedThreads("reports over HTTP", _THREADS)
    pages = TrialPages()

    async def index(_: Request) -> Response:
        return await _answer(threads, _HTML, lambda: pages.index(_listed(directory)).encode())

    def file(name: str) -> Answer:
        async def answer(request: Request) -> Response:
            run, child = request.path_params["run"], request.path_params["child"]
            if not (is_name(run) and is_name(child)):
                return _refusal(HTTPStatus.NOT_FOUND)
            return await _answer(threads, _KINDS[name], lambda: _content(directory / run / child / name))

        return answer

    below = "/trials/{run}/{child}/"
    return (
        Route("/trials/", index),
        Route(below, file(PAGE)),
        Route(below + PICTURE, file(PICTURE)),
        Route(below + COMPARISON, file(COMPARISON)),
    )


async def _answer(threads: BoundedThreads, kind: str, read: Callable[[], bytes]) -> Response:
    try:
        content = await threads.call(read, deadline=_DEADLINE)
    except OSError:
        return _refusal(HTTPStatus.NOT_FOUND)
    except (BusyError, DeadlineError):
        return _refusal(HTTPStatus.SERVICE_UNAVAILABLE)
    return Response(content, media_type=kind, headers=_HEADERS)


def _refusal(status: HTTPStatus) -> Response:
    return Response(f"{status.phrase}\n", status, media_type="text/plain; charset=utf-8", headers=_HEADERS)


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _listed(directory: Path) -> tuple[tuple[str, str], ...]:
    """Return old run and child of each report, by name; none while there is no directory."""
    found = (page.parts[-3:-1] for page in directory.glob(f"*/*/{PAGE}"))
    return tuple(sorted((run, child) for run, child in found if is_name(run) and is_name(child)))
