"""Digests what lies in a work tree: the same for the same content, whatever git's version and settings. Blocking."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bot.errors import DeadlineError
from bot.model.contract import Contract
from bot.model.harmless import literally
from bot.sources.gaps import refused_by_system
from bot.sources.git.failure import SERVICE
from bot.sources.git.parsing import Entry

FILE_LIMIT_BYTES = 64 * 2**20
WHOLE_LIMIT_BYTES = 2**30
_CHUNK_BYTES = 2**20


def digest_of(
    top: Path, entries: Iterable[Entry], inner: Mapping[bytes, str], is_late: Callable[[], bool] = lambda: False
) -> str:
    """Return a SHA-256 over kind and content of every path; empty when there is no path.

    Args:
        top: what the paths are relative to.
        entries: the paths.
        inner: of each repository inside this one its commit and the digest of its own difference.
        is_late: asked between the pieces.

    Raises:
        DeadlineError: ``is_late`` said so.
        ServiceError: a file cannot be read.
    """
    digest = hashlib.sha256()
    rest = WHOLE_LIMIT_BYTES
    count = 0
    for entry in entries:
        count += 1
        path = os.path.join(os.fsencode(top), entry.path.rstrip(b"/"))  # noqa: PTH118 - the name may be no text
        try:
            parts, read = _looked_at(path, min(rest, FILE_LIMIT_BYTES), is_late)
        except OSError as error:
            raise refused_by_system(SERVICE, error) from error
        rest -= read
        for part in (entry.path, *parts, inner.get(entry.path, "").encode()):
            digest.update(b"%d:" % len(part))
            digest.update(part)
    return digest.hexdigest() if count else ""


def own_globs(contract: Contract, top: Path, prefix: str) -> tuple[str, ...]:
    """Return globs of what the run itself writes below its checkout: that changes while it runs, and is no code.

    Args:
        contract: of the run.
        top: the checkout's top level, as git names it.
        prefix: the contract's checkout below it.
    """
    orchestrator = contract.orchestrator
    stated = (
        contract.output_root,
        *contract.roots,
        contract.export_root,
        contract.traces_root,
        contract.session_root,
        contract.spill,
        contract.metrics.file,
        orchestrator.directory if orchestrator.kind == "local" else None,
    )
    found: dict[str, None] = {}
    real_top = os.path.realpath(top)
    checkout = os.path.join(real_top, prefix).rstrip("/")  # noqa: PTH118 - paths as text
    for path in stated:
        if not path or "://" in path:
            continue
        whole = os.path.realpath(os.path.join(checkout, path))  # noqa: PTH118 - as above
        if f"{checkout}/".startswith(f"{whole}/"):
            continue  # the checkout itself, or what is above it: that would excuse everything
        relative = os.path.relpath(whole, real_top)
        if not relative.startswith(".."):
            found[literally(relative)] = None
    return tuple(found)


def is_repository(directory: Path) -> bool:
    """Return whether a repository of its own lies there; git itself would look in the directories above too."""
    return os.path.lexists(directory / ".git")


def _looked_at(path: bytes, limit: int, is_late: Callable[[], bool]) -> tuple[tuple[bytes, ...], int]:
    """Return kind and content of a path, and how many bytes of it were read."""
    if is_late():
        raise DeadlineError(SERVICE, "the changed files could not be read in time; let .gitignore name outputs")
    try:
        status = os.lstat(path)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return (b"absent",), 0
        raise
    if stat.S_ISLNK(status.st_mode):
        return (b"link", os.readlink(path)), 0  # noqa: PTH115 - the name may be no text
    if stat.S_ISDIR(status.st_mode):
        return (b"directory",), 0
    if not stat.S_ISREG(status.st_mode):
        return (b"other",), 0
    executable = b"x" if status.st_mode & stat.S_IXUSR else b"-"
    content, read = _content(path, limit, is_late)
    if status.st_size > read:
        return (b"file", executable, content, b"%d" % status.st_size, b"%d" % status.st_mtime_ns), read
    return (b"file", executable, content), read


def _content(path: bytes, limit: int, is_late: Callable[[], bool]) -> tuple[bytes, int]:
    digest, read = hashlib.sha256(), 0
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        while read < limit and (chunk := file.read(min(_CHUNK_BYTES, limit - read))):
            digest.update(chunk)
            read += len(chunk)
            if is_late():
                raise DeadlineError(SERVICE, "the changed files could not be read in time; let .gitignore name outputs")
    return digest.digest(), read
