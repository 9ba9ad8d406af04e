"""The courier: each message reaches people once, whatever the channel answers, or another channel's people."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.alarm import Alarm
from bot.channels.ports import Receive
from bot.courier import Courier
from bot.errors import LeaseLostError, StoreError, StoreFullError
from bot.model.delivery import ChannelName, Delivery, Later, Never, SendOutcome, Sent
from bot.model.person import Actor, Standing
from bot.model.reading import Known, Reading
from bot.model.record import Decision, Telling
from bot.model.value import RunId
from bot.model.verdict import Severity
from bot.redaction import Redactor
from bot.store.leases import Lease
from bot.store.store import Store
from tests.fakes.clock import START, FakeClock
from tests.fakes.decisions import RUN, a_telling
from tests.fakes.waiting import until

SLACK = ChannelName.SLACK
SENT = Sent(message_id="C0:1.0")


class ScriptedChannel:
    """Answers each send by the script, then always ``Sent``."""

    def __init__(self, *script: SendOutcome | Exception, name: ChannelName = SLACK) -> None:
        self.name = name
        self.script = list(script)
        self.sends: list[Delivery] = []
        self.is_hung = False

    async def send(self, delivery: Delivery) -> SendOutcome:
        self.sends.append(delivery)
        if self.is_hung:
            await asyncio.Event().wait()
        outcome = self.script.pop(0) if self.script else SENT
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def identify(self, _actor: Actor) -> Reading[Standing]:
        return Known(value=Standing(is_member=True, is_bot=False), at=START)

    async def run(self, _receive: Receive) -> None:
        await asyncio.Event().wait()

    @property
    def trouble(self) -> str:
        return ""

    async def close(self) -> None: ...

    @property
    def keys(self) -> list[str]:
        return [delivery.key for delivery in self.sends]


class Desk:
    """A courier between the real store and a scripted channel."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.channel = ScriptedChannel()
        self.given_up: list[tuple[str, Never]] = []
        self.alarms: list[StoreError] = []
        self.lease: Lease | None = None
        self.give_up_error: StoreError | None = None

    def courier(self, *, deadline: timedelta = timedelta(seconds=5), posts: int = 20) -> Courier:
        async def give_up(delivery: Delivery, outcome: Never) -> None:
            if self.give_up_error is not None:
                raise self.give_up_error
            self.given_up.append((delivery.key, outcome))

        return Courier(
            channel=self.channel,
            store=self.store,
            clock=self.clock,
            deadline=deadline,
            posts_per_minute=posts,
            give_up=give_up,
            alarm=self.alarms.append,
            lease=lambda: self.lease,
        )

    async def tell(self, *tellings: Telling) -> None:
        async with self.store.transaction() as tx:
            await tx.apply(Decision(tell=tellings), None, self.clock.now())

    def has_sent(self, count: int) -> bool:
        return len(self.channel.sends) == count


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Draw no tracebacks: that costs more than the tests."""
    with capture_logs():
        yield


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    clock = FakeClock()
    store = await Store.open(f"sqlite:///{tmp_path}/hero.db", clock, Redactor())
    yield Desk(store, clock)
    await store.close()


async def test_a_message_is_sent_once(desk: Desk) -> None:
    await desk.tell(a_telling("a"))
    courier = desk.courier()

    assert await courier.send_due()
    assert not await courier.send_due()

    assert desk.channel.keys == ["a/slack"]


async def test_a_refusal_for_now_is_tried_again_after_doubling_pauses(desk: Desk) -> None:
    """Field report R05: also without a usable Retry-After."""
    desk.channel.script = [Later(reason="503")] * 6
    await desk.tell(a_telling("a"))
    courier = desk.courier()

    for attempt in range(6):
        await courier.send_due()
        assert len(desk.channel.sends) == attempt + 1
        least, most = 2.0 * 2**attempt * 0.75, 2.0 * 2**attempt * 1.25
        desk.clock.advance(timedelta(seconds=least - 0.1))
        await courier.send_due()
        assert len(desk.channel.sends) == attempt + 1, "too early"
        desk.clock.advance(timedelta(seconds=most - least + 0.2))

    assert await courier.send_due()
    assert [delivery.attempt for delivery in desk.channel.sends] == list(range(7))


async def test_a_pause_never_grows_beyond_minutes(desk: Desk) -> None:
    desk.channel.script = [Later(reason="503")] * 40
    await desk.tell(a_telling("a"))
    courier = desk.courier()

    for _ in range(40):
        await courier.send_due()
        desk.clock.advance(timedelta(seconds=376))

    assert len(desk.channel.sends) == 40


async def test_the_pause_that_the_service_asks_for_is_kept(desk: Desk) -> None:
    desk.channel.script = [Later(reason="429", after=timedelta(seconds=77))]
    await desk.tell(a_telling("a"))
    courier = desk.courier()
    await courier.send_due()

    desk.clock.advance(timedelta(seconds=76))
    await courier.send_due()
    assert len(desk.channel.sends) == 1
    desk.clock.advance(timedelta(seconds=1))
    await courier.send_due()

    assert len(desk.channel.sends) == 2


async def test_what_can_never_be_sent_goes_to_the_other_channels_and_is_not_tried_again(desk: Desk) -> None:
    refused = Never(reason="channel_not_found", fix="invite Hero")
    desk.channel.script = [refused]
    await desk.tell(a_telling("a"))
    courier = desk.courier()

    await courier.send_due()
    desk.clock.advance(timedelta(days=1))
    await courier.send_due()

    assert desk.given_up == [("a/slack", refused)]
    assert desk.channel.keys == ["a/slack"]


async def test_a_message_whose_handing_over_was_not_stored_is_handed_over_later(desk: Desk) -> None:
    desk.channel.script = [Never(reason="gone", fix="-"), Never(reason="gone", fix="-")]
    desk.give_up_error = StoreFullError("no space is left")
    await desk.tell(a_telling("a"))
    courier = desk.courier()
    with pytest.raises(StoreFullError):
        await courier.send_due()
    desk.give_up_error = None

    await courier.send_due()

    assert [key for key, _ in desk.given_up] == ["a/slack"]


async def test_a_channel_that_hangs_is_cut_off_and_its_message_is_uncertain(desk: Desk) -> None:
    desk.channel.is_hung = True
    await desk.tell(a_telling("a"))
    courier = desk.courier(deadline=timedelta(milliseconds=20))

    assert not await courier.send_due()
    desk.channel.is_hung = False
    desk.clock.advance(timedelta(seconds=3))
    assert await courier.send_due()

    assert [delivery.attempt for delivery in desk.channel.sends] == [0, 1], "the second look is for the marker first"
    assert desk.channel.sends[1].first_intent_at == START


async def test_a_channel_that_breaks_takes_neither_the_courier_nor_the_message_with_it(desk: Desk) -> None:
    desk.channel.script = [KeyError("a bug of ours")]
    await desk.tell(a_telling("a"), a_telling("b", run_id=RunId("other-run")))
    courier = desk.courier()

    await courier.send_due()
    desk.clock.advance(timedelta(seconds=3))
    await courier.send_due()

    assert desk.channel.keys == ["a/slack", "b/slack", "a/slack"]


async def test_two_days_of_trying_are_the_end(desk: Desk) -> None:
    desk.channel.script = [Later(reason="503")] * 100
    await desk.tell(a_telling("a"))
    courier = desk.courier()

    for _ in range(10):
        await courier.send_due()
        desk.clock.advance(timedelta(hours=5))
    assert desk.given_up == []
    await courier.send_due()

    ((key, outcome),) = desk.given_up
    assert key == "a/slack"
    assert outcome.reason == "not accepted for two days: 503"


async def test_a_machine_that_slept_for_three_days_gives_nothing_up_at_its_first_try(desk: Desk) -> None:
    desk.channel.script = [Later(reason="503"), Later(reason="no network yet")]
    await desk.tell(a_telling("a"))
    courier = desk.courier()
    await courier.send_due()

    desk.clock.advance(timedelta(days=3))
    await courier.send_due()
    desk.clock.advance(timedelta(minutes=1))
    await courier.send_due()

    assert desk.given_up == []
    assert len(desk.channel.sends) == 3


async def test_the_loop_guard_holds_a_thread_for_a_minute_and_no_other_thread(desk: Desk) -> None:
    """Field report R04: a bot that answered itself fifty times in eight seconds."""
    await desk.tell(*(a_telling(f"loop-{n}") for n in range(10)), a_telling("other", run_id=RunId("other-run")))
    courier = desk.courier(posts=3)

    for _ in range(5):
        await courier.send_due()
    assert sorted(desk.channel.keys) == ["loop-0/slack", "loop-1/slack", "loop-2/slack", "other/slack"]
    desk.clock.advance(timedelta(seconds=61))
    await courier.send_due()

    assert desk.channel.keys.count("other/slack") == 1
    assert len(desk.channel.sends) == 7, "held, and not lost"


async def test_the_loop_guard_counts_answers_where_they_are_given(desk: Desk) -> None:
    def answer(key: str, thread: str) -> Telling:
        told = a_telling(key, run_id=None)
        target = told.target.model_copy(update={"conversation": "C0", "thread": thread})
        return told.model_copy(update={"target": target})

    await desk.tell(*(answer(f"a{n}", "1.0") for n in range(5)), answer("b", "2.0"))
    courier = desk.courier(posts=2)

    await courier.send_due()

    assert desk.channel.keys == ["a0/slack", "a1/slack", "b/slack"]


async def test_an_edit_is_no_new_message_to_the_loop_guard(desk: Desk) -> None:
    courier = desk.courier(posts=1)

    for number in range(5):
        await desk.tell(a_telling(f"live-{number}", slot="live"))
        await courier.send_due()

    assert len(desk.channel.sends) == 5


async def test_the_gravest_goes_first(desk: Desk) -> None:
    await desk.tell(
        a_telling("info", run_id=RunId("a")),
        a_telling("critical", severity=Severity.CRITICAL, run_id=RunId("b")),
    )

    await desk.courier().send_due()

    assert desk.channel.keys == ["critical/slack", "info/slack"]


async def test_a_replaced_hero_says_nothing_more(desk: Desk) -> None:
    """Field report R30."""
    desk.lease = await desk.store.acquire_lease("bot", "old", timedelta(seconds=30))
    assert desk.lease is not None
    await desk.store.release_lease(desk.lease)
    await desk.tell(a_telling("a"))

    with pytest.raises(LeaseLostError):
        await desk.courier().run()

    assert desk.channel.sends == []


async def test_a_worker_sends_what_is_filled_in_after_a_quiet_time_also_under_garbage_collection(desk: Desk) -> None:
    """Field report R32: a background task that nobody held on to vanished in mid-flight."""
    working = asyncio.create_task(desk.courier().run())
    for number in range(3):
        await asyncio.sleep(0)
        gc.collect()
        await desk.tell(a_telling(f"late-{number}"))
        await until(partial(desk.has_sent, number + 1), what="the bell did not wake the courier")

    working.cancel()
    await asyncio.wait((working,))


# The alarm: when there is no outbox to trust


async def rung(alarm: Alarm, is_done: Callable[[], bool]) -> None:
    ringing = asyncio.create_task(alarm.run())
    await until(is_done)
    ringing.cancel()
    await asyncio.wait((ringing,))


async def test_the_alarm_goes_straight_through_every_channel_once_an_hour() -> None:
    """Field report R29."""
    clock = FakeClock()
    slack, github = ScriptedChannel(), ScriptedChannel(name=ChannelName.GITHUB)
    alarm = Alarm(clock)
    alarm.through((slack, github))
    ringing = asyncio.create_task(alarm.run())

    for _ in range(20):
        alarm.ring(StoreFullError("hero.db: no space is left"))
        await asyncio.sleep(0)
    await until(lambda: slack.sends and github.sends)
    clock.advance(timedelta(minutes=59))
    alarm.ring(StoreFullError("hero.db: no space is left"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(slack.sends) == len(github.sends) == 1
    clock.advance(timedelta(minutes=2))
    alarm.ring(StoreFullError("hero.db: no space is left"))
    await until(lambda: len(slack.sends) == 2)

    update = slack.sends[0].update
    assert update.severity is Severity.CRITICAL
    assert "hero.db: no space is left" in update.evidence
    assert slack.sends[0].run_id is None
    assert slack.sends[0].key != slack.sends[1].key
    ringing.cancel()
    await asyncio.wait((ringing,))


async def test_a_channel_that_breaks_keeps_the_alarm_from_no_other_and_an_unheard_alarm_rings_again() -> None:
    clock = FakeClock()
    broken = ScriptedChannel(RuntimeError("-"), RuntimeError("-"))
    github = ScriptedChannel(Later(reason="503"), name=ChannelName.GITHUB)
    alarm = Alarm(clock)
    alarm.through((broken, github))
    alarm.ring(StoreError(str(RUN)))
    await rung(alarm, lambda: bool(github.sends))
    clock.advance(timedelta(minutes=1))

    alarm.ring(StoreError(str(RUN)))
    await rung(alarm, lambda: len(github.sends) == 2)

    assert len(broken.sends) == 2
