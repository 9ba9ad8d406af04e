"""What git prints with ``-z``, read: paths stay bytes here, since a file's name need not be text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.errors import UnrecognisedError
from bot.sources.git.failure import SERVICE

_SHA = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FIELDS = {b"1": 8, b"2": 9, b"u": 10}
"""How many fields stand before the path of a changed, a renamed and an unmerged entry (git-status, "Porcelain Format
Version 2")."""
_SUBMODULE_AT = 2


@dataclass(frozen=True)
class Entry:
    """One path of the work tree that differs from what is checked out."""

    path: bytes
    """Relative to the top level; with a slash at its end when it is a repository that git does not know."""
    is_known: bool
    """False when git does not know the file."""
    is_repository: bool = False
    """Whether it is a submodule, or another repository inside this one."""


@dataclass(frozen=True)
class Status:
    """What ``git status`` says."""

    head: str
    """Empty when there is no commit yet."""
    branch: str
    """Empty when no branch is checked out."""
    entries: tuple[Entry, ...]
    """Sorted by path, each path once."""


def say_path(path: bytes) -> str:
    r"""Return a path as text; a byte that is not UTF-8 is written as ``\xff``."""
    return path.decode(errors="backslashreplace")


def parse_status(printed: bytes) -> Status:
    """Read ``git status --porcelain=v2 --branch -z``.

    Raises:
        UnrecognisedError: it is not that, or it ends in the middle.
    """
    head: str | None = None
    branch: str | None = None
    entries: dict[bytes, Entry] = {}
    records = _records(printed)
    for record in records:
        kind, _, rest = record.partition(b" ")
        if kind == b"#":
            name, _, value = rest.partition(b" ")
            if name == b"branch.oid":
                head = _head(value)
            elif name == b"branch.head":
                branch = "" if value == b"(detached)" else say_path(value)
        elif kind in _FIELDS:
            for entry in _known(kind, rest, records):
                entries[entry.path] = entry
        elif kind == b"?" and rest:
            entries[rest] = Entry(rest, is_known=False, is_repository=rest.endswith(b"/"))
        elif kind != b"!":
            raise _odd("status", record)
    if head is None or branch is None:
        raise _odd("status", b"no branch.oid or no branch.head")
    return Status(head, branch, tuple(entries[path] for path in sorted(entries)))


def with_hidden(status: Status, hidden: Iterable[Entry]) -> Status:
    """Return a status that names these paths too."""
    entries = {each.path: each for each in (*hidden, *status.entries)}
    return Status(status.head, status.branch, tuple(entries[path] for path in sorted(entries)))


def parse_changes(printed: bytes) -> tuple[bytes, ...]:
    """Return the paths of ``git diff-tree -r --name-status -z``, sorted; of a rename both.

    Raises:
        UnrecognisedError: it is not that, or it ends in the middle.
    """
    found: set[bytes] = set()
    records = _records(printed)
    for record in records:
        if not re.fullmatch(rb"[ACDMRTUXB][0-9]*", record):
            raise _odd("diff-tree", record)
        for _ in range(2 if record[:1] in {b"R", b"C"} else 1):
            path = next(records, b"")
            if not path:
                raise _odd("diff-tree", record)
            found.add(path)
    return tuple(sorted(found))


def parse_lines(printed: bytes, count: int) -> tuple[str, ...]:
    """Return exactly ``count`` lines.

    Raises:
        UnrecognisedError: there are more or fewer.
    """
    lines = printed.split(b"\n")
    if len(lines) != count + 1 or lines[-1]:
        raise _odd("rev-parse", printed)
    return tuple(line.decode(errors="surrogateescape") for line in lines[:-1])


def _head(value: bytes) -> str:
    if value == b"(initial)":
        return ""
    if not _SHA.fullmatch(value):
        raise _odd("status", value)
    return value.decode()


def _known(kind: bytes, rest: bytes, records: Iterator[bytes]) -> Iterator[Entry]:
    fields = rest.split(b" ", _FIELDS[kind] - 1)
    if len(fields) != _FIELDS[kind] or not fields[-1]:
        raise _odd("status", rest)
    is_repository = fields[_SUBMODULE_AT - 1].startswith(b"S")
    yield Entry(fields[-1], is_known=True, is_repository=is_repository)
    if kind == b"2":
        before = next(records, b"")
        if not before:
            raise _odd("status", rest)
        yield Entry(before, is_known=True)


def _records(printed: bytes) -> Iterator[bytes]:
    if printed and not printed.endswith(b"\0"):
        raise _odd("output", printed[-80:])
    return iter(printed.split(b"\0")[:-1])


def _odd(verb: str, seen: bytes) -> UnrecognisedError:
    return UnrecognisedError(SERVICE, f"git's {verb} reads {seen[:80]!r}, which is not known here; Hero needs git 2.31")
