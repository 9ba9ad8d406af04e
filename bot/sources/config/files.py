"""Reads one small file, from a disk or from an object store: as it is now, and never more than it may be."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec

from bot.errors import ServiceError, UnrecognisedError
from bot.model.value import Value
from bot.regular_files import open_regular
from bot.sources.config.parse import SERVICE
from bot.sources.credentials import demand_none
from bot.sources.gaps import refused_by_store, refused_by_system
from bot.sources.metric_rows import parse_moment

FILE_BYTES = 4 * 1024 * 1024
"""A larger configuration is another file."""

_CHANGED = ("mtime", "LastModified", "last_modified", "updated", "created")


class ReadFile(Value):
    """What a file holds, and when it was last written."""

    raw: bytes
    changed_at: datetime | None
    """None when the store does not tell."""


def read_file(address: str, options: dict[str, dict[str, Any]]) -> ReadFile | None:
    """Return a file as it is now; None when there is none.

    Args:
        address: with a scheme, or an absolute path.
        options: for fsspec, by protocol.

    Raises:
        ServiceError: it may not be read, is no file, is too large, or its address holds credentials.
    """
    demand_none(SERVICE, address)
    scheme, _, path = address.partition("://") if "://" in address else ("file", "", address)
    if scheme in {"file", "local"}:
        return _local(Path(path))
    try:
        return _remote(address, options.get(scheme, {}))
    except ServiceError:
        raise
    except FileNotFoundError:
        return None
    except Exception as error:
        raise refused_by_store(SERVICE, address, error) from error


def _local(path: Path) -> ReadFile | None:
    try:
        with open_regular(path) as file:
            raw = file.read(FILE_BYTES + 1)
            changed = os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    _demand_small(str(path), len(raw))
    return ReadFile(raw=raw, changed_at=datetime.fromtimestamp(changed, UTC))


def _remote(address: str, options: dict[str, Any]) -> ReadFile:
    files, path = fsspec.core.url_to_fs(address, **{"use_listings_cache": False, **options})
    files.invalidate_cache()
    told = files.info(path)
    if told.get("type") != "file":
        raise UnrecognisedError(SERVICE, f"{address} is no file")
    size = told.get("size")
    if isinstance(size, int):
        _demand_small(address, size)
    raw = (
        bytes(files.cat_file(path, start=0, end=size if isinstance(size, int) else FILE_BYTES + 1))
        if size != 0
        else b""
    )
    _demand_small(address, len(raw))
    return ReadFile(raw=raw, changed_at=_moment(next((told[key] for key in _CHANGED if told.get(key)), None)))


def _demand_small(address: str, size: int) -> None:
    if size > FILE_BYTES:
        raise UnrecognisedError(SERVICE, f"{address} is larger than {FILE_BYTES} bytes; is it the right file?")


def _moment(told: object) -> datetime | None:
    if isinstance(told, datetime):
        return told.astimezone(UTC) if told.tzinfo else None
    return parse_moment(told)
