"""Jobs on Hero's own machine: supervised process groups, found again by pid plus start after a restart of Hero.

``local_files`` knows the job's directory, ``local_processes`` what still lives; here the two become a state.
"""

import os
import re
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from bot.clock import Clock
from bot.errors import ServiceError, UnreachableError, UnrecognisedError
from bot.model.contract import Contract
from bot.model.job import Attempt, Job, JobState, Task, TaskState
from bot.model.reading import Known, Reading
from bot.model.snapshot import LogLine, LogTail
from bot.model.value import JobId, Value
from bot.regular_files import open_regular
from bot.sources.gaps import refused_by_system, unknown_of
from bot.sources.kept import Kept
from bot.sources.local_files import (
    SERVICE,
    ExitRecord,
    JobRecord,
    StopRecord,
    is_job_of,
    job_directory,
    job_id_of,
    job_numbers,
    read_record,
)
from bot.sources.local_processes import boot_of, is_alive, start_of
from bot.threads import BoundedThreads

LOG_BYTES = 1_000_000
LOG_LINES = 20_000
UNFINISHED_LINE_REST = timedelta(seconds=2)
"""A last line without its end is left for the next look while the file was touched so recently: half of ``loss=12.5``
is a wrong number. Afterwards, and once the job has ended, it is all there will ever be."""
_GUARD_BYTES = 4096
"""So many bytes before the new ones are read again, to see that they are still those that were there."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Ending(Value):
    """What the files and the processes say together."""

    state: JobState
    exit_code: int | None = None
    finished_at: datetime | None = None
    peak_rss_bytes: int | None = None
    error: str = ""


class Followed(Value):
    """How far one job's output was read."""

    job_id: JobId
    device: int
    inode: int
    size: int
    """Of the file, when it was read."""
    end: bytes
    """Its last bytes, ``LOG_BYTES`` at most."""


class LocalOrchestrator:
    """Answers for the jobs that ``bot.actions.local`` starts."""

    def __init__(
        self, clock: Clock, *, threads: BoundedThreads | None = None, deadline: timedelta = timedelta(seconds=10)
    ) -> None:
        """Take the clock.

        Args:
            clock: for the moment of the readings.
            threads: where files are read; a directory on a network file system may hang.
            deadline: of one question.
        """
        self._clock = clock
        self._threads = threads or BoundedThreads(SERVICE, 4)
        self._deadline = deadline
        self._kept: Kept[Followed] = Kept()

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        """Ask for a job; Known(()) only when its directory does not exist."""
        at = self._clock.now()
        try:
            job = await self._threads.call(find_job, contract, job_id, at, deadline=self._deadline, key=contract.run_id)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=(job,) if job else (), at=at)

    async def neighbours(
        self, contract: Contract, job_id: JobId | None, past: tuple[JobId, ...]
    ) -> Reading[tuple[Job, ...]]:
        """Look for other live jobs of the run: by the directories that are there, and by the launches on record."""
        at = self._clock.now()
        try:
            jobs = await self._threads.call(
                find_neighbours, contract, job_id, past, at, deadline=self._deadline, key=contract.run_id
            )
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=jobs, at=at)

    async def log(
        self,
        contract: Contract,
        job_id: JobId,
        since: datetime | None,  # noqa: ARG002 - a job's output is one file, and no namesake can write to it
    ) -> Reading[LogTail]:
        """Read the newest lines of a job's output; they carry no time of their own. Only what is new is read."""
        at = self._clock.now()
        kept = self._kept.get(contract.run_id)
        try:
            followed, tail = await self._threads.call(
                _read_log, contract, job_id, at, kept, deadline=self._deadline, key=contract.run_id
            )
        except ServiceError as error:
            return unknown_of(error, at)
        self._kept.put(contract.run_id, followed)
        return Known(value=tail, at=at)


def find_job(contract: Contract, job_id: JobId, at: datetime) -> Job | None:
    """Read a job's files and look for its processes; None when there is no such job. Blocks.

    Raises:
        ServiceError: it cannot be told.
    """
    directory = job_directory(contract, job_id)
    record = read_job(directory)
    if record is None:
        return None
    _check_machine(record)
    alive = is_alive(record)
    # In this order: a supervisor writes the end before it goes, so that a job without both has lost its supervisor.
    ended = read_record(directory / "exit.json", ExitRecord)
    stopped = read_record(directory / "stop.json", StopRecord)
    return _job(job_id, record, judge(record, ended, stopped, alive=alive), at)


def find_neighbours(contract: Contract, job_id: JobId | None, past: tuple[JobId, ...], at: datetime) -> tuple[Job, ...]:
    """Return the run's live jobs beside this one, the oldest first. Blocks.

    One whose end is on record is not looked at any closer: it needs no process, and no machine that sees it.

    Raises:
        ServiceError: it cannot be told.
    """
    numbered = {job_id_of(contract, number) for number in job_numbers(contract)}
    others = sorted({*numbered, *(each for each in past if is_job_of(contract, each))} - {job_id})
    jobs = (
        find_job(contract, each, at)
        for each in others
        if read_record(job_directory(contract, each) / "exit.json", ExitRecord) is None
    )
    live = (job for job in jobs if job is not None and not job.state.is_terminal)
    return tuple(sorted(live, key=lambda job: job.submitted_at))


def _check_machine(record: JobRecord) -> None:
    """Refuse to judge another machine's processes, as on a shared file system.

    Raises:
        UnreachableError: name and boot both differ. One alone is a machine that was renamed or started anew.
    """
    here, boot = socket.gethostname(), boot_of(start_of(os.getpid()))
    theirs = boot_of(record.supervisor.start)
    if boot and theirs and boot != theirs and here != record.host:
        raise UnreachableError(SERVICE, f"the job was started on {record.host}; here is {here}, which cannot see it")


def read_job(directory: Path) -> JobRecord | None:
    """Read ``job.json``; None when the whole directory is not there.

    Raises:
        ServiceError: it cannot be read, or a directory has lost its record.
    """
    record = read_record(directory / "job.json", JobRecord)
    if record is not None:
        return record
    try:
        directory.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    raise UnrecognisedError(SERVICE, f"{directory} holds no job.json; if no job runs from it, remove the directory")


def judge(record: JobRecord, ended: ExitRecord | None, stopped: StopRecord | None, *, alive: bool) -> Ending:
    """Return what a job does now. Pure."""
    if ended is None and alive:
        return Ending(state=JobState.RUNNING)
    is_ours = stopped is not None and (ended is None or stopped.at <= ended.finished_at)
    if ended is None:
        state = JobState.KILLED if is_ours else JobState.WORKER_FAILED
        how = "nothing of it lives, and no end is on record: its supervisor died"
        if record.command is None:
            how += " before it had started the command"
        return Ending(state=state, error=how)
    if is_ours:
        state, how = JobState.KILLED, f"stopped on request R{stopped.request}" if stopped else ""
    elif ended.exit_code == 0:
        state, how = JobState.SUCCEEDED, ""
    else:
        state, how = JobState.FAILED, say_exit(ended.exit_code)
    return Ending(
        state=state,
        exit_code=ended.exit_code,
        finished_at=ended.finished_at,
        peak_rss_bytes=ended.peak_rss_bytes,
        error=how,
    )


def say_exit(code: int) -> str:
    """Return an exit code in words."""
    return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"


def _job(job_id: JobId, record: JobRecord, ending: Ending, at: datetime) -> Job:
    state = TaskState(ending.state.value)
    started_at = record.submitted_at if record.command else None
    attempt = Attempt(
        attempt=0,
        uid=f"{record.supervisor.pid}:{record.supervisor.start}",
        state=state,
        exit_code=ending.exit_code,
        error=ending.error,
        node=record.host,
        started_at=started_at,
        finished_at=ending.finished_at,
    )
    task = Task(
        task_id=f"{job_id}/0",
        index=0,
        state=state,
        exit_code=ending.exit_code,
        error=ending.error,
        attempts=(attempt,),
        peak_memory_bytes=ending.peak_rss_bytes,
        started_at=started_at,
        finished_at=ending.finished_at,
    )
    return Job(
        job_id=job_id,
        state=ending.state,
        submitted_at=record.submitted_at,
        started_at=started_at,
        finished_at=ending.finished_at,
        pending_reason="",
        error=ending.error,
        parent=None,
        tasks=Known(value=(task,), at=at),
    )


def _read_log(
    contract: Contract, job_id: JobId, at: datetime, kept: Followed | None
) -> tuple[Followed | None, LogTail]:
    """Return how far the output was read, and its newest lines. Blocks.

    Raises:
        ServiceError: it cannot be read.
    """
    directory = job_directory(contract, job_id)
    # Before the output: a job that ends meanwhile leaves its last line for the next look.
    has_ended = (directory / "exit.json").exists()
    try:
        with open_regular(directory / "output.log") as file:
            followed = read_on(file, job_id, kept)
            rest = at.timestamp() - os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        read_job(directory)
        return None, LogTail(lines=(), is_cut=False)
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    is_settled = has_ended or rest > UNFINISHED_LINE_REST.total_seconds()
    return followed, cut_lines(followed.end, is_cut=followed.size > len(followed.end), is_settled=is_settled)


def read_on(file: BinaryIO, job_id: JobId, kept: Followed | None) -> Followed:
    """Return the end of a file, of which only what lies behind ``kept`` is read.

    A file that was cut, replaced or written anew is read whole: the bytes before the place where the last read ended
    are not those that were there.
    """
    status = os.fstat(file.fileno())
    known = kept.end if kept is not None and _may_be_same(kept, job_id, status) else b""
    guard = known[-_GUARD_BYTES:]
    begin = kept.size - len(guard) if kept is not None and guard else 0
    file.seek(max(begin, status.st_size - LOG_BYTES))
    new = file.read(LOG_BYTES)
    if file.tell() - len(new) > begin:
        known = b""  # more is new than is wanted
    elif guard and not new.startswith(guard):
        return read_on(file, job_id, None)
    end = (known[: len(known) - len(guard)] + new)[-LOG_BYTES:]
    return Followed(job_id=job_id, device=status.st_dev, inode=status.st_ino, size=file.tell(), end=end)


def _may_be_same(kept: Followed, job_id: JobId, status: os.stat_result) -> bool:
    same = (kept.job_id, kept.device, kept.inode) == (job_id, status.st_dev, status.st_ino)
    return same and status.st_size >= kept.size


def cut_lines(raw: bytes, *, is_cut: bool, is_settled: bool) -> LogTail:
    """Return the lines of the end of a file. Pure.

    Args:
        raw: the end of the file.
        is_cut: the file begins before it, so that its first line may be half a line.
        is_settled: whether a last line without its end is taken as it is.
    """
    lines = _LINE_END.split(raw)
    last = lines.pop()
    if last and is_settled:
        lines.append(last)
    if is_cut and len(lines) > 1:
        lines = lines[1:]
    newest = lines[-LOG_LINES:]
    return LogTail(
        lines=tuple(LogLine(text=line.decode(errors="replace")) for line in newest),
        is_cut=is_cut or len(newest) < len(lines),
    )
