"""Reads the watched issues' comments again and again, and hands on what people write, edit and delete.

Two ways lead here, and a comment has the same event id on both. Polling misses nothing: the position moves only after
all of a poll was stored, by GitHub's own clock and with an overlap. A webhook is sooner, but a delivery is lost when
nobody listens, comes late, twice or out of order: so it is believed only while its comment is younger than the overlap,
in which everything heard is remembered, and the rest is left to the next poll.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from bot.channels.github.account import OwnAccount
from bot.channels.github.client import GitHubClient
from bot.channels.github.errors import SERVICE, DeniedError
from bot.channels.github.outcomes import say_trouble
from bot.channels.github.records import DAY, THREAD, Heard, Position, Records
from bot.channels.github.seen import Comment
from bot.channels.github.speech import deletion_of, event_of, heard
from bot.channels.github.trouble import Trouble
from bot.channels.ports import Ledger, Receive
from bot.clock import Clock
from bot.model.delivery import ChannelName
from bot.render.github import MARKER_START

OVERLAP = timedelta(minutes=10)
"""How far back each poll reads: more than lists lag and clocks differ."""


DELIVERED_WITHIN = timedelta(seconds=45)
"""GitHub delivers within seconds, and gives up on an answer after ten."""


class Action(StrEnum):
    """What a webhook says was done to a comment."""

    CREATED = "created"
    EDITED = "edited"
    DELETED = "deleted"


class Taken(StrEnum):
    """What became of a delivery."""

    STORED = "stored"
    REPEAT = "known already"
    OURS = "Hero's own comment"
    NOT_WATCHED = "not about an issue that Hero reads"
    LEFT_TO_POLL = "too old to be news; comments are read by polling as well"


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
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.missed_at: datetime | None = None
        """When a poll last found what a webhook should have delivered."""
        self.logins: dict[str, str] = {}
        """The login of every account that was heard since the start, by its id."""

    async def poll(self, receive: Receive) -> None:
        """Read every watched issue once.

        Raises:
            ServiceError: GitHub as a whole cannot be asked; a single issue that is gone only shows as trouble.
        """
        for issue in sorted(await self.watched()):
            try:
                await self._read(issue, receive)
            except DeniedError as error:
                self._trouble.begin(f"reading issue {issue}", say_trouble(error, self._client.repository, issue))
            else:
                self._trouble.end(f"reading issue {issue}")

    async def watched(self) -> frozenset[int]:
        """Return the issues whose comments count now: the runs' own, and for a while those that became full."""
        threads = await self._ledger.threads(ChannelName.GITHUB)
        own = {int(t.message_id) for t in threads if t.slot == THREAD and t.message_id.isdecimal()}
        former = [t for t in threads if t.slot != THREAD and t.message_id.isdecimal()]
        if not former:
            return frozenset(own)
        asked = (await self._ledger.awaited()).asked
        kept = {int(t.message_id) for t in former if await self._records.is_former_read(t, asked, self._clock.now())}
        return frozenset(own | kept)

    async def take(self, issue: int, comment: Comment, action: Action, receive: Receive) -> Taken:
        """Hand on what a webhook says of a comment.

        Args:
            issue: where it stands.
            comment: as the delivery has it.
            action: what was done to it.
            receive: stores it.

        Raises:
            ServiceError: who Hero itself is could not be asked.
            StoreError: it could not be stored.
        """
        if issue not in await self.watched():
            return Taken.NOT_WATCHED
        if await self._is_ours(comment):
            return Taken.OURS
        async with self._turns[issue]:
            position = await self._position(issue)
            if comment.created_at < position.start_at:
                return Taken.NOT_WATCHED
            if action is Action.DELETED:
                return await self._take_deletion(issue, comment, position, receive)
            return await self._take_wording(issue, comment, action, position, receive)

    async def _take_wording(
        self, issue: int, comment: Comment, action: Action, position: Position, receive: Receive
    ) -> Taken:
        if self._clock.now() - comment.updated_at > OVERLAP:
            return Taken.LEFT_TO_POLL
        name, known = str(comment.id), position.heard.get(str(comment.id))
        if name in position.gone or (known is not None and _is_older(comment, action, known)):
            return Taken.REPEAT
        is_new = await self._hand_on(issue, comment, known, receive, is_edited=action is Action.EDITED)
        position = position.model_copy(update={"heard": {**position.heard, name: heard(comment)}})
        await self._records.save_position(issue, position)
        return Taken.STORED if is_new else Taken.REPEAT

    async def _take_deletion(self, issue: int, comment: Comment, position: Position, receive: Receive) -> Taken:
        name = str(comment.id)
        if name in position.gone:
            return Taken.REPEAT
        is_new = await receive(SERVICE, f"{name}:deleted", deletion_of(issue, name, heard(comment)))
        kept = {each: known for each, known in position.heard.items() if each != name}
        # A creation that is delivered after it must find that the comment is gone.
        gone = {**_recent(position.gone, self._clock.now() - OVERLAP), name: self._clock.now()}
        await self._records.save_position(issue, position.model_copy(update={"heard": kept, "gone": gone}))
        return Taken.STORED if is_new else Taken.REPEAT

    async def _read(self, issue: int, receive: Receive) -> None:
        before = await self._position(issue)
        since = max(before.start_at, before.read_to - OVERLAP)
        comments = await self._client.list_comments(issue, since)
        gone = await self._find_deleted(before, comments)
        # GitHub was asked outside of the turn, so that no webhook waits for it; what it brought meanwhile stands.
        async with self._turns[issue]:
            position = await self._position(issue)
            listed: dict[str, Heard] = {}
            for comment in comments:
                name = str(comment.id)
                if name in position.gone or await self._is_ours(comment):
                    continue
                known = position.heard.get(name)
                if known is not None and known.updated_at > comment.updated_at:
                    continue
                listed[name] = now_heard = heard(comment)
                if now_heard != known:
                    is_new = await self._hand_on(issue, comment, known, receive)
                    self._note_missed(comment, is_new=is_new)
            for name in gone & position.heard.keys():
                await receive(SERVICE, f"{name}:deleted", deletion_of(issue, name, position.heard[name]))
            read_to = max([position.read_to, *(comment.updated_at for comment in comments)])
            all_heard = {name: each for name, each in (position.heard | listed).items() if name not in gone}
            after = Position(
                start_at=position.start_at,
                read_to=read_to,
                heard={name: each for name, each in all_heard.items() if each.updated_at >= read_to - OVERLAP},
                gone=_recent(position.gone, self._clock.now() - OVERLAP),
            )
            if after != before:
                await self._records.save_position(issue, after)

    async def _position(self, issue: int) -> Position:
        start = self._clock.now() - DAY
        return await self._records.position(issue) or Position(start_at=start, read_to=start)

    async def _hand_on(
        self, issue: int, comment: Comment, known: Heard | None, receive: Receive, *, is_edited: bool = False
    ) -> bool:
        now_heard = heard(comment)
        self.logins[now_heard.user_id] = now_heard.login
        event = event_of(issue, comment, known, await self._own_login(), is_edited=is_edited)
        return await receive(SERVICE, f"{comment.id}:{now_heard.digest}", event)

    async def _find_deleted(self, before: Position, comments: Iterable[Comment]) -> frozenset[str]:
        """Ask by id for what was listed before and is not now: lists may lag, a comment's own address does not."""
        listed = {str(comment.id) for comment in comments}
        missing = [name for name in before.heard if name not in listed]
        return frozenset([name for name in missing if await self._client.find_comment(int(name)) is None])

    def _note_missed(self, comment: Comment, *, is_new: bool) -> None:
        """Notice what a poll had to find although a webhook had the time to deliver it."""
        if is_new and self._clock.now() - comment.created_at > DELIVERED_WITHIN:
            self.missed_at = self._clock.now()

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


def _is_older(comment: Comment, action: Action, known: Heard) -> bool:
    """Say whether a delivery tells of a wording that is not the newest: deliveries overtake each other."""
    now_heard = heard(comment)
    is_earlier = action is Action.CREATED or now_heard.updated_at < known.updated_at
    return is_earlier or now_heard.digest == known.digest


def _recent(gone: Mapping[str, datetime], since: datetime) -> dict[str, datetime]:
    return {name: at for name, at in gone.items() if at >= since}
