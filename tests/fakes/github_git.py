"""The endpoints of GitHub's git database that sealing needs: tag objects and references. See github_routes.py.

Sources: docs.github.com/rest/git/tags, /git/refs; messages as GitHub gives them.
"""

import hashlib
import re

from tests.fakes.github_api import Api
from tests.fakes.github_exchange import Answer, Ask, RefusedError, missing
from tests.fakes.github_routes import route
from tests.fakes.github_views import Json
from tests.fakes.github_world import RANKS

_SHA = re.compile("[0-9a-f]{40}")


@route("GET", "REPO/git/ref/(.+)")
def _get_ref(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    name = f"refs/{groups[0]}"
    if name not in api.world.refs:
        raise missing()
    return Answer(200, _ref(api, ask, name))


@route("POST", "REPO/git/tags")
def _create_tag_object(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    _require_push(api, ask)
    commit = ask.text("object")
    if not _SHA.fullmatch(commit) or commit not in api.world.commits:
        raise RefusedError(422, "Could not verify object")
    tag = {"tag": ask.text("tag"), "message": ask.text("message"), "commit": commit}
    # git hashes a tag with its time and author: the same words twice are two objects.
    content = f"{sorted(tag.items())} {len(api.world.tag_objects)}"
    sha = hashlib.sha1(content.encode(), usedforsecurity=False).hexdigest()
    api.world.tag_objects[sha] = tag
    return Answer(201, _tag(api, ask, sha))


@route("GET", "REPO/git/tags/([0-9a-f]{40})")
def _get_tag_object(api: Api, ask: Ask, groups: tuple[str, ...]) -> Answer:
    if groups[0] not in api.world.tag_objects:
        raise missing()
    return Answer(200, _tag(api, ask, groups[0]))


@route("POST", "REPO/git/refs")
def _create_ref(api: Api, ask: Ask, _: tuple[str, ...]) -> Answer:
    _require_push(api, ask)
    name, sha = ask.text("ref"), ask.text("sha")
    if not name.startswith("refs/") or name.count("/") < 2:
        raise RefusedError(422, "Reference name must start with 'refs/' and contain at least two slashes")
    if sha not in api.world.commits and sha not in api.world.tag_objects:
        raise RefusedError(422, "Object does not exist")
    if name in api.world.refs:
        raise RefusedError(422, "Reference already exists")
    api.world.refs[name] = sha
    return Answer(201, _ref(api, ask, name))


def _require_push(api: Api, ask: Ask) -> None:
    if api.rank(ask) < RANKS.index("write"):
        raise RefusedError(403, "Resource not accessible by personal access token")


def _ref(api: Api, ask: Ask, name: str) -> Json:
    sha, root = api.world.refs[name], api.views(ask).repo_url
    kind = "tag" if sha in api.world.tag_objects else "commit"
    target = {"type": kind, "sha": sha, "url": f"{root}/git/{kind}s/{sha}"}
    return {"ref": name, "node_id": f"REF_{name}", "url": f"{root}/git/{name}", "object": target}


def _tag(api: Api, ask: Ask, sha: str) -> Json:
    tag, root = api.world.tag_objects[sha], api.views(ask).repo_url
    return {
        "node_id": f"T_{sha}",
        "tag": tag["tag"],
        "sha": sha,
        "url": f"{root}/git/tags/{sha}",
        "message": tag["message"],
        "tagger": {"date": "2026-11-29T00:00:00Z", "email": "hero@example.org", "name": "hero"},
        "object": {"type": "commit", "sha": tag["commit"], "url": f"{root}/git/commits/{tag['commit']}"},
    }
