"""Reads the watched issues' comments again and again, and hands on what people write, edit and delete.

Polling alone: a webhook is lost when nobody listens, and GitHub does not send it again by itself. The position moves
only after all of a poll was stored, by GitHub's own clock and with an overlap, so nothing is missed; what comes twice
is known here or refused by the inbox.
"""

from datetime import timedelta

from bot.channels.github.account import OwnAccount
from bot.channels.github.client import GitHubClient
from bot.channels.github.errors import SERVICE, DeniedError
from bot.channels.github.outcomes import say_trouble
from bot.channels.github.records import DAY, Heard, Position, Records
from bot.channels.github.seen import Comment
from bot.channels.github.speech import deletion_of, event_of, heard
from bot.channels.github.trouble import Trouble
from bot.channels.ports import Ledger, Receive
from bot.clock import Clock
from bot.model.delivery import ChannelName
from bot.render.github import MARKER_START

OVERLAP = timedelta(minutes=10)
"""How far back each poll reads: more than lists lag and clocks differ."""


class Listener:
    """Reads comments."""

    def __init__(
        self,
        *,
        client: GitHubClient,
        ledger: Ledger,
        records: Records,
        own: OwnAccount,
        clock: Clock,
        trouble: Trouble,
        people: frozenset[str],
    ) -> None:
        """Make it; ``people`` are the casefolded logins of those whose words may count."""
        self._client = client
        self._ledger = ledger
        self._records = records
        self._own = own
        self._clock = clock
        self._trouble = trouble
        self._people = people
        self.logins: dict[str, str] = {}
        """The login of every account that was heard since the start, by its id."""

    async def poll(self, receive: Receive) -> None:
        """Read every watched issue once.

        Raises:
            ServiceError: GitHub as a whole cannot be asked; a single issue that is gone only shows as trouble.
        """
        watched = {
            int(t.message_id) for t in await self._ledger.threads(ChannelName.GITHUB) if t.message_id.isdecimal()
        }
        for issue in sorted(watched):
            try:
                await self._read(issue, receive)
            except DeniedError as error:
                self._trouble.begin(f"reading issue {issue}", say_trouble(error, self._client.repository, issue))
            else:
                self._trouble.end(f"reading issue {issue}")

    async def _read(self, issue: int, receive: Receive) -> None:
        now = self._clock.now()
        before = await self._records.position(issue) or Position(start_at=now - DAY, read_to=now - DAY)
        since = max(before.start_at, before.read_to - OVERLAP)
        comments = await self._client.list_comments(issue, since)
        listed: dict[str, Heard] = {}
        for comment in comments:
            if await self._is_ours(comment):
                continue
            known = before.heard.get(str(comment.id))
            listed[str(comment.id)] = now_heard = heard(comment)
            self.logins[now_heard.user_id] = now_heard.login
            if now_heard != known:
                event = event_of(issue, comment, known, await self._own_login())
                await receive(SERVICE, f"{comment.id}:{now_heard.digest}", event)
        await self._notice_deletions(issue, before, listed, receive)
        read_to = max([before.read_to, *(comment.updated_at for comment in comments)])
        kept = {name: each for name, each in listed.items() if each.updated_at >= read_to - OVERLAP}
        after = Position(start_at=before.start_at, read_to=read_to, heard=kept)
        if after != before:
            await self._records.save_position(issue, after)

    async def _notice_deletions(self, issue: int, before: Position, listed: dict[str, Heard], receive: Receive) -> None:
        """Ask by id for what was listed before and is not now: lists may lag, a comment's own address does not."""
        for comment_id, known in before.heard.items():
            if comment_id in listed:
                continue
            if await self._client.find_comment(int(comment_id)) is None:
                await receive(SERVICE, f"{comment_id}:deleted", deletion_of(issue, comment_id, known))
            else:
                listed[comment_id] = known

    async def _own_login(self) -> str:
        """Return Hero's login; none where it speaks with a person's token, whose mention may mean that person."""
        login = await self._own.login() or ""
        return "" if login.casefold() in self._people else login

    async def _is_ours(self, comment: Comment) -> bool:
        """Tell our own posts from those of a person whose token Hero was given: ours carry a marker."""
        if not await self._own.has_written(comment):
            return False
        is_person = comment.author is not None and comment.author.login.casefold() in self._people
        return not is_person or MARKER_START in comment.body
