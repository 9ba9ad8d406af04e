"""The Bolt app: listeners that store and then ack, and catch-alls so that nothing subscribed to stays unacked.

Bolt's own ways are closed where they lose events: ``process_before_response`` stores before the ack, the authorization
is Hero's own answer from auth.test (Bolt's lazy one acks and drops an event when it fails), and the filter of own
events is off, since their echo is the sign that the link lives.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from bot.channels.slack.api import Json, SlackApi
from bot.channels.slack.asking import Asking
from bot.channels.slack.inbound import SOURCE, Inbox
from bot.channels.slack.link import Link
from bot.errors import UnreachableError
from bot.settings import SlackSettings

log = structlog.get_logger()

_ANY = re.compile("")


def bolt_app(
    settings: SlackSettings, api: SlackApi, inbox: Inbox, link: Link, *, asking: Asking, logger: logging.Logger
) -> AsyncApp:
    """Build the app; it makes no connection."""
    app = AsyncApp(
        client=api.client,
        authorize=_authorizing(api),
        signing_secret=settings.signing_secret.get_secret_value() if settings.signing_secret else "",
        process_before_response=True,
        ignoring_self_events_enabled=False,
        request_verification_enabled=settings.mode == "http",
        logger=logger,
        name="hero",
    )

    async def note_life(next: Callable[[], Awaitable[None]]) -> None:  # noqa: A002 - Bolt finds arguments by these names
        link.heard()
        await next()

    async def take_event(event: Json) -> None:
        await inbox.event(event)

    async def take_click(ack: AsyncAck, body: Json) -> None:
        await inbox.click(body)
        await ack()

    async def take_command(ack: AsyncAck, body: Json) -> None:
        inbox.ready()
        if not await asking.opens_form(body):
            await inbox.command(body)
        await ack()

    async def take_form(ack: AsyncAck, body: Json) -> None:
        await inbox.form(body)
        await ack()

    async def pass_by(ack: AsyncAck) -> None:
        await ack()

    async def not_taken(error: Exception) -> BoltResponse:
        log.warning("slack_event_not_taken", reason=str(error)[:300], kind=type(error).__name__)
        return BoltResponse(status=503)

    app.use(note_life)
    app.event(_ANY)(take_event)
    app.action(_ANY)(take_click)
    app.command(_ANY)(take_command)
    app.view(_ANY)(take_form)
    app.view_closed(_ANY)(pass_by)
    for others in (app.shortcut, app.options):
        others(_ANY)(pass_by)
    app.error(not_taken)
    return app


def _authorizing(api: SlackApi) -> Callable[..., Awaitable[AuthorizeResult]]:
    async def authorize(**_who: Any) -> AuthorizeResult:
        me = api.known_me
        if me is None:
            raise UnreachableError(SOURCE, "Hero does not listen yet; Slack sends it again")
        return AuthorizeResult(
            enterprise_id=me.enterprise_id,
            team_id=me.team_id,
            bot_id=me.bot_id,
            bot_user_id=me.user_id,
            bot_token=api.client.token,
        )

    return authorize
