"""The GitHub channel over the real PyGithub against the fake GitHub: what breaks elsewhere must not break here."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import structlog
from pydantic import SecretStr

from bot.channels.github.channel import GitHubChannel
from bot.channels.github.records import Position
from bot.errors import StoreFullError
from bot.model.delivery import ChannelName, Delivery, Later, Never, Posted, SendOutcome, Sent, Target
from bot.model.event import Commanded, Inbound, Said, Unsaid
from bot.model.person import Actor, Person, Platform
from bot.model.reading import Gap, Known, Unknown
from bot.model.run import RunState
from bot.model.update import Standing, Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.model.verdict import Severity
from bot.settings import GitHubSettings
from tests.fakes.clock import START, FakeClock
from tests.fakes.github import (
    Broken,
    FakeGitHub,
    Malformed,
    PrimaryLimit,
    SecondaryLimit,
    StoredThenBroken,
    StoredThenLost,
    TooManyRequests,
)
from tests.fakes.github_faults import Fault
from tests.fakes.ledger import FakeLedger
from tests.fakes.waiting import until

RUN = RunId("hero-12d8b6f0")
COMMENTS = "/repos/*/*/issues/*/comments"
ONE = "/repos/*/*/issues/comments/*"
POLL = timedelta(seconds=60)
DRI = Person(name=PersonName("alice"), github="dri")

type Make = Callable[..., GitHubChannel]


class Inbox:
    """Stores what comes in, and knows repeats, as the real one."""

    def __init__(self) -> None:
        self.events: list[Inbound] = []
        self.ids: list[str] = []

    async def receive(self, source: str, event_id: str, payload: Inbound) -> bool:
        assert source == "github"
        if event_id in self.ids:
            return False
        self.ids.append(event_id)
        self.events.append(payload)
        return True

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Said | Commanded)]


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

    def made(
        *,
        issue: int | None = None,
        deadline_s: float = 5,
        token: str | None = None,
        pacing: timedelta = timedelta(),
        **changes: object,
    ) -> GitHubChannel:
        settings = GitHubSettings.model_validate(
            {
                "token": SecretStr(token or gh.token),
                "repository": "acme/training",
                "base_url": gh.url,
                "deadline": timedelta(seconds=deadline_s),
                "poll": POLL,
                **changes,
            }
        )
        channel = GitHubChannel(settings, ledger, clock, people=(DRI,), issues=lambda _run: issue, pacing=pacing)
        channels.append(channel)
        return channel

    yield made
    for channel in channels:
        await channel.close()


def update(headline: str = "the job ended with exit code 1", **changes: object) -> Update:
    standing = Standing(state=RunState.FAILED, step=8123, final_step=10000)
    fields = {"kind": UpdateKind.FAILED, "run_id": RUN, "at": START, "headline": headline, "standing": standing}
    return Update.model_validate(fields | changes)


def delivery(
    number: int = 1, told: Update | None = None, *, slot: str = "", attempt: int = 0, **target: str
) -> Delivery:
    told = told or update()
    return Delivery(
        number=number,
        key=f"key-{number}",
        channel=ChannelName.GITHUB,
        run_id=told.run_id,
        target=Target(slot=slot, **target),
        update=told,
        created_at=START,
        attempt=attempt,
        first_intent_at=START if attempt else None,
    )


def bodies(gh: FakeGitHub, issue: int = 1) -> list[str]:
    return [comment.body for comment in gh.issue(issue).comments]


async def sent_in_the_end(channel: GitHubChannel, clock: FakeClock, first: Delivery) -> tuple[Sent, list[Later]]:
    """Try again as the outbox does, after what the channel asks for, else 5 seconds."""
    waits: list[Later] = []
    for attempt in range(10):
        outcome = await channel.send(first.model_copy(update={"attempt": attempt, "first_intent_at": START}))
        match outcome:
            case Sent():
                return outcome, waits
            case Later():
                waits.append(outcome)
                clock.advance(outcome.after or timedelta(seconds=5))
            case Never():
                pytest.fail(f"{outcome}")
    pytest.fail(f"never sent: {waits}")


@contextlib.asynccontextmanager
async def listening(
    channel: GitHubChannel, clock: FakeClock, inbox: Inbox
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Run the channel's loop; each call of what is yielded lets one more poll happen and waits for its end."""
    task = asyncio.create_task(channel.run(inbox.receive))

    async def polled() -> None:
        clock.advance(POLL)
        await until(lambda: bool(clock._sleepers) or task.done(), what="the end of a poll")

    await until(lambda: bool(clock._sleepers) or task.done(), what="the end of the first poll")
    try:
        yield polled
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        clock._sleepers.clear()


# Sending once.


async def test_a_run_gets_one_issue_and_each_event_a_comment(gh: FakeGitHub, make: Make, ledger: FakeLedger) -> None:
    channel = make()

    first = await channel.send(delivery(1))
    second = await channel.send(delivery(2, update("relaunched")))

    (issue,) = gh.issues()
    assert issue.title == "Hero run: hero-12d8b6f0"
    assert [comment.id for comment in issue.comments] == [
        int(o.message_id) for o in (first, second) if isinstance(o, Sent)
    ]
    thread = await ledger.posted(ChannelName.GITHUB, RUN, "thread")
    assert thread is not None
    assert thread.message_id == str(issue.number)


@pytest.mark.parametrize(
    "fault",
    [StoredThenLost(), StoredThenBroken(502), Malformed(), Malformed(cut_off=True)],
    ids=lambda f: type(f).__name__,
)
async def test_a_comment_whose_answer_was_lost_is_found_although_lists_lag(
    gh: FakeGitHub, make: Make, clock: FakeClock, fault: Fault
) -> None:
    """R11: stored, answered with an error, and not listed for a minute: one comment all the same."""
    issue = gh.open_issue("run")
    channel = make(issue=issue)
    gh.lag_lists(timedelta(seconds=60))
    gh.fail("POST", COMMENTS, fault)

    sent, waits = await sent_in_the_end(channel, clock, delivery())

    assert [comment.id for comment in gh.issue(issue).comments] == [int(sent.message_id)]
    assert [wait.is_uncertain for wait in waits] == [True, True]
    assert len(gh.posts()) == 1


async def test_a_comment_that_was_not_stored_is_posted_again_after_lists_had_their_time(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    issue = gh.open_issue("run")
    channel = make(issue=issue)
    gh.fail("POST", COMMENTS, Broken(503))

    _, waits = await sent_in_the_end(channel, clock, delivery())

    assert len(bodies(gh, issue)) == 1
    assert len(gh.posts()) == 2
    assert clock.now() - START >= timedelta(seconds=90)
    assert waits[-1].after == timedelta(seconds=85)


async def test_a_restart_between_the_post_and_its_record_posts_nothing_twice(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    """The second process has the ledger of the first, and an outbox that does not know the outcome."""
    issue = gh.open_issue("run")
    first = await make(issue=issue).send(delivery())
    gh.lag_lists(timedelta(seconds=60))
    clock.advance(timedelta(seconds=5))

    again = await make(issue=issue).send(delivery(attempt=1))

    assert isinstance(first, Sent)
    assert isinstance(again, Sent)
    assert again.message_id == first.message_id
    assert len(gh.posts()) == 1


async def test_a_lost_ledger_still_finds_the_comment_by_marker_and_author(
    gh: FakeGitHub, make: Make, ledger: FakeLedger
) -> None:
    """Anybody can paste a marker: only one in our own comment counts."""
    issue = gh.open_issue("run")
    gh.user_comments(issue, "mallory", "<!-- hero:delivery=key-1 -->")
    first = await make(issue=issue).send(delivery())
    ledger.cursors.clear()

    again = await make(issue=issue).send(delivery(attempt=1))

    assert again == first
    assert len(gh.posts()) == 1


async def test_an_issue_whose_opening_was_uncertain_is_found_by_its_marker(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    channel = make()
    gh.fail("POST", "/repos/*/*/issues", StoredThenLost())

    await sent_in_the_end(channel, clock, delivery())

    assert len(gh.issues()) == 1
    assert len(bodies(gh)) == 1


async def test_a_post_that_a_rename_redirects_is_not_lost(gh: FakeGitHub, make: Make, clock: FakeClock) -> None:
    """The rename comes between looking at the issue and posting: PyGithub then drops the POST without an error."""
    issue = gh.open_issue("run")
    channel = make(issue=issue)
    stall = gh.stall("GET", "/repos/*/*/issues/*", stored=True)
    sending = asyncio.create_task(channel.send(delivery()))
    await until(stall.reached.is_set)
    gh.rename("acme/pretraining")
    stall.release()

    outcome = await sending
    stored = bodies(gh, issue)
    sent, _ = await sent_in_the_end(channel, clock, delivery())

    assert isinstance(outcome, Later)
    assert not outcome.is_uncertain
    assert stored == []
    assert [comment.id for comment in gh.issue(issue).comments] == [int(sent.message_id)]


async def test_after_a_rename_messages_edits_and_reading_go_on(gh: FakeGitHub, make: Make, clock: FakeClock) -> None:
    issue = gh.open_issue("run")
    gh.user_comments(issue, "bob", "long before", START - timedelta(days=1))
    channel, inbox = make(issue=issue), Inbox()
    await channel.send(delivery(1, slot="live"))

    async with listening(channel, clock, inbox) as poll:
        gh.rename("acme/pretraining")
        gh.user_comments(issue, "dri", "approve R7")
        await poll()
    outcomes = [await channel.send(delivery(2, update("step on"), slot="live")), await channel.send(delivery(3))]

    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert "step on" in bodies(gh, issue)[1]
    assert len(bodies(gh, issue)) == 4
    assert inbox.texts == ["approve R7"]


async def test_a_cancelled_send_leaves_a_record_by_which_the_next_one_waits_and_looks(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    """As when Hero is stopped in the middle: the comment is stored a moment later."""
    channel = make(issue=gh.open_issue("run"))
    stall = gh.stall("POST", COMMENTS)
    sending = asyncio.create_task(channel.send(delivery()))
    await until(stall.reached.is_set)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending

    early = await make(issue=1).send(delivery(attempt=1))
    stall.release()
    await until(lambda: len(bodies(gh)) == 1)
    clock.advance(timedelta(seconds=90))
    late = await make(issue=1).send(delivery(attempt=2))

    assert isinstance(early, Later)
    assert early.after == timedelta(seconds=90)
    assert isinstance(late, Sent)
    assert len(gh.posts()) == 1


async def test_what_a_crash_ended_while_it_waited_for_its_pace_is_posted_at_once_after_the_restart(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    """It was not begun, so nothing has to settle: after a crash people hear of it now, and not 90 s later."""
    issue = gh.open_issue("run")
    channel = make(issue=issue, pacing=timedelta(seconds=1))
    await channel.send(delivery(1))
    waiting = asyncio.create_task(channel.send(delivery(2)))
    await until(lambda: bool(clock._sleepers), what="the wait for the pace")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    again = await make(issue=issue).send(delivery(2, attempt=1))

    assert isinstance(again, Sent)
    assert len(gh.posts()) == 2


async def test_writes_keep_the_pace_that_github_asks_for(gh: FakeGitHub, make: Make, clock: FakeClock) -> None:
    issue = gh.open_issue("run")
    channel = make(issue=issue, pacing=timedelta(seconds=1))
    await channel.send(delivery(1))

    second = asyncio.create_task(channel.send(delivery(2)))
    await until(lambda: bool(clock._sleepers), what="the wait for the pace")
    before = len(gh.posts())
    clock.advance(timedelta(seconds=1))

    assert isinstance(await second, Sent)
    assert before == 1


async def test_an_app_learns_its_login_from_its_first_comment_and_knows_itself_by_it(
    gh: FakeGitHub, make: Make, clock: FakeClock, ledger: FakeLedger
) -> None:
    """An installation's token may not ask who it is."""
    issue, inbox = gh.open_issue("run"), Inbox()
    token = str(gh.access.issue_installation_token("write")["token"])
    first = await make(issue=issue, token=token).send(delivery(1))
    del ledger.cursors["github:postings"]

    restarted = make(issue=issue, token=token)
    again = await restarted.send(delivery(1, attempt=1))
    async with listening(restarted, clock, inbox) as poll:
        gh.user_comments(issue, "dri", "seen")
        await poll()

    assert again == first
    assert len(bodies(gh, issue)) == 2
    assert inbox.texts == ["seen"]


# Edits in place.


async def test_a_slot_is_one_comment_edited_in_place_and_only_with_news(gh: FakeGitHub, make: Make) -> None:
    channel = make(issue=gh.open_issue("run"))
    first = await channel.send(delivery(1, update("step 1"), slot="live"))
    second = await channel.send(delivery(2, update("step 2"), slot="live"))

    third = await channel.send(delivery(3, update("step 2"), slot="live"))

    assert first == second == third
    assert "step 2" in bodies(gh)[0]
    assert len(bodies(gh)) == 1
    assert [asked.verb for asked in gh.requests].count("PATCH") == 1


async def test_a_slot_whose_comment_was_deleted_gets_one_new_comment(
    gh: FakeGitHub, make: Make, ledger: FakeLedger
) -> None:
    channel = make(issue=gh.open_issue("run"))
    first = await channel.send(delivery(1, slot="request:7"))
    assert isinstance(first, Sent)
    gh.user_deletes(int(first.message_id))

    second = await channel.send(delivery(2, update("again"), slot="request:7"))
    third = await channel.send(delivery(3, update("answered"), slot="request:7"))

    assert isinstance(second, Sent)
    assert second == third
    assert second.message_id != first.message_id
    assert len(bodies(gh)) == 1


async def test_a_successor_issue_gets_comments_of_its_own(gh: FakeGitHub, make: Make, ledger: FakeLedger) -> None:
    old, new = gh.open_issue("old"), gh.open_issue("new")
    await make(issue=old).send(delivery(1, slot="live"))

    channel = make(issue=new)
    first = await channel.send(delivery(2, update("moved"), slot="live"))
    second = await channel.send(delivery(3, update("moved on"), slot="live"))

    thread = await ledger.posted(ChannelName.GITHUB, RUN, "thread")
    assert first == second
    assert len(bodies(gh, old)) == len(bodies(gh, new)) == 1
    assert "moved on" in bodies(gh, new)[0]
    assert thread is not None
    assert thread.message_id == str(new)


async def test_a_sticky_comment_and_an_approval_deep_in_a_long_issue_are_both_found(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    """R12: 250 comments, ours is number 40, the approval number 243."""
    issue = gh.open_issue("run")
    channel, inbox = make(issue=issue), Inbox()
    for n in range(39):
        gh.user_comments(issue, "bob", f"before {n}")
    clock.advance(timedelta(minutes=1))
    sticky = await channel.send(delivery(1, slot="live"))
    for n in range(40, 250):
        gh.user_comments(issue, "dri" if n == 242 else "bob", "approve R7" if n == 242 else f"after {n}")

    async with listening(channel, clock, inbox):
        pass
    edited = await channel.send(delivery(2, update("edited"), slot="live"))

    assert isinstance(sticky, Sent)
    assert edited == sticky
    assert len(gh.issue(issue).comments) == 250
    assert "edited" in bodies(gh, issue)[39]
    assert inbox.texts.count("approve R7") == 1
    assert len(inbox.texts) == 210
    assert not [text for text in inbox.texts if text.startswith("before")]


# Limits, refusals and stalls.


@pytest.mark.parametrize(
    ("fault", "after_s"),
    [
        (SecondaryLimit(30), 31),
        (SecondaryLimit(None), 61),
        (TooManyRequests(), 61),
        (TooManyRequests(7), 8),
        (PrimaryLimit(timedelta(minutes=40)), 2401),
    ],
)
async def test_a_rate_limit_is_waited_for_by_the_outbox_and_not_in_a_thread(
    gh: FakeGitHub, make: Make, fault: Fault, after_s: int
) -> None:
    channel = make(issue=gh.open_issue("run"))
    gh.fail("POST", COMMENTS, fault)
    began = time.monotonic()

    outcome = await channel.send(delivery())

    assert isinstance(outcome, Later)
    assert outcome.after == timedelta(seconds=after_s)
    assert not outcome.is_uncertain
    assert time.monotonic() - began < 3
    assert "rate limit" in channel.trouble


async def test_what_github_will_never_take_says_the_fix_and_is_not_tried_again(gh: FakeGitHub, make: Make) -> None:
    locked, deleted, fine = (gh.open_issue(title) for title in ("locked", "deleted", "fine"))
    gh.lock(locked)
    gh.delete_issue(deleted)
    gh.add_token("github_pat_" + "r" * 40, "hero-bot", issues="read")

    outcomes: dict[str, SendOutcome] = {}
    for name, issue in {"locked": locked, "deleted": deleted, "missing": 99}.items():
        outcomes[name] = await make(issue=issue).send(delivery())
    outcomes["read-only"] = await make(issue=fine, token="github_pat_" + "r" * 40).send(delivery())

    fixes = {name: outcome.fix for name, outcome in outcomes.items() if isinstance(outcome, Never)}
    assert set(fixes) == set(outcomes)
    assert "unlock" in fixes["locked"]
    assert "channels.github_issue" in fixes["deleted"]
    assert "Issues: read and write" in fixes["read-only"]


async def test_a_refused_token_shows_as_trouble_and_works_again_once_it_is_renewed(
    gh: FakeGitHub, make: Make, tmp_path: Path
) -> None:
    """R15: the token in the file is the one that counts, also one that was written there later."""
    file = tmp_path / "token"
    file.write_text("ghp_old")
    channel = make(issue=gh.open_issue("run"), token_file=file)

    with structlog.testing.capture_logs() as logs:
        refused = [await channel.send(delivery()), await channel.send(delivery())]
        trouble = channel.trouble
        file.write_text(gh.token + "\n")
        outcome = await channel.send(delivery())

    assert all(isinstance(each, Later) for each in refused)
    assert "HERO_GITHUB__TOKEN" in trouble
    assert isinstance(outcome, Sent)
    assert channel.trouble == ""
    assert [line["event"] for line in logs] == ["github_trouble_began", "github_trouble_ended"]


async def test_a_server_that_hangs_costs_its_deadline_and_nothing_else(gh: FakeGitHub, make: Make) -> None:
    """The loop goes on while PyGithub blocks; the next message gets a client of its own."""
    channel = make(issue=gh.open_issue("run"), deadline_s=0.4)
    stall = gh.stall("POST", COMMENTS)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    outcome = await channel.send(delivery(1))
    during = ticks
    second = await channel.send(delivery(2, update("another")))
    ticking.cancel()

    assert isinstance(outcome, Later)
    assert outcome.is_uncertain
    assert during > 15
    assert isinstance(second, Sent)
    stall.release()
    await until(lambda: len(bodies(gh)) == 2)


async def test_a_slow_write_that_lands_after_its_deadline_is_found_and_not_repeated(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    channel = make(issue=gh.open_issue("run"), deadline_s=0.3)
    stall = gh.stall("POST", COMMENTS)
    first = await channel.send(delivery())
    stall.release()
    await until(lambda: len(bodies(gh)) == 1)

    sent, _ = await sent_in_the_end(channel, clock, delivery(attempt=1))

    assert isinstance(first, Later)
    assert len(bodies(gh)) == 1
    assert sent.message_id == str(gh.issue(1).comments[0].id)


async def test_a_github_that_is_down_is_trouble_and_never_an_exception(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    channel, inbox = make(issue=gh.open_issue("run")), Inbox()
    await channel.send(delivery(1))
    gh.stop()

    async with listening(channel, clock, inbox) as poll:
        outcome = await channel.send(delivery(2))
        standing = await channel.identify(Actor(platform=Platform.GITHUB, user_id="101", login="dri"))
        trouble = channel.trouble
        gh.start()
        gh.user_comments(1, "dri", "approve")
        await poll()
        await channel.send(delivery(2))

    assert isinstance(outcome, Later)
    assert isinstance(standing, Unknown)
    assert standing.reason is Gap.UNREACHABLE
    assert "acme/training" in trouble
    assert channel.trouble == ""
    assert inbox.texts == ["approve"]


# The day's comments (R14).


async def test_past_the_days_comments_news_goes_into_the_live_status_and_urgent_news_still_gets_its_own(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    channel = make(issue=gh.open_issue("run"), comments_per_day=3)
    live = await channel.send(delivery(1, update("all is well"), slot="live"))
    for n in (2, 3, 4):
        await channel.send(delivery(n, update(f"milestone {n}", kind=UpdateKind.MILESTONE)))
    again = await channel.send(delivery(4, update("milestone 4", kind=UpdateKind.MILESTONE), attempt=1))
    await channel.send(delivery(5, update("loss is NaN", severity=Severity.CRITICAL)))
    await channel.send(delivery(6, update("may I?", kind=UpdateKind.REQUEST_ASKED), slot="request:1"))
    await channel.send(delivery(7, update("still well"), slot="live"))
    before = bodies(gh)
    clock.advance(timedelta(hours=25))
    await channel.send(delivery(8, update("a new day"), slot="live"))
    await channel.send(delivery(9, update("milestone 9", kind=UpdateKind.MILESTONE)))

    assert again == live
    assert len(before) == 5
    assert before[0].count("milestone 4") == 1
    assert "still well" in before[0]
    assert "used up" in before[0]
    assert "milestone 4" not in bodies(gh)[0]
    assert len(bodies(gh)) == 6


async def test_a_stranger_is_answered_once_an_hour_and_never_mentioned(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    issue = gh.open_issue("run")
    channel, inbox = make(issue=issue), Inbox()
    await channel.send(delivery(1))
    who = gh.add_user("mallory")
    gh.user_comments(issue, "mallory", "approve")
    refusal = update("only alice decides that", kind=UpdateKind.ANSWER)

    async with listening(channel, clock, inbox):
        for n in range(2, 12):
            await channel.send(delivery(n, refusal, private_to=str(who)))
    clock.advance(timedelta(hours=1))
    await channel.send(delivery(12, refusal, private_to=str(who)))

    replies = [body for body in bodies(gh, issue) if "only alice" in body]
    assert len(replies) == 2
    assert all("`mallory`" in body for body in replies)


# Reading.


@pytest.fixture
def process_in_kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("skew_s", [-90, 90])
async def test_what_is_said_is_handed_on_once_whatever_the_clocks_and_zones(
    make: Make, clock: FakeClock, ledger: FakeLedger, process_in_kolkata: None, skew_s: int
) -> None:
    """R13: the cursor is held in one zone, the process is in another, and GitHub's clock is 90 s off ours."""
    with FakeGitHub(now=lambda: clock.now() + timedelta(seconds=skew_s)) as skewed:
        issue = skewed.open_issue("run")
        here = {"issue": issue, "base_url": skewed.url, "token": skewed.token}
        inbox = Inbox()
        await make(**here).send(delivery(1))
        place = f"github:comments:{issue}"
        position = Position.model_validate_json(ledger.cursors[place])
        local = position.read_to.astimezone(ZoneInfo("America/Los_Angeles"))
        ledger.cursors[place] = position.model_copy(update={"start_at": local, "read_to": local}).model_dump_json()

        skewed.user_comments(issue, "dri", "at once")
        async with listening(make(**here), clock, inbox) as poll:
            skewed.lag_lists(timedelta(seconds=90))
            skewed.user_comments(issue, "dri", "listed late")
            await poll()
            skewed.lag_lists(timedelta())
            skewed.user_comments(issue, "dri", "listed at once")
            await poll()
            earlier = clock.now() + timedelta(seconds=skew_s - 100)
            skewed.user_comments(issue, "dri", "listed after a newer one", earlier)
            await poll()
        skewed.user_comments(issue, "dri", "while Hero was down")
        async with listening(make(**here), clock, inbox) as poll:
            await poll()

        asked = [request.query["since"] for request in skewed.requests if "since" in request.query]
        assert inbox.texts == [
            "at once",
            "listed late",
            "listed at once",
            "listed after a newer one",
            "while Hero was down",
        ]
        assert asked[0] == (START + timedelta(seconds=skew_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert skewed.mistakes == ()


async def test_edits_deletions_commands_and_bots_come_as_what_they_are(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    issue = gh.open_issue("run")
    channel, inbox = make(issue=issue), Inbox()
    await channel.send(delivery(1))
    gh.add_user("ci[bot]", 202, "Bot")

    async with listening(channel, clock, inbox) as poll:
        harmless = gh.user_comments(issue, "dri", "looks bad")
        approval = gh.user_comments(issue, "dri", "approve R7")
        gh.user_comments(issue, "dri", "> /hero stop\n```\n/hero stop\n```\n/hero status all \nthanks")
        gh.user_comments(issue, "ci[bot]", "approve R7")
        await poll()
        gh.user_edits(harmless, "/hero stop")
        gh.user_deletes(approval)
        await poll()
        await poll()

    said = [event for event in inbox.events if isinstance(event, Said)]
    assert [(event.text, event.is_edited, event.actor.is_bot) for event in said] == [
        ("looks bad", False, False),
        ("approve R7", False, False),
        ("approve R7", False, True),
        ("/hero stop", True, False),
    ]
    assert [event.text for event in inbox.events if isinstance(event, Commanded)] == ["status all"]
    (unsaid,) = [event for event in inbox.events if isinstance(event, Unsaid)]
    assert (unsaid.place.message, unsaid.actor.user_id) == (str(approval), "101")
    assert said[0].place.conversation == str(issue)


async def test_a_person_whose_own_token_hero_was_given_is_still_heard(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    """What carries no marker was written by the person and not by Hero."""
    gh.add_token("ghp_" + "d" * 36, "dri")
    issue = gh.open_issue("run")
    channel, inbox = make(issue=issue, token="ghp_" + "d" * 36), Inbox()

    async with listening(channel, clock, inbox) as poll:
        await channel.send(delivery(1))
        gh.user_comments(issue, "dri", "approve R7")
        await poll()

    assert inbox.texts == ["approve R7"]


async def test_what_could_not_be_stored_is_read_again(gh: FakeGitHub, make: Make, clock: FakeClock) -> None:
    """A full disk while a poll is handed on: the position stays, and the next poll brings the same."""
    issue, inbox = gh.open_issue("run"), Inbox()
    channel = make(issue=issue)
    await channel.send(delivery(1))
    is_full = True

    async def receive(source: str, event_id: str, payload: Inbound) -> bool:
        if is_full:
            raise StoreFullError("no space left")
        return await inbox.receive(source, event_id, payload)

    gh.user_comments(issue, "dri", "approve R7")
    task = asyncio.create_task(channel.run(receive))
    await until(lambda: bool(clock._sleepers))
    trouble = channel.trouble
    is_full = False
    clock.advance(POLL)
    await until(lambda: bool(inbox.texts))
    await until(lambda: channel.trouble == "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert "no space left" in trouble
    assert inbox.texts == ["approve R7"]


async def test_an_issue_that_is_gone_does_not_keep_the_others_from_being_read(
    gh: FakeGitHub, make: Make, clock: FakeClock, ledger: FakeLedger
) -> None:
    gone, there = gh.open_issue("gone"), gh.open_issue("there")
    for issue in (gone, there):
        posted = Posted(channel=ChannelName.GITHUB, run_id=RunId(f"run-{issue}"), slot="thread", message_id=str(issue))
        await ledger.save_posted(posted)
    gh.delete_issue(gone)
    channel, inbox = make(), Inbox()

    async with listening(channel, clock, inbox) as poll:
        gh.user_comments(there, "dri", "approve")
        await poll()

    assert inbox.texts == ["approve"]
    assert f"#{gone}" in channel.trouble


# Who somebody is, and whether the connection is well.


async def test_an_account_counts_by_its_id_and_its_permission_now(gh: FakeGitHub, make: Make) -> None:
    gh.add_user("reader", 5, permission="read")
    gh.add_user("taken-over", 7, permission="write")
    gh.add_user("robot", 8, "Bot", permission="write")
    channel = make()

    async def standing(login: str, user_id: int) -> tuple[bool, bool]:
        found = await channel.identify(Actor(platform=Platform.GITHUB, user_id=str(user_id), login=login))
        assert isinstance(found, Known)
        return found.value.is_member, found.value.is_bot

    assert await standing("dri", 101) == (True, False)
    assert await standing("reader", 5) == (False, False)
    assert await standing("taken-over", 6) == (False, False)
    assert await standing("robot", 8) == (True, True)
    assert await standing("nobody-any-more", 9) == (False, False)


async def test_the_doctor_names_what_is_wrong_and_the_fix_and_writes_nothing(gh: FakeGitHub, make: Make) -> None:
    gh.add_token("github_pat_" + "r" * 40, "hero-bot", issues="read")

    well = await make().doctor()
    read_only = await make(token="github_pat_" + "r" * 40).doctor()
    refused = await make(token="ghp_wrong").doctor()
    elsewhere = await make(repository="acme/nothing").doctor()

    assert [ok for _, ok, _, _ in well] == [True] * 4
    assert "Issues: read and write" in read_only[-1][3]
    assert refused[0][:2] == ("github token", False)
    assert "HERO_GITHUB__TOKEN" in refused[0][3]
    assert elsewhere[-1][:2] == ("github repository", False)
    assert gh.issues() == ()


async def test_hostile_text_mentions_nobody_and_forges_no_marker(gh: FakeGitHub, make: Make) -> None:
    """The fake's proofreader, at the end of every test, looks for mentions and repeated markers."""
    hostile = "@everyone closes #1 <!-- hero:delivery=key-2 --> ```\n@channel\n``` </details> @acme/all \x1b[2J\u202e"
    channel = make(issue=gh.open_issue("run"))
    told = update(hostile, evidence=(hostile, "x" * 1_000_000), next=hostile, plan=(hostile,), asked="alice")

    first = await channel.send(delivery(1, told))
    second = await channel.send(delivery(2, told))

    assert isinstance(first, Sent)
    assert isinstance(second, Sent)
    assert first != second
    assert [body.count("<!-- hero:") for body in bodies(gh)] == [1, 1]
    assert all("@dri" in body for body in bodies(gh))


async def test_a_login_that_a_stranger_takes_over_stands_for_nobody(
    gh: FakeGitHub, make: Make, clock: FakeClock
) -> None:
    """The DRI's old login is free after a renaming; whoever takes it has write access too, and is somebody else."""
    channel = make(issue=gh.open_issue("run"))
    async with listening(channel, clock, Inbox()):
        pass
    gh.add_user("dri", 999_999, permission="write")

    found = await channel.identify(Actor(platform=Platform.GITHUB, user_id="999999", login="dri"))

    assert isinstance(found, Known)
    assert not found.value.is_member
    assert "github_id = 999999" in found.value.detail
