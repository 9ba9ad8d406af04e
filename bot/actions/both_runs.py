"""Both runs of a trial, as an action sees them: contracts, records, snapshots, and whether the other one has ended."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.actions.ports import Launcher
from bot.actions.stopping import still_under_way
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.model.action import Action, Refused, StepName, Waiting
from bot.model.as_launched import has_digest
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.reading import Gap, Unknown
from bot.model.record import Record
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.model.trialplan import CutOverPlan, TrialPlan
from bot.model.value import JobId, RunId
from bot.sources.snapshots import SnapshotReader
from bot.store.store import Store
from checks.kin import diagnostic_words


@dataclass(frozen=True)
class Side:
    """One of the two runs, as it was just read."""

    contract: Contract
    record: Record | None
    seen: Snapshot

    @property
    def instance(self) -> Instance | None:
        """The newest launch on record."""
        return self.record.instance if self.record else None


class BothRuns:
    """Reads the two runs of a trial; changes nothing."""

    def __init__(
        self,
        *,
        reader: SnapshotReader,
        store: Store,
        contracts: Contracts,
        launchers: Mapping[str, Launcher],
        clock: Clock,
    ) -> None:
        """Take the parts.

        Args:
            reader: reads the world.
            store: for what is on record.
            contracts: the child's is read anew whenever it is needed.
            launchers: by the contract's ``[orchestrator] kind``.
            clock: for how long ago a job has ended.
        """
        self.reader = reader
        self._store = store
        self._contracts = contracts
        self._launchers = launchers
        self._clock = clock

    def contract(self, run_id: RunId) -> Contract | BadContract:
        """Return a run's contract as it is on disk now."""
        return self._contracts.load(run_id)

    def launcher(self, contract: Contract) -> Launcher | None:
        """Return what launches and stops such a run; None where the settings name no such orchestrator."""
        return self._launchers.get(contract.orchestrator.kind)

    async def record(self, run_id: RunId) -> Record | None:
        """Return what is remembered of a run.

        Raises:
            StoreError: the database refused.
        """
        return await self._store.record(run_id)

    async def agreed(self, run_id: RunId, digest: str) -> TrialPlan | None:
        """Return the plan of the run's trial as agreed; None when that is over, or another one than an action is of."""
        record = await self.record(run_id)
        trial = record.run.trial if record else None
        return trial.plan if trial is not None and not trial.is_over and trial.plan.digest == digest else None

    async def old(self, contract: Contract) -> Side:
        """Read the old run."""
        record = await self.record(contract.run_id)
        instance, past = (record.instance, record.jobs) if record else (None, ())
        seen = await self.reader.read(contract, instance, record.run.metrics_cursor if record else "", past)
        return Side(contract, record, seen)

    async def child(self, contract: Contract, old: Record | None) -> Side:
        """Read the child, also where no launch of it is on record yet.

        Args:
            contract: the child's.
            old: what is remembered of the old run, whose actions have launched it.
        """
        record = await self.record(contract.run_id)
        launched = _launched(contract.run_id, old)
        past = tuple(dict.fromkeys((*(record.jobs if record else ()), *launched)))
        current = record.instance if record else None
        if current is None and launched:
            now = self._clock.now()
            current = Instance(
                run_id=contract.run_id, number=0, job_id=launched[-1], submitted_at=None, launched_at=now
            )
        seen = await self.reader.read(contract, current, record.run.metrics_cursor if record else "", past)
        if changed := changed_since_launch(contract, old):
            gap = Unknown(reason=Gap.UNRELIABLE, detail=changed, at=seen.at)
            seen = seen.model_copy(update={"jobs": gap, "neighbours": gap})
        return Side(contract, record, seen)

    async def another_lives(
        self, contract: Contract, job_id: JobId, *, beside: JobId | None = None
    ) -> Waiting | Refused | None:
        """Say that a run that has to have ended lives, or that nobody can say; None when it has ended, all of it.

        Args:
            contract: of that run.
            job_id: its job, which was stopped.
            beside: the other run's job, which may live.
        """
        launcher = self.launcher(contract)
        if launcher is None:
            return unasked(contract)
        jobs = await launcher.jobs(contract, job_id)
        if isinstance(jobs, Unknown):
            return Waiting(detail=f"whether {job_id} still lives cannot be asked: {jobs.detail}", is_unknown=True)
        if any(not job.state.is_terminal for job in jobs.value):
            return Refused(detail=_both_live(job_id, beside))
        if left := still_under_way(jobs.value, self._clock.now()):
            return Waiting(detail=f"{job_id} has ended, but not all of it: {left}")
        record = await self.record(contract.run_id)
        found = await self.reader.neighbours(contract, job_id, record.jobs if record else ())
        if isinstance(found, Unknown):
            gap = f"whether another job of {contract.run_id} is alive cannot be asked: {found.detail}"
            return None if found.reason is Gap.NOT_CONFIGURED else Waiting(detail=gap, is_unknown=True)
        live = [job.job_id for job in found.value if _is_rival(job, job_id, contract.run_id, beside)]
        return Refused(detail=_both_live(", ".join(live), beside)) if live else None


def launches_of(run_id: RunId, old: Record | None) -> tuple[Action, ...]:
    """Return the cut-overs of the old run's trial that have submitted this child, or may have, oldest first.

    Those of an earlier trial do not count, also where the same plan was agreed to once more.
    """
    return tuple(
        action
        for action in _cutovers(old)
        if action.relaunch.run_id == run_id
        and (action.submits or ((made := action.record(StepName.SUBMIT)) is not None and made.is_done))
    )


def changed_since_launch(child: Contract, old: Record | None) -> str:
    """Say that the child's contract is not the one that it was launched with; empty when it is, or before its launch.

    Its job would be looked for elsewhere: that another orchestrator knows none of it proves nothing.
    """
    made = launches_of(child.run_id, old)
    if not made or has_digest(child, made[-1].relaunch.config_digest):
        return ""
    return f"the child's contract was changed since its launch: undo that in runs/{child.run_id}.toml"


def was_never_launched(run_id: RunId, old: Record | None, child: Record | None) -> bool:
    """Whether the trial's cut-overs are on record, and nothing of the child was submitted by them or seen since."""
    trial = old.run.trial if old else None
    if old is None or trial is None or trial.child_instance or (child is not None and child.instances):
        return False
    return bool(_cutovers(old)) and not launches_of(run_id, old)


def unseen_words(job_id: JobId) -> str:
    """Say of a job that was launched that it is not shown, which proves nothing of its end."""
    return f"the orchestrator shows no {job_id}, and nobody saw it end: see that it trains nowhere"


def unasked(contract: Contract) -> Waiting:
    """Say that nothing can be asked or done where this run is."""
    missing = f"[{contract.orchestrator.kind}] is not configured in hero.toml any more, so nothing can be asked there"
    return Waiting(detail=missing, is_unknown=True)


def _is_rival(job: Job, root: JobId, run_id: RunId, beside: JobId | None) -> bool:
    """Whether a neighbour is the run as well; the other run's job and what is below it are not."""
    is_other = beside is not None and (job.job_id == beside or job.job_id.startswith(f"{beside}/"))
    return not (job.state.is_terminal or is_other or diagnostic_words(job.job_id, root, run_id))


def _both_live(names: str, beside: JobId | None) -> str:
    if beside is None:
        return f"{names} lives; nothing is launched beside it"
    return f"the old run and the child both live: {names} and {beside}; stop one by hand now"


def _cutovers(old: Record | None) -> tuple[Action, ...]:
    """Return the cut-overs of the old run's trial, oldest first: what was asked after its plan was agreed to."""
    trial = old.run.trial if old else None
    cutovers = (action for action in (old.actions if old else ()) if isinstance(action.plan, CutOverPlan))
    return tuple(action for action in cutovers if trial is None or action.grant.request > trial.request)


def _launched(run_id: RunId, old: Record | None) -> tuple[JobId, ...]:
    """Return the jobs that cut-overs of the old run have launched for the child, or may have, oldest first."""
    return tuple(
        action.plan.launch.job_id
        for action in (old.actions if old else ())
        if isinstance(action.plan, CutOverPlan)
        and action.plan.launch.run_id == run_id
        and action.record(StepName.SUBMIT) is not None
    )
