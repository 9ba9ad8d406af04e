"""The webhook over a real HTTP server, signed as GitHub signs, beside the polling that it never replaces."""

import asyncio
import contextlib
import hashlib
import hmac
import json
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette

from bot.channels.github.channel import GitHubChannel
from bot.channels.github.records import Position
from bot.channels.github.webhook import MOST_BYTES, PATH
from bot.errors import StoreFullError
from bot.model.delivery import ChannelName, Posted
from bot.model.event import Commanded, Inbound, Said, Unsaid
from bot.model.person import Person
from bot.model.value import PersonName, RunId
from bot.redaction import Redactor
from bot.settings import GitHubSettings
from bot.store.store import Store
from bot.web.server import web_server
from tests.fakes.clock import START, FakeClock
from tests.fakes.github import FakeGitHub
from tests.fakes.github_hooks import Delivery
from tests.fakes.ledger import FakeLedger
from tests.fakes.waiting import until

RUN = RunId("hero-12d8b6f0")
SECRET = "a secret that is long enough"
DRI = Person(name=PersonName("alice"), github="dri")
POLL, SWEEP = timedelta(seconds=60), timedelta(minutes=2)


class Inbox:
    """Stores what comes in, and knows repeats, as the real one; may be told to refuse."""

    def __init__(self) -> None:
        self.events: dict[str, Inbound] = {}
        self.is_full = False

    async def receive(self, source: str, event_id: str, payload: Inbound) -> bool:
        assert source == "github"
        if self.is_full:
            message = "the disk is full"
            raise StoreFullError(message)
        return self.events.setdefault(event_id, payload) is payload

    @property
    def said(self) -> list[tuple[str, bool]]:
        return [
            (event.text, isinstance(event, Said) and event.is_edited)
            for event in self.events.values()
            if isinstance(event, Said | Commanded)
        ]


class Stage:
    """A channel that listens, its web server, and the GitHub that both talk to."""

    def __init__(self, gh: FakeGitHub, clock: FakeClock, channel: GitHubChannel, inbox: Inbox, url: str) -> None:
        self.gh = gh
        self.clock = clock
        self.channel = channel
        self.inbox = inbox
        self.url = url

    async def deliver(
        self, action: Any, comment: int, *, secret: str | None = SECRET, by_app: bool = False
    ) -> Delivery:
        return await asyncio.to_thread(self.gh.webhook, self.url, secret, action, comment, by_app=by_app)

    async def again(self, delivery: Delivery) -> Delivery:
        return await asyncio.to_thread(self.gh.redeliver, delivery)

    async def post(self, body: bytes, **headers: str) -> httpx.Response:
        """Post a body that is rightly signed, unless a header says otherwise."""
        usual = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "issue_comment",
            "X-GitHub-Delivery": "5f1a2c70-0000",
            "X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
        }
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            return await client.post(self.url, content=body, headers=usual | given)

    async def polled(self, wait: timedelta = SWEEP) -> None:
        self.clock.advance(wait)
        await until(lambda: bool(self.clock._sleepers), what="the end of a poll")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def gh(clock: FakeClock) -> Iterator[FakeGitHub]:
    with FakeGitHub(now=clock.now) as fake:
        fake.add_user("dri", 101, permission="maintain")
        fake.open_issue("a run")
        fake.open_issue("nobody's")
        yield fake
        assert fake.mistakes == ()


def raw_post(url: str, rest: str, *, is_awaited: bool = True) -> str:
    """Send a request that is not whole, and return the answer's beginning."""
    host, _, port = url.removeprefix("http://").removesuffix(PATH).partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\n{rest}".encode())
        return connection.recv(4096).decode() if is_awaited else ""


def make_channel(gh: FakeGitHub, ledger: FakeLedger, clock: FakeClock) -> GitHubChannel:
    settings = GitHubSettings(
        token=SecretStr(gh.token),
        repository="acme/training",
        base_url=gh.url,
        webhook_secret=SecretStr(SECRET),
        poll=POLL,
        sweep=SWEEP,
    )
    return GitHubChannel(settings, ledger, clock, people=(DRI,), issues=lambda _: 1, pacing=timedelta())


@contextlib.asynccontextmanager
async def served(channel: GitHubChannel) -> AsyncIterator[str]:
    server: uvicorn.Server = web_server(Starlette(routes=channel.routes()), "127.0.0.1:0")
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started, what="the web server")
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}{PATH}"
    finally:
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def listening(channel: GitHubChannel, clock: FakeClock, inbox: Inbox) -> AsyncIterator[None]:
    task = asyncio.create_task(channel.run(inbox.receive))
    await until(lambda: bool(clock._sleepers) or task.done(), what="the end of the first poll")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        clock._sleepers.clear()


@pytest.fixture
def ledger() -> FakeLedger:
    ledger = FakeLedger()
    ledger.messages[ChannelName.GITHUB, RUN, "thread"] = Posted(
        channel=ChannelName.GITHUB, run_id=RUN, slot="thread", message_id="1"
    )
    begun = Position(start_at=START, read_to=START)
    ledger.cursors["github:comments:1"] = begun.model_dump_json()
    return ledger


@pytest.fixture
async def stage(gh: FakeGitHub, clock: FakeClock, ledger: FakeLedger) -> AsyncIterator[Stage]:
    inbox, channel = Inbox(), make_channel(gh, ledger, clock)
    async with served(channel) as url, listening(channel, clock, inbox):
        yield Stage(gh, clock, channel, inbox, url)
    await channel.close()


# A comment counts once, whichever way it comes.


async def test_a_comment_is_stored_before_it_is_acknowledged_and_the_poll_brings_it_no_second_time(
    stage: Stage,
) -> None:
    comment = stage.gh.user_comments(1, "dri", "approve R7")

    delivery = await stage.deliver("created", comment)

    assert (delivery.status, stage.inbox.said) == (200, [("approve R7", False)])
    await stage.polled()
    assert len(stage.inbox.events) == 1


async def test_what_was_polled_first_is_no_news_when_it_is_delivered(stage: Stage) -> None:
    comment = stage.gh.user_comments(1, "dri", "/hero status")
    await stage.polled(POLL)

    delivery = await stage.deliver("created", comment)

    assert (delivery.status, delivery.answer) == (200, "known already")
    assert stage.inbox.said == [("status", False)]


async def test_a_redelivery_is_one_event_also_after_a_restart(
    stage: Stage, gh: FakeGitHub, ledger: FakeLedger, clock: FakeClock
) -> None:
    delivery = await stage.deliver("created", stage.gh.user_comments(1, "dri", "approve R7"))

    assert (await stage.again(delivery)).status == 200
    restarted = make_channel(gh, ledger, FakeClock(clock.now()))
    async with served(restarted) as url, listening(restarted, restarted._clock, stage.inbox):  # type: ignore[arg-type] # reason: it is the fake
        assert (await stage.again(replace(delivery, url=url))).status == 200
    await restarted.close()

    assert len(stage.inbox.events) == 1


async def test_two_replicas_and_a_poll_store_one_event_in_one_database(
    gh: FakeGitHub, clock: FakeClock, ledger: FakeLedger
) -> None:
    store = await Store.open("sqlite://", clock, Redactor())
    await store.save_posted(ledger.messages[ChannelName.GITHUB, RUN, "thread"])
    comment = gh.user_comments(1, "dri", "approve R7")
    for _ in range(2):
        channel = make_channel(gh, store, clock)  # type: ignore[arg-type] # reason: the store is a ledger
        async with served(channel) as url:
            task = asyncio.create_task(channel.run(store.receive))
            await until(lambda: bool(clock._sleepers), what="the first poll")
            delivery = await asyncio.to_thread(gh.webhook, url, SECRET, "created", comment)
            assert delivery.status == 200
            task.cancel()
            await asyncio.wait((task,))
            clock._sleepers.clear()
        await channel.close()

    assert len(await store.pending_inbox()) == 1
    await store.close()


# Deliveries overtake each other, come late, and are replayed.


async def test_an_edit_decides_nothing_and_a_creation_that_comes_after_it_is_no_news(stage: Stage) -> None:
    comment = stage.gh.user_comments(1, "dri", "approve R7")
    created = replace(await stage.deliver("created", comment, secret="wrong"), status=None)
    stage.gh.user_edits(comment, "deny R7")  # within the same second: GitHub's times do not tell

    edited = await stage.deliver("edited", comment)
    late = await stage.post(created.content)

    assert (edited.status, late.status_code) == (200, 200)
    assert stage.inbox.said == [("deny R7", True)]


async def test_a_creation_that_comes_after_the_deletion_is_no_news(stage: Stage) -> None:
    comment = stage.gh.user_comments(1, "dri", "approve R7")
    created = await stage.deliver("created", comment, secret="wrong")
    stage.gh.user_deletes(comment)

    assert (await stage.deliver("deleted", comment)).status == 200
    assert (await stage.post(created.content)).status_code == 200
    await stage.polled(POLL)

    (event,) = stage.inbox.events.values()
    assert isinstance(event, Unsaid)
    assert event.actor.user_id == "101"


async def test_a_deletion_is_told_once_by_webhook_and_poll(stage: Stage) -> None:
    comment = stage.gh.user_comments(1, "dri", "approve R7")
    await stage.polled(POLL)
    stage.gh.user_deletes(comment)

    await stage.deliver("deleted", comment)
    await stage.polled()

    assert [type(event) for event in stage.inbox.events.values()] == [Said, Unsaid]


async def test_a_replay_of_an_old_delivery_is_left_to_the_poll(stage: Stage, clock: FakeClock) -> None:
    """Signed rightly, and never seen before: its comment was deleted before any poll."""
    comment = stage.gh.user_comments(1, "dri", "approve R7")
    created = await stage.deliver("created", comment, secret="wrong")
    stage.gh.user_deletes(comment)
    clock.advance(timedelta(hours=3))

    answer = await stage.post(created.content)

    assert answer.status_code == 202
    assert stage.inbox.events == {}


# What is not ours.


async def test_other_issues_other_events_and_heros_own_comments_are_none_of_its_business(stage: Stage) -> None:
    elsewhere = await stage.deliver("created", stage.gh.user_comments(2, "dri", "approve R7"))
    own = await stage.deliver("created", stage.gh.user_comments(1, "hero-bot", "approve R7"))
    content = elsewhere.content
    foreign = json.loads(content)
    foreign["issue"]["number"] = 1
    foreign["repository"] |= {"id": 5, "full_name": "acme/training"}
    pinned = json.loads(content) | {"action": "pinned"}

    others = [
        await stage.post(json.dumps(foreign).encode()),
        await stage.post(json.dumps(pinned).encode()),
        await stage.post(content, X_GitHub_Event="issues"),
    ]

    assert (elsewhere.status, own.status) == (202, 202)
    assert [answer.status_code for answer in others] == [202] * 3
    assert stage.inbox.events == {}


async def test_an_app_that_comments_in_a_persons_name_is_a_bot(stage: Stage) -> None:
    comment = stage.gh.user_comments(1, "dri", "approve R7")
    content = json.loads((await stage.deliver("created", comment, secret="wrong")).content)
    content["comment"]["performed_via_github_app"] = {"id": 1, "slug": "ci"}

    await stage.post(json.dumps(content).encode())

    (event,) = stage.inbox.events.values()
    assert event.actor.is_bot


# Who forges, and what is broken.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_Hub_Signature_256": ""}, 401),
        ({"X_Hub_Signature_256": "sha256=" + "0" * 64}, 401),
        ({"X_Hub_Signature_256": "sha1=" + "0" * 40}, 401),
        ({"X_Hub_Signature_256": "sha256=é"}, 401),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"X_GitHub_Event": ""}, 400),
        ({"X_GitHub_Delivery": "no guid!"}, 400),
    ],
)
async def test_what_is_forged_or_unlike_github_is_refused(stage: Stage, headers: dict[str, str], status: int) -> None:
    content = (await stage.deliver("created", stage.gh.user_comments(1, "dri", "approve R7"), secret="wrong")).content

    answer = await stage.post(content, **{name: value.encode() for name, value in headers.items()})  # type: ignore[arg-type] # reason: httpx takes bytes

    assert answer.status_code == status
    assert "Traceback" not in answer.text
    assert stage.inbox.events == {}


async def test_without_its_secret_and_with_a_wrong_one_nothing_is_taken(stage: Stage) -> None:
    comment = stage.gh.user_comments(1, "dri", "approve R7")

    assert (await stage.deliver("created", comment, secret=None)).status == 401
    assert (await stage.deliver("created", comment, secret="wrong")).status == 401
    assert stage.inbox.events == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"action": "created", "repository": {"id": 1300192, "full_name": "acme/training"}}',
        b'{"action": ["created"]}',
        b'{"action": ' + b"[" * 100_000,
        b'{"action": "created", "repository": {"id": ' + b"9" * 5_000 + b', "full_name": "x"}}',
    ],
)
async def test_a_signed_body_of_no_known_shape_is_refused_without_a_traceback(stage: Stage, body: bytes) -> None:
    answer = await stage.post(body)

    assert answer.status_code == 400
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("length", [str(MOST_BYTES + 1), "9" * 400])
async def test_a_huge_body_is_not_waited_for(stage: Stage, length: str) -> None:
    answer = await asyncio.to_thread(raw_post, stage.url, f"Content-Length: {length}\r\n\r\nab")

    assert answer.startswith("HTTP/1.1 4")
    assert "Traceback" not in answer


async def test_a_body_without_a_length_is_not_read_past_its_bound(stage: Stage) -> None:
    chunks = f"{MOST_BYTES:x}\r\n{'a' * MOST_BYTES}\r\n2\r\nab\r\n"

    answer = await asyncio.to_thread(raw_post, stage.url, f"Transfer-Encoding: chunked\r\n\r\n{chunks}")

    assert answer.startswith("HTTP/1.1 413")


async def test_a_body_that_breaks_off_harms_nobody(stage: Stage) -> None:
    await asyncio.to_thread(raw_post, stage.url, "Content-Length: 1000\r\n\r\nhalf", is_awaited=False)

    delivery = await stage.deliver("created", stage.gh.user_comments(1, "dri", "approve R7"))

    assert delivery.status == 200


async def test_only_posts_are_taken(stage: Stage) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(stage.url)).status_code == 405


# What cannot be stored is not acknowledged.


async def test_what_cannot_be_stored_is_not_acknowledged_and_polling_finds_it(stage: Stage) -> None:
    stage.inbox.is_full = True
    delivery = await stage.deliver("created", stage.gh.user_comments(1, "dri", "approve R7"))
    assert delivery.status == 503

    stage.inbox.is_full = False
    await stage.polled(POLL)

    assert stage.inbox.said == [("approve R7", False)]


async def test_a_hero_that_stands_by_takes_nothing(gh: FakeGitHub, clock: FakeClock, ledger: FakeLedger) -> None:
    channel = make_channel(gh, ledger, clock)
    comment = gh.user_comments(1, "dri", "approve R7")

    async with served(channel) as url:
        delivery = await asyncio.to_thread(gh.webhook, url, SECRET, "created", comment)

    assert delivery.status == 503
    await channel.close()


def test_without_a_secret_there_is_no_such_address(gh: FakeGitHub, clock: FakeClock, ledger: FakeLedger) -> None:
    settings = GitHubSettings(token=SecretStr(gh.token), repository="acme/training", base_url=gh.url)
    channel = GitHubChannel(settings, ledger, clock, people=(DRI,), issues=lambda _: 1)

    assert channel.routes() == []


# Polling goes on, at a pace that fits.


async def test_polls_are_rarer_while_deliveries_come_and_not_once_one_was_missed(stage: Stage) -> None:
    def due() -> timedelta:
        return timedelta(seconds=stage.clock._sleepers[0][0] - stage.clock.monotonic())

    assert due() == POLL, "no delivery was ever seen"
    await stage.post(b'{"zen": "Keep it logically awesome.", "hook_id": 1}', X_GitHub_Event="ping")
    await stage.polled(POLL)
    assert due() == SWEEP

    stage.gh.user_comments(1, "dri", "deny R7")  # and GitHub's delivery gets lost
    await stage.polled()
    assert stage.inbox.said == [("deny R7", False)]
    assert due() == POLL

    await stage.deliver("created", stage.gh.user_comments(1, "dri", "approve R8"))
    await stage.polled(POLL)
    assert due() == SWEEP
