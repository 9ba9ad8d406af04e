"""Which of Finelog's tables hold training metrics, and how a run's rows are asked for. Pure.

The tables changed with the months, so they are looked up and not assumed. Two forms are known:

- ``levanter.metrics``: one row a figure, with its step in a column; what trainers wrote since the autumn of 2026;
- ``telemetry_v1.levanter`` and before it ``telemetry_v1``: gauges, the step one of them; before that their names began
  with ``levanter_``.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.errors import UnrecognisedError
from bot.model.value import Value
from bot.sources.finelog.failure import SERVICE

GAUGE_PREFIX = "levanter_"
SIGNS = ("phase", "progress_time_seconds", "step")
"""What tells of the trainer's life in the gauge form."""

EXECUTION_PREFIX = "iris:"
"""Before the uid of the attempt, for whoever runs as a task of Iris."""

_REQUIRED = frozenset({"run_id", "name", "value", "timestamp_ms"})
_OPTIONAL = ("step", "kind", "execution_uid", "job_id")
_NEWEST = 8


class Form(StrEnum):
    """How a table holds training metrics."""

    METRICS = "metrics"
    GAUGES = "gauges"


_KNOWN: tuple[tuple[str, Form], ...] = (
    ("levanter.metrics", Form.METRICS),
    ("telemetry_v1.levanter", Form.GAUGES),
    ("telemetry_v1", Form.GAUGES),
)
"""The newest form first: a run is read from the first table that holds rows of it."""


class Table(Value):
    """One table that may hold training metrics."""

    name: str
    form: Form
    columns: dict[str, str]
    """Finelog's own word for the type by the column's name; ``seq``, which each table has, is not among them."""
    max_seq: int = 0
    """The newest row's; lower than one that was seen when the server lost its rows."""

    def wanted(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return how the figures of these names may be called here."""
        given = tuple(dict.fromkeys(names))
        return given if self.form is Form.METRICS else (*given, *(f"{GAUGE_PREFIX}{name}" for name in given))

    def newest_rows(self, run_ids: tuple[str, ...], executions: Iterable[str] = ()) -> str:
        """Return the question for the newest phase, progress and other rows, at best of some executions alone."""
        among = self.among(run_ids, executions)
        if self.form is Form.METRICS:
            kinds = [f"{among} AND name = {text(sign)}" for sign in SIGNS if sign != "step"] + [among]
        else:
            kinds = [f"{among} AND name IN ({texts(self.wanted((sign,)))})" for sign in SIGNS]
        asked = (self._select(kind, newest=_NEWEST) for kind in kinds)
        parts = (f"SELECT * FROM ({sql}) AS part_{n}" for n, sql in enumerate(asked))  # noqa: S608 - built just above
        return " UNION ALL ".join(parts)

    def figures(
        self,
        run_ids: tuple[str, ...],
        names: Iterable[str],
        *,
        after: int | None,
        since: datetime | None,
        executions: Iterable[str],
        limit: int,
    ) -> str:
        """Return the question for figures.

        Args:
            run_ids: the run's names.
            names: of the figures.
            after: the last ``seq`` that was read, to go on from the oldest row behind it; None for the newest rows.
            since: rows before it are not asked for, unless they are of one of the executions.
            executions: whose rows are asked for, at any time; everybody's since then when empty.
            limit: the most rows that are wanted.
        """
        where = f"{self.among(run_ids, ())} AND name IN ({texts(self.wanted(names))})"
        if since is not None:
            where += f" AND {self._told_apart(executions, since)}"
        if after is None:
            return self._select(where, newest=limit)
        return self._select(f"{where} AND seq > {after}", oldest=limit)

    def among(self, run_ids: tuple[str, ...], executions: Iterable[str]) -> str:
        """Return the condition for process 0 of one run."""
        terms = [f"run_id IN ({texts(run_ids)})"]
        if (process := self.columns.get("process_index")) is not None:
            terms.append(f"process_index = {text('0') if process == 'COLUMN_TYPE_STRING' else '0'}")
        if self.form is Form.GAUGES and "service" in self.columns:
            terms.append(f"(service = 'levanter' OR starts_with(name, {text(GAUGE_PREFIX)}))")
        if (given := tuple(executions)) and "execution_uid" in self.columns:
            terms.append(f"execution_uid IN ({texts(given)})")
        return " AND ".join(terms)

    def _told_apart(self, executions: Iterable[str], since: datetime) -> str:
        """Return the condition for the rows of one instance: by who wrote them where that is told, else by time."""
        late = f"timestamp_ms >= {self._moment(since)}"
        given = tuple(executions)
        if not given or "execution_uid" not in self.columns:
            return late
        nameless = f"(execution_uid IS NULL OR NOT starts_with(execution_uid, {text(EXECUTION_PREFIX)}))"
        return f"(execution_uid IN ({texts(given)}) OR ({nameless} AND {late}))"

    def _select(self, where: str, *, newest: int | None = None, oldest: int | None = None) -> str:
        columns = ", ".join(("seq", "timestamp_ms", "name", "value", *(c for c in _OPTIONAL if c in self.columns)))
        order = f"ORDER BY seq DESC LIMIT {newest}" if newest is not None else f"ORDER BY seq LIMIT {oldest}"
        return f'SELECT {columns} FROM "{self.name}" WHERE {where} {order}'  # noqa: S608 - every text goes through text()

    def _moment(self, at: datetime) -> str:
        millis = str(int(at.timestamp() * 1000))
        return millis if "INT" in self.columns["timestamp_ms"] else f"to_timestamp_millis({millis})"


def text(value: str) -> str:
    """Return a text as SQL spells it; a backslash means itself there."""
    return "'" + value.replace("'", "''") + "'"


def texts(values: Iterable[str]) -> str:
    return ", ".join(text(value) for value in values)


def parse_namespaces(answer: object) -> tuple[Table, ...]:
    """Return the tables that may hold training metrics, the newest form first.

    Raises:
        UnrecognisedError: the answer is not as known, or none of the tables is there: a server that has just started
            registers them one by one.
    """
    listed = answer.get("namespaces") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise UnrecognisedError(SERVICE, "the answer has no namespaces: this is no Finelog that Hero knows")
    found: dict[str, Any] = {}
    for each in listed:
        name = each.get("namespace") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise UnrecognisedError(SERVICE, "one of the namespaces has no name")
        found[name] = each
    tables = tuple(
        table for name, form in _KNOWN if name in found and (table := _table(name, form, found[name])) is not None
    )
    if not tables:
        there = ", ".join(sorted(found)[:12]) or "none at all"
        wanted = ", ".join(name for name, _ in _KNOWN)
        raise UnrecognisedError(SERVICE, f"no table for training metrics ({wanted}) is there; there are: {there}")
    return tables


def _table(name: str, form: Form, given: dict[str, Any]) -> Table | None:
    """Return the table; None when its columns are not those of its form."""
    try:
        columns = {str(column["name"]): str(column.get("type", "")) for column in given["schema"]["columns"]}
        max_seq = int(given.get("maxSeq", given.get("max_seq", 0)) or 0)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnrecognisedError(SERVICE, f"the columns of {name} are not told as known: {error!r}") from error
    wanted = _REQUIRED | ({"step"} if form is Form.METRICS else set())
    return Table(name=name, form=form, columns=columns, max_seq=max_seq) if wanted <= columns.keys() else None
