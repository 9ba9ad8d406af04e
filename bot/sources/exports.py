"""What lies at a run's export root: whether the durable export is there at all."""

from datetime import timedelta
from typing import Any

from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.contract import Contract
from bot.model.reading import Known, Reading
from bot.sources.checkpoints import absolute
from bot.sources.gaps import unknown_of
from bot.sources.storage import SERVICE, directory_at
from bot.threads import BoundedThreads


class ExportReader:
    """Reads export roots."""

    def __init__(
        self,
        clock: Clock,
        *,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=30),
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take what is fixed for all runs; as ``CheckpointReader``."""
        self._clock = clock
        self._threads = threads or BoundedThreads(SERVICE, 2)
        self._deadline = deadline
        self._options = options

    async def exported_bytes(self, contract: Contract) -> Reading[int | None]:
        """Return the size of all that was exported, 0 when nothing is there; Known(None) without an export root."""
        if contract.export_root is None:
            return Known(value=None, at=self._clock.now())
        address = absolute(contract.export_root, contract.checkout)

        def ask() -> int:
            return directory_at(address, self._options).size_bytes() or 0

        try:
            found = await self._threads.call(ask, deadline=self._deadline, key=contract.run_id)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        return Known(value=found, at=self._clock.now())
