"""The figures that a trainer logged: from its JSONL file where the contract names one, else from what it printed.

``metric_rows`` reads one line of JSON and ``metric_lines`` one line of a log; here the file is followed from where the
last read ended, and no row is handed out twice.
"""

import hashlib
import os
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, NonNegativeInt, ValidationError

from bot.clock import Clock
from bot.errors import RefusedError, ServiceError
from bot.model.contract import Contract, MetricsContract
from bot.model.job import Job
from bot.model.reading import Known, Reading, Unknown
from bot.model.snapshot import LogTail, MetricRow, Metrics
from bot.model.value import Value
from bot.regular_files import open_regular
from bot.sources.gaps import refused_by_system, unknown_of
from bot.sources.metric_lines import parse_lines
from bot.sources.metric_rows import Row, Unreadable, parse_json_row
from bot.threads import BoundedThreads

SERVICE = "metrics"
READ_BYTES = 4_000_000
"""At most so much of a file in one read; the next one goes on from there. Also the longest line."""
_GUARD_BYTES = 64
_ANCHOR_ROWS = 5


class FileCursor(BaseModel):
    """How far a file was read, and how to see that it is still that file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inode: int
    offset: NonNegativeInt
    guard: str
    """Digest of the bytes just before ``offset``: a file that was cut and grew again has others there."""


class LogCursor(BaseModel):
    """The last rows that were handed out: a log's window moves, so a position in it says nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[str, ...]
    """Digests, oldest first."""
    since: AwareDatetime | None = None
    """When the instance was submitted that printed them; None where that was not known. Another instance may print the
    very same lines again, as one does that trains steps anew from a checkpoint."""


class Chunk(Value):
    """Whole lines of a file, and where they end."""

    lines: tuple[bytes, ...]
    cursor: str
    oversized: int = 0
    """Lines that were longer than one read."""


class MetricsReader:
    """Implements ``bot.sources.ports.MetricsSource``."""

    def __init__(
        self,
        clock: Clock,
        *,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=20),
        read_bytes: int = READ_BYTES,
    ) -> None:
        """Take what is fixed for all runs.

        Args:
            clock: for the moment of the readings.
            threads: where files are read; a network file system may hang.
            deadline: of one read.
            read_bytes: the most that is read at once.
        """
        self._clock = clock
        self._threads = threads or BoundedThreads(SERVICE, 4)
        self._deadline = deadline
        self._read_bytes = read_bytes

    async def metrics(
        self,
        contract: Contract,
        *,
        since: datetime | None,
        cursor: str,
        log: Reading[LogTail],
        jobs: Reading[tuple[Job, ...]],  # noqa: ARG002 - the port's; neither a file nor a log names who wrote a row
    ) -> Reading[Metrics]:
        """Return the rows that were not handed out before; a row older than ``since`` is another instance's."""
        at = self._clock.now()
        try:
            # Parsing too is done in the thread: thousands of lines take longer than a chat should wait.
            if contract.metrics.file is None:
                return await self._threads.call(
                    _from_log, contract.metrics, cursor, log, since, at, deadline=self._deadline, key=contract.run_id
                )
            found = await self._threads.call(
                _from_file, contract, cursor, since, self._read_bytes, deadline=self._deadline, key=contract.run_id
            )
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=found, at=at)


def _from_log(
    names: MetricsContract, cursor: str, log: Reading[LogTail], since: datetime | None, at: datetime
) -> Reading[Metrics]:
    if isinstance(log, Unknown):
        detail = f"the contract names no metrics file, and the log cannot be read: {log.detail}"
        return Unknown(reason=log.reason, detail=detail[:2000], at=at)
    found = parse_lines(log.value, names)
    rows, anchor = rows_after(found.rows, cursor, since)
    is_from_start = not log.value.is_cut
    value = Metrics(rows=rows, cursor=anchor, unreadable=found.unreadable, is_from_start=is_from_start)
    return Known(value=value, at=at)


def rows_after(
    rows: tuple[MetricRow, ...], cursor: str, since: datetime | None = None
) -> tuple[tuple[MetricRow, ...], str]:
    """Return the rows that follow those of ``cursor``, and the cursor behind them. Pure.

    When none of the cursor's rows is there any more, all are new: the window has moved on. So they are when ``since``
    tells that another instance was submitted since the cursor.
    """
    digests = tuple(_digest(row) for row in rows)
    anchor = _parse_log_cursor(cursor, since)
    start = _end_of_anchor(digests, anchor)
    handed_out = (*anchor, *digests[start:]) if start else digests
    following = LogCursor(rows=handed_out[-_ANCHOR_ROWS:], since=since)
    return rows[start:], following.model_dump_json() if handed_out else cursor


def _end_of_anchor(digests: tuple[str, ...], anchor: tuple[str, ...]) -> int:
    for end in range(len(digests), 0, -1) if anchor else ():
        length = min(end, len(anchor))
        if digests[end - length : end] == anchor[-length:]:
            return end
    return 0


def _digest(row: MetricRow) -> str:
    return hashlib.sha256(row.model_dump_json().encode()).hexdigest()[:16]


def _parse_log_cursor(cursor: str, since: datetime | None) -> tuple[str, ...]:
    try:
        known = LogCursor.model_validate_json(cursor)
    except ValidationError:
        return ()
    is_another = None not in {since, known.since} and since != known.since
    return () if is_another else known.rows


def _from_file(contract: Contract, cursor: str, since: datetime | None, read_bytes: int) -> Metrics:
    chunk = read_file(contract, cursor, read_bytes)
    names = contract.metrics
    rows: list[MetricRow] = []
    unreadable = chunk.oversized
    for line in chunk.lines:
        text = line.decode(errors="replace").strip()
        match parse_json_row(text, names) if text else None:
            case Row(row=row, has_faults=has_faults):
                if row.at and since and row.at < since:
                    continue
                unreadable += has_faults
                rows.append(row)
            case Unreadable():
                unreadable += 1
            case _:
                pass
    return Metrics(rows=tuple(rows), cursor=chunk.cursor, unreadable=unreadable)


def read_file(contract: Contract, cursor: str, read_bytes: int) -> Chunk:
    """Read on in the contract's file; nothing when it is not written yet.

    Raises:
        ServiceError: it cannot be read, or the place where it would be is not there.
    """
    path = Path(contract.checkout, contract.metrics.file or "")
    try:
        with open_regular(path) as file:
            offset = _offset(file.fileno(), cursor)
            return _read_lines(file.fileno(), offset, read_bytes)
    except FileNotFoundError:
        _check_place(path, Path(contract.checkout))
        return Chunk(lines=(), cursor=cursor)
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error


def _offset(handle: int, cursor: str) -> int:
    """Return where to go on: at the cursor while this is still the same file, else at its beginning."""
    try:
        known = FileCursor.model_validate_json(cursor)
    except ValidationError:
        return 0
    status = os.fstat(handle)
    if status.st_ino != known.inode or status.st_size < known.offset or _guard(handle, known.offset) != known.guard:
        return 0
    return known.offset


def _guard(handle: int, offset: int) -> str:
    start = max(0, offset - _GUARD_BYTES)
    return hashlib.sha256(os.pread(handle, offset - start, start)).hexdigest()[:16]


def _read_lines(handle: int, offset: int, read_bytes: int) -> Chunk:
    raw = os.pread(handle, read_bytes, offset)
    whole, newline, rest = raw.rpartition(b"\n")
    oversized = 0
    if not newline and len(rest) == read_bytes:
        # One line longer than a whole read: pass over this part; its end, whatever it reads like, is passed over too.
        oversized, end = 1, _end_of_line(handle, offset + read_bytes, read_bytes)
    else:
        end = offset + len(whole) + len(newline)
    cursor = FileCursor(inode=os.fstat(handle).st_ino, offset=end, guard=_guard(handle, end))
    return Chunk(
        lines=tuple(whole.split(b"\n")) if newline else (), cursor=cursor.model_dump_json(), oversized=oversized
    )


def _end_of_line(handle: int, offset: int, read_bytes: int) -> int:
    """Return where the line ends in which ``offset`` lies, or the end of the file."""
    while piece := os.pread(handle, read_bytes, offset):
        found = piece.find(b"\n")
        if found >= 0:
            return offset + found + 1
        offset += len(piece)
    return offset


def _check_place(path: Path, checkout: Path) -> None:
    """Tell "not written yet" from "cannot be there".

    Raises:
        ServiceError: the checkout is not there, or the nearest directory above the file may not be looked into.
    """
    try:
        if not checkout.is_dir():
            raise RefusedError(SERVICE, f"the checkout {checkout} is no directory; mend `checkout` in the contract")
        place = next(parent for parent in path.absolute().parents if parent.exists())
        with os.scandir(place):
            return
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
