"""Bring the database file to the tables that this Hero knows, after a copy of it was put aside.

Blocking: to be called in a thread.
"""

import os
import sqlite3
import threading
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from bot.errors import ConfigurationError, StoreError
from bot.store.engine import open_upgrade_engine, translated, upgrading

_ALEMBIC = threading.Lock()
"""Alembic keeps what it works on in module globals, so one upgrade at a time in a process."""


def upgrade(path: Path, at: datetime, busy_timeout: timedelta) -> Path | None:
    """Create or upgrade the file.

    All of it is one transaction, so a migration that fails, or is killed, leaves the file as it was; and of two
    processes that start together the second finds the work done.

    Returns:
        The copy that was made before an existing database was changed; None when there was nothing to change.

    Raises:
        ConfigurationError: the file belongs to a newer Hero or to another program, or has no directory.
        StoreError: it cannot be opened, locked or written.
    """
    _create(path)
    script = _migrations()
    engine = open_upgrade_engine(path, busy_timeout)
    try:
        _use_wal(path, busy_timeout)
        with _ALEMBIC, upgrading(engine, path) as connection:
            return _upgrade_inside(connection, script, path, at)
    finally:
        engine.dispose()


def is_current(path: Path, busy_timeout: timedelta) -> bool:
    """Whether the file has the tables that this Hero knows; False when a start would upgrade it. Changes nothing.

    Raises:
        ConfigurationError: the file belongs to a newer Hero or to another program.
        StoreError: it cannot be opened or read.
    """
    known = [migration.revision for migration in _migrations().walk_revisions()]
    engine = open_upgrade_engine(path, busy_timeout)
    try:
        with _ALEMBIC, translated(path), engine.connect() as connection:
            revision = _revision(connection, path)
    finally:
        engine.dispose()
    if revision is not None and revision not in known:
        raise _newer(path, revision, known[0])
    return revision == known[0]


def _upgrade_inside(connection: Connection, script: ScriptDirectory, path: Path, at: datetime) -> Path | None:
    known = [migration.revision for migration in script.walk_revisions()]
    revision = _revision(connection, path)
    if revision == known[0]:
        return None
    if revision is not None and revision not in known:
        raise _newer(path, revision, known[0])
    copy = _copy(path, path.with_name(f"{path.name}.{revision}-{at:%Y%m%dT%H%M%SZ}.backup")) if revision else None
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return copy


def _newer(path: Path, revision: str, newest: str) -> ConfigurationError:
    problem = (
        f"[bot] database: {path} was written by a newer Hero (its tables are of revision {revision}, "
        f"this one knows up to {newest}); install the newer Hero again, or put back the copy that it made first"
    )
    return ConfigurationError((problem,))


def _revision(connection: Connection, path: Path) -> str | None:
    """Return which revision the tables are of; None for a file without any."""
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if tables:
        problem = (
            f"[bot] database: {path} holds tables of another program ({', '.join(sorted(tables)[:3])}); "
            "name a file that is Hero's alone"
        )
        raise ConfigurationError((problem,))
    return None


def _create(path: Path) -> None:
    """Make sure of a file that only we can read: it holds what people wrote."""
    if not path.parent.is_dir():
        problem = f"[bot] database: the directory {path.parent} does not exist; create it, or name another file"
        raise ConfigurationError((problem,))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        msg = f"{path}: cannot be opened ({error.strerror}); let Hero's user read and write this file and its directory"
        raise StoreError(msg) from error


def _use_wal(path: Path, busy_timeout: timedelta) -> None:
    """Switch to write-ahead logging, which the file then remembers: readers do not wait for the writer."""
    with translated(path), closing(sqlite3.connect(path, timeout=busy_timeout.total_seconds())) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        msg = f"{path}: its file system does not allow write-ahead logging; put the database on a local disk"
        raise StoreError(msg)


def _copy(path: Path, copy: Path) -> Path:
    """Copy the database as it was last committed, what is still in the write-ahead log included."""
    partial = copy.with_name(f"{copy.name}.partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with translated(partial), closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(partial)) as target:
        source.backup(target)
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    return partial.replace(copy)


def _migrations() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    folder = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config
