"""``hero run`` on a disk that is full for as long as there is a file ``full`` beside the configuration.

Only the size of the database is bounded; that nothing more fits, SQLite itself finds out and says.
"""

import sys
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine

import bot.store.store
from bot.commands.run import run
from bot.store.engine import open_engine
from bot.store.file import DatabaseFile

CONFIG = Path(sys.argv[sys.argv.index("--config") + 1])
FULL = CONFIG.with_name("full")
NO_LIMIT = 2**30


def open_bounded(file: DatabaseFile, busy_timeout: timedelta) -> AsyncEngine:
    engine = open_engine(file, busy_timeout)

    def crowd(connection: Connection) -> None:
        is_writer = "hero_begin" in connection.get_execution_options()
        is_full = is_writer and FULL.exists()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {1 if is_full else NO_LIMIT}")
        if is_full:
            connection.exec_driver_sql("CREATE TABLE filler (content BLOB)")
            connection.exec_driver_sql("INSERT INTO filler VALUES (zeroblob(50000000))")

    event.listen(engine.sync_engine, "begin", crowd)
    return engine


bot.store.store.open_engine = open_bounded  # type: ignore[attr-defined] # the name that the store itself uses

if __name__ == "__main__":
    sys.exit(run(CONFIG))
