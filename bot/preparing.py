"""Reads what the launch checklist judges: one preparation of one run, from every place that has a part of it.

All reading before a launch is here, each part behind a deadline of its own; whatever goes wrong with one becomes an
Unknown. The items in ``checks/preflight/`` judge what was read. Nothing here changes anything.
"""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import structlog

from bot.actions.iris_command import prepare_submission
from bot.actions.ports import Launcher, Submission, Unlaunchable
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.model.addresses import addresses_of
from bot.model.contract import Contract
from bot.model.drift import ConfigShape, shape_of
from bot.model.durations import say_duration
from bot.model.job import Job
from bot.model.launched import LaunchedConfig
from bot.model.places import normalised, places_of
from bot.model.preflight import (
    LaunchRules,
    Location,
    OtherRun,
    PairedRun,
    PreflightReport,
    Preparation,
    StepCount,
)
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Record
from bot.model.roles import with_roles
from bot.model.run import RunState
from bot.model.snapshot import Checkpoint, Snapshot
from bot.model.value import JobId, PersonName, RunId
from bot.redaction import Redactor
from bot.settings import Settings
from bot.store.store import Store
from bot.trial_pairs import TrialPairs
from checks.preflight import ITEMS
from checks.preflight.item import Item, judge_preparation
from checks.preflight.tracker import identity_of

log = structlog.get_logger()

_LIVE = frozenset({RunState.PENDING, RunState.RUNNING, RunState.RELAUNCHING})


class StorageReadings(Protocol):
    """What lies at the addresses of a contract."""

    async def start(self, contract: Contract) -> Reading[tuple[Checkpoint, ...]]:
        """Return the checkpoints beside ``initialize_from``, itself among them; Known(()) when it is not stated."""
        ...

    async def checkpoint_bytes(
        self, contract: Contract, checkpoints: Reading[tuple[Checkpoint, ...]]
    ) -> Reading[int | None]:
        """Measure the newest complete checkpoint of the run; Known(None) when there is none yet."""
        ...

    async def locations(self, contract: Contract) -> dict[str, Reading[Location]]:
        """Return what is known of each address, by the contract's field: ``output_root`` … ``datasets.0``."""
        ...


class ConfigReadings(Protocol):
    """What the launched configuration, or a command that the contract names, tells before a launch."""

    async def steps(self, contract: Contract, seen: Snapshot) -> Reading[StepCount | None]:
        """Return how many steps will be trained; Known(None) when nothing that is launched tells."""
        ...

    async def coming(self, contract: Contract) -> Reading[LaunchedConfig | None]:
        """Return the configuration that the command launches with; Known(None) when the contract names none."""
        ...

    async def reference(self, contract: Contract) -> Reading[ConfigShape | None]:
        """Return the configuration that has to be preserved; Known(None) when the contract names none."""
        ...


class CodeComparison(Protocol):
    """What changed in the source between two launches."""

    async def between(self, contract: Contract, before: str) -> Reading[tuple[str, ...]]:
        """Return the paths that differ between an earlier commit and the contract's."""
        ...


class Preparer:
    """Implements ``bot.actions.ports.Checklist``."""

    def __init__(
        self,
        *,
        launchers: Mapping[str, Launcher],
        contracts: Contracts,
        store: Store | None,
        clock: Clock,
        redactor: Redactor,
        rules: LaunchRules,
        reachable: Mapping[PersonName, tuple[str, ...]],
        deadline: timedelta,
        code: CodeComparison | None = None,
        storage: StorageReadings | None = None,
        config: ConfigReadings | None = None,
        items: tuple[Item, ...] = ITEMS,
    ) -> None:
        """Take the parts.

        Args:
            launchers: by the contract's ``[orchestrator] kind``; they say what a launch would be.
            contracts: the other runs' ones.
            store: what is on record; None when there is no database.
            clock: now.
            redactor: takes secrets out of everything that is handed on.
            rules: of the settings.
            reachable: the channels on which each person can be asked; everybody of ``[people]`` is a key.
            deadline: of each part that is read.
            code: compares the source of two launches.
            storage: looks at the contract's addresses.
            config: looks at the launched configuration.
            items: of the checklist.
        """
        self._launchers = launchers
        self._contracts = contracts
        self._store = store
        self._clock = clock
        self._redactor = redactor
        self._rules = rules
        self._reachable = dict(reachable)
        self._deadline = deadline
        self._code = code
        self._storage = storage
        self._config = config
        self._items = items
        self._pairs = TrialPairs(store=store, contracts=contracts, launchers=launchers, clock=clock) if store else None

    async def judge(self, contract: Contract, record: Record | None, seen: Snapshot) -> PreflightReport:
        """Read what a launch of the run needs, and let every item judge it; the report holds no secrets.

        Args:
            contract: its cadence resolved.
            record: what is remembered of the run.
            seen: read just now.
        """
        prepared = await self.prepare(contract, record, seen)
        report = await asyncio.to_thread(judge_preparation, self._items, prepared)
        return PreflightReport.model_validate(self._redactor.value(report.model_dump(mode="json")))

    async def prepare(self, contract: Contract, record: Record | None, seen: Snapshot) -> Preparation:
        """Read everything side by side; it always ends with a preparation, with Unknowns where needed."""
        contract = with_roles(contract, record.run.roles) if record else contract
        instance = record.instance if record else None
        launcher = self._launchers.get(contract.orchestrator.kind)
        number = instance.number + 1 if instance else 0
        submission = launcher.prepare(contract, number=number) if launcher else _no_launcher(contract, number)
        async with asyncio.TaskGroup() as group:
            here = group.create_task(self._problem_of_checkout(contract))
            planned = group.create_task(self._planned(contract, launcher, submission))
            others = group.create_task(self._others(contract))
            paired = group.create_task(self._paired(contract))
            changes = group.create_task(self._code_changes(contract, record))
            start = group.create_task(self._start(contract))
            size = group.create_task(self._checkpoint_bytes(contract, seen))
            steps = group.create_task(self._steps(contract, seen))
            coming = group.create_task(self._coming(contract))
            reference = group.create_task(self._reference(contract))
            locations = group.create_task(self._locations(contract))
        problems = submission.problems if isinstance(submission, Unlaunchable) else ()
        command = submission.command if isinstance(submission, Submission) else contract.command
        return Preparation(
            contract=contract,
            rules=self._rules,
            at=seen.at,
            seen=seen,
            is_first=instance is None and not _has_run(seen),
            trial_of=record.trial_of if record else None,
            planned_job=submission.job_id if isinstance(submission, Submission) else None,
            command=self._redactor.argv(command),
            problems=(*problems, *here.result()),
            planned=planned.result(),
            others=others.result(),
            paired=paired.result(),
            start=start.result(),
            checkpoint_bytes=size.result(),
            steps=steps.result(),
            reference=reference.result(),
            coming=coming.result(),
            launched_before=_launched_before(record, seen),
            code_changes=changes.result(),
            locations=locations.result(),
            reachable=self._reachable,
        )

    # The parts

    async def _problem_of_checkout(self, contract: Contract) -> tuple[str, ...]:
        is_there = await asyncio.to_thread(Path(contract.checkout).is_dir)
        return () if is_there else (f"the checkout {contract.checkout} is no directory of this machine",)

    async def _planned(
        self, contract: Contract, launcher: Launcher | None, submission: Submission | Unlaunchable
    ) -> Reading[tuple[Job, ...]]:
        if launcher is None or isinstance(submission, Unlaunchable):
            return Known(value=(), at=self._clock.now())
        return await self._guard("planned_job", launcher.jobs(contract, submission.job_id))

    async def _code_changes(self, contract: Contract, record: Record | None) -> Reading[tuple[str, ...]] | None:
        before = record.instance.source_sha if record and record.instance else None
        now = contract.source_sha
        if before is None or now is None or before == now or self._code is None:
            return None
        return await self._guard("code_changes", self._code.between(contract, before))

    async def _start(self, contract: Contract) -> Reading[tuple[Checkpoint, ...]]:
        if contract.initialize_from is None:
            return Known(value=(), at=self._clock.now())
        if self._storage is None:
            return self._absent("no storage is configured")
        return await self._guard("start", self._storage.start(contract))

    async def _checkpoint_bytes(self, contract: Contract, seen: Snapshot) -> Reading[int | None]:
        if self._storage is None:
            return self._absent("no storage is configured")
        return await self._guard("checkpoint_bytes", self._storage.checkpoint_bytes(contract, seen.checkpoints))

    async def _steps(self, contract: Contract, seen: Snapshot) -> Reading[StepCount | None]:
        if self._config is None:
            return self._absent("no source of launched configurations is configured")
        return await self._guard("steps", self._config.steps(contract, seen))

    async def _coming(self, contract: Contract) -> Reading[LaunchedConfig | None]:
        if self._config is None:
            return Known(value=None, at=self._clock.now())
        return await self._guard("coming", self._config.coming(contract))

    async def _reference(self, contract: Contract) -> Reading[ConfigShape | None]:
        if self._config is None:
            return Known(value=None, at=self._clock.now())
        return await self._guard("reference", self._config.reference(contract))

    async def _locations(self, contract: Contract) -> dict[str, Reading[Location]]:
        if self._storage is None:
            return {}
        found = await self._guard("locations", _known(self._storage.locations(contract), self._clock))
        match found:
            case Known(value=locations):
                return locations
            case Unknown():
                return dict.fromkeys((field for field, _ in addresses_of(contract)), found)

    async def _paired(self, contract: Contract) -> tuple[PairedRun, ...]:
        """Return the other runs of this one's trials; where that breaks nobody can say whether one of them lives."""
        if self._pairs is None:
            return ()
        found = await self._guard("trial_pairs", _known(self._pairs.of(contract.run_id), self._clock))
        if isinstance(found, Unknown):
            return (PairedRun(run_id=contract.run_id, live=found),)
        return found.value

    async def _others(self, contract: Contract) -> tuple[OtherRun, ...]:
        """Return every other run of the contracts' directory and of the database."""
        remembered = {run.run_id: run.state for run in await self._store.runs()} if self._store else {}
        names = dict.fromkeys((*await asyncio.to_thread(self._contracts.run_ids), *remembered))
        return tuple(
            [
                await self._other(run_id, is_live=remembered.get(run_id) in _LIVE)
                for run_id in names
                if run_id != contract.run_id
            ]
        )

    async def _other(self, run_id: RunId, *, is_live: bool) -> OtherRun:
        contract = self._contracts.load(run_id)
        record = await self._store.record(run_id) if self._store else None
        instances = record.instances if record else ()
        jobs = {instance.job_id for instance in instances}
        if isinstance(contract, BadContract):
            places = _places_on_record(instances[-1].shape) if instances else frozenset[str]()
            return OtherRun(run_id=run_id, is_live=is_live, jobs=frozenset(jobs), places=places)
        named: JobId | None = contract.orchestrator.job_id
        return OtherRun(
            run_id=run_id,
            is_live=is_live,
            jobs=frozenset({*jobs, *((named,) if named else ())}),
            places=frozenset(place for _, place in places_of(contract)),
            tracker=identity_of(contract.tracker),
            tracker_name=contract.tracker.name or "",
        )

    # How a part is read

    async def _guard[T](self, what: str, question: Awaitable[Reading[T]]) -> Reading[T]:
        """Await one answer; whatever goes wrong with it becomes an Unknown."""
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                return await question
        except TimeoutError:
            detail = f"no answer in {say_duration(self._deadline)}"
            return Unknown(reason=Gap.TIMEOUT, detail=detail, at=self._clock.now())
        except Exception as error:
            log.exception("preparation_broke", part=what)
            detail = f"Hero's own reading of it broke: {type(error).__name__}"
            return Unknown(reason=Gap.BROKEN, detail=detail, at=self._clock.now())

    def _absent(self, detail: str) -> Unknown:
        return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=self._clock.now())


def reachable_people(settings: Settings) -> dict[PersonName, tuple[str, ...]]:
    """Return the channels on which each person of ``[people]`` can be asked by a Hero with these settings.

    Where no channel at all is set up, as in a shell without Hero's tokens, every account on record counts.
    """
    named = {
        "slack": settings.slack.bot_token is not None,
        "discord": settings.discord.token is not None,
        "github": settings.github.is_set,
    }
    named["console"] = settings.console
    if not any(named.values()):
        named = dict.fromkeys(named, True)
    return {
        person.name: tuple(channel for channel, is_set_up in named.items() if is_set_up and person.has_account(channel))
        for person in settings.persons
    }


async def _known[T](question: Awaitable[T], clock: Clock) -> Reading[T]:
    return Known(value=await question, at=clock.now())


def _no_launcher(contract: Contract, number: int) -> Unlaunchable:
    """Say that nothing here can launch the run, and what is wrong with its command in any case."""
    kind = contract.orchestrator.kind
    missing = f"{kind} is not configured here; add [{kind}] to hero.toml, or another kind"
    text = prepare_submission(contract, default_name=f"{contract.run_id}-r{number}") if kind == "iris" else None
    return Unlaunchable(problems=(missing, *(text.problems if isinstance(text, Unlaunchable) else ())))


def _has_run(seen: Snapshot) -> bool:
    """Whether a job of the run has ended already: then this is no first launch, though none is on record."""
    return seen.job is not None and seen.job.state.is_terminal


def _launched_before(record: Record | None, seen: Snapshot) -> ConfigShape | None:
    """Return the configuration of the last launch, as read now, else the newest on record."""
    if isinstance(seen.config, Known):
        return shape_of(seen.config.value)
    instances = reversed(record.instances) if record else ()
    return next((instance.launched for instance in instances if instance.launched is not None), None)


def _places_on_record(shape: Mapping[str, str]) -> frozenset[str]:
    """Return the places of a run whose contract is gone, from the shape of its last launch."""
    checkout = _text_of(shape.get("checkout")) or "/"
    fields = ("output_root", "resume_root", "export_root", "traces_root", "session_root")
    return frozenset(normalised(place, checkout) for each in fields if (place := _text_of(shape.get(each))))


def _text_of(written: str | None) -> str:
    try:
        value = json.loads(written or "null")
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
