"""Rules that the fake GitHub's endpoints share: standing, lists, pages, what is too long. See github_routes.py.

Sources: GitHub's OpenAPI description and docs.github.com/rest; messages as quoted in public issue reports.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from tests.fakes.github_access import Access
from tests.fakes.github_exchange import Answer, Ask, RefusedError, invalid, missing
from tests.fakes.github_views import Views
from tests.fakes.github_world import RANKS, Comment, Issue, World

BODY_MAX_CHARACTERS = 65_536
TITLE_MAX_CHARACTERS = 256
LABEL_MAX_CHARACTERS = 50


class Api:
    """Answers a well-formed request of a known caller. Whoever calls holds the fake's lock."""

    def __init__(self, world: World, access: Access) -> None:
        self.world = world
        self.access = access
        self.list_lag = timedelta()
        self.locks_bind_writers = True

    def views(self, ask: Ask) -> Views:
        return Views(self.world, ask.base)

    def rank(self, ask: Ask) -> int:
        """The caller's standing in the repository; an installation that may write issues counts as triage."""
        if ask.caller.by_app:
            return RANKS.index("triage" if ask.caller.issues == "write" else "read")
        return RANKS.index(self.world.permission(ask.caller.login))

    def issue(self, number: str) -> Issue:
        issue = self.world.issues.get(int(number))
        if issue is None:
            raise missing()
        if issue.deleted:
            raise RefusedError(410, "This issue was deleted")
        return issue

    def comment(self, comment_id: str) -> Comment:
        comment = self.world.comments.get(int(comment_id))
        if comment is None or comment.deleted:
            raise missing()
        self.issue(str(comment.issue))
        return comment

    def listed(self, comments: Iterable[Comment]) -> list[Comment]:
        """Lists lag behind writes when `list_lag` says so; a GET by id does not."""
        return [c for c in comments if self.world.now() - c.stored_at >= self.list_lag or self.list_lag == timedelta()]

    def paged(self, ask: Ask, found: list[Any]) -> Answer:
        """One page of `found`, with GitHub's `/repositories/ID/…` form of Link; per_page is cut to 100 silently."""
        size = min(100, max(1, _number(ask, "per_page", 30)))
        page = max(1, _number(ask, "page", 1))
        last = max(1, -(-len(found) // size))
        rest = ask.path.split("/", 4)[4]
        links = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page >= last:
            del links["next"], links["last"]
        if page == 1:
            del links["prev"], links["first"]
        root = f"{ask.base}/repositories/{self.world.repository_id}/{rest}"
        link = ", ".join(
            f'<{root}?{urlencode(ask.query | {"page": str(number)})}>; rel="{rel}"' for rel, number in links.items()
        )
        return Answer(200, found[(page - 1) * size : page * size], {"Link": link} if link else {})

    def require_repository(self, ask: Ask) -> None:
        _, _, owner, name, *_ = ask.path.split("/", 4)
        if f"{owner}/{name}".lower() != self.world.full_name.lower():
            raise missing()
        if ask.caller.kind != "app" and self.rank(ask) < RANKS.index("read"):
            raise missing()  # a private repository is invisible to strangers, not forbidden


def _number(ask: Ask, name: str, default: int) -> int:
    value = ask.query.get(name, "")
    return int(value) if value.isdecimal() else default


def since(ask: Ask) -> datetime:
    text = ask.query.get("since")
    if text is None:
        return datetime.min.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise RefusedError(422, f'Invalid request.\n\n"{text}" is not a valid `date-time`.') from error


def checked_body(ask: Ask, resource: str, field: str) -> str:
    body = ask.text("body")
    if resource == "IssueComment" and not body.strip():
        raise invalid(resource, field, "unprocessable", "Body cannot be blank")
    if len(body) > BODY_MAX_CHARACTERS:
        raise invalid(
            resource, field, "unprocessable", f"Body is too long (maximum is {BODY_MAX_CHARACTERS} characters)"
        )
    return body


def checked_title(title: str) -> str:
    if not title.strip():
        raise invalid("Issue", "title", "missing_field")
    if len(title) > TITLE_MAX_CHARACTERS:
        raise invalid("Issue", "title", "custom", f"title is too long (maximum is {TITLE_MAX_CHARACTERS} characters)")
    return title


def label_names(values: Any) -> tuple[str, ...]:
    """Names out of `["a"]` (which PyGithub sends), `[{"name": "a"}]` or `{"labels": …}`: GitHub takes all three."""
    if isinstance(values, dict):
        values = values.get("labels", [])
    names = [value.get("name", "") if isinstance(value, dict) else str(value) for value in values or []]
    if any(len(name) > LABEL_MAX_CHARACTERS for name in names):
        raise invalid("Label", "name", "custom", f"name is too long (maximum is {LABEL_MAX_CHARACTERS} characters)")
    return tuple(dict.fromkeys(names))
