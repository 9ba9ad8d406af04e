"""The inbox: every event from outside, stored before it is acknowledged and kept until what it led to is committed.

    pending ──handled──▶ done
      │  ▲
      │  └─ failed, to be tried again later
      └────failed too often──▶ given_up (kept for people)

A repeat has its source's event id again and finds the row there, also after a restart (field report R02).
"""

from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import StoreError
from bot.model.event import Inbound, InboxEvent
from bot.redaction import Redactor
from bot.store.rows import insert_once, payload_to_json, unreadable
from bot.store.tables import inbox

_PENDING = "pending"
_DONE = "done"
_GIVEN_UP = "given_up"


async def receive(
    connection: AsyncConnection, source: str, event_id: str, payload: Inbound, *, at: datetime, redactor: Redactor
) -> bool:
    """Store an event; False for a repeat."""
    row = {
        "source": source,
        "event_id": event_id,
        "payload": payload_to_json(payload, redactor),
        "received_at": at,
        "state": _PENDING,
        "attempt": 0,
        "detail": "",
    }
    return (await connection.execute(insert_once(inbox, row, "source", "event_id"))).rowcount == 1


async def pending(connection: AsyncConnection, at: datetime, limit: int) -> tuple[InboxEvent, ...]:
    """Return the events to be handled now, oldest first."""
    is_due = or_(inbox.c.not_before.is_(None), inbox.c.not_before <= at)
    statement = select(inbox).where(inbox.c.state == _PENDING, is_due).order_by(inbox.c.number).limit(limit)
    return tuple(_event(row) for row in (await connection.execute(statement)).mappings())


async def end(connection: AsyncConnection, number: int, at: datetime) -> None:
    """Note that an event was handled.

    Raises:
        StoreError: it was handled already; the transaction that would handle it a second time must not commit.
    """
    statement = update(inbox).where(inbox.c.number == number, inbox.c.state == _PENDING)
    if (await connection.execute(statement.values(state=_DONE, ended_at=at))).rowcount != 1:
        msg = f"event {number} of the inbox was handled already; nothing was done a second time"
        raise StoreError(msg)


async def fail(connection: AsyncConnection, number: int, detail: str, retry_at: datetime | None, at: datetime) -> None:
    """Note that handling failed; without ``retry_at`` it is given up and kept for people."""
    outcome: dict[str, Any] = {"state": _GIVEN_UP, "ended_at": at} if retry_at is None else {"not_before": retry_at}
    statement = update(inbox).where(inbox.c.number == number, inbox.c.state == _PENDING)
    await connection.execute(statement.values(attempt=inbox.c.attempt + 1, detail=detail, **outcome))


async def counts(connection: AsyncConnection) -> dict[str, int]:
    grouped = await connection.execute(select(inbox.c.state, func.count()).group_by(inbox.c.state))
    states = {state: count for state, count in grouped}  # noqa: C416 - dict() of a Row's sequence confuses mypy
    return {"inbox_pending": states.get(_PENDING, 0), "inbox_given_up": states.get(_GIVEN_UP, 0)}


async def prune(connection: AsyncConnection, before: datetime) -> int:
    """Forget events handled before then; a repeat of one of these would count as new."""
    statement = delete(inbox).where(inbox.c.state == _DONE, inbox.c.ended_at < before)
    return (await connection.execute(statement)).rowcount


def _event(row: Any) -> InboxEvent:
    names = "number", "source", "event_id", "payload", "received_at", "attempt"
    try:
        return InboxEvent.model_validate({name: row[name] for name in names})
    except ValidationError as error:
        raise unreadable(f"event {row['number']} of the inbox", error) from error
