"""Rows of Finelog as arrays: what a page holds, and the pages of a window put together. Pure, and no loop over rows."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bot.errors import UnrecognisedError
from bot.model.series import Figure, Flags, Floats, Ints
from bot.sources.finelog.failure import SERVICE
from bot.sources.finelog.rpc import arrow_table
from bot.sources.finelog.tables import GAUGE_PREFIX, Form
from bot.sources.finelog.window_sql import STEP
from bot.sources.metric_rows import HIGHEST_STEP


@dataclass(frozen=True, eq=False)
class Labels:
    """A column of texts: each row's is ``names[codes[row]]``."""

    codes: Ints
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Page:
    """Rows in the order in which they arrived; all columns are of one length."""

    seqs: Ints
    marks: Ints
    """The step of each row, or, in a table of gauges, its moment."""
    values: Floats
    figures: Labels
    executions: Labels


def parse_page(answer: object, form: Form) -> Page:
    """Return the rows in the answer to ``Wanted.page``.

    Raises:
        MissingPackageError: pyarrow is not installed.
        UnrecognisedError: the answer is not as known.
    """
    table = arrow_table(answer)
    arrow = importlib.import_module("pyarrow")
    try:
        seqs = _numbers(table.column("seq"), arrow.int64())
        marks = _numbers(table.column(STEP if form is Form.METRICS else "timestamp_ms"), arrow.int64())
        values = _numbers(table.column("value"), arrow.float64())
        figures = _labels(table.column("name"), arrow)
        executions = (
            _labels(table.column("execution_uid"), arrow)
            if "execution_uid" in table.column_names
            else Labels(np.zeros(seqs.size, np.int64), ("",))
        )
    except (arrow.ArrowException, KeyError, ValueError) as error:
        raise UnrecognisedError(SERVICE, f"the rows are not as known: {' '.join(str(error).split())[:200]}") from error
    if form is Form.GAUGES:
        figures = Labels(figures.codes, tuple(name.removeprefix(GAUGE_PREFIX) for name in figures.names))
    return Page(seqs, marks, values, figures, executions)


def _numbers(column: Any, kind: Any) -> Any:
    """Return a column of numbers.

    Raises:
        ValueError: one of them is missing.
    """
    if column.null_count:
        msg = f"{column.null_count} rows have no number where there must be one"
        raise ValueError(msg)
    return column.cast(kind).combine_chunks().to_numpy(zero_copy_only=False)


def _labels(column: Any, arrow: Any) -> Labels:
    whole = column.cast(arrow.string()).fill_null("").combine_chunks().dictionary_encode()
    return Labels(
        whole.indices.to_numpy(zero_copy_only=False).astype(np.int64), tuple(map(str, whole.dictionary.to_pylist()))
    )


class Gathered:
    """Pages of one window, put together in the order of their rows."""

    def __init__(self, form: Form, executions: Sequence[str]) -> None:
        """Take how the table holds metrics, and the executions in the order in which they began."""
        self._form = form
        self._executions = {name: number for number, name in enumerate(executions)}
        self._figures: dict[str, int] = {}
        self._parts: list[tuple[Ints, Floats, Ints, Ints]] = []
        self.rows = 0
        self.last_seq = -1

    def add_answer(self, answer: object) -> None:
        """Add the page in an answer.

        Raises:
            ServiceError: as for ``parse_page`` and ``add``.
        """
        self.add(parse_page(answer, self._form))

    def add(self, page: Page) -> None:
        """Add a page.

        Raises:
            UnrecognisedError: its rows do not go on where the last page ended, or nobody told of their execution.
        """
        if page.seqs.size and (page.seqs[0] <= self.last_seq or (np.diff(page.seqs) <= 0).any()):
            raise UnrecognisedError(SERVICE, "rows came out of order")
        try:
            executions = np.array([self._executions[name] for name in page.executions.names], np.int64)
        except KeyError as error:
            raise UnrecognisedError(SERVICE, f"rows of {error} came, and nobody told of it") from error
        names = page.figures.names
        figures = np.array([self._figures.setdefault(name, len(self._figures)) for name in names], np.int64)
        if page.seqs.size:
            ours = (executions[page.executions.codes], figures[page.figures.codes])
            self._parts.append((page.marks, page.values, *ours))
            self.last_seq = int(page.seqs[-1])
        self.rows += page.seqs.size

    def figures(self, first_step: int, last_step: int) -> dict[str, Figure]:
        """Return each figure that has rows of these steps, by Finelog's name."""
        if not self._parts:
            return {}
        marks, values, executions, figures = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        if self._form is Form.GAUGES:
            step = self._figures.get(STEP, -1)
            marks = steps_of_gauges(marks, executions, figures == step, values)
            kept = (marks >= first_step) & (marks <= last_step) & (figures != step)
            marks, values, executions, figures = (each[kept] for each in (marks, values, executions, figures))
        order = np.argsort(figures, kind="stable")
        ends = np.searchsorted(figures[order], np.arange(len(self._figures)), side="right")
        found: dict[str, Figure] = {}
        for name, rows in zip(self._figures, np.split(order, ends[:-1]), strict=True):
            if rows.size:
                found[name] = Figure(marks[rows], executions[rows], values[rows])
        return found


def steps_of_gauges(moments: Ints, executions: Ints, is_step: Flags, values: Floats) -> Ints:
    """Return the step that each gauge belongs to: the step gauge of the same moment, else the last one before.

    Args:
        moments: when each was logged, as the trainer says.
        executions: who logged it.
        is_step: whether it is a step gauge.
        values: of the gauges.

    Returns:
        -1 where no step was heard of yet.
    """
    is_step = is_step & (values >= 0) & (values <= HIGHEST_STEP) & (values == np.floor(values))
    ranks = np.unique(moments, return_inverse=True)[1]
    groups = np.unique(executions * (ranks.max(initial=0) + 1) + ranks, return_inverse=True)[1]
    of_group = np.full(groups.max(initial=-1) + 1, -1, np.int64)
    of_group[groups[is_step]] = values[is_step].astype(np.int64)  # of several the last one counts
    steps = of_group[groups]
    # Within each execution the last known step holds on: look back to it, but not beyond the execution's first row.
    order = np.argsort(executions, kind="stable")
    places = np.arange(order.size)
    begins = np.diff(executions[order], prepend=-1) != 0
    latest = np.maximum.accumulate(np.where(begins | (steps[order] >= 0), places, 0))
    result = np.empty_like(steps)
    result[order] = steps[order][latest]
    return result
