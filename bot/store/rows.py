"""Values to JSON columns and back, with secrets cut from whatever text came from outside; and the one upsert."""

import math
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Table
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import StoreError
from bot.model.action import Action
from bot.model.event import Inbound
from bot.model.history import VerdictChange
from bot.model.incident import Incident
from bot.model.plan import Request
from bot.model.run import Instance, Run
from bot.model.update import Update
from bot.model.value import Value
from bot.model.verdict import Fail
from bot.redaction import Redactor

_TEXTS: dict[type[Value], tuple[str, ...]] = {
    Run: ("gaps", "blocked_reason", "tracker_url", "tracker_name"),
    Instance: ("command",),
    Request: ("reason", "note", "decided_via"),
    Action: ("records", "noted", "submit_failure"),
    Update: ("headline", "standing", "evidence", "plan", "next", "choice"),
}
"""The fields that may hold text from outside. Never a plan: its digest is what was said yes to, so it is scrubbed when
it is made."""


def to_json(value: Value, redactor: Redactor) -> Any:
    """Return what is stored of a value."""
    dump = _finite(value.model_dump(mode="json"))
    for field in _TEXTS.get(type(value), ()):
        dump[field] = redactor.value(dump[field])
    return dump


def incident_to_json(incident: Incident, redactor: Redactor) -> Any:
    """As ``to_json``; the finding's check and key stay as they are, since incidents are told apart by them."""
    dump = to_json(incident, redactor)
    kept = {"check": incident.finding.check, "key": incident.finding.key}
    clean = redactor.value(dump["finding"]) | kept
    # A classification's texts have a greatest length, and a mark may be longer than the secret it hides.
    clean["crash"] = _no_longer(dump["finding"]["crash"], clean["crash"])
    return dump | {"finding": clean}


def verdict_to_json(change: VerdictChange, redactor: Redactor) -> Any:
    """As ``to_json``; ids stay as they are."""
    dump = to_json(change, redactor)
    clean = redactor.value(dump["verdict"])
    if isinstance(change.verdict, Fail):
        finding = dump["verdict"]["finding"]
        clean["finding"] |= {"check": finding["check"], "key": finding["key"]}
        clean["finding"]["crash"] = _no_longer(finding["crash"], clean["finding"]["crash"])
    return dump | {"verdict": clean, "seen": redactor.text(change.seen)}


def payload_to_json(payload: Inbound, redactor: Redactor) -> Any:
    """As ``to_json``; of an event only the free text is touched, never an id."""
    dump = to_json(payload, redactor)
    if "text" in dump:
        dump["text"] = redactor.text(dump["text"])
    dump["actor"]["display_name"] = redactor.text(dump["actor"]["display_name"])
    return dump


def from_json[V: Value](kind: type[V], stored: Any) -> V:
    """Return the value that was stored.

    Raises:
        StoreError: what is stored is no such value, e.g. because somebody edited the database.
    """
    try:
        return kind.model_validate(stored)
    except ValidationError as error:
        raise unreadable(kind.__name__, error) from error


def unreadable(name: str, error: ValidationError) -> StoreError:
    """Return the error for a stored value that this Hero cannot read."""
    where = ", ".join(".".join(str(part) for part in each["loc"]) for each in error.errors(include_input=False)[:3])
    return StoreError(f"a stored {name} cannot be read (at {where}); put a copy of the database back")


async def upsert(
    connection: AsyncConnection, table: Table, row: dict[str, Any], only_if: ColumnElement[bool] | None = None
) -> bool:
    """Insert a row or change the one with its primary key; False when ``only_if`` kept the stored row as it was."""
    new = insert(table).values(row)
    keys = [column.name for column in table.primary_key]
    changed = {name: new.excluded[name] for name in row if name not in keys}
    statement = new.on_conflict_do_update(index_elements=keys, set_=changed, where=only_if)
    return (await connection.execute(statement)).rowcount == 1


def insert_once(table: Table, row: dict[str, Any], *unique: str) -> Insert:
    """Return an INSERT that does nothing when a row with the same ``unique`` columns is there: its rowcount is 0."""
    return insert(table).values(row).on_conflict_do_nothing(index_elements=unique)


def _no_longer(dump: Any, clean: Any) -> Any:
    """Cut every scrubbed text to the length that it had before."""
    match dump:
        case dict():
            return {key: _no_longer(each, clean[key]) for key, each in dump.items()}
        case list():
            return [_no_longer(*both) for both in zip(dump, clean, strict=True)]
        case str():
            return clean[: len(dump)]
        case _:
            return clean


def _finite(dump: Any) -> Any:
    """Spell NaN and the infinities as words: JSON has none of them, and pydantic reads the words back as floats."""
    match dump:
        case dict():
            return {key: _finite(each) for key, each in dump.items()}
        case list():
            return [_finite(each) for each in dump]
        case float() if math.isnan(dump):
            return "NaN"
        case float() if math.isinf(dump):
            return "Infinity" if dump > 0 else "-Infinity"
        case _:
            return dump
