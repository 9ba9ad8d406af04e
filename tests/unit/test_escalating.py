"""The ladder over the real store: what it has done survives a restart, and what people say stops it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.building import make_rules
from bot.building_channels import one_way_channels
from bot.dispatcher import Dispatcher
from bot.model.delivery import ONE_WAY, ChannelName, Delivery, Never, Target
from bot.model.event import Commanded
from bot.model.incident import Acknowledged, open_incident
from bot.model.ladder import Rung
from bot.model.record import Decision, Record
from bot.model.run import Run, RunState
from bot.model.update import Update, UpdateKind
from bot.model.value import CheckId, RunId
from bot.model.verdict import Finding, Severity
from bot.redaction import Redactor
from bot.settings import EmailSettings, EscalationSettings, PagerSettings, Settings, load_settings
from bot.store.store import Store
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, RUN, contract
from tests.unit.handlers.scene import MEMBER, PEOPLE, POSTED, RULES, place, said, slack

SLACK, GITHUB, EMAIL, PAGER = ChannelName.SLACK, ChannelName.GITHUB, ChannelName.EMAIL, ChannelName.PAGER
STALLED = Finding(
    check=CheckId("progress.stalled"), severity=Severity.CRITICAL, summary="no step for 40 min", advice="look"
)


class Member:
    """A channel in which everybody is a member."""

    async def identify(self, actor: Any) -> Any:
        return MEMBER


class Night:
    """A run with a critical incident that nobody reacts to, at Hero's own store."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.names: tuple[ChannelName, ...] = (SLACK, GITHUB, EMAIL, PAGER)
        self.mailed: frozenset[UpdateKind] = frozenset()
        self.dispatcher = self.start()

    def start(self) -> Dispatcher:
        channels: Any = dict.fromkeys(self.names, Member())
        contracts: Any = self
        rules = RULES.model_copy(update={"ladders": EscalationSettings().ladders, "mailed": self.mailed})
        self.dispatcher = Dispatcher(
            store=self.store,
            contracts=contracts,
            launchers={},
            channels=channels,
            people=PEOPLE,
            rules=rules,
            redactor=Redactor(),
            clock=self.clock,
            check_soon=lambda _run: None,
            alarm=lambda _error: None,
            lease=lambda: None,
        )
        return self.dispatcher

    def load(self, _run_id: RunId) -> Any:
        return contract()

    def run_ids(self) -> tuple[RunId, ...]:
        return (RUN,)

    async def put(self) -> None:
        run = Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT, last_told_at=AT)
        async with self.store.transaction() as tx:
            await tx.apply(Decision(run=run, incidents=(open_incident(4, RUN, STALLED, AT),)), RUN, AT)
        for posted in POSTED:
            await self.store.save_posted(posted)

    async def minutes(self, count: int, step: int = 5) -> None:
        for _ in range(0, count, step):
            self.clock.advance(timedelta(minutes=step))
            async with self.store.transaction() as tx:
                run = (await tx.record(RUN)).run
                checked = run.model_copy(update={"last_checked_at": self.clock.now()})
                await tx.apply(Decision(run=checked), RUN, self.clock.now())
            await self.dispatcher.time_passed()

    async def waiting(self, channel: ChannelName) -> list[Delivery]:
        return list(await self.store.due_deliveries(channel, limit=100))

    async def record(self) -> Record:
        found = await self.store.record(RUN)
        assert found is not None
        return found


@pytest.fixture
async def night(tmp_path: Path) -> AsyncIterator[Night]:
    clock = FakeClock(AT)
    store = await Store.open(f"sqlite:///{tmp_path}/hero.db", clock, Redactor())
    night = Night(store, clock)
    await night.put()
    yield night
    await store.close()


async def test_each_rung_is_told_once_over_any_number_of_restarts(night: Night) -> None:
    for _ in range(12):
        await night.minutes(15)
        night.start()

    told = {name: await night.waiting(name) for name in night.names}
    assert [d.target.direct_to for d in told[SLACK]] == ["", "U0ADA"]
    assert [len(told[name]) for name in (GITHUB, EMAIL, PAGER)] == [1, 1, 1]
    (page,) = told[PAGER]
    assert page.update.page is not None
    assert page.update.page.key == f"hero/{RUN}/I4"
    assert [entry.what for entry in await night.store.audit()].count("escalated") == 4


async def test_a_word_of_the_dri_in_the_thread_stops_it(night: Night) -> None:
    await night.minutes(20)
    await night.store.receive("slack", "Ev1", said("on it", at=night.clock.now()))
    await night.dispatcher.handle_pending()

    await night.minutes(180)

    assert [d.update.kind for d in await night.waiting(SLACK)] == [UpdateKind.ESCALATION]
    assert (await night.record()).run.attended_at is not None
    assert await night.waiting(EMAIL) == []


@pytest.mark.parametrize("text", ["ack I4", "incidents", f"status {RUN}"])
async def test_a_command_of_the_dri_about_the_run_stops_it(night: Night, text: str) -> None:
    await night.minutes(20)
    where = place(slack().platform, "300.1")
    command = Commanded(actor=slack(), place=where, text=text, said_at=night.clock.now())
    await night.store.receive("slack", "Ev1", command)
    await night.dispatcher.handle_pending()

    await night.minutes(180)

    assert await night.waiting(EMAIL) == []
    known = await night.record()
    assert known.run.attended_at is not None
    assert isinstance(known.incidents[0].state, Acknowledged) is (text == "ack I4")


async def test_a_page_that_cannot_be_sent_is_told_where_people_talk(night: Night) -> None:
    await night.minutes(150)
    (page,) = await night.waiting(PAGER)

    await night.dispatcher.delivery_failed(page, Never(reason="it answered 400", fix="correct the key"))

    told = (await night.waiting(SLACK))[-1]
    assert told.target == Target()
    assert "not delivered to pager: it answered 400; correct the key" in told.update.next


async def test_a_direct_message_that_cannot_be_sent_does_not_take_its_place_along(night: Night) -> None:
    await night.minutes(40)
    direct = next(d for d in await night.waiting(SLACK) if d.target.direct_to)

    await night.dispatcher.delivery_failed(direct, Never(reason="gone", fix="look"))

    assert (await night.waiting(GITHUB))[-1].target == Target()


async def test_a_run_s_ordinary_news_is_mailed_only_where_its_kind_is_wanted(night: Night) -> None:
    for mailed in (frozenset[UpdateKind](), frozenset({UpdateKind.NOTICE})):
        night.mailed = mailed
        night.start()
        await night.dispatcher.notice(f"n{len(mailed)}", "the client is old", (), "upgrade it")

    updates: list[Update] = [d.update for d in await night.waiting(EMAIL)]
    assert [update.headline for update in updates] == ["the client is old"]
    assert len(await night.waiting(SLACK)) == 2
    assert await night.waiting(PAGER) == []


def test_nobody_speaks_in_a_one_way_channel() -> None:
    assert {EMAIL, PAGER} == ONE_WAY


def test_whoever_sets_up_mail_or_a_pager_gets_the_ladder_and_still_talks_in_the_terminal() -> None:
    plain = Settings()
    mail = Settings(email=EmailSettings(host="m.example.org", sender="hero@example.org", kinds=(UpdateKind.FAILED,)))
    pager = Settings(pager=PagerSettings(routing_key=SecretStr("key")))
    clock = FakeClock()

    assert make_rules(plain).ladders is None
    assert make_rules(mail).ladders == make_rules(pager).ladders == EscalationSettings().ladders
    assert make_rules(mail).mailed == {UpdateKind.FAILED}
    assert [list(one_way_channels(each, clock)) for each in (plain, mail, pager)] == [[], [EMAIL], [PAGER]]
    assert mail.speaks_in_terminal
    assert "key" in pager.secrets


def test_the_file_says_when_each_rung_is_due(tmp_path: Path) -> None:
    file = tmp_path / "hero.toml"
    file.write_text('[escalation.critical]\nmention = "5m"\npager = "off"\n', encoding="utf-8")

    ladders = make_rules(load_settings(file)).ladders

    assert ladders is not None
    assert ladders.critical.times[Rung.MENTION] == timedelta(minutes=5)
    assert Rung.PAGER not in ladders.critical.times
    assert ladders.warning.times[Rung.EMAIL] == timedelta(hours=12)
