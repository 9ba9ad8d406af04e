"""What Finelog keeps of a run that stands still: its tasks' use of processors, thread dumps, NCCL's word on the ranks.

Read-only, and of records alone: no profile is taken, no task is touched. ``stacks.py`` and ``ranks.py`` beside this
file read what comes. Source: what is looked at in marin-community/marin#8870 and #7344, and marin's
docs/ops/training-stall-alert-contract.md ("NCCL RAS snapshots").
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from bot.clock import Clock
from bot.errors import ServiceError, UnrecognisedError
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.hang import HangEvidence, RankStatistics, TaskStack, TaskUse
from bot.model.job import Job, Task
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.settings import FinelogSettings
from bot.sources.finelog.executions import executions_of, is_newest
from bot.sources.finelog.failure import SERVICE, MissingPackageError
from bot.sources.finelog.ranks import RAS_NAMES, parse_ranks
from bot.sources.finelog.rows import moment_of
from bot.sources.finelog.rpc import FinelogRpc
from bot.sources.finelog.stacks import DUMP_CHARS, parse_stacks
from bot.sources.finelog.tables import text, texts
from bot.sources.gaps import unknown_of
from bot.sources.metric_rows import parse_figure

WINDOW = timedelta(minutes=10)
"""Use is looked at over so long: less than any stall is old when it is told, and ten samples where one a minute is
kept, as on Kubernetes."""
DUMPS_OF = timedelta(hours=1)
"""Iris takes one of each task every ten minutes; an older one tells of another time."""
RANKS_OF = timedelta(minutes=30)
"""The trainer asks NCCL every ten minutes."""
_RANKS = "telemetry_v1.levanter"
_MOST_TASKS = 2048
_MOST_RAS_ROWS = 5000
_MIB = 2**20


class FinelogHang:
    """Implements ``bot.sources.ports.HangSource``; with connections of its own, so that it delays no other question."""

    def __init__(self, settings: FinelogSettings, clock: Clock) -> None:
        """Take ``Settings.finelog_in_use``, whose ``url`` is set, and the clock."""
        if settings.url is None:
            msg = "there is no address to ask"
            raise ValueError(msg)
        self._clock = clock
        self._deadline = settings.deadline
        self._rpc = FinelogRpc(
            settings.url,
            token=settings.token.get_secret_value() if settings.token else None,
            deadline=settings.deadline,
            at_once=settings.threads,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._rpc.close()

    async def hang(self, contract: Contract, jobs: Reading[tuple[Job, ...]]) -> Reading[HangEvidence]:
        """Ask what is on record of the tasks that run now, all of it within one deadline.

        A part that fails or takes too long is Unknown, and the others count. Without the tasks there is nothing to ask.
        """
        if isinstance(jobs, Unknown):
            return Unknown(reason=jobs.reason, detail=f"which tasks run is not known: {jobs.detail}", at=jobs.at)
        at, until = self._clock.now(), asyncio.get_running_loop().time() + self._deadline.total_seconds()
        tasks = running_tasks(jobs.value)
        tables = asyncio.create_task(self._columns(), name="tables")

        async def within[T](ask: Callable[[Mapping[str, frozenset[str]]], Awaitable[T]]) -> Reading[T]:
            try:
                async with asyncio.timeout_at(until):
                    return Known(value=await ask(await asyncio.shield(tables)), at=at)
            except TimeoutError:
                detail = f"no answer in {say_duration(self._deadline)}"
                return Unknown(reason=Gap.TIMEOUT, detail=detail, at=at)
            except MissingPackageError as error:
                return Unknown(reason=Gap.NOT_CONFIGURED, detail=error.detail, at=at)
            except ServiceError as error:
                return unknown_of(error, at)

        try:
            use, stacks, ranks = await asyncio.gather(
                within(lambda columns: self._use(columns, tasks, at)),
                within(lambda columns: self._stacks(columns, tasks, at)),
                within(lambda columns: self._ranks(columns, contract, jobs, at)),
            )
        finally:
            tables.cancel()
            await asyncio.wait((tables,))
        evidence = HangEvidence(window_began_at=at - WINDOW, use=use, stacks=stacks, ranks=ranks)
        return Known(value=evidence, at=at)

    async def _columns(self) -> Mapping[str, frozenset[str]]:
        return parse_columns(await self._rpc.namespaces())

    async def _use(
        self, columns: Mapping[str, frozenset[str]], tasks: Mapping[str, Task], at: datetime
    ) -> tuple[TaskUse, ...]:
        there = _needed(columns, "iris.task", "task_id", "attempt_id", "ts", "cpu_millicores", "memory_mb")
        return parse_use(await self._rpc.rows(use_question(tasks, there, at - WINDOW)), tasks) if tasks else ()

    async def _stacks(
        self, columns: Mapping[str, frozenset[str]], tasks: Mapping[str, Task], at: datetime
    ) -> tuple[TaskStack, ...]:
        there = _needed(columns, "iris.profile", "source", "attempt_id", "captured_at", "type", "profile_data")
        if not tasks:
            return ()
        return parse_stacks(await self._rpc.rows(stacks_question(tasks, there, at - DUMPS_OF)), tasks)

    async def _ranks(
        self,
        columns: Mapping[str, frozenset[str]],
        contract: Contract,
        jobs: Reading[tuple[Job, ...]],
        at: datetime,
    ) -> RankStatistics | None:
        _needed(columns, _RANKS, "run_id", "name", "value", "timestamp_ms", "attributes_json", "execution_uid")
        run_ids = tuple(dict.fromkeys(filter(None, (contract.run_id, contract.tracker.id))))
        return parse_ranks(await self._rpc.rows(ranks_question(run_ids, at - RANKS_OF)), executions_of(jobs))


def running_tasks(jobs: tuple[Job, ...]) -> dict[str, Task]:
    """Return the tasks that may hang, by id: of live jobs that have no live job below them, as a coordinator has."""
    live = [job for job in jobs if not job.state.is_terminal]
    leaves = [job for job in live if not any(other.job_id.startswith(f"{job.job_id}/") for other in live)]
    tasks = [task for job in leaves if isinstance(job.tasks, Known) for task in job.tasks.value]
    return {task.task_id: task for task in tasks[:_MOST_TASKS] if task.current_attempt is not None}


def use_question(tasks: Mapping[str, Task], columns: frozenset[str], since: datetime) -> str:
    """Return the question for what each attempt used since then."""
    busy = "median(accelerator_util_pct)" if "accelerator_util_pct" in columns else "NULL"
    figures = (
        "count(*) AS samples, median(cpu_millicores) AS cpu_millicores, max(memory_mb) AS memory_mb, "
        f"{busy} AS accelerator_pct, max(ts) AS last_at"
    )
    where = f"{_among('task_id', tasks)} AND ts >= {_moment(since)}"
    return f'SELECT task_id, attempt_id, {figures} FROM "iris.task" WHERE {where} GROUP BY task_id, attempt_id'  # noqa: S608 - every text goes through text()


def stacks_question(tasks: Mapping[str, Task], columns: frozenset[str], since: datetime) -> str:
    """Return the question for the newest thread dump of each attempt; dumps that show variables are left alone."""
    where = f"{_among('source', tasks)} AND type = 'thread' AND captured_at >= {_moment(since)}"
    if "locals_dump" in columns:
        where += " AND (locals_dump IS NULL OR NOT locals_dump)"
    newest = "row_number() OVER (PARTITION BY source, attempt_id ORDER BY captured_at DESC) AS place"
    dump = f"substr(encode(profile_data, 'base64'), 1, {DUMP_CHARS}) AS dump"
    found = f'SELECT source, attempt_id, captured_at, {dump}, {newest} FROM "iris.profile" WHERE {where}'  # noqa: S608 - every text goes through text()
    wanted = "source, attempt_id, captured_at, dump"
    return f"SELECT {wanted} FROM ({found}) AS found WHERE place = 1 LIMIT {_MOST_TASKS}"  # noqa: S608 - built just above


def ranks_question(run_ids: tuple[str, ...], since: datetime) -> str:
    """Return the question for NCCL's statistics, the newest rows first."""
    columns = "seq, timestamp_ms, name, value, attributes_json, execution_uid"
    late = f"timestamp_ms >= {int(since.timestamp() * 1000)}"
    where = f"run_id IN ({texts(run_ids)}) AND name IN ({texts(RAS_NAMES)}) AND {late}"
    return f'SELECT {columns} FROM "{_RANKS}" WHERE {where} ORDER BY seq DESC LIMIT {_MOST_RAS_ROWS}'  # noqa: S608 - every text goes through text()


def parse_columns(answer: object) -> dict[str, frozenset[str]]:
    """Return the columns of each table.

    Raises:
        UnrecognisedError: the answer is not as known.
    """
    try:
        listed: Any = answer["namespaces"]  # type: ignore[index]  # whatever it is, what is wrong with it is caught
        return {
            str(each["namespace"]): frozenset(str(column["name"]) for column in each["schema"]["columns"])
            for each in listed
        }
    except (KeyError, TypeError) as error:
        raise UnrecognisedError(SERVICE, f"the tables are not told as known: {error!r}"[:300]) from error


def parse_use(rows: Iterable[Mapping[str, Any]], tasks: Mapping[str, Task]) -> tuple[TaskUse, ...]:
    """Return what the newest attempt of each task used; rows of other attempts and other tasks are another time's.

    Raises:
        UnrecognisedError: a row of such an attempt has no figures or no time.
    """
    found = [_use(raw) for raw in rows if is_newest(raw, "task_id", tasks)]
    return tuple(sorted(found, key=lambda each: tasks[each.task_id].index))


def _use(raw: Mapping[str, Any]) -> TaskUse:
    cpu, memory, busy = (_figure(raw.get(name)) for name in ("cpu_millicores", "memory_mb", "accelerator_pct"))
    samples, last_at = raw.get("samples"), moment_of(raw.get("last_at"))
    if cpu is None or memory is None or not isinstance(samples, int) or last_at is None:
        raise UnrecognisedError(SERVICE, f"a row of iris.task is not as known: {sorted(raw)}"[:300])
    return TaskUse(
        task_id=str(raw["task_id"]),
        cores=max(0.0, cpu / 1000),
        memory_bytes=max(0, int(memory * _MIB)),
        accelerator_fraction=None if busy is None else busy / 100,
        samples=samples,
        last_at=last_at,
    )


def _figure(raw: object) -> float | None:
    value = parse_figure(raw)
    return value if value is not None and math.isfinite(value) else None


def _among(column: str, tasks: Mapping[str, Task]) -> str:
    """Return the condition for the tasks of some jobs, as ranges: whole blocks of the table are passed over by them."""
    jobs = dict.fromkeys(task_id.rpartition("/")[0] for task_id in tasks)
    # "0" is the character behind "/".
    ranges = (f"({column} >= {text(f'{job}/')} AND {column} < {text(f'{job}0')})" for job in jobs)
    return f"({' OR '.join(ranges)})"


def _needed(columns: Mapping[str, frozenset[str]], table: str, *names: str) -> frozenset[str]:
    there = columns.get(table)
    if there is None:
        raise UnrecognisedError(SERVICE, f"there is no table {table}")
    if missing := sorted(set(names) - there):
        raise UnrecognisedError(SERVICE, f"{table} has no column {', '.join(missing)}")
    return there


def _moment(at: datetime) -> str:
    return f"to_timestamp_millis({int(at.timestamp() * 1000)})"
