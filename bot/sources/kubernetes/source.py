"""Kubernetes as a PodSource: which pods of a run's tasks there are, from the API server itself."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from bot.clock import Clock
from bot.errors import DeadlineError, ServiceError
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.value import JobId
from bot.settings import KubernetesSettings
from bot.sources.gaps import unknown_of
from bot.sources.kubernetes.access import SERVICE_ACCOUNT, open_access
from bot.sources.kubernetes.failure import SERVICE
from bot.sources.kubernetes.listing import list_pods
from bot.sources.kubernetes.parse import Names, RawPod, of_job
from bot.threads import BoundedThreads

_NAMED = 3


class KubernetesPods:
    """Lists the pods of one cluster. Holds no connection and no credential between two questions."""

    def __init__(
        self,
        settings: KubernetesSettings,
        clock: Clock,
        *,
        environment: Mapping[str, str] = os.environ,
        account: Path = SERVICE_ACCOUNT,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._environment = environment
        self._account = account
        self._threads = BoundedThreads(SERVICE, settings.threads)
        self._places = asyncio.Semaphore(settings.threads)

    async def pods(self, contract: Contract, job_id: JobId) -> Reading[tuple[Pod, ...]]:  # noqa: ARG002 - the port's
        """List the pods of a job's tasks and of those below it; Known(()) only when the cluster answered so.

        A pod that may be one of them, and whose identity cannot be verified, makes the reading Unknown.
        """
        names = Names(self._settings.task_annotation, self._settings.attempt_label)
        try:
            found = await self.listed()
            at = self._clock.now()
            # Ten thousand pods take a third of a second: longer than a chat should wait.
            mine = await self._threads.call(of_job, found, job_id, names, deadline=self._settings.deadline)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        if mine.unverified:
            named = ", ".join(mine.unverified[:_NAMED])
            detail = (
                f"{len(mine.unverified)} pods may be of {job_id} and do not tell their task's whole id ({named}); "
                "see [kubernetes] task_annotation and selector"
            )
            return Unknown(reason=Gap.UNRECOGNISED, detail=detail, at=at)
        return Known(value=mine.pods, at=at)

    async def listed(self) -> tuple[RawPod, ...]:
        """Return every pod that the settings' selector picks.

        Raises:
            ServiceError: there is no whole answer within the section's deadline.
        """
        deadline = self._settings.deadline
        try:
            async with asyncio.timeout(deadline.total_seconds()), self._places:
                access = await self._threads.call(
                    open_access, self._settings, self._environment, self._account, deadline=deadline
                )
                return await list_pods(access, self._settings.selector, timeout_s=deadline.total_seconds())
        except TimeoutError:
            raise DeadlineError(SERVICE, f"no answer in {say_duration(deadline)}") from None
