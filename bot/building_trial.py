"""Builds what plans, rehearses, carries out and looks at the trial of a change."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta

from bot.actions.agreeing import AgreeSteps
from bot.actions.both_runs import BothRuns
from bot.actions.cutover import CutOverSteps
from bot.actions.forking import Forking
from bot.actions.ports import StepTaker
from bot.actions.rollback import RollbackPlanner, RollbackSteps
from bot.actions.steps import Steps
from bot.actions.wandb_fork import DEADLINE as FORK_DEADLINE
from bot.actions.wandb_fork import WandbForker
from bot.actions.wandb_report import WandbReporter
from bot.building_looks import Looks, beside_database, recorded_in
from bot.clock import Clock
from bot.comparing import Comparer
from bot.conducting import Conductor, HandOn
from bot.contracts import Contracts
from bot.errands import Preparer
from bot.model.errand import ErrandKind
from bot.redaction import Redactor
from bot.rehearsing import Rehearser
from bot.reporting import TrialReports
from bot.settings import Settings
from bot.showing import TrackerReports
from bot.sources.chosen_rows import ChosenRows
from bot.sources.config.before_launch import COMMAND_DEADLINE, BeforeLaunch
from bot.sources.finelog.source import FinelogSource
from bot.sources.finelog.window import FinelogRows
from bot.sources.git.main_state import MainReader
from bot.sources.git.pins import PinSearch
from bot.sources.liveness import FinelogAlive, IrisAlive, KubernetesAlive, WandbAlive
from bot.sources.metric_rows_window import FileRows
from bot.sources.wandb.boundary import WandbBoundary
from bot.sources.wandb.reports import WandbReports
from bot.store.store import Store
from bot.trial_errands import RehearsalPreparer, TrialPlanner, TrialPreparer

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


def build_planner(
    settings: Settings, clock: Clock, *, looks: Looks, contracts: Contracts, redactor: Redactor
) -> TrialPlanner:
    """Build what makes the plan of a trial."""
    has_key = settings.wandb.api_key is not None
    return TrialPlanner(looks.reader, contracts, redactor, WandbBoundary(settings.wandb, clock) if has_key else None)


@dataclass(frozen=True)
class TrialParts:
    """What conducts trials."""

    conductor: Conductor
    steps: Mapping[str, StepTaker]
    """By the plan's kind."""
    preparers: Mapping[ErrandKind, Preparer]


def build_trial(
    settings: Settings,
    clock: Clock,
    stack: AsyncExitStack,
    *,
    looks: Looks,
    contracts: Contracts,
    store: Store,
    redactor: Redactor,
    relaunching: Steps,
    hand_on: HandOn,
) -> TrialParts:
    """Build what plans, rehearses, carries out and looks at trials; what must be closed is on ``stack``.

    Args:
        settings: the whole tree.
        clock: the one clock.
        stack: closed by the caller.
        looks: at either run, and at a launch of it.
        contracts: of all runs.
        store: what is on record.
        redactor: for whatever is stored or shown.
        relaunching: the steps of a relaunch, which launch either run.
        hand_on: gets each look at a trial.
    """
    rehearser = build_rehearser(
        settings, clock, stack, looks=looks, contracts=contracts, store=store, redactor=redactor
    )
    both = BothRuns(reader=looks.reader, store=store, contracts=contracts, launchers=looks.launchers, clock=clock)
    rollbacks = RollbackPlanner(runs=both, checklist=looks.checklist, redactor=redactor)
    planner = build_planner(settings, clock, looks=looks, contracts=contracts, redactor=redactor)
    conductor = Conductor(
        rehearser=rehearser,
        both=both,
        rollbacks=rollbacks,
        launchers=looks.launchers,
        comparer=Comparer(_rows(settings, clock, stack)),
        reports=_reports(settings, clock, redactor),
        tracker_reports=_tracker_reports(settings, clock, redactor),
        contracts=contracts,
        store=store,
        clock=clock,
        redactor=redactor,
        hand_on=hand_on,
        deadline=settings.bot.check_deadline,
    )
    agreeing = AgreeSteps(runs=both, judges=conductor, clock=clock, redactor=redactor)
    steps: dict[str, StepTaker] = {
        "trial": agreeing,
        "go": agreeing,
        "cutover": CutOverSteps(
            steps=relaunching,
            runs=both,
            rehearses=rehearser,
            forking=Forking(_forker(settings, clock, redactor), clock=clock, settle=FORK_DEADLINE),
            clock=clock,
            redactor=redactor,
        ),
        "rollback": RollbackSteps(steps=relaunching, runs=both, planner=rollbacks, clock=clock, redactor=redactor),
    }
    preparers: dict[ErrandKind, Preparer] = {
        ErrandKind.TRIAL: TrialPreparer(planner, rehearser),
        ErrandKind.REHEARSAL: RehearsalPreparer(planner, rehearser),
    }
    return TrialParts(conductor=conductor, steps=steps, preparers=preparers)


def _forker(settings: Settings, clock: Clock, redactor: Redactor) -> WandbForker | None:
    if settings.wandb.api_key is None:
        return None
    return WandbForker(settings.wandb, clock, locks=beside_database(settings, "locks"), redactor=redactor)


def _rows(settings: Settings, clock: Clock, stack: AsyncExitStack) -> ChosenRows:
    source = _finelog(settings, clock, stack)
    return ChosenRows(FileRows(clock), clock, finelog=FinelogRows(source) if source else None)


def _tracker_reports(settings: Settings, clock: Clock, redactor: Redactor) -> TrackerReports | None:
    if settings.wandb.api_key is None or not settings.wandb.reports:
        return None
    return WandbReporter(settings.wandb, clock, locks=beside_database(settings, "locks"), redactor=redactor)


def _reports(settings: Settings, clock: Clock, redactor: Redactor) -> TrialReports:
    return TrialReports(
        beside_database(settings, "reports"),
        settings.bot.public_url or (f"http://{settings.bot.http}" if settings.bot.http else None),
        clock,
        timezone=settings.bot.timezone,
        redactor=redactor,
    )
