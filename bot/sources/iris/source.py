"""Iris as an Orchestrator: a job, what is below it, their tasks with every attempt, and what they printed."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from bot.clock import Clock
from bot.errors import DeadlineError, ServiceError
from bot.model.contract import Contract
from bot.model.coordinators import Sought
from bot.model.durations import say_duration
from bot.model.job import Job, Task
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail
from bot.model.value import JobId
from bot.settings import IrisSettings
from bot.sources.gaps import unknown_of
from bot.sources.iris.cli import IrisCli
from bot.sources.iris.client_age import client_build_date
from bot.sources.iris.failure import SERVICE, NotFoundError, NoVerbError, says_no_such_job
from bot.sources.iris.following import LogFollower
from bot.sources.iris.lines import parse_printed
from bot.sources.iris.neighbours import find_neighbours, neighbours_without_rpc
from bot.sources.iris.older import jobs_without_rpc
from bot.sources.iris.parse import parse_descendants, parse_job_status, parse_task, parse_tasks, task_count
from bot.sources.iris.requested import JobRequests
from bot.sources.iris.rpc import IrisRpc

_PAGE = 500
_PART_FOR_REQUESTS = 4
"""Which part of the deadline may go into asking what jobs ask for."""
_MOST_DESCENDANTS = 5000
"""The controller lists no further (marin-iris 0.2.227, source)."""


class IrisOrchestrator:
    """Reads one controller: through its RPC when its address is in the settings, else through the CLI."""

    def __init__(self, settings: IrisSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.cli = IrisCli(settings)
        self.rpc: IrisRpc | None = None
        self._requests = JobRequests(self.ask, clock, settings.deadline / _PART_FOR_REQUESTS)
        self._follower: LogFollower | None = None
        if settings.controller_url is not None:
            self.rpc = IrisRpc(
                settings.controller_url,
                token=settings.token.get_secret_value() if settings.token else None,
                deadline=settings.deadline,
                at_once=settings.threads,
            )
            self._follower = LogFollower(self.rpc, clock, newest=settings.log_lines)

    async def close(self) -> None:
        """Close the connections."""
        if self.rpc is not None:
            await self.rpc.close()

    async def jobs(self, contract: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:  # noqa: ARG002 - the port's
        """Ask for a job and everything below it, the job first; Known(()) only when the controller knows none such.

        All of it takes at most the section's deadline. Tasks that could not be read in time are Unknown on their job.
        """
        if (gap := self._not_configured()) is not None:
            return gap
        until = asyncio.get_running_loop().time() + self._settings.deadline.total_seconds()
        try:
            async with self._until(until):
                try:
                    found = await self._tree(job_id)
                except NoVerbError:
                    return await jobs_without_rpc(self.cli, job_id, self._clock)
        except NotFoundError as error:
            at = self._clock.now()
            return Known(value=(), at=at) if says_no_such_job(error, job_id) else unknown_of(error, at)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        match found:
            case Unknown():
                return found
            case Known(value=jobs, at=at):
                tasks = await asyncio.gather(*(self._tasks(job, count, until) for job, count in jobs))
                with_tasks = zip(jobs, tasks, strict=True)
                return Known(
                    value=tuple(job.model_copy(update={"tasks": read}) for (job, _), read in with_tasks), at=at
                )

    async def neighbours(
        self, contract: Contract, job_id: JobId | None, past: tuple[JobId, ...]
    ) -> Reading[tuple[Job, ...]]:
        """Ask whether other coordinators of the run live, by the names of ``bot.model.coordinators`` and by ``past``.

        Their tasks are not read, only how many they have; of a reading that fails nothing else hangs on.
        """
        if (gap := self._not_configured()) is not None:
            return gap
        if job_id is None:
            return Known(value=(), at=self._clock.now())
        sought = Sought(run_id=contract.run_id, current=job_id, past=past)
        try:
            async with self._until(asyncio.get_running_loop().time() + self._settings.deadline.total_seconds()):
                try:
                    return await find_neighbours(self.ask, sought, self._clock)
                except NoVerbError:
                    return await neighbours_without_rpc(self.cli, sought, self._clock)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())

    async def log(self, contract: Contract, job_id: JobId, since: datetime | None) -> Reading[LogTail]:
        """Ask for the newest lines of a job and everything below it, printed after ``since``.

        ``since`` is the instance's submission: the lines of a namesake before it lie under the same key.
        Through the RPC only the new ones travel; the CLI prints neither numbers nor exact times, so it is read whole.
        """
        if (gap := self._not_configured()) is not None:
            return gap
        newest = self._settings.log_lines
        try:
            async with self._until(asyncio.get_running_loop().time() + self._settings.deadline.total_seconds()):
                if self._follower is not None:
                    return await self._follower.tail(contract.run_id, job_id, since)
                printed, is_exact = await self.cli.logs(job_id, since, newest + 1, self._clock.now())
                at = self._clock.now()
                return parse_printed(printed, at, None if is_exact else since, newest, now=at)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())

    async def client_build_date(self) -> Reading[datetime]:
        """Ask how old the installed client is: the controller refuses submissions of one older than 14 days."""
        return await client_build_date(self.cli.words, deadline=self._settings.deadline, clock=self._clock)

    async def ask(self, method: str, payload: Mapping[str, object]) -> Any:
        """Call one RPC method by the way that is configured.

        Raises:
            ServiceError: there is no answer; NoVerbError when the CLI is the way and cannot.
        """
        return await (self.rpc or self.cli).call(method, payload)

    async def _tree(self, job_id: JobId) -> Reading[tuple[tuple[Job, int], ...]]:
        """Read the job and its descendants, each with the number of tasks that it says it has."""
        answer = await self.ask("GetJobStatus", {"job_id": job_id})
        at = self._clock.now()
        status = parse_job_status(answer, at, job_id)
        if isinstance(status, Unknown):
            return status
        job, has_children = status.value
        root = (job, task_count(answer))
        if has_children is False:
            return Known(value=(root,), at=at)
        below = await self._descendants(job_id)
        if isinstance(below, Unknown):
            return below
        if has_children and not below.value:
            detail = f"the controller says that {job_id} has children, and lists none"
            return Unknown(reason=Gap.UNRECOGNISED, detail=detail, at=at)
        children = await self._requests.filled_in(below.value)
        return Known(value=(root, *((each, 0) for each in children)), at=at)

    async def _descendants(self, job_id: JobId) -> Reading[tuple[Job, ...]]:
        found: dict[JobId, Job] = {}
        for offset in range(0, _MOST_DESCENDANTS, _PAGE):
            query = {"job_id_prefix": f"{job_id}/", "scope": "JOB_QUERY_SCOPE_ALL", "limit": _PAGE, "offset": offset}
            answer = await self.ask("ListJobs", {"query": query})
            at = self._clock.now()
            page = parse_descendants(answer, at, job_id)
            if isinstance(page, Unknown):
                return page
            jobs, has_more = page.value
            found.update((job.job_id, job) for job in jobs)
            if not has_more:
                return Known(value=tuple(found[name] for name in sorted(found)), at=at)
        detail = f"{job_id} has more than {_MOST_DESCENDANTS} jobs below it; the controller lists no further"
        return Unknown(reason=Gap.UNRECOGNISED, detail=detail, at=self._clock.now())

    async def _tasks(self, job: Job, expected: int, until: float) -> Reading[tuple[Task, ...]]:
        """Read a job's tasks; the list holds only their current attempts, so retried ones are asked one by one."""
        try:
            async with self._until(until):
                listed = parse_tasks(await self.ask("ListTasks", {"job_id": job.job_id}), self._clock.now(), job.job_id)
                if isinstance(listed, Unknown):
                    return listed
                if len(listed.value) < expected:
                    detail = f"{job.job_id} has {expected} tasks, and {len(listed.value)} are listed"
                    return Unknown(reason=Gap.UNRECOGNISED, detail=detail, at=listed.at)
                whole = await asyncio.gather(*(self._whole_task(job, task, listed.at) for task in listed.value))
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        gap = next((task for task in whole if isinstance(task, Unknown)), None)
        return gap or Known(value=tuple(task.value for task in whole if isinstance(task, Known)), at=listed.at)

    async def _whole_task(self, job: Job, task: Task, at: datetime) -> Reading[Task]:
        current = task.current_attempt
        if current is None or current.attempt == 0 or len(task.attempts) > current.attempt:
            return Known(value=task, at=at)
        answer = await self.ask("GetTaskStatus", {"task_id": task.task_id})
        return parse_task(answer, self._clock.now(), job.job_id)

    def _not_configured(self) -> Unknown | None:
        settings = self._settings
        if settings.controller_url is None and settings.config is None and settings.cluster is None:
            detail = "no controller is configured; set [iris] controller_url, config or cluster"
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=self._clock.now())
        return None

    @asynccontextmanager
    async def _until(self, when: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(when):
                yield
        except TimeoutError:
            raise DeadlineError(SERVICE, f"no answer in {say_duration(self._settings.deadline)}") from None
