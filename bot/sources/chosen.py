"""Which source a run's figures are read from: the first of those that contract and settings name that has any.

A metrics file before Finelog before W&B before the log: the nearer to the trainer, the fresher and the more complete.
"""

from datetime import datetime

from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail, Metrics
from bot.sources.ports import MetricsSource

UNTRACKED = frozenset({"disabled", "offline", "dryrun"})
"""Tracker modes in which nothing reaches a server."""


_LOG = "log"


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
        self,
        contract: Contract,
        *,
        since: datetime | None,
        cursor: str,
        log: Reading[LogTail],
        jobs: Reading[tuple[Job, ...]],
    ) -> Reading[Metrics]:
        """Read from the first place that has rows, and then stay with it.

        A place that could not be asked is passed over while another has rows; when none has, that gap is the answer:
        silence is only known once everybody was heard.
        """
        name, _, mine = cursor.partition("|")
        gap: Unknown | None = None
        found: Reading[Metrics] | None = None
        for place, source in self._places(contract):
            is_known_place = place == name
            known = mine if is_known_place else ""
            found = await source.metrics(contract, since=since, cursor=known, log=log, jobs=jobs)
            if isinstance(found, Unknown):
                if is_known_place and place != _LOG:
                    return found
                gap = gap or (None if found.reason is Gap.NOT_CONFIGURED else found)
            elif found.value.rows or (is_known_place and place != _LOG):
                return _marked(place, found)
        if isinstance(found, Known):
            return gap or _marked(_LOG, found)
        return found or Unknown(reason=Gap.NOT_CONFIGURED, detail="no source of figures", at=log.at)

    def _places(self, contract: Contract) -> tuple[tuple[str, MetricsSource], ...]:
        """Return the places in the order in which they are asked, the log last."""
        if contract.metrics.file is not None:
            return (("file", self._reader),)
        places: list[tuple[str, MetricsSource]] = []
        if self._finelog is not None and contract.orchestrator.kind == "iris":
            places.append(("finelog", self._finelog))
        if self._wandb is not None and is_tracked(contract):
            places.append(("wandb", self._wandb))
        return (*places, (_LOG, self._reader))


def _marked(place: str, found: Known[Metrics]) -> Known[Metrics]:
    value = found.value.model_copy(update={"cursor": f"{place}|{found.value.cursor}"})
    return found.model_copy(update={"value": value})


def is_tracked(contract: Contract) -> bool:
    """Whether the contract names a tracked run that can be looked up."""
    tracker = contract.tracker
    return tracker.mode not in UNTRACKED and bool(tracker.id or tracker.name)
