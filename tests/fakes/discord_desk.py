"""One Hero before one Discord, with the people that tests need: what the contract tests stand on.

Hero's own time runs five times as fast as the wall's; discord.py's does not.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr

from bot.channels.discord.channel import DiscordChannel
from bot.channels.discord.completing import Names
from bot.model.delivery import ChannelName, Delivery, Sent, Target
from bot.model.event import Inbound, Said
from bot.model.person import Person
from bot.model.run import RunState
from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.settings import DiscordSettings
from handlers.command import COMMANDS
from tests.fakes.discord import FakeDiscord
from tests.fakes.discord_world import GUILD, HOME, ME
from tests.fakes.ledger import FakeLedger

RUN = RunId("hero-12d8")
DANA = "300000000000000001"
GUEST = "300000000000000002"
ROBOT = "300000000000000003"
STRANGER = "300000000000000004"
SPEED = 5.0


class SwiftClock:
    """Time that runs faster than the wall's."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._at = time.time()

    def monotonic(self) -> float:
        return (time.monotonic() - self._began) * SPEED

    def timestamp(self) -> float:
        return self._at + self.monotonic()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp(), UTC)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(0.0, delay.total_seconds() / SPEED))


class Received:
    """Hero's inbox: one copy of each event, kept over restarts."""

    def __init__(self) -> None:
        self.events: dict[str, Inbound] = {}
        self.copies = 0
        self.is_full = False

    async def receive(self, source: str, event_id: str, payload: Inbound) -> bool:
        assert source == "discord"
        if self.is_full:
            raise OSError("no space left on device")
        self.copies += 1
        is_new = event_id not in self.events
        self.events.setdefault(event_id, payload)
        return is_new

    def texts(self) -> list[str]:
        return [payload.text for payload in self.events.values() if isinstance(payload, Said)]

    def of(self, kind: type[Inbound]) -> list[Any]:
        return [payload for payload in self.events.values() if isinstance(payload, kind)]


class Desk:
    """One Hero before one Discord: what a test needs at hand."""

    def __init__(self, discord: FakeDiscord, clock: SwiftClock) -> None:
        self.discord = discord
        self.world = discord.world
        self.gateway = discord.gateway
        self.clock = clock
        self.ledger = FakeLedger()
        self.inbox = Received()
        self.open: list[DiscordChannel] = []
        self._numbers = 0

    def settings(self, **settings: Any) -> DiscordSettings:
        given: dict[str, Any] = {"deadline": timedelta(seconds=5), "catch_up": timedelta(minutes=5), "channel": HOME}
        given |= {"quiet_limit": timedelta(seconds=60), "guild": GUILD, "token": SecretStr(self.discord.token)}
        return DiscordSettings(api_base=self.discord.api_base, **(given | settings))

    def channel(self, *, thread: str | None = None, **settings: Any) -> DiscordChannel:
        async def names() -> Names:
            return Names(commands=tuple(COMMANDS), runs=(RUN, "other-run"), requests=("R7",))

        made = DiscordChannel(
            self.settings(**settings),
            self.ledger,
            self.clock,
            people=(Person(name=PersonName("dana"), discord=DANA),),
            threads=lambda _run: thread,
            is_command=COMMANDS.__contains__,
            names=names,
        )
        self.open.append(made)
        return made

    def delivery(self, headline: str = "running", slot: str = "", **how: Any) -> Delivery:
        self._numbers += 1
        target = Target(
            slot=slot,
            **{key: how.pop(key) for key in ("private_to", "conversation", "thread", "direct_to") if key in how},
        )
        attempt, run_id = how.pop("attempt", 0), how.pop("run_id", RUN)
        update = Update(
            kind=how.pop("kind", UpdateKind.LIVE_STATUS if slot == "live" else UpdateKind.ROUTINE_STATUS),
            run_id=run_id,
            at=self.clock.now(),
            headline=headline,
            standing=Standing(state=RunState.RUNNING, step=10, final_step=100),
            **how,
        )
        return Delivery(
            number=self._numbers,
            key=f"key-{self._numbers}",
            channel=ChannelName.DISCORD,
            run_id=run_id,
            target=target,
            update=update,
            created_at=self.clock.now(),
            attempt=attempt,
            first_intent_at=self.clock.now(),
        )

    def again(self, delivery: Delivery) -> Delivery:
        return delivery.model_copy(update={"attempt": delivery.attempt + 1})

    def asking(self, *, is_open: bool = True) -> Delivery:
        choice = Choice(request="R7", is_open=is_open, outcome="" if is_open else "approved by dana")
        kind = UpdateKind.REQUEST_ASKED if is_open else UpdateKind.REQUEST_ANSWERED
        asked = PersonName("dana") if is_open else None
        return self.delivery("asks", "request:7", kind=kind, asked=asked, choice=choice, plan=("run: hero",))

    async def opened(self, channel: DiscordChannel) -> str:
        """Open the run's thread; return its id."""
        sent = await channel.send(self.delivery("Hero watches this run", "live"))
        assert isinstance(sent, Sent)
        return sent.message_id.partition(":")[2]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not true():
                await self.clock.sleep(timedelta(milliseconds=50))

    @asynccontextmanager
    async def listening(self, channel: DiscordChannel) -> AsyncIterator[str]:
        """Listen with an open thread for the run; gives the thread's id."""
        thread = await self.opened(channel)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(channel.run(self.inbox.receive))
            await self.until(lambda: channel._link.is_up and bool(self.world.commands))
            yield thread
            task.cancel()


@asynccontextmanager
async def a_desk() -> AsyncIterator[Desk]:
    """A desk; at the end no message was outside the limits, and none of Hero's woke anybody but dana."""
    clock = SwiftClock()
    async with FakeDiscord(wall=clock.timestamp) as discord:
        discord.world.add_person(DANA)
        discord.world.add_person(GUEST, "guest", flags=1 << 4)
        discord.world.add_person(ROBOT, "dana", bot=True)
        discord.world.add_person(STRANGER, "dana", member=False)
        desk = Desk(discord, clock)
        yield desk
        for channel in desk.open:
            await channel.close()
        assert discord.refused == []
        assert all(post.pings <= {DANA} for post in discord.world.posts.values() if post.author.id == ME)
