"""Whether the other run of a trial lives, asked before an ordinary launch of this one: one of the two trains.

A trial that is over leaves two runs with jobs of their own names; neither is the other's neighbour to an orchestrator.
"""

from collections.abc import Mapping

from bot.actions.both_runs import launches_of
from bot.actions.ports import Launcher
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.model.conduct import Trial
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
        for job_id in jobs:
            found = await launcher.jobs(contract, job_id)
            if isinstance(found, Unknown):
                return found
            live += [job.job_id for job in found.value[:1] if any(not each.state.is_terminal for each in found.value)]
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


def _has_ended(record: Record | None) -> bool:
    return record is not None and record.instance is not None and record.instance.ended_at is not None
