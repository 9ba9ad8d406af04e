"""Which file the database is.

SQLite itself goes on in a file that was deleted, and nobody finds again what it stores there.
"""

import os
from pathlib import Path

from bot.errors import StoreError


class DatabaseFile:
    """The file at a path as it was when Hero opened it, told from any other by device and inode.

    An inode is not given away while a file is open, so a new file at the path never looks like the old one.
    """

    def __init__(self, path: Path) -> None:
        """Remember the file that is there now.

        Raises:
            StoreError: there is none.
        """
        self.path = path
        self._identity = _identity(path)
        if self._identity is None:
            raise self._gone()

    def check(self) -> None:
        """Make sure that the path still leads to this file; costs one stat.

        Raises:
            StoreError: it leads to another file or to none.
        """
        if _identity(self.path) != self._identity:
            raise self._gone()

    def _gone(self) -> StoreError:
        return StoreError(
            f"{self.path}: the database file was removed or replaced under Hero; "
            "stop Hero and put it back, or begin a new one by starting Hero again"
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - the plain call, made before every transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino
