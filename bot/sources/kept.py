"""What a source keeps of each run between two reads, so that it asks only for what is new. In memory, and bounded.

Losing it costs one whole read: after a restart, and for the run that was longest not asked for.
"""

from collections import OrderedDict

from bot.model.value import RunId

MOST_RUNS = 64


class Kept[T]:
    """The newest state of each run, of so many runs at most."""

    def __init__(self, most: int = MOST_RUNS) -> None:
        """Take how many runs are kept."""
        self._most = most
        self._states: OrderedDict[RunId, T] = OrderedDict()

    def get(self, run_id: RunId) -> T | None:
        """Return what was put last; None when that is nothing or was given up."""
        if run_id in self._states:
            self._states.move_to_end(run_id)
        return self._states.get(run_id)

    def put(self, run_id: RunId, state: T | None) -> None:
        """Keep this in place of what was; None forgets it."""
        self._states.pop(run_id, None)
        if state is not None:
            self._states[run_id] = state
        while len(self._states) > self._most:
            self._states.popitem(last=False)
