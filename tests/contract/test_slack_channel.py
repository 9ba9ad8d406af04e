"""Slack as a channel, through the real slack_sdk and slack_bolt, against a Slack that fails as the real one does.

Time runs fifty times as fast as on the wall, for Hero and for the fake alike.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette

from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.manifest import EVENTS, FILES_SCOPE, NEEDED_SCOPES, slack_manifest
from bot.model.chart import Chart, Mark
from bot.model.delivery import Awaited, ChannelName, Delivery, Later, Never, Posted, SendOutcome, Sent, Target
from bot.model.event import Commanded, Inbound, Pressed, Said, Unsaid
from bot.model.person import Actor, Person, Platform
from bot.model.reading import Gap, Known, Unknown
from bot.model.run import RunState
from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.model.verdict import Severity
from bot.settings import SlackSettings
from tests.fakes.ledger import FakeLedger
from tests.fakes.slack import FakeSlack
from tests.fakes.slack_values import (
    ApiError,
    Http500,
    LostAfterPerforming,
    LostBeforePerforming,
    NotJson,
    Post,
    RateLimited,
    Stall,
)

RUN = RunId("hero-12d8")
SPEED = 50.0


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
        self.changed: Callable[[], None] = lambda: None

    async def receive(self, source: str, event_id: str, payload: Inbound) -> bool:
        assert source == "slack"
        if self.is_full:
            raise OSError("no space left on device")
        self.copies += 1
        is_new = event_id not in self.events
        self.events.setdefault(event_id, payload)
        self.changed()
        return is_new

    def texts(self) -> list[str]:
        return [payload.text for payload in self.events.values() if isinstance(payload, Said)]

    def only(self) -> Inbound:
        (payload,) = self.events.values()
        return payload


class Desk:
    """One Hero before one Slack: what a test needs at hand."""

    def __init__(self, slack: FakeSlack, clock: SwiftClock) -> None:
        self.slack = slack
        self.clock = clock
        self.ledger = FakeLedger()
        self.inbox = Received()
        self.inbox.changed = slack.delivery.changed.set
        self._numbers = 0

    def channel(self, *, thread: str | None = None, runs: tuple[str, ...] = (), **settings: Any) -> SlackChannel:
        given: dict[str, Any] = {
            "deadline": timedelta(seconds=1),
            "catch_up": timedelta(seconds=20),
            "channel": "C1",
        } | settings
        return SlackChannel(
            SlackSettings(
                bot_token=SecretStr(self.slack.bot_token),
                app_token=SecretStr(self.slack.app_token),
                signing_secret=SecretStr(self.slack.signing_secret),
                base_url=self.slack.base_url,
                **given,
            ),
            self.ledger,
            self.clock,
            people=(Person(name=PersonName("dana"), slack="U1"),),
            threads=lambda _run: thread,
            runs=lambda: runs,
        )

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
            channel=ChannelName.SLACK,
            run_id=run_id,
            target=target,
            update=update,
            created_at=self.clock.now(),
            attempt=attempt,
            first_intent_at=self.clock.now(),
        )

    def again(self, delivery: Delivery) -> Delivery:
        return delivery.model_copy(update={"attempt": delivery.attempt + 1})

    async def opened(self, channel: SlackChannel) -> str:
        """Open the run's thread; return its root's ts."""
        sent = await channel.send(self.delivery("Hero watches this run", "live"))
        assert isinstance(sent, Sent)
        return sent.message_id.partition(":")[2]

    def own(self) -> list[Post]:
        return self.slack.own_messages("C1")

    def calls(self, method: str) -> int:
        return sum(call.method == method for call in self.slack.calls)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for what follows from messages, or from time alone."""
        async with asyncio.timeout(6):
            while not true():
                await self.clock.sleep(timedelta(seconds=0.5))

    @asynccontextmanager
    async def listening(self, channel: SlackChannel) -> AsyncIterator[SlackChannel]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(channel.run(self.inbox.receive))
            await self.until(lambda: channel._link.is_up)
            yield channel
            task.cancel()
        await channel.close()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock = SwiftClock()
    async with FakeSlack(wall=clock.timestamp) as slack:
        slack.add_channel("C1", "runs")
        slack.add_user("U1", "Dana")
        slack.allow_mentions("<@U1>")
        yield Desk(slack, clock)
        await slack.settled()
        assert [mistake for mistake in slack.mistakes if mistake.kind != "unacked"] == []


def shown(post: Post) -> str:
    return f"{post.shown}\n{post.text}"


# What leaves


async def test_the_live_status_is_the_root_of_the_runs_thread_and_is_edited_in_place(desk: Desk) -> None:
    channel = desk.channel()

    first = await channel.send(desk.delivery("training began", "live"))
    news = await channel.send(desk.delivery("80 % done", kind=UpdateKind.MILESTONE))
    second = await channel.send(desk.delivery("step 20", "live"))
    same = await channel.send(desk.delivery("step 20", "live"))

    root, reply = desk.own()
    assert isinstance(first, Sent)
    assert isinstance(news, Sent)
    assert first.message_id == f"C1:{root.ts}"
    assert (second, same) == (first, first)
    assert root.edited
    assert "step 20" in root.shown
    assert reply.thread_ts == root.ts
    assert news.link.endswith(f"?thread_ts={root.ts}&cid=C1")
    assert desk.calls("chat.update") == 1
    posted = [call.args for call in desk.slack.calls if call.method == "chat.postMessage"]
    assert {str(args["unfurl_links"]) + str(args["unfurl_media"]) for args in posted} <= {
        "FalseFalse",
        "00",
        "falsefalse",
    }


async def test_news_before_any_status_opens_the_thread_and_follows_in_it(desk: Desk) -> None:
    channel = desk.channel()

    await channel.send(
        desk.delivery("failed", kind=UpdateKind.FAILED, severity=Severity.CRITICAL, asked=PersonName("dana"))
    )
    await channel.send(desk.delivery("now running", "live"))

    root, reply = desk.own()
    assert "now running" in root.shown
    assert reply.thread_ts == root.ts
    assert "<@U1>" in reply.shown
    assert desk.ledger.messages[ChannelName.SLACK, RUN, "thread"].message_id == f"C1:{root.ts}"


async def test_a_contracts_thread_is_used_and_its_root_is_left_alone(desk: Desk) -> None:
    theirs = await desk.slack.user_says("C1", "U1", "this is about hero-12d8")
    channel = desk.channel(thread=str(theirs))

    await channel.send(desk.delivery("running", "live"))
    await channel.send(desk.delivery("still running", "live"))

    (live,) = desk.own()
    assert live.thread_ts == theirs
    assert "still running" in live.shown


async def test_a_decided_request_loses_its_buttons(desk: Desk) -> None:
    channel = desk.channel()
    await desk.opened(channel)
    ask = Choice(request="R7", is_open=True)
    done = Choice(request="R7", is_open=False, outcome="approved by dana")

    await channel.send(
        desk.delivery("asks", "request:7", kind=UpdateKind.REQUEST_ASKED, asked=PersonName("dana"), choice=ask)
    )
    before = desk.own()[1]
    await channel.send(desk.delivery("approved", "request:7", kind=UpdateKind.REQUEST_ANSWERED, choice=done))

    _, after = desk.own()
    assert "actions" in {block["type"] for block in before.blocks}
    assert "<@U1>" in before.text
    assert "actions" not in {block["type"] for block in after.blocks}
    assert after.ts == before.ts
    assert "approved by dana" in after.shown


async def test_hostile_text_pings_nobody_in_blocks_and_fallback(desk: Desk) -> None:
    """Field report R03; the fixture looks at every post for markup that Slack would act on."""
    hostile = "<!channel> <@U1> <http://x|label> & ``` @here"
    channel = desk.channel()
    desk.slack.api.allowed_mentions.clear()

    await channel.send(desk.delivery(hostile, "live", evidence=(hostile,), plan=(hostile,), next=hostile))
    await channel.send(desk.delivery(hostile, private_to="U1", evidence=(hostile,)))

    assert "&lt;!channel&gt;" in desk.own()[0].text
    assert "&lt;!channel&gt;" in desk.own()[0].shown
    assert len(desk.slack.ephemerals) == 1


async def test_a_monstrous_failure_arrives_with_its_first_line_intact(desk: Desk) -> None:
    """Field report R08."""
    channel = desk.channel()
    trace = "\n".join(f'```  File "{n}.py" <&' for n in range(5_000))

    sent = await channel.send(desk.delivery("exit code 137", "live", evidence=(trace,), next="The DRI is asked."))
    refused = desk.delivery("refused by Slack")
    desk.slack.fail_next("chat.postMessage", ApiError("invalid_blocks"))
    again = await channel.send(refused)

    first, second = desk.own()
    assert isinstance(sent, Sent)
    assert isinstance(again, Sent)
    assert "exit code 137" in first.shown.split("\n")[0]
    assert "evidence cut" in first.shown
    assert "The DRI is asked." in first.shown
    assert (second.blocks, "refused by Slack" in second.text) == ((), True)


async def test_an_answer_lost_after_the_post_leads_to_one_message(desk: Desk) -> None:
    channel = desk.channel()
    await desk.opened(channel)
    news = desk.delivery("a milestone", "incident:4", kind=UpdateKind.INCIDENT_OPENED)
    desk.slack.fail_next("chat.postMessage", LostAfterPerforming())

    lost = await channel.send(news)
    sent = await desk.channel().send(desk.again(news))

    assert isinstance(lost, Later)
    assert lost.is_uncertain
    assert isinstance(sent, Sent)
    assert sum("a milestone" in post.shown for post in desk.own()) == 1
    assert desk.ledger.messages[ChannelName.SLACK, RUN, "incident:4"].message_id == sent.message_id


async def test_a_root_lost_after_its_post_is_found_again_by_whatever_comes_next(desk: Desk) -> None:
    channel = desk.channel()
    first = desk.delivery("running", "live")
    desk.slack.fail_next("chat.postMessage", LostAfterPerforming())

    await channel.send(first)
    await channel.send(desk.delivery("other news"))
    sent = await channel.send(desk.again(first))

    root, reply = desk.own()
    assert isinstance(sent, Sent)
    assert sent.message_id == f"C1:{root.ts}"
    assert reply.thread_ts == root.ts


async def test_somebody_elses_metadata_is_not_taken_for_heros_own_message(desk: Desk) -> None:
    channel = desk.channel()
    root = await desk.opened(channel)
    news = desk.delivery("news")
    forged = await desk.slack.bot_says("C1", "psst", root)
    metadata = {"event_type": "hero_delivery", "event_payload": {"key": news.key}}
    desk.slack.workspace.find(forged).metadata = metadata

    await channel.send(desk.again(news))

    assert "news" in desk.own()[-1].shown


@pytest.mark.parametrize(
    ("fault", "is_uncertain"),
    [
        (LostBeforePerforming(), True),
        (Http500(), True),
        (Http500(performed=True, status=502), True),
        (NotJson(), True),
        (ApiError("internal_error"), True),
        (ApiError("some_future_error"), False),
    ],
)
async def test_what_cannot_be_told_comes_later_and_once(desk: Desk, fault: Any, is_uncertain: bool) -> None:
    channel = desk.channel()
    await desk.opened(channel)
    news = desk.delivery("news")
    desk.slack.fail_next("chat.postMessage", fault)

    outcome = await channel.send(news)
    sent = await channel.send(desk.again(news))

    assert isinstance(outcome, Later)
    assert outcome.is_uncertain is is_uncertain
    assert isinstance(sent, Sent)
    assert len(desk.own()) == 2


async def test_a_service_that_is_down_or_stalls_means_later(desk: Desk) -> None:
    channel = desk.channel(deadline=timedelta(seconds=0.2))
    await desk.opened(channel)
    desk.slack.fail_next("chat.postMessage", Stall(performed=True))

    stalled = await channel.send(desk.delivery("news"))
    await desk.slack.stop()
    down = await channel.send(desk.delivery("more news"))

    assert isinstance(stalled, Later)
    assert stalled.is_uncertain
    assert isinstance(down, Later)
    assert not down.is_uncertain


@pytest.mark.parametrize(("said", "at_least"), [(7, 7), (None, 30)])
async def test_a_rate_limit_is_waited_out_without_asking_again(desk: Desk, said: int | None, at_least: int) -> None:
    channel = desk.channel()
    await desk.opened(channel)
    desk.slack.fail_next("chat.postMessage", RateLimited(said))

    refused = await channel.send(desk.delivery("news"))
    calls = desk.calls("chat.postMessage")
    held = await channel.send(desk.delivery("other news"))

    assert isinstance(refused, Later)
    assert refused.after == timedelta(seconds=at_least)
    assert isinstance(held, Later)
    assert held.after is not None
    assert desk.calls("chat.postMessage") == calls


async def test_a_burst_of_a_hundred_is_posted_in_step_and_none_is_lost(desk: Desk) -> None:
    """Field report R05: one post a second in a channel, refusals waited out, everything arrives."""
    channel = desk.channel()
    root = await desk.opened(channel)
    desk.slack.fail_next("chat.postMessage", RateLimited(1), RateLimited(1))
    waiting = [desk.delivery(f"alert {n}") for n in range(100)]

    while waiting:
        outcomes: list[SendOutcome] = [await channel.send(delivery) for delivery in waiting[:10]]
        kept = [d for d, outcome in zip(waiting, outcomes, strict=False) if isinstance(outcome, Later)]
        waiting = kept + waiting[10:]
        pauses = [outcome.after for outcome in outcomes if isinstance(outcome, Later) and outcome.after]
        await desk.clock.sleep(max(pauses, default=timedelta()))

    replies = [post for post in desk.own() if post.thread_ts == root and post.ts != root]
    moments = [float(post.ts) for post in replies]
    assert len(replies) == 100
    assert len({post.shown for post in replies}) == 100
    assert all(later - earlier >= 8 for earlier, later in zip(moments, moments[10:], strict=False))


async def test_a_deleted_root_is_replaced_once_and_said_once(desk: Desk) -> None:
    """Field report R09: with the answers under it (a tombstone) and without."""
    channel = desk.channel()
    root = await desk.opened(channel)
    await desk.slack.user_deletes(root)

    await channel.send(desk.delivery("step 20", "live"))
    await channel.send(desk.delivery("step 30", "live"))
    await channel.send(desk.delivery("news"))

    shown_now = [post for post in desk.own() if not post.deleted]
    new_root = shown_now[0]
    assert new_root.ts != root
    assert "step 30" in new_root.shown
    assert {post.thread_ts for post in shown_now[1:]} == {new_root.ts}
    assert sum("earlier thread" in post.shown for post in shown_now) == 1


async def test_a_root_that_became_a_tombstone_is_left_and_a_reply_opens_a_new_thread(desk: Desk) -> None:
    channel = desk.channel()
    root = await desk.opened(channel)
    await desk.slack.user_says("C1", "U1", "hm", root)
    async with desk.listening(channel):
        await desk.slack.user_deletes(root)

        await channel.send(desk.delivery("news"))

    news = next(post for post in desk.own() if "news" in post.shown)
    assert news.thread_ts not in {None, root}


async def test_a_reply_to_a_reply_is_answered_at_the_threads_root(desk: Desk) -> None:
    """Field report R09; the fixture fails on a wrong root."""
    channel = desk.channel()
    root = await desk.opened(channel)
    async with desk.listening(channel):
        await desk.slack.user_says("C1", "U1", "hero?", root)
        said = desk.inbox.only()
        assert isinstance(said, Said)
        place = said.place
        await channel.send(
            desk.delivery("an answer", conversation=place.conversation, thread=place.thread, run_id=None)
        )

    assert desk.own()[-1].thread_ts == root


async def test_what_a_person_can_mend_comes_later_and_trouble_says_how(desk: Desk) -> None:
    channel = desk.channel()
    await desk.opened(channel)
    room = desk.slack.workspace.channels["C1"]
    news = desk.delivery("news")

    room.is_archived = True
    archived = await channel.send(news)
    told = channel.trouble
    room.is_archived, room.is_member = False, False
    left = await channel.send(desk.again(news))
    room.is_member = True
    sent = await channel.send(desk.again(news))

    assert isinstance(archived, Later)
    assert archived.after == timedelta(minutes=5)
    assert "unarchive channel C1" in told
    assert isinstance(left, Later)
    assert "/invite @hero" in left.reason
    assert isinstance(sent, Sent)
    assert channel.trouble == ""


async def test_a_missing_scope_and_a_revoked_token_name_their_fix(desk: Desk) -> None:
    channel = desk.channel()
    await desk.opened(channel)

    desk.slack.scopes.remove("chat:write")
    lacking = await channel.send(desk.delivery("news"))
    scope_trouble = channel.trouble
    desk.slack.fail_next("chat.postMessage", ApiError("token_revoked"))
    revoked = await channel.send(desk.delivery("news"))

    assert isinstance(lacking, Later)
    assert "chat:write" in scope_trouble
    assert isinstance(revoked, Later)
    assert "HERO_SLACK__BOT_TOKEN" in channel.trouble
    assert desk.slack.bot_token not in channel.trouble + revoked.reason


async def test_what_waits_comes_to_a_person_by_direct_message_and_mentions_who_else_is_asked(desk: Desk) -> None:
    channel = desk.channel()
    asked: dict[str, Any] = {"asked": PersonName("dana"), "also_asked": (PersonName("kim"),)}
    delivery = desk.delivery("I4 has waited 30 min", kind=UpdateKind.ESCALATION, direct_to="U1", **asked)

    sent = await channel.send(delivery)
    nobody = await channel.send(desk.delivery("I4 has waited", kind=UpdateKind.ESCALATION, direct_to="U0NOBODY"))

    (direct,) = desk.slack.own_messages("DU1")
    assert isinstance(sent, Sent)
    assert "I4 has waited 30 min" in direct.shown
    assert "<@U1>, *kim*" in direct.shown
    assert desk.own() == [], "the run's thread is left alone"
    assert isinstance(nobody, Never)


async def test_a_private_answer_is_ephemeral_and_direct_where_hero_is_not(desk: Desk) -> None:
    desk.slack.add_channel("C9", "elsewhere", member=False)
    channel = desk.channel()
    root = await desk.opened(channel)

    await channel.send(desk.delivery("you are not the DRI", private_to="U1", conversation="C1", thread=root))
    await channel.send(desk.delivery("two runs", private_to="U1", conversation="C9", run_id=None))
    never = await channel.send(desk.delivery("two runs", conversation="C9", run_id=None))

    (whisper,) = desk.slack.ephemerals
    assert (whisper.user, whisper.thread_ts) == ("U1", root)
    assert "two runs" in desk.slack.own_messages("DU1")[0].shown
    assert isinstance(never, Never)
    assert "/invite" in never.fix
    assert channel.trouble == ""


# What comes in


async def test_replies_presses_commands_and_deletions_reach_the_inbox(desk: Desk) -> None:
    channel = desk.channel()
    root = await desk.opened(channel)
    ask = Choice(request="R7", is_open=True)
    sent = await channel.send(desk.delivery("asks", "request:7", kind=UpdateKind.REQUEST_ASKED, choice=ask))
    assert isinstance(sent, Sent)
    button = sent.message_id.partition(":")[2]
    async with desk.listening(channel):
        said = await desk.slack.user_says("C1", "U1", "why <&> &lt;?", root)
        await desk.slack.user_deletes(said)
        press = await desk.slack.user_clicks("U1", button, "hero_approve")
        command = await desk.slack.slash("U1", "C1", "/hero", "status hero-12d8")
        await desk.slack.user_says("C1", "U1", f"<@{desk.slack.bot_user_id}> status", root)
        await desk.slack.user_says("C1", "U1", f"<@{desk.slack.bot_user_id}> approve R7", root)

    reply, gone, pressed, commanded, mentioned, approval = desk.inbox.events.values()
    assert isinstance(reply, Said)
    assert (reply.text, reply.actor.user_id, reply.place.key) == ("why <&> &lt;?", "U1", f"C1:{root}")
    assert isinstance(gone, Unsaid)
    assert gone.place.message == said
    assert isinstance(pressed, Pressed)
    assert (pressed.request, pressed.is_approval, pressed.place.key) == ("R7", True, f"C1:{root}")
    assert pressed.place.message == button
    assert isinstance(commanded, Commanded)
    assert commanded.text == "status hero-12d8"
    assert isinstance(mentioned, Commanded)
    assert mentioned.text == "status"
    assert isinstance(approval, Said)
    assert approval.text.endswith("approve R7")
    assert all(ack.acked and ack.latency_s is not None and ack.latency_s < 3 for ack in (press, command, *said.acks))


async def test_copies_of_one_event_are_acked_and_kept_once_over_a_restart(desk: Desk) -> None:
    """Field report R02: three copies, two of them unmarked, and one more after Hero was restarted."""
    root = await desk.opened(desk.channel())
    async with desk.listening(desk.channel()):
        said = await desk.slack.user_says("C1", "U1", "approve", root, "Ev1", copies=3, marked=False)
    async with desk.listening(desk.channel()):
        late = await desk.slack.redeliver("Ev1", 1)

    assert [ack.acked for ack in said.acks] == [True, True, True]
    assert late.acked
    assert all(ack.latency_s is not None and ack.latency_s < 3 for ack in (*said.acks, late))
    assert desk.inbox.texts() == ["approve"]


async def test_changes_that_nobody_typed_and_the_words_of_bots_decide_nothing(desk: Desk) -> None:
    """Field reports R04 and R45."""
    channel = desk.channel()
    root = await desk.opened(channel)
    await desk.slack.settled()
    desk.slack.delivery.unacked.clear()  # the root's own event, from before anybody listened
    async with desk.listening(channel):
        said = await desk.slack.user_says("C1", "U1", "look: https://example.com", root)
        acks = [*await desk.slack.unfurls(said)]
        await channel.send(desk.delivery("step 99", "live"))
        await channel.send(desk.delivery("approve"))
        await desk.slack.settled()
        acks += (await desk.slack.bot_says("C1", "approve R7", root)).acks
        acks += (await desk.slack.bot_says("C1", "approve R7", root, user=None)).acks
        acks += await desk.slack.user_edits(said, "approve R7")

    first, bot, classic, edited = desk.inbox.events.values()
    assert all(ack.acked for ack in acks)
    assert desk.slack.delivery.unacked == {}
    assert isinstance(first, Said)
    assert not first.is_edited
    assert isinstance(bot, Said)
    assert isinstance(classic, Said)
    assert bot.actor.is_bot
    assert classic.actor.is_bot
    assert isinstance(edited, Said)
    assert (edited.is_edited, edited.text) == (True, "approve R7")


async def test_talk_elsewhere_is_not_heard(desk: Desk) -> None:
    desk.slack.add_channel("C2", "elsewhere")
    root = await desk.opened(desk.channel())
    desk.ledger.messages[ChannelName.SLACK, "other", "thread"] = Posted(
        channel=ChannelName.SLACK, run_id=RunId("other"), slot="thread", message_id="C2:1.000001"
    )
    async with desk.listening(desk.channel()):
        other = await desk.slack.user_says("C2", "U1", "approve R7")
        await desk.slack.user_says("C1", "U1", "heard", root)

    assert all(ack.acked for ack in other.acks)
    assert desk.inbox.texts() == ["heard"]


async def test_what_could_not_be_stored_is_not_acked_and_comes_again(desk: Desk) -> None:
    channel = desk.channel()
    root = await desk.opened(channel)
    async with desk.listening(channel):
        desk.inbox.is_full = True
        desk.slack.delivery.ack_deadline_s = 0.1
        said = await desk.slack.user_says("C1", "U1", "approve", root)
        command = await desk.slack.slash("U1", "C1", "/hero", "status")
        told = channel.trouble
        desk.inbox.is_full = False
        again = await desk.slack.retry_unacked()
        await desk.until(lambda: not channel.trouble)

    assert not said.acks[0].acked
    assert not command.acked
    assert "can't be stored" in told
    assert all(ack.acked for ack in again)
    assert any(ack.event_id == said.acks[0].event_id for ack in again)
    assert desk.inbox.texts() == ["approve"]


async def test_a_slow_slack_does_not_delay_an_ack(desk: Desk) -> None:
    channel = desk.channel(deadline=timedelta(seconds=5))
    root = await desk.opened(channel)
    async with desk.listening(channel), asyncio.TaskGroup() as group:
        desk.slack.fail_next("chat.postMessage", Stall())
        slow = group.create_task(channel.send(desk.delivery("news")))
        await desk.until(lambda: desk.calls("chat.postMessage") == 2)
        said = await desk.slack.user_says("C1", "U1", "still there?", root)
        press = await desk.slack.user_clicks("U1", root, "hero_deny", "R7")
        slow.cancel()

    assert all(ack.latency_s is not None and ack.latency_s < 1 for ack in (*said.acks, press))


async def test_a_reply_typed_while_the_socket_was_deaf_counts_once_and_the_socket_is_replaced(desk: Desk) -> None:
    """Field report R01: the socket looked healthy, answered pings, and brought nothing."""
    channel = desk.channel(quiet_limit=timedelta(seconds=30), catch_up=timedelta(seconds=15))
    root = await desk.opened(channel)
    async with desk.listening(channel):
        opened = desk.calls("apps.connections.open")
        desk.slack.deaf = True
        await desk.slack.user_says("C1", "U1", "approve R7", root)
        await channel.send(desk.delivery("news"))
        await desk.until(lambda: "approve R7" in desk.inbox.texts())
        await desk.until(lambda: "deaf" in channel.trouble or desk.calls("apps.connections.open") > opened)
        desk.slack.deaf = False
        await desk.until(lambda: desk.calls("apps.connections.open") > opened and not channel.trouble)
        await desk.slack.user_says("C1", "U1", "and now?", root)
        reads = desk.calls("conversations.replies")
        await desk.until(lambda: desk.calls("conversations.replies") > reads + 1)

    assert desk.inbox.texts() == ["approve R7", "and now?"]


async def test_replies_of_a_time_without_hero_are_read_page_by_page_with_edits_marked(desk: Desk) -> None:
    root = await desk.opened(desk.channel())
    for n in range(230):
        await desk.slack.user_says("C1", "U1", f"line {n}", root)
    late = await desk.slack.user_says("C1", "U1", "no", root)
    await desk.slack.user_edits(late, "approve R7")

    async with desk.listening(desk.channel()):
        await desk.until(lambda: desk.ledger.cursors.get(f"slack:C1:{root}") == late)
    reads = desk.calls("conversations.replies")
    async with desk.listening(desk.channel()):
        await desk.until(lambda: desk.calls("conversations.replies") > reads + 1)

    last = list(desk.inbox.events.values())[-1]
    assert desk.inbox.texts()[:230] == [f"line {n}" for n in range(230)]
    assert isinstance(last, Said)
    assert (last.text, last.is_edited) == ("approve R7", True)
    assert len(desk.inbox.events) == 231


async def test_an_edit_made_while_nothing_was_heard_is_told_beside_what_was_said(desk: Desk) -> None:
    channel = desk.channel()
    root = await desk.opened(channel)
    async with desk.listening(channel):
        said = await desk.slack.user_says("C1", "U1", "deny", root)
        desk.slack.deaf = True
        await desk.slack.user_edits(said, "approve")
        await desk.until(lambda: len(desk.inbox.events) == 2)

    first, second = desk.inbox.events.values()
    assert isinstance(first, Said)
    assert isinstance(second, Said)
    assert (first.text, first.is_edited) == ("deny", False)
    assert (second.text, second.is_edited) == ("approve", True)


async def test_an_approval_that_was_deleted_while_the_socket_was_deaf_never_counts(desk: Desk) -> None:
    """Neither by reading the thread, in which it is no more, nor by a copy that comes after its deletion."""
    channel = desk.channel()
    root = await desk.opened(channel)
    async with desk.listening(channel):
        desk.slack.deaf = True
        said = await desk.slack.user_says("C1", "U1", "approve R7", root)
        await desk.slack.user_deletes(said)
        reads = desk.calls("conversations.replies")
        await desk.until(lambda: desk.calls("conversations.replies") > reads + 1)

    assert desk.inbox.texts() == []


async def test_a_copy_of_what_was_said_that_comes_after_its_deletion_is_dropped(desk: Desk) -> None:
    channel = desk.channel()
    root = await desk.opened(channel)
    late = {"type": "message", "channel": "C1", "user": "U1", "text": "approve R7", "ts": "1.000002", "thread_ts": root}
    gone = {
        "type": "message",
        "subtype": "message_deleted",
        "channel": "C1",
        "event_ts": "2.0",
        "previous_message": late,
    }
    async with desk.listening(channel):
        await channel._inbox.event(gone)
        await channel._inbox.event(late)

    assert desk.inbox.texts() == []


async def test_a_hundred_runs_are_read_at_slacks_pace_and_those_that_await_an_answer_each_time(desk: Desk) -> None:
    """Tier 3 allows 50 such questions a minute; a run that is over is left alone."""
    channel = desk.channel(catch_up=timedelta(seconds=60))
    root = await desk.opened(channel)
    for n in range(100):
        ref = await desk.slack.user_says("C1", "U1", f"thread {n}")
        await desk.ledger.save_posted(
            Posted(channel=ChannelName.SLACK, run_id=RunId(f"run-{n}"), slot="thread", message_id=f"C1:{ref}")
        )
    desk.ledger.awaits = Awaited(asked=frozenset({RUN}), over=frozenset({RunId("run-0")}))
    channel._inbox.receive = desk.inbox.receive
    await channel._api.me()
    read: list[list[str]] = []
    for _ in range(4):
        before = len(desk.slack.calls)
        assert await channel._catch_up.read_all() == ""
        asked = [call for call in desk.slack.calls[before:] if call.method == "conversations.replies"]
        read.append([str(call.args["ts"]) for call in asked])

    assert all(len(turn) <= 40 for turn in read)
    assert all(turn[0] == root for turn in read)
    assert len({ts for turn in read[:3] for ts in turn}) == 100


async def test_a_dead_address_is_given_up_for_a_new_one(desk: Desk) -> None:
    """The SDK alone tries a refused ticket for ever."""
    channel = desk.channel()
    desk.slack.dead_tickets = True
    async with asyncio.TaskGroup() as group:
        task = group.create_task(channel.run(desk.inbox.receive))
        await desk.until(lambda: desk.calls("apps.connections.open") >= 2)
        told = channel.trouble
        desk.slack.dead_tickets = False
        await desk.until(lambda: desk.slack.open_sockets == 1 and not channel.trouble)
        task.cancel()

    assert "socket is down" in told


async def test_dropped_and_moved_sockets_come_back_and_nothing_is_missed(desk: Desk) -> None:
    channel = desk.channel()
    root = await desk.opened(channel)
    async with desk.listening(channel):
        await desk.slack.ask_to_reconnect()
        await desk.slack.until(
            lambda: len(desk.slack.delivery.tickets) == 0 and desk.calls("apps.connections.open") == 2
        )
        await desk.until(lambda: desk.slack.open_sockets == 1)
        await desk.slack.user_says("C1", "U1", "first", root)
        await desk.slack.close_sockets()
        await desk.slack.user_says("C1", "U1", "second", root)
        await desk.until(lambda: len(desk.inbox.events) == 2)

    assert desk.inbox.texts() == ["first", "second"]


async def test_hero_starts_degraded_without_slack_and_says_why(desk: Desk) -> None:
    channel = desk.channel()
    desk.slack.fail_next("auth.test", ApiError("invalid_auth"), Http500(), LostBeforePerforming())
    desk.slack.fail_next("apps.connections.open", ApiError("invalid_auth"))
    seen: list[str] = []
    async with asyncio.TaskGroup() as group:
        task = group.create_task(channel.run(desk.inbox.receive))
        async with asyncio.timeout(5):
            while not (desk.slack.open_sockets and not channel.trouble):
                if channel.trouble not in seen:
                    seen.append(channel.trouble)
                await desk.clock.sleep(timedelta(seconds=0.1))
        task.cancel()

    assert any("HERO_SLACK__BOT_TOKEN" in text for text in seen)
    assert any("HERO_SLACK__APP_TOKEN" in text for text in seen)


@asynccontextmanager
async def serving(channel: SlackChannel) -> AsyncIterator[str]:
    """The routes of HTTP mode behind a real server."""
    config = uvicorn.Config(Starlette(routes=channel.routes()), port=0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined,method-assign,unused-ignore]  # older uvicorn has it
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.serve())
        async with asyncio.timeout(5):
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/slack/events"
        server.should_exit = True
        await task


async def test_over_http_only_what_slack_signed_just_now_is_taken(desk: Desk) -> None:
    channel = desk.channel(mode="http")
    root = await desk.opened(channel)
    async with serving(channel) as url, asyncio.TaskGroup() as group:
        desk.slack.deliver_to(url)
        early = await desk.slack.user_says("C1", "U1", "before Hero listened", root)
        task = group.create_task(channel.run(desk.inbox.receive))
        await desk.until(lambda: desk.inbox.texts() == ["before Hero listened"])
        assert await desk.slack.verify_url()

        said = await desk.slack.user_says("C1", "U1", "approve", root)
        desk.slack.delivery.timestamp_offset_s = -600
        old = await desk.slack.slash("U1", "C1", "/hero", "status")
        desk.slack.delivery.timestamp_offset_s = 0
        words = {"type": "message", "channel": "C1", "user": "U1", "ts": "1.000001", "text": "approve"}
        body = json.dumps({"type": "event_callback", "event": words})
        forged = desk.slack.delivery.sign(body, secret="wrong") | {"Content-Type": "application/json"}
        status, _, _ = await desk.slack.delivery.request(url, body, forged)
        await desk.slack.settled()
        task.cancel()

    assert early.acks[0].status == 503 or not early.acks[0].acked
    assert said.acks[0].acked
    assert old.status == 401
    assert status == 401
    assert desk.inbox.texts() == ["before Hero listened", "approve"]
    assert not any(isinstance(payload, Commanded) for payload in desk.inbox.events.values())


JSON = {"Content-Type": "application/json"}
DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "body", ["payload=null", "payload=[]", f"payload={DEEP}", DEEP, "[1,2]", "{", "7", '{"team":3}']
)
async def test_over_http_a_signed_body_of_no_known_shape_is_a_bad_request_and_no_fault(desk: Desk, body: str) -> None:
    headers = {} if body.startswith("payload") else JSON
    async with serving(desk.channel(mode="http")) as url:
        unsigned, _, _ = await desk.slack.delivery.request(url, body, headers)
        signed, _, _ = await desk.slack.delivery.request(url, body, desk.slack.delivery.sign(body) | headers)

    assert (unsigned, signed) == (401, 400)


@pytest.mark.parametrize(
    "forged",
    [
        {"X-Slack-Request-Timestamp": "nan"},
        {"X-Slack-Request-Timestamp": "-1"},
        {"X-Slack-Request-Timestamp": "9" * 5000},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Signature": ""},
        {"X-Slack-Signature": "v0=é"},
        {"X-Slack-Signature": "v1=" + "0" * 64},
    ],
)
async def test_over_http_a_stamp_or_signature_of_another_shape_proves_nothing(
    desk: Desk, forged: dict[str, str]
) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "c"})
    async with serving(desk.channel(mode="http")) as url:
        status, _, _ = await desk.slack.delivery.request(url, body, desk.slack.delivery.sign(body) | JSON | forged)
        good, _, _ = await desk.slack.delivery.request(url, body, desk.slack.delivery.sign(body) | JSON)

    assert (status, good) == (401, 200)


async def raw_post(url: str, *parts: bytes) -> bytes:
    """Send a request as it stands, without its end; return the first line of what is answered meanwhile."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(b"POST /slack/events HTTP/1.1\r\nHost: hero\r\n")
        for part in parts:
            writer.write(part)
        async with asyncio.timeout(5):
            return await reader.readline()
    finally:
        writer.close()


async def test_over_http_a_body_above_a_megabyte_is_refused_before_it_has_come(desk: Desk) -> None:
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    async with serving(desk.channel(mode="http")) as url:
        announced = await raw_post(url, b"Content-Length: 400000000\r\n\r\n")
        streamed = await raw_post(url, b"Transfer-Encoding: chunked\r\n\r\n", *([chunk] * 16))

    assert announced.split()[1] == b"413"
    assert streamed.split()[1] == b"413"


async def test_over_http_bytes_that_are_no_text_prove_nothing(desk: Desk) -> None:
    async with serving(desk.channel(mode="http")) as url:
        stamp = str(int(time.time())).encode()
        proof = b"X-Slack-Request-Timestamp: " + stamp + b"\r\nX-Slack-Signature: v0=" + b"0" * 64 + b"\r\n"
        answer = await raw_post(url, proof, b"Content-Length: 2\r\n\r\n", b"\xff\xfe")

    assert answer.split()[1] == b"401"


# Who they are, and whether all is in order


@pytest.mark.parametrize(
    ("flags", "is_member", "word"),
    [
        ({}, True, ""),
        ({"display_name": "U1"}, True, ""),
        ({"deleted": True}, False, "deactivated"),
        ({"is_bot": True}, False, "bot"),
        ({"is_restricted": True}, False, "guest"),
        ({"is_ultra_restricted": True}, False, "guest"),
        ({"is_stranger": True}, False, "another workspace"),
        ({"team_id": "T0OTHER"}, False, "another workspace"),
    ],
)
async def test_only_full_members_of_the_own_workspace_are_members(
    desk: Desk, flags: dict[str, Any], is_member: bool, word: str
) -> None:
    """Field report R40: guests, strangers, the deactivated, and whoever calls themselves like the DRI."""
    desk.slack.add_user("U5", "Dana", **flags)

    known = await desk.channel().identify(Actor(platform=Platform.SLACK, user_id="U5"))

    assert isinstance(known, Known)
    assert known.value.is_member is is_member
    assert known.value.is_bot is bool(flags.get("is_bot"))
    assert word in known.value.detail


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ApiError("missing_scope"), Gap.REFUSED),
        (Http500(), Gap.UNREACHABLE),
        (RateLimited(1), Gap.UNREACHABLE),
        (NotJson(), Gap.UNREACHABLE),
        (Stall(), Gap.TIMEOUT),
    ],
)
async def test_an_account_that_cannot_be_looked_up_is_unknown(desk: Desk, fault: Any, reason: Gap) -> None:
    desk.slack.fail_next("users.info", fault)

    found = await desk.channel(deadline=timedelta(seconds=0.2)).identify(Actor(platform=Platform.SLACK, user_id="U1"))

    assert isinstance(found, Unknown)
    assert found.reason is reason


async def test_an_account_that_slack_does_not_know_is_no_member(desk: Desk) -> None:
    found = await desk.channel().identify(Actor(platform=Platform.SLACK, user_id="U404"))

    assert isinstance(found, Known)
    assert not found.value.is_member


async def test_the_doctor_finds_everything_in_order_and_names_what_is_not(desk: Desk) -> None:
    healthy = await desk.channel().doctor()
    desk.slack.scopes.remove("users:read")
    desk.slack.workspace.channels["C1"].is_member = False
    desk.slack.fail_next("apps.connections.open", ApiError("invalid_auth"))
    ill = {probe.connection: probe for probe in await desk.channel().doctor()}
    desk.slack.fail_next("auth.test", ApiError("invalid_auth"))
    (token,) = await desk.channel().doctor()

    assert [(probe.ok, probe.fix) for probe in healthy] == [(True, "")] * 4
    assert ill["slack token"].ok
    assert "users:read" in ill["slack scopes"].fix
    assert "connections:write" in ill["slack app token"].fix
    assert "/invite @hero in C1" in ill["slack channel"].fix
    assert not token.ok
    assert "HERO_SLACK__BOT_TOKEN" in token.fix


async def test_the_manifests_scopes_are_enough_for_all_that_hero_does(desk: Desk) -> None:
    desk.slack.scopes.intersection_update(slack_manifest()["oauth_config"]["scopes"]["bot"])
    channel = desk.channel()
    root = await desk.opened(channel)
    async with desk.listening(channel):
        await desk.slack.user_says("C1", "U1", "approve", root)
        known = await channel.identify(Actor(platform=Platform.SLACK, user_id="U1"))
        edited = await channel.send(desk.delivery("step 20", "live"))
        private = await channel.send(desk.delivery("psst", private_to="U1"))

    assert desk.inbox.texts() == ["approve"]
    assert isinstance(known, Known)
    assert isinstance(edited, Sent)
    assert isinstance(private, Sent)


def test_the_manifest_follows_the_mode() -> None:
    socket, http = slack_manifest(), slack_manifest("https://hero.example/slack/events")

    assert socket["settings"]["socket_mode_enabled"] is True
    assert http["settings"]["socket_mode_enabled"] is False
    assert http["features"]["slash_commands"][0]["url"] == "https://hero.example/slack/events"
    assert set(socket["oauth_config"]["scopes"]["bot"]) == {*NEEDED_SCOPES, FILES_SCOPE}
    assert tuple(socket["settings"]["event_subscriptions"]["bot_events"]) == EVENTS


# Pictures

CHART = Chart(
    run_id=RUN,
    points=tuple((step, 3 - step / 100, 1e6) for step in range(50)),
    marks=(Mark(label="I1 job.ended", severity=Severity.CRITICAL, step=49, from_step=49, to_step=49),),
)


async def test_a_failure_has_its_picture_in_the_runs_thread(desk: Desk) -> None:
    channel = desk.channel(deadline=timedelta(seconds=20))
    root = await desk.opened(channel)

    sent = await channel.send(desk.delivery("the job failed", kind=UpdateKind.FAILED, chart=CHART))

    assert isinstance(sent, Sent)
    (file,) = desk.slack.files
    assert (file.channel, file.thread, file.name) == ("C1", root, f"{RUN}.png")
    assert file.content.startswith(b"\x89PNG")


async def test_the_picture_that_one_person_asked_for_stands_in_the_thread_too(desk: Desk) -> None:
    channel = desk.channel(deadline=timedelta(seconds=20))
    root = await desk.opened(channel)

    await channel.send(
        desk.delivery(
            "loss and throughput", kind=UpdateKind.ANSWER, run_id=None, private_to="U1", conversation="C1", chart=CHART
        )
    )

    assert [file.thread for file in desk.slack.files] == [root]
    assert len(desk.slack.ephemerals) == 1


async def test_a_message_arrives_without_its_picture_where_files_are_refused_or_were_sent_before(desk: Desk) -> None:
    channel = desk.channel(deadline=timedelta(seconds=20))
    await desk.opened(channel)
    failed = desk.delivery("the job failed", kind=UpdateKind.FAILED, chart=CHART)

    desk.slack.fail_next("files.completeUploadExternal", ApiError("channel_not_found"))
    refused = await channel.send(failed)
    again = await channel.send(desk.again(failed))
    desk.slack.scopes.discard("files:write")
    unscoped = desk.channel()
    without = await unscoped.send(desk.delivery("it failed again", kind=UpdateKind.FAILED, chart=CHART))

    assert isinstance(refused, Sent)
    assert again == refused
    assert isinstance(without, Sent)
    assert desk.slack.files == []
    assert desk.calls("files.getUploadURLExternal") == 1
    (scopes,) = [probe for probe in await unscoped.doctor() if probe.connection == "slack scopes"]
    assert scopes.ok
    assert "add files:write" in scopes.fix
