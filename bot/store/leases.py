"""The right of one process to act, for a while, with a number that fences off whoever held it before.

Every taking raises the number. A transaction that is given a lease compares the number inside itself, so a process that
was asleep while another took over cannot write, however sure it is (field report R30). A lease that ran out and that
nobody took is renewed by the next transaction under it: a laptop that was closed for an hour goes on where it was.
"""

from datetime import datetime, timedelta

from pydantic import AwareDatetime
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import LeaseLostError
from bot.model.value import Value
from bot.store.rows import upsert
from bot.store.tables import leases


class Lease(Value):
    """Proof that ``holder`` may act under ``name`` until ``expires_at``."""

    name: str
    holder: str
    """Unique to one start of one process."""
    fence: int
    """Rises with every taking, never repeats."""
    ttl: timedelta
    """How long it lasts after each renewal; renew at half of it."""
    expires_at: AwareDatetime


async def acquire(connection: AsyncConnection, name: str, holder: str, ttl: timedelta, at: datetime) -> Lease | None:
    """Take the lease; None while somebody else holds it."""
    row = (await connection.execute(select(leases).where(leases.c.name == name))).mappings().one_or_none()
    if row is not None and row["holder"] != holder and row["expires_at"] > at:
        return None
    fence = 1 if row is None else row["fence"] + 1
    lease = Lease(name=name, holder=holder, fence=fence, ttl=ttl, expires_at=at + ttl)
    await upsert(connection, leases, lease.model_dump(exclude={"ttl"}))
    return lease


async def current(connection: AsyncConnection, name: str) -> Lease | None:
    """Return the lease as it stands in the database, whoever holds it and whether or not it has run out."""
    row = (await connection.execute(select(leases).where(leases.c.name == name))).mappings().one_or_none()
    return None if row is None else Lease(**row, ttl=timedelta())


async def renew(connection: AsyncConnection, lease: Lease, ttl: timedelta, at: datetime) -> Lease:
    """Return the lease with its new end.

    Raises:
        LeaseLostError: somebody else took it meanwhile.
    """
    renewed = lease.model_copy(update={"ttl": ttl, "expires_at": at + ttl})
    statement = update(leases).where(leases.c.name == lease.name, leases.c.fence == lease.fence)
    if (await connection.execute(statement.values(expires_at=renewed.expires_at))).rowcount != 1:
        raise _lost(lease)
    return renewed


async def check(connection: AsyncConnection, lease: Lease, at: datetime) -> None:
    """Make sure that this transaction is the holder's.

    Raises:
        LeaseLostError: somebody else took it meanwhile.
    """
    where = leases.c.name == lease.name, leases.c.fence == lease.fence
    expires_at = (await connection.execute(select(leases.c.expires_at).where(*where))).scalar()
    if expires_at is None:
        raise _lost(lease)
    if expires_at <= at:
        await renew(connection, lease, lease.ttl, at)


async def release(connection: AsyncConnection, lease: Lease, at: datetime) -> None:
    """Let the next one take it at once. The number is kept, so that it does not repeat."""
    where = leases.c.name == lease.name, leases.c.fence == lease.fence
    await connection.execute(update(leases).where(*where).values(fence=lease.fence + 1, expires_at=at))


def _lost(lease: Lease) -> LeaseLostError:
    return LeaseLostError(
        f"the lease {lease.name!r} of {lease.holder} was taken by another Hero; this one must stop, "
        "and only one should be started on one database"
    )
