"""What the channel keeps over restarts, as small JSON records under the ledger's cursors."""

from datetime import datetime, timedelta

import structlog
from pydantic import AwareDatetime, ValidationError

from bot.channels.ports import Ledger
from bot.model.chronicle import Written, written_under
from bot.model.delivery import Posted
from bot.model.value import RunId, Value

log = structlog.get_logger()

THREAD = "thread"
"""The slot of the issue that a run has now; one that became full has ``thread:NUMBER``."""

DAY = timedelta(days=1)
_POSTINGS_MOST = 200


class Posting(Value):
    """A post that was begun, and what became of it as far as is known."""

    begun_at: AwareDatetime
    number: int | None = None
    """The comment's id, once GitHub answered."""
    posted_at: AwareDatetime | None = None
    """When, by GitHub's clock."""
    link: str = ""


class Postings(Value):
    """Posts of the last day by delivery key or by run; kept after success, since a crash may lose the outcome."""

    by_key: dict[str, Posting] = {}

    def having(self, key: str, posting: Posting | None, now: datetime) -> "Postings":
        """Return these with that one set, or taken out for None, and without old ones."""
        kept = {name: each for name, each in self.by_key.items() if name != key and now - each.begun_at < DAY}
        newest = dict(sorted(kept.items(), key=lambda item: item[1].begun_at)[-_POSTINGS_MOST:])
        return Postings(by_key=newest if posting is None else {**newest, key: posting})


class News(Value):
    """A line that stands in the live status because the day's comments were used up."""

    key: str
    at: AwareDatetime
    line: str


class Reply(Value):
    """The last short answer to somebody whose word does not count."""

    at: AwareDatetime
    comment: int
    link: str = ""


class Day(Value):
    """What was posted on one issue in the last 24 hours."""

    posted_at: tuple[AwareDatetime, ...] = ()
    news: tuple[News, ...] = ()
    replies: dict[str, Reply] = {}

    def at(self, now: datetime) -> "Day":
        """Return what of it is still within 24 hours."""
        return Day(
            posted_at=tuple(each for each in self.posted_at if now - each < DAY),
            news=tuple(each for each in self.news if now - each.at < DAY),
            replies={who: each for who, each in self.replies.items() if now - each.at < DAY},
        )

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(each.line for each in self.news)


class Heard(Value):
    """A comment that was handed on: by whom, and in which wording."""

    user_id: str
    login: str
    is_bot: bool
    digest: str
    created_at: AwareDatetime
    updated_at: AwareDatetime


class Position(Value):
    """How far an issue's comments were read, by GitHub's own clock."""

    start_at: AwareDatetime
    """When Hero's first message came: what is older is none of its business."""
    read_to: AwareDatetime
    """The newest ``updated_at`` that was handed on."""
    heard: dict[str, Heard] = {}
    """By comment id, those within the overlap that is read again with every poll."""
    gone: dict[str, AwareDatetime] = {}
    """By comment id, when a webhook told of its deletion: a delivery of its creation may come later."""


class Delivered(Value):
    """What was seen of the webhook, for ``hero doctor`` and for the pace of polls."""

    at: AwareDatetime
    """When the last delivery with a good signature came."""
    event: str
    count: int = 0
    missed_at: AwareDatetime | None = None
    """When a poll last found a comment that had not been delivered."""

    @property
    def is_reliable(self) -> bool:
        """Whether nothing was missed since the last delivery."""
        return self.missed_at is None or self.missed_at <= self.at


class Labelled(Value):
    """Which of Hero's own labels an issue was last given."""

    names: frozenset[str]
    at: AwareDatetime
    is_refused: bool = False
    """Whether GitHub said no."""


class Successor(Value):
    """The issue that goes on where a full one ends."""

    number: int
    link: str
    at: AwareDatetime
    is_announced: bool = False
    """Whether the full one links to it."""
    is_over: bool = False
    """Whether the full one is read no more; that is never taken back, so that no old words are heard late."""


class Records:
    """Reads and writes the records."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def postings(self) -> Postings:
        return await self._load("github:postings", Postings) or Postings()

    async def save_postings(self, postings: Postings) -> None:
        await self._ledger.save_cursor("github:postings", postings.model_dump_json())

    async def day(self, issue: int, now: datetime) -> Day:
        return (await self._load(f"github:day:{issue}", Day) or Day()).at(now)

    async def save_day(self, issue: int, day: Day) -> None:
        await self._ledger.save_cursor(f"github:day:{issue}", day.model_dump_json())

    async def position(self, issue: int) -> Position | None:
        return await self._load(f"github:comments:{issue}", Position)

    async def save_position(self, issue: int, position: Position) -> None:
        await self._ledger.save_cursor(f"github:comments:{issue}", position.model_dump_json())

    async def begin_reading(self, issue: int, at: datetime) -> None:
        """Read the issue's comments from ``at`` on, unless they are read already."""
        if await self.position(issue) is None:
            await self.save_position(issue, Position(start_at=at, read_to=at))

    async def labelled(self, issue: int) -> Labelled | None:
        return await self._load(f"github:labels:{issue}", Labelled)

    async def save_labelled(self, issue: int, labelled: Labelled) -> None:
        await self._ledger.save_cursor(f"github:labels:{issue}", labelled.model_dump_json())

    async def delivered(self) -> Delivered | None:
        return await self._load("github:webhook", Delivered)

    async def save_delivered(self, delivered: Delivered) -> None:
        await self._ledger.save_cursor("github:webhook", delivered.model_dump_json())

    async def successor(self, run_id: RunId, issue: int) -> Successor | None:
        return await self._load(f"github:successor:{run_id}:{issue}", Successor)

    async def save_successor(self, run_id: RunId, issue: int, successor: Successor) -> None:
        await self._ledger.save_cursor(f"github:successor:{run_id}:{issue}", successor.model_dump_json())

    async def is_former_read(self, former: Posted, asked: frozenset[RunId], now: datetime) -> bool:
        """Say whether a full issue is still read: for a day, and while a request waits; once not, never again."""
        issue = int(former.message_id)
        found = await self.successor(former.run_id, issue)
        if found is None or found.is_over:
            return False
        if former.run_id in asked or now - found.at < DAY:
            return True
        await self.save_successor(former.run_id, issue, found.model_copy(update={"is_over": True}))
        return False

    async def written(self, run_id: RunId, issue: int) -> Written | None:
        """Return what was last written of the run's record into this issue; None when nothing was."""
        return await self._load(written_under(run_id, issue), Written)

    async def save_written(self, run_id: RunId, issue: int, written: Written) -> None:
        await self._ledger.save_cursor(written_under(run_id, issue), written.model_dump_json())

    async def login(self) -> str | None:
        """Return the login that an app's own comments were seen to have."""
        return await self._ledger.cursor("github:login") or None

    async def save_login(self, login: str) -> None:
        await self._ledger.save_cursor("github:login", login)

    async def _load[R: Value](self, name: str, kind: type[R]) -> R | None:
        text = await self._ledger.cursor(name)
        if not text:
            return None
        try:
            return kind.model_validate_json(text)
        except ValidationError as error:
            log.warning("github_record_discarded", cursor=name, reason=str(error.errors(include_input=False)[0]["msg"]))
            return None
