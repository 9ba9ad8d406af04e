"""Reads what the guards of a trial judge: both runs side by side, and everything beside them. Changes nothing.

Each part is behind a deadline of its own, and whatever goes wrong with one becomes an Unknown: a rehearsal always ends.
The guards in ``checks/trial/guards/`` judge it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from bot.actions.ports import Checklist, Launcher
from bot.actions.trial_launches import (
    as_ended,
    child_launch,
    live_rivals,
    old_launch,
    say_rivals,
    without_jobs_of,
)
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.model.conduct import Stage, Trial
from bot.model.contract import Contract
from bot.model.hours import WorkingHours
from bot.model.launched import LaunchedConfig
from bot.model.person import Person
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.preflight import PreflightReport
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Record
from bot.model.rehearsal import Alive, Boundary, Limits, MainState, Rehearsal
from bot.model.run import Run
from bot.model.snapshot import Snapshot
from bot.model.trialplan import TrialPlan
from bot.model.value import PersonName, RunId
from bot.redaction import Redactor
from bot.sources.config.limits import limits_of
from bot.sources.downstream import Downstream, Inventory, Reports
from bot.sources.guarded import Guarded
from bot.sources.snapshots import SnapshotReader
from bot.store.store import Store

_STORAGE = "storage"
_ONE_AFTER_ANOTHER = 4
"""So many parts of a look, or of the launch checklist, are read one after the other, each with the deadline."""


class Mains(Protocol):
    """The remote's main branch, as fetched just now."""

    async def main(self, contract: Contract, contract_file: Path) -> Reading[MainState]:
        """Hold the contract's checkout, and the file that the contract was read from, against it."""
        ...


class Boundaries(Protocol):
    """The tracker's history of a run."""

    async def boundary(self, contract: Contract, fork_step: int) -> Reading[Boundary | None]:
        """Return what the row at ``fork_step`` says; Known(None) when the tracker has no such run."""
        ...


class ComingConfigs(Protocol):
    """The configuration of a launch to come."""

    async def coming(self, contract: Contract) -> Reading[LaunchedConfig | None]:
        """Return the configuration that the command launches with; Known(None) when the contract names none."""
        ...


class ServiceProbe(Protocol):
    """One service that a trial may need."""

    service: str
    """Its name among ``Rehearsal.services``: ``iris``, ``kubernetes``, ``wandb``, ``finelog``."""

    def is_needed(self, contracts: tuple[Contract, ...]) -> bool:
        """Whether a trial of these runs needs it."""
        ...

    async def said(self, contracts: tuple[Contract, ...]) -> Reading[str]:
        """Ask it something small with its credentials, and return what it answered, in words."""
        ...


@dataclass(frozen=True)
class Side:
    """One of the two runs, as it was found."""

    contract: Contract
    record: Record
    """Without any launch when nothing is remembered of it."""
    seen: Snapshot


class Rehearser:
    """Implements ``bot.actions.ports.Rehearses``."""

    def __init__(
        self,
        *,
        reader: SnapshotReader,
        launchers: Mapping[str, Launcher],
        checklist: Checklist,
        contracts: Contracts,
        store: Store,
        clock: Clock,
        redactor: Redactor,
        people: tuple[Person, ...],
        timezone: str,
        cadence: timedelta,
        deadline: timedelta,
        main: Mains | None = None,
        inventory: Inventory | None = None,
        config: ComingConfigs | None = None,
        boundaries: Boundaries | None = None,
        reports: Reports | None = None,
        probes: tuple[ServiceProbe, ...] = (),
    ) -> None:
        """Take the parts.

        Args:
            reader: looks at either run.
            launchers: by the contract's ``[orchestrator] kind``; they say what a launch would be.
            checklist: of either launch.
            contracts: the child's is loaded from there.
            store: what is remembered of the child.
            clock: now.
            redactor: takes secrets out of plans and refusals.
            people: everybody in ``[people]``.
            timezone: of those who state none.
            cadence: of runs whose contract does not say.
            deadline: of each part that is read.
            main: the remote's main branch.
            inventory: searches checkouts downstream.
            config: looks at configurations before they are launched.
            boundaries: looks at the tracker's history; None when none is configured.
            reports: searches the tracker's reports; None when none is configured, or it cannot be asked for them.
            probes: of the services, in the order in which people read of them.
        """
        self._reader = reader
        self._launchers = launchers
        self._checklist = checklist
        self._contracts = contracts
        self._store = store
        self._clock = clock
        self._redactor = redactor
        self._people = {each.name: each for each in people}
        self._timezone = timezone
        self._cadence = cadence
        self._guarded = Guarded(clock, deadline)
        self._main = main
        self._config = config
        self._boundaries = boundaries
        self._downstream = Downstream(clock, self._guarded, inventory=inventory, reports=reports)
        self._probes = probes

    async def rehearse(self, contract: Contract, record: Record, plan: TrialPlan) -> Rehearsal:
        """Read everything side by side; it always ends with a rehearsal, with Unknowns where needed.

        Args:
            contract: the old run's, its cadence resolved.
            record: what is remembered of the old run.
            plan: what was agreed, or what is about to be.
        """
        loaded = self._contracts.load(plan.child_run_id)
        child = self._with_cadence(loaded) if isinstance(loaded, Contract) else None
        remembered = await self._guarded.value("child_record", self._store.record(plan.child_run_id))
        trial = _trial_of(record, plan)
        stage = trial.stage if trial else Stage.PLANNED
        theirs = _child_record(remembered, contract.run_id, plan.child_run_id, stage)
        probes = self._needed(contract, child)
        async with asyncio.TaskGroup() as group:
            seen = group.create_task(self._look(contract, record))
            child_seen = group.create_task(self._look(child, theirs)) if child else None
            main = group.create_task(self._main_state(child))
            boundary = group.create_task(self._boundary(contract, plan))
            pins = group.create_task(self._downstream.pins(contract, plan))
            coming = group.create_task(self._coming(child))
            answers = [group.create_task(self._alive(each, contract, child)) for each in probes]
        old = Side(contract, record, seen.result())
        new = Side(child, theirs, child_seen.result()) if child and child_seen else None
        async with asyncio.TaskGroup() as group:
            launch = group.create_task(self._child_launch(old, new, remembered))
            rollback = group.create_task(self._old_launch(old, new))
            submitting = group.create_task(self._is_submitting(old, new))
        searched, found = pins.result()
        refusal = self._refusal(old, new)
        storage = self._storage(old, new)
        hours, zone = self._hours(contract.dri)
        return Rehearsal(
            at=self._clock.now(),
            stage=stage,
            plan=plan,
            contract=contract,
            child=child,
            child_problems=loaded.problems if isinstance(loaded, BadContract) else (),
            people=frozenset(self._people),
            review=trial.review if trial else None,
            instance=record.instance,
            seen=old.seen,
            child_seen=new.seen if new else None,
            is_recovery=bool(theirs.instances),
            main=main.result(),
            boundary=boundary.result(),
            pins=found,
            searched=searched,
            limits=self._limits(old, new, coming.result()),
            credentials=(*(each.result() for each in answers), storage),
            services=(*(each.service for each in probes), _STORAGE),
            launch=launch.result(),
            rollback=rollback.result(),
            refusal=refusal[0],
            is_refusal_unknown=refusal[1],
            is_submitting=submitting.result(),
            agreed_at=trial.agreed_at if trial else None,
            dri_hours=hours,
            dri_zone=zone,
        )

    # The two runs

    def _with_cadence(self, contract: Contract) -> Contract:
        cadence = contract.cadence.model_copy(update={"check": contract.cadence.check or self._cadence})
        return contract.model_copy(update={"cadence": cadence})

    async def _look(self, contract: Contract, record: Record) -> Snapshot:
        question = self._reader.read(contract, record.instance, record.run.metrics_cursor, record.jobs)
        found = await self._guarded.value(f"look at {contract.run_id}", question, times=_ONE_AFTER_ANOTHER)
        return _blind(contract.run_id, record, found) if isinstance(found, Unknown) else found.value

    async def _child_launch(
        self, old: Side, child: Side | None, remembered: Reading[Record | None]
    ) -> RelaunchPlan | NoPlan:
        if child is None:
            return NoPlan(reason="the child has no contract that can be used", fix="mend it", is_unknown=False)
        if isinstance(remembered, Unknown):
            return _no_plan(f"what is remembered of {child.contract.run_id} is not known", remembered)
        return await self._planned(child, without_jobs_of(child.seen, old.seen), old=old, child=child)

    async def _old_launch(self, old: Side, child: Side | None) -> RelaunchPlan | NoPlan:
        left = without_jobs_of(old.seen, child.seen) if child else old.seen
        return await self._planned(old, as_ended(left), old=old, child=child)

    async def _planned(self, side: Side, expected: Snapshot, *, old: Side, child: Side | None) -> RelaunchPlan | NoPlan:
        """Let the launch checklist judge one launch, and plan it; whatever breaks is a plan that cannot be made yet.

        Args:
            side: the run that would be launched.
            expected: of that run, as it will be once the other's job has ended.
            old: the old run.
            child: the child.
        """
        kind = side.contract.orchestrator.kind
        launcher = self._launchers.get(kind)
        if launcher is None:
            missing = f"{kind} is not configured here"
            return NoPlan(reason=missing, fix=f"add [{kind}] to hero.toml", is_unknown=False)
        judged = self._checklist.judge(side.contract, side.record, expected)
        report = await self._guarded.value("launch checklist", judged, times=_ONE_AFTER_ANOTHER)
        if isinstance(report, Unknown):
            return _no_plan(f"the launch checklist of {side.contract.run_id} could not be read", report)

        async def plan() -> RelaunchPlan | NoPlan:
            return self._launch_of(side, launcher, report.value, old=old, child=child)

        found = await self._guarded.value("launch plan", plan())
        return _no_plan("the launch could not be planned", found) if isinstance(found, Unknown) else found.value

    def _launch_of(
        self, side: Side, launcher: Launcher, report: PreflightReport, *, old: Side, child: Side | None
    ) -> RelaunchPlan | NoPlan:
        instance, redactor = side.record.instance, self._redactor
        if side is child:
            return child_launch(side.contract, side.seen, instance, launcher, redactor, report=report, old=old.seen)
        return old_launch(
            side.contract,
            side.seen,
            instance,
            launcher,
            redactor,
            report=report,
            child=child.seen if child else None,
            as_if_stopped=True,
        )

    def _refusal(self, old: Side, child: Side | None) -> tuple[str, bool]:
        """Return what is said to a launch right now, empty when nothing is, and whether that is a gap."""
        if child is None:
            return "the child has no contract that can be used, so what lives of it is not known", True
        match live_rivals(old.seen, child.seen):
            case Unknown(detail=detail):
                return self._redactor.text(detail), True
            case Known(value=()):
                return "", False
            case Known(value=jobs):
                said = f"{say_rivals(jobs)}; a launch would put another job beside it"
                return self._redactor.text(said), False

    async def _is_submitting(self, old: Side, child: Side | None) -> bool | None:
        """Whether a submission of either run may be under way; None where it could not be asked of one of them."""
        found: list[bool] = []
        for side in (old, child):
            launcher = self._launchers.get(side.contract.orchestrator.kind) if side else None
            if side is None or launcher is None:
                return None
            asked = await self._guarded.value("submission", launcher.is_submitting(side.contract))
            if isinstance(asked, Unknown):
                return None
            found.append(asked.value)
        return any(found)

    def _hours(self, dri: PersonName) -> tuple[WorkingHours | None, str | None]:
        """Return when the DRI works, where that is stated, and in which zone; of a stranger nothing is known."""
        person = self._people.get(dri)
        if person is None:
            return None, None
        return person.hours(self._timezone), person.timezone or self._timezone

    # The parts

    async def _main_state(self, child: Contract | None) -> Reading[MainState]:
        if child is None:
            return self._absent("the child has no contract that can be used")
        if self._main is None:
            return self._absent("no git is configured")
        file = self._contracts.directory / f"{child.run_id}.toml"
        return await self._guarded.read("main", self._main.main(child, file))

    async def _boundary(self, contract: Contract, plan: TrialPlan) -> Reading[Boundary | None]:
        if plan.fork is None:
            return Known(value=None, at=self._clock.now())
        if self._boundaries is None:
            return self._absent("the tracker's history cannot be read: [wandb] has no key")
        return await self._guarded.read("boundary", self._boundaries.boundary(contract, plan.fork.fork_step))

    async def _coming(self, child: Contract | None) -> Reading[LaunchedConfig | None]:
        if child is None or self._config is None:
            return Known(value=None, at=self._clock.now())
        return await self._guarded.read("coming", self._config.coming(child))

    def _limits(self, old: Side, child: Side | None, coming: Reading[LaunchedConfig | None]) -> Reading[Limits]:
        nothing = self._absent("the child has no contract that can be used")
        return limits_of(
            old.contract.trial,
            child=child.seen.config if child else nothing,
            coming=coming,
            old=old.seen.config,
        )

    # Services

    def _needed(self, contract: Contract, child: Contract | None) -> tuple[ServiceProbe, ...]:
        contracts = (contract, child) if child else (contract,)
        return tuple(each for each in self._probes if each.is_needed(contracts))

    async def _alive(self, probe: ServiceProbe, contract: Contract, child: Contract | None) -> Reading[Alive]:
        contracts = (contract, child) if child else (contract,)
        said = await self._guarded.read(f"probe of {probe.service}", probe.said(contracts))
        if isinstance(said, Unknown):
            return said
        return Known(value=Alive(service=probe.service, said=self._redactor.text(said.value)), at=said.at)

    def _storage(self, old: Side, child: Side | None) -> Reading[Alive]:
        """Say whether the trees of both runs were listed just now; one that is not there yet was listed as empty."""
        if child is None:
            return self._absent("the child has no contract that can be used, so its tree is not known")
        lines: list[str] = []
        for side in (old, child):
            found = side.seen.checkpoints
            if isinstance(found, Unknown):
                return found
            roots = ", ".join(side.contract.roots)
            lines.append(f"{roots} holds {len(found.value)} checkpoints" if found.value else f"{roots} is empty")
        said = self._redactor.text("; ".join(lines))
        return Known(value=Alive(service=_STORAGE, said=said), at=self._clock.now())

    def _absent(self, detail: str) -> Unknown:
        return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=self._clock.now())


def _trial_of(record: Record, plan: TrialPlan) -> Trial | None:
    """Return the trial on record when it is of this very plan and not over: a review is of one plan alone."""
    trial = record.run.trial
    return trial if trial is not None and not trial.is_over and trial.plan.digest == plan.digest else None


def _child_record(remembered: Reading[Record | None], old: RunId, child: RunId, stage: Stage) -> Record:
    """Return what is remembered of the child, as a trial's child, also before the store knows that it is one."""
    known = remembered.value if isinstance(remembered, Known) else None
    record = known or Record(run=Run(run_id=child))
    return record.model_copy(update={"trial_of": old, "trial_stage": stage})


def _blind(run_id: RunId, record: Record, gap: Unknown) -> Snapshot:
    """Return a snapshot of nothing but one gap."""
    sources = ("jobs", "log", "metrics", "checkpoints", "tracker", "telemetry", "code", "config", "pods", "export")
    readings = dict.fromkeys((*sources, "neighbours"), gap)
    return Snapshot.model_validate({"run_id": run_id, "at": gap.at, "instance": record.instance, **readings})


def _no_plan(what: str, gap: Unknown) -> NoPlan:
    return NoPlan(reason=f"{what}: {gap.detail}", fix="look again once it can be read", is_unknown=True)
