"""Builds the parts from the settings and joins them; nothing here runs yet. ``app.py`` starts and stops them."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta

import structlog
from rich.console import Console
from starlette.routing import BaseRoute

from bot.actions.cleanup import CleanUp
from bot.actions.executor import Executor
from bot.actions.patches import KeepsPatch
from bot.actions.ports import Launcher, StepTaker
from bot.actions.sealing import Seal
from bot.actions.steps import Steps
from bot.actions.stopping import StopPreparer, StopSteps
from bot.alarm import Alarm
from bot.building_channels import build_channels
from bot.building_looks import beside_database, build_looks
from bot.building_trial import TrialParts, build_trial
from bot.channels.ports import Channel
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.courier import Courier
from bot.dispatcher import Dispatcher
from bot.errands import Errands
from bot.errands import Preparer as ErrandPreparer
from bot.errors import LeaseLostError, StoreError
from bot.finishing import Unsealable, build_cleanup, build_seal
from bot.historian import Historian
from bot.model.action import StepName
from bot.model.delivery import ChannelName
from bot.model.errand import ErrandKind
from bot.model.value import RunId
from bot.planning import PlanPreparer
from bot.preparing import Preparer
from bot.redaction import Redactor
from bot.run_contracts import contracts_of
from bot.scheduler import Scheduler, pause_until_next
from bot.settings import BotSettings, Settings
from bot.sources.git.source import GitSource
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.snapshots import SnapshotReader
from bot.store.leases import Lease
from bot.store.store import Store
from bot.tenure import Tenure
from bot.watcher import Watcher
from bot.web import trials
from checks import CHECKS
from handlers.context import Rules

log = structlog.get_logger()

_SEND_DEADLINE = timedelta(seconds=90)
_AFTER_TROUBLE = timedelta(minutes=1)


@dataclass(frozen=True)
class Parts:
    """Everything that runs."""

    settings: Settings
    clock: Clock
    store: Store
    tenure: Tenure
    contracts: Contracts
    channels: Mapping[ChannelName, Channel]
    couriers: tuple[Courier, ...]
    scheduler: Scheduler
    dispatcher: Dispatcher
    executor: Executor
    alarm: Alarm
    historian: Historian
    iris: IrisOrchestrator | None
    routes: tuple[BaseRoute, ...]


async def build(
    settings: Settings,
    clock: Clock,
    stack: AsyncExitStack,
    *,
    console: Console | None = None,
    redactor: Redactor | None = None,
) -> Parts:
    """Build every part; what must be closed is on ``stack``.

    Args:
        settings: the whole tree.
        clock: the one clock.
        stack: closed by the caller, last of all.
        console: where the console channel prints; None for standard output.
        redactor: shared with the log, so that what a contract keeps secret is hidden there too.

    Raises:
        ConfigurationError: the database's address or file.
        StoreError: the database can't be opened.
    """
    redactor = redactor or Redactor(settings.secrets)
    store = await Store.open(settings.bot.database, clock, redactor)
    stack.push_async_callback(store.close)
    tenure = Tenure(store, clock)
    stack.push_async_callback(tenure.end)
    contracts = contracts_of(settings, redactor=redactor)
    channels, routes = build_channels(settings, store, clock, contracts, console)
    for channel in channels.values():
        stack.push_async_callback(channel.close)
    alarm = Alarm(clock)
    alarm.through(channels.values())
    looks = build_looks(settings, clock, stack, contracts=contracts, store=store, redactor=redactor)
    ground = _Ground(
        settings=settings,
        clock=clock,
        store=store,
        tenure=tenure,
        contracts=contracts,
        redactor=redactor,
        alarm=alarm,
        reader=looks.reader,
        launchers=looks.launchers,
        checklist=looks.checklist,
        git=looks.git,
        cleanup=build_cleanup(contracts, store, clock),
        seal=build_seal(settings, stack, reader=looks.reader, store=store, clock=clock, redactor=redactor),
        channels=channels,
    )
    worker = _Worker(store, contracts, alarm, clock, settings.bot)
    scheduler = Scheduler(worker.check, clock, jitter=settings.bot.jitter)
    dispatcher = _dispatcher(ground, scheduler)
    relaunching = _relaunching(ground)
    trial = build_trial(
        settings,
        clock,
        stack,
        looks=looks,
        contracts=contracts,
        store=store,
        redactor=redactor,
        relaunching=relaunching,
        hand_on=dispatcher.trial_looked,
    )
    worker.watcher = _watcher(ground, dispatcher, trial)
    return Parts(
        settings=settings,
        clock=clock,
        store=store,
        tenure=tenure,
        contracts=contracts,
        channels=channels,
        couriers=tuple(_courier(ground, channel, dispatcher) for channel in channels.values()),
        scheduler=scheduler,
        dispatcher=dispatcher,
        executor=_executor(ground, dispatcher, {**_steps(ground, relaunching), **trial.steps}),
        alarm=alarm,
        historian=_historian(ground, dispatcher),
        iris=looks.iris,
        routes=(*routes, *trials.routes(beside_database(settings, "reports"))),
    )


@dataclass(frozen=True)
class _Ground:
    """What the working parts stand on: built first, and used by several of them."""

    settings: Settings
    clock: Clock
    store: Store
    tenure: Tenure
    contracts: Contracts
    redactor: Redactor
    alarm: Alarm
    reader: SnapshotReader
    launchers: Mapping[str, Launcher]
    checklist: Preparer
    git: GitSource
    cleanup: CleanUp
    seal: Seal | None
    channels: Mapping[ChannelName, Channel]

    def lease(self) -> Lease | None:
        """Return this process's right to write, as it is now."""
        return self.tenure.lease


def _dispatcher(on: _Ground, scheduler: Scheduler) -> Dispatcher:
    return Dispatcher(
        store=on.store,
        contracts=on.contracts,
        launchers=on.launchers,
        channels=on.channels,
        people=on.settings.persons,
        rules=make_rules(on.settings),
        redactor=on.redactor,
        clock=on.clock,
        check_soon=scheduler.check_soon,
        alarm=on.alarm.ring,
        lease=on.lease,
    )


def _watcher(on: _Ground, dispatcher: Dispatcher, trial: TrialParts) -> Watcher:
    return Watcher(
        reader=on.reader,
        checks=CHECKS,
        contracts=on.contracts,
        store=on.store,
        clock=on.clock,
        hand_on=dispatcher.run_checked,
        blocked=dispatcher.contract_broke,
        errands=_errands(on, dispatcher, trial),
        checklist=on.checklist,
        conductor=trial.conductor,
        deadline=on.settings.bot.check_deadline,
        cadence=on.settings.bot.cadence,
    )


def _errands(on: _Ground, dispatcher: Dispatcher, trial: TrialParts) -> Errands:
    preparers: dict[ErrandKind, ErrandPreparer] = {
        ErrandKind.STOP: StopPreparer(on.reader),
        ErrandKind.PLAN: PlanPreparer(on.reader, on.launchers, on.checklist, on.redactor),
        ErrandKind.CLEANUP: on.cleanup,
        ErrandKind.SEAL: on.seal or Unsealable(),
        **trial.preparers,
    }
    return Errands(
        preparers=preparers,
        store=on.store,
        clock=on.clock,
        hand_on=dispatcher.errand_found,
        deadline=on.settings.bot.check_deadline,
    )


def _relaunching(on: _Ground) -> Steps:
    return Steps(
        launchers=on.launchers,
        checklist=on.checklist,
        reader=on.reader,
        store=on.store,
        clock=on.clock,
        redactor=on.redactor,
        settle=2 * on.settings.bot.poll,
    )


def _steps(on: _Ground, relaunching: Steps) -> dict[str, StepTaker]:
    """Return what does the steps of each kind of action, but for a trial's."""
    steps: dict[str, StepTaker] = {
        "relaunch": KeepsPatch(relaunching, on.git, beside_database(on.settings, "patches"), on.redactor),
        "stop": StopSteps(launchers=on.launchers, clock=on.clock),
        "cleanup": on.cleanup,
    }
    if on.seal is not None:
        steps["seal"] = on.seal
    return steps


def _executor(on: _Ground, dispatcher: Dispatcher, steps: Mapping[str, StepTaker]) -> Executor:
    return Executor(
        store=on.store,
        steps=steps,
        contracts=on.contracts,
        clock=on.clock,
        decide=dispatcher.decide_action,
        alarm=on.alarm.ring,
        poll=on.settings.bot.poll,
        deadlines=_deadlines(on.settings.bot),
        lease=on.lease,
    )


def _courier(on: _Ground, channel: Channel, dispatcher: Dispatcher) -> Courier:
    return Courier(
        channel=channel,
        store=on.store,
        clock=on.clock,
        deadline=_SEND_DEADLINE,
        posts_per_minute=on.settings.bot.posts_per_minute,
        give_up=dispatcher.delivery_failed,
        alarm=on.alarm.ring,
        lease=on.lease,
    )


class _Worker:
    """What the scheduler calls: one check, and when the next one is due."""

    watcher: Watcher
    """Set once it is built, as it needs what needs the scheduler."""

    def __init__(self, store: Store, contracts: Contracts, alarm: Alarm, clock: Clock, settings: BotSettings) -> None:
        self._store = store
        self._contracts = contracts
        self._alarm = alarm
        self._clock = clock
        self._cadence = settings.cadence

    async def check(self, run_id: RunId) -> timedelta:
        """Check a run and return the pause until its next check."""
        try:
            await self.watcher.check(run_id)
        except TimeoutError:
            log.warning("check_cut_off", run_id=run_id)
        except LeaseLostError:
            raise
        except StoreError as error:
            self._alarm.ring(error)
            return _AFTER_TROUBLE
        contract = self._contracts.load(run_id)
        if isinstance(contract, BadContract):
            return min(self._cadence, _AFTER_TROUBLE)
        record = await self._store.record(run_id)
        cadence = contract.cadence.check or self._cadence
        return pause_until_next(record, contract, cadence, self._clock.now())


def _historian(ground: _Ground, dispatcher: Dispatcher) -> Historian:
    return Historian(
        ground.settings.history,
        store=ground.store,
        contracts=ground.contracts,
        dispatcher=dispatcher,
        redactor=ground.redactor,
        clock=ground.clock,
        alarm=ground.alarm.ring,
    )


def make_rules(settings: Settings) -> Rules:
    """Return the settings that decisions depend on."""
    own, escalation = settings.bot, settings.escalation_in_use
    return Rules(
        cadence=own.cadence,
        request_expires=own.request_expires,
        request_reminder=own.request_reminder,
        status_every=own.status_every,
        timezone=own.timezone,
        ladders=escalation.ladders if escalation else None,
        mailed=frozenset(settings.email.kinds),
        can_seal=settings.github.is_set,
    )


def _deadlines(settings: BotSettings) -> dict[StepName, timedelta]:
    step = settings.step_deadline
    return {
        StepName.VERIFY: step,
        StepName.STOP: step,
        StepName.CONFIRM: step,
        StepName.STABILISE: timedelta(hours=1),
        StepName.RESTORE: settings.restore_deadline,
    }
