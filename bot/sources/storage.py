"""One directory of a run in its storage: how large it is, and how it is taken away. A disk, or any fsspec object store.

Blocking: callers run these in worker threads. Whether something may be deleted is decided elsewhere
(``bot/actions/cleanup.py``); here is only seen to it that nothing beside it goes.
"""

import os
import shutil
from pathlib import Path
from typing import Any, Protocol

import fsspec

from bot.errors import RefusedError, UnrecognisedError
from bot.sources.credentials import demand_none
from bot.sources.gaps import refused_by_store, refused_by_system

SERVICE = "checkpoints"
_METADATA = "metadata.json"


class Directory(Protocol):
    """A directory by its absolute path or address. Every method raises ServiceError when the storage can't be asked."""

    def size_bytes(self) -> int | None:
        """Return the size of everything below it; None when it is not there."""
        ...

    def exists(self) -> bool:
        """Return whether anything is there."""
        ...

    def remove(self) -> None:
        """Delete it and everything below it. Safe to repeat.

        ``metadata.json`` goes first: what is left of a deletion that was cut short must not look complete.
        """
        ...


def directory_at(address: str, options: dict[str, dict[str, Any]] | None = None) -> Directory:
    """Return the directory at an absolute path or an address such as ``gs://bucket/run/checkpoints/step-9``.

    Raises:
        RefusedError: no such kind of file system is installed, or the address holds credentials.
    """
    demand_none(SERVICE, address)
    if "://" not in address:
        return _OnDisk(Path(address))
    return _InStore(address, (options or {}).get(address.partition("://")[0], {}))


class _OnDisk:
    """Never follows a link out of the directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def size_bytes(self) -> int | None:
        if not self.exists():
            return None
        try:
            return sum(
                os.lstat(Path(above, name)).st_size
                for above, _, names in os.walk(self._path, onerror=_raise)
                for name in names
            )
        except OSError as error:
            raise refused_by_system(SERVICE, error) from error

    def exists(self) -> bool:
        try:
            os.lstat(self._path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise refused_by_system(SERVICE, error) from error
        return True

    def remove(self) -> None:
        try:
            if self._path.is_symlink():
                raise RefusedError(SERVICE, f"{self._path} is a link; delete by hand what it points to")
            Path(self._path, _METADATA).unlink(missing_ok=True)
            shutil.rmtree(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise refused_by_system(SERVICE, error) from error


class _InStore:
    def __init__(self, address: str, options: dict[str, Any]) -> None:
        self._address = address.rstrip("/")
        try:
            self._files, path = fsspec.core.url_to_fs(self._address, **{"use_listings_cache": False, **options})
        except (ImportError, ValueError) as error:
            raise RefusedError(SERVICE, f"{address}: {error}") from error
        self._path = str(path).rstrip("/")

    def size_bytes(self) -> int | None:
        found = self._list()
        return sum(found.values()) if found else None

    def exists(self) -> bool:
        return bool(self._list())

    def remove(self) -> None:
        found = self._list()
        beside = next((name for name in found if not name.startswith(f"{self._path}/")), None)
        if beside is not None:
            raise UnrecognisedError(SERVICE, f"{self._address}: its listing names {beside}, which is not below it")
        try:
            for name in sorted(found, key=lambda each: (each != f"{self._path}/{_METADATA}", each)):
                self._files.rm_file(name)
        except FileNotFoundError:
            return
        except Exception as error:
            raise refused_by_store(SERVICE, self._address, error) from error

    def _list(self) -> dict[str, int]:
        """Return every file below it with its size."""
        try:
            self._files.invalidate_cache()
            found = self._files.find(f"{self._path}/", detail=True)
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise refused_by_store(SERVICE, self._address, error) from error
        # Where nothing lies below it, fsspec names an object of that very key, which is no part of the directory.
        return {str(name): int(entry.get("size") or 0) for name, entry in found.items() if str(name) != self._path}


def _raise(error: OSError) -> None:
    raise error
