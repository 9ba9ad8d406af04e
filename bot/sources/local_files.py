"""The directory of one local job: names, and what ``bot/actions/local_supervisor.py`` writes there."""

import fcntl
import os
import re
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bot.errors import ServiceError, UnrecognisedError
from bot.model.contract import RUN_ID_PATTERN, Contract, LocalContract
from bot.model.value import JobId, RunId
from bot.regular_files import open_regular
from bot.sources.gaps import refused_by_system

SERVICE = "local"
_JOB_ID = re.compile(r"/local/(?P<name>(?P<run_id>.+)-\d+)")
_RECORD_BYTES = 65536


class _Written(BaseModel):
    """A file of the job's directory. Fields that we do not know are a newer supervisor's, and no reason to go blind."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class ProcessRecord(_Written):
    pid: int
    start: str
    """Tells it from another process that has the pid later."""


class JobRecord(_Written):
    """``job.json``: there from the first moment on."""

    submitted_at: AwareDatetime
    host: str
    supervisor: ProcessRecord
    command: ProcessRecord | None
    """None until it is started, and for ever when it could not be."""


class ExitRecord(_Written):
    """``exit.json``: there when no process of the job is left and the supervisor lived to see it."""

    exit_code: int
    """Minus the signal when a signal ended it."""
    finished_at: AwareDatetime
    peak_rss_bytes: int
    """Of the largest single process."""


class StopRecord(_Written):
    """``stop.json``: written by Hero before it stops the job."""

    at: AwareDatetime
    request: int


def job_id_of(contract: Contract, number: int) -> JobId:
    """Return the id of a run's n-th job."""
    return JobId(f"/local/{contract.run_id}-{number}")


def jobs_directory(contract: Contract) -> Path:
    """Return where the run's jobs are; a relative path is below the checkout.

    Raises:
        UnrecognisedError: the contract is no local one.
    """
    if not isinstance(contract.orchestrator, LocalContract):
        raise UnrecognisedError(SERVICE, f"{contract.run_id} is no local run but one of {contract.orchestrator.kind}")
    return Path(contract.checkout, contract.orchestrator.directory).absolute()


def job_directory(contract: Contract, job_id: JobId) -> Path:
    """Return the directory of a job of this run.

    Raises:
        UnrecognisedError: no local job id, or another run's.
    """
    parts = _JOB_ID.fullmatch(job_id)
    if parts is None or not re.fullmatch(RUN_ID_PATTERN, parts["run_id"]):
        raise UnrecognisedError(SERVICE, f"{job_id!r} is no local job id; they read /local/RUN_ID-NUMBER")
    if RunId(parts["run_id"]) != contract.run_id:
        raise UnrecognisedError(SERVICE, f"{job_id} is no job of {contract.run_id}")
    return jobs_directory(contract) / parts["name"]


def is_job_of(contract: Contract, job_id: JobId) -> bool:
    """Whether that is the id of a local job of this run."""
    parts = _JOB_ID.fullmatch(job_id)
    return parts is not None and parts["run_id"] == contract.run_id


def job_numbers(contract: Contract) -> tuple[int, ...]:
    """Return the numbers of the run's jobs that have a directory, ascending; none when nothing was ever launched.

    Raises:
        ServiceError: they cannot be listed.
    """
    pattern = re.compile(rf"{re.escape(contract.run_id)}-(0|[1-9][0-9]{{0,8}})")
    try:
        names = [entry.name for entry in os.scandir(jobs_directory(contract))]
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    return tuple(sorted(int(found[1]) for name in names if (found := pattern.fullmatch(name))))


def lock_path(contract: Contract) -> Path:
    """Return the file that is locked while a job of the run is being submitted."""
    return jobs_directory(contract) / f".{contract.run_id}.lock"


def is_locked(lock: Path) -> bool:
    """Whether someone holds the lock: a Hero that submits, or the supervisor that a killed Hero had begun to start.

    Raises:
        ServiceError: nobody can tell.
    """
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_NONBLOCK)  # a pipe of that name must not hang us
    except FileNotFoundError:
        return False
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    finally:
        os.close(handle)
    return False


def read_record[W: _Written](path: Path, kind: type[W]) -> W | None:
    """Read one of the job's files; None when it is not there.

    Raises:
        ServiceError: it cannot be read or understood.
    """
    try:
        with open_regular(path) as file:
            raw = file.read(_RECORD_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise _unrecognised(path, error) from error


def _unrecognised(path: Path, error: ValidationError) -> ServiceError:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole file"
    return UnrecognisedError(SERVICE, f"{path}: {where}: {first['msg']}")
