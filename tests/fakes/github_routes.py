"""The REST v3 endpoints that a bot on issues meets, over the fake's World, and the rules by which GitHub refuses.

Sources: GitHub's OpenAPI description and docs.github.com/rest; messages as quoted in public issue reports.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from tests.fakes.github_api import Api, checked_body, checked_title, label_names, since
from tests.fakes.github_exchange import Answer, Ask, RefusedError, UnknownRouteError, invalid, missing
from tests.fakes.github_views import INSTALLATION_ID, Json, stamp
from tests.fakes.github_world import RANKS, Issue, Permission, short_digest

COMMENTS_MAX = 2_500
ASSIGNEES_MAX = 10
LEGACY: dict[Permission, str] = {"triage": "read", "maintain": "write"}
"""What the `permission` field says for the two newer roles; `role_name` has the exact one."""

type Handler = Callable[[Api, Ask, tuple[str, ...]], Answer]

_ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


def answer(api: Api, ask: Ask) -> Answer:
    """Answer a well-formed request of a known caller; the caller of this holds the fake's lock.

    Raises:
        RefusedError: GitHub would answer with an error.
    """
    is_app_path = ask.path.startswith("/app") or ask.path.endswith("/installation")
    if is_app_path != (ask.caller.kind == "app"):
        raise RefusedError(401, "A JSON web token could not be decoded" if is_app_path else "Bad credentials")
    if ask.path.startswith("/repos/"):
        api.require_repository(ask)
    for verb, pattern, handler in _ROUTES:
        found = pattern.fullmatch(ask.path)
        if found and verb == ask.verb:
            return handler(api, ask, tuple(unquote(group) for group in found.groups()))
    raise UnknownRouteError


def route(verb: str, path: str) -> Callable[[Handler], Handler]:
    """Register the endpoint that a function answers; ``REPO`` in the path stands for the repository's own."""
    pattern = re.compile(path.replace("REPO", r"/repos/[^/]+/[^/]+"))

    def register(handler: Handler) -> Handler:
        _ROUTES.append((verb, pattern, handler))
        return handler

    return register


@route("GET", "/user")
def _get_user(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    if ask.caller.by_app:
        raise RefusedError(403, "Resource not accessible by integration")
    return Answer(200, api.views(ask).user(api.world.user(ask.caller.login), "public-user"))


@route("GET", "/users/([^/]+)")
def _get_users(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    user = api.world.users.get(groups[0].lower())
    if user is None:
        raise missing()
    return Answer(200, api.views(ask).user(user, "public-user"))


@route("GET", "/app")
def _get_app(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    return Answer(200, api.views(ask).app())


@route("GET", "REPO/installation")
def _get_repo_installation(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    return Answer(200, api.views(ask).installation())


@route("GET", r"/app/installations/(\d+)")
def _get_installation(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    if int(groups[0]) != INSTALLATION_ID:
        raise missing()
    return Answer(200, api.views(ask).installation())


@route("POST", r"/app/installations/(\d+)/access_tokens")
def _post_access_token(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    if int(groups[0]) != INSTALLATION_ID:
        raise missing()
    asked = ask.body.get("permissions") if isinstance(ask.body, dict) else None
    read_only = isinstance(asked, dict) and asked.get("issues") == "read"
    return Answer(201, api.access.issue_installation_token("read" if read_only else "write"))


@route("GET", "REPO")
def _get_repository(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    permission = api.world.permission(ask.caller.login)
    return Answer(200, api.views(ask).repository(permission, by_app=ask.caller.by_app))


@route("GET", "REPO/collaborators/([^/]+)/permission")
def _get_permission(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    if not ask.caller.by_app and api.rank(ask) < RANKS.index("write"):
        raise RefusedError(403, "Must have push access to view collaborator permission.")
    user = api.world.users.get(groups[0].lower())
    if user is None:
        raise RefusedError(404, f"{groups[0]} is not a user")
    permission = api.world.permission(user.login)
    view = api.views(ask).user(user, "nullable-collaborator") | {"role_name": permission}
    return Answer(200, {"permission": LEGACY.get(permission, permission), "role_name": permission, "user": view})


@route("GET", "REPO/issues")
def _list_issues(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    query, oldest = ask.query, since(ask)
    wanted = {name.lower() for name in query.get("labels", "").split(",") if name}
    state = query.get("state", "open")
    key: Callable[[Issue], Any] = {
        "updated": lambda i: (i.updated_at, i.number),
        "comments": lambda i: (len(api.world.comments_of(i.number)), i.number),
    }.get(query.get("sort", "created"), lambda i: (i.created_at, i.number))
    found = [
        issue
        for issue in api.world.issues.values()
        if not issue.deleted
        and state in ("all", issue.state)
        and issue.updated_at >= oldest
        and wanted <= {name.lower() for name in issue.labels}
        and query.get("creator", issue.author).lower() == issue.author.lower()
    ]
    found.sort(key=key, reverse=query.get("direction", "desc") == "desc")
    views = api.views(ask)
    return api.paged(ask, [views.issue(issue) for issue in found])


@route("POST", "REPO/issues")
def _create_issue(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    ask.caller.refuse_without_issues_write()
    title = checked_title(ask.text("title"))
    body = checked_body(ask, "Issue", "body")
    labels = label_names(ask.body)
    assignees = tuple(dict.fromkeys(str(login) for login in ask.body.get("assignees") or []))
    may_triage = api.rank(ask) >= RANKS.index("triage")
    if may_triage:
        _check_assignees(api, assignees)
    issue = api.world.add_issue(
        title=title,
        body=body,
        author=ask.caller.login,
        # Without push access both are dropped and the issue is made all the same, without a word.
        labels=labels if may_triage else (),
        assignees=assignees[:ASSIGNEES_MAX] if may_triage else (),
        by_app=ask.caller.by_app,
    )
    return Answer(201, api.views(ask).issue(issue))


def _check_assignees(api: Api, logins: tuple[str, ...]) -> None:
    for login in logins:
        user = api.world.users.get(login.lower())
        if user is None or RANKS.index(user.permission) < RANKS.index("read"):
            raise invalid("Issue", "assignees", "invalid")


@route("GET", r"REPO/issues/(\d+)")
def _get_issue(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    return Answer(200, api.views(ask).issue(api.issue(groups[0])))


@route("PATCH", r"REPO/issues/(\d+)")
def _edit_issue(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    ask.caller.refuse_without_issues_write()
    issue = api.issue(groups[0])
    _require_author_or_triage(api, ask, issue.author)
    at = api.world.second()
    changes: Json = {"updated_at": at}
    if "title" in ask.body:
        changes["title"] = checked_title(ask.text("title"))
    if "body" in ask.body:
        changes["body"] = checked_body(ask, "Issue", "body")
    if ask.body.get("state") in ("open", "closed"):
        closed = ask.body["state"] == "closed"
        reason = ask.body.get("state_reason") or "completed"
        changes |= {
            "state": ask.body["state"],
            "closed_at": at if closed else None,
            "state_reason": reason if closed else None,
        }
    if "labels" in ask.body:
        changes["labels"] = label_names(ask.body)
    if "assignees" in ask.body:
        changes["assignees"] = tuple(str(login) for login in ask.body["assignees"] or [])[:ASSIGNEES_MAX]
    issue = replace(issue, **changes)
    api.world.issues[issue.number] = issue
    return Answer(200, api.views(ask).issue(issue))


def _require_author_or_triage(api: Api, ask: Ask, author: str) -> None:
    if author.lower() != ask.caller.login.lower() and api.rank(ask) < RANKS.index("triage"):
        raise RefusedError(403, "Must have admin rights to Repository.")


@route("GET", r"REPO/issues/(\d+)/comments")
def _list_comments(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    oldest = since(ask)
    found = [c for c in api.listed(api.world.comments_of(api.issue(groups[0]).number)) if c.updated_at >= oldest]
    views = api.views(ask)
    return api.paged(ask, [views.comment(comment) for comment in found])


@route("POST", r"REPO/issues/(\d+)/comments")
def _create_comment(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    ask.caller.refuse_without_issues_write()
    issue = api.issue(groups[0])
    is_writer = not ask.caller.by_app and api.rank(ask) >= RANKS.index("write")
    if issue.locked and (api.locks_bind_writers or not is_writer):
        raise RefusedError(
            403,
            "Unable to create comment because issue is locked.",
            docs="https://docs.github.com/articles/locking-conversations/",
        )
    if len(api.world.comments_of(issue.number)) >= COMMENTS_MAX:
        raise RefusedError(403, f"Commenting is disabled on issues with more than {COMMENTS_MAX} comments")
    body = checked_body(ask, "IssueComment", "data")
    comment = api.world.add_comment(issue=issue.number, author=ask.caller.login, body=body, by_app=ask.caller.by_app)
    view = api.views(ask).comment(comment)
    return Answer(201, view, {"Location": view["url"]})


@route("GET", "REPO/issues/comments")
def _list_all_comments(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    """All issues' comments. `direction` is ignored without `sort`."""
    oldest = since(ask)
    living = [c for number in api.world.issues for c in api.world.comments_of(number)]
    found = [c for c in api.listed(living) if c.updated_at >= oldest and not api.world.issues[c.issue].deleted]
    by_update = ask.query.get("sort") == "updated"
    found.sort(
        key=lambda c: (c.updated_at if by_update else c.created_at, c.id),
        reverse="sort" in ask.query and ask.query.get("direction", "desc") == "desc",
    )
    views = api.views(ask)
    return api.paged(ask, [views.comment(comment) for comment in found])


@route("GET", r"REPO/issues/comments/(\d+)")
def _get_comment(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    return Answer(200, api.views(ask).comment(api.comment(groups[0])))


@route("PATCH", r"REPO/issues/comments/(\d+)")
def _edit_comment(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    ask.caller.refuse_without_issues_write()
    comment = api.comment(groups[0])
    _require_author_or_triage(api, ask, comment.author)
    edited = api.world.edit_comment(comment.id, checked_body(ask, "IssueComment", "data"))
    return Answer(200, api.views(ask).comment(edited))


@route("DELETE", r"REPO/issues/comments/(\d+)")
def _delete_comment(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    ask.caller.refuse_without_issues_write()
    comment = api.comment(groups[0])
    _require_author_or_triage(api, ask, comment.author)
    api.world.comments[comment.id] = replace(comment, deleted=True)
    return Answer(204)


@route("POST", r"REPO/issues/comments/(\d+)/reactions")
def _react(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    ask.caller.refuse_without_issues_write()
    comment, content = api.comment(groups[0]), ask.text("content")
    if content not in ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"):
        raise invalid("Reaction", "content", "invalid")
    mine = (ask.caller.login, content)
    already = mine in comment.reactions
    if not already:
        api.world.comments[comment.id] = replace(comment, reactions=(*comment.reactions, mine))
    view = {
        "id": int(short_digest(f"{comment.id}{mine}")[:8], 16),
        "content": content,
        "user": api.views(ask).user(api.world.user(ask.caller.login)),
        "created_at": stamp(api.world.second()),
    }
    return Answer(200 if already else 201, view)


@route("GET", "REPO/labels")
def _list_labels(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    views = api.views(ask)
    return api.paged(ask, [views.label(name) for name in api.world.labels.values()])


@route("POST", "REPO/labels")
def _create_label(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    _require_triage(api, ask)
    name = label_names([ask.text("name")])[0]
    if name.lower() in api.world.labels:
        raise invalid("Label", "name", "already_exists")
    api.world.labels[name.lower()] = name
    return Answer(201, api.views(ask).label(name))


@route("GET", "REPO/labels/([^/]+)")
def _get_label(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    name = api.world.labels.get(groups[0].lower())
    if name is None:
        raise missing()
    return Answer(200, api.views(ask).label(name))


@route("GET", r"REPO/issues/(\d+)/labels")
def _list_issue_labels(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    views = api.views(ask)
    return api.paged(ask, [views.label(name) for name in api.issue(groups[0]).labels])


@route("POST", r"REPO/issues/(\d+)/labels")
def _add_labels(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    issue = api.issue(groups[0])
    return _set_labels(api, ask, issue, tuple(dict.fromkeys((*issue.labels, *label_names(ask.body)))))


@route("PUT", r"REPO/issues/(\d+)/labels")
def _replace_labels(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    return _set_labels(api, ask, api.issue(groups[0]), label_names(ask.body))


@route("DELETE", r"REPO/issues/(\d+)/labels/([^/]+)")
def _remove_label(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    issue = api.issue(groups[0])
    kept = tuple(name for name in issue.labels if name.lower() != groups[1].lower())
    if kept == issue.labels:
        raise RefusedError(404, "Label does not exist")
    return _set_labels(api, ask, issue, kept)


def _set_labels(api: Api, ask: Ask, issue: Issue, names: tuple[str, ...]) -> Answer:
    """An unknown label is created on the way, which is what a misspelt one turns into."""
    _require_triage(api, ask)
    for name in names:
        api.world.labels.setdefault(name.lower(), name)
    api.world.issues[issue.number] = replace(issue, labels=names, updated_at=api.world.second())
    views = api.views(ask)
    return Answer(200, [views.label(name) for name in names])


def _require_triage(api: Api, ask: Ask) -> None:
    ask.caller.refuse_without_issues_write()
    if api.rank(ask) < RANKS.index("triage"):
        raise RefusedError(403, "Must have admin rights to Repository.")
