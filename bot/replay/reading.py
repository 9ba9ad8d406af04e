"""Rows from a file of logged figures: CSV or JSONL, gzipped or not, read as a stream and never held whole.

A file is taken at its word or not at all: what cannot be read is an error that names the file's line.
"""

import csv
import gzip
import io
import json
import math
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import IO, BinaryIO, NamedTuple, cast

from bot.errors import HeroError
from bot.model.figures import FURTHER
from bot.model.snapshot import MetricRow
from bot.regular_files import open_stream
from bot.sources.metric_rows import FIGURES, HIGHEST_STEP, parse_moment
from checks.gradients import NORM_NAMES

STEP, TIMESTAMP, ATTEMPT = "step", "timestamp", "attempt"
_WORDS = {name: word for word, names in FURTHER.items() for name in (word, *names)}
WATCHED = tuple(dict.fromkeys((*FIGURES, *NORM_NAMES, *_WORDS)))
"""The columns that are figures when they are not mapped; further ones come under Hero's word for them."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Where the time of a file begins that counts seconds from its start."""
_RELATIVE_BELOW = 1e8
"""A timestamp below counts from the start of training; as seconds of the epoch it would be in 1973."""
_LONGEST_LINE = 4_000_000
_GZIP = b"\x1f\x8b"
_ABSENT = frozenset({"", "none", "null", "na", "n/a", "-"})

Columns = Mapping[str, str]
"""From our word to the file's own name of the column."""


class BadFileError(HeroError):
    """A file cannot be replayed; the text names the line and what is wrong with it. Mend: the file."""


class Logged(NamedTuple):
    """One row of a file."""

    line: int
    row: MetricRow
    attempt: int


def word_of(name: str) -> str:
    """Return Hero's word for a figure that a trainer calls so; the name itself where Hero has none."""
    return _WORDS.get(name, name)


def read_rows(name: str, columns: Columns, also: Columns = MappingProxyType({})) -> Iterator[Logged]:
    """Yield the rows of a file, in its order.

    Args:
        name: of the file; ``-`` is standard input.
        columns: what was mapped; other words go by their own names.
        also: further columns, which need not be there.

    Raises:
        BadFileError: it cannot be opened or read to its end, or a line of it is none.
    """
    line = 0
    count = 0
    try:
        with ExitStack() as stack:
            text = _opened(name, stack)
            figures = {**{each: word for word, each in also.items()}, **_figure_columns(columns)}
            for line, fields in _records(text, columns, also):
                parsed = _parse(line, fields, columns, figures)
                if parsed is not None:
                    count += 1
                    yield parsed
    except (OSError, EOFError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) and error.strerror else None) or f"is damaged: {error}"
        where = f" after line {line}" if line else ""
        raise BadFileError(f"{reason}{where}") from error
    except csv.Error as error:
        raise BadFileError(f"line {line + 1}: {error}") from error
    if count == 0:
        raise BadFileError("holds no row" if line else "is empty")


def _opened(name: str, stack: ExitStack) -> IO[str]:
    file = cast("io.BufferedReader", sys.stdin.buffer)
    if name != "-":
        file = cast("io.BufferedReader", stack.enter_context(open_stream(Path(name))))
    content: BinaryIO = file
    if file.peek(len(_GZIP)).startswith(_GZIP):  # by its first bytes, whatever it is called
        content = cast("BinaryIO", stack.enter_context(gzip.GzipFile(fileobj=file, mode="rb")))
    return io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace", newline="")


def _lines(text: IO[str]) -> Iterator[tuple[int, str]]:
    number = 0
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise BadFileError(f"line {number}: is longer than {_LONGEST_LINE} characters")
        yield number, line


def _records(text: IO[str], columns: Columns, also: Columns) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield each line's fields by the file's own names; the first line that is not blank tells which format it is."""
    lines = _lines(text)
    for number, line in lines:
        if not line.strip():
            continue
        if line.lstrip().startswith("{"):
            yield number, _json(number, line)
            for each, rest in lines:
                if rest.strip():
                    yield each, _json(each, rest)
            return
        yield from _csv(number, line, lines, (columns, also))
        return


def _json(number: int, line: str) -> Mapping[str, object]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadFileError(f"line {number}: is no JSON ({error})") from error
    if not isinstance(fields, dict):
        raise BadFileError(f"line {number}: is JSON, but no object")
    return fields


def _csv(
    number: int, header: str, lines: Iterator[tuple[int, str]], columns: tuple[Columns, Columns]
) -> Iterator[tuple[int, Mapping[str, object]]]:
    tab = "\t" in header and "," not in header
    delimiter = "\t" if tab else ","
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    _check_header(number, names, *columns)
    yield number, {}  # a line of the file, though no row
    for each, line in lines:
        if not line.strip():
            continue
        cells = next(csv.reader([line], delimiter=delimiter), [])
        if len(cells) != len(names):
            raise BadFileError(f"line {each}: {len(cells)} cells, but the header names {len(names)} columns")
        yield each, dict(zip(names, cells, strict=True))


def _check_header(number: int, names: list[str], columns: Columns, also: Columns) -> None:
    shown = ", ".join(names)[:200]
    step = columns.get(STEP, STEP)
    if step not in names and len(names) == 1:
        wanted = f"CSV with a header line, or JSONL, with a column {step!r} and figures beside it"
        raise BadFileError(f"line {number}: no table of figures; wanted is {wanted} (`hero classify` reads logs)")
    if step not in names:
        raise BadFileError(f"line {number}: no column {step!r} among {shown}; name it with --metric step=COLUMN")
    if len(set(names)) != len(names):
        raise BadFileError(f"line {number}: a column is named twice: {shown}")
    missing = [name for name in columns.values() if name not in names]
    if missing:
        raise BadFileError(f"line {number}: no column {missing[0]!r} among {shown}")
    figures = (columns.get(word, word) for word in (*WATCHED, *columns) if word not in _NOT_FIGURES)
    if not any(name in names for name in (*figures, *also.values())):
        raise BadFileError(
            f"line {number}: none of the columns {shown} is a figure; name one with --metric loss=COLUMN"
        )


_NOT_FIGURES = frozenset({STEP, TIMESTAMP, ATTEMPT})


def _figure_columns(columns: Columns) -> dict[str, str]:
    """Return the word of each column that is a figure, by the file's own name of it."""
    words = [word for word in dict.fromkeys((*WATCHED, *columns)) if word not in _NOT_FIGURES]
    return {columns.get(word, word): _WORDS.get(word, word) for word in words}


def _parse(line: int, fields: Mapping[str, object], columns: Columns, figures: Mapping[str, str]) -> Logged | None:
    """Return the row of a line; None for one that is about something else."""
    values: dict[str, float] = {}
    for name, raw in fields.items():
        word = figures.get(name)
        if word is not None and (value := _figure(line, name, raw, is_loss=word == "loss")) is not None:
            values[word] = value
    raw = fields.get(columns.get(STEP, STEP))
    if raw is None and not values:
        return None
    step = _step(line, columns.get(STEP, STEP), raw)
    at = _moment(line, fields.get(columns.get(TIMESTAMP, TIMESTAMP)))
    attempt = fields.get(columns.get(ATTEMPT, ATTEMPT))
    number = 0 if _is_absent(attempt) else _step(line, columns.get(ATTEMPT, ATTEMPT), attempt)
    return Logged(line, MetricRow(step=step, values=values, at=at), number)


def _is_absent(raw: object) -> bool:
    return raw is None or (isinstance(raw, str) and raw.strip().lower() in _ABSENT)


def _number(line: int, name: str, raw: object) -> float:
    try:
        if isinstance(raw, int | float | str) and not isinstance(raw, bool) and "_" not in str(raw):
            return float(raw)
    except OverflowError:
        return math.inf if cast("int", raw) > 0 else -math.inf
    except ValueError:
        pass
    raise BadFileError(f"line {line}: {name} is {str(raw)[:40]!r}, which is no number")


def _figure(line: int, name: str, raw: object, *, is_loss: bool) -> float | None:
    """Return a figure; None where it was not logged. A null loss of JSON is NaN, as many JSON writers put it."""
    if raw is None and is_loss:
        return math.nan
    return None if _is_absent(raw) else _number(line, name, raw)


def _step(line: int, name: str, raw: object) -> int:
    if _is_absent(raw):
        raise BadFileError(f"line {line}: {name} is missing")
    number = _number(line, name, raw)
    if not (number.is_integer() and 0 <= number <= HIGHEST_STEP):
        raise BadFileError(f"line {line}: {name} is {str(raw)[:40]!r}, which is no whole number from 0 on")
    return int(number)


def _moment(line: int, raw: object) -> datetime | None:
    """Return when a row was logged: seconds from the start, seconds or milliseconds of the epoch, or ISO 8601."""
    if _is_absent(raw):
        return None
    at: datetime | None = None
    try:
        seconds = _number(line, TIMESTAMP, raw)
    except BadFileError:
        at = parse_moment(raw.strip() if isinstance(raw, str) else raw)
    else:
        if math.isnan(seconds):
            return None
        at = _EPOCH + timedelta(seconds=seconds) if abs(seconds) < _RELATIVE_BELOW else parse_moment(seconds)
    if at is None:
        raise BadFileError(f"line {line}: timestamp is {str(raw)[:40]!r}, neither seconds nor ISO 8601 with its zone")
    return at
