"""Which files the database is.

SQLite itself goes on in files that were deleted, and nobody finds again what it stores there. Beside the database lie
two files of its own: ``-wal`` holds what was committed last, and ``-shm`` is how several processes agree on it. Both
come and go with the first and the last open connection, and never while one is open.
"""

import os
from pathlib import Path

from bot.errors import StoreError

_BESIDE = ("-wal", "-shm")


class DatabaseFile:
    """The files at a path as they were when Hero opened them, told from any other by device and inode.

    An inode is not given away while a file is open, so a new file at the path never looks like the old one.
    """

    def __init__(self, path: Path) -> None:
        """Remember the file that is there now.

        Raises:
            StoreError: there is none.
        """
        self.path = path
        self._identity = _identity(path)
        self._beside: dict[str, tuple[int, int]] = {}
        self._connections = 0
        if self._identity is None:
            raise self._gone()

    def connected(self) -> None:
        """Hear that a connection was opened."""
        self._connections += 1

    def disconnected(self) -> None:
        """Hear that a connection is about to be closed; the last one rightly takes what lies beside the database."""
        self._connections -= 1
        if not self._connections:
            self._beside.clear()

    def used(self) -> None:
        """Hear that an open connection has read or written, so that what lies beside the database must stay now."""
        for suffix in _BESIDE:
            if suffix not in self._beside and (found := _identity(self._path_of(suffix))) is not None:
                self._beside[suffix] = found

    def check(self) -> None:
        """Make sure that the paths still lead to these files; costs three stats.

        Raises:
            StoreError: one leads to another file or to none.
        """
        if _identity(self.path) != self._identity:
            raise self._gone()
        for suffix, identity in self._beside.items():
            if _identity(self._path_of(suffix)) != identity:
                raise self._lost(suffix)

    def _path_of(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def _gone(self) -> StoreError:
        return StoreError(
            f"{self.path}: the database file was removed or replaced under Hero; "
            "stop Hero and put it back, or begin a new one by starting Hero again"
        )

    def _lost(self, suffix: str) -> StoreError:
        return StoreError(
            f"{self._path_of(suffix)}: was removed or replaced under Hero, and belongs to its database; stop Hero with "
            f"SIGTERM, whereupon it writes what it still holds into {self.path.name}, and start it again"
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - the plain call, made before every transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino
