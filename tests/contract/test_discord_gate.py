"""What counts as a yes on Discord, from the gateway to the gate: a forged one is none, a real one is exactly one.

Events come through the real discord.py; the account is asked of the guild as Hero asks it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.channels.discord.channel import DiscordChannel
from bot.model.event import Pressed, Said, Unsaid
from bot.model.person import Person
from bot.model.record import Decision
from handlers.attempts import decide_elsewhere
from handlers.reply import decide_pressed, decide_said, decide_unsaid
from tests.fakes.discord_desk import DANA, GUEST, ROBOT, STRANGER, Desk, a_desk
from tests.fakes.discord_world import HOME, ME, Post
from tests.unit.handlers.scene import ADA, context, grants, record, request

FORWARDED = {
    "message": {
        "type": 0,
        "content": "approve R7",
        "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None,
        "flags": 0,
        "embeds": [],
        "attachments": [],
        "mentions": [],
        "mention_roles": [],
    }
}
WITNESS = "the last thing said"
MOD = "300000000000000007"
PENDING = "300000000000000008"


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as desk:
        desk.world.add_person(MOD, "dana")
        desk.world.add_person(PENDING, "dana", pending=True)
        yield desk


class Case:
    """One attempt at R7: the request's message is in the thread."""

    def __init__(self, desk: Desk, thread: str, asked: Post) -> None:
        self.desk, self.thread, self.asked = desk, thread, asked

    async def says(self, user: str, text: str = "approve R7", **how: Any) -> Post:
        return await self.desk.discord.says(self.thread, user, text, **how)

    async def edited(self) -> None:
        await self.desk.discord.edits(await self.says(DANA, "hello"), "approve R7")

    async def deleted(self) -> None:
        post = await self.says(DANA, told=False)
        await self.desk.discord.deletes(post)
        await self.desk.discord.tell("MESSAGE_CREATE", post)

    async def before(self) -> None:
        """Written before the request's message, and told of late."""
        post = await self.says(DANA, told=False)
        post.id = str(int(self.asked.id) - 1)
        await self.desk.discord.tell("MESSAGE_CREATE", post)

    async def presses(self, user: str, custom_id: str = "hero:approve:R7", post: Post | None = None) -> None:
        await self.desk.discord.presses(post or self.asked, user, custom_id)

    async def commands(self, user: str, text: str = "approve R7", **how: Any) -> None:
        await self.desk.discord.commands(how.pop("channel", self.thread), user, text, **how)

    def foreign(self) -> Post:
        robot = self.desk.world.accounts[ROBOT]
        return Post(self.desk.world.snowflake(), self.thread, robot, "", at=self.desk.world.stamp())


type Attempt = Callable[[Case], Awaitable[object]]

FORGED: dict[str, Attempt] = {
    "another member under the same name": lambda case: case.says(MOD),
    "a guest": lambda case: case.says(GUEST),
    "a bot": lambda case: case.says(ROBOT),
    "a bot by mention": lambda case: case.says(ROBOT, f"<@{ME}> approve R7"),
    "somebody of no server": lambda case: case.says(STRANGER),
    "somebody before the screening": lambda case: case.says(PENDING),
    "a webhook with the DRI's name and id": lambda case: case.says(DANA, webhook="1"),
    "an edited message": lambda case: case.edited(),
    "a message that is gone": lambda case: case.deleted(),
    "a message from before the request": lambda case: case.before(),
    "a forwarded message": lambda case: case.says(DANA, snapshots=[FORWARDED]),
    "a pin's system message": lambda case: case.says(DANA, kind=6),
    "a quote": lambda case: case.says(DANA, "> approve R7"),
    "a mention in a quote": lambda case: case.says(DANA, f"> <@{ME}> approve R7"),
    "a code block": lambda case: case.says(DANA, "```\napprove R7\n```"),
    "a mention that bares a quote": lambda case: case.says(DANA, f"<@{ME}> > approve R7"),
    "another request": lambda case: case.says(DANA, "approve R8"),
    "in the channel outside of the thread": lambda case: case.desk.discord.says(HOME, DANA, "approve R7"),
    "a guest's button": lambda case: case.presses(GUEST),
    "a bot's button": lambda case: case.presses(ROBOT),
    "a button on a message that is not Hero's": lambda case: case.presses(DANA, post=case.foreign()),
    "a button of another request": lambda case: case.presses(DANA, "hero:approve:R8"),
    "a button with a made-up id": lambda case: case.presses(DANA, "hero:approve:R7:dana"),
    "a stranger's command": lambda case: case.commands(STRANGER),
    "a command in another channel": lambda case: case.commands(DANA, channel=HOME),
    "a command in another server": lambda case: case.commands(DANA, guild="900000000000000009"),
}
REAL: dict[str, Attempt] = {
    "a reply": lambda case: case.says(DANA, "approve"),
    "a reply with the id": lambda case: case.says(DANA),
    "a mention": lambda case: case.says(DANA, f"<@{ME}> approve R7"),
    "a button": lambda case: case.presses(DANA),
    "a command in the thread": lambda case: case.commands(DANA),
}


NEVER_HEARD = {
    "a message that is gone",
    "a pin's system message",
    "a button on a message that is not Hero's",
    "a button with a made-up id",
    "a command in another server",
}
"""These are nobody's words to Hero, or gone before it could read them."""


@pytest.mark.parametrize("name", FORGED)
async def test_a_forged_yes_is_none_and_noted_once(desk: Desk, name: str) -> None:
    assert await granted(desk, FORGED[name]) == (0, 0 if name in NEVER_HEARD else 1)


@pytest.mark.parametrize("name", REAL)
async def test_a_real_yes_is_exactly_one(desk: Desk, name: str) -> None:
    assert await granted(desk, REAL[name]) == (1, 1)


async def granted(desk: Desk, attempt: Attempt) -> tuple[int, int]:
    """Let it happen; return how many grants Hero would make of all that reached it, and how many tries it notes."""
    async with desk.listening(channel := desk.channel()) as thread:
        await channel.send(desk.asking())
        (asked,) = desk.world.own(thread)
        await attempt(Case(desk, thread, asked))
        await desk.discord.says(thread, MOD, WITNESS)
        await desk.until(lambda: WITNESS in desk.inbox.texts())
        decisions = [await decided(desk, channel, thread, event) for event in desk.inbox.events.values()]
    return sum(len(grants(decision)) for decision in decisions), sum(len(decision.audit) for decision in decisions)


async def decided(desk: Desk, channel: DiscordChannel, thread: str, event: object) -> Decision:
    """What the gate makes of one event, as the inbox brings it there."""
    at = desk.clock.now()
    asked = request(asked_at=at, expires_at=at + timedelta(hours=24))
    before = record(asked, posted=tuple(desk.ledger.messages.values()))
    around = context(people=(Person(name=ADA, discord=DANA),))
    if isinstance(event, Said | Pressed) and event.place.key != thread:
        return decide_elsewhere(event, before, asked, at)
    if not isinstance(event, Said | Pressed | Unsaid):
        return Decision()
    standing = await channel.identify(event.actor)
    match event:
        case Said():
            return decide_said(before, event, standing, around, at)
        case Pressed():
            return decide_pressed(before, event, standing, around, at)
        case Unsaid():
            return decide_unsaid(before, event, around, at)
