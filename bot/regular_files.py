"""Opens files that other programs put in place, and only such that cannot hang: a pipe there would wait for a writer.

A network file system may hang with regular files too; no flag of the system helps against that.
"""

import errno
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_PATIENCE_S = 30.0
"""For the first byte of a pipe."""


class NotRegularError(OSError):
    """A pipe, socket or device stands where a file should be. Mend: remove it."""


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file, or what a link to one leads to, for reading.

    Raises:
        NotRegularError: it is none; a directory raises ``IsADirectoryError`` as ever.
        OSError: the system refused.
    """
    regular_status(path)  # a device may act on being opened, so it is looked at first
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        _demand_regular(os.fstat(handle), path)  # it may have been swapped since
        yield file


@contextmanager
def open_stream(path: Path, *, patience_s: float = _PATIENCE_S) -> Iterator[BinaryIO]:
    """Open a regular file, or a pipe that somebody writes to (``<(zcat log.gz)`` of a shell is one).

    Args:
        path: of it.
        patience_s: something must have come through a pipe by then.

    Raises:
        NotRegularError: it is a device or a socket, or a pipe through which nothing comes: those may never end.
        OSError: the system refused.
    """
    if not stat.S_ISFIFO(path.stat().st_mode):
        with open_regular(path) as file:
            yield file
        return
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(patience_s * 1000):
            why = f"it is a pipe into which nobody wrote for {patience_s:g} s"
            raise NotRegularError(errno.EINVAL, why, str(path))
        os.set_blocking(handle, True)
        yield file


def regular_status(path: Path) -> os.stat_result:
    """Return the status of a regular file, without opening it.

    Raises:
        OSError: as for ``open_regular``.
    """
    status = path.stat()
    _demand_regular(status, path)
    return status


def _demand_regular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(errno.EINVAL, "it is no regular file", str(path))
