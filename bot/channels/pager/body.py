"""What a pager is posted: PagerDuty's Events API v2, or flat JSON for whatever else takes a webhook.

Source of the first: PagerDuty, "Send an Alert Event" (Events API v2): ``routing_key``, ``event_action``, ``dedup_key``
(at most 255 characters) and ``payload`` with ``summary`` (at most 1024), ``source`` and ``severity``.
"""

import hashlib
from typing import Any

from bot.model.ladder import Page, PageStatus
from bot.model.update import Update
from bot.model.verdict import Severity
from bot.render.text import clean
from bot.render.words import first_line

type Json = dict[str, Any]

_SUMMARY_LIMIT = 1_000
_LINE_LIMIT = 1_000
_MOST_LINES = 20
_KEY_LIMIT = 255
_GENERIC_STATUS = {PageStatus.TRIGGER: "trigger", PageStatus.RESOLVE: "resolve"}


def pagerduty_body(update: Update, page: Page, *, routing_key: str) -> Json:
    """Return an event of PagerDuty's Events API v2."""
    event: Json = {"routing_key": routing_key, "event_action": page.status.value, "dedup_key": dedup_key(page)}
    if page.status is not PageStatus.TRIGGER:
        return event
    return event | {
        "client": "Hero",
        "payload": {
            "summary": _one_line(first_line(update), _SUMMARY_LIMIT),
            "source": _one_line(update.run_id or "hero", 255),
            "severity": _severity(update),
            "timestamp": update.at.isoformat(),
            "component": "training run",
            "class": "escalation",
            "custom_details": _details(update),
        },
        **({"links": [{"href": page.link, "text": "the run's conversation"}]} if page.link else {}),
    }


def generic_body(update: Update, page: Page) -> Json | None:
    """Return flat JSON; None for an acknowledgement, which a receiver that knows two states would take for an alarm."""
    status = _GENERIC_STATUS.get(page.status)
    if status is None:
        return None
    return {
        "title": _one_line(first_line(update), _SUMMARY_LIMIT),
        "severity": _severity(update),
        "run": update.run_id or "",
        "link": page.link,
        "dedup_key": dedup_key(page),
        "status": status,
        "at": update.at.isoformat(),
        "details": _details(update),
    }


def dedup_key(page: Page) -> str:
    """Return the receiver's key: ours as it is, or, when it is longer than PagerDuty takes, one that is as telling."""
    if len(page.key) <= _KEY_LIMIT:
        return page.key
    return f"hero/{hashlib.sha256(page.key.encode('utf-8', 'replace')).hexdigest()}"


def _severity(update: Update) -> str:
    return {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "critical"}[update.severity]


def _details(update: Update) -> Json:
    lines = [_one_line(line, _LINE_LIMIT) for line in update.evidence[:_MOST_LINES]]
    return {"evidence": lines, "next": _one_line(update.next, _LINE_LIMIT), "asked": update.asked or ""}


def _one_line(text: str, limit: int) -> str:
    return clean(" ".join(clean(text, 4 * limit).split()), limit)
