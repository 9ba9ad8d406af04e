"""What Hero asks of GitHub, each question one method; the only place that speaks PyGithub.

Two workers, so that a long list being read never delays a message. Neither has PyGithub's retries: for writes they post
twice (a 502 after a stored comment gave eleven), and for reads they sleep out a rate limit in the thread, or hide how
long it lasts in a RetryError. Whoever calls decides when to ask again.
"""

import itertools
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from github import Github
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from bot.channels.github.access import Access
from bot.channels.github.errors import SERVICE, DeniedError, MovedError, UncertainError
from bot.channels.github.seen import Account, Comment, IssueSeen, RepositorySeen, is_bot
from bot.channels.github.worker import Worker
from bot.clock import Clock
from bot.errors import UnreachableError, UnrecognisedError
from bot.settings import GitHubSettings

_PAGE = 100
_ISSUES_MOST = 1_000
_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class GitHubClient:
    """One repository's issues, asked off the loop. All questions raise the ServiceErrors of errors.py."""

    def __init__(self, settings: GitHubSettings, clock: Clock, *, pacing: timedelta) -> None:
        """Make the client; nothing is asked yet.

        Args:
            settings: with a token or an app, and a repository.
            clock: for rate limits that do not say the server's time.
            pacing: between two writes (GitHub asks for a second: "Best practices for using the REST API").
        """
        self._settings = settings
        self._clock = clock
        self._pacing = pacing
        self._written_at: float | None = None
        self.repository = settings.repository or ""
        """The full name as far as known; renames are followed."""
        self.repository_id: int | None = None
        """Its number, which no rename changes; None until it was asked."""
        self._access = Access(settings)
        self._reader, self._writer = (
            Worker(
                self._connect,
                clock=clock,
                deadline=settings.deadline,
                most=settings.threads,
                is_renewable=self._access.is_renewable,
            )
            for _ in range(2)
        )

    async def ask_self(self) -> Account | None:
        """Return the account that Hero speaks as; None when it is an app's whose token alone was given."""

        def ask(github: Github) -> Account:
            user = github.get_user(self._access.bot_login()) if self._access.is_app else github.get_user()
            return Account(id=user.id, login=user.login, is_bot=is_bot(user.type, user.login))

        try:
            return await self._reader.call(ask)
        except DeniedError as error:
            if error.status == HTTPStatus.FORBIDDEN:  # "Resource not accessible by integration"
                return None
            raise

    async def ask_repository(self) -> RepositorySeen:
        """Return the repository, and use its name of today from now on."""

        def ask(github: Github) -> RepositorySeen:
            found = self._repository(github).complete()
            return RepositorySeen(
                id=found.id, full_name=found.full_name, has_issues=found.has_issues, is_archived=found.archived
            )

        seen = await self._reader.call(ask)
        self.repository, self.repository_id = seen.full_name, seen.id
        return seen

    async def ask_account(self, login: str) -> Account | None:
        """Return the account that has this login now; None when there is none."""

        def ask(github: Github) -> Account:
            user = github.get_user(login)
            return Account(
                id=user.id,
                login=user.login,
                is_bot=is_bot(user.type, user.login),
                is_suspended=user.suspended_at is not None,
            )

        try:
            return await self._reader.call(ask)
        except DeniedError as error:
            if error.status in _GONE:
                return None
            raise

    async def ask_permission(self, login: str) -> str:
        """Return ``admin``, ``write``, ``read`` or ``none``; maintainers have ``write``."""
        return await self._reader.call(lambda github: self._repository(github).get_collaborator_permission(login))

    async def ask_limit(self) -> tuple[int, int]:
        """Return how many requests of this hour are left, and of how many, as the reader's last answer said."""
        return await self._reader.call(lambda github: github.rate_limiting)

    async def list_comments(self, issue: int, since: datetime) -> tuple[Comment, ...]:
        """Return all comments of the issue that were written or edited since then, by ascending id, from every page."""
        since = utc_second(since)
        pages = await self._reader.call(
            lambda github: _Pages(github, self._repository(github).get_issue(issue).get_comments(since=since))
        )
        comments: list[Comment] = []
        while page := await self._reader.call(pages.next):
            comments += page
        # A renamed repository's redirect is followed without the query, so `since` may have been lost on the way.
        return tuple(comment for comment in comments if comment.updated_at >= since)

    async def find_comment(self, comment_id: int) -> Comment | None:
        """Return the comment as it is now; None when it was deleted, alone or with its issue."""
        try:
            return await self._reader.call(lambda github: Comment.of(self._comment(github, comment_id)))
        except DeniedError as error:
            if error.status in _GONE:
                return None
            raise

    async def find_issue(self, marker: str, creator: str | None) -> IssueSeen | None:
        """Return the newest issue by ``creator`` (None: by any bot) whose body holds the marker, closed ones too."""

        def ask(github: Github) -> IssueSeen | None:
            repository = self._repository(github)
            found = (
                repository.get_issues(state="all", sort="created", direction="desc", creator=creator)  # type: ignore[arg-type] # reason: PyGithub takes logins at run time
                if creator
                else repository.get_issues(state="all", sort="created", direction="desc")
            )
            for issue in itertools.islice(found, _ISSUES_MOST):
                if marker in (issue.body or "") and (creator or is_bot(issue.user.type, issue.user.login)):
                    return IssueSeen.of(issue)
            return None

        return await self._reader.call(ask)

    async def turn(self) -> None:
        """Wait for the pace of writes; every write does, and whoever notes an intent to write does so *after* this.

        What a crash ends while it only waits must not count as begun: it would be looked for, and late.
        """
        if self._written_at is not None:
            free_at = self._written_at + self._pacing.total_seconds()
            if (left := free_at - self._clock.monotonic()) > 0:
                await self._clock.sleep(timedelta(seconds=left))

    async def create_issue(self, title: str, body: str) -> IssueSeen:
        def ask(github: Github) -> IssueSeen:
            gate.enter()
            made = self._repository(github).create_issue(title=title, body=body)
            _refuse_lost(made.number)
            return IssueSeen.of(made)

        gate = _Gate()
        return await self._write(ask, gate)

    async def probe_writing(self) -> str:
        """Return why issues cannot be written, in GitHub's words; empty when they can. Writes nothing.

        An issue without a title is refused as invalid (422) only where the token may write issues.
        """

        def ask(github: Github) -> None:
            _refuse_lost(self._repository(github).create_issue(title="").number)

        try:
            await self._writer.call(ask)
        except DeniedError as error:
            return "" if error.status == HTTPStatus.UNPROCESSABLE_ENTITY else error.message
        return ""

    async def create_comment(self, issue: int, body: str) -> tuple[Comment, IssueSeen]:
        """Post a comment; return it, and the issue as it was just before.

        Raises:
            ServiceError: MovedError when the repository was renamed in between and nothing was posted.
        """

        def ask(github: Github) -> tuple[Comment, IssueSeen]:
            # This GET follows a rename, which the POST would not: it would be lost in silence.
            there: Issue = self._repository(github).get_issue(issue).complete()
            gate.enter()
            made = there.create_comment(body)
            _refuse_lost(made.id)
            return Comment.of(made), IssueSeen.of(there)

        gate = _Gate()
        return await self._write(ask, gate)

    async def edit_issue(self, issue: int, change: Callable[[str], str | None]) -> IssueSeen:
        """Change an issue's own text; return the issue as it is then.

        Args:
            issue: its number.
            change: from the text as it is now to the one that it shall have; None leaves it alone. Called once, right
                before the write.
        """

        def ask(github: Github) -> IssueSeen:
            there: Issue = self._repository(github).get_issue(issue).complete()
            before = there.body or ""
            after = change(before)
            if after is not None and after != before:
                gate.enter()
                there.edit(body=after)
                if (there.body or "") == before:
                    raise MovedError(SERVICE, "the edit was redirected and lost")
            return IssueSeen.of(there)

        gate = _Gate()
        return await self._write(ask, gate)

    async def ask_issue(self, issue: int) -> IssueSeen:
        """Return an issue as it is now."""
        return await self._reader.call(
            lambda github: IssueSeen.of(self._repository(github).get_issue(issue).complete())
        )

    async def edit_comment(
        self, issues: frozenset[int], comment_id: int, change: Callable[[str], str | None]
    ) -> Comment | None:
        """Change a comment's body; None when there is no such comment on one of those issues.

        Args:
            issues: where it must stand; a run's contract may have named another since.
            comment_id: which.
            change: from the body as it is to the one that it shall have; None leaves it alone.
        """

        def ask(github: Github) -> Comment | None:
            comment = self._comment(github, comment_id)
            if int(comment.issue_url.rpartition("/")[2]) not in issues:
                return None
            before = comment.body
            after = change(before)
            if after is not None and after != before:
                gate.enter()
                comment.edit(after)
                if comment.body == before:
                    raise MovedError(SERVICE, "the edit was redirected and lost")
            return Comment.of(comment)

        gate = _Gate()
        try:
            return await self._write(ask, gate)
        except DeniedError as error:
            if error.status == HTTPStatus.NOT_FOUND:  # the comment alone; a deleted issue is 410
                return None
            raise

    async def read[R](self, ask: Callable[[Repository], R]) -> R:
        """Ask something else of the repository, as every question here is asked."""
        return await self._reader.call(lambda github: ask(self._repository(github)))

    async def write[R](self, ask: Callable[[Repository, Callable[[], None]], R]) -> R:
        """Write something else, at the pace of all writes.

        Args:
            ask: calls the function that it is handed right before each write.
        """
        gate = _Gate()
        return await self._write(lambda github: ask(self._repository(github), gate.enter), gate)

    def renew(self) -> None:
        """Take the token anew, e.g. after it was refused."""
        self._access.forget()
        self._reader.drop()
        self._writer.drop()

    def close(self) -> None:
        self._reader.drop()
        self._writer.drop()

    async def _write[R](self, ask: Callable[[Github], R], gate: "_Gate") -> R:
        """Run what writes, at its pace; without a usable answer say whether the write itself had begun."""
        await self.turn()
        try:
            return await self._writer.call(ask)
        except MovedError:
            raise
        except (UnreachableError, UnrecognisedError) as error:
            if gate.has_been_entered():
                raise UncertainError(error.service, error.detail) from error
            raise
        finally:
            if gate.has_been_entered():
                self._written_at = self._clock.monotonic()

    def _repository(self, github: Github) -> Repository:
        return github.get_repo(self.repository)

    def _comment(self, github: Github, comment_id: int) -> IssueComment:
        # PyGithub reaches comments through an issue, but their address has no issue in it: any number does.
        return self._repository(github).get_issue(1).get_comment(comment_id).complete()

    def _connect(self) -> Github:
        return self._access.connect(self.repository)


class _Pages:
    """A list of comments read page by page, each within a deadline of its own, by the client that began it."""

    def __init__(self, github: Github, comments: Iterable[IssueComment]) -> None:
        self._github = github
        self._comments = iter(comments)

    def next(self, github: Github) -> list[Comment]:
        if github is not self._github:
            raise UnreachableError(SERVICE, "another call hung while the comments were read")
        return [Comment.of(comment) for comment in itertools.islice(self._comments, _PAGE)]


class _Gate:
    """Between looking and writing: a thread that is still looking when its deadline passes does not write any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_entered = self._is_closed = False

    def enter(self) -> None:
        with self._lock:
            if self._is_closed:
                raise UnreachableError(SERVICE, "too late to write")
            self._is_entered = True

    def has_been_entered(self) -> bool:
        """Close the gate, and say whether the write was begun before."""
        with self._lock:
            self._is_closed = True
            return self._is_entered


def utc_second(at: datetime) -> datetime:
    """Return a time as ``since`` needs it: PyGithub drops the zone and writes Z behind what is left (R13)."""
    return at.astimezone(UTC).replace(microsecond=0)


def _refuse_lost(number: object) -> None:
    """Refuse what came back without its number: the answer was a redirect, and nothing was written."""
    if number is None:
        raise MovedError(SERVICE, "the repository was renamed, and the write was redirected and lost")
