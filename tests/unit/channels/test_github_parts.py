"""What the GitHub channel decides without GitHub: comments as events, errors by what to do, clients by thread."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from github import Auth, Github, GithubException
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.github.errors import LimitedError, translated
from bot.channels.github.seen import Account, Comment
from bot.channels.github.speech import event_of, find_command, heard, without_mention
from bot.channels.github.worker import Worker
from bot.errors import BusyError, DeadlineError
from bot.model.event import Commanded, Said
from tests.fakes.clock import START, FakeClock
from tests.fakes.waiting import until

AUTHOR = Account(id=101, login="dri", is_bot=False)


def comment(body: str, **changes: object) -> Comment:
    fields = {"id": 2**31 + 7, "author": AUTHOR, "created_at": START, "updated_at": START, "is_by_app": False}
    return Comment.model_validate(fields | {"body": body, "link": ""} | changes)


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/hero status", "status"),
        ("please\r\n/hero  silence 2h \r\nthanks", "silence 2h"),
        ("/HERO", ""),
        ("/hero stop\n/hero status", "stop"),
        ("/heroic deeds", None),
        ("see /hero status", None),
        (" /hero status", None),
        ("> /hero stop", None),
        ("```\n/hero stop\n```", None),
        ("~~~\n/hero stop\n```\n/hero stop", None),
        ("````\n```\n/hero stop\n````\n/hero plan", "plan"),
        ("<!--\n/hero stop\n-->", None),
        ("<!-- never closed\n/hero stop", None),
    ],
)
def test_a_command_is_a_line_of_its_own_that_people_can_see(body: str, command: str | None) -> None:
    assert find_command(body) == command


@given(st.text())
def test_no_comment_breaks_the_reading_of_commands(body: str) -> None:
    event = event_of(1, comment(body), None)

    assert isinstance(event, Said | Commanded)


def test_an_edit_within_the_second_of_the_comment_itself_is_an_edit() -> None:
    """GitHub's times are whole seconds: only the wording that was heard before tells."""
    before = heard(comment("looks fine"))

    event = event_of(1, comment("/hero stop"), before)

    assert isinstance(event, Said)
    assert event.is_edited


def test_an_apps_comment_in_a_persons_name_is_a_bots() -> None:
    event = event_of(1, comment("approve R7", is_by_app=True), None)
    ghost = event_of(1, comment("approve R7", author=None), None)

    assert event.actor.is_bot
    assert (ghost.actor.user_id, ghost.actor.login) == ("0", "ghost")


def test_a_limit_is_reckoned_by_githubs_clock_and_never_longer_than_an_hour() -> None:
    """Ours may be off by more than the limit lasts."""
    server = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
    headers = {
        "Date": "Sun, 29 Nov 2026 03:00:00 GMT",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(server.timestamp()) + 120),
    }
    far = headers | {"X-RateLimit-Reset": str(int(server.timestamp()) + 999_999)}

    waits = [
        translated(GithubException(403, {"message": "no"}, each), server + timedelta(days=1)) for each in (headers, far)
    ]

    assert [wait.after for wait in waits if isinstance(wait, LimitedError)] == [
        timedelta(seconds=121),
        timedelta(seconds=3701),
    ]


async def test_a_call_that_hangs_keeps_its_client_and_the_next_one_gets_another() -> None:
    """One Github object is not for two threads; and hanging threads have a number."""
    made: list[Github] = []
    release = threading.Event()

    def build() -> Github:
        made.append(Github(auth=Auth.Token("ghp_none")))
        return made[-1]

    def hang(_: Github) -> None:
        release.wait(10)

    worker = Worker(build, clock=FakeClock(), deadline=timedelta(seconds=0.1), most=2)

    with pytest.raises(DeadlineError):
        await worker.call(hang)
    second = await worker.call(lambda github: github)
    third = await worker.call(lambda github: github)
    with pytest.raises(DeadlineError):
        await worker.call(hang)
    with pytest.raises(BusyError):
        await worker.call(lambda github: github)
    release.set()
    await until(lambda: worker.held == 0)
    fourth = await worker.call(lambda github: github)
    worker.drop()

    assert second is third is made[1]
    assert fourth is made[2]


@pytest.mark.parametrize(
    ("body", "login", "handed_on"),
    [
        ("@hero-ops approve R7", "hero-ops", "approve R7"),
        ("Hi\r\n@Hero-Ops: approve R7\r\n@hero-ops\r\n", "hero-ops", "Hi\r\napprove R7\r\n\r\n"),
        ("@hero-ops approve", "hero-ops[bot]", "approve"),
        ("@hero-ops[bot] approve", "hero-ops[bot]", "approve"),
        ("@hero-opsx approve", "hero-ops", "@hero-opsx approve"),
        ("@hero-ops-2 approve", "hero-ops", "@hero-ops-2 approve"),
        ("@omar approve", "hero-ops", "@omar approve"),
        ("@hero-ops > no", "hero-ops", "@hero-ops > no"),
        ("@hero-ops approve", "", "@hero-ops approve"),
    ],
)
def test_only_heros_own_mention_is_taken_from_a_comments_lines(body: str, login: str, handed_on: str) -> None:
    event = event_of(1, comment(body), None, login)

    assert isinstance(event, Said)
    assert event.text == without_mention(body, login) == handed_on
