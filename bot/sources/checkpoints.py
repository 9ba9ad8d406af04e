"""The saved states of a run: ``step-N`` directories, on a disk or in an object store.

What counts as complete is what the trainer itself would resume from: a ``metadata.json`` that parses and names this
very step; it is written last. The choice among them is ``bot.model.snapshot.newest_complete``.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import structlog

from bot.clock import Clock
from bot.errors import RefusedError, ServiceError, UnrecognisedError
from bot.model.contract import Contract
from bot.model.reading import Known, Reading
from bot.model.snapshot import Checkpoint
from bot.model.value import Value
from bot.sources.credentials import demand_none
from bot.sources.gaps import refused_by_store, unknown_of
from bot.threads import BoundedThreads

log = structlog.get_logger()

SERVICE = "checkpoints"
METADATA = "metadata.json"
METADATA_BYTES = 1_000_000
_STEP = re.compile(r"step-(\d{1,18})", re.ASCII)
_SUMS = (".crc32", ".crc32c", ".crc", ".md5", ".sha256")


class Entry(Value):
    """One name in a listing."""

    name: str
    """Last part of the path."""
    path: str
    is_directory: bool
    size_bytes: int = 0
    changed_at: datetime | None = None


class Metadata(Value):
    """What ``metadata.json`` says, as far as it counts here."""

    step: int
    is_temporary: bool
    saved_at: datetime | None
    """None when it is told without a zone: Levanter writes its own local time."""


class CheckpointReader:
    """Implements ``bot.sources.ports.CheckpointSource``."""

    def __init__(
        self,
        clock: Clock,
        *,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=30),
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take what is fixed for all runs.

        Args:
            clock: for the moment of the readings.
            threads: where object stores are asked; a call that hangs keeps its thread.
            deadline: of one reading of all roots.
            options: by protocol, e.g. ``{"s3": {"endpoint_url": …}}``, for fsspec.
        """
        self._clock = clock
        self._threads = threads or BoundedThreads(SERVICE, 4)
        self._deadline = deadline
        self._options = options or {}
        self._ignored: set[str] = set()

    async def checkpoints(self, contract: Contract) -> Reading[tuple[Checkpoint, ...]]:
        """List all candidates in all roots; one root that cannot be read makes the whole reading Unknown."""
        at = self._clock.now()
        try:
            found = await self._threads.call(self._read_all, contract, deadline=self._deadline, key=contract.run_id)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=found, at=at)

    def _read_all(self, contract: Contract) -> tuple[Checkpoint, ...]:
        found = [each for root in contract.roots for each in self._read_root(absolute(root, contract.checkout))]
        return tuple(sorted(found, key=lambda each: (each.step, each.path)))

    def _read_root(self, root: str) -> list[Checkpoint]:
        demand_none(SERVICE, root)
        try:
            store = _Store(root, self._options)
            listing = store.list(store.root) or []
            candidates = [(step, each) for each in listing if (step := self._step_of(each)) is not None]
            found = (self._read_candidate(store, step, each) for step, each in candidates)
            return [each for each in found if each]
        except ServiceError:
            raise
        except Exception as error:
            raise refused_by_store(SERVICE, root, error) from error

    def _step_of(self, entry: Entry) -> int | None:
        """Return the step in a name, as a number: as text 100000 comes before 0900000 (field report R23)."""
        parsed = _STEP.fullmatch(entry.name)
        if parsed and entry.is_directory:
            return int(parsed[1])
        if entry.path not in self._ignored:
            self._ignored.add(entry.path)
            log.info("checkpoint_name_ignored", path=entry.path)
        return None

    def _read_candidate(self, store: "_Store", step: int, entry: Entry) -> Checkpoint | None:
        """Look into one ``step-N``; None when it has been deleted since it was listed."""
        listing = store.list(entry.path)
        if listing is None:
            return None
        metadata_entry = next((each for each in listing if each.name == METADATA and not each.is_directory), None)
        leftovers = sorted(each.name for each in listing if is_leftover(each.name))
        raw = store.read(metadata_entry) if metadata_entry else None
        told = parse_metadata(raw, step) if raw is not None else f"{METADATA} is missing"
        faults = [told] if isinstance(told, str) else []
        if leftovers:
            faults.append(f"the save is not clean: {', '.join(leftovers)[:200]} is still there")
        metadata = told if isinstance(told, Metadata) else None
        return Checkpoint(
            step=step,
            path=store.shown(entry.path),
            is_complete=metadata is not None,
            is_temporary=metadata is not None and metadata.is_temporary,
            saved_at=(metadata_entry and metadata_entry.changed_at) or (metadata and metadata.saved_at) or None,
            fault="; ".join(faults),
        )


class _Store:
    """One file system of fsspec, asked anew every time: its listings are kept by default (field report R27)."""

    def __init__(self, root: str, options: dict[str, dict[str, Any]]) -> None:
        protocol = root.partition("://")[0] if "://" in root else "file"
        chosen = {"use_listings_cache": False, **options.get(protocol, {})}
        self._files, path = fsspec.core.url_to_fs(root, **chosen)
        self.root = str(path).rstrip("/")
        self._is_local = protocol in {"file", "local"}

    def list(self, path: str) -> list[Entry] | None:
        """Return what is in a directory; None when there is no such directory.

        Raises:
            ServiceError: it is a file, or its bucket does not exist.
        """
        self._files.invalidate_cache(path)
        try:
            listing = self._files.ls(path, detail=True)
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error.__cause__):
                raise RefusedError(SERVICE, f"{path}: there is no such bucket; mend the contract's roots") from error
            return None
        entries = [_entry(each) for each in listing]
        if any(each.path == path and not each.is_directory and each.size_bytes for each in entries):
            raise UnrecognisedError(SERVICE, f"{path} is a file; a directory is expected there")
        # Object stores may list an empty object that stands for the directory itself.
        return [each for each in entries if each.path != path]

    def read(self, entry: Entry) -> bytes | None:
        """Return a small file, cut at what no metadata reaches; None when it has gone since it was listed."""
        if not entry.size_bytes:
            return b""
        try:
            return bytes(self._files.cat_file(entry.path, start=0, end=min(entry.size_bytes, METADATA_BYTES)))
        except FileNotFoundError:
            return None

    def shown(self, path: str) -> str:
        """Return the path as the trainer would say it."""
        return path if self._is_local else str(self._files.unstrip_protocol(path))


def absolute(root: str, checkout: str) -> str:
    """Return a root with its scheme, or as a path below the checkout."""
    return root if "://" in root else str(Path(checkout, root).absolute())


def is_leftover(name: str) -> bool:
    """Whether a name beside ``metadata.json`` is what an unfinished or refused rename leaves (field report R26)."""
    plain = name.removeprefix(".")
    return name != METADATA and plain.startswith(("metadata.json", "metadata.tmp")) and not plain.endswith(_SUMS)


def parse_metadata(raw: bytes, step: int) -> Metadata | str:
    """Return what a ``metadata.json`` says, or why it does not make the checkpoint complete. Pure; never raises."""
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        return f"{METADATA} is no JSON"
    if not isinstance(fields, dict):
        return f"{METADATA} is no JSON object"
    told = fields.get("step")
    if isinstance(told, bool) or not isinstance(told, int):
        return f"{METADATA} has no step"
    if told != step:
        return f"{METADATA} says step {told}"[:200]
    return Metadata(
        step=told, is_temporary=fields.get("is_temporary") is True, saved_at=_moment(fields.get("timestamp"))
    )


def _moment(raw: object) -> datetime | None:
    match raw:
        case str():
            parse: Callable[[Any], datetime] = datetime.fromisoformat
        case int() | float() if not isinstance(raw, bool):
            parse = _from_epoch
        case _:
            return None
    try:
        moment = parse(raw)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError, OSError):
        return None


def _from_epoch(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _entry(listed: dict[str, Any]) -> Entry:
    path = str(listed["name"]).rstrip("/")
    changed = next(
        (listed[key] for key in ("mtime", "LastModified", "last_modified", "updated") if listed.get(key)), None
    )
    is_directory = listed["type"] == "directory" or (
        listed.get("islink") is True and Path(path).is_dir()  # fsspec calls a link in a listing "other"
    )
    return Entry(
        name=path.rpartition("/")[2],
        path=path,
        is_directory=is_directory,
        size_bytes=int(listed.get("size") or 0),
        changed_at=_moment(changed) if not isinstance(changed, datetime) else changed.astimezone(UTC),
    )
