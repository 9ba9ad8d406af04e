"""The fake GitHub behaves towards the real PyGithub as github.com is known to. Each test names one such fact.

Where a fact is a trap (a comment posted twice, a write that is lost without an error), the test shows the trap: a
channel that falls into it must fail against this fake.
"""

import contextlib
import hashlib
import hmac
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import github
import pytest
import requests
from github import Auth, Github, GithubException, GithubIntegration
from github.GithubRetry import GithubRetry

from tests.fakes.clock import START, FakeClock
from tests.fakes.github import (
    APP_ID,
    APP_SLUG,
    Broken,
    FakeGitHub,
    Malformed,
    PrimaryLimit,
    StoredThenBroken,
    StoredThenLost,
    TooManyRequests,
)
from tests.fakes.github_faults import Fault

COMMENTS = "/repos/*/*/issues/*/comments"

type Connect = Callable[..., Github]


@pytest.fixture
def gh() -> Iterator[FakeGitHub]:
    with FakeGitHub(marker=None) as fake:
        yield fake


@pytest.fixture
def connect(gh: FakeGitHub) -> Iterator[Connect]:
    """Clients without PyGithub's pacing, and without its retries unless asked."""
    with contextlib.ExitStack() as stack:

        def make(token: str | None = None, *, to: FakeGitHub = gh, **settings: Any) -> Github:
            options: dict[str, Any] = {
                "retry": None,
                "timeout": 5,
                "seconds_between_requests": None,
                "seconds_between_writes": None,
            }
            auth = settings.pop("auth", None) or Auth.Token(token or to.token)
            client = Github(base_url=to.url, auth=auth, **(options | settings))
            stack.callback(client.close)
            return client

        yield make


def bodies(gh: FakeGitHub, number: int) -> list[str]:
    return [comment.body for comment in gh.issue(number).comments]


@pytest.mark.parametrize("fault", [StoredThenLost(), StoredThenBroken(502)])
def test_the_default_retry_posts_again_after_an_answer_was_lost(gh: FakeGitHub, connect: Connect, fault: Fault) -> None:
    number = gh.open_issue("run 1")
    issue = connect(retry=GithubRetry(), lazy=True).get_repo(gh.repository).get_issue(number)
    gh.fail("POST", COMMENTS, fault)

    issue.create_comment("once")

    assert bodies(gh, number) == ["once", "once"]
    assert gh.pending_faults() == 0


@pytest.mark.parametrize(
    ("fault", "error", "stored"),
    [
        (StoredThenLost(), requests.ConnectionError, ["once"]),
        (StoredThenBroken(502), GithubException, ["once"]),
        (Malformed(), json.JSONDecodeError, ["once"]),
        (Malformed(cut_off=True), requests.exceptions.ChunkedEncodingError, ["once"]),
        (Broken(503), GithubException, []),
        (TooManyRequests(), GithubException, []),
        (PrimaryLimit(timedelta(minutes=5)), github.RateLimitExceededException, []),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, StoredThenLost | Broken) else None,
)
def test_without_retries_each_fault_is_one_request_and_one_exception(
    gh: FakeGitHub, connect: Connect, fault: Fault, error: type[Exception], stored: list[str]
) -> None:
    number = gh.open_issue("run 1")
    issue = connect(lazy=True).get_repo(gh.repository).get_issue(number)
    gh.fail("POST", COMMENTS, fault)

    with pytest.raises(error):
        issue.create_comment("once")

    assert len(gh.posts()) == 1
    assert bodies(gh, number) == stored


def test_a_stalled_write_lands_after_the_client_has_given_up(gh: FakeGitHub, connect: Connect) -> None:
    number = gh.open_issue("run 1")
    issue = connect(timeout=1, lazy=True).get_repo(gh.repository).get_issue(number)
    stall = gh.stall("POST", COMMENTS)

    with pytest.raises(requests.ReadTimeout):
        issue.create_comment("late")
    before = bodies(gh, number)
    stall.release()
    gh.wait_for(lambda: bodies(gh, number) == ["late"])

    assert before == []


def test_stopping_hangs_up_on_a_stalled_request_and_starting_again_keeps_port_and_comments(
    gh: FakeGitHub, connect: Connect
) -> None:
    number = gh.open_issue("run 1")
    gh.user_comments(number, "alice", "kept")
    issue = connect(lazy=True).get_repo(gh.repository).get_issue(number)
    stall = gh.stall("POST", COMMENTS)

    def stop_when_reached() -> None:
        assert stall.reached.wait(5)
        gh.stop()

    stopper = threading.Thread(target=stop_when_reached)
    stopper.start()

    with pytest.raises(requests.ConnectionError):
        issue.create_comment("never stored")
    stopper.join()
    with pytest.raises(requests.ConnectionError):
        list(issue.get_comments())
    gh.start()

    assert [comment.body for comment in issue.get_comments()] == ["kept"]


def test_after_a_rename_reads_follow_and_writes_are_lost_without_an_error(gh: FakeGitHub, connect: Connect) -> None:
    number = gh.open_issue("run 1")
    issue = connect().get_repo(gh.repository).get_issue(number)
    gh.rename("acme/pretraining")

    comment = issue.create_comment("into the void")

    assert str(comment.id) == "None"  # typed int, so a plain `is None` is called unreachable
    assert bodies(gh, number) == []
    assert connect().get_repo("acme/training").full_name == "acme/pretraining"


def test_thirty_one_comments_are_two_pages_in_order_of_id(gh: FakeGitHub, connect: Connect) -> None:
    number = gh.open_issue("run 1")
    ids = [gh.user_comments(number, "alice", f"line {n}", START - timedelta(minutes=n)) for n in range(31)]
    issue = connect(lazy=True).get_repo(gh.repository).get_issue(number)

    seen = [comment.id for comment in issue.get_comments()]

    assert seen == ids
    assert min(seen) > 2**31
    assert [asked.query.get("page") for asked in gh.requests if asked.path.endswith("/comments")] == [None, "2"]


def test_since_is_inclusive_in_whole_seconds_and_by_the_time_of_the_last_edit(connect: Connect) -> None:
    clock = FakeClock(datetime(2026, 11, 29, 3, 0, 0, 700_000, tzinfo=UTC))
    with FakeGitHub(marker=None, now=clock.now) as gh:
        client = connect(to=gh, lazy=True)
        number = gh.open_issue("run 1")
        edited = gh.user_comments(number, "alice", "approve", clock.now() - timedelta(hours=1))
        gh.user_comments(number, "alice", "old", clock.now() - timedelta(seconds=1))
        exact = gh.user_comments(number, "bob", "now")
        issue = client.get_repo(gh.repository).get_issue(number)
        before = [comment.id for comment in issue.get_comments(since=clock.now())]
        gh.user_edits(edited, "approve R7")

        after = [comment.id for comment in issue.get_comments(since=clock.now())]

        assert before == [exact]
        assert after == [edited, exact]


def test_a_fresh_comment_can_be_missing_from_lists_for_a_while(connect: Connect) -> None:
    clock = FakeClock()
    with FakeGitHub(marker=None, now=clock.now) as gh:
        client = connect(to=gh, lazy=True)
        number = gh.open_issue("run 1")
        gh.lag_lists(timedelta(seconds=60))
        issue = client.get_repo(gh.repository).get_issue(number)
        comment = issue.create_comment("there, but not listed")

        at_once = list(issue.get_comments())
        by_id = issue.get_comment(comment.id).body
        clock.advance(timedelta(seconds=60))

        assert at_once == []
        assert by_id == "there, but not listed"
        assert [seen.id for seen in issue.get_comments()] == [comment.id]


def test_a_body_over_the_limit_is_422_with_the_documented_error(gh: FakeGitHub, connect: Connect) -> None:
    number = gh.open_issue("run 1")
    issue = connect(lazy=True).get_repo(gh.repository).get_issue(number)
    issue.create_comment("x" * 65_536)

    with pytest.raises(GithubException) as refused:
        issue.create_comment("x" * 65_537)

    assert refused.value.status == 422
    assert refused.value.data["errors"] == [
        {
            "resource": "IssueComment",
            "field": "data",
            "code": "unprocessable",
            "message": "Body is too long (maximum is 65536 characters)",
        }
    ]


def test_what_cannot_be_commented_on_says_why(gh: FakeGitHub, connect: Connect) -> None:
    locked, deleted, full = (gh.open_issue(title) for title in ("locked", "deleted", "full"))
    gh.lock(locked)
    gh.delete_issue(deleted)
    for _ in range(2_500):
        gh.user_comments(full, "alice", "more")
    gh.add_token("github_pat_" + "r" * 40, "hero-bot", issues="read")
    repo = connect().get_repo(gh.repository)
    said: dict[int, tuple[int, str]] = {}

    for number in (locked, deleted, full, 99):
        with pytest.raises(GithubException) as refused:
            repo.get_issue(number).create_comment("hello")
        said[number] = (refused.value.status, refused.value.data["message"])
    with pytest.raises(GithubException, match="Resource not accessible by personal access token"):
        connect("github_pat_" + "r" * 40).get_repo(gh.repository).get_issue(full).create_comment("hello")
    with pytest.raises(github.BadCredentialsException):
        connect("ghp_wrong").get_repo(gh.repository)

    assert said == {
        locked: (403, "Unable to create comment because issue is locked."),
        deleted: (410, "This issue was deleted"),
        full: (403, "Commenting is disabled on issues with more than 2500 comments"),
        99: (404, "Not Found"),
    }
    assert gh.mistakes == ()


def test_people_are_told_apart_by_id_type_and_permission(gh: FakeGitHub, connect: Connect) -> None:
    gh.add_user("dri", 101, permission="maintain")
    gh.add_user("ci[bot]", 202, "Bot")
    number = gh.open_issue("run 1")
    gh.user_comments(number, "dri", "first\nsecond")
    gh.user_comments(number, "ci[bot]", "approve")
    gh.user_comments(number, "passer-by", "approve")
    repo = connect().get_repo(gh.repository)

    comments = list(repo.get_issues_comments(sort="created", direction="asc"))

    assert [(c.user.login, c.user.type) for c in comments] == [
        ("dri", "User"),
        ("ci[bot]", "Bot"),
        ("passer-by", "User"),
    ]
    assert [c.user.id for c in comments[:2]] == [101, 202]
    assert comments[0].body == "first\r\nsecond"
    assert [repo.get_collaborator_permission(c.user.login) for c in comments] == ["write", "read", "read"]
    assert repo.permissions.push is True
    assert repo.permissions.admin is False


def test_issues_labels_edits_and_unchanged_objects_go_through_pygithub(gh: FakeGitHub, connect: Connect) -> None:
    repo = connect().get_repo(gh.repository)
    issue = repo.create_issue(title="run 1", body="text", labels=["hero"])
    comment = issue.create_comment("status: starting")
    spent = repo.requester.rate_limiting

    comment.edit("status: running")
    issue.add_to_labels("incident")
    issue.edit(state="closed")
    is_new = comment.update(), comment.update()

    assert bodies(gh, issue.number) == ["status: running"]
    assert gh.issue(issue.number).labels == ("hero", "incident")
    assert [found.number for found in repo.get_issues(state="all", labels=["incident"])] == [issue.number]
    assert list(repo.get_issues(state="open")) == []
    assert is_new == (True, False)
    assert spent[0] > repo.requester.rate_limiting[0]


def test_an_app_gets_hour_tokens_that_can_die_before_the_client_expects_it(gh: FakeGitHub, connect: Connect) -> None:
    number = gh.open_issue("run 1")
    quick: dict[str, Any] = {"retry": None, "seconds_between_requests": None, "seconds_between_writes": None}
    app = GithubIntegration(auth=Auth.AppAuth(APP_ID, gh.app_private_key), base_url=gh.url, **quick)
    with contextlib.closing(app):
        installation = app.get_repo_installation(*gh.repository.split("/"))
        client = connect(auth=app.auth.get_installation_auth(installation.id))
        issue = client.get_repo(gh.repository).get_issue(number)
        comment = issue.create_comment("from an app")
        with pytest.raises(GithubException, match="Resource not accessible by integration"):
            _ = client.get_user().login

        gh.access.clock_offset = timedelta(minutes=61)
        with pytest.raises(github.BadCredentialsException):
            issue.create_comment("too late")
        anew = connect(auth=Auth.AppAuth(APP_ID, gh.app_private_key).get_installation_auth(installation.id))
        anew.get_repo(gh.repository).get_issue(number).create_comment("renewed")

    assert comment.user.login == f"{APP_SLUG}[bot]"
    assert comment.user.type == "Bot"
    assert comment.performed_via_github_app.slug == APP_SLUG
    assert bodies(gh, number) == ["from an app", "renewed"]


def test_mistakes_are_noticed_as_they_are_stored(connect: Connect) -> None:
    with FakeGitHub(allowed_mentions=["dri"]) as gh:
        client = connect(to=gh, lazy=True)
        issue = client.get_repo(gh.repository).get_issue(gh.open_issue("run 1"))
        issue.create_comment("<!-- hero:delivery=1 --> @dri, `@everyone` and ops@everyone.example are fine")
        fine = gh.mistakes

        issue.create_comment("<!-- hero:delivery=1 --> again, \\@everyone")
        issue.create_comment("no marker")

        where = f"POST /repos/{gh.repository}/issues/1/comments"
        assert fine == ()
        assert gh.mistakes == (
            f"{where}: mentions @everyone",
            f"{where}: said twice, <!-- hero:delivery=1 -->",
            f"{where}: the body has no marker '<!-- hero:'",
        )


class _Receivers(http.server.HTTPServer):
    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Receiver)


class _Receiver(http.server.BaseHTTPRequestHandler):
    server: "_Receivers"

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers.items()), content))
        self.send_response(202)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Quiet."""


def test_a_webhook_is_signed_over_its_raw_body_and_redelivered_under_the_same_guid(gh: FakeGitHub) -> None:
    comment = gh.user_comments(gh.open_issue("run 1"), "alice", "approve")
    gh.user_edits(comment, "approve R7")
    with _Receivers() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/github"

        first = gh.webhook(url, "s3cret", "edited", comment)
        second = gh.redeliver(first)

        server.shutdown()
        thread.join()
    (headers, content), again = server.got
    expected = hmac.new(b"s3cret", content, hashlib.sha256).hexdigest()
    assert (first.status, second.status) == (202, 202)
    assert headers["X-Hub-Signature-256"] == f"sha256={expected}"
    assert headers["X-GitHub-Event"] == "issue_comment"
    assert again[0]["X-GitHub-Delivery"] == headers["X-GitHub-Delivery"]
    assert again[1] == content
    assert json.loads(content)["changes"]["body"]["from"] == "approve"
