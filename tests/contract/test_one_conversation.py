"""One run, three chats: a decision in one of them shows on all, by the real SDKs, from one outbox."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.channels.discord.channel import DiscordChannel
from bot.channels.github.channel import GitHubChannel
from bot.channels.ports import Channel
from bot.channels.slack.channel import SlackChannel
from bot.clock import SystemClock
from bot.courier import Courier
from bot.dispatcher import Dispatcher
from bot.model.action import ActionState
from bot.model.delivery import ChannelName
from bot.model.event import Inbound, Place, Pressed, Said
from bot.model.person import Actor, Person, Platform
from bot.model.plan import RequestState
from bot.model.record import Decision
from bot.redaction import Redactor
from bot.settings import DiscordSettings, GitHubSettings, SlackSettings
from bot.store.store import Store
from handlers import tellings
from tests.fakes.discord import FakeDiscord
from tests.fakes.discord_world import GUILD, HOME
from tests.fakes.github import FakeGitHub
from tests.fakes.slack import FakeSlack
from tests.fakes.snapshots import RUN, contract, instance
from tests.unit.handlers.scene import ADA, RULES, OneCommand, context, record, request

DANA = "300000000000000001"
CHATS = (ChannelName.SLACK, ChannelName.DISCORD, ChannelName.GITHUB)
PEOPLE = (Person(name=ADA, slack="U1", github="ada", github_id=11, discord=DANA),)
SECOND = timedelta(seconds=1)


def _fail(what: object, *_: object) -> Any:
    raise AssertionError(what)


class Desk:
    """One Hero with three chats, and R7 open in each of them."""

    def __init__(self, slack: FakeSlack, discord: FakeDiscord, github: FakeGitHub, url: str) -> None:
        self.slack, self.discord, self.github = slack, discord, github
        self.clock = SystemClock()
        self.url = url
        self.store: Store
        self.channels: dict[ChannelName, Channel] = {}
        self.contract = contract()

    async def open(self) -> None:
        self.store = await Store.open(self.url, self.clock, Redactor())
        bot, app = SecretStr(self.slack.bot_token), SecretStr(self.slack.app_token)
        slack = SlackSettings(
            bot_token=bot, app_token=app, base_url=self.slack.base_url, channel="C1", deadline=10 * SECOND
        )
        discord = DiscordSettings(
            api_base=self.discord.api_base,
            guild=GUILD,
            channel=HOME,
            token=SecretStr(self.discord.token),
            deadline=10 * SECOND,
        )
        github = GitHubSettings(
            token=SecretStr(self.github.token),
            repository=self.github.repository,
            base_url=self.github.url,
            deadline=10 * SECOND,
        )
        self.channels = {
            ChannelName.SLACK: SlackChannel(slack, self.store, self.clock, people=PEOPLE),
            ChannelName.DISCORD: DiscordChannel(discord, self.store, self.clock, people=PEOPLE),
            ChannelName.GITHUB: GitHubChannel(
                github, self.store, self.clock, people=PEOPLE, issues=lambda _run: None, pacing=timedelta()
            ),
        }

    async def close(self) -> None:
        for channel in self.channels.values():
            await channel.close()
        await self.store.close()

    def dispatcher(self, store: Store) -> Dispatcher:
        launchers: Any = {"iris": OneCommand()}
        contracts: Any = self
        return Dispatcher(
            store=store,
            contracts=contracts,
            launchers=launchers,
            channels=self.channels,
            people=PEOPLE,
            rules=RULES,
            redactor=Redactor(),
            clock=self.clock,
            check_soon=lambda _run: None,
            alarm=_fail,
            lease=lambda: None,
        )

    def load(self, _run_id: object) -> Any:
        return self.contract

    def run_ids(self) -> tuple[Any, ...]:
        return (RUN,)

    async def ask(self) -> None:
        """Put R7 to ada in every chat."""
        now = self.clock.now()
        asked = request(asked_at=now, expires_at=now + timedelta(hours=24))
        known = record(asked, posted=())
        around = context(channels=CHATS, people=PEOPLE)
        told = tellings.request_asked(around, known, asked, now, ())
        async with self.store.transaction() as tx:
            decision = Decision(run=known.run, instances=(instance(),), requests=(asked,), tell=(told,))
            await tx.apply(decision, RUN, now)
        await self.deliver()

    async def deliver(self) -> None:
        """Bring everything that is due to where it goes."""
        for channel in self.channels.values():
            courier = Courier(
                channel=channel,
                store=self.store,
                clock=self.clock,
                deadline=15 * SECOND,
                posts_per_minute=100,
                give_up=_fail,
                alarm=_fail,
                lease=lambda: None,
            )
            while await courier.send_due():
                pass

    async def posted(self, channel: ChannelName) -> tuple[str, str]:
        """Return where the request stands: the conversation's key and the message."""
        thread = await self.store.posted(channel, RUN, "thread")
        asked = await self.store.posted(channel, RUN, "request:7")
        assert thread is not None
        assert asked is not None
        return thread.message_id, asked.message_id.rpartition(":")[2]

    async def shown(self, channel: ChannelName) -> tuple[str, bool]:
        """Return what the request's message says now, and whether it still has buttons."""
        _, message = await self.posted(channel)
        match channel:
            case ChannelName.SLACK:
                (post,) = [each for each in self.slack.own_messages("C1") if each.ts == message]
                return post.shown, any(block["type"] == "actions" for block in post.blocks)
            case ChannelName.DISCORD:
                said = self.discord.world.posts[message]
                return said.shown, bool(said.buttons)
            case _:
                (issue,) = self.github.issues()
                (comment,) = [each for each in issue.comments if str(each.id) == message]
                return comment.body, "approve R7" in comment.body

    async def says_yes(self, channel: ChannelName) -> Inbound:
        """What ada does in one chat, as that channel hands it on: a reply, or a press of the button on Discord."""
        where, message = await self.posted(channel)
        now = self.clock.now()
        users = {ChannelName.SLACK: "U1", ChannelName.DISCORD: DANA, ChannelName.GITHUB: "11"}
        login = "ada" if channel is ChannelName.GITHUB else ""
        actor = Actor(platform=Platform(channel.value), user_id=users[channel], login=login)
        conversation, _, thread = where.partition(":")
        if channel is ChannelName.DISCORD:
            place = Place(conversation=conversation, message=message)
            return Pressed(actor=actor, place=place, request="R7", is_approval=True, said_at=now)
        whole, _, rest = message.partition(".")
        later = f"{int(whole) + 1}.{rest}" if rest else str(int(whole) + 1)
        place = Place(conversation=conversation, thread=thread, message=later)
        return Said(actor=actor, place=place, text="approve R7", said_at=now)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(FakeSlack())
        discord = await stack.enter_async_context(FakeDiscord())
        github = stack.enter_context(FakeGitHub())
        slack.add_channel("C1", "runs")
        slack.add_user("U1", "Ada")
        slack.allow_mentions("<@U1>")
        discord.world.add_person(DANA)
        github.add_user("ada", 11, permission="write")
        made = Desk(slack, discord, github, f"sqlite:///{tmp_path}/hero.db")
        await made.open()
        await made.ask()
        yield made
        await made.close()
        assert discord.refused == []
        assert github.mistakes == ()
        assert slack.mistakes == []


@pytest.mark.parametrize(
    ("channel", "where"),
    [
        (ChannelName.SLACK, "in Slack"),
        (ChannelName.DISCORD, "in Discord"),
        (ChannelName.GITHUB, "on GitHub"),
    ],
)
async def test_a_decision_in_one_chat_edits_the_request_in_all_of_them(
    desk: Desk, channel: ChannelName, where: str
) -> None:
    before = {each: (await desk.posted(each), await desk.shown(each)) for each in CHATS}
    for each in CHATS:
        assert before[each][1][1], before[each]

    await desk.store.receive(channel.value, "yes", await desk.says_yes(channel))
    assert await desk.dispatcher(desk.store).handle_pending() == 1
    await desk.deliver()

    for each in CHATS:
        assert await desk.posted(each) == before[each][0], "it is the same message"
        text, has_buttons = await desk.shown(each)
        assert f"approved by ada {where} at " in text.replace("\\", "").replace("**", ""), each
        assert not has_buttons, each
    known = await desk.store.record(RUN)
    assert known is not None
    assert [action.state for action in known.actions] == [ActionState.GRANTED]


async def test_two_replicas_that_hear_the_same_act_take_it_once(desk: Desk) -> None:
    """A webhook and a poll, or two sockets, may be two processes for a moment; they share the database's file."""
    yes = await desk.says_yes(ChannelName.SLACK)
    other = await Store.open(desk.url, desk.clock, Redactor())

    taken = await asyncio.gather(*(store.receive("slack", "msg:1", yes) for store in (desk.store, other, other)))
    handled = [await desk.dispatcher(store).handle_pending() for store in (other, desk.store)]
    late = await desk.store.receive("slack", "msg:1", yes)
    await other.close()

    assert sorted(taken) == [False, False, True]
    assert (sum(handled), late) == (1, False)
    known = await desk.store.record(RUN)
    assert known is not None
    assert len(known.actions) == 1
    assert [each.state for each in known.requests] == [RequestState.GRANTED]
