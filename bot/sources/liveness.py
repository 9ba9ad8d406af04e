"""Whether the services that a trial needs can be used right now: one small question to each, with its credentials.

An empty answer is a sign of life; one that failed, or that is not understood, is Unknown. Checkpoint trees are read
with the runs themselves (``bot/rehearsing.py``).
"""

import asyncio
from datetime import datetime

from bot.clock import Clock
from bot.errors import DeadlineError, RefusedError, ServiceError
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.settings import IrisSettings, KubernetesSettings, WandbSettings
from bot.sources.chosen import is_tracked
from bot.sources.finelog.source import FinelogSource
from bot.sources.gaps import unknown_of
from bot.sources.iris.failure import SERVICE as IRIS
from bot.sources.iris.failure import NoVerbError
from bot.sources.iris.parse import parse_named
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.kubernetes.source import KubernetesPods
from bot.sources.wandb.client import WandbClient
from bot.sources.wandb.failure import SERVICE as WANDB
from bot.threads import BoundedThreads


def is_on_iris(contracts: tuple[Contract, ...]) -> bool:
    """Whether one of the runs is an Iris job."""
    return any(each.orchestrator.kind == "iris" for each in contracts)


class IrisAlive:
    """Implements ``bot.rehearsing.ServiceProbe`` for the controller."""

    service = "iris"

    def __init__(self, settings: IrisSettings, orchestrator: IrisOrchestrator | None, clock: Clock) -> None:
        self._settings = settings
        self._orchestrator = orchestrator
        self._clock = clock

    def is_needed(self, contracts: tuple[Contract, ...]) -> bool:
        return is_on_iris(contracts)

    async def said(self, contracts: tuple[Contract, ...]) -> Reading[str]:
        """Ask for one job; a CLI that cannot ask so is asked for the jobs of the runs, as each look does."""
        if self._orchestrator is None:
            return _absent("Iris is not configured; set [iris] controller_url, config or cluster", self._clock.now())
        way = self._settings.controller_url or f"the CLI {self._settings.cli!r}"
        try:
            async with asyncio.timeout(self._settings.deadline.total_seconds()):
                query = {"scope": "JOB_QUERY_SCOPE_ROOTS", "limit": 1}
                answer = await self._orchestrator.ask("ListJobs", {"query": query})
        except TimeoutError:
            late = DeadlineError(IRIS, f"no answer through {way} in {say_duration(self._settings.deadline)}")
            return unknown_of(late, self._clock.now())
        except NoVerbError:
            return await self._by_jobs(self._orchestrator, contracts, way)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        return self._judged(answer, way)

    def _judged(self, answer: object, way: str) -> Reading[str]:
        read = parse_named(answer, self._clock.now(), lambda _job_id: True)
        if isinstance(read, Unknown):
            return read
        jobs, _ = read.value
        if not jobs:  # the old run's job is there at least, and something else may answer with an empty object
            detail = f"{way} lists no job at all; see that it is the controller, and may list jobs"
            return Unknown(reason=Gap.UNRECOGNISED, detail=detail, at=read.at)
        return Known(value=f"answers through {way}", at=read.at)

    async def _by_jobs(self, orchestrator: IrisOrchestrator, contracts: tuple[Contract, ...], way: str) -> Reading[str]:
        for contract in contracts:
            if contract.orchestrator.kind == "iris":
                jobs = await orchestrator.jobs(contract, contract.orchestrator.job_id)
                if isinstance(jobs, Unknown):
                    return jobs
        return Known(value=f"answers through {way}", at=self._clock.now())


class KubernetesAlive:
    """Implements ``bot.rehearsing.ServiceProbe`` for the cluster's API server, where one is configured."""

    service = "kubernetes"

    def __init__(self, settings: KubernetesSettings, clock: Clock) -> None:
        self._is_set = settings.is_set
        self._selector = settings.selector
        self._pods = KubernetesPods(settings, clock)
        self._clock = clock

    def is_needed(self, contracts: tuple[Contract, ...]) -> bool:
        return self._is_set and is_on_iris(contracts)

    async def said(self, contracts: tuple[Contract, ...]) -> Reading[str]:  # noqa: ARG002 - the port's
        """List the pods once; that there is none is an answer."""
        try:
            found = await self._pods.listed()
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        return Known(value=f"lists pods; {len(found)} match {self._selector}", at=self._clock.now())


class FinelogAlive:
    """Implements ``bot.rehearsing.ServiceProbe`` for Finelog, where one is configured."""

    service = "finelog"

    def __init__(self, source: FinelogSource | None) -> None:
        self._source = source

    def is_needed(self, contracts: tuple[Contract, ...]) -> bool:
        return self._source is not None and is_on_iris(contracts)

    async def said(self, contracts: tuple[Contract, ...]) -> Reading[str]:  # noqa: ARG002 - the port's
        """Ask for its tables, and see that rows can be decoded here."""
        if self._source is None:
            msg = "Finelog was asked, and none is configured"
            raise AssertionError(msg)
        found = await self._source.tables()
        if isinstance(found, Unknown):
            return found
        return Known(value=f"holds training metrics in {', '.join(found.value) or 'no table yet'}", at=found.at)


class WandbAlive:
    """Implements ``bot.rehearsing.ServiceProbe`` for the tracker."""

    service = "wandb"

    def __init__(self, settings: WandbSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client = _Viewers(settings)
        self._threads = BoundedThreads(WANDB, settings.threads)

    def is_needed(self, contracts: tuple[Contract, ...]) -> bool:
        return any(is_tracked(each) for each in contracts)

    async def said(self, contracts: tuple[Contract, ...]) -> Reading[str]:  # noqa: ARG002 - the port's
        """Ask whose key it is."""
        if self._settings.api_key is None:
            return _absent("there is no key; set HERO_WANDB__API_KEY or [wandb] api_key_file", self._clock.now())
        try:
            name = await self._threads.call(self._client.viewer, deadline=self._settings.deadline)
        except ServiceError as error:
            return unknown_of(error, self._clock.now())
        return Known(value=f"the key is {name}'s", at=self._clock.now())


class _Viewers(WandbClient):
    """Asks who asks."""

    def viewer(self) -> str:
        """Return whose key it is, asked anew.

        Raises:
            RefusedError: the key is nobody's.
            ServiceError: there is no answer.
        """
        with self._api() as api:
            api._viewer = None  # noqa: SLF001 - the SDK keeps the answer for ever, and flushing does not empty it (0.31)
            try:
                viewer = api.viewer
            except ValueError as error:
                raise RefusedError(WANDB, "the key is nobody's; see [wandb] api_key_file and base_url") from error
            return str(viewer.username)


def _absent(detail: str, at: datetime) -> Unknown:
    return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=at)
