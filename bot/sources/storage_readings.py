"""What the launch checklist has to know of a contract's addresses; implements ``bot.preparing.StorageReadings``.

Every question is asked in a worker thread with a deadline of its own, and whatever goes wrong with one address is an
Unknown of that address: an output tree that cannot be listed is not an empty one (field report R25).
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from bot.clock import Clock
from bot.errors import RefusedError, ServiceError
from bot.model.addresses import addresses_of, is_in_store, is_remote, parent_of, step_in
from bot.model.contract import Contract
from bot.model.preflight import Location
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import Checkpoint, newest_complete
from bot.redaction import shows_secret
from bot.sources.buckets import Bucket, store_at
from bot.sources.checkpoints import absolute
from bot.sources.credentials import demand_none
from bot.sources.gaps import is_forbidden, refused_by_store, refused_by_system, unknown_of
from bot.sources.ports import CheckpointSource
from bot.sources.storage import SERVICE, directory_at
from bot.threads import BoundedThreads

_THREADS = 4


class StorageReader:
    """Looks at addresses; changes nothing."""

    def __init__(
        self,
        checkpoints: CheckpointSource,
        clock: Clock,
        *,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=20),
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take what is fixed for all runs.

        Args:
            checkpoints: reads what ``step-N`` there are in a root.
            clock: for the moment of the readings.
            threads: where storage is asked.
            deadline: of one look at one address.
            options: by protocol, for fsspec.
        """
        self._checkpoints = checkpoints
        self._clock = clock
        self._threads = threads or BoundedThreads("storage", _THREADS)
        self._places = asyncio.Semaphore(_THREADS)
        self._deadline = deadline
        self._options = options or {}

    async def start(self, contract: Contract) -> Reading[tuple[Checkpoint, ...]]:
        """Return the checkpoints beside ``initialize_from``, itself among them.

        One that names no step is taken for a root, so that what lies in it can be told. A path that is not there is
        Unknown for a run on other machines: it may well be there.
        """
        address = contract.initialize_from
        if address is None:
            return Known(value=(), at=self._clock.now())
        address = absolute(address.rstrip("/"), contract.checkout)
        root = parent_of(address) if step_in(address) is not None else address
        beside = contract.model_copy(update={"checkpoint_roots": (root,), "resume_root": None})
        found = await self._checkpoints.checkpoints(beside)
        is_elsewhere = contract.orchestrator.kind != "local" and not is_remote(root)
        if is_elsewhere and isinstance(found, Known) and not found.value:
            detail = f"{root} is no directory that Hero sees; mount it there too, or name an address"
            return Unknown(reason=Gap.REFUSED, detail=detail, at=found.at)
        return found

    async def checkpoint_bytes(
        self, contract: Contract, checkpoints: Reading[tuple[Checkpoint, ...]]
    ) -> Reading[int | None]:
        """Measure the newest complete checkpoint of the run; Known(None) when there is none."""
        if isinstance(checkpoints, Unknown):
            return checkpoints
        newest = newest_complete(checkpoints.value)
        if newest is None:
            return Known(value=None, at=self._clock.now())
        path = absolute(newest.path, contract.checkout)
        return await self._ask(lambda: directory_at(path, self._options).size_bytes())

    async def locations(self, contract: Contract) -> dict[str, Reading[Location]]:
        """Return what is known of each address, by the contract's field.

        Left out is what cannot be seen from here: addresses that are no object store's, and paths of other machines.
        ``initialize_from`` is among them where it may be a path: a model of a hub is written like one.
        """
        start = () if contract.initialize_from is None else (("initialize_from", contract.initialize_from),)
        named = (*addresses_of(contract), *(each for each in start if not is_remote(each[1])))
        fields = {field: absolute(address, contract.checkout) for field, address in named}
        seen = {field: each for field, each in fields.items() if is_in_store(each) or not is_remote(each)}
        names = sorted({_bucket_of(each) for each in seen.values() if is_in_store(each) and not shows_secret(each)})
        told = await asyncio.gather(*(self._ask(partial(self._bucket, name)) for name in names))
        buckets = dict(zip(names, told, strict=True))
        found = await asyncio.gather(*(self._location(each, buckets) for each in seen.values()))
        is_here = contract.orchestrator.kind == "local"
        return {
            field: reading
            for (field, each), reading in zip(seen.items(), found, strict=True)
            if is_here or is_remote(each) or (isinstance(reading, Known) and reading.value.exists)
        }

    async def _location(self, address: str, buckets: dict[str, Reading[Bucket]]) -> Reading[Location]:
        try:
            demand_none(SERVICE, address)
        except RefusedError as error:
            return unknown_of(error, self._clock.now())
        if not is_in_store(address):
            return await self._ask(lambda: _on_disk(address))
        bucket = buckets[_bucket_of(address)]
        if isinstance(bucket, Unknown):
            return bucket
        if not bucket.value.is_there:
            return Known(value=Location(address=address, exists=False, has_bucket=False), at=bucket.at)
        return await self._ask(lambda: self._in_bucket(address, bucket.value))

    def _bucket(self, address: str) -> Bucket:
        try:
            return store_at(address, self._options).bucket(address.partition("://")[2])
        except Exception as error:
            raise _refused(address, error) from error

    def _in_bucket(self, address: str, bucket: Bucket) -> Location:
        name, _, key = address.partition("://")[2].partition("/")
        key = key.strip("/")
        try:
            exists = store_at(address, self._options).holds(name, key)
        except Exception as error:
            raise _refused(address, error) from error
        return Location(
            address=address,
            exists=exists,
            region=bucket.region,
            expires_days=bucket.expires_days(key),
            is_told=bucket.rules is not None,
        )

    async def _ask[T](self, question: Callable[[], T]) -> Reading[T]:
        try:
            async with self._places:
                value = await self._threads.call(question, deadline=self._deadline)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        return Known(value=value, at=self._clock.now())


def _on_disk(address: str) -> Location:
    path = Path(address.removeprefix("file://"))
    try:
        exists = path.is_file() or (path.is_dir() and any(path.iterdir()))
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    return Location(address=address, exists=exists)


def _refused(address: str, error: Exception) -> ServiceError:
    if is_forbidden(error):
        detail = f"{address}: this account may not list it; what is there cannot be verified until it may"
        return RefusedError(SERVICE, detail)
    return refused_by_store(SERVICE, address, error)


def _bucket_of(address: str) -> str:
    """Return ``gs://bucket`` of an address."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"
