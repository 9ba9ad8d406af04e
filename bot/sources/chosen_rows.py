"""Where all rows of a run are read from: its metrics file where the contract names one, else Finelog.

Never the tracker: the history that a child inherited from its parent, and a tracker that lags, prove nothing about what
was trained (deploy checklist, "Execute the trial", item 5).
"""

from bot.clock import Clock
from bot.model.contract import Contract
from bot.model.reading import Gap, Reading, Unknown
from bot.model.series import RunRows
from bot.sources.ports import RowsSource


class ChosenRows:
    """Implements ``bot.sources.ports.RowsSource`` over both places."""

    def __init__(self, file: RowsSource, clock: Clock, *, finelog: RowsSource | None = None) -> None:
        """Take the sources; no Finelog when none is configured."""
        self._file = file
        self._clock = clock
        self._finelog = finelog

    async def rows(
        self, contract: Contract, *, first_step: int, last_step: int, figures: tuple[str, ...]
    ) -> Reading[RunRows]:
        """Return every row of these steps from the one place that the contract means; NOT_CONFIGURED without one."""
        source = self._source(contract)
        if source is None:
            detail = "no rows can be read: name [metrics] file in the contract, or set [finelog] url for a run on Iris"
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=self._clock.now())
        return await source.rows(contract, first_step=first_step, last_step=last_step, figures=figures)

    def _source(self, contract: Contract) -> RowsSource | None:
        if contract.metrics.file is not None:
            return self._file
        return self._finelog if contract.orchestrator.kind == "iris" else None
