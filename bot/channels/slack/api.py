"""Calls to Slack's Web API: one attempt each, with a deadline, and failures that tell what is known of them.

The SDK's default retries say a message twice after a lost answer; they are off, and whoever sends looks for its own
marker instead.
"""

import asyncio
import logging
import math
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import ServiceError
from bot.model.value import Value
from bot.settings import SlackSettings

type Json = dict[str, Any]

# Slack says of these that part of the work may have been done (chat.postMessage, "Errors").
_ILL_CODES = frozenset({"fatal_error", "internal_error", "service_unavailable", "request_timeout"})
RATE_CODES = frozenset({"ratelimited", "rate_limited"})
_HTTP_OK = 200
_HTTP_TOO_MANY = 429
_HTTP_ILL = 500

# The SDKs tell of every retry with a traceback; Hero logs the edges itself.
QUIET = logging.getLogger("bot.channels.slack.sdk")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class CallError(ServiceError):
    """A call without a good answer.

    Attributes:
        code: Slack's own word for it; empty when no answer with one came.
        retry_after: what Slack asked to wait for.
        is_uncertain: whether it may have been carried out all the same.
        missing: the scope that was missing, as far as Slack said.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: str = "",
        retry_after: timedelta | None = None,
        is_uncertain: bool = False,
        missing: str = "",
    ) -> None:
        super().__init__("slack", detail)
        self.code = code
        self.retry_after = retry_after
        self.is_uncertain = is_uncertain
        self.missing = missing


class Me(Value):
    """Who Hero is in its workspace."""

    user_id: str
    bot_id: str
    team_id: str
    enterprise_id: str | None
    url: str
    scopes: frozenset[str]

    def link(self, channel: str, ts: str, root: str = "") -> str:
        """The address of a message, as chat.getPermalink builds it."""
        thread = f"?thread_ts={root}&cid={channel}" if root and root != ts else ""
        return f"{self.url}archives/{channel}/p{ts.replace('.', '')}{thread}"


class SlackApi:
    """The workspace, reached with the bot token."""

    def __init__(self, settings: SlackSettings) -> None:
        self._deadline = settings.deadline
        self.client = AsyncWebClient(
            token=settings.bot_token.get_secret_value() if settings.bot_token else "",
            base_url=settings.base_url,
            timeout=math.ceil(settings.deadline.total_seconds()) + 1,  # the second fence; ours is the first
            retry_handlers=[],
            logger=QUIET,
        )
        self._me: Me | None = None

    async def ask(self, call: Coroutine[Any, Any, AsyncSlackResponse]) -> AsyncSlackResponse:
        """Await one call.

        Raises:
            CallError: for every way in which no good answer came.
        """
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                return await call
        except TimeoutError as error:
            raise CallError(f"no answer in {self._deadline}", is_uncertain=True) from error
        except aiohttp.ClientConnectorError as error:
            raise CallError(f"no connection: {error.os_error.strerror or type(error).__name__}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise CallError(f"the connection was lost: {type(error).__name__}", is_uncertain=True) from error
        except SlackApiError as error:
            raise _refusal(error.response) from error
        except (SlackClientError, AttributeError, ValueError) as error:
            # An answer of another type than JSON (a proxy's page) makes the SDK stumble over itself.
            raise CallError("an answer that is not Slack's", is_uncertain=True) from error

    async def me(self) -> Me:
        """Who Hero is, asked once.

        Raises:
            CallError: Slack was not reached, or does not take the token.
        """
        if self._me is None:
            answer = await self.ask(self.client.auth_test())
            self._me = _me(answer)
        return self._me

    @property
    def known_me(self) -> Me | None:
        """Who Hero is, if Slack was asked before."""
        return self._me


def _me(answer: AsyncSlackResponse) -> Me:
    given = {key: str(answer.get(key) or "") for key in ("user_id", "bot_id", "team_id", "url")}
    if lacking := [key for key, value in given.items() if not value]:
        raise CallError(f"auth.test answered without {', '.join(lacking)}: is bot_token a bot's (xoxb-…)?")
    scopes = str(answer.headers.get("x-oauth-scopes") or "")
    granted = frozenset(scope.strip() for scope in scopes.split(",") if scope.strip())
    enterprise = answer.get("enterprise_id")
    return Me(
        user_id=given["user_id"],
        bot_id=given["bot_id"],
        team_id=given["team_id"],
        enterprise_id=str(enterprise) if enterprise else None,
        url=given["url"],
        scopes=granted,
    )


def _refusal(response: object) -> CallError:
    """What a refused call tells; an answer without Slack's own words is uncertain."""
    if not isinstance(response, AsyncSlackResponse):
        return CallError("an answer that is not Slack's", is_uncertain=True)
    data: Json = response.data if isinstance(response.data, dict) else {}
    code = str(data.get("error") or "")
    if response.status_code == _HTTP_TOO_MANY or code in RATE_CODES:
        after = _seconds(response.headers.get("Retry-After"))
        return CallError("Slack's rate limit", code="ratelimited", retry_after=after)
    if response.status_code >= _HTTP_ILL or code in _ILL_CODES:
        return CallError(f"Slack is ill: {code or response.status_code}", code=code, is_uncertain=True)
    if not code:
        return CallError(f"HTTP {response.status_code} without Slack's words", is_uncertain=True)
    said = data.get("response_metadata")
    messages = said.get("messages") if isinstance(said, dict) else None
    detail = "; ".join(str(message) for message in messages[:3]) if isinstance(messages, list) else ""
    return CallError(f"{code} {detail}".strip()[:500], code=code, missing=str(data.get("needed") or ""))


def _seconds(header: object) -> timedelta | None:
    """Retry-After in whole seconds; None when it is missing or unreadable."""
    try:
        seconds = float(str(header))
    except ValueError:
        return None
    return timedelta(seconds=min(seconds, 3600)) if 0 <= seconds < math.inf else None
