"""The issue that goes on where a full one ends: GitHub takes no comment past 2,500 on one issue, for good (R14).

In time a successor is opened that links back, and the full one gets a last comment that links forward. Each step is on
record before the next one, so that a crash in between opens no second successor and forgets no link.
"""

import structlog

from bot.channels.github.client import GitHubClient
from bot.channels.github.errors import DeniedError
from bot.channels.github.posting import Poster
from bot.channels.github.records import THREAD, Records, Successor
from bot.channels.ports import Ledger
from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.delivery import ChannelName, Posted
from bot.model.value import RunId
from bot.render.issue_template import forward_body, with_forward

log = structlog.get_logger()

FULL_AT = 2_400
"""Comments on an issue from which on its successor takes over; the rest is left for what is under way, and people."""
_MOST = 50


class Successors:
    """Knows and opens them; whoever calls holds the channel's turn."""

    def __init__(self, client: GitHubClient, ledger: Ledger, records: Records, poster: Poster, clock: Clock) -> None:
        self._client = client
        self._ledger = ledger
        self._records = records
        self._poster = poster
        self._clock = clock

    async def current(self, run_id: RunId, issue: int) -> int:
        """Return the issue, or the last one of those that follow it."""
        for _ in range(_MOST):
            found = await self._records.successor(run_id, issue)
            if found is None:
                break
            issue = found.number
        return issue

    async def former(self, run_id: RunId) -> tuple[int, ...]:
        """Return the run's full issues."""
        threads = await self._ledger.threads(ChannelName.GITHUB)
        return tuple(int(t.message_id) for t in threads if t.run_id == run_id and t.slot != THREAD)

    async def run_of(self, issue: int) -> RunId | None:
        """Return whose issue it is or was; None when it is nobody's, or that of several."""
        threads = await self._ledger.threads(ChannelName.GITHUB)
        found = {t.run_id for t in threads if t.message_id == str(issue)}
        return found.pop() if len(found) == 1 else None

    async def open(self, run_id: RunId, former: int) -> int:
        """Open the issue that follows a full one, or find it, and let the run go on there.

        Raises:
            ServiceError: it could not be opened, or whether it was is not known; to be called again.
        """
        known = await self._records.successor(run_id, former)
        if known is None:
            opened = await self._poster.issue(run_id, after=await self._client.ask_issue(former))
            known = Successor(number=opened.number, link=opened.link, at=self._clock.now())
            await self._records.begin_reading(opened.number, opened.created_at)
            await self._save_root(run_id, f"{THREAD}:{former}", former, "")
            await self._records.save_successor(run_id, former, known)
            log.info("github_issue_rolled_over", run_id=run_id, former=former, successor=opened.number)
        await self._save_root(run_id, THREAD, known.number, known.link)
        return known.number

    async def announce(self, run_id: RunId) -> None:
        """Link forward from every full issue of the run that does not yet.

        Raises:
            ServiceError: it could not be written, or whether it was is not known; to be called again.
        """
        for former in await self.former(run_id):
            known = await self._records.successor(run_id, former)
            if known is not None and not known.is_announced:
                await self._link_forward(run_id, former, known)
                await self._records.save_successor(run_id, former, known.model_copy(update={"is_announced": True}))

    async def _link_forward(self, run_id: RunId, former: int, known: Successor) -> None:
        key = f"successor:{run_id}:{former}"
        try:
            await self._poster.comment(former, forward_body(known.number, known.link, key=key), key=key, since=None)
        except DeniedError:
            # It is full already, or locked: its own text may still be edited. Where not, the new one links back.
            try:
                await self._client.edit_issue(former, lambda body: with_forward(body, known.number, known.link))
            except DeniedError as error:
                log.warning("github_forward_refused", former=former, successor=known.number, detail=error.detail)

    async def _save_root(self, run_id: RunId, slot: str, issue: int, link: str) -> None:
        posted = Posted(channel=ChannelName.GITHUB, run_id=run_id, slot=slot, message_id=str(issue), link=link)
        await self._ledger.save_posted(posted)


def says_full(error: ServiceError) -> bool:
    """Say whether GitHub refuses a comment because the issue has too many."""
    return isinstance(error, DeniedError) and "commenting is disabled" in error.message.lower()
