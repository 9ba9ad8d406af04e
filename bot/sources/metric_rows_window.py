"""All rows of some steps from the metrics file of a contract: what a trial compares where figures are in no service.

The file is read from its beginning at each look, 4 MB at a time. It names nobody, unless its rows do: a row whose step
is below the one before it is the first of another execution, as a trainer that was started again trains steps anew.
"""

import json
from array import array
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import numpy as np

from bot.clock import Clock
from bot.errors import ServiceError, UnreachableError
from bot.model.contract import Contract, MetricsContract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.series import Figure, History, RunRows
from bot.sources.gaps import unknown_of
from bot.sources.metric_rows import FIGURES, parse_figure, parse_figures, parse_moment, parse_step, watched_in
from bot.sources.metrics import READ_BYTES, SERVICE, FileCursor, read_file
from bot.threads import BoundedThreads

MOST_ROWS = 2_000_000
"""Values of the steps that were asked for; what is beyond is told as cut."""
MOST_BYTES = 2_000_000_000
"""Of a file; what is beyond is told as cut."""
_DEADLINE = timedelta(seconds=60)
"""A million rows of JSON take some ten seconds."""
_WHO = ("execution_uid", "attempt")
"""The names of a column that tells executions apart, the first one before the second."""


class FileRows:
    """Implements ``bot.sources.ports.RowsSource`` for runs whose contract names a metrics file."""

    def __init__(
        self,
        clock: Clock,
        *,
        threads: BoundedThreads | None = None,
        deadline: timedelta = _DEADLINE,
        read_bytes: int = READ_BYTES,
        most_rows: int = MOST_ROWS,
    ) -> None:
        """Take what is fixed for all runs.

        Args:
            clock: for the moment of the readings.
            threads: where files are read; a network file system may hang.
            deadline: of one look.
            read_bytes: the most that is read at once.
            most_rows: how many values one answer may have.
        """
        self._clock = clock
        self._threads = threads or BoundedThreads(SERVICE, 2)
        self._deadline = deadline
        self._read_bytes = read_bytes
        self._most_rows = most_rows

    async def rows(
        self, contract: Contract, *, first_step: int, last_step: int, figures: tuple[str, ...]
    ) -> Reading[RunRows]:
        """Return every row of these steps; none where the file is not written yet.

        A figure is under Hero's word where the contract has one, else under its own name; one that was asked for by its
        own name is under that.
        """
        at = self._clock.now()
        if contract.metrics.file is None:
            return Unknown(reason=Gap.NOT_CONFIGURED, detail="the contract names no metrics file", at=at)
        gathered = _Gathered(contract.metrics, first_step, last_step, frozenset(figures), self._most_rows)
        try:
            found = await self._threads.call(
                _read, contract, gathered, self._read_bytes, deadline=self._deadline, key=contract.run_id
            )
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=found, at=at)


def _read(contract: Contract, gathered: "_Gathered", read_bytes: int) -> RunRows:
    for line in _lines(contract, read_bytes, gathered):
        gathered.add(line)
    return gathered.rows()


def _lines(contract: Contract, read_bytes: int, gathered: "_Gathered") -> Iterator[bytes]:
    """Yield the whole lines of the file.

    Raises:
        ServiceError: it cannot be read, or is another file than it was when reading began.
    """
    cursor = ""
    known: FileCursor | None = None
    while True:
        chunk = read_file(contract, cursor, read_bytes)
        if chunk.cursor == cursor:
            return
        yield from chunk.lines
        cursor, before = chunk.cursor, known
        known = FileCursor.model_validate_json(cursor)
        if before is not None and (known.inode != before.inode or known.offset < before.offset):
            raise UnreachableError(SERVICE, f"{contract.metrics.file} was replaced while it was read")
        if before is not None and known.offset == before.offset:
            return
        if known.offset > MOST_BYTES:
            gathered.is_cut = True
            return


class _Gathered:
    """The rows of a window as they come."""

    def __init__(
        self, names: MetricsContract, first_step: int, last_step: int, asked: frozenset[str], most_rows: int
    ) -> None:
        self._names = names
        self._steps = range(first_step, last_step + 1)
        self._asked = asked
        self._left = most_rows
        self._taken = {names.step, names.timestamp, *_WHO, *(getattr(names, figure) for figure in FIGURES)}
        self._taken |= {name for given in names.further().values() for name in given}
        self._figures: dict[str, tuple[array[int], array[int], array[float]]] = {}
        self._executions: dict[str, int] = {}
        self._began_at: list[datetime | None] = []
        self._last_step = -1
        self._newest_step: int | None = None
        self._restarts = 0
        self.is_cut = False

    def add(self, line: bytes) -> None:
        """Add what a line logged; a line that is no row is passed over, and its step is missing then."""
        fields = _fields(line)
        step = parse_step(fields.get(self._names.step))
        if step is None or not (values := self._values(fields)):
            return
        execution = self._execution(fields, step)
        self._newest_step = step if self._newest_step is None else max(step, self._newest_step)
        if step not in self._steps or self.is_cut:
            return
        for name, value in values.items():
            if self._asked and name not in self._asked:
                continue
            steps, executions, logged = self._figures.setdefault(name, (array("q"), array("q"), array("d")))
            steps.append(step)
            executions.append(execution)
            logged.append(value)
            self._left -= 1
        self.is_cut = self._left < 0

    def rows(self) -> RunRows:
        """Return all of them."""
        figures = {
            name: Figure(np.array(steps, np.int64), np.array(executions, np.int64), np.array(values, np.float64))
            for name, (steps, executions, values) in self._figures.items()
        }
        return RunRows(
            History(figures),
            executions=tuple(self._executions),
            newest_step=self._newest_step,
            is_cut=self.is_cut,
            began_at=tuple(self._began_at),
        )

    def _values(self, fields: Mapping[str, object]) -> dict[str, float]:
        values, _ = parse_figures(watched_in(fields, self._names))
        for name, raw in fields.items():
            is_wanted = name in self._asked and name not in values
            if (is_wanted or name not in self._taken) and (value := parse_figure(raw)) is not None:
                values[name] = value
        return values

    def _execution(self, fields: Mapping[str, object], step: int) -> int:
        told = next((fields[name] for name in _WHO if isinstance(fields.get(name), str | int)), None)
        if told is None and step < self._last_step:
            self._restarts += 1
        self._last_step = step
        name = f"attempt {self._restarts + 1}" if told is None else str(told)
        if name not in self._executions:
            self._executions[name] = len(self._executions)
            self._began_at.append(parse_moment(fields.get(self._names.timestamp)))
        return self._executions[name]


def _fields(line: bytes) -> Mapping[str, object]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
