"""Starts and stops jobs on Hero's own machine, only ever with a grant."""

import asyncio
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import psutil
import structlog

from bot.actions.local_supervisor import BEGUN, REFUSED, TAKEN
from bot.actions.ports import Fence, Submission, Unlaunchable
from bot.clock import Clock
from bot.errors import DeadlineError, ServiceError
from bot.model.action import Done, Refused, StepOutcome, Uncertain
from bot.model.contract import Contract, LocalContract
from bot.model.durations import say_duration
from bot.model.job import Job
from bot.model.plan import Grant
from bot.model.planned import RelaunchPlan, StopPlan
from bot.model.reading import Reading
from bot.model.value import JobId, Value
from bot.sources.local import LocalOrchestrator, find_job, read_job
from bot.sources.local_files import SERVICE, is_locked, job_directory, job_id_of, lock_path
from bot.sources.local_processes import find, is_alive, is_living, living
from bot.threads import BoundedThreads

log = structlog.get_logger()

SUPERVISOR = Path(__file__).with_name("local_supervisor.py")
_POLL = timedelta(milliseconds=50)
_LAST_WORDS = timedelta(seconds=5)
"""How long the supervisor is given to write down the end of a job that was killed."""
_LOCK_TRIES = 40

type _Processes = tuple[psutil.Process, ...]


class _Order(Value):
    """What is handed to the supervisor; ``argv`` may hold secrets, so it goes through a pipe."""

    directory: Path
    lock: Path
    argv: tuple[str, ...]
    cwd: str
    environment: dict[str, str]
    grace_s: float


class LocalLauncher:
    """Implements ``bot.actions.ports.Launcher`` for supervised process groups."""

    def __init__(
        self,
        clock: Clock,
        *,
        environment: Mapping[str, str] | None = None,
        grace: timedelta = timedelta(seconds=10),
        deadline: timedelta = timedelta(seconds=20),
        threads: BoundedThreads | None = None,
    ) -> None:
        """Take what is fixed for all runs.

        Args:
            clock: real time; it is processes that are waited for.
            environment: what a job inherits, by default Hero's own; Hero's settings are left out of it in any case.
            grace: between SIGTERM and SIGKILL.
            deadline: for the supervisor to say that a job has begun.
            threads: where files are written and processes started.
        """
        self._clock = clock
        self._environment = os.environ if environment is None else environment
        self._grace = grace
        self._deadline = deadline
        self._threads = threads or BoundedThreads(SERVICE, 4)
        self._orchestrator = LocalOrchestrator(clock, threads=self._threads)

    def prepare(self, contract: Contract, *, number: int) -> Submission | Unlaunchable:
        """Return what launching instance ``number`` would be: the contract's own command, as it stands."""
        if not isinstance(contract.orchestrator, LocalContract):
            return Unlaunchable(problems=(f"{contract.run_id} is run by {contract.orchestrator.kind}, not locally",))
        return Submission(job_id=job_id_of(contract, number), command=contract.command)

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        return await self._orchestrator.jobs(contract, job_id)

    async def is_submitting(self, contract: Contract) -> bool:
        """Whether somebody holds the run's submission lock; true also when nobody can tell."""
        try:
            return await self._threads.call(_is_locked, contract, deadline=self._deadline)
        except ServiceError as error:
            log.warning("submission_lock_unreadable", run_id=contract.run_id, detail=error.detail)
            return True

    @property
    def submit_deadline(self) -> timedelta:
        """That of the supervisor's answer."""
        return self._deadline

    async def submit(self, contract: Contract, plan: RelaunchPlan, grant: Grant, *, fence: Fence) -> StepOutcome:
        """Start the plan's job; the job's directory, made in one rename, makes it exactly once."""
        if refusal := self._refusal(contract, plan, grant):
            return refusal
        try:
            order, locked = self._order(contract, plan.job_id), self._locked(fence)
            return await self._threads.call(
                _start, order, plan.job_id, self._deadline, locked, deadline=self._deadline * 2
            )
        except ServiceError as error:
            return Uncertain(detail=f"{plan.job_id}: {error.detail}")

    async def stop(self, contract: Contract, plan: RelaunchPlan | StopPlan, grant: Grant) -> StepOutcome:
        """End exactly the processes of ``plan.stop``: SIGTERM, a grace, SIGKILL."""
        if refusal := self._refusal(contract, plan, grant):
            return refusal
        if plan.stop is None:
            return Done(detail="there was nothing to stop")
        try:
            return await self._stop(contract, plan.stop, grant)
        except ServiceError as error:
            return Uncertain(detail=f"{plan.stop}: {error.detail}")

    def _refusal(self, contract: Contract, plan: RelaunchPlan | StopPlan, grant: Grant) -> Refused | None:
        if not grant.covers(plan, self._clock.now()):
            return Refused(detail=f"the grant of request R{grant.request} does not cover this plan, or has expired")
        if contract.run_id != plan.run_id:
            return Refused(detail=f"the plan is for {plan.run_id}, the contract for {contract.run_id}")
        if isinstance(plan, RelaunchPlan) and contract.command_sha256 != plan.command_sha256:
            return Refused(detail="the contract's command is not the one that was granted any more")
        return None

    def _order(self, contract: Contract, job_id: JobId) -> _Order:
        inherited = {name: text for name, text in self._environment.items() if not name.upper().startswith("HERO_")}
        return _Order(
            directory=job_directory(contract, job_id),
            lock=lock_path(contract),
            argv=contract.command,
            cwd=str(Path(contract.checkout).absolute()),
            environment={**inherited, **contract.environment},
            grace_s=self._grace.total_seconds(),
        )

    def _locked(self, fence: Fence) -> Callable[[], None]:
        """Return the fence for a thread, which holds the lock: it waits until the loop is through it."""
        loop = asyncio.get_running_loop()

        async def pass_fence() -> None:
            await fence()

        def wait() -> None:
            passing = asyncio.run_coroutine_threadsafe(pass_fence(), loop)
            try:
                passing.result(self._deadline.total_seconds())
            except TimeoutError as error:
                passing.cancel()
                raise DeadlineError(SERVICE, "the lease could not be checked in time; nothing was started") from error

        return wait

    async def _stop(self, contract: Contract, job_id: JobId, grant: Grant) -> StepOutcome:
        job = await self._threads.call(find_job, contract, job_id, self._clock.now(), deadline=self._deadline)
        if job is None:
            return Done(detail=f"there is no job {job_id}")
        if job.state.is_terminal:
            return Done(detail=f"{job_id} had ended already: {job.state}")
        directory = job_directory(contract, job_id)
        note = {"at": self._clock.now().isoformat(), "request": grant.request}
        try:
            seen = await self._threads.call(_ask_to_end, directory, note, deadline=self._deadline)
        except OSError as error:
            return Refused(detail=f"{directory}/stop.json cannot be written ({error.strerror}), so nothing was stopped")
        if await self._has_ended(directory, seen, self._grace):
            return Done(detail=f"{job_id} ended on SIGTERM")
        await self._threads.call(_kill, directory, seen, deadline=self._deadline)
        if not await self._has_ended(directory, seen, _LAST_WORDS):
            await self._threads.call(_kill_supervisor, directory, seen, deadline=self._deadline)
        return Done(detail=f"{job_id} did not end within {say_duration(self._grace)} of SIGTERM and was killed")

    async def _has_ended(self, directory: Path, seen: _Processes, limit: timedelta) -> bool:
        """Wait until nothing of the job lives; False when that takes longer than ``limit``."""
        give_up_at = self._clock.monotonic() + limit.total_seconds()
        while await self._threads.call(_lives, directory, seen, deadline=self._deadline):
            if self._clock.monotonic() >= give_up_at:
                return False
            await self._clock.sleep(_POLL)
        return True


def _is_locked(contract: Contract) -> bool:
    return is_locked(lock_path(contract))


def _start(order: _Order, job_id: JobId, deadline: timedelta, fence: Callable[[], None]) -> StepOutcome:
    """Start a supervisor under the run's lock, behind the fence, and hear from it whether the job has begun."""
    if not Path(order.cwd).is_dir():
        return Refused(detail=f"the checkout {order.cwd} is no directory; mend `checkout` in the contract")
    try:
        order.directory.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(order.lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        return Refused(detail=f"{order.directory.parent} cannot be written: {error.strerror}")
    try:
        if not _lock(handle):
            return Uncertain(detail=f"{job_id}: another submission of this run is under way")
        fence()
        return _hear(order, handle, job_id, deadline)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Take the run's lock. Whoever asks whether it is held holds it for a moment itself, hence the tries."""
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_POLL.total_seconds())
        else:
            return True
    return False


def _hear(order: _Order, lock: int, job_id: JobId, deadline: timedelta) -> StepOutcome:
    # The supervisor inherits the lock and lets go of it when the job is on record: a Hero that comes after our sudden
    # death sees a submission under way for exactly as long as there is one.
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", str(SUPERVISOR), str(order.directory), str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=order.environment,
        cwd="/",
        start_new_session=True,
        pass_fds=(lock,),
    ) as supervisor:
        words = json.dumps({"argv": order.argv, "cwd": order.cwd, "grace_s": order.grace_s})
        try:
            _, told = supervisor.communicate(words.encode(), timeout=deadline.total_seconds())
        except subprocess.TimeoutExpired:
            supervisor.kill()
            return Uncertain(detail=f"{job_id}: the supervisor has not answered in {say_duration(deadline)}")
    detail = told.decode(errors="replace").strip()[-500:]
    match supervisor.returncode:
        case int(code) if code == BEGUN:
            return Done(detail=str(job_id))
        case int(code) if code == TAKEN:
            return Uncertain(detail=f"{job_id} was submitted before: {detail}")
        case int(code) if code == REFUSED:
            return Refused(detail=f"{job_id}: {detail}")
        case code:
            ended = f"{job_id}: the supervisor ended with {code}: {detail}"
            return Uncertain(detail=ended, is_over=code is not None and code >= 0)


def _ask_to_end(directory: Path, note: dict[str, object]) -> _Processes:
    """Note that it is us who stop the job, then send SIGTERM once to each of its processes; return those."""
    if not (directory / "stop.json").exists():
        draft = directory / ".stop.json.draft"
        draft.write_text(json.dumps(note), encoding="utf-8")
        draft.replace(directory / "stop.json")
    record = read_job(directory)
    if record is None:
        return ()
    supervisor, seen = find(record.supervisor), tuple(living(record))
    # The supervisor passes the first SIGTERM on to all; only when it is dead the processes are asked one by one.
    for process in (supervisor,) if supervisor else seen:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    return seen


def _kill(directory: Path, seen: _Processes) -> None:
    """Kill the job's processes but not the supervisor, which writes down the end.

    Those that were seen before count too: what has detached itself is not found again once its parent is dead.
    """
    record = read_job(directory)
    for process in {*seen, *(living(record) if record else ())}:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _kill_supervisor(directory: Path, seen: _Processes) -> None:
    _kill(directory, seen)
    record = read_job(directory)
    supervisor = find(record.supervisor) if record else None
    if supervisor:
        supervisor.kill()


def _lives(directory: Path, seen: _Processes) -> bool:
    record = read_job(directory)
    return (record is not None and is_alive(record)) or any(is_living(process) for process in seen)
