"""Comments that come by webhook and by polling, in any order, late, twice or never: each counts once, as meant."""

import asyncio
from datetime import datetime, timedelta
from typing import cast

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.channels.github.account import OwnAccount
from bot.channels.github.client import GitHubClient
from bot.channels.github.inbound import OVERLAP, Action, Listener
from bot.channels.github.records import Position, Records
from bot.channels.github.seen import Account, Comment
from bot.channels.github.trouble import Trouble
from bot.model.delivery import ChannelName, Posted
from bot.model.event import Inbound, Said, Unsaid
from bot.model.value import RunId
from tests.fakes.clock import START, FakeClock
from tests.fakes.ledger import FakeLedger

ISSUE = 1
DRI = Account(id=101, login="dri", is_bot=False)


class World:
    """GitHub's comments as they are, and every delivery that it made of them."""

    repository = "acme/training"

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.comments: dict[int, Comment] = {}
        self.touched: set[int] = set()
        """Those that were edited or deleted."""
        self.deliveries: list[tuple[Action, Comment]] = []

    def second(self) -> datetime:
        return self.clock.now().replace(microsecond=0)

    def write(self) -> None:
        number, at = len(self.deliveries) + 1, self.second()
        comment = Comment(
            id=number, author=DRI, body=f"original {number}", created_at=at, updated_at=at, is_by_app=False, link=""
        )
        self.comments[number] = comment
        self.deliveries.append((Action.CREATED, comment))

    def edit(self, which: int) -> None:
        """Edit a comment a second later: to a poll, one that was edited within its first second looks unedited."""
        self.clock.advance(timedelta(seconds=1))
        if self.comments:
            old = sorted(self.comments)[which % len(self.comments)]
            body = f"edit {len(self.deliveries)}"
            new = self.comments[old].model_copy(update={"body": body, "updated_at": self.second()})
            self.comments[old] = new
            self.touched.add(old)
            self.deliveries.append((Action.EDITED, new))

    def delete(self, which: int) -> None:
        if self.comments:
            old = sorted(self.comments)[which % len(self.comments)]
            self.touched.add(old)
            self.deliveries.append((Action.DELETED, self.comments.pop(old)))

    # What the listener asks of the client.

    async def ask_self(self) -> Account:
        return Account(id=1, login="hero-bot", is_bot=True)

    async def list_comments(self, issue: int, since: datetime) -> tuple[Comment, ...]:
        assert issue == ISSUE
        return tuple(c for _, c in sorted(self.comments.items()) if c.updated_at >= since.replace(microsecond=0))

    async def find_comment(self, comment_id: int) -> Comment | None:
        return self.comments.get(comment_id)


class Inbox:
    """Stores each id once, as the database does, and notes how it stood with the comment at that moment."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.events: dict[str, Inbound] = {}
        self.is_news: dict[str, bool] = {}

    async def receive(self, source: str, event_id: str, payload: Inbound) -> bool:
        assert source == "github"
        if event_id in self.events:
            return False
        number = int(payload.place.message)
        stands = number in self._world.comments and number not in self._world.touched
        self.events[event_id] = payload
        self.is_news[event_id] = stands or self._world.clock.now() - payload.said_at <= OVERLAP
        return True


def a_listener(world: World, clock: FakeClock, ledger: FakeLedger) -> Listener:
    client, records = cast("GitHubClient", world), Records(ledger)
    own = OwnAccount(client, records)
    return Listener(
        client=client,
        ledger=ledger,
        records=records,
        own=own,
        clock=clock,
        trouble=Trouble(clock),
        people=frozenset({"dri"}),
    )


type Step = tuple[str, int]

WAITS = st.tuples(st.just("wait"), st.integers(1, 15))
"""In minutes: as long as what was heard is remembered, and longer."""
ACTS = st.tuples(st.sampled_from(["write", "edit", "delete", "poll", "restart"]), st.integers(0, 1))
DELIVERIES = st.tuples(st.just("deliver"), st.integers(0, 3))
STEPS = st.lists(ACTS | DELIVERIES | DELIVERIES | WAITS, min_size=3, max_size=14)


async def play(steps: list[Step]) -> tuple[World, Inbox]:
    clock, ledger = FakeClock(), FakeLedger()
    world = World(clock)
    inbox = Inbox(world)
    ledger.messages[ChannelName.GITHUB, "r", "thread"] = Posted(
        channel=ChannelName.GITHUB, run_id=RunId("r"), slot="thread", message_id=str(ISSUE)
    )
    begun = Position(start_at=START, read_to=START)
    ledger.cursors[f"github:comments:{ISSUE}"] = begun.model_dump_json()
    listener = a_listener(world, clock, ledger)
    for step, number in steps:
        match step:
            case "write":
                world.write()
            case "edit":
                world.edit(number)
            case "delete":
                world.delete(number)
            case "deliver" if world.deliveries:
                action, comment = world.deliveries[number % len(world.deliveries)]
                await listener.take(ISSUE, comment, action, inbox.receive)
            case "poll":
                await listener.poll(inbox.receive)
            case "wait":
                clock.advance(timedelta(minutes=number))
            case "restart":
                listener = a_listener(world, clock, ledger)
    await listener.poll(inbox.receive)
    return world, inbox


@given(STEPS)
@example([("write", 0), ("delete", 0), ("deliver", 1), ("deliver", 0)])
@example([("write", 0), ("edit", 0), ("deliver", 1), ("deliver", 0)])
@example([("write", 0), ("delete", 0), ("wait", 11), ("deliver", 0)])
@example([("write", 0), ("deliver", 0), ("restart", 0), ("poll", 0), ("delete", 0), ("poll", 0), ("deliver", 0)])
@settings(max_examples=300, deadline=None)
def test_each_comment_counts_once_as_it_was_written_whatever_the_way_and_the_order(steps: list[Step]) -> None:
    world, inbox = asyncio.run(play(steps))

    meant: set[str] = set()
    spoilt: set[str] = set()
    for event_id, event in inbox.events.items():
        name = event.place.message
        if isinstance(event, Said) and not event.is_edited:
            assert event.text == f"original {name}", "what counts is the first wording"
            assert name not in meant, "and once"
            assert name not in spoilt, "and never after its edit or deletion was heard"
            assert inbox.is_news[event_id], "and no old words of a comment that is gone or changed"
            meant.add(name)
        else:
            assert isinstance(event, Said | Unsaid)
            spoilt.add(name)
    untouched = {str(number) for number in world.comments if number not in world.touched}
    assert untouched <= meant, "nothing that stands as it was written is missed"
