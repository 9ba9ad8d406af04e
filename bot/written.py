"""Whether a run's record is whole and stands in its issue: the last thing that a seal asks about."""

from bot.clock import Clock
from bot.errors import StoreError
from bot.model.chronicle import Completed, Entry, Written, find_fault, written_under
from bot.model.contract import Contract
from bot.model.delivery import ChannelName
from bot.model.promotion import is_on_record
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Record
from bot.store.store import Store


class RecordReader:
    """Compares the record with what was last written of it."""

    def __init__(self, store: Store, clock: Clock, *, has_issues: bool) -> None:
        """Take the store; ``has_issues`` is whether records are kept in issues at all."""
        self._store = store
        self._clock = clock
        self._has_issues = has_issues

    async def fault(self, contract: Contract) -> Reading[str]:
        """Return what is wrong with the record, or with what its issue shows of it; empty when nothing is."""
        at = self._clock.now()
        try:
            entries = await self._store.chronicle(contract.run_id)
            if (fault := find_fault(contract.run_id, entries)) is not None:
                return Known(value=f"the run's record is broken at entry {fault.seq}: {fault.what}", at=at)
            record = await self._store.record(contract.run_id)
            if not self._has_issues or not is_on_record(contract, record.run if record else None):
                return Known(value="", at=at)
            written = await self._written(contract, record)
        except StoreError as error:
            return Unknown(reason=Gap.BROKEN, detail=str(error)[:500], at=at)
        is_there = written is not None and written.count >= _completed_at(entries)
        lags = "the run's record is whole, and its issue does not show all of it yet; it is written within minutes"
        return Known(value="" if is_there else lags, at=at)

    async def _written(self, contract: Contract, record: Record | None) -> Written | None:
        issue = contract.channels.github_issue
        if issue is None:
            thread = record.posted_at(ChannelName.GITHUB, "thread") if record else None
            if thread is None or not thread.message_id.isdecimal():
                return None
            issue = int(thread.message_id)
        stored = await self._store.cursor(written_under(contract.run_id, issue))
        return Written.model_validate_json(stored) if stored else None


def _completed_at(entries: tuple[Entry, ...]) -> int:
    """Return how many entries there were when the run was completed; all of them when it was not."""
    places = (place for place, entry in enumerate(entries, start=1) if isinstance(entry.happening, Completed))
    return max(places, default=len(entries))
