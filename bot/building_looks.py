"""Builds what looks at the world: sources, launchers, and the launch checklist over them."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.actions.iris import IrisLauncher
from bot.actions.local import LocalLauncher
from bot.actions.ports import Launcher
from bot.clock import Clock
from bot.contracts import Contracts
from bot.model.drift import ConfigShape
from bot.model.value import RunId
from bot.preparing import Preparer, reachable_people
from bot.redaction import Redactor
from bot.settings import Settings
from bot.sources.checkpoints import CheckpointReader
from bot.sources.chosen import ChosenMetrics
from bot.sources.config.before_launch import COMMAND_DEADLINE, BeforeLaunch, Recorded
from bot.sources.config.source import ConfigReader
from bot.sources.exports import ExportReader
from bot.sources.finelog.hang import FinelogHang
from bot.sources.finelog.source import FinelogMetrics, FinelogSource
from bot.sources.git.source import GitSource
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.kubernetes.source import KubernetesPods
from bot.sources.local import LocalOrchestrator
from bot.sources.metrics import MetricsReader
from bot.sources.ports import Orchestrator
from bot.sources.snapshots import SnapshotReader
from bot.sources.storage_readings import StorageReader
from bot.sources.wandb.source import WandbMetrics, WandbSource
from bot.store.store import Store

_FENCE = timedelta(seconds=10)
"""For a source that forgets its own deadline."""


@dataclass(frozen=True)
class Looks:
    """What looks at the world before anything is done in it; also all that ``hero plan`` needs."""

    reader: SnapshotReader
    launchers: Mapping[str, Launcher]
    checklist: Preparer
    git: GitSource
    iris: IrisOrchestrator | None


def build_looks(
    settings: Settings,
    clock: Clock,
    stack: AsyncExitStack,
    *,
    contracts: Contracts,
    store: Store | None,
    redactor: Redactor,
) -> Looks:
    """Build what reads; what must be closed is on ``stack``.

    Args:
        settings: the whole tree.
        clock: the one clock.
        stack: closed by the caller.
        contracts: of all runs.
        store: what is on record; None when there is no database.
        redactor: for whatever is shown of what was read.
    """
    iris = _iris(settings, clock, stack)
    git = GitSource(settings.git, clock)
    reader = _reader(
        settings,
        clock,
        redactor,
        iris,
        git=git,
        wandb=_wandb(settings, clock, stack),
        finelog=_finelog(settings, clock, stack),
        hang=_hang(settings, clock, stack),
    )
    launchers = _launchers(settings, clock, redactor, iris)
    checklist = Preparer(
        launchers=launchers,
        contracts=contracts,
        store=store,
        clock=clock,
        redactor=redactor,
        rules=settings.launch.rules,
        reachable=reachable_people(settings),
        deadline=max(settings.iris.deadline, settings.git.deadline, COMMAND_DEADLINE) + _FENCE,
        code=git,
        config=BeforeLaunch(clock, redactor, recorded=recorded_in(store) if store else None),
        storage=StorageReader(CheckpointReader(clock), clock),
    )
    return Looks(reader=reader, launchers=launchers, checklist=checklist, git=git, iris=iris)


def recorded_in(store: Store) -> Recorded:
    """Return what tells the newest configuration of a run that is on record."""

    async def recorded(run_id: RunId) -> ConfigShape | None:
        record = await store.record(run_id)
        instances = reversed(record.instances) if record else ()
        return next((each.launched for each in instances if each.launched is not None), None)

    return recorded


def _iris(settings: Settings, clock: Clock, stack: AsyncExitStack) -> IrisOrchestrator | None:
    iris = settings.iris
    if not (iris.controller_url or iris.config or iris.cluster):
        return None
    orchestrator = IrisOrchestrator(iris, clock)
    stack.push_async_callback(orchestrator.close)
    return orchestrator


def _wandb(settings: Settings, clock: Clock, stack: AsyncExitStack) -> WandbSource | None:
    if settings.wandb.api_key is None:
        return None
    source = WandbSource(settings.wandb, clock)
    stack.push_async_callback(source.close)
    return source


def _finelog(settings: Settings, clock: Clock, stack: AsyncExitStack) -> FinelogSource | None:
    if settings.finelog_in_use.url is None:
        return None
    source = FinelogSource(settings.finelog_in_use, clock)
    stack.push_async_callback(source.close)
    return source


def _hang(settings: Settings, clock: Clock, stack: AsyncExitStack) -> FinelogHang | None:
    if settings.finelog_in_use.url is None:
        return None
    source = FinelogHang(settings.finelog_in_use, clock)
    stack.push_async_callback(source.close)
    return source


def _reader(
    settings: Settings,
    clock: Clock,
    redactor: Redactor,
    iris: IrisOrchestrator | None,
    *,
    git: GitSource,
    wandb: WandbSource | None,
    finelog: FinelogSource | None,
    hang: FinelogHang | None,
) -> SnapshotReader:
    orchestrators: dict[str, Orchestrator] = {"local": LocalOrchestrator(clock)}
    if iris is not None:
        orchestrators["iris"] = iris
    return SnapshotReader(
        orchestrators=orchestrators,
        metrics=ChosenMetrics(
            MetricsReader(clock),
            wandb=WandbMetrics(wandb) if wandb else None,
            finelog=FinelogMetrics(finelog) if finelog else None,
        ),
        checkpoints=CheckpointReader(clock),
        clock=clock,
        deadline=max(
            settings.iris.deadline,
            settings.wandb.deadline,
            settings.finelog_in_use.deadline,
            settings.kubernetes.deadline,
            settings.git.deadline,
        )
        + timedelta(seconds=10),
        tracker=wandb,
        telemetry=finelog,
        code=git,
        config=ConfigReader(clock, redactor, tracker=wandb),
        exports=ExportReader(clock),
        hang=hang,
        pods=KubernetesPods(settings.kubernetes, clock) if settings.kubernetes.is_set else None,
    )


def _launchers(
    settings: Settings, clock: Clock, redactor: Redactor, iris: IrisOrchestrator | None
) -> dict[str, Launcher]:
    launchers: dict[str, Launcher] = {"local": LocalLauncher(clock)}
    if iris is not None:
        locks = beside_database(settings, "locks")
        launchers["iris"] = IrisLauncher(settings.iris, iris, locks=locks, clock=clock, redactor=redactor)
    return launchers


def beside_database(settings: Settings, name: str) -> Path:
    """Return a directory of Hero's own beside its database, e.g. ``hero.db.locks``."""
    return Path(f"{settings.bot.database.removeprefix('sqlite:///') or 'hero.db'}.{name}")
