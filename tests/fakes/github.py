"""A GitHub for tests, on 127.0.0.1: reached through the real PyGithub, and refusing what GitHub refuses.

    with FakeGitHub() as gh:
        client = Github(base_url=gh.url, auth=Auth.Token(gh.token), retry=None)

One repository. The bot's side is REST v3 (github_routes.py lists the endpoints); the human side and the faults are
methods here. All methods block and may be called from any thread; from an event loop only `webhook` and `wait_for`
need `asyncio.to_thread`.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Literal, Self

from tests.fakes import github_hooks
from tests.fakes.github_access import Access
from tests.fakes.github_desk import Desk, Request
from tests.fakes.github_exchange import Answer
from tests.fakes.github_faults import (
    Broken,
    Fault,
    FaultQueue,
    Malformed,
    PrimaryLimit,
    SecondaryLimit,
    Stall,
    StoredThenBroken,
    StoredThenLost,
    TooManyRequests,
)
from tests.fakes.github_mistakes import Proofreader
from tests.fakes.github_server import Raw, Reply, Server
from tests.fakes.github_views import APP_ID, APP_SLUG, Views
from tests.fakes.github_world import AccountType, Comment, Issue, Permission, World, short_digest

__all__ = [
    "APP_ID",
    "APP_SLUG",
    "Broken",
    "FakeGitHub",
    "Malformed",
    "PrimaryLimit",
    "SecondaryLimit",
    "Stall",
    "StoredThenBroken",
    "StoredThenLost",
    "TooManyRequests",
]


class FakeGitHub:
    def __init__(
        self,
        repository: str = "acme/training",
        *,
        bot: str = "hero-bot",
        private: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        marker: str | None = "<!-- hero:",
        allowed_mentions: Iterable[str] | None = None,
    ) -> None:
        """Start with a bot account that may write and one token for it.

        Args:
            repository: `owner/name`; further ones do not exist here.
            bot: login of the account that `token` belongs to.
            private: whether strangers get 404.
            now: the server's clock, for stored times, lags and rate limits; installation tokens go by the wall clock.
            marker: what every body posted through the API must contain; None demands nothing.
            allowed_mentions: logins (or `org/team`) that a posted body may mention; None allows all.
        """
        self.token = "ghp_" + short_digest(f"{repository}:{bot}") + "0000"
        self.access = Access()
        self.requests: list[Request] = []
        self._world = World(repository, private=private, now=now)
        self._faults = FaultQueue()
        self._proofreader = Proofreader(self._world, self.access, marker, allowed_mentions)
        self._desk = Desk(self._world, self.access, self._proofreader)
        self.limits = self._desk.limits
        self._changed = threading.Condition(threading.RLock())
        self.answers_after_s = 0.0
        """How long every answer takes, from when a test says so."""
        self._gone = threading.Event()
        self._server: Server | None = None
        self._port = 0
        self._world.add_user(repository.partition("/")[0], permission="admin")
        self._world.add_user(f"{APP_SLUG}[bot]", type="Bot")
        self.add_user(bot, permission="write")
        self.add_token(self.token, bot)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; after a `stop`, on the same port again with everything still stored."""
        self._gone.clear()
        self._server = Server(self._port, self._respond, self._world.now, self._proofreader.note)
        self._port = self._server.port

    def stop(self) -> None:
        """Refuse connections and hang up on open ones, stalled requests included. Harmless when stopped."""
        with self._changed:
            server, self._server = self._server, None
            self._faults.release_all()
            self._gone.set()
        if server is not None:
            server.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def repository(self) -> str:
        return self._world.full_name

    @property
    def app_private_key(self) -> str:
        return self.access.private_key_pem

    @property
    def mistakes(self) -> tuple[str, ...]:
        """What a well-behaved bot never does; the usual last assertion of a test is that there are none."""
        with self._changed:
            return tuple(self._proofreader.mistakes)

    def posts(self, route_end: str = "/comments") -> list[Request]:
        """The POSTs to paths with that end, answered well or not."""
        with self._changed:
            return [asked for asked in self.requests if asked.verb == "POST" and asked.path.endswith(route_end)]

    def wait_for(self, predicate: Callable[[], bool], timeout_s: float = 5.0) -> None:
        """Block until the predicate holds; it is tried again after each request and each human act.

        Raises:
            TimeoutError: it never held; the message lists the last requests.
        """
        with self._changed:
            if not self._changed.wait_for(predicate, timeout_s):
                last = [f"{asked.verb} {asked.path}" for asked in self.requests[-5:]]
                raise TimeoutError(
                    f"GitHub did not come into the awaited state in {timeout_s} s; last requests: {last}"
                )

    # What the test orders to go wrong.

    def fail(self, verb: str, route: str, fault: Fault, times: int = 1) -> None:
        """Let the next `times` matching requests fail; in `route` a `*` is one path segment, verb `*` is any verb."""
        with self._changed:
            self._faults.order(verb, route, fault, times)

    def stall(self, verb: str, route: str, *, stored: bool = False) -> Stall:
        """Let the next matching request hang; wait on `.reached`, end it with `.release()`."""
        stall = Stall(stored=stored)
        self.fail(verb, route, stall)
        return stall

    def pending_faults(self) -> int:
        with self._changed:
            return self._faults.pending()

    def clear_faults(self) -> None:
        with self._changed:
            self._faults.clear()

    def lag_lists(self, lag: timedelta) -> None:
        """Keep comments out of lists until they are that old by the server's clock; zero lets the lists catch up."""
        with self._changed:
            self._desk.api.list_lag = lag

    # The human side: as through the web page, so without rate limits and markers.

    def add_user(
        self,
        login: str,
        id: int | None = None,  # noqa: A002 - GitHub's own word
        type: AccountType = "User",  # noqa: A002 - as id
        *,
        permission: Permission = "none",
        association: str | None = None,
    ) -> int:
        """Make an account, or make it anew, and return its numeric id."""
        with self._changed:
            return self._world.add_user(login, id, type, permission=permission, association=association).id

    def add_token(self, value: str, login: str, issues: Literal["read", "write"] = "write") -> None:
        """Give an account a personal token; with `issues="read"` it is a fine-grained one that may not write."""
        with self._changed:
            self.access.add(value, login, issues)

    def revoke_token(self, value: str) -> None:
        with self._changed:
            self.access.revoke(value)

    def push(self, sha: str) -> None:
        """Let the repository have a commit."""
        with self._changed:
            self._world.commits.add(sha)

    def tag(self, name: str, sha: str) -> None:
        """Create a lightweight tag by hand."""
        with self._changed:
            self._world.refs[f"refs/tags/{name}"] = sha

    @property
    def tags(self) -> dict[str, tuple[str, str]]:
        """Every tag by its name, with its commit and its message (empty for a lightweight one)."""
        with self._changed:
            found = {name.removeprefix("refs/tags/"): sha for name, sha in self._world.refs.items()}
            objects = self._world.tag_objects
            return {
                name: (objects[sha]["commit"], objects[sha]["message"]) if sha in objects else (sha, "")
                for name, sha in found.items()
            }

    def open_issue(
        self,
        title: str,
        body: str = "",
        login: str = "alice",
        *,
        pull_request: bool = False,
        labels: Iterable[str] = (),
    ) -> int:
        with self._changed:
            issue = self._world.add_issue(
                title=title, body=body, author=login, pull_request=pull_request, labels=tuple(labels)
            )
            self._changed.notify_all()
            return issue.number

    def user_comments(self, issue: int, login: str, body: str, created_at: datetime | None = None) -> int:
        """Comment through the web form, which sends `\\r\\n` line ends; returns the comment's id (above 2^31)."""
        with self._changed:
            text = body.replace("\r\n", "\n").replace("\n", "\r\n")
            comment = self._world.add_comment(issue=issue, author=login, body=text, at=created_at)
            self._changed.notify_all()
            return comment.id

    def user_edits(self, comment_id: int, body: str) -> None:
        with self._changed:
            self._world.edit_comment(comment_id, body.replace("\r\n", "\n").replace("\n", "\r\n"))
            self._changed.notify_all()

    def user_edits_issue(self, number: int, body: str) -> None:
        """Edit an issue's own text through the web form."""
        with self._changed:
            text = body.replace("\r\n", "\n").replace("\n", "\r\n")
            self._world.issues[number] = replace(self._world.issues[number], body=text)
            self._changed.notify_all()

    def user_labels(self, number: int, *labels: str) -> None:
        """Give an issue these labels and no others, through the web page."""
        with self._changed:
            for label in labels:
                self._world.labels.setdefault(label.lower(), label)
            self._world.issues[number] = replace(self._world.issues[number], labels=labels)
            self._changed.notify_all()

    def user_deletes(self, comment_id: int) -> None:
        with self._changed:
            self._world.comments[comment_id] = replace(self._world.comments[comment_id], deleted=True)
            self._changed.notify_all()

    def lock(self, number: int, *, binds_writers: bool = True) -> None:
        """Lock an issue. GitHub lets accounts with write access comment all the same, though not apps: `binds_writers`
        False is that; True refuses everybody, so that the default bot meets the 403."""
        with self._changed:
            self._desk.api.locks_bind_writers = binds_writers
            self._world.issues[number] = replace(self._world.issues[number], locked=True)

    def delete_issue(self, number: int) -> None:
        """From now on the issue is 410."""
        with self._changed:
            self._world.issues[number] = replace(self._world.issues[number], deleted=True)

    def rename(self, repository: str) -> None:
        """Rename the repository: the old name answers GET with 301 and every other verb with 307."""
        with self._changed:
            self._world.old_names.add(self._world.full_name.lower())
            self._world.full_name = repository

    def issue(self, number: int) -> Issue:
        """The issue as it is now, with its living comments, oldest first."""
        with self._changed:
            return replace(self._world.issues[number], comments=self._world.comments_of(number))

    def issues(self) -> tuple[Issue, ...]:
        with self._changed:
            return tuple(self.issue(number) for number in sorted(self._world.issues))

    def comment(self, comment_id: int) -> Comment:
        """One comment, also when it has been deleted."""
        with self._changed:
            return self._world.comments[comment_id]

    # Webhooks. Nothing is delivered unless a test says so: deliveries get lost in life, too.

    def webhook(
        self,
        url: str,
        secret: str | None,
        action: github_hooks.Action,
        comment: int,
        *,
        sender: str | None = None,
        by_app: bool = False,
    ) -> github_hooks.Delivery:
        """Deliver an `issue_comment` event about a comment and return what came back."""
        with self._changed:
            views = Views(self._world, self.url)
            delivery = github_hooks.issue_comment(
                views, url, secret, action, self._world.comments[comment], sender=sender, by_app=by_app
            )
        return github_hooks.send(delivery)

    def redeliver(self, delivery: github_hooks.Delivery) -> github_hooks.Delivery:
        """Send the very same delivery again: same GUID, body and signature."""
        return github_hooks.send(delivery)

    # Answering.

    def _respond(self, raw: Raw) -> Reply:
        with self._changed:
            ask = self._desk.understood(raw, self.url)
            self.requests.append(ask.record())
            fault = self._faults.take(raw.verb, ask.path)
            early = self._desk.answer(ask) if isinstance(fault, Stall) and fault.stored else None
            if isinstance(fault, Stall) and self._server is not None:
                fault.reached.set()
            self._changed.notify_all()
        if isinstance(fault, Stall) and fault.reached.is_set():
            fault.released.wait()
        if self.answers_after_s:
            self._gone.wait(self.answers_after_s)
        with self._changed:
            if isinstance(fault, Stall) and self._server is None:
                return Reply(Answer(503), "lost")
            reply = Reply(early) if early else self._desk.reply(ask, fault)
            self._changed.notify_all()
            return reply
