"""The fake Slack behaves as Slack is documented, seen through the real slack_sdk and slack_bolt.

Whoever trusts the fake elsewhere trusts these tests.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import FakeSlack
from tests.fakes.slack_values import (
    ApiError,
    Http500,
    Json,
    LostAfterPerforming,
    LostBeforePerforming,
    NotJson,
    RateLimited,
    Stall,
)


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as server:
        server.add_channel("C1", "runs")
        server.add_user("U1", "Dana")
        yield server


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    return AsyncWebClient(token=slack.bot_token, base_url=slack.base_url, retry_handlers=[])


@asynccontextmanager
async def listening(
    slack: FakeSlack, app: AsyncApp, ping_interval: float = 10
) -> AsyncIterator[AsyncSocketModeHandler]:
    handler = AsyncSocketModeHandler(app, slack.app_token, ping_interval=ping_interval)
    await handler.connect_async()  # type: ignore[no-untyped-call]  # slack_bolt leaves it unannotated
    await slack.until(lambda: slack.open_sockets == 1)
    try:
        yield handler
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]  # slack_bolt leaves it unannotated


@asynccontextmanager
async def serving(app: AsyncApp) -> AsyncIterator[str]:
    runner = web.AppRunner(app.web_app("/slack/events"), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    finally:
        await runner.cleanup()


async def refusal(call: Any) -> SlackApiError:
    with pytest.raises(SlackApiError) as caught:
        await call
    return caught.value


def section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(action_id: str = "approve", *, text: str = "Approve", value: str = "R7") -> Json:
    label = {"type": "plain_text", "text": text}
    return {
        "type": "actions",
        "block_id": "ask",
        "elements": [{"type": "button", "action_id": action_id, "text": label, "value": value}],
    }


async def test_a_message_can_be_stored_although_its_connection_was_lost(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    slack.fail_next("chat.postMessage", LostAfterPerforming())

    with pytest.raises((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)):
        await client.chat_postMessage(channel="C1", text="once")

    assert [post.text for post in slack.messages("C1")] == ["once"]


async def test_the_default_retries_of_the_sdk_say_it_twice(slack: FakeSlack) -> None:
    """Why posts go out with ``retry_handlers=[]``."""
    careless = AsyncWebClient(token=slack.bot_token, base_url=slack.base_url)
    slack.fail_next("chat.postMessage", LostAfterPerforming())

    await careless.chat_postMessage(channel="C1", text="twice")

    assert [post.text for post in slack.messages("C1")] == ["twice", "twice"]


async def test_a_lost_call_and_a_server_error_say_nothing_of_what_was_done(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    slack.fail_next("chat.postMessage", LostBeforePerforming(), Http500(performed=True), Http500(), NotJson())

    with pytest.raises((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)):
        await client.chat_postMessage(channel="C1", text="a")
    done = await refusal(client.chat_postMessage(channel="C1", text="b"))
    undone = await refusal(client.chat_postMessage(channel="C1", text="c"))
    await refusal(client.chat_postMessage(channel="C1", text="d"))

    assert (done.response.status_code, done.response["error"]) == (500, None)
    assert (undone.response.status_code, undone.response["error"]) == (500, None)
    assert [post.text for post in slack.messages("C1")] == ["b"]


async def test_a_stalled_call_ends_with_the_clients_timeout(slack: FakeSlack) -> None:
    hasty = AsyncWebClient(token=slack.bot_token, base_url=slack.base_url, timeout=1, retry_handlers=[])
    slack.fail_next("chat.postMessage", Stall(performed=True))

    with pytest.raises(TimeoutError):
        await hasty.chat_postMessage(channel="C1", text="slow")

    assert [post.text for post in slack.messages("C1")] == ["slow"]


async def test_posts_beyond_the_rate_are_refused_with_the_time_to_wait(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    slack.add_channel("C2")
    slack.limit_posts(per_s=0.25, burst=1)
    slack.fail_next("users.info", RateLimited(None))

    await client.chat_postMessage(channel="C1", text="first")
    refused = await refusal(client.chat_postMessage(channel="C1", text="second"))
    await client.chat_postMessage(channel="C2", text="another bucket")
    silent = await refusal(client.users_info(user="U1"))

    assert refused.response.status_code == silent.response.status_code == 429
    assert (refused.response["error"], refused.response.headers["Retry-After"]) == ("ratelimited", "4")
    assert "Retry-After" not in silent.response.headers
    assert [post.text for post in slack.messages("C1")] == ["first"]


@pytest.mark.parametrize(
    ("blocks", "error", "where"),
    [
        ([section("x")] * 51, "invalid_blocks", "/blocks]"),
        ([section("x" * 3_001)], "invalid_blocks", "/blocks/0/text/text"),
        ([{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}], "invalid_blocks", "/blocks/0/text"),
        ([button(text="x" * 76)], "invalid_blocks", "/blocks/0/elements/0/text"),
        ([button(value="x" * 2_001)], "invalid_blocks", "/blocks/0/elements/0/value"),
        ([button(), button()], "invalid_blocks", "already in use"),
        ([{"type": "carousel"}], "invalid_blocks", "unsupported type"),
        ([section("")], "invalid_blocks", "more than 0"),
        ([section("x" * 2_641)] * 5, "msg_blocks_too_long", ""),
    ],
)
async def test_blocks_over_a_limit_are_refused(
    slack: FakeSlack, client: AsyncWebClient, blocks: list[Json], error: str, where: str
) -> None:
    refused = await refusal(client.chat_postMessage(channel="C1", text="fallback", blocks=blocks))

    assert refused.response["error"] == error
    if where:
        assert where in refused.response["response_metadata"]["messages"][0]
        assert where in refused.response["errors"][0]
    assert slack.messages("C1") == []


async def test_the_largest_message_allowed_is_taken(slack: FakeSlack, client: AsyncWebClient) -> None:
    largest = [section("x" * 2_640)] * 5

    await client.chat_postMessage(channel="C1", text="fallback", blocks=largest)

    assert len(slack.messages("C1")[0].shown) == 13_204


async def test_text_is_cut_in_a_post_and_refused_in_an_update(slack: FakeSlack, client: AsyncWebClient) -> None:
    ts = (await client.chat_postMessage(channel="C1", text="x" * 40_001))["ts"]

    refused = await refusal(client.chat_update(channel="C1", ts=ts, text="x" * 4_001))

    assert len(slack.messages("C1")[0].text) == 40_000
    assert refused.response["error"] == "msg_too_long"


async def test_places_and_tokens_are_checked(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.add_channel("C2", member=False)
    slack.add_channel("C3", is_archived=True)
    slack.add_channel("C4", member=False, is_private=True)
    stranger = AsyncWebClient(token="xoxb-other", base_url=slack.base_url)
    nobody = AsyncWebClient(base_url=slack.base_url)

    errors = [
        (await refusal(client.chat_postMessage(channel=channel, text="x"))).response["error"]
        for channel in ("C2", "C3", "C4", "C9")
    ]
    authority = [(await refusal(one.auth_test())).response["error"] for one in (stranger, nobody)]
    slack.scopes.discard("users:read")
    scope = await refusal(client.users_info(user="U1"))

    assert errors == ["not_in_channel", "is_archived", "channel_not_found", "channel_not_found"]
    assert authority == ["invalid_auth", "not_authed"]
    assert (scope.response["error"], scope.response["needed"]) == ("missing_scope", "users:read")
    assert "users:read" not in (await client.auth_test()).headers["x-oauth-scopes"]


async def test_metadata_is_kept_and_shown_only_to_those_who_ask(slack: FakeSlack, client: AsyncWebClient) -> None:
    key = {"event_type": "hero_delivery", "event_payload": {"key": "D1"}}
    root = (await client.chat_postMessage(channel="C1", text="root", metadata=key))["ts"]
    await client.chat_postMessage(channel="C1", text="reply", thread_ts=root, metadata=key)

    silent = (await client.conversations_replies(channel="C1", ts=root))["messages"]
    asked = (await client.conversations_replies(channel="C1", ts=root, include_all_metadata=True))["messages"]
    listed = (await client.conversations_history(channel="C1", include_all_metadata=True))["messages"]

    assert [message.get("metadata") for message in silent] == [None, None]
    assert [message["metadata"] for message in asked] == [key, key]
    assert [(message["text"], message["metadata"]) for message in listed] == [("root", key)]


async def test_replies_are_paged_from_old_to_new_with_the_root_on_every_page(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    root = await slack.user_says("C1", "U1", "root")
    said = [await slack.user_says("C1", "U1", str(n), thread_ts=root) for n in range(5)]

    pages, cursor = [], ""
    while True:
        page = await client.conversations_replies(channel="C1", ts=root, oldest=said[0], limit=3, cursor=cursor)
        pages.append([message["text"] for message in page["messages"]])
        if not page["has_more"]:
            break
        cursor = page["response_metadata"]["next_cursor"]
    inclusive = await client.conversations_replies(channel="C1", ts=root, oldest=said[3], inclusive=True)

    assert pages == [["root", "1", "2", "3"], ["root", "4"]]
    assert [message["text"] for message in inclusive["messages"]] == ["root", "3", "4"]


async def test_history_is_newest_first_and_paged_forward_from_oldest(slack: FakeSlack, client: AsyncWebClient) -> None:
    said = [await slack.user_says("C1", "U1", str(n)) for n in range(5)]
    await slack.user_says("C1", "U1", "reply", thread_ts=said[0])

    newest = await client.conversations_history(channel="C1", limit=2)
    after = await client.conversations_history(channel="C1", oldest=said[0], limit=2)
    rest = await client.conversations_history(
        channel="C1", oldest=said[0], limit=2, cursor=after["response_metadata"]["next_cursor"]
    )

    assert [message["text"] for message in newest["messages"]] == ["4", "3"]
    assert [message["text"] for message in after["messages"]] == ["2", "1"]
    assert ([message["text"] for message in rest["messages"]], rest["has_more"]) == (["4", "3"], False)


async def test_a_reply_as_root_is_taken_and_lost_and_noted(slack: FakeSlack, client: AsyncWebClient) -> None:
    root = await slack.user_says("C1", "U1", "root")
    reply = await slack.user_says("C1", "U1", "reply", thread_ts=root)

    await client.chat_postMessage(channel="C1", text="astray", thread_ts=reply)
    read = await client.conversations_replies(channel="C1", ts=root)

    assert [message["text"] for message in read["messages"]] == ["root", "reply"]
    assert [mistake.kind for mistake in slack.mistakes] == ["wrong_thread_root"]


async def test_a_deleted_root_with_replies_is_a_tombstone_and_one_without_is_gone(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    kept, bare = await slack.user_says("C1", "U1", "kept"), await slack.user_says("C1", "U1", "bare")
    await slack.user_says("C1", "U1", "reply", thread_ts=kept)
    await slack.user_deletes(kept)
    await slack.user_deletes(bare)

    read = await client.conversations_replies(channel="C1", ts=kept)
    refused = await refusal(client.chat_postMessage(channel="C1", text="late", thread_ts=bare))

    assert [message.get("subtype") for message in read["messages"]] == ["tombstone", None]
    assert refused.response["error"] == "thread_not_found"


async def test_pings_and_raw_markup_are_noted_wherever_they_stand(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.allow_mentions("<@U1>")

    await client.chat_postMessage(channel="C1", text="<@U1> &lt;!channel&gt; <https://x.test/?a=1&b=2|link>\n> quote")
    clean = list(slack.mistakes)
    await client.chat_postMessage(channel="C1", text="run <!channel>", blocks=[section("<@U2> died & left")])

    assert clean == []
    assert [mistake.kind for mistake in slack.mistakes] == ["mention", "mention", "unescaped"]


async def test_events_are_acked_before_the_listener_is_done_and_each_copy_by_itself(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    app, go, heard = AsyncApp(client=client), asyncio.Event(), []

    @app.event("message")
    async def listen(body: Json) -> None:
        heard.append((body["event_id"], body["event"]["text"]))
        await go.wait()

    async with listening(slack, app):
        said = await slack.user_says("C1", "U1", "a < b <@U1>", event_id="Ev1", copies=3)
        go.set()

    assert [(ack.acked, ack.attempt) for ack in said.acks] == [(True, 0), (True, 1), (True, 2)]
    assert all(ack.latency_s is not None and ack.latency_s < 1 for ack in said.acks)
    assert heard == [("Ev1", "a &lt; b <@U1>")] * 3


async def test_an_event_that_nobody_listens_to_is_not_acked_and_comes_three_more_times(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    slack.delivery.ack_deadline_s = 0.1
    async with listening(slack, AsyncApp(client=client)):
        said = await slack.user_says("C1", "U1", "hello", event_id="Ev1")
        again = [await slack.retry_unacked() for _ in range(4)]

    assert [ack.acked for ack in said.acks] == [False]
    assert [[ack.attempt for ack in acks] for acks in again] == [[1], [2], [3], []]
    assert {mistake.kind for mistake in slack.mistakes} == {"unacked"}


async def test_an_event_without_a_socket_comes_as_a_retry(slack: FakeSlack, client: AsyncWebClient) -> None:
    app, numbers = AsyncApp(client=client), []

    @app.event("message")
    async def listen(request: Any) -> None:
        numbers.append(request.headers["x-slack-retry-num"])

    said = await slack.user_says("C1", "U1", "hello")
    async with listening(slack, app):
        acks = await slack.retry_unacked()

    assert not said.acks[0].sent
    assert [ack.acked for ack in acks] == [True]
    assert numbers == [["1"]]


async def test_a_deaf_socket_looks_alive_and_brings_nothing(slack: FakeSlack, client: AsyncWebClient) -> None:
    app, heard = AsyncApp(client=client), []

    @app.event("message")
    async def listen(event: Json) -> None:
        heard.append(event["text"])

    async with listening(slack, app, ping_interval=0.05) as handler:
        slack.deaf = True
        lost = await slack.user_says("C1", "U1", "approve")
        alive = await handler.client.is_connected()
        slack.deaf = False
        later = await slack.user_says("C1", "U1", "still there?")
        retried = await slack.retry_unacked()
    history = (await client.conversations_history(channel="C1", oldest=lost, inclusive=True))["messages"]

    assert alive
    assert not lost.acks[0].sent
    assert later.acks[0].acked
    assert (heard, retried) == (["still there?"], [])
    assert [message["text"] for message in history] == ["still there?", "approve"]


async def test_a_deaf_socket_answers_pings_and_a_half_open_one_does_not(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    slack.deaf = True
    url = (await client.apps_connections_open(app_token=slack.app_token))["url"]

    async with aiohttp.ClientSession() as session, session.ws_connect(url, autoping=False) as socket:
        hello = await socket.receive_json()
        await socket.ping(b"one")
        pong = await socket.receive(timeout=5)
        slack.delivery.half_open = True
        await socket.ping(b"two")
        with pytest.raises(TimeoutError):
            await socket.receive(timeout=0.1)

    assert hello["type"] == "hello"
    assert (pong.type, pong.data) == (aiohttp.WSMsgType.PONG, b"one")


async def test_a_dead_address_is_spent_after_one_try(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.dead_tickets = True
    handler = AsyncSocketModeHandler(AsyncApp(client=client), slack.app_token, ping_interval=0.02)
    attempt = asyncio.ensure_future(handler.connect_async())  # type: ignore[no-untyped-call]  # slack_bolt leaves it unannotated

    await slack.until(lambda: slack.delivery.refused_upgrades > 1)
    slack.dead_tickets = False
    await slack.until(lambda: slack.delivery.refused_upgrades > 3)
    connected = await handler.client.is_connected()
    attempt.cancel()
    await handler.close_async()  # type: ignore[no-untyped-call]  # slack_bolt leaves it unannotated

    assert not connected
    assert [call.method for call in slack.calls].count("apps.connections.open") == 1


@pytest.mark.parametrize("way", ["disconnect envelope", "close frame", "reset", "restart"])
async def test_the_client_finds_a_new_socket(slack: FakeSlack, client: AsyncWebClient, way: str) -> None:
    app = AsyncApp(client=client)

    @app.event("message")
    async def listen() -> None: ...

    async with listening(slack, app, ping_interval=0.1):
        before = slack.delivery.sockets[0]
        match way:
            case "disconnect envelope":
                await slack.ask_to_reconnect()
            case "close frame":
                await slack.close_sockets()
            case "reset":
                slack.drop_sockets()
            case _:
                await slack.stop()
                await slack.start()
        await slack.until(lambda: slack.open_sockets == 1 and slack.delivery.sockets[0] is not before)
        said = await slack.user_says("C1", "U1", "hello")

    assert said.acks[0].acked


async def test_the_apps_own_posts_come_back_as_events(slack: FakeSlack, client: AsyncWebClient) -> None:
    """Bolt drops and acks them; whoever listens beneath Bolt sees them."""
    async with listening(slack, AsyncApp(client=client)) as handler:
        seen: list[Json] = []

        async def look(_client: Any, message: Json, _raw: str | None) -> None:
            seen.append(message)

        handler.client.message_listeners.append(look)
        await client.chat_postMessage(channel="C1", text="hello")
        await slack.settled()

    event = next(message["payload"]["event"] for message in seen if message.get("type") == "events_api")
    assert (event["type"], event["user"], event["text"]) == ("message", slack.bot_user_id, "hello")
    assert event["bot_id"]
    assert slack.mistakes == []


async def test_changes_arrive_with_the_text_before_and_without_a_user(slack: FakeSlack, client: AsyncWebClient) -> None:
    app, changes = AsyncApp(client=client), []

    @app.event({"type": "message", "subtype": "message_changed"})
    async def change(event: Json) -> None:
        changes.append(event)

    @app.event("message")
    async def rest() -> None: ...

    async with listening(slack, app):
        ts = await slack.user_says("C1", "U1", "approve R7")
        await slack.unfurls(ts)
        await slack.user_edits(ts, "deny R7")

    unfurled, edited = changes
    assert "user" not in edited
    assert unfurled["message"]["text"] == unfurled["previous_message"]["text"]
    assert "edited" not in unfurled["message"]
    assert edited["message"]["edited"]["user"] == "U1"
    assert (edited["previous_message"]["text"], edited["message"]["text"]) == ("approve R7", "deny R7")


async def test_commands_and_clicks_are_acked_with_their_answers(slack: FakeSlack, client: AsyncWebClient) -> None:
    app, clicks = AsyncApp(client=client), []

    @app.command("/hero")
    async def command(ack: Any, respond: Any) -> None:
        await ack("working on it")
        await respond("done", response_type="in_channel")

    @app.action("approve")
    async def click(ack: Any, body: Json) -> None:
        await ack()
        clicks.append(body)

    async with listening(slack, app):
        command_ack = await slack.slash("U1", "C1", "/hero", "status")
        await slack.until(lambda: len(slack.messages("C1")) == 1)
        root = (await client.chat_postMessage(channel="C1", text="root"))["ts"]
        posted = await client.chat_postMessage(channel="C1", text="approve?", blocks=[button()], thread_ts=root)
        click_ack = await slack.user_clicks("U1", posted["ts"], "approve")

    assert (command_ack.acked, command_ack.payload) == (True, {"text": "working on it"})
    assert [(whisper.user, whisper.text) for whisper in slack.ephemerals] == [("U1", "working on it")]
    assert slack.messages("C1")[0].text == "done"
    assert click_ack.acked
    assert (clicks[0]["user"]["id"], clicks[0]["actions"][0]["value"]) == ("U1", "R7")
    where = {"message_ts": posted["ts"], "channel_id": "C1", "thread_ts": root}
    assert where.items() <= clicks[0]["container"].items()


async def test_a_response_url_serves_five_times(slack: FakeSlack, client: AsyncWebClient) -> None:
    app, statuses = AsyncApp(client=client), asyncio.Queue[int]()

    @app.command("/hero")
    async def command(ack: Any, respond: Any) -> None:
        await ack()
        for n in range(6):
            statuses.put_nowait((await respond(f"answer {n}")).status_code)

    async with listening(slack, app):
        await slack.slash("U1", "C1", "/hero")
        seen = [await asyncio.wait_for(statuses.get(), 5) for _ in range(6)]

    assert seen == [200] * 5 + [404]
    assert [whisper.text for whisper in slack.ephemerals] == [f"answer {n}" for n in range(5)]


async def test_http_requests_must_be_signed_and_fresh(slack: FakeSlack, client: AsyncWebClient) -> None:
    app, heard = AsyncApp(client=client, signing_secret=slack.signing_secret), []

    @app.event("message")
    async def listen(event: Json) -> None:
        heard.append(event["text"])

    async with serving(app) as url:
        slack.deliver_to(url)
        verified = await slack.verify_url()
        good = await slack.user_says("C1", "U1", "good")
        slack.delivery.timestamp_offset_s = -600
        stale = await slack.user_says("C1", "U1", "stale")
        slack.delivery.timestamp_offset_s = 600
        early = await slack.user_says("C1", "U1", "early")
        slack.delivery.timestamp_offset_s, slack.delivery.signing_secret = 0, "another secret"
        forged = await slack.user_says("C1", "U1", "forged")

    assert verified
    assert [said.acks[0].status for said in (good, stale, early, forged)] == [200, 401, 401, 401]
    assert heard == ["good"]


async def test_the_first_auth_test_failing_makes_bolt_ack_and_drop(slack: FakeSlack, client: AsyncWebClient) -> None:
    """Why the app asks ``auth.test`` itself before it connects."""
    app, heard = AsyncApp(client=client), []

    @app.event("message")
    async def listen(event: Json) -> None:
        heard.append(event["text"])

    slack.fail_next("auth.test", ApiError("fatal_error"))
    async with listening(slack, app):
        dropped = await slack.user_says("C1", "U1", "dropped")
        await slack.user_says("C1", "U1", "heard")

    assert dropped.acks[0].acked
    assert heard == ["heard"]


async def test_other_bots_are_told_apart_by_their_ids_or_by_a_subtype(slack: FakeSlack, client: AsyncWebClient) -> None:
    app, heard = AsyncApp(client=client), []

    @app.event("message")
    async def listen(event: Json) -> None:
        heard.append(event)

    async with listening(slack, app):
        await slack.bot_says("C1", "approve R7")
        await slack.bot_says("C1", "approve R7", user=None)
        ts = await slack.user_says("C1", "U1", "approve R7")
        await slack.user_deletes(ts)

    modern, classic, _, deleted = heard
    assert (modern["user"], modern["bot_id"], "subtype" in modern) == ("UOTHERBOT", "BOTHER", False)
    assert ("user" in classic, classic["subtype"], classic["username"]) == (False, "bot_message", "Dana (DRI)")
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", ts)
    assert deleted["previous_message"]["user"] == "U1"


async def test_the_small_methods_answer_in_slacks_shapes(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.add_channel("C2", member=False, members=("U1",))
    root = (await client.chat_postMessage(channel="#runs", text="root"))["ts"]
    reply = (await client.chat_postMessage(channel="C1", text="reply", thread_ts=root))["ts"]

    link = (await client.chat_getPermalink(channel="C1", message_ts=reply))["permalink"]
    place = (await client.conversations_info(channel="C2"))["channel"]
    members = (await client.conversations_members(channel="C2"))["members"]
    await client.reactions_add(channel="C1", timestamp=root, name="eyes")
    again = await refusal(client.reactions_add(channel="C1", timestamp=root, name="eyes"))
    await client.chat_postEphemeral(channel="C1", user="U1", text="only you")
    await client.chat_update(channel="C1", ts=root, text="new")
    foreign = await refusal(client.chat_update(channel="C1", ts=await slack.user_says("C1", "U1", "x"), text="new"))

    assert link.endswith(f"/archives/C1/p{reply.replace('.', '')}?thread_ts={root}&cid=C1")
    assert (place["is_member"], place["is_archived"], members) == (False, False, ["U1"])
    assert again.response["error"] == "already_reacted"
    assert [whisper.text for whisper in slack.ephemerals] == ["only you"]
    post = slack.messages("C1")[0]
    assert (post.text, post.edited, post.reactions) == ("new", True, ("eyes",))
    assert foreign.response["error"] == "cant_update_message"


async def test_people_carry_the_flags_an_approval_must_look_at(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.add_user("U2", "Dana", is_restricted=True)
    slack.add_user("U3", "Dana", team_id="TOTHER", is_stranger=True)

    guest = (await client.users_info(user="U2"))["user"]
    outsider = (await client.users_info(user="U3"))["user"]
    unknown = await refusal(client.users_info(user="U9"))

    assert (guest["is_restricted"], "is_stranger" in guest) == (True, False)
    assert (outsider["is_stranger"], outsider["team_id"]) == (True, "TOTHER")
    assert unknown.response["error"] == "user_not_found"
