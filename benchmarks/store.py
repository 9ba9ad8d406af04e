"""How many transactions a second handlers get: fifty writers at once relative to one, an old database to a young."""

import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.ratios import compare
from bot.clock import SystemClock
from bot.model.audit import AuditEntry
from bot.model.record import Decision
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.store.store import Store
from tests.fakes.clock import START
from tests.fakes.decisions import a_telling

_WRITERS = 50
_TRANSACTIONS = 100
_YOUNG = 200
_OLD = 4000


async def decide(store: Store, number: int) -> None:
    """Do what a handler's transaction does: read the run, decide, commit state, audit and something to tell."""
    run_id = RunId(f"run-{number % 10}")
    async with store.transaction() as tx:
        record = await tx.record(run_id)
        run = record.run.model_copy(update={"milestone_step": (record.run.milestone_step or 0) + 1})
        audit = AuditEntry(at=START, run_id=run_id, who="hero", what="benchmarked", detail=str(number))
        told = a_telling(f"{run_id}/{run.milestone_step}", run_id=run_id)
        await tx.apply(Decision(run=run, tell=(told,), audit=(audit,)), run_id, START)


async def work_through(store: Store, writers: int, transactions: int) -> None:
    numbers = iter(range(transactions))

    async def write() -> None:
        for number in numbers:
            await decide(store, number)

    async with asyncio.TaskGroup() as group:
        for _ in range(writers):
            group.create_task(write())


class Bench:
    """One database, in an event loop that is kept between measurements."""

    def __init__(self, runner: asyncio.Runner, directory: Path) -> None:
        self._runner = runner
        self._store = runner.run(Store.open(f"sqlite:///{directory / 'hero.db'}", SystemClock(), Redactor()))

    def grow(self, transactions: int) -> None:
        self._runner.run(work_through(self._store, 1, transactions))

    def measure(self, writers: int) -> float:
        """Return transactions a second."""
        began = time.perf_counter()
        self._runner.run(work_through(self._store, writers, _TRANSACTIONS))
        return _TRANSACTIONS / (time.perf_counter() - began)

    def close(self) -> None:
        self._runner.run(self._store.close())


def main() -> None:
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        young, old = Bench(runner, Path(one)), Bench(runner, Path(other))
        young.grow(_YOUNG)
        old.grow(_OLD)
        compare(
            "transactions a second, a database with many times the history relative to a young one",
            lambda: young.measure(1),
            lambda: old.measure(1),
            rounds=7,
        )
        compare(
            f"transactions a second, {_WRITERS} writers at once relative to one after the other",
            lambda: young.measure(1),
            lambda: young.measure(_WRITERS),
            rounds=7,
        )
        young.close()
        old.close()


if __name__ == "__main__":
    main()
