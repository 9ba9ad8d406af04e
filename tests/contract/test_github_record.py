"""The record in an issue's own text, over the real PyGithub: kept current, and nothing of what people wrote touched."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from pydantic import SecretStr

from bot.channels.github.channel import GitHubChannel
from bot.channels.github.client import GitHubClient
from bot.model.chronicle import MilestoneReached, Written, written_under
from bot.model.delivery import ChannelName, Delivery, Later, Never, SendOutcome, Sent, Target
from bot.model.update import Update, UpdateKind
from bot.model.value import RunId
from bot.render.issue_body import PUT_BACK, has_block, outside_of
from bot.settings import GitHubSettings
from tests.fakes.chronicles import LIFE, entries_of
from tests.fakes.clock import START, FakeClock
from tests.fakes.github import Broken, FakeGitHub, StoredThenLost
from tests.fakes.ledger import FakeLedger

RUN = RunId("hero-12d8b6f0")
ISSUE = "/repos/*/*/issues/*"
MINE = "Our plan:\r\n\r\n- [ ] train it\r\n- ask @dri\r\n"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ledger() -> FakeLedger:
    ledger = FakeLedger()
    ledger.entries = entries_of(RUN, LIFE[:3])
    return ledger


@pytest.fixture
def gh(clock: FakeClock) -> Iterator[FakeGitHub]:
    with FakeGitHub(now=clock.now, allowed_mentions=["dri"]) as fake:
        fake.add_user("dri", 101, permission="maintain")
        yield fake
        assert fake.mistakes == ()


@pytest.fixture
async def channel(gh: FakeGitHub, clock: FakeClock, ledger: FakeLedger) -> AsyncIterator[GitHubChannel]:
    settings = GitHubSettings(
        token=SecretStr(gh.token), repository="acme/training", base_url=gh.url, deadline=timedelta(seconds=20)
    )
    named = gh.open_issue("Hero run", MINE, login="dri")
    channel = GitHubChannel(settings, ledger, clock, people=(), issues=lambda _run: named, pacing=timedelta())
    yield channel
    await channel.close()


async def keep(channel: GitHubChannel, number: int = 1) -> SendOutcome:
    update = Update(kind=UpdateKind.LIVE_STATUS, run_id=RUN, at=START, headline="the record has grown")
    return await channel.send(
        Delivery(
            number=number,
            key=f"record-{number}",
            channel=ChannelName.GITHUB,
            run_id=RUN,
            target=Target(slot="record"),
            update=update,
            created_at=START,
        )
    )


def body(gh: FakeGitHub) -> str:
    return gh.issue(1).body or ""


def edits(gh: FakeGitHub) -> int:
    return sum(each.verb == "PATCH" for each in gh.requests)


async def test_the_record_stands_below_what_people_wrote_and_is_edited_in_place(
    gh: FakeGitHub, channel: GitHubChannel, ledger: FakeLedger
) -> None:
    assert isinstance(await keep(channel), Sent)
    first = body(gh)
    ledger.entries = entries_of(RUN)

    assert isinstance(await keep(channel, 2), Sent)

    assert first.startswith(MINE)
    assert "3 entries" in first
    assert "11 entries" in body(gh)
    assert ledger.entries[-1].hash in body(gh)
    assert outside_of(body(gh), RUN) == outside_of(first, RUN)
    assert gh.issue(1).comments == ()


async def test_a_record_that_has_not_grown_is_not_written_again(gh: FakeGitHub, channel: GitHubChannel) -> None:
    await keep(channel)
    before = edits(gh)

    assert isinstance(await keep(channel, 2), Sent)

    assert edits(gh) == before == 1


async def test_what_a_person_saves_meanwhile_is_kept(
    gh: FakeGitHub, channel: GitHubChannel, ledger: FakeLedger
) -> None:
    await keep(channel)
    gh.user_edits_issue(1, "A new beginning, and " + body(gh) + "\n\nA word at the end.")
    ledger.entries = entries_of(RUN)

    await keep(channel, 2)

    assert body(gh).startswith("A new beginning, and Our plan:\r\n")
    assert body(gh).endswith("\r\n\r\nA word at the end.")
    assert "11 entries" in body(gh)
    assert body(gh).count("### Run record") == 1


async def test_an_edit_between_our_look_and_our_write_is_looked_at_once_more(
    gh: FakeGitHub, channel: GitHubChannel, ledger: FakeLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is the one of the very call that writes: whatever was read before plays no part."""
    await keep(channel)
    stale = body(gh)
    ledger.entries = entries_of(RUN)
    whole = GitHubClient.edit_issue

    async def late(client: GitHubClient, issue: int, change: object) -> object:
        gh.user_edits_issue(1, f"{stale}\n\nWritten in the last moment.")
        return await whole(client, issue, change)  # type: ignore[arg-type] # handed through

    monkeypatch.setattr(GitHubClient, "edit_issue", late)

    await keep(channel, 2)

    assert body(gh).endswith("Written in the last moment.")
    assert "11 entries" in body(gh)


async def test_a_block_that_was_taken_out_is_put_back_once_and_says_so(
    gh: FakeGitHub, channel: GitHubChannel, ledger: FakeLedger
) -> None:
    await keep(channel)
    gh.user_edits_issue(1, "only mine")
    ledger.entries = entries_of(RUN)
    await keep(channel, 2)
    put_back = body(gh)
    gh.user_edits_issue(1, "only mine, I said")
    ledger.entries = entries_of(RUN, (*LIFE, MilestoneReached(step=9_000)))

    outcome = await keep(channel, 3)

    assert put_back.startswith("only mine\n\n")
    assert PUT_BACK in put_back
    assert isinstance(outcome, Sent), "it is no failure: people want it so"
    assert body(gh) == "only mine, I said"
    before = edits(gh)
    await keep(channel, 4)
    assert edits(gh) == before
    assert Written.model_validate_json(ledger.cursors[written_under(RUN, 1)]).is_left_alone


async def test_an_answer_that_got_lost_leads_to_one_block(gh: FakeGitHub, channel: GitHubChannel) -> None:
    gh.fail("PATCH", ISSUE, StoredThenLost())
    first = await keep(channel)

    second = await keep(channel, 1)

    assert isinstance(first, Later)
    assert isinstance(second, Sent)
    assert body(gh).count("### Run record") == 1
    assert has_block(body(gh), RUN)


async def test_a_service_that_is_ill_leaves_the_text_as_it_is(gh: FakeGitHub, channel: GitHubChannel) -> None:
    gh.fail("PATCH", ISSUE, Broken(502))

    assert isinstance(await keep(channel), Later)
    assert body(gh) == MINE


async def test_a_text_that_leaves_no_room_is_left_alone_with_the_fix(gh: FakeGitHub, channel: GitHubChannel) -> None:
    long = "x" * 65_000
    gh.user_edits_issue(1, long)

    outcome = await keep(channel)

    assert isinstance(outcome, Never)
    assert "leaves no room" in outcome.reason
    assert "leaves no room for the run's record: shorten it" in channel.trouble
    assert body(gh) == long

    gh.user_edits_issue(1, MINE)
    assert isinstance(await keep(channel, 2), Sent)
    assert channel.trouble == ""


async def test_a_long_record_fits_into_what_people_leave(
    gh: FakeGitHub, channel: GitHubChannel, ledger: FakeLedger
) -> None:
    gh.user_edits_issue(1, "x" * 50_000)
    ledger.entries = entries_of(RUN, tuple(MilestoneReached(step=n) for n in range(900)))

    assert isinstance(await keep(channel), Sent)
    assert len(body(gh)) <= 65_536
    assert "older entries are not shown here" in body(gh)
    written = Written.model_validate_json(ledger.cursors[written_under(RUN, 1)])
    assert (written.count, written.head) == (900, ledger.entries[-1].hash)


async def test_an_account_that_may_not_edit_the_text_says_so(
    gh: FakeGitHub, channel: GitHubChannel, clock: FakeClock, ledger: FakeLedger
) -> None:
    gh.add_user("reader", 303, permission="read")
    gh.add_token("reader-token", "reader", issues="write")
    settings = GitHubSettings(token=SecretStr("reader-token"), repository="acme/training", base_url=gh.url)
    other = GitHubChannel(settings, ledger, clock, people=(), issues=lambda _run: 1, pacing=timedelta())

    outcome = await keep(other)
    trouble = other.trouble
    await other.close()

    assert isinstance(outcome, Never | Later)
    assert "#1" in trouble
    assert body(gh) == MINE
