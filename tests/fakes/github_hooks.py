"""Webhook deliveries as GitHub sends them: signed over the raw bytes, named by a GUID that a redelivery repeats."""

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, replace
from typing import Literal

import httpx

from tests.fakes.github_views import INSTALLATION_ID, Json, Views
from tests.fakes.github_world import Comment

type Action = Literal["created", "edited", "deleted"]

PATIENCE_S = 10.0
"""GitHub gives up on a delivery after ten seconds and does not repeat it by itself."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What was sent and what came back; `status` is None when nothing came back."""

    guid: str
    url: str
    headers: dict[str, str]
    content: bytes
    status: int | None = None
    answer: str = ""


def issue_comment(
    views: Views, url: str, secret: str | None, action: Action, comment: Comment, *, sender: str | None, by_app: bool
) -> Delivery:
    """Make an unsent delivery; without a secret there is no signature header at all, as on GitHub."""
    world = views.world
    payload: Json = {
        "action": action,
        "issue": views.issue(world.issues[comment.issue]),
        "comment": views.comment(comment),
        "repository": views.repository("none", by_app=False),
        "sender": views.user(world.user(sender or comment.author)),
    }
    if action == "edited":
        payload["changes"] = {"body": {"from": comment.edited_from or ""}}
    if by_app:
        payload["installation"] = {"id": INSTALLATION_ID}
    content = json.dumps(payload).encode()
    guid = str(uuid.uuid4())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/5f1a2c7",
        "X-GitHub-Event": "issue_comment",
        "X-GitHub-Delivery": guid,
        "X-GitHub-Hook-ID": "449000123",
    }
    if secret is not None:
        headers["X-Hub-Signature-256"] = f"sha256={hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()}"
        headers["X-Hub-Signature"] = f"sha1={hmac.new(secret.encode(), content, hashlib.sha1).hexdigest()}"
    return Delivery(guid=guid, url=url, headers=headers, content=content)


def send(delivery: Delivery) -> Delivery:
    """Post it, blocking; also the way to redeliver, since GUID, body and signature stay the same."""
    try:
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            response = client.post(delivery.url, content=delivery.content, headers=delivery.headers)
    except httpx.HTTPError:
        return replace(delivery, status=None, answer="")
    return replace(delivery, status=response.status_code, answer=response.text)
