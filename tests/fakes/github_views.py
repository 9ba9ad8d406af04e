"""The fake's records as GitHub's JSON objects (REST v3), with the fields that PyGithub and webhooks read."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from tests.fakes.github_world import RANKS, Comment, Issue, Permission, User, World
from tests.fakes.openapi import github_description

type Json = dict[str, Any]

APP_SLUG = "hero-watch"
APP_ID = 424_242
INSTALLATION_ID = 77_001_001


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Views:
    """`base` is the API root the client used; PyGithub asserts that every `url` it follows lies under it."""

    world: World
    base: str

    @property
    def repo_url(self) -> str:
        return f"{self.base}/repos/{self.world.full_name}"

    @property
    def page_url(self) -> str:
        return f"https://github.example/{self.world.full_name}"

    def user(self, user: User, kind: str = "simple-user") -> Json:
        view = {
            "login": user.login,
            "id": user.id,
            "node_id": f"U_{user.id}",
            "type": user.type,
            "site_admin": False,
            "url": f"{self.base}/users/{user.login}",
            "html_url": f"https://github.example/{user.login}",
        }
        return _whole(kind, view)

    def app(self) -> Json:
        view = {
            "id": APP_ID,
            "slug": APP_SLUG,
            "name": "Hero Watch",
            "node_id": f"A_{APP_ID}",
            "owner": self.user(self.world.user(self.world.full_name.partition("/")[0])),
            "html_url": f"https://github.example/apps/{APP_SLUG}",
            "events": ["issue_comment"],
            "permissions": {"issues": "write", "metadata": "read"},
        }
        return _whole("integration", view)

    def repository(self, permission: Permission, *, by_app: bool) -> Json:
        """An installation's `permissions` are all false, whatever it may do with issues: they tell of code access."""
        owner, _, name = self.world.full_name.partition("/")
        rank = -1 if by_app else RANKS.index(permission)
        needed = {"admin": "admin", "maintain": "maintain", "push": "write", "triage": "triage", "pull": "read"}
        view = {
            "id": self.world.repository_id,
            "node_id": f"R_{self.world.repository_id}",
            "name": name,
            "full_name": self.world.full_name,
            "private": self.world.private,
            "archived": False,
            "has_issues": True,
            "default_branch": "main",
            "owner": self.user(self.world.user(owner)),
            "url": self.repo_url,
            "html_url": self.page_url,
            "permissions": {key: rank >= RANKS.index(least) for key, least in needed.items()},
        }
        return _whole("full-repository", view)

    def label(self, name: str) -> Json:
        view = {"name": name, "color": "ededed", "description": None, "url": f"{self.repo_url}/labels/{quote(name)}"}
        return _whole("label", view)

    def issue(self, issue: Issue) -> Json:
        url = f"{self.repo_url}/issues/{issue.number}"
        author = self.world.user(issue.author)
        found: Json = {
            "id": issue.id,
            "node_id": f"I_{issue.id}",
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "state_reason": issue.state_reason,
            "locked": issue.locked,
            "active_lock_reason": None,
            "comments": len(self.world.comments_of(issue.number)),
            "labels": [self.label(name) for name in issue.labels],
            "assignees": [self.user(self.world.user(login)) for login in issue.assignees],
            "user": self.user(author),
            "author_association": author.association,
            "created_at": stamp(issue.created_at),
            "updated_at": stamp(issue.updated_at),
            "closed_at": stamp(issue.closed_at) if issue.closed_at else None,
            "performed_via_github_app": self.app() if issue.by_app else None,
            "url": url,
            "repository_url": self.repo_url,
            "comments_url": f"{url}/comments",
            "labels_url": f"{url}/labels{{/name}}",
            "html_url": f"{self.page_url}/issues/{issue.number}",
        }
        if issue.pull_request:
            page = f"{self.page_url}/pull/{issue.number}"
            found["pull_request"] = {
                "url": f"{self.repo_url}/pulls/{issue.number}",
                "html_url": page,
                "diff_url": f"{page}.diff",
                "patch_url": f"{page}.patch",
            }
        return _whole("issue", found)

    def comment(self, comment: Comment) -> Json:
        author = self.world.user(comment.author)
        view = {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "body": comment.body,
            "user": self.user(author),
            "author_association": author.association,
            "created_at": stamp(comment.created_at),
            "updated_at": stamp(comment.updated_at),
            "performed_via_github_app": self.app() if comment.by_app else None,
            "url": f"{self.repo_url}/issues/comments/{comment.id}",
            "issue_url": f"{self.repo_url}/issues/{comment.issue}",
            "html_url": f"{self.page_url}/issues/{comment.issue}#issuecomment-{comment.id}",
        }
        return _whole("issue-comment", view)

    def installation(self) -> Json:
        owner = self.world.full_name.partition("/")[0]
        view = {
            "id": INSTALLATION_ID,
            "app_id": APP_ID,
            "app_slug": APP_SLUG,
            "account": self.user(self.world.user(owner)),
            "target_type": "Organization",
            "repository_selection": "selected",
            "permissions": {"issues": "write", "metadata": "read"},
            "events": ["issue_comment"],
            "suspended_at": None,
            "access_tokens_url": f"{self.base}/app/installations/{INSTALLATION_ID}/access_tokens",
            "repositories_url": f"{self.base}/installation/repositories",
        }
        return _whole("installation", view)


def _whole(schema: str, view: Json) -> Json:
    """Return a view with every field that GitHub's description demands; what is not given above nobody reads."""
    return github_description().completed(schema, view)
