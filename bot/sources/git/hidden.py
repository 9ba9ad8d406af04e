"""Changed files of which git was told to say nothing: ``git update-index --assume-unchanged`` and ``--skip-worktree``.

``git status`` calls a tree clean whatever such a file holds. A file that a sparse checkout leaves out carries the same
mark and is not there: that is no change.
"""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bot.errors import UnrecognisedError
from bot.sources.git.failure import SERVICE
from bot.sources.git.parsing import Entry
from bot.sources.git.program import Git, Left
from bot.threads import BoundedThreads

_LISTED = re.compile(rb"([A-Za-z?]) (\d{6}) ([0-9a-f]{40,64}) [0-3]\t(.+)", re.DOTALL)
_SPARSE = b"S"
_REPOSITORY = b"160000"
_AT_ONCE = 200
"""So many names are given to one command: a command line has a bound."""


class Marked(NamedTuple):
    """A path with such a mark."""

    path: bytes
    sha: str
    """Of the content that git knows."""
    is_repository: bool
    may_be_absent: bool


def parse_marked(printed: bytes) -> tuple[Marked, ...]:
    """Read ``git ls-files -v -s -z``: what has a mark.

    Raises:
        UnrecognisedError: it is not that, or it ends in the middle.
    """
    found: list[Marked] = []
    *records, rest = printed.split(b"\0")
    for record in records:
        if record[:1].isupper() and not record.startswith(_SPARSE):
            continue
        listed = _LISTED.fullmatch(record)
        if listed is None:
            rest = record
            break
        tag, mode, sha, path = listed.groups()
        found.append(Marked(path, sha.decode(), mode == _REPOSITORY, tag == _SPARSE))
    if rest:
        raise UnrecognisedError(SERVICE, f"git's ls-files reads {rest[:80]!r}, which is not known here")
    return tuple(found)


async def read_hidden(git: Git, threads: BoundedThreads, top: Path, left: Left) -> tuple[Entry, ...]:
    """Return the paths with a mark whose content is another than git knows.

    Raises:
        ServiceError: git or the file system could not say.
    """
    told = await git.run(top, "ls-files", "-v", "-s", "-z", left=left)
    marked = parse_marked(told.stdout_raw)
    if not marked:
        return ()
    kinds = await threads.call(_kinds, top, marked, deadline=left.get())
    files = [each for each, kind in zip(marked, kinds, strict=True) if kind == "file" and not each.is_repository]
    now: dict[bytes, str] = {}
    for start in range(0, len(files), _AT_ONCE):
        some = files[start : start + _AT_ONCE]
        names = (os.fsdecode(each.path) for each in some)
        hashed = await git.run(top, "hash-object", "--", *names, left=left)
        now |= dict(zip((each.path for each in some), hashed.stdout.split(), strict=True))
    return tuple(
        Entry(each.path, is_known=True, is_repository=each.is_repository)
        for each, kind in zip(marked, kinds, strict=True)
        if not (kind == "absent" and each.may_be_absent) and now.get(each.path) != each.sha
    )


def _kinds(top: Path, marked: Iterable[Marked]) -> list[str]:
    return [_kind(os.path.join(os.fsencode(top), each.path)) for each in marked]  # noqa: PTH118 - it may be no text


def _kind(path: bytes) -> str:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    return "file" if stat.S_ISREG(status.st_mode) else "other"
