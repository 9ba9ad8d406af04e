"""A whole file of logged figures as arrays, for what looks at all of it at once."""

from array import array

import numpy as np

from bot.model.series import Figure, History
from bot.replay.reading import Columns, read_rows


def read_history(name: str, columns: Columns, also: Columns) -> History:
    """Return every figure of a file, in the order of its rows; an attempt is an execution.

    Args:
        name: of the file; ``-`` is standard input.
        columns: what was mapped; other words go by their own names.
        also: further columns, which need not be there.

    Raises:
        BadFileError: as ``read_rows``.
    """
    found: dict[str, tuple[array[int], array[int], array[float]]] = {}
    for _, row, attempt in read_rows(name, columns, also):
        for word, value in row.values.items():
            kept = found.get(word)
            if kept is None:
                kept = found[word] = (array("q"), array("q"), array("d"))
            steps, executions, values = kept
            steps.append(row.step)
            executions.append(attempt)
            values.append(value)
    return History(
        {
            word: Figure(np.array(steps, np.int64), np.array(executions, np.int64), np.array(values, np.float64))
            for word, (steps, executions, values) in found.items()
        }
    )
