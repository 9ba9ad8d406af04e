"""Builds what reads before a cut-over: both runs of a trial, and everything beside them."""

from contextlib import AsyncExitStack
from datetime import timedelta

from bot.building_looks import Looks, recorded_in
from bot.clock import Clock
from bot.contracts import Contracts
from bot.redaction import Redactor
from bot.rehearsing import Rehearser
from bot.settings import Settings
from bot.sources.config.before_launch import COMMAND_DEADLINE, BeforeLaunch
from bot.sources.finelog.source import FinelogSource
from bot.sources.git.main_state import MainReader
from bot.sources.git.pins import PinSearch
from bot.sources.liveness import FinelogAlive, IrisAlive, KubernetesAlive, WandbAlive
from bot.sources.wandb.boundary import WandbBoundary
from bot.sources.wandb.reports import WandbReports
from bot.store.store import Store

_FENCE = timedelta(seconds=10)
"""For a source that forgets its own deadline."""


def build_rehearser(
    settings: Settings,
    clock: Clock,
    stack: AsyncExitStack,
    *,
    looks: Looks,
    contracts: Contracts,
    store: Store,
    redactor: Redactor,
) -> Rehearser:
    """Build it; what must be closed is on ``stack``.

    Args:
        settings: the whole tree.
        clock: the one clock.
        stack: closed by the caller.
        looks: at either run, and at a launch of it.
        contracts: of all runs.
        store: what is on record.
        redactor: for whatever is shown of what was read.
    """
    has_key = settings.wandb.api_key is not None
    return Rehearser(
        reader=looks.reader,
        launchers=looks.launchers,
        checklist=looks.checklist,
        contracts=contracts,
        store=store,
        clock=clock,
        redactor=redactor,
        people=settings.persons,
        timezone=settings.bot.timezone,
        cadence=settings.bot.cadence,
        deadline=_longest(settings) + _FENCE,
        main=MainReader(settings.git, clock, looks.git),
        inventory=PinSearch(settings.git, clock),
        config=BeforeLaunch(clock, redactor, recorded=recorded_in(store)),
        boundaries=WandbBoundary(settings.wandb, clock) if has_key else None,
        reports=WandbReports(settings.wandb, clock) if has_key else None,
        probes=(
            IrisAlive(settings.iris, looks.iris, clock),
            KubernetesAlive(settings.kubernetes, clock),
            WandbAlive(settings.wandb, clock),
            FinelogAlive(_finelog(settings, clock, stack)),
        ),
    )


def _longest(settings: Settings) -> timedelta:
    return max(
        settings.iris.deadline,
        settings.kubernetes.deadline,
        settings.wandb.deadline,
        settings.finelog_in_use.deadline,
        settings.git.deadline,
        COMMAND_DEADLINE,
    )


def _finelog(settings: Settings, clock: Clock, stack: AsyncExitStack) -> FinelogSource | None:
    if settings.finelog_in_use.url is None:
        return None
    source = FinelogSource(settings.finelog_in_use, clock)
    stack.push_async_callback(source.close)
    return source
