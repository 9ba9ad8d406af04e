"""Issues that Hero opens: from the house's template, and in time before GitHub takes no more comments on one (R14)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.channels.github.channel import GitHubChannel
from bot.channels.github.successors import FULL_AT
from bot.errors import ConfigurationError
from bot.model.delivery import Awaited, ChannelName, Delivery, Later, Sent, Target
from bot.model.event import Inbound, Said
from bot.model.person import Person
from bot.model.update import Choice, Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.render.issue_template import PLACES
from bot.settings import GitHubSettings
from tests.fakes.clock import START, FakeClock
from tests.fakes.github import Broken, FakeGitHub, StoredThenLost
from tests.fakes.github_faults import Fault
from tests.fakes.ledger import FakeLedger
from tests.fakes.waiting import until

RUN = RunId("hero-12d8b6f0")
DRI = Person(name=PersonName("alice"), github="dri")
POLL = timedelta(seconds=60)
FACTS = {"dri": "alice", "tracker": "lab/<img src=x> @everybody"}

type Make = Callable[..., GitHubChannel]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ledger() -> FakeLedger:
    return FakeLedger()


@pytest.fixture
def gh(clock: FakeClock) -> Iterator[FakeGitHub]:
    with FakeGitHub(now=clock.now, allowed_mentions=["dri"]) as fake:
        fake.add_user("dri", 101, permission="maintain")
        yield fake
        assert fake.mistakes == ()


@pytest.fixture
async def make(gh: FakeGitHub, clock: FakeClock, ledger: FakeLedger) -> AsyncIterator[Make]:
    """Channels with one ledger, as before and after a restart."""
    channels: list[GitHubChannel] = []

    def made(*, issue: int | None = None, **changes: object) -> GitHubChannel:
        given = {"token": SecretStr(gh.token), "repository": "acme/training", "base_url": gh.url, "poll": POLL}
        settings = GitHubSettings.model_validate(given | changes)
        channel = GitHubChannel(
            settings,
            ledger,
            clock,
            people=(DRI,),
            issues=lambda _: issue,
            facts=lambda _: FACTS,
            pacing=timedelta(),
        )
        channels.append(channel)
        return channel

    yield made
    for channel in channels:
        await channel.close()


def delivery(number: int, headline: str = "the job ended", *, slot: str = "", **changes: object) -> Delivery:
    fields = {"kind": UpdateKind.FAILED, "run_id": RUN, "at": START, "headline": headline}
    told = Update.model_validate(fields | changes)
    return Delivery(
        number=number,
        key=f"key-{number}",
        channel=ChannelName.GITHUB,
        run_id=RUN,
        target=Target(slot=slot),
        update=told,
        created_at=START,
    )


def request(number: int, *, is_open: bool) -> Delivery:
    choice = Choice(request="R7", is_open=is_open, outcome="" if is_open else "approved by alice")
    return delivery(number, "a relaunch is asked for", slot="request:7", kind=UpdateKind.REQUEST_ASKED, choice=choice)


def fill(gh: FakeGitHub, issue: int, comments: int) -> None:
    for _ in range(comments - len(gh.issue(issue).comments)):
        gh.user_comments(issue, "bob", "more")


def bodies(gh: FakeGitHub, issue: int) -> list[str]:
    return [comment.body for comment in gh.issue(issue).comments if comment.author == "hero-bot"]


# Going on in a successor.


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_nearly_full_issue_is_followed_by_one_that_links_back_and_it_links_forward(
    gh: FakeGitHub, make: Make, is_named: bool
) -> None:
    named = gh.open_issue("people's own") if is_named else None
    channel = make(issue=named)
    await channel.send(delivery(1, "live", slot="live"))
    await channel.send(request(2, is_open=True))
    first = 1
    fill(gh, first, FULL_AT - 1)

    await channel.send(delivery(3, "the last one that fits"))
    for number, told in enumerate((delivery(4, "after it"), delivery(5, "live again", slot="live")), start=4):
        assert isinstance(await channel.send(told), Sent), number
    await channel.send(request(6, is_open=False))

    old, new = gh.issues()
    assert old.comments[-1].body.startswith("**This issue is full: everything goes on in [#2]")
    assert "This goes on where [#1](" in new.body
    after, live = bodies(gh, 2)
    assert "after it" in after
    assert "live again" in live
    answered = [body for body in bodies(gh, 1) if "R7" in body]
    assert len(answered) == 1, "the request is edited where it was asked"
    assert "approved by alice" in answered[0]
    assert channel.trouble == ""


async def test_a_full_issue_hands_on_what_it_refuses_and_its_own_text_links_forward(gh: FakeGitHub, make: Make) -> None:
    named = gh.open_issue("people's own", "What we want to know.")
    fill(gh, named, 2_500)

    outcome = await make(issue=named).send(delivery(1))

    assert isinstance(outcome, Sent)
    assert len(bodies(gh, 2)) == 1
    text = gh.issue(named).body
    assert text.startswith("**Goes on in [#2]")
    assert text.endswith("What we want to know.")


@pytest.mark.parametrize("fault", [StoredThenLost(), Broken()])
async def test_a_crash_or_a_lost_answer_while_going_on_opens_one_successor_and_forgets_no_link(
    gh: FakeGitHub, make: Make, clock: FakeClock, fault: Fault
) -> None:
    named = gh.open_issue("people's own")
    channel = make(issue=named)
    fill(gh, named, FULL_AT)
    gh.fail("POST", "/repos/*/*/issues", fault)

    assert isinstance(await channel.send(delivery(1)), Sent)
    clock.advance(timedelta(minutes=3))
    gh.fail("POST", f"/repos/*/*/issues/{named}/comments", StoredThenLost(), times=1)
    await channel.send(delivery(2))
    clock.advance(timedelta(minutes=3))
    restarted = make(issue=named)
    for number in (3, 4):
        await restarted.send(delivery(number))
        clock.advance(timedelta(minutes=3))

    assert len(gh.issues()) == 2
    assert sum("This issue is full" in body for body in bodies(gh, named)) == 1


async def test_a_token_that_may_not_open_issues_says_so_and_goes_on_where_it_can(gh: FakeGitHub, make: Make) -> None:
    named = gh.open_issue("people's own")
    fill(gh, named, FULL_AT)
    gh.fail("POST", "/repos/*/*/issues", Broken(), times=5)
    channel = make(issue=named)

    assert isinstance(await channel.send(delivery(1)), Sent)

    assert "is nearly full, and going on elsewhere failed" in channel.trouble


# Answers on both.


@contextlib.asynccontextmanager
async def listening(channel: GitHubChannel, clock: FakeClock, heard: list[str]) -> AsyncIterator[None]:
    async def receive(_source: str, _event_id: str, payload: Inbound) -> bool:
        assert isinstance(payload, Said)
        heard.append(f"{payload.place.conversation}: {payload.text}")
        return True

    task = asyncio.create_task(channel.run(receive))
    await until(lambda: bool(clock._sleepers) or task.done(), what="the end of the first poll")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        clock._sleepers.clear()


async def test_answers_on_a_full_issue_count_while_a_request_waits_and_old_words_are_never_heard_late(
    gh: FakeGitHub, make: Make, clock: FakeClock, ledger: FakeLedger
) -> None:
    channel = make()
    await channel.send(request(1, is_open=True))
    fill(gh, 1, FULL_AT)
    await channel.send(delivery(2))
    heard: list[str] = []

    async def polled() -> None:
        clock.advance(POLL)
        await until(lambda: bool(clock._sleepers), what="the end of a poll")

    ledger.awaits = Awaited(asked=frozenset({RUN}))
    clock.advance(timedelta(days=3))
    async with listening(channel, clock, heard):
        heard.clear()
        gh.user_comments(1, "dri", "approve R7")
        gh.user_comments(2, "dri", "thanks")
        await polled()
        assert heard == ["1: approve R7", "2: thanks"]

        ledger.awaits = Awaited()
        await polled()
        gh.user_comments(1, "dri", "/hero stop")
        await polled()
        ledger.awaits = Awaited(asked=frozenset({RUN}))
        await polled()

    assert heard == ["1: approve R7", "2: thanks"]


# The house's own words.


async def test_an_issue_says_what_the_houses_template_says_and_mentions_nobody(
    gh: FakeGitHub, make: Make, tmp_path: Path
) -> None:
    file = tmp_path / "issue.md"
    file.write_text("# {run_id} of {dri}\nTracked at {tracker}, on {hardware}.\n\n{how_to_answer}\n")

    await make(issue_template=file).send(delivery(1))

    (issue,) = gh.issues()
    assert issue.title == f"{RUN} of alice"
    assert "on not stated." in issue.body
    assert "<img" not in issue.body
    assert "exactly `approve R7`" in issue.body


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{run}", "nothing is known for {run}; there are {run_id}"),
        ("# only a title", "is empty below its title"),
        ("a <!-- hero:run=x -->", "take it out"),
        ("x" * 40_000, "is longer than"),
        (None, "cannot be read"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_at_the_start_with_the_fix(
    make: Make, tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "issue.md"
    if text is not None:
        file.write_text(text)

    with pytest.raises(ConfigurationError) as refusal:
        make(issue_template=file)

    assert said in refusal.value.problems[0]
    assert "issue.md" in refusal.value.problems[0]


def test_every_place_of_a_template_can_be_used(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "issue.md"
    file.write_text("\n".join(f"{{{place}}}" for place in PLACES))

    make(issue_template=file)


async def test_an_issue_that_cannot_be_opened_yet_is_opened_later(gh: FakeGitHub, make: Make) -> None:
    gh.fail("POST", "/repos/*/*/issues", Broken())
    channel = make()

    assert isinstance(await channel.send(delivery(1)), Later)
