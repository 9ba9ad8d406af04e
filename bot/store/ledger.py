"""Where a run's messages are in each channel, and how far each has read: what ``channels.ports.Ledger`` asks."""

from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.model.delivery import ChannelName, Posted
from bot.model.value import RunId
from bot.store.rows import upsert
from bot.store.tables import cursors, posted

THREAD = "thread"
"""The slot of the root of a run's conversation; ``thread:…`` is a former root, where answers may still come."""

_IS_ROOT = or_(posted.c.slot == THREAD, posted.c.slot.startswith(f"{THREAD}:"))


async def find(connection: AsyncConnection, channel: ChannelName, run_id: str, slot: str) -> Posted | None:
    where = posted.c.channel == channel, posted.c.run_id == run_id, posted.c.slot == slot
    found = await _posted(connection, select(posted).where(*where))
    return found[0] if found else None


async def threads(connection: AsyncConnection, channel: ChannelName) -> tuple[Posted, ...]:
    where = posted.c.channel == channel, _IS_ROOT
    return await _posted(connection, select(posted).where(*where).order_by(posted.c.run_id, posted.c.slot))


async def of_run(connection: AsyncConnection, run_id: RunId) -> tuple[Posted, ...]:
    statement = select(posted).where(posted.c.run_id == run_id).order_by(posted.c.channel, posted.c.slot)
    return await _posted(connection, statement)


async def find_run_by_thread(connection: AsyncConnection, channel: ChannelName, message_id: str) -> RunId | None:
    """Return whose conversation has this root; None when it is nobody's, or when two runs claim it."""
    where = posted.c.channel == channel, _IS_ROOT, posted.c.message_id == message_id
    found = {each.run_id for each in await _posted(connection, select(posted).where(*where).limit(3))}
    return found.pop() if len(found) == 1 else None


async def save(connection: AsyncConnection, message: Posted) -> None:
    await upsert(connection, posted, message.model_dump(mode="json"))


async def cursor(connection: AsyncConnection, name: str) -> str | None:
    found: str | None = (await connection.execute(select(cursors.c.position).where(cursors.c.name == name))).scalar()
    return found


async def save_cursor(connection: AsyncConnection, name: str, position: str) -> None:
    await upsert(connection, cursors, {"name": name, "position": position})


async def _posted(connection: AsyncConnection, statement: Select[Any]) -> tuple[Posted, ...]:
    return tuple(Posted(**row) for row in (await connection.execute(statement)).mappings())
