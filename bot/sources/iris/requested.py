"""What live jobs ask for, where the list of jobs does not say it: each is asked once in its life."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.job import Job
from bot.model.reading import Known
from bot.sources.iris.parse import parse_job_status

type Ask = Callable[[str, Mapping[str, object]], Awaitable[Any]]

_MOST_ASKED = 8
"""How many jobs one look asks about; the rest waits for the next look."""
_MOST_KEPT = 1000
_TOLD = ("accelerator", "accelerators", "expected_tasks")


class JobRequests:
    """Remembers what each job asks for, by its instance: a request does not change while its job lives."""

    def __init__(self, ask: Ask, clock: Clock, patience: timedelta) -> None:
        """Take how to ask.

        Args:
            ask: calls one of the controller's methods.
            clock: for the moment of an answer.
            patience: what takes longer is left for the next look, since the jobs' states matter more.
        """
        self._ask = ask
        self._clock = clock
        self._patience = patience
        self._known: dict[str, dict[str, Any]] = {}

    async def filled_in(self, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        """Return the jobs with what they ask for; one that could not be asked about stays as it was."""
        unknown = [
            job
            for job in jobs
            if job.accelerator is None and not job.state.is_terminal and job.instance_id not in self._known
        ]
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                await asyncio.gather(*(self._learn(job) for job in unknown[:_MOST_ASKED]))
        except TimeoutError:
            pass
        return tuple(
            job.model_copy(update=self._known.get(job.instance_id, {})) if job.accelerator is None else job
            for job in jobs
        )

    async def _learn(self, job: Job) -> None:
        try:
            answer = await self._ask("GetJobStatus", {"job_id": job.job_id})
        except ServiceError:
            return
        status = parse_job_status(answer, self._clock.now(), job.job_id)
        if isinstance(status, Known) and status.value[0].accelerator is not None:
            found = status.value[0]
            while len(self._known) >= _MOST_KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[found.instance_id] = {name: getattr(found, name) for name in _TOLD}
