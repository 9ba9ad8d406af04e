"""A post that is made exactly once, although answers get lost and GitHub's lists lag behind (R11).

The intent is committed before the post. After an uncertain end the post is looked for by its hidden marker and our own
login; only when it has not turned up for longer than lists are known to lag, and longer than our own request can still
be under way, is it made again.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from bot.channels.github.account import OwnAccount
from bot.channels.github.client import GitHubClient
from bot.channels.github.errors import SettlingError, UncertainError
from bot.channels.github.records import Posting, Records
from bot.channels.github.seen import Comment, IssueSeen
from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.value import RunId
from bot.render.github import delivery_marker, run_marker
from bot.render.issue_template import continued, successor_marker

SKEW = timedelta(seconds=120)
"""How far GitHub's clock may be off ours."""

SETTLING = timedelta(seconds=90)
"""How long a post may take to be listed; a list that lagged a minute was seen (golang/go#28561)."""


class Poster:
    """Posts comments and opens issues."""

    def __init__(
        self,
        client: GitHubClient,
        records: Records,
        own: OwnAccount,
        clock: Clock,
        words: Callable[[RunId], tuple[str, str]],
    ) -> None:
        """Make it; ``words`` are title and body of the issue that is opened for a run."""
        self._client = client
        self._records = records
        self._own = own
        self._clock = clock
        self._words = words

    async def comment(
        self,
        issue: int,
        body: str,
        *,
        key: str,
        since: datetime | None,
        vanished: int | None = None,
        former: tuple[int, ...] = (),
    ) -> tuple[Posting, IssueSeen | None]:
        """Post a comment once; return where it is, and the issue when it was looked at.

        Args:
            issue: its number.
            body: with the marker of ``key``.
            key: of the delivery.
            since: when the first try was begun, for a delivery that was tried before.
            vanished: the id of a comment that this may replace: it is known to be deleted.
            former: the run's full issues, where an earlier try may have landed.

        Raises:
            ServiceError: SettlingError when an earlier try may still turn up, UncertainError when this one may.
        """
        earlier = await self._earlier(key, vanished)
        if earlier is not None and earlier.number is not None:
            return earlier, None
        begun = [at for at in (since, earlier.begun_at if earlier else None) if at is not None]
        if begun:
            found = await self._find((issue, *former), delivery_marker(key), min(begun) - SKEW)
            if found is not None and found.id != vanished:
                return await self._done(key, found), None
        self._let_settle(earlier)
        await self._begin(key)
        try:
            made, seen = await self._client.create_comment(issue, body)
        except UncertainError:
            raise
        except ServiceError:
            await self._keep(key, None)
            raise
        await self._own.learn(made)
        return await self._done(key, made), seen

    async def issue(self, run_id: RunId, *, after: IssueSeen | None = None) -> IssueSeen:
        """Return the issue that Hero opened for the run, by its marker; open it when there is none.

        Args:
            run_id: whose.
            after: the full issue that it goes on after; None for the run's first.

        Raises:
            ServiceError: as ``comment``.
        """
        key = f"issue:{run_id}" + (f":after:{after.number}" if after else "")
        marker = successor_marker(run_id, after.number) if after else run_marker(run_id)
        found = await self._client.find_issue(marker, await self._own.login())
        if found is not None:
            return found
        title, body = self._words(run_id)
        if after is not None:
            title, body = continued(title, f"{body}\n{marker}", former=after.number, link=after.link)
        self._let_settle(await self._earlier(key, None))
        await self._begin(key)
        try:
            return await self._client.create_issue(title, body)
        except UncertainError:
            raise
        except ServiceError:
            await self._keep(key, None)
            raise

    async def _earlier(self, key: str, vanished: int | None) -> Posting | None:
        earlier = (await self._records.postings()).by_key.get(key)
        return None if earlier is not None and vanished is not None and earlier.number == vanished else earlier

    async def _find(self, issues: tuple[int, ...], marker: str, since: datetime) -> Comment | None:
        for issue in issues:
            for comment in await self._client.list_comments(issue, since):
                if marker in comment.body and await self._own.has_written(comment):
                    return comment
        return None

    def _let_settle(self, earlier: Posting | None) -> None:
        if earlier is None:
            return
        left = SETTLING - (self._clock.now() - earlier.begun_at)
        if left > timedelta():
            raise SettlingError(left)

    async def _begin(self, key: str) -> None:
        await self._client.turn()
        await self._keep(key, Posting(begun_at=self._clock.now()))

    async def _done(self, key: str, made: Comment) -> Posting:
        posting = Posting(begun_at=self._clock.now(), number=made.id, posted_at=made.created_at, link=made.link)
        await self._keep(key, posting)
        return posting

    async def _keep(self, key: str, posting: Posting | None) -> None:
        postings = await self._records.postings()
        await self._records.save_postings(postings.having(key, posting, self._clock.now()))
