"""The records of runs: read, and added to. ``bot.model.chronicle`` says what an entry is."""

from datetime import datetime

from pydantic import ValidationError
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.model.chronicle import Entry, Happening, next_entry
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.store.rows import unreadable
from bot.store.tables import chronicle


async def append(
    connection: AsyncConnection,
    run_id: RunId,
    happened: tuple[Happening, ...],
    at: datetime,
    redactor: Redactor,
) -> None:
    """Add what happened to the end of the run's record; secrets are cut before the hash is made."""
    last = await _last(connection, run_id) if happened else None
    for happening in happened:
        payload = redactor.value(happening.model_dump(mode="json", exclude={"kind"}))
        last = next_entry(run_id, last, at, happening.kind, payload)
        await connection.execute(insert(chronicle), last.model_dump())


async def read(connection: AsyncConnection, run_id: RunId) -> tuple[Entry, ...]:
    """Return the whole record, oldest first.

    Raises:
        StoreError: a row is no entry, because somebody edited the database.
    """
    rows = await connection.execute(select(chronicle).where(chronicle.c.run_id == run_id).order_by(chronicle.c.seq))
    try:
        return tuple(Entry.model_validate(dict(row)) for row in rows.mappings())
    except ValidationError as error:
        raise unreadable(f"entry of the record of {run_id}", error) from error


async def read_newest(connection: AsyncConnection, run_id: RunId, limit: int) -> tuple[Entry, ...]:
    """Return the newest entries, oldest of them first; to be shown, since nobody can verify a part.

    Raises:
        StoreError: as ``read``.
    """
    newest = select(chronicle).where(chronicle.c.run_id == run_id).order_by(chronicle.c.seq.desc()).limit(limit)
    rows = (await connection.execute(newest)).mappings().all()
    try:
        return tuple(Entry.model_validate(dict(row)) for row in reversed(rows))
    except ValidationError as error:
        raise unreadable(f"entry of the record of {run_id}", error) from error


async def _last(connection: AsyncConnection, run_id: RunId) -> Entry | None:
    newest = select(chronicle).where(chronicle.c.run_id == run_id).order_by(chronicle.c.seq.desc()).limit(1)
    row = (await connection.execute(newest)).mappings().first()
    return Entry.model_validate(dict(row)) if row is not None else None
