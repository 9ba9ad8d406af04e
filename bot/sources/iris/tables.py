"""``iris query -f csv``: the SQL for a job tree, and its rows. Pure. For CLIs without ``rpc``; wants the admin role.

Columns differ between generations, so they are discovered. The columns that hold environments and argument lists are
never named.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from bot.model.job import Attempt, Job, Task
from bot.model.reading import Gap, Known, Unknown
from bot.model.value import JobId
from bot.sources.iris.devices import NOT_TOLD, device_of_json
from bot.sources.iris.parse import NO_TASKS, exit_code_of, parent_of, recognised
from bot.sources.iris.shape import Fields, ShapeError, job_state, storable, task_state

COLUMNS_SQL = (
    "SELECT 'jobs' AS owner, name FROM pragma_table_info('jobs') "
    "UNION ALL SELECT 'tasks', name FROM pragma_table_info('tasks') "
    "UNION ALL SELECT 'task_attempts', name FROM pragma_table_info('task_attempts') "
    "UNION ALL SELECT 'job_config', name FROM pragma_table_info('job_config')"
)

_WANTED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "jobs": ("j", ("job_id", "state", "error", "submitted_at_ms", "started_at_ms", "finished_at_ms", "num_tasks")),
    "job_config": ("c", ("res_device_json",)),
    "tasks": ("t", ("task_id", "task_index", "state", "error", "exit_code", "started_at_ms", "finished_at_ms")),
    "task_attempts": (
        "a",
        (
            "attempt_id",
            "attempt_uid",
            "state",
            "exit_code",
            "error",
            "node_name",
            "worker_id",
            "started_at_ms",
            "finished_at_ms",
        ),
    ),
}

_NO_TIME = datetime.fromtimestamp(0, UTC)


def rows_of(payload: object) -> tuple[Mapping[str, str], ...]:
    """Read CSV with its header row; header alone is no rows, and no header is no answer.

    Raises:
        ShapeError: it is not that.
    """
    if not isinstance(payload, str) or not payload.strip():
        raise ShapeError("the query printed nothing, not even a header")
    try:
        table = list(csv.reader(io.StringIO(payload, newline=""), strict=True))
    except csv.Error as error:
        raise ShapeError(f"the query's CSV cannot be read: {error}") from None
    header, *rows = table
    if len(set(header)) != len(header) or not all(name.isidentifier() for name in header):
        raise ShapeError(f"the query's header is {header!r:.80}")
    rows = [row for row in rows if row]
    for row in rows:
        if len(row) != len(header):
            raise ShapeError(f"a row has {len(row)} values for {len(header)} columns")
    return tuple(dict(zip(header, row, strict=True)) for row in rows)


@recognised
def parse_columns(payload: object) -> frozenset[tuple[str, str]]:
    """Read which table has which column."""
    return frozenset((row.get("owner", ""), row.get("name", "")) for row in rows_of(payload))


def tree_sql(job_id: JobId, columns: Iterable[tuple[str, str]]) -> str:
    """Return the query for one job and everything below it, never for a neighbour whose name begins alike."""
    there = frozenset(columns)
    chosen = _chosen(there, _WANTED)
    devices = "LEFT JOIN job_config c ON c.job_id = j.job_id " if ("job_config", "res_device_json") in there else ""
    quoted = _quoted(job_id)
    like = _literally(quoted)
    return (
        f"SELECT {chosen} FROM jobs j LEFT JOIN tasks t ON t.job_id = j.job_id "  # noqa: S608 - quoted above; read-only
        f"LEFT JOIN task_attempts a ON a.task_id = t.task_id {devices}"
        f"WHERE j.job_id = '{quoted}' OR j.job_id LIKE '{like}/%' ESCAPE '\\' "
        f"ORDER BY j.job_id, t.task_index, a.attempt_id"
    )


def named_sql(prefixes: Iterable[JobId], ids: Iterable[JobId], columns: Iterable[tuple[str, str]]) -> str:
    """Return the query for the jobs whose ids begin so or are these, without what is below them and without tasks."""
    begins = (f"j.job_id LIKE '{_literally(_quoted(prefix))}%' ESCAPE '\\'" for prefix in prefixes)
    are = (f"j.job_id = '{_quoted(job_id)}'" for job_id in ids)
    wanted = " OR ".join((*begins, *are))
    chosen = _chosen(frozenset(columns), ("jobs",))
    return f"SELECT {chosen} FROM jobs j WHERE ({wanted}) AND j.job_id NOT LIKE '/%/%/%' ORDER BY j.job_id"  # noqa: S608 - quoted; read-only


@recognised
def parse_named_rows(payload: object, is_wanted: Callable[[str], bool]) -> tuple[Job, ...]:
    """Read those rows, one a job; whose ids are not wanted are strangers, and not looked at."""
    rows = rows_of(storable(payload) if isinstance(payload, str) else payload)
    names = tuple(row.get("j_job_id", "") for row in rows)
    if not all(names):
        raise ShapeError("a row of the jobs holds no job_id")
    jobs = (_job(JobId(name), [row], _NO_TIME) for name, row in zip(names, rows, strict=True) if is_wanted(name))
    return tuple(
        job.model_copy(update={"tasks": Unknown(reason=Gap.NOT_CONFIGURED, detail=NO_TASKS, at=job.submitted_at)})
        for job in jobs
    )


@recognised
def parse_tree(payload: object, job_id: JobId, read_at: datetime) -> tuple[Job, ...]:
    """Read the tree's rows, one an attempt; () when the header stands alone."""
    by_job: dict[str, list[Mapping[str, str]]] = {}
    for row in rows_of(storable(payload) if isinstance(payload, str) else payload):
        by_job.setdefault(row.get("j_job_id", ""), []).append(row)
    jobs = tuple(
        _job(JobId(name), rows, read_at)
        for name, rows in by_job.items()
        if name == job_id or name.startswith(f"{job_id}/")
    )
    if jobs and all(job.job_id != job_id for job in jobs):
        raise ShapeError(f"there are rows below {job_id} and none of itself")
    return tuple(sorted(jobs, key=lambda job: (job.job_id != job_id, job.job_id)))


def _job(job_id: JobId, rows: list[Mapping[str, str]], read_at: datetime) -> Job:
    job = Fields(_of_alias(rows[0], "j"), "jobs")
    submitted_at = job.moment("submitted_at_ms")
    if submitted_at is None:
        raise ShapeError("jobs.submitted_at_ms is missing")
    by_task: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        if row.get("t_task_id"):
            by_task.setdefault(row["t_task_id"], []).append(row)
    tasks = sorted((_task(each) for each in by_task.values()), key=lambda task: task.index)
    device = device_of_json(rows[0]["c_res_device_json"]) if "c_res_device_json" in rows[0] else NOT_TOLD
    return Job(
        job_id=job_id,
        state=job_state(job.get("state"), "jobs.state"),
        submitted_at=submitted_at,
        started_at=job.moment("started_at_ms"),
        finished_at=job.moment("finished_at_ms"),
        pending_reason="",
        error=job.text("error"),
        parent=parent_of(job_id),
        tasks=Known(value=tuple(tasks), at=read_at),
        accelerator=device.accelerator,
        accelerators=device.accelerators,
        expected_tasks=job.number("num_tasks"),
    )


def _task(rows: list[Mapping[str, str]]) -> Task:
    task = Fields(_of_alias(rows[0], "t"), "tasks")
    state = task_state(task.get("state"), "tasks.state")
    return Task(
        task_id=task.required_text("task_id"),
        index=task.number("task_index") or 0,
        state=state,
        exit_code=exit_code_of(state, task.number("exit_code")),
        error=task.text("error"),
        attempts=tuple(
            _attempt(Fields(_of_alias(row, "a"), "task_attempts")) for row in rows if row.get("a_attempt_id")
        ),
        peak_memory_bytes=None,
        started_at=task.moment("started_at_ms"),
        finished_at=task.moment("finished_at_ms"),
    )


def _attempt(attempt: Fields) -> Attempt:
    state = task_state(attempt.get("state"), "task_attempts.state")
    return Attempt(
        attempt=attempt.number("attempt_id") or 0,
        uid=attempt.text("attempt_uid") or None,
        state=state,
        exit_code=exit_code_of(state, attempt.number("exit_code")),
        error=attempt.text("error"),
        node=attempt.text("node_name") or attempt.text("worker_id") or None,
        started_at=attempt.moment("started_at_ms"),
        finished_at=attempt.moment("finished_at_ms"),
    )


def _chosen(there: frozenset[tuple[str, str]], tables: Iterable[str]) -> str:
    return ", ".join(
        f"{alias}.{name} AS {alias}_{name}"
        for table in tables
        for alias, names in (_WANTED[table],)
        for name in names
        if (table, name) in there
    )


def _quoted(job_id: JobId) -> str:
    return job_id.replace("'", "''")


def _literally(quoted: str) -> str:
    return quoted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _of_alias(row: Mapping[str, str], alias: str) -> dict[str, str]:
    return {name.removeprefix(f"{alias}_"): value for name, value in row.items() if name.startswith(f"{alias}_")}
