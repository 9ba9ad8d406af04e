"""A lock that a submitting process carries with it, so that one that outlived a killed Hero is noticed.

The lock belongs to an open file that the child inherits: it is held as long as any process of the submission lives,
whatever became of Hero, and is gone with the last of them, whatever killed it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.model.value import RunId


class SubmissionUnderWayError(Exception):
    """Another submission of this run holds the lock."""


class SubmissionLocks:
    """One lock file a run, in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def hold(self, run_id: RunId) -> Iterator[int]:
        """Take the lock, and give the descriptor that the child must inherit.

        Raises:
            SubmissionUnderWayError: it is held.
            OSError: the lock file cannot be made.
        """
        descriptor = self._open(run_id)
        try:
            if not _take(descriptor, fcntl.LOCK_EX):
                raise SubmissionUnderWayError(run_id)
            yield descriptor
        finally:
            os.close(descriptor)

    def is_held(self, run_id: RunId) -> bool:
        """Whether any process holds the lock; True too when that cannot be found out."""
        try:
            descriptor = self._open(run_id)
        except OSError:
            return True
        try:
            return not _take(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _open(self, run_id: RunId) -> int:
        self._directory.mkdir(parents=True, exist_ok=True)
        return os.open(self._directory / f"{run_id}.submit.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _take(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
