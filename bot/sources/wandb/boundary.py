"""Where a run's history would be forked for a trial: the row in which the trainer's step is one below the handoff's.

``_step`` is W&B's own counter and need not be the trainer's step: rows of evaluations have one too, and a trainer that
went on from a checkpoint logs some of its steps twice. So a row is named by its ``_step`` and verified by what stands
in it (deploy checklist, "Agree the plan": the verified parent history boundary).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bot.clock import Clock
from bot.errors import DeadlineError, ServiceError
from bot.model.contract import Contract, MetricsContract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import Boundary
from bot.settings import WandbSettings
from bot.sources.gaps import unknown_of
from bot.sources.metric_rows import parse_step
from bot.sources.wandb.client import WandbClient
from bot.sources.wandb.failure import SERVICE, NoSuchRunError
from bot.sources.wandb.finding import find_run
from bot.sources.wandb.history import PAGE_STEPS
from bot.sources.wandb.rows import TRACKER_STEP, find, step_of
from bot.sources.wandb.state import SeenRun, parse_run
from bot.threads import BoundedThreads

_SCAN_SHARE = 0.8
"""Of the deadline; a search that is not through by then ends Unknown."""
_PAGES_BEHIND = 20
"""So many pages at the end of the history are read one by one: a handoff checkpoint is young. What is older is found by
halving."""
_PROBE_SHARE = 20
"""While halving, a page is this part of the usual one: its first row is wanted alone."""
_TROUBLE = "W&B hands out no row of steps {} to {}, although it tells of a history that goes to step {}"


class _Place(NamedTuple):
    """A row with the trainer's step in it."""

    step: int
    """``_step``."""
    trainer_step: int


class _WithheldError(Exception):
    """The service tells of rows that it does not hand out (field report R19)."""


class WandbBoundary:
    """Looks into the history of a contract's run; behind Hero's deadline, in threads of its own."""

    def __init__(self, settings: WandbSettings, clock: Clock, *, threads: BoundedThreads | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._client = WandbClient(settings)
        self._threads = threads or BoundedThreads(SERVICE, settings.threads)

    async def boundary(self, contract: Contract, fork_step: int) -> Reading[Boundary | None]:
        """Return what the row at ``_step`` ``fork_step`` says; without the trainer's step when there is no such row.

        Known(None) when W&B answered that it has no such run.
        """
        return await self._asked(lambda history: history.at(fork_step), contract)

    async def find_boundary(self, contract: Contract, global_step: int) -> Reading[Boundary | None]:
        """Return the last row in which the trainer's step is ``global_step``.

        Known(None) when there is none, or no such run. A step that was trained again after a crash counts where it was
        logged last, as long as that is among the newest 20,000 or so rows; further back one of its places is found.
        """
        return await self._asked(lambda history: history.last_with(global_step), contract)

    async def _asked(
        self, look: "Callable[[_History], Boundary | None]", contract: Contract
    ) -> Reading[Boundary | None]:
        at = self._clock.now()
        ends = self._clock.monotonic() + self._settings.deadline.total_seconds() * _SCAN_SHARE

        def ask() -> Boundary | None:
            run = find_run(self._client, self._settings, contract.tracker)
            seen = parse_run(run, contract.metrics)
            return look(_History(self._client, run, seen, contract.metrics, lambda: self._clock.monotonic() > ends))

        try:
            found = await self._threads.call(ask, deadline=self._settings.deadline)
        except NoSuchRunError:
            return Known(value=None, at=at)
        except _WithheldError as error:
            return Unknown(reason=Gap.UNRELIABLE, detail=str(error), at=at)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=found, at=at)


class _History:
    """One run's history, looked into page by page; every method blocks."""

    def __init__(
        self, client: WandbClient, run: Any, seen: SeenRun, names: MetricsContract, is_late: Callable[[], bool]
    ) -> None:
        self._client = client
        self._run = run
        self._end = seen.history_step + 1
        # That a run logs no step of the trainer's makes its _step no such step, unless its owner says so.
        self._key = names.step if seen.step_key == TRACKER_STEP else seen.step_key
        stride = max(1, math.ceil(self._end / seen.row_count)) if seen.row_count > 0 else 1
        self._page = PAGE_STEPS * stride
        self._is_late = is_late

    def at(self, fork_step: int) -> Boundary:
        """Return the row at one ``_step``, and the trainer's step in the first row behind it that has one."""
        if fork_step >= self._end:
            return Boundary(fork_step=fork_step, global_step=None)
        own: int | None = None
        is_any = False
        for row in self._rows(fork_step, self._end):
            is_any = True
            trainer_step = self._trainer_step(row)
            if step_of(row) == fork_step:
                own = trainer_step
            elif trainer_step is not None:
                return Boundary(fork_step=fork_step, global_step=own, next_global_step=trainer_step)
        if not is_any:  # the row of the last step must be there
            raise _WithheldError(_TROUBLE.format(fork_step, self._end - 1, self._end - 1))
        return Boundary(fork_step=fork_step, global_step=own)

    def last_with(self, global_step: int) -> Boundary | None:
        """Return the last row with this trainer's step."""
        end, behind = self._end, tuple[_Place, ...]()
        for _ in range(_PAGES_BEHIND):
            start = max(0, end - self._page)
            places = (*self._places(start, end), *behind[:1])
            found = _last(places, global_step)
            if found is not None or start <= 0:
                return found
            end, behind = start, places
        return self._halved(end, behind[0] if behind else None, global_step)

    def _halved(self, end: int, after: _Place | None, global_step: int) -> Boundary | None:
        """Look before ``end``, where the trainer's step is taken to rise; one page is read at each halving."""
        low, high = 0, end
        while high - low > self._page:
            middle = (low + high) // 2
            place = next(self._scanned(middle, high, page=max(1, self._page // _PROBE_SHARE)), None)
            if place is None or place.trainer_step > global_step:
                high, after = middle, place or after
            else:
                low = place.step if place.step > low else middle
        places = (*self._places(low, high), *((after,) if after else ()))
        return _last(places, global_step)

    def _places(self, first: int, end: int) -> tuple[_Place, ...]:
        places = tuple(self._scanned(first, end))
        if not places and 0 < end == self._end and not any(True for _ in self._rows(first, end)):
            raise _WithheldError(_TROUBLE.format(first, end - 1, self._end - 1))
        return places

    def _scanned(self, first: int, end: int, *, page: int | None = None) -> Iterator[_Place]:
        for row in self._rows(first, end, page=page):
            step, trainer_step = step_of(row), self._trainer_step(row)
            if step is not None and trainer_step is not None:
                yield _Place(step, trainer_step)

    def _rows(self, first: int, end: int, *, page: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the rows in order; a page is asked for when its first row is wanted.

        Raises:
            DeadlineError: it takes too long.
        """
        for row in self._client.scan(self._run, first, end, page=page or self._page):
            if self._is_late():
                raise DeadlineError(SERVICE, "the history was not searched in time")
            step = step_of(row)
            if step is not None and first <= step < end:
                yield row

    def _trainer_step(self, row: Mapping[str, Any]) -> int | None:
        return parse_step(find(row, self._key))


def _last(places: tuple[_Place, ...], global_step: int) -> Boundary | None:
    """Return the last of ``places`` with that step, and what comes behind it."""
    for n in range(len(places) - 1, -1, -1):
        if places[n].trainer_step == global_step:
            behind = places[n + 1].trainer_step if n + 1 < len(places) else None
            return Boundary(fork_step=places[n].step, global_step=global_step, next_global_step=behind)
    return None
