"""What the fake GitHub knows: one repository with its people, issues and comments. No HTTP here; see github.py."""

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

type Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
type AccountType = Literal["User", "Bot"]

RANKS: tuple[Permission, ...] = ("none", "read", "triage", "write", "maintain", "admin")


@dataclass(frozen=True, slots=True)
class User:
    login: str
    id: int
    type: AccountType
    permission: Permission
    association: str


@dataclass(frozen=True, slots=True)
class Comment:
    id: int
    issue: int
    author: str
    body: str
    created_at: datetime
    updated_at: datetime
    stored_at: datetime
    """The exact moment; the two times above are whole seconds, as GitHub's are."""
    by_app: bool = False
    edited_from: str | None = None
    deleted: bool = False
    reactions: tuple[tuple[str, str], ...] = ()
    """(login, content) each."""


@dataclass(frozen=True, slots=True)
class Issue:
    number: int
    id: int
    title: str
    body: str
    author: str
    created_at: datetime
    updated_at: datetime
    state: str = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    locked: bool = False
    deleted: bool = False
    pull_request: bool = False
    by_app: bool = False
    comments: tuple[Comment, ...] = ()
    """Filled in on the copy that `FakeGitHub.issue` hands out; oldest first, deleted ones left out."""


class World:
    """The stored state. Whoever calls holds the fake's lock."""

    def __init__(self, repository: str, *, private: bool, now: Callable[[], datetime]) -> None:
        self.full_name = repository
        self.old_names: set[str] = set()
        self.repository_id = 1_300_192
        self.private = private
        self.users: dict[str, User] = {}
        self.issues: dict[int, Issue] = {}
        self.comments: dict[int, Comment] = {}
        self.labels: dict[str, str] = {}
        self.commits: set[str] = set()
        """SHAs that were pushed."""
        self.tag_objects: dict[str, dict[str, str]] = {}
        """By their own SHA: name, message and commit."""
        self.refs: dict[str, str] = {}
        """``refs/tags/NAME`` to the SHA of a commit or of a tag's object."""
        self._now = now
        # Both kinds of id have outgrown 32 bits on github.com; a client with an int column must break here.
        self._comment_ids = itertools.count(2**31 + 1_207, 3)
        self._issue_ids = itertools.count(2**31 + 900_001, 7)
        self._user_ids = itertools.count(41_000_001, 11)

    def now(self) -> datetime:
        return self._now()

    def second(self) -> datetime:
        return self._now().astimezone(UTC).replace(microsecond=0)

    def add_user(
        self,
        login: str,
        id: int | None = None,  # noqa: A002 - GitHub's own word, and the fake's callers speak it
        type: AccountType = "User",  # noqa: A002 - as id
        *,
        permission: Permission = "none",
        association: str | None = None,
    ) -> User:
        if association is None:
            association = "COLLABORATOR" if RANKS.index(permission) >= RANKS.index("write") else "NONE"
        if login.lower() == self.full_name.partition("/")[0].lower():
            association = "OWNER"
        number = next(self._user_ids) if id is None else id
        user = User(login=login, id=number, type=type, permission=permission, association=association)
        self.users[login.lower()] = user
        return user

    def user(self, login: str) -> User:
        """The account of that login; a stranger gets one on the spot, without any right."""
        return self.users.get(login.lower()) or self.add_user(login)

    def permission(self, login: str) -> Permission:
        user = self.users.get(login.lower())
        given: Permission = user.permission if user else "none"
        return "read" if given == "none" and not self.private else given

    def add_issue(
        self,
        *,
        title: str,
        body: str,
        author: str,
        labels: tuple[str, ...] = (),
        assignees: tuple[str, ...] = (),
        by_app: bool = False,
        pull_request: bool = False,
    ) -> Issue:
        number = max(self.issues, default=0) + 1
        at = self.second()
        for label in labels:
            self.labels.setdefault(label.lower(), label)
        issue = Issue(
            number=number,
            id=next(self._issue_ids),
            title=title,
            body=body,
            author=self.user(author).login,
            created_at=at,
            updated_at=at,
            labels=labels,
            assignees=assignees,
            by_app=by_app,
            pull_request=pull_request,
        )
        self.issues[number] = issue
        return issue

    def add_comment(
        self, *, issue: int, author: str, body: str, at: datetime | None = None, by_app: bool = False
    ) -> Comment:
        moment = self.second() if at is None else at.astimezone(UTC).replace(microsecond=0)
        comment = Comment(
            id=next(self._comment_ids),
            issue=issue,
            author=self.user(author).login,
            body=body,
            created_at=moment,
            updated_at=moment,
            stored_at=self.now() if at is None else at,
            by_app=by_app,
        )
        self.comments[comment.id] = comment
        held = self.issues[issue]
        self.issues[issue] = replace(held, updated_at=max(held.updated_at, moment))
        return comment

    def edit_comment(self, comment_id: int, body: str) -> Comment:
        """New text under the old id, with a newer `updated_at`: it comes back through `since`."""
        old = self.comments[comment_id]
        new = replace(old, body=body, updated_at=self.second(), edited_from=old.body)
        self.comments[comment_id] = new
        return new

    def comments_of(self, number: int) -> tuple[Comment, ...]:
        """The living comments of one issue by ascending id, which is GitHub's order whatever their dates are."""
        return tuple(c for _, c in sorted(self.comments.items()) if c.issue == number and not c.deleted)


def short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
