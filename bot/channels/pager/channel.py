"""The pager: one webhook that calls whoever is on duty. It is triggered once a matter, and told when that is over.

Every event carries a deduplication key, so a send whose end is not known is simply sent again.
"""

import asyncio
from datetime import timedelta

import httpx
import structlog

from bot.channels.pager.body import Json, generic_body, pagerduty_body
from bot.channels.ports import Receive
from bot.clock import Clock
from bot.model.delivery import ChannelName, Delivery, Later, Never, SendOutcome, Sent
from bot.model.person import Actor, Standing
from bot.model.reading import Known, Reading
from bot.settings import PagerSettings

log = structlog.get_logger()

_TOO_MANY = 429
_REFUSED = frozenset({400, 413, 422})
"""What is about this event, and will be answered to it again."""
_FIX = "correct HERO_PAGER__URL, routing_key or authorization, then restart Hero"
_UNREACHED = "see that the pager's address can be reached from here"
_LONGEST_WAIT = timedelta(hours=1)


class PagerChannel:
    """Posts events, in PagerDuty's form or as flat JSON."""

    name = ChannelName.PAGER

    def __init__(self, settings: PagerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._trouble = ""
        authorization = settings.authorization
        headers = settings.headers | (
            {"Authorization": authorization.get_secret_value().strip()} if authorization else {}
        )
        self._client = httpx.AsyncClient(
            headers={"User-Agent": "hero"} | headers, timeout=settings.deadline.total_seconds(), follow_redirects=False
        )

    @property
    def trouble(self) -> str:
        """What is wrong with the pager now, with the fix; empty when nothing is."""
        return self._trouble

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Post one event; see ``Channel.send``. What is no page has no place here."""
        page = delivery.update.page
        if page is None:
            return Never(reason="this is no page", fix="it is told in the other channels")
        body = self._body(delivery)
        if body is None:
            return Sent(message_id=page.key)
        try:
            async with asyncio.timeout(self._settings.deadline.total_seconds()):
                answer = await self._client.post(self._settings.address or "", json=body)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            # Only the kind of error: its words may hold the address, which is a secret.
            self._trouble = f"the pager was not reached ({type(error).__name__}); {_UNREACHED}"
            return Later(reason=f"no answer: {type(error).__name__}", is_uncertain=True)
        except Exception as error:  # the border of a channel: a fault in here must not stop the outbox
            log.exception("pager_send_broke", delivery=delivery.number)
            return Later(reason=f"Hero's own fault: {type(error).__name__}", is_uncertain=True)
        return self._outcome(answer, page.key)

    async def identify(self, actor: Actor) -> Reading[Standing]:  # noqa: ARG002 - the port's
        """Nobody speaks through a pager."""
        standing = Standing(is_member=False, is_bot=False, detail="nobody answers through a pager")
        return Known(value=standing, at=self._clock.now())

    async def run(self, receive: Receive) -> None:  # noqa: ARG002 - the port's
        """Hear nothing, for ever."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Close the connections that are kept for the next event."""
        await self._client.aclose()

    def _body(self, delivery: Delivery) -> Json | None:
        update, page = delivery.update, delivery.update.page
        if page is None:
            return None
        if self._settings.format == "generic":
            return generic_body(update, page)
        key = self._settings.routing_key
        return pagerduty_body(update, page, routing_key=key.get_secret_value().strip() if key else "")

    def _outcome(self, answer: httpx.Response, key: str) -> SendOutcome:
        status = answer.status_code
        if answer.is_success:
            self._trouble = ""
            return Sent(message_id=key)
        reason = f"the pager answered HTTP {status}"
        log.info("pager_send_failed", status=status)
        if status in _REFUSED:
            return Never(reason=reason, fix=f"it does not take this event; {_FIX}")
        if status == _TOO_MANY or answer.is_server_error:
            return Later(reason=reason, after=_asked_wait(answer), is_uncertain=answer.is_server_error)
        self._trouble = f"{reason}; {_FIX}"
        return Later(reason=f"{reason}; {_FIX}")


def _asked_wait(answer: httpx.Response) -> timedelta | None:
    """Return what Retry-After asks for in seconds; None leaves it to the outbox."""
    asked = answer.headers.get("Retry-After", "").strip()
    return min(timedelta(seconds=int(asked)), _LONGEST_WAIT) if asked.isdecimal() and len(asked) < 7 else None  # noqa: PLR2004 - more digits are no wait that anybody means
