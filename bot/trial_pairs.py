"""Whether the other run of a trial lives, asked before an ordinary launch of this one: one of the two trains.

A trial that is over leaves two runs with jobs of their own names; neither is the other's neighbour to an orchestrator.
"""

from collections.abc import Iterable, Mapping

from bot.actions.both_runs import launches_of
from bot.actions.ports import Launcher
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.model.action import StepName
from bot.model.conduct import Trial
from bot.model.job import Job
from bot.model.planned import StopPlan
from bot.model.preflight import PairedRun
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Record
from bot.model.value import JobId, RunId
from bot.store.store import Store

_NEWEST = 3
"""So many launches on record are looked for; older ones were seen to end, or were replaced."""


class TrialPairs:
    """Looks for live jobs of the runs that a run was in a trial with."""

    def __init__(self, *, store: Store, contracts: Contracts, launchers: Mapping[str, Launcher], clock: Clock) -> None:
        """Take the parts.

        Args:
            store: which trials there were, and what was launched in them.
            contracts: where the other run's jobs are.
            launchers: by the contract's ``[orchestrator] kind``.
            clock: now.
        """
        self._store = store
        self._contracts = contracts
        self._launchers = launchers
        self._clock = clock

    async def of(self, run_id: RunId) -> tuple[PairedRun, ...]:
        """Return the other run of every newest trial that this one is in, as the old run or as the child.

        Raises:
            StoreError: the database refused.
        """
        pairs: dict[RunId, Trial] = {}
        for run in await self._store.runs():
            if run.trial is None:
                continue
            if run.run_id == run_id:
                pairs[run.trial.plan.child_run_id] = run.trial
            elif run.trial.plan.child_run_id == run_id:
                pairs[run.run_id] = run.trial
        return tuple([PairedRun(run_id=other, live=await self._live(other, trial)) for other, trial in pairs.items()])

    async def _live(self, run_id: RunId, trial: Trial) -> Reading[tuple[JobId, ...]]:
        """Ask for every job that the run may have; Known(()) only when all of them are known not to live."""
        record = await self._store.record(run_id)
        jobs = await self._jobs(run_id, trial, record)
        contract = self._contracts.load(run_id)
        if isinstance(contract, BadContract):
            if not jobs or _has_ended(record):
                return Known(value=(), at=self._clock.now())
            return self._gap(f"its contract cannot be used: {'; '.join(contract.problems)}")
        launcher = self._launchers.get(contract.orchestrator.kind)
        named = contract.orchestrator.job_id
        jobs = tuple(dict.fromkeys((*jobs, *((named,) if named else ()))))
        if launcher is None:
            return self._gap(f"[{contract.orchestrator.kind}] is not configured in hero.toml")
        live: list[JobId] = []
        shown: list[Job] = []
        for job_id in jobs:
            found = await launcher.jobs(contract, job_id)
            if isinstance(found, Unknown):
                return found
            shown += found.value[:1]
            live += [job.job_id for job in found.value[:1] if any(not each.state.is_terminal for each in found.value)]
        old = await self._store.record(trial.plan.run_id)
        if not live and not _was_stopped(record, old) and (unseen := _never_seen_to_end(record, shown)):
            return Unknown(reason=Gap.UNRELIABLE, detail=unseen, at=self._clock.now())
        return Known(value=tuple(dict.fromkeys(live)), at=self._clock.now())

    async def _jobs(self, run_id: RunId, trial: Trial, record: Record | None) -> tuple[JobId, ...]:
        """Return the jobs of the run's newest launches on record, and those that the trial made of it."""
        known = list(record.jobs[-_NEWEST:]) if record else []
        if run_id == trial.plan.child_run_id:
            old = await self._store.record(trial.plan.run_id)
            known += [action.relaunch.job_id for action in launches_of(run_id, old)]
            known += [JobId(trial.child_instance.rpartition("@")[0])] if trial.child_instance else []
        return tuple(dict.fromkeys(known))

    def _gap(self, detail: str) -> Unknown:
        return Unknown(reason=Gap.UNREACHABLE, detail=detail, at=self._clock.now())


def _was_stopped(record: Record | None, old: Record | None) -> bool:
    """Whether a cut-over or a rollback, which are the old run's, has seen the newest launch on record end."""
    newest = record.instance if record else None
    if newest is None or newest.submitted_at is None:
        return False
    launch = f"{newest.job_id}@{newest.submitted_at.isoformat()}"
    return any(
        isinstance(part, StopPlan)
        and part.instance == launch
        and (stopped := action.record(StepName.STOP)) is not None
        and stopped.is_done
        for action in (old.actions if old else ())
        for part in action.plan.parts
    )


def _never_seen_to_end(record: Record | None, shown: Iterable[Job]) -> str:
    """Say of the newest launch on record that nobody saw it end, and that it is not shown as over; else empty.

    The orchestrator that the contract names now may be another than the one where it was launched, and a job that is
    not shown may be one that it has lost sight of. A namesake, as at another orchestrator, says nothing of it.
    """
    newest = record.instance if record else None
    if newest is None or newest.ended_at is not None:
        return ""
    for job in shown:
        is_same = job.job_id == newest.job_id and newest.submitted_at in {None, job.submitted_at}
        if is_same and job.state.is_terminal and job.instance_id != newest.replaces:
            return ""
    return (
        f"{newest.job_id} was never seen to end and is not shown now: see that it trains nowhere, and that "
        f"[orchestrator] in runs/{newest.run_id}.toml is where it was launched"
    )


def _has_ended(record: Record | None) -> bool:
    return record is not None and record.instance is not None and record.instance.ended_at is not None
