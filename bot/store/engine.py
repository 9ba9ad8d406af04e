"""How SQLite is opened and asked: the pragmas, how transactions begin, and what its errors mean.

Writers begin with BEGIN IMMEDIATE: a transaction that read first and then wants to write cannot wait for the lock, it
fails at once with "database is locked", whatever the timeout (field report R28). The way SQLAlchemy documents for this
is to take BEGIN away from the driver: docs.sqlalchemy.org, SQLite, "Serializable isolation / Savepoints / Transactional
DDL" (July 2026).
"""

import asyncio
import errno
import shutil
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from bot.errors import StoreError, StoreFullError
from bot.store.file import DatabaseFile

BUSY_TIMEOUT = timedelta(seconds=5)
"""How long a writer waits for another process before it says so."""

_BEGIN = "hero_begin"
_SPARE_BYTES = 1_000_000
"""With less room than this under the file, an I/O error of SQLite is one of a full disk."""
_PRIMARY_CODE = 0xFF


def open_engine(file: DatabaseFile, busy_timeout: timedelta) -> AsyncEngine:
    """Return the engine that the store works with; nothing is opened yet."""
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(file.path)),
        hide_parameters=True,
        pool_size=5,
        max_overflow=0,
        pool_timeout=60,
    )
    _prepare(engine.sync_engine, busy_timeout, foreign_keys=True)
    event.listen(engine.sync_engine, "connect", lambda _connection, _record: file.connected())
    event.listen(engine.sync_engine, "close", lambda _connection, _record: file.disconnected())
    return engine


def open_upgrade_engine(path: Path, busy_timeout: timedelta) -> Engine:
    """Return a blocking engine for migrations, which may have to rebuild a table that others refer to."""
    engine = create_engine(URL.create("sqlite", database=str(path)), hide_parameters=True, poolclass=NullPool)
    _prepare(engine, busy_timeout, foreign_keys=False)
    return engine


def _prepare(engine: Engine, busy_timeout: timedelta, *, foreign_keys: bool) -> None:
    def set_pragmas(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver shall emit no BEGIN of its own
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout.total_seconds() * 1000)}")
        cursor.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        # In WAL mode NORMAL may lose the last commits when the machine dies; what was promised must be there (law 3).
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

    def commit(connection: Connection) -> None:
        # The driver's own commit() does nothing when SQLite has ended the transaction by itself, as it may after a
        # full disk; COMMIT says so.
        connection.exec_driver_sql("COMMIT")

    event.listen(engine, "connect", set_pragmas)
    event.listen(engine, "begin", begin)
    event.listen(engine, "commit", commit)


@asynccontextmanager
async def reading(engine: AsyncEngine, file: DatabaseFile) -> AsyncIterator[AsyncConnection]:
    """Hand out a connection that sees one state of the database throughout.

    Raises:
        StoreError: the file cannot be read, or is no longer the one that Hero opened.
    """
    file.check()  # before a connection is made: SQLite would create what is not there
    with translated(file.path):
        async with engine.connect() as connection:
            await connection.begin()
            yield connection
            file.used()


@asynccontextmanager
async def writing(engine: AsyncEngine, file: DatabaseFile) -> AsyncIterator[AsyncConnection]:
    """Hand out the one connection that may write; commit at a normal exit, roll back at any other.

    Raises:
        StoreFullError: no space is left; nothing of the transaction was stored.
        StoreError: another process holds the lock, the file cannot be read or written, or it is no longer the one
            that Hero opened; nothing was stored.
    """
    file.check()
    with translated(file.path):
        async with engine.connect() as connection:
            await connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
            await connection.begin()
            yield connection
            file.check()  # it may have gone while this transaction waited for the lock
            await _to_its_end(connection.commit())
            file.used()


@contextmanager
def upgrading(engine: Engine, path: Path) -> Iterator[Connection]:
    """As ``writing``, for the blocking engine of migrations."""
    with translated(path), engine.connect() as connection:
        connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        connection.begin()
        yield connection
        connection.commit()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Await work that a cancellation must not cut in two: whoever stops us still learns whether it was stored."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what SQLite and SQLAlchemy raise into errors that name the file and the fix."""
    try:
        yield
    except DBAPIError as error:
        raise _store_error(error.orig, path) from error
    except sqlite3.Error as error:
        raise _store_error(error, path) from error
    except PoolTimeoutError as error:
        msg = f"{path}: every connection to the database has been busy for a minute; look at the disk's speed"
        raise StoreError(msg) from error
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise _full(path) from error


def _store_error(error: BaseException | None, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
    match code:
        case sqlite3.SQLITE_FULL:
            return _full(path)
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN if _is_crowded(path):
            return _full(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            trouble = "locked by another process; stop the other program that has this database open"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            trouble = f"cannot be written ({error}); let Hero's user write this file and its directory"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            trouble = (
                f"damaged or no SQLite database ({error}); put a copy back, or name another file in [bot] database"
            )
        case sqlite3.SQLITE_IOERR:
            trouble = f"the disk does not answer as it should ({error}); look at the machine's disk"
        case _:
            trouble = f"the database refused: {error}"
    return StoreError(f"{path}: {trouble}")


def _full(path: Path) -> StoreFullError:
    return StoreFullError(f"{path}: no space is left for the database; free some on its disk, Hero then goes on")


def _is_crowded(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _SPARE_BYTES
    except OSError:
        return False
