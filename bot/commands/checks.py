"""``hero checks``: what Hero looks for, with every threshold and where to read about it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from bot.commands.printing import say_json, say_table
from bot.errors import ConfigurationError
from bot.model.durations import write_duration
from bot.model.verdict import Severity
from checks import CHECKS
from checks.check import Check
from checks.named import no_such_check
from checks.preflight import ITEMS
from checks.preflight.item import Item

_PAGE = "docs/checks.md"
_LAUNCH_PAGE = "docs/launching.md"


def show_checks(only: str | None = None, *, as_json: bool) -> None:
    """List all checks, or one.

    Raises:
        ConfigurationError: there is no such check.
    """
    if only is not None and (missing := no_such_check(only)):
        raise ConfigurationError((missing,))
    checks = [check for check in CHECKS if only in {None, check.id}]
    items = [item for item in ITEMS if only in {None, item.id}]
    if as_json:
        say_json([*(check_row(check) for check in checks), *(item_row(item) for item in items)])
        return
    rows = [(check.id, str(check.severity), check.title, _say_thresholds(check)) for check in checks]
    rows += [(item.id, "at launch", item.title, "") for item in items]
    say_table(("CHECK", "SEVERITY", "WHAT", "THRESHOLDS"), rows)


def check_row(check: Check[Any, Any]) -> Mapping[str, object]:
    """Return what outsiders rely on: ids are stable, and a duration is written as a contract would write it."""
    return {
        "id": check.id,
        "title": check.title,
        "severity": check.severity.value,
        "needs": [source.value for source in check.needs],
        "thresholds": {
            name: {"default": _plain(getattr(check.thresholds, name)), "meaning": _unwrapped(field.description or "")}
            for name, field in type(check.thresholds).model_fields.items()
        },
        "source": check.source,
        "docs": f"{_PAGE}#{check.id.replace('.', '')}",  # a heading's anchor has no dots
    }


def item_row(item: Item) -> Mapping[str, object]:
    """Return an item of the launch checklist as a check: its worst finding forbids the launch."""
    return {
        "id": item.id,
        "title": item.title,
        "severity": Severity.CRITICAL.value,
        "needs": [],
        "thresholds": {},
        "source": item.source,
        "docs": f"{_LAUNCH_PAGE}#{item.id.replace('.', '')}",
    }


def _say_thresholds(check: Check[Any, Any]) -> str:
    values = ((name, getattr(check.thresholds, name)) for name in type(check.thresholds).model_fields)
    return ", ".join(f"{name} {_brief(value)}" for name, value in values)


def _brief(value: object) -> object:
    """A list of patterns is longer than the table; ``--json`` and the page have it whole."""
    return f"({len(value)} patterns)" if isinstance(value, tuple) else _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return write_duration(value) if isinstance(value, timedelta) else value


def _unwrapped(text: str) -> str:
    return " ".join(text.split())
