"""HTTP mode: Slack sends its events to ``/slack/events``; Bolt checks each signature and its five minutes."""

from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PATH = "/slack/events"


def slack_routes(app: AsyncApp) -> list[Route]:
    """The routes for Hero's web server."""
    handler = AsyncSlackRequestHandler(app)

    async def events(request: Request) -> Response:
        return await handler.handle(request)

    return [Route(PATH, events, methods=["POST"])]
