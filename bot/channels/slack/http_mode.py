"""HTTP mode: Slack sends its events to ``/slack/events``.

Anybody can reach that address. So what came is bounded and its signature checked before a byte of it is parsed; Bolt
then checks signature and five minutes once more.
"""

import re

import structlog
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.channels.bodies import NotTakenError, bounded_body

log = structlog.get_logger()

PATH = "/slack/events"
MOST_BYTES = 1_000_000
"""Above this no body is read: the longest message that Slack allows makes an event of some hundred kilobytes."""

_STAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")
_UNPARSED = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What Bolt raises when a body has not the shape of anything that Slack sends."""


def slack_routes(app: AsyncApp, signing_secret: str) -> list[Route]:
    """The routes for Hero's web server.

    Args:
        app: what a request is handed to.
        signing_secret: what Slack signs with; without one nothing is taken.
    """
    verifier = SignatureVerifier(signing_secret) if signing_secret.strip() else None

    async def events(request: Request) -> Response:
        try:
            body = await bounded_body(request, MOST_BYTES)
            _check_signature(verifier, request, body)
            asked = _parsed(request, body)
        except NotTakenError as error:
            log.warning("slack_request_refused", status=error.status, reason=str(error))
            return error.response()
        return to_starlette_response(await app.async_dispatch(asked))

    return [Route(PATH, events, methods=["POST"])]


def _check_signature(verifier: SignatureVerifier | None, request: Request, body: bytes) -> None:
    stamp = request.headers.get("x-slack-request-timestamp", "")
    signature = request.headers.get("x-slack-signature", "")
    # The verifier raises at a stamp that is no number, at letters outside ASCII and at a body that is not UTF-8.
    is_sound = _STAMP.fullmatch(stamp) and _SIGNATURE.fullmatch(signature) and _is_text(body)
    if verifier is None or not is_sound or not verifier.is_valid(body, stamp, signature):
        raise NotTakenError(401, "not signed by Slack just now")


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parsed(request: Request, body: bytes) -> AsyncBoltRequest:
    try:
        return to_async_bolt_request(request, body)
    except _UNPARSED as error:
        raise NotTakenError(400, f"not of a shape that Slack sends ({type(error).__name__})") from None
