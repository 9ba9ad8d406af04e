"""The labels of runs' issues over the real PyGithub: Hero's own are right, and nobody else's are touched."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta

import pytest
from pydantic import SecretStr

from bot.channels.github.channel import GitHubChannel
from bot.channels.github.labels import labels_of
from bot.errors import ServiceError
from bot.model.delivery import ChannelName, Posted
from bot.model.record import Record
from bot.model.run import Run, RunState
from bot.model.value import RunId
from bot.settings import GitHubSettings
from tests.fakes.clock import FakeClock
from tests.fakes.decisions import a_request
from tests.fakes.github import Broken, FakeGitHub
from tests.fakes.ledger import FakeLedger

RUN, OTHER = RunId("hero-12d8b6f0"), RunId("hero-other")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def gh(clock: FakeClock) -> Iterator[FakeGitHub]:
    with FakeGitHub(now=clock.now) as fake:
        fake.open_issue("a run", labels=["urgent", "heroic", "Hero:failed"])
        yield fake
        assert fake.mistakes == ()


@pytest.fixture
def ledger() -> FakeLedger:
    ledger = FakeLedger()
    root(ledger, RUN, 1)
    return ledger


@pytest.fixture
async def make(gh: FakeGitHub, clock: FakeClock, ledger: FakeLedger) -> AsyncIterator[Callable[..., GitHubChannel]]:
    channels: list[GitHubChannel] = []

    def made(**changes: object) -> GitHubChannel:
        given = {"token": SecretStr(gh.token), "repository": "acme/training", "base_url": gh.url}
        settings = GitHubSettings.model_validate(given | changes)
        channels.append(GitHubChannel(settings, ledger, clock, people=(), issues=lambda _: 1, pacing=timedelta()))
        return channels[-1]

    yield made
    for channel in channels:
        await channel.close()


def root(ledger: FakeLedger, run_id: RunId, issue: int, slot: str = "thread") -> None:
    posted = Posted(channel=ChannelName.GITHUB, run_id=run_id, slot=slot, message_id=str(issue))
    ledger.messages[ChannelName.GITHUB, run_id, slot] = posted


def record(state: RunState, *, run_id: RunId = RUN, is_asked: bool = False, seal: str = "") -> Record:
    run = Run(run_id=run_id, state=state, seal=seal)
    return Record(run=run, requests=(a_request(7, run_id),) if is_asked else ())


def labels(gh: FakeGitHub, issue: int = 1) -> set[str]:
    return set(gh.issue(issue).labels)


def asked(gh: FakeGitHub) -> int:
    return len(gh.requests)


@pytest.mark.parametrize(
    ("state", "more", "expected"),
    [
        (RunState.RUNNING, {}, {"hero"}),
        (RunState.FAILED, {"is_asked": True}, {"hero", "hero:failed", "hero:needs-dri"}),
        (RunState.BLOCKED, {}, {"hero", "hero:blocked"}),
        (RunState.COMPLETED, {"seal": "hero-run/x"}, {"hero", "hero:completed", "hero:sealed"}),
    ],
)
def test_labels_say_who_is_needed_and_how_the_run_is(
    state: RunState, more: dict[str, object], expected: set[str]
) -> None:
    assert labels_of([record(state, **more)], "hero") == expected  # type: ignore[arg-type] # reason: a table of arguments


async def test_own_labels_follow_the_run_and_those_of_people_stay(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger
) -> None:
    keep = make()._labels.keep
    ledger.records[RUN] = record(RunState.RUNNING, is_asked=True)
    await keep()
    assert labels(gh) == {"urgent", "heroic", "hero", "hero:needs-dri"}

    before = asked(gh)
    await keep()
    assert asked(gh) == before, "what is known to be right costs no request"

    ledger.records[RUN] = record(RunState.COMPLETED)
    await keep()
    assert labels(gh) == {"urgent", "heroic", "hero", "hero:completed"}


async def test_two_runs_on_one_issue_share_its_labels_and_a_former_issue_keeps_the_plain_one(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger
) -> None:
    gh.open_issue("the next one")
    root(ledger, RUN, 2)
    root(ledger, OTHER, 2)
    root(ledger, RUN, 1, "thread:1")
    ledger.records = {
        RUN: record(RunState.FAILED),
        OTHER: record(RunState.RUNNING, run_id=OTHER, is_asked=True),
    }

    await make()._labels.keep()

    assert labels(gh, 2) == {"hero", "hero:failed", "hero:needs-dri"}
    assert labels(gh) == {"urgent", "heroic", "hero"}


async def test_what_a_hand_changes_of_heros_labels_is_right_within_the_hour(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger, clock: FakeClock
) -> None:
    channel = make()
    ledger.records[RUN] = record(RunState.FAILED)
    await channel._labels.keep()
    gh.user_labels(1, "hero:sealed", "urgent")

    clock.advance(timedelta(hours=1))
    await make()._labels.keep()

    assert labels(gh) == {"urgent", "hero", "hero:failed"}


async def test_a_label_of_peoples_that_begins_like_heros_stays(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger
) -> None:
    gh.user_labels(1, "area:docs", "area:", "area", "Area:completed", "my-area:failed")
    ledger.records[RUN] = record(RunState.FAILED)

    await make(label="area")._labels.keep()

    assert labels(gh) == {"area:docs", "area:", "area", "area:failed", "my-area:failed"}


async def test_without_the_right_it_is_said_once_and_not_tried_again_for_a_day(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger, clock: FakeClock
) -> None:
    gh.add_user("reader", permission="read")
    gh.add_token("ghp_reader", "reader")
    channel = make(token=SecretStr("ghp_reader"))
    ledger.records[RUN] = record(RunState.FAILED)

    await channel._labels.keep()
    assert 'or set [github] label = ""' in channel.trouble
    refused = asked(gh)
    for state in (RunState.RUNNING, RunState.COMPLETED):
        ledger.records[RUN] = record(state)
        await channel._labels.keep()

    assert asked(gh) == refused
    gh.add_user("reader", permission="triage")
    clock.advance(timedelta(days=1))
    await channel._labels.keep()
    assert "hero:completed" in labels(gh)
    assert channel.trouble == ""


async def test_a_github_that_is_ill_changes_nothing_for_good(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger
) -> None:
    channel = make()
    ledger.records[RUN] = record(RunState.RUNNING)
    gh.fail("POST", "/repos/*/*/issues/*/labels", Broken())

    with pytest.raises(ServiceError):
        await channel._labels.keep()
    await channel._labels.keep()

    assert labels(gh) == {"urgent", "heroic", "hero"}


async def test_labels_can_be_named_otherwise_and_switched_off(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger
) -> None:
    ledger.records[RUN] = record(RunState.FAILED)

    await make(label="")._labels.keep()
    assert gh.requests == []

    await make(label="training")._labels.keep()
    assert labels(gh) == {"urgent", "heroic", "Hero:failed", "training", "training:failed"}


async def test_a_new_label_has_a_colour_and_a_meaning_and_an_old_one_keeps_its_own(
    gh: FakeGitHub, make: Callable[..., GitHubChannel], ledger: FakeLedger
) -> None:
    ledger.records[RUN] = record(RunState.FAILED, is_asked=True)

    await make()._labels.keep()

    created = {asked.body["name"]: asked.body for asked in gh.posts("/training/labels")}
    assert set(created) == {"hero", "hero:needs-dri"}, "Hero:failed was there"
    assert created["hero:needs-dri"]["color"] == "d93f0b"
    assert created["hero:needs-dri"]["description"] == "A request waits for its DRI's answer"
