"""How all rows of some steps are asked of Finelog: who logged, how many rows there are, and one page of them. Pure."""

from bot.model.value import Value
from bot.sources.finelog.tables import SIGNS, Form, Table, text, texts

STEP = "step"
_NOT_SCALAR = ("summary", "histogram")
_LATER_MS = 600_000
"""A gauge belongs to the last step gauge before it when none has its own moment: so long one waits for it."""


def who_logged(table: Table, run_ids: tuple[str, ...]) -> str:
    """Return the question for the run's executions, one row each: since when, up to which ``seq``, to which step."""
    who = "COALESCE(execution_uid, '')" if "execution_uid" in table.columns else "''"
    step = STEP if table.form is Form.METRICS else f"CASE WHEN {_is_step(table)} THEN value END"
    return (
        f"SELECT {who} AS execution_uid, min(timestamp_ms) AS began, min(seq) AS first_seq, "  # noqa: S608 - see text()
        f'max(seq) AS last_seq, max({step}) AS newest_step FROM "{table.name}" '
        f"WHERE {table.among(run_ids, ())} GROUP BY 1"
    )


class Wanted(Value):
    """Which rows of one table are wanted."""

    table: Table
    run_ids: tuple[str, ...]
    names: tuple[str, ...]
    """Of the figures, as Finelog spells them; empty for all but the signs of life."""
    first_step: int
    last_step: int
    last_seq: int
    """Rows that arrive later are not asked for, so that all pages are of one moment."""

    def count(self) -> str:
        """Return the question for how many rows there are."""
        return f'SELECT count(*) AS rows FROM "{self.table.name}" WHERE {self._where()}'  # noqa: S608 - see text()

    def page(self, after: int, limit: int) -> str:
        """Return the question for the first ``limit`` rows behind a ``seq``, in the order in which they arrived."""
        own = STEP if self.table.form is Form.METRICS else "timestamp_ms"
        columns = ["seq", own, "name", "value", *(c for c in ("execution_uid",) if c in self.table.columns)]
        return (
            f'SELECT {", ".join(columns)} FROM "{self.table.name}" '  # noqa: S608 - see text()
            f"WHERE {self._where()} AND seq > {after} ORDER BY seq LIMIT {limit}"
        )

    def _where(self) -> str:
        table = self.table
        terms = [table.among(self.run_ids, ()), f"seq <= {self.last_seq}", "value IS NOT NULL", self._named()]
        if "kind" in table.columns:
            terms.append(f"(kind IS NULL OR kind NOT IN ({texts(_NOT_SCALAR)}))")
        inside = f"BETWEEN {self.first_step} AND {self.last_step}"
        if table.form is Form.METRICS:
            terms.append(f"{STEP} {inside}")
        else:
            terms.append(f"timestamp_ms >= {self._moment('min', inside)}")
            terms.append(f"timestamp_ms <= {self._moment('max', inside)} + {self._later()}")
        return " AND ".join(terms)

    def _named(self) -> str:
        table = self.table
        if self.names:
            with_step = self.names if table.form is Form.METRICS else (*self.names, STEP)
            return f"name IN ({texts(table.wanted(with_step))})"
        signs = table.wanted(sign for sign in SIGNS if table.form is Form.METRICS or sign != STEP)
        return f"name NOT IN ({texts(signs)})"

    def _moment(self, which: str, inside: str) -> str:
        table = self.table
        among = f"{table.among(self.run_ids, ())} AND {_is_step(table)}"
        return f'(SELECT {which}(timestamp_ms) FROM "{table.name}" WHERE {among} AND value {inside})'  # noqa: S608 - see text()

    def _later(self) -> str:
        is_number = "INT" in self.table.columns["timestamp_ms"]
        return str(_LATER_MS) if is_number else f"INTERVAL {text(f'{_LATER_MS // 1000} seconds')}"


def _is_step(table: Table) -> str:
    return f"name IN ({texts(table.wanted((STEP,)))})"
