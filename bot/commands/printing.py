"""How commands print: JSON that every reader takes, and tables that are plain text outside of a terminal."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence

from bot.render.text import clean

_CELL = 600


def say(text: str = "") -> None:
    """Print one line, or several, to standard output."""
    print(text)  # noqa: T201 - the program's own output


def say_json(value: object, *, is_line: bool = False) -> None:
    """Print a value as JSON; on one line and at once when it is one of many."""
    text = json.dumps(jsonable(value), indent=None if is_line else 2, allow_nan=False)
    print(text, flush=is_line)  # noqa: T201 - as above


def jsonable(value: object) -> object:
    """Return ``value`` with NaN and the infinities as strings: JSON has no numbers for them."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case Mapping():
            return {str(key): jsonable(each) for key, each in value.items()}
        case list() | tuple():
            return [jsonable(each) for each in value]
        case _:
            return value


def say_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, elsewhere aligned columns that grep and awk can take."""
    cleaned = [[clean(cell.replace("\n", " "), _CELL) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(headers, cleaned)
        return
    widths = [max(map(len, column)) for column in zip(headers, *cleaned, strict=True)]
    for row in (headers, *cleaned):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        say("  ".join(cells).rstrip())


def _draw(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - heavy, and only for a terminal
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
