"""Which source a run's figures are read from: the first that the contract and the settings name.

A metrics file before Finelog before W&B before the log: the nearer to the trainer, the fresher and the more complete.
"""

from datetime import datetime

from bot.model.contract import Contract
from bot.model.reading import Known, Reading
from bot.model.snapshot import LogTail, Metrics
from bot.sources.ports import MetricsSource

UNTRACKED = frozenset({"disabled", "offline", "dryrun"})
"""Tracker modes in which nothing reaches a server."""


class ChosenMetrics:
    """Implements ``bot.sources.ports.MetricsSource`` over all places where figures may be."""

    def __init__(
        self, reader: MetricsSource, *, wandb: MetricsSource | None = None, finelog: MetricsSource | None = None
    ) -> None:
        """Take the sources.

        Args:
            reader: of metrics files and, where there is none, of the log.
            wandb: None when W&B is not configured.
            finelog: None when Finelog is not configured.
        """
        self._reader = reader
        self._wandb = wandb
        self._finelog = finelog

    async def metrics(
        self, contract: Contract, *, since: datetime | None, cursor: str, log: Reading[LogTail]
    ) -> Reading[Metrics]:
        """Read from the one place; a cursor of another one is forgotten, so that a change of place loses nothing."""
        name, source = self._choose(contract)
        before, _, mine = cursor.partition("|")
        found = await source.metrics(contract, since=since, cursor=mine if before == name else "", log=log)
        if isinstance(found, Known):
            return found.model_copy(
                update={"value": found.value.model_copy(update={"cursor": f"{name}|{found.value.cursor}"})}
            )
        return found

    def _choose(self, contract: Contract) -> tuple[str, MetricsSource]:
        if contract.metrics.file is not None:
            return "file", self._reader
        if self._finelog is not None and contract.orchestrator.kind == "iris":
            return "finelog", self._finelog
        if self._wandb is not None and is_tracked(contract):
            return "wandb", self._wandb
        return "log", self._reader


def is_tracked(contract: Contract) -> bool:
    """Whether the contract names a tracked run that can be looked up."""
    tracker = contract.tracker
    return tracker.mode not in UNTRACKED and bool(tracker.id or tracker.name)
