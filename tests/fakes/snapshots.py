"""Builders for snapshots, jobs, contracts and rows: a test names what it is about, the rest is a healthy run.

Readings are given plain (a tuple of jobs, of rows …) and become Known, or as an Unknown (``unknown()``) and stay it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from bot.model.contract import Contract
from bot.model.job import Attempt, Job, JobState, Task, TaskState
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.run import Instance
from bot.model.snapshot import Checkpoint, LogLine, LogTail, MetricRow, Metrics, Snapshot
from bot.model.value import JobId, RunId
from tests.fakes.clock import START

RUN = RunId("hero-12d8b6f0")
JOB = JobId("/me/hero-coord")
CADENCE = timedelta(minutes=15)
AT = START + timedelta(hours=1)
"""Now, unless a test says otherwise: an hour after the job was submitted at ``START``."""


def later(minutes: float) -> datetime:
    """Return the moment that many minutes after ``AT``."""
    return AT + timedelta(minutes=minutes)


def contract(**fields: Any) -> Contract:
    """Return the contract of an Iris run with a final step of 10,000 and a resolved cadence of 15 minutes."""
    given: dict[str, Any] = {
        "run_id": RUN,
        "dri": "ada",
        "command": "iris job run --no-wait --job-name hero-coord -- python -m train",
        "output_root": "gs://bucket/users/ada/hero-12d8b6f0",
        "final_step": 10_000,
        "final_step_source": "config trainer.num_train_steps",
        "orchestrator": {"kind": "iris", "job_id": JOB},
        "cadence": {"check": CADENCE},
        "tracker": {"mode": "online", "project": "hero", "id": RUN},
    }
    return Contract.model_validate(given | fields)


def unknown(reason: Gap = Gap.TIMEOUT, detail: str = "no answer in 20 s", at: datetime = AT) -> Unknown:
    return Unknown(reason=reason, detail=detail, at=at)


def attempt(
    number: int = 0,
    state: TaskState = TaskState.RUNNING,
    *,
    uid: str | None = None,
    exit_code: int | None = None,
    error: str = "",
    node: str | None = "node-0",
    started_at: datetime | None = START,
    finished_at: datetime | None = None,
) -> Attempt:
    return Attempt(
        attempt=number,
        uid=uid or f"uid-{number}",
        state=state,
        exit_code=exit_code,
        error=error,
        node=node,
        started_at=started_at,
        finished_at=finished_at,
    )


def task(
    index: int = 0,
    state: TaskState = TaskState.RUNNING,
    *,
    job_id: str = JOB,
    exit_code: int | None = None,
    error: str = "",
    node: str | None = None,
    attempts: tuple[Attempt, ...] | None = None,
    peak_memory_bytes: int | None = None,
    started_at: datetime | None = START,
    finished_at: datetime | None = None,
) -> Task:
    """Return one task; without ``attempts`` it has the one attempt that matches it."""
    if attempts is None:
        attempts = (
            attempt(
                0,
                state,
                uid=f"uid-{index}-0",
                exit_code=exit_code,
                error=error,
                node=node or f"node-{index}",
                started_at=started_at,
                finished_at=finished_at,
            ),
        )
    return Task(
        task_id=f"{job_id}/{index}",
        index=index,
        state=state,
        exit_code=exit_code,
        error=error,
        attempts=attempts,
        peak_memory_bytes=peak_memory_bytes,
        started_at=started_at,
        finished_at=finished_at,
    )


def job(
    state: JobState = JobState.RUNNING,
    *,
    job_id: str = JOB,
    submitted_at: datetime = START,
    started_at: datetime | None = START,
    finished_at: datetime | None = None,
    pending_reason: str = "",
    error: str = "",
    parent: str | None = None,
    tasks: tuple[Task, ...] | Unknown | None = None,
    accelerator: str | None = None,
    accelerators: int | None = None,
    expected_tasks: int | None = None,
) -> Job:
    """Return a job; without ``tasks`` it has one task in the same state, with no exit code."""
    if tasks is None:
        tasks = (task(0, TaskState(state.value), job_id=job_id, started_at=started_at, finished_at=finished_at),)
    return Job(
        job_id=JobId(job_id),
        state=state,
        submitted_at=submitted_at,
        started_at=started_at,
        finished_at=finished_at,
        pending_reason=pending_reason,
        error=error,
        parent=JobId(parent) if parent else None,
        tasks=tasks if isinstance(tasks, Unknown) else Known(value=tasks, at=AT),
        accelerator=accelerator,
        accelerators=accelerators,
        expected_tasks=expected_tasks,
    )


def failed_job(
    exit_code: int | None = 1, error: str = "", *, node: str = "node-0", finished_at: datetime = AT, **fields: Any
) -> Job:
    """Return a job whose only task failed with this exit code."""
    started_at = fields.get("started_at", START)
    dead = task(
        0,
        TaskState.FAILED,
        exit_code=exit_code,
        error=error,
        node=node,
        started_at=started_at,
        finished_at=finished_at,
    )
    given: dict[str, Any] = {"tasks": (dead,), "finished_at": finished_at} | fields
    return job(JobState.FAILED, **given)


def instance(
    number: int = 0,
    *,
    job_id: str = JOB,
    submitted_at: datetime | None = START,
    launched_at: datetime = START,
    from_step: int | None = None,
    ended_at: datetime | None = None,
    exit_code: int | None = None,
    replaces: str = "",
) -> Instance:
    return Instance(
        run_id=RUN,
        number=number,
        job_id=JobId(job_id),
        submitted_at=submitted_at,
        launched_at=launched_at,
        from_step=from_step,
        ended_at=ended_at,
        exit_code=exit_code,
        replaces=replaces,
    )


def pod(
    index: int = 0,
    phase: str = "Running",
    *,
    job_id: str = JOB,
    number: int | None = 0,
    uid: str = "",
    node: str | None = "node-0",
    reason: str = "",
    exit_code: int | None = None,
    created_at: datetime | None = START,
    deleted_at: datetime | None = None,
) -> Pod:
    """Return a pod of attempt ``number`` of a task; its name tells its task, its attempt and when it was made."""
    made = f"{created_at:%H%M}" if created_at else "unknown"
    return Pod(
        name=f"iris-{index}-{number}-{made}",
        uid=f"pod-{job_id}-{index}-{number}-{made}",
        job_id=JobId(job_id),
        task_index=index,
        attempt=number,
        attempt_uid=uid,
        phase=phase,
        node=node,
        reason=reason,
        exit_code=exit_code,
        created_at=created_at,
        started_at=created_at,
        deleted_at=deleted_at,
    )


def row(step: int, at: datetime | None = None, **values: float) -> MetricRow:
    """Return the figures of one step; a loss of 2.0 unless values are given."""
    return MetricRow(step=step, values=values or {"loss": 2.0}, at=at)


def rows(first: int, last: int, *, until: datetime | None = None, every_s: float = 10.0) -> tuple[MetricRow, ...]:
    """Return one healthy row a step from ``first`` to ``last``; with ``until`` they are timed, the last one then."""
    return tuple(
        row(step, None if until is None else until - timedelta(seconds=every_s * (last - step)))
        for step in range(first, last + 1)
    )


def lines(*texts: str, task: str | None = None, attempt: int | None = None, at: datetime | None = None) -> LogTail:
    return LogTail(lines=tuple(LogLine(text=text, at=at, task=task, attempt=attempt) for text in texts), is_cut=False)


def checkpoint(
    step: int,
    *,
    saved_at: datetime | None = None,
    is_complete: bool = True,
    is_temporary: bool = False,
    root: str = "gs://bucket/users/ada/hero-12d8b6f0/checkpoints",
) -> Checkpoint:
    return Checkpoint(
        step=step,
        path=f"{root}/step-{step}",
        is_complete=is_complete,
        is_temporary=is_temporary,
        saved_at=saved_at,
        fault="" if is_complete else "metadata.json is missing",
    )


def snapshot(
    at: datetime = AT,
    *,
    launch: Instance | None = None,
    is_first: bool = False,
    jobs: tuple[Job, ...] | Job | Unknown | None = None,
    log: LogTail | str | Unknown = "",
    metrics: Iterable[MetricRow] | Metrics | Unknown = (),
    checkpoints: Iterable[Checkpoint] | Unknown = (),
    neighbours: tuple[Job, ...] | Unknown = (),
) -> Snapshot:
    """Return what was read at ``at``: one running job with an empty log, no new rows and no checkpoints.

    Args:
        at: of the snapshot and of all its readings.
        launch: the instance that is remembered; by default the one of the first job, else of ``JOB`` at ``START``.
        is_first: nothing is remembered yet: ``instance`` is None.
        jobs: as the orchestrator listed them; one job may be given bare.
        log: the tail, or its text.
        metrics: the new rows.
        checkpoints: in all roots.
        neighbours: other live jobs of the run.
    """
    listed: tuple[Job, ...] | Unknown
    match jobs:
        case None:
            listed = (job(),)
        case Job():
            listed = (jobs,)
        case _:
            listed = jobs
    if launch is None:
        first = listed[0] if isinstance(listed, tuple) and listed else None
        launch = instance(job_id=first.job_id, submitted_at=first.submitted_at) if first else instance()
    tail = lines(*log.splitlines()) if isinstance(log, str) else log
    if not isinstance(metrics, Metrics | Unknown):
        metrics = Metrics(rows=tuple(metrics))
    if not isinstance(checkpoints, Unknown):
        checkpoints = tuple(sorted(checkpoints, key=lambda each: each.step))
    return Snapshot(
        run_id=RUN,
        at=at,
        instance=None if is_first else launch,
        jobs=_read(listed, at),
        log=_read(tail, at),
        metrics=_read(metrics, at),
        checkpoints=_read(checkpoints, at),
        neighbours=_read(neighbours, at),
    )


def blind(at: datetime = AT, reason: Gap = Gap.TIMEOUT) -> Snapshot:
    """Return a snapshot of nothing but Unknowns."""
    dark = unknown(reason, at=at)
    seen = snapshot(at, jobs=dark, log=dark, metrics=dark, checkpoints=dark)
    others = ("tracker", "telemetry", "code", "config", "pods", "export", "neighbours", "hang")
    return seen.model_copy(update=dict.fromkeys(others, dark))


def _read[T](value: T | Unknown, at: datetime) -> Reading[T]:
    return value if isinstance(value, Unknown) else Known(value=value, at=at)
