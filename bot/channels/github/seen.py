"""What GitHub says of accounts, comments, issues and the repository, as values out of PyGithub's objects."""

from typing import Self

from github.Issue import Issue
from github.IssueComment import IssueComment
from github.NamedUser import NamedUser
from github.Organization import Organization
from pydantic import AwareDatetime

from bot.model.value import Value


class Account(Value):
    """A GitHub account; ``login`` may change hands, ``id`` never does."""

    id: int
    login: str
    is_bot: bool
    is_suspended: bool = False


class Comment(Value):
    """An issue comment as it was when it was read."""

    id: int
    author: Account | None
    """None for the comment of an account that was deleted."""
    body: str
    created_at: AwareDatetime
    updated_at: AwareDatetime
    is_by_app: bool
    association: str = ""
    """What its author is to the repository, by GitHub's word beside the comment."""
    link: str

    @classmethod
    def of(cls, comment: IssueComment) -> Self:
        user: NamedUser | Organization | None = comment.user
        return cls(
            id=comment.id,
            author=Account(id=user.id, login=user.login, is_bot=is_bot(user.type, user.login))
            if user is not None
            else None,
            body=comment.body or "",
            created_at=comment.created_at,
            updated_at=comment.updated_at,
            is_by_app=bool(comment.performed_via_github_app),
            association=comment.author_association or "",
            link=comment.html_url or "",
        )


class IssueSeen(Value):
    """An issue that Hero writes on, open or closed."""

    number: int
    comments: int
    created_at: AwareDatetime
    link: str

    @classmethod
    def of(cls, issue: Issue) -> Self:
        return cls(number=issue.number, comments=issue.comments, created_at=issue.created_at, link=issue.html_url or "")


class RepositorySeen(Value):
    """The repository under its name of today."""

    id: int
    full_name: str
    has_issues: bool
    is_archived: bool


def is_bot(kind: str | None, login: str) -> bool:
    """Say whether an account of that type and login is an app's; a bot with a personal token looks like a person."""
    return kind == "Bot" or login.endswith("[bot]")
