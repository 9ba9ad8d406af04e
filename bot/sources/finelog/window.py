"""All rows of some steps of a run, of all its executions: what a trial compares.

``window_sql`` asks, page by page, and ``columns`` makes arrays of what comes. Nothing is left out unsaid: how many rows
there are is asked first, and fewer than that are no answer.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from bot.errors import ServiceError, UnrecognisedError
from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Reading
from bot.model.series import Figure, History, RunRows
from bot.model.value import Value
from bot.sources.finelog.columns import Gathered
from bot.sources.finelog.failure import SERVICE
from bot.sources.finelog.rows import figure_names, finelog_name, moment_of
from bot.sources.finelog.rpc import FinelogRpc
from bot.sources.finelog.source import FinelogSource, run_ids_of
from bot.sources.finelog.tables import parse_namespaces
from bot.sources.finelog.window_sql import Wanted, who_logged
from bot.sources.metric_rows import parse_step

PAGE_ROWS = 100_000
"""Some 7 MB in an answer (measured with a server of November 2026), a ninth of what one may have."""
MOST_ROWS = 2_000_000
"""About 200 MB here while they are put in order; what is beyond is told as cut."""


class FinelogRows:
    """Implements ``bot.sources.ports.RowsSource`` for runs whose figures are in Finelog."""

    def __init__(self, source: FinelogSource, *, page_rows: int = PAGE_ROWS, most_rows: int = MOST_ROWS) -> None:
        """Take whose connection is used, and how many rows one answer and all of them together may have."""
        self._source = source
        self._page_rows = page_rows
        self._most_rows = most_rows

    async def rows(
        self, contract: Contract, *, first_step: int, last_step: int, figures: tuple[str, ...]
    ) -> Reading[RunRows]:
        """Return every row of these steps, of all executions that ever logged under the run's id.

        A figure that was asked for is under the name that it was asked for by. When all are asked for, it is under
        Hero's word where the contract has one, else under Finelog's own name; the signs of life (phase, progress) are
        no figures.
        """
        try:
            found = await self._read(contract, (first_step, last_step), figures)
        except _WithheldError as error:
            return self._source.unknown(error).model_copy(update={"reason": Gap.UNRELIABLE})
        except ServiceError as error:
            return self._source.unknown(error)
        return Known(value=found, at=self._source.now())

    async def _read(self, contract: Contract, steps: tuple[int, int], figures: tuple[str, ...]) -> RunRows:
        rpc = self._source.asked()
        run_ids = run_ids_of(contract)
        words = figure_names(contract.metrics)
        asked = {name: names_of(name, words) for name in figures}
        for table in parse_namespaces(await rpc.namespaces()):
            executions = parse_executions(await rpc.rows(who_logged(table, run_ids)))
            if executions:
                names = tuple(dict.fromkeys(each for given in asked.values() for each in given))
                wanted = Wanted(
                    table=table,
                    run_ids=run_ids,
                    names=names,
                    first_step=steps[0],
                    last_step=steps[1],
                    last_seq=max(each.last_seq for each in executions),
                )
                return await self._of_table(rpc, wanted, executions, asked, words)
        return RunRows(History({}), executions=(), newest_step=None)

    async def _of_table(
        self,
        rpc: FinelogRpc,
        wanted: Wanted,
        executions: tuple["Execution", ...],
        asked: Mapping[str, tuple[str, ...]],
        words: Mapping[str, str],
    ) -> RunRows:
        gathered = Gathered(wanted.table.form, [each.name for each in executions])
        count = _count(await rpc.rows(wanted.count()))
        while gathered.rows < min(count, self._most_rows):
            before = gathered.rows
            sql = wanted.page(gathered.last_seq, self._page_rows)
            await rpc.answer(sql, gathered.add_answer)
            if gathered.rows == before:
                raise _WithheldError(SERVICE, f"there are {count} rows of these steps, and {before} of them come")
        found = await rpc.off_loop(partial(gathered.figures, wanted.first_step, wanted.last_step))
        newest = [each.newest_step for each in executions if each.newest_step is not None]
        return RunRows(
            History(_as_asked(found, asked) if asked else _by_word(found, words)),
            executions=tuple(each.name for each in executions),
            newest_step=max(newest, default=None),
            is_cut=gathered.rows < count,
            began_at=tuple(each.began_at for each in executions),
        )


class _WithheldError(ServiceError):
    """The server tells of rows that it does not hand out."""


class Execution(Value):
    """One execution of a run."""

    name: str
    """Empty for rows that name nobody."""
    began_at: datetime | None
    first_seq: int
    last_seq: int
    newest_step: int | None


def parse_executions(rows: tuple[dict[str, Any], ...]) -> tuple[Execution, ...]:
    """Return a run's executions in the order in which they began to log; ``seq`` decides where their clocks do not.

    Raises:
        UnrecognisedError: the answer is not as known.
    """
    found = []
    for row in rows:
        first, last = row.get("first_seq"), row.get("last_seq")
        name, newest = row.get("execution_uid"), row.get("newest_step")
        step = parse_step(newest)
        if not isinstance(first, int) or not isinstance(last, int) or not isinstance(name, str):
            raise UnrecognisedError(SERVICE, f"who logged is not told as known: {sorted(row)}")
        if newest is not None and step is None:
            raise UnrecognisedError(SERVICE, f"the newest step of {name or 'the run'} is {str(newest)[:40]}")
        began_at = moment_of(row.get("began"))
        found.append(Execution(name=name, began_at=began_at, first_seq=first, last_seq=last, newest_step=step))
    return tuple(sorted(found, key=_began))


def _began(execution: Execution) -> tuple[bool, float, int]:
    at = execution.began_at
    return at is None, at.timestamp() if at is not None else 0.0, execution.first_seq


def _count(rows: tuple[dict[str, Any], ...]) -> int:
    count = rows[0].get("rows") if rows else None
    if not isinstance(count, int):
        raise UnrecognisedError(SERVICE, "how many rows there are is not told as known")
    return count


def names_of(asked: str, words: Mapping[str, str]) -> tuple[str, ...]:
    """Return how a figure may be called in Finelog, the likeliest first.

    Args:
        asked: Hero's word, or the figure's own name, spelled as the tracker spells it or as Finelog does.
        words: from ``figure_names``.
    """
    # The later of two names of one word is the one that the contract means more.
    named = tuple(name for name, word in words.items() if word == asked)
    return named[::-1] or (finelog_name(asked),)


def _as_asked(found: Mapping[str, Figure], asked: Mapping[str, tuple[str, ...]]) -> dict[str, Figure]:
    present = {key: next((name for name in names if name in found), None) for key, names in asked.items()}
    return {key: found[name] for key, name in present.items() if name is not None}


def _by_word(found: Mapping[str, Figure], words: Mapping[str, str]) -> dict[str, Figure]:
    """Return every figure once: under Hero's word the likeliest of several, all else under its own name."""
    names = {word: next((name for name in names_of(word, words) if name in found), None) for word in words.values()}
    chosen = {word: found[name] for word, name in names.items() if name is not None}
    used = frozenset(names.values())
    return chosen | {name: figure for name, figure in found.items() if name not in used and name not in chosen}
