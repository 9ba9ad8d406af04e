"""Discord as a channel, through the real discord.py, against a Discord that fails as the real one does.

Hero's own time runs five times as fast as the wall's; the library's does not.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from bot.commands.discord_probe import reach_on_discord
from bot.model.chart import Chart
from bot.model.delivery import ChannelName, Later, Sent
from bot.model.event import Commanded, Pressed, Said, Unsaid
from bot.model.person import Actor, Person, Platform
from bot.model.reading import Gap, Known, Unknown
from bot.model.update import UpdateKind
from bot.model.value import PersonName, RunId
from tests.fakes.discord_desk import DANA, GUEST, ROBOT, RUN, STRANGER, Desk, a_desk
from tests.fakes.discord_faults import Answers, Limited, Lost, Page, Stalls
from tests.fakes.discord_world import GUILD, HOME, ME, Post

POST = r"POST /channels/\d+/messages"


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as desk:
        yield desk


# What leaves


async def test_the_live_status_carries_the_runs_thread_and_is_edited_in_place(desk: Desk) -> None:
    channel = desk.channel()

    first = await channel.send(desk.delivery("training began", "live"))
    news = await channel.send(desk.delivery("80 % done", kind=UpdateKind.MILESTONE))
    second = await channel.send(desk.delivery("step 20", "live"))
    same = await channel.send(desk.delivery("step 20", "live"))

    (root,) = desk.world.own(HOME)
    (reply,) = desk.world.own(root.id)
    assert isinstance(news, Sent)
    assert first == second == same == Sent(message_id=f"{HOME}:{root.id}", link=_link(HOME, root.id))
    assert "step 20" in root.shown
    assert news.link == _link(root.id, reply.id)
    assert desk.world.places[root.id].name == RUN
    assert desk.ledger.messages[ChannelName.DISCORD, RUN, "thread"].message_id == root.id
    assert desk.discord.count(r"PATCH .*") == 1


async def test_a_thread_is_found_again_after_a_crash_at_any_step_of_its_making(desk: Desk) -> None:
    for fault in (Lost(performed=True), Answers(403, 50013)):
        desk.ledger.messages.clear()
        desk.discord.fail_next(r"POST /channels/\d+/messages/\d+/threads", fault)
        lost = await desk.channel().send(desk.delivery("running", "live"))
        assert isinstance(lost, Later)

    desk.ledger.messages.clear()
    await desk.channel().send(desk.delivery("running", "live"))
    desk.ledger.messages.clear()
    again = await desk.channel().send(desk.delivery("step 20", "live"))

    (root,) = desk.world.own(HOME)
    assert isinstance(again, Sent)
    assert [place.id for place in desk.world.places.values() if place.parent] == [root.id]
    assert "step 20" in root.shown


async def test_a_contracts_thread_is_used(desk: Desk) -> None:
    theirs = await desk.opened(desk.channel())
    desk.ledger.messages.clear()
    channel = desk.channel(thread=theirs)

    await channel.send(desk.delivery("running", "live"))
    await channel.send(desk.delivery("still running", "live"))

    (live,) = desk.world.own(theirs)
    assert "still running" in live.shown


async def test_a_decided_request_loses_its_buttons(desk: Desk) -> None:
    channel = desk.channel()
    thread = await desk.opened(channel)

    await channel.send(desk.asking())
    (before,) = desk.world.own(thread)
    had, pings = before.buttons, before.pings
    await channel.send(desk.asking(is_open=False))

    (after,) = desk.world.own(thread)
    assert (had, pings) == (["hero:approve:R7", "hero:deny:R7"], frozenset({DANA}))
    assert (after.id, after.buttons) == (before.id, [])
    assert "approved by dana" in after.shown


async def test_hostile_text_pings_nobody(desk: Desk) -> None:
    """Field report R03; the fixture looks at every message for whom it wakes."""
    hostile = f"@everyone @here <@{GUEST}> <@&{GUILD}> ``` [x](http://y)"
    channel = desk.channel()

    await channel.send(desk.delivery(hostile, "live", evidence=(hostile,), plan=(hostile,), next=hostile))
    await channel.send(desk.delivery(hostile, asked=PersonName("dana"), kind=UpdateKind.FAILED, next=hostile))

    (root,) = desk.world.own(HOME)
    (reply,) = desk.world.own(root.id)
    assert (root.pings, reply.pings) == (frozenset[str](), frozenset({DANA}))


async def test_what_embeds_cannot_say_is_said_in_plain_text(desk: Desk) -> None:
    """Refused, or dropped without a word where the bot may not embed links (field report R08)."""
    channel = desk.channel()
    thread = await desk.opened(channel)
    desk.discord.fail_next(POST, Answers(400, 50035))
    await channel.send(desk.delivery("refused", evidence=("exit code 137",)))
    desk.world.places[thread].drops_embeds = True
    await channel.send(desk.delivery("dropped", evidence=("exit code 138",)))

    refused, dropped = desk.world.own(thread)
    assert "exit code 137" in refused.content
    assert "exit code 138" in dropped.content
    assert "Embed Links" in channel.trouble


@pytest.mark.parametrize("fault", [Lost(performed=True), Answers(503, performed=True), Page(), Stalls(performed=True)])
async def test_a_send_of_unknown_fate_leads_to_one_message(desk: Desk, fault: Any) -> None:
    channel = desk.channel(deadline=timedelta(seconds=1))
    thread = await desk.opened(channel)
    news = desk.delivery("a milestone", "incident:4", kind=UpdateKind.INCIDENT_OPENED)
    desk.discord.fail_next(POST, fault)

    lost = await channel.send(news)
    for post in desk.world.own(thread):
        post.nonce = None  # Discord keeps it for a few minutes only
    sent = await desk.channel().send(desk.again(news))

    assert isinstance(lost, Later)
    assert lost.is_uncertain
    assert isinstance(sent, Sent)
    (post,) = desk.world.own(thread)
    assert desk.ledger.messages[ChannelName.DISCORD, RUN, "incident:4"].message_id == f"{thread}:{post.id}"


async def test_the_librarys_own_repetition_after_a_5xx_says_nothing_twice(desk: Desk) -> None:
    channel = desk.channel()
    thread = await desk.opened(channel)
    desk.discord.fail_next(POST, Answers(502, performed=True))

    sent = await channel.send(desk.delivery("once"))

    assert isinstance(sent, Sent)
    assert len(desk.world.own(thread)) == 1


async def test_a_long_wait_for_the_rate_is_the_outboxs(desk: Desk) -> None:
    channel = desk.channel()
    thread = await desk.opened(channel)
    desk.discord.fail_next(POST, Limited(42), Limited(0.1))

    limited = await channel.send(desk.delivery("one"))
    soon = await channel.send(desk.delivery("two"))

    assert limited == Later(reason="Discord's rate limit", after=timedelta(seconds=42))
    assert isinstance(soon, Sent)
    assert len(desk.world.own(thread)) == 1


async def test_a_permission_that_is_lost_is_told_with_its_fix_until_it_is_back(desk: Desk) -> None:
    channel = desk.channel()
    thread = await desk.opened(channel)
    desk.world.places[thread].refusal = 50013

    refused = await channel.send(desk.delivery("news"))
    told = channel.trouble
    desk.world.places[thread].refusal = 0
    await channel.send(desk.delivery("news"))

    assert isinstance(refused, Later)
    assert "Send Messages in Threads" in refused.reason
    assert "Send Messages in Threads" in told
    assert channel.trouble == ""


async def test_a_token_that_is_revoked_is_told_with_its_fix(desk: Desk) -> None:
    desk.discord.token = "another"
    channel = desk.channel(token=SecretStr("revoked"))

    refused = await channel.send(desk.delivery("news"))

    assert isinstance(refused, Later)
    assert "HERO_DISCORD__TOKEN" in channel.trouble
    assert "revoked" not in channel.trouble + refused.reason


async def test_an_archived_thread_is_opened_again_for_news_and_for_edits(desk: Desk) -> None:
    """Field report R09."""
    channel = desk.channel()
    thread = await desk.opened(channel)
    await channel.send(desk.asking())
    for send in (desk.asking(is_open=False), desk.delivery("news")):
        desk.world.places[thread].archived = True
        assert isinstance(await channel.send(send), Sent)
        assert not desk.world.places[thread].archived

    (request, news) = desk.world.own(thread)
    assert "approved by dana" in request.shown
    assert "news" in news.shown


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "locked"])
async def test_a_thread_that_is_no_more_is_replaced_once_and_that_is_said(desk: Desk, is_deleted: bool) -> None:
    channel = desk.channel()
    old = await desk.opened(channel)
    if is_deleted:
        desk.world.places.pop(old)
    else:
        desk.world.places[old].archived = desk.world.places[old].locked = True

    for headline in ("failed", "and more"):
        assert isinstance(await channel.send(desk.delivery(headline)), Sent)

    new = desk.ledger.messages[ChannelName.DISCORD, RUN, "thread"].message_id
    assert new != old
    said = [post.shown for post in desk.world.own(new)]
    assert [text for text in ("goes on here", "failed", "and more") if any(text in each for each in said)] == [
        "goes on here",
        "failed",
        "and more",
    ]
    assert len(said) == 3


async def test_a_direct_message_goes_to_one_person_once_or_into_the_runs_thread(desk: Desk) -> None:
    channel = desk.channel()
    thread = await desk.opened(channel)
    first = desk.delivery("R7 still waits", direct_to=DANA)
    desk.discord.fail_next(POST, Lost(performed=True))
    await channel.send(first)
    await channel.send(desk.again(first))
    desk.discord.fail_next(POST, Answers(403, 50007))
    sent = await channel.send(desk.delivery("R8 waits too", direct_to=DANA))

    (direct,) = desk.world.own(f"9{DANA}")
    (open_,) = desk.world.own(thread)
    assert isinstance(sent, Sent)
    assert "R7 still waits" in direct.shown
    assert "R8 waits too" in open_.shown


# What comes in


async def test_a_reply_in_the_thread_is_heard_once_with_its_author_and_order(desk: Desk) -> None:
    async with desk.listening(channel := desk.channel()) as thread:
        await channel.send(desk.asking())
        post = await desk.discord.says(thread, DANA, f"<@{ME}> approve R7")
        await desk.discord.says(HOME, DANA, "elsewhere")
        await desk.until(lambda: len(desk.inbox.events) == 1)

    (said,) = desk.inbox.of(Said)
    request = desk.ledger.messages[ChannelName.DISCORD, RUN, "request:7"].message_id
    assert (said.text, said.actor.user_id, said.is_edited) == ("approve R7", DANA, False)
    assert said.place.key == thread
    assert int(said.place.message) == int(post.id) > int(request.partition(":")[2])


async def test_a_slash_command_is_stored_then_acknowledged_then_answered_to_one_person(desk: Desk) -> None:
    async with desk.listening(channel := desk.channel()) as thread:
        aside = await desk.discord.commands(HOME, DANA, "status hero-12d8")
        await desk.until(lambda: aside.kind == 5)
        (asked,) = desk.inbox.of(Commanded)
        desk.discord.fail_next(r"PATCH /webhooks/.*", Lost(performed=True))
        how = {"private_to": DANA, "conversation": HOME, "kind": UpdateKind.ANSWER}
        answer = desk.delivery("it runs", **how)
        ill = await channel.send(answer)
        sent = await channel.send(desk.again(answer))
        late = await channel.send(desk.delivery("and in the open", **how))

    assert (asked.text, asked.actor.user_id, asked.place.key) == ("status hero-12d8", DANA, HOME)
    assert isinstance(ill, Later)
    assert isinstance(sent, Sent)
    assert isinstance(late, Sent)
    assert len(aside.said) == 1
    assert "it runs" in aside.said[0]
    assert "and in the open" in desk.world.own(HOME)[-1].shown
    assert desk.world.own(thread) == []


async def test_the_command_is_registered_once_and_completes_runs_and_requests(desk: Desk) -> None:
    async with desk.listening(desk.channel()) as thread:
        typed = {"": 25, "sta": 1, "status ": 2, "relaunch her": 1, "approve ": 1, "approve R9": 0}
        asides = {text: await desk.discord.commands(thread, DANA, text, kind=4) for text in typed}
        await desk.until(lambda: all(aside.kind == 8 for aside in asides.values()))
    async with desk.listening(desk.channel()):
        pass

    assert {text: len(aside.choices) for text, aside in asides.items()} | {"": 25} == typed
    assert asides["relaunch her"].choices == ("relaunch hero-12d8",)
    assert asides["approve "].choices == ("approve R7",)
    assert "status" in asides[""].choices
    assert desk.discord.count(r"POST /applications/.*") == 1
    assert desk.inbox.events == {}


async def test_a_button_is_a_decision_of_whoever_pressed_it_and_outlives_hero(desk: Desk) -> None:
    """Field report R10."""
    first = desk.channel()
    thread = await desk.opened(first)
    await first.send(desk.asking())
    (post,) = desk.world.own(thread)
    forged = Post(desk.world.snowflake(), thread, desk.world.accounts[ROBOT], "", at=post.at)

    async with desk.listening(channel := desk.channel()):
        aside = await desk.discord.presses(post, GUEST, "hero:deny:R7")
        await desk.discord.presses(forged, DANA, "hero:approve:R7")
        await desk.discord.presses(post, DANA, "hero:approve:everything")
        await desk.until(lambda: aside.kind == 6)
        await channel.send(desk.delivery("only dana can", private_to=GUEST, conversation=thread))

    (pressed,) = desk.inbox.of(Pressed)
    assert (pressed.request, pressed.is_approval, pressed.actor.user_id) == ("R7", False, GUEST)
    assert (pressed.place.key, pressed.place.message) == (thread, post.id)
    assert "only dana can" in aside.said[0]


async def test_what_could_not_be_stored_is_not_acknowledged_and_comes_again(desk: Desk) -> None:
    async with desk.listening(channel := desk.channel(catch_up=timedelta(seconds=2))) as thread:
        desk.inbox.is_full = True
        aside = await desk.discord.commands(thread, DANA, "pause")
        await desk.discord.says(thread, DANA, "approve R7")
        await desk.until(lambda: aside.kind == 4 and "can't be stored" in channel.trouble)
        desk.inbox.is_full = False
        await desk.until(lambda: desk.inbox.texts() == ["approve R7"])
        await desk.until(lambda: channel.trouble == "")

    assert "nothing was done" in aside.said[0]
    assert desk.inbox.of(Commanded) == []


async def test_a_command_of_another_server_is_refused(desk: Desk) -> None:
    async with desk.listening(desk.channel()):
        aside = await desk.discord.commands(HOME, DANA, "status", guild="900000000000000009")
        await desk.until(lambda: aside.kind == 4)

    assert desk.inbox.events == {}


async def test_edits_and_deletions_are_told_as_such_and_previews_are_not(desk: Desk) -> None:
    async with desk.listening(desk.channel()) as thread:
        post = await desk.discord.says(thread, DANA, "hmm https://example.org")
        await desk.discord.edits(post)
        await desk.discord.edits(post, "approve R7")
        await desk.discord.edits(post)
        await desk.discord.deletes(post)
        await desk.until(lambda: bool(desk.inbox.of(Unsaid)))

    told = [(said.text, said.is_edited) for said in desk.inbox.of(Said)]
    (unsaid,) = desk.inbox.of(Unsaid)
    assert told == [("hmm https://example.org", False), ("approve R7", True)]
    assert unsaid.place.message == post.id


async def test_a_copy_that_comes_after_its_deletion_counts_no_more(desk: Desk) -> None:
    async with desk.listening(desk.channel()) as thread:
        post = await desk.discord.says(thread, DANA, "approve R7", told=False)
        await desk.discord.deletes(post)
        await desk.discord.tell("MESSAGE_CREATE", post)
        await desk.until(lambda: desk.inbox.copies == 3)

    assert desk.inbox.of(Said) == []


# A link that breaks


async def test_a_dropped_connection_is_resumed_and_repeated_events_count_once(desk: Desk) -> None:
    """Field report R07."""
    desk.gateway.replays_all = True
    async with desk.listening(desk.channel()) as thread:
        await desk.discord.says(thread, DANA, "before")
        await desk.until(lambda: desk.inbox.texts() == ["before"])
        desk.gateway.drop()
        await desk.discord.says(thread, DANA, "meanwhile")
        await desk.until(lambda: desk.gateway.resumed == 1 and "meanwhile" in desk.inbox.texts())
        await desk.gateway.say(7)
        await desk.discord.says(thread, DANA, "and again")
        await desk.until(lambda: desk.gateway.resumed == 2 and "and again" in desk.inbox.texts())
        await desk.until(lambda: desk.inbox.copies > len(desk.inbox.events))

    assert desk.inbox.texts() == ["before", "meanwhile", "and again"]
    assert desk.gateway.identified == 1
    assert len(desk.world.commands) == 1


async def test_a_session_that_cannot_be_resumed_is_made_anew_and_the_gap_is_read(desk: Desk) -> None:
    async with desk.listening(desk.channel()) as thread:
        desk.gateway.sessions.clear()
        desk.gateway.drop_all()
        await desk.discord.says(thread, DANA, "approve R7")
        await desk.until(lambda: desk.inbox.texts() == ["approve R7"])

    assert (desk.gateway.identified, desk.gateway.resumed) == (2, 0)


async def test_a_half_open_connection_is_noticed_and_what_it_kept_back_arrives(desk: Desk) -> None:
    desk.gateway.heartbeat_ms = 500
    async with desk.listening(desk.channel(quiet_limit=timedelta(seconds=2))) as thread:
        desk.gateway.freeze()
        await desk.discord.says(thread, DANA, "approve R7")
        await desk.until(lambda: desk.inbox.texts() == ["approve R7"])

    assert desk.gateway.identified + desk.gateway.resumed == 2


async def test_what_was_said_without_a_session_is_read_from_the_thread_once(desk: Desk) -> None:
    async with desk.listening(desk.channel()) as thread:
        await desk.discord.says(thread, DANA, "before")
        await desk.until(lambda: desk.inbox.texts() == ["before"])
    for number in range(120):
        await desk.discord.says(thread, DANA, f"away {number}", told=False)
    edited = await desk.discord.says(thread, DANA, "approve R7", told=False)
    edited.edited_at = desk.world.stamp()

    async with desk.listening(desk.channel()):
        await desk.until(lambda: len(desk.inbox.texts()) == 122)
    said = desk.inbox.copies
    async with desk.listening(desk.channel()):
        await desk.until(lambda: desk.discord.count(rf"GET /channels/{thread}/messages") > 3)

    assert desk.inbox.texts()[1:121] == [f"away {number}" for number in range(120)]
    assert desk.inbox.of(Said)[-1].is_edited
    assert len(desk.inbox.events) == 122
    assert desk.inbox.copies >= said


async def test_a_session_that_hears_nothing_of_heros_own_words_is_replaced(desk: Desk) -> None:
    """Field report R01, on Discord."""
    async with desk.listening(channel := desk.channel(quiet_limit=timedelta(seconds=10))) as thread:
        desk.gateway.is_deaf = True
        await desk.discord.says(thread, DANA, "approve R7")
        await channel.send(desk.delivery("news"))
        await desk.until(lambda: desk.gateway.identified == 2)
        desk.gateway.is_deaf = False
        await desk.until(lambda: desk.inbox.texts() == ["approve R7"])


async def test_a_gateway_that_is_away_is_told_and_the_thread_is_read_meanwhile(desk: Desk) -> None:
    async with desk.listening(channel := desk.channel(catch_up=timedelta(seconds=2))) as thread:
        desk.gateway.refuses_connections = True
        desk.gateway.drop()
        await desk.until(lambda: "gateway is not reached" in channel.trouble)
        await desk.discord.says(thread, DANA, "approve R7", told=False)
        await desk.until(lambda: desk.inbox.texts() == ["approve R7"])
        assert isinstance(await channel.send(desk.delivery("posts still leave")), Sent)
        desk.gateway.refuses_connections = False
        await desk.until(lambda: channel.trouble == "")


async def test_without_the_content_intent_it_hears_buttons_commands_and_mentions_and_says_so(desk: Desk) -> None:
    """Field report R06."""
    desk.world.reads_content = False
    async with desk.listening(channel := desk.channel()) as thread:
        await channel.send(desk.asking())
        (request,) = desk.world.own(thread)
        await desk.discord.says(thread, DANA, "approve R7")
        await desk.until(lambda: "came without its text" in channel.trouble)
        await desk.discord.says(thread, DANA, f"<@{ME}> approve R7")
        aside = await desk.discord.commands(thread, DANA, "deny R7 because no")
        await desk.until(lambda: len(desk.inbox.events) == 2)
        await desk.until(lambda: aside.kind == 4)

    assert "/hero approve R7" in request.shown
    assert desk.inbox.texts() == ["approve R7", "deny R7 because no"]
    assert "Message Content Intent" in channel.trouble


async def test_an_intent_taken_away_while_hero_runs_ends_in_a_session_without_it(desk: Desk) -> None:
    channel = desk.channel()
    await desk.opened(channel)
    desk.world.reads_content = False

    async with desk.listening(channel):
        assert not desk.gateway.session.reads_content

    assert "Message Content Intent" in channel.trouble
    assert desk.gateway.identified == 2


async def test_a_token_refused_by_the_gateway_is_told_and_tried_again(desk: Desk) -> None:
    channel, desk.gateway.token = desk.channel(), "another"

    async with asyncio.TaskGroup() as group:
        task = group.create_task(channel.run(desk.inbox.receive))
        await desk.until(lambda: "HERO_DISCORD__TOKEN" in channel.trouble and desk.gateway.identified > 1)
        desk.gateway.token = desk.discord.token
        await desk.until(lambda: channel.trouble == "")
        task.cancel()


async def test_a_thread_that_may_not_be_read_any_more_is_told(desk: Desk) -> None:
    async with desk.listening(channel := desk.channel(catch_up=timedelta(seconds=1))) as thread:
        desk.world.places[thread].refusal = 50001
        await desk.until(lambda: "can't be read" in channel.trouble and "View Channel" in channel.trouble)
        desk.world.places[thread].refusal = 0
        await desk.until(lambda: channel.trouble == "")


# Who it is


async def test_the_guild_is_asked_now_who_somebody_is(desk: Desk) -> None:
    channel = desk.channel()
    desk.world.add_person("300000000000000005", "new", pending=True)
    users = {DANA: "", GUEST: "a guest", ROBOT: "a bot", STRANGER: "no member of the server"}
    users |= {
        "300000000000000005": "not through the server's membership screening",
        "9" * 18: "no member of the server",
    }

    for user, detail in users.items():
        standing = await channel.identify(Actor(platform=Platform.DISCORD, user_id=user))
        assert isinstance(standing, Known)
        assert (standing.value.is_member, standing.value.detail) == (not detail, detail)
    desk.discord.fail_next(r"GET /guilds/.*", Answers(503), Answers(403, 50001), Page())
    gaps = [await channel.identify(Actor(platform=Platform.DISCORD, user_id=DANA)) for _ in range(3)]
    assert [gap.reason for gap in gaps if isinstance(gap, Unknown)] == [
        Gap.UNREACHABLE,
        Gap.REFUSED,
        Gap.UNRECOGNISED,
    ]


def _link(channel: str, message: str) -> str:
    return f"https://discord.com/channels/{GUILD}/{channel}/{message}"


# hero doctor


async def test_the_doctor_finds_all_well_and_names_the_fix_for_what_is_not(desk: Desk) -> None:
    well = await desk.channel().doctor()
    desk.world.reads_content = False
    desk.world.places[HOME].refusal = 50001
    desk.discord.fail_next(r"GET /gateway/bot", Answers(503))
    desk.discord.fail_next(r"GET /applications/.*", Answers(403, 50001))
    ill = {name: fix for name, ok, _, fix in await desk.channel().doctor() if not ok}
    (token,) = await desk.channel(token=SecretStr("revoked")).doctor()

    assert all(ok for _, ok, _, _ in well)
    assert set(ill) == {"discord replies", "discord gateway", "discord channel", "discord command"}
    assert "Message Content Intent" in ill["discord replies"]
    assert "View Channel" in ill["discord channel"]
    assert "applications.commands" in ill["discord command"]
    assert "HERO_DISCORD__TOKEN" in token[3]


async def test_the_doctor_says_whether_a_dri_could_answer(desk: Desk) -> None:
    people = [Person(name=PersonName(f"p{n}"), discord=user) for n, user in enumerate((DANA, GUEST, None))]
    settings = desk.settings()

    probes = await reach_on_discord(people, settings, desk.clock)

    assert [probe.ok for probe in probes] == [True, False, False]
    assert "a guest" in probes[1].detail
    assert "[people.p2] discord" in probes[2].fix


# Pictures

CHART = Chart(run_id=RunId(RUN), points=tuple((step, 3 - step / 100, 1e6) for step in range(50)))


async def test_a_failure_has_its_picture_in_the_runs_thread_once(desk: Desk) -> None:
    channel = desk.channel(deadline=timedelta(seconds=20))
    thread = await desk.opened(channel)
    failed = desk.delivery("the job failed", kind=UpdateKind.FAILED, chart=CHART)

    sent = await channel.send(failed)
    await channel.send(desk.again(failed))

    assert isinstance(sent, Sent)
    (picture,) = [post for post in desk.world.own(thread) if post.files]
    assert picture.files["plot.png"].startswith(b"\x89PNG")
    assert picture.pings == frozenset()


async def test_a_message_arrives_without_its_picture_where_files_are_refused(desk: Desk) -> None:
    channel = desk.channel(deadline=timedelta(seconds=20))
    thread = await desk.opened(channel)
    desk.world.refuses_files = True

    sent = await channel.send(desk.delivery("the job failed", kind=UpdateKind.FAILED, chart=CHART))

    assert isinstance(sent, Sent)
    assert "the job failed" in desk.world.own(thread)[-1].shown
    assert channel.trouble == ""
