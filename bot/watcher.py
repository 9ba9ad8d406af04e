"""A run is due: read its sources side by side, make the snapshot, let the checks judge, hand the verdicts on."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Protocol

import structlog
from structlog.contextvars import bound_contextvars

from bot.actions.ports import Checklist
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.errands import Errands
from bot.model.contract import Contract
from bot.model.event import RunChecked
from bot.model.promotion import is_on_record, lineage_of
from bot.model.reading import Known
from bot.model.record import Record
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, JobId, RunId
from bot.model.verdict import Fail, Judgement
from bot.sources.snapshots import SnapshotReader
from bot.store.store import Store
from checks.check import Check, Judged, judge_all
from checks.handoff import agreed_in
from handlers.asking import incident_to_ask_about

log = structlog.get_logger()

type HandOn = Callable[[Contract, RunChecked], Awaitable[bool]]
type Blocked = Callable[[BadContract], Awaitable[None]]


class Conducts(Protocol):
    """Looks at a run's trial; see ``bot.conducting``."""

    async def run(self, contract: Contract) -> None:
        """Look once at the trial that is under way, if one is, and hand on what was seen."""
        ...


class Watcher:
    """Checks one run at a time; keeps nothing between two checks but what is in the store."""

    def __init__(
        self,
        *,
        reader: SnapshotReader,
        checks: tuple[Check[Any, Any], ...],
        contracts: Contracts,
        store: Store,
        clock: Clock,
        hand_on: HandOn,
        blocked: Blocked,
        errands: Errands,
        checklist: Checklist,
        conductor: Conducts | None = None,
        deadline: timedelta,
        cadence: timedelta,
    ) -> None:
        """Take the parts.

        Args:
            reader: reads the sources.
            checks: in the order in which they judge.
            contracts: read anew at every check.
            store: the checks' memories are in it.
            clock: for durations in the log.
            hand_on: gets the verdicts; commits what follows from them, or says that it needs the checklist for that.
            blocked: gets a contract that cannot be used.
            errands: what was asked for by command, looked into after the check.
            checklist: read when the check may end with the question for a launch.
            conductor: looks at the run's trial after the check; None where trials cannot be conducted.
            deadline: hard limit of one whole check.
            cadence: of runs whose contract does not say.
        """
        self._reader = reader
        self._checks = checks
        self._contracts = contracts
        self._store = store
        self._clock = clock
        self._hand_on = hand_on
        self._blocked = blocked
        self._errands = errands
        self._checklist = checklist
        self._conductor = conductor
        self._deadline = deadline
        self._cadence = cadence

    async def check(self, run_id: RunId) -> None:
        """Check one run now.

        Raises:
            TimeoutError: it did not come to an end within the deadline; nothing was committed.
            StoreError: the database refused.
        """
        contract = self._contracts.load(run_id)
        if isinstance(contract, BadContract):
            await self._blocked(contract)
            return
        began = self._clock.monotonic()
        with bound_contextvars(run_id=run_id):
            async with asyncio.timeout(self._deadline.total_seconds()):
                event = await self._look(self._with_cadence(contract))
                if event is None:
                    return
                if await self._hand_on(contract, event):
                    await self._hand_on(contract, await self._prepared(self._with_cadence(contract), event))
            log.info(
                "run_checked",
                failed=[j.check for j in event.judgements if j.verdict.kind == "fail"],
                unknown=[j.check for j in event.judgements if j.verdict.kind == "unknown"],
                duration_s=round(self._clock.monotonic() - began, 3),
            )
            await self._errands.run(self._with_cadence(contract))
            if self._conductor is not None:
                await self._conductor.run(self._with_cadence(contract))

    async def _look(self, contract: Contract) -> RunChecked | None:
        """Read and judge; None for a run whose watch is paused."""
        record = await self._store.record(contract.run_id)
        if record is not None and record.run.is_paused and not record.is_on_trial:
            return None
        instance = record.instance if record else None
        seen = await self._reader.read(
            contract, instance, record.run.metrics_cursor if record else "", record.jobs if record else ()
        )
        judged = await self._judge(contract, seen, record)
        asks = _may_ask(record, judged.judgements)
        # Side by side: each has a deadline of its own, and what delays one of them delays the alarm by no more.
        shown, preparation = await asyncio.gather(
            self._with_evidence(contract, seen, judged),
            self._checklist.judge(contract, record, seen) if asks else _nothing(),
        )
        if shown is not seen:
            judged = await self._judge(contract, shown, record)
        for broken in judged.broken:
            log.error("check_raised", check_id=broken.check, trace=broken.trace)
        return RunChecked(
            run_id=contract.run_id,
            snapshot=shown,
            judgements=judged.judgements,
            memories=judged.memories,
            lineage=await asyncio.to_thread(self._lineage, contract, record),
            preparation=preparation,
        )

    async def _judge(self, contract: Contract, seen: Snapshot, record: Record | None) -> Judged:
        """Let all checks judge one look. They are pure: the same look with more in it is judged from the start."""
        memories = record.memories if record else {}
        apart = apart_from(seen, await self._other_jobs(record))
        # Judging is pure but not always quick (a log of thousands of lines): off the loop, so that chat stays quick.
        return await asyncio.to_thread(judge_all, self._checks, apart, _ending(contract, apart, record), memories)

    async def _with_evidence(self, contract: Contract, seen: Snapshot, judged: Judged) -> Snapshot:
        """Return the look, with what is on record of a hang when a check has failed that tells of it."""
        telling = {check.id for check in self._checks if Source.HANG in check.needs}
        failed = {each.check for each in judged.judgements if isinstance(each.verdict, Fail)}
        return await self._reader.with_hang(contract, seen) if telling & failed else seen

    async def _other_jobs(self, record: Record | None) -> frozenset[JobId]:
        """Return the jobs of the other run of a trial: beside this one they are no second writer of its output."""
        trial = record.run.trial if record else None
        other = trial.plan.child_run_id if trial else (record.trial_of if record else None)
        if other is None:
            return frozenset()
        contract, beside = self._contracts.load(other), await self._store.record(other)
        named = contract.orchestrator.job_id if not isinstance(contract, BadContract) else None
        return frozenset((*((named,) if named else ()), *(beside.jobs if beside else ())))

    def _lineage(self, contract: Contract, record: Record | None) -> str:
        """Hold a diagnostic that goes the light path against the contracts of all other runs. Blocks."""
        if is_on_record(contract, record.run if record else None):
            return ""
        loaded = (self._contracts.load(run_id) for run_id in self._contracts.run_ids() if run_id != contract.run_id)
        return lineage_of(contract, (each for each in loaded if not isinstance(each, BadContract)))

    async def _prepared(self, contract: Contract, event: RunChecked) -> RunChecked:
        """Return the same look with the launch checklist: somebody may have asked for a launch while it was made."""
        record = await self._store.record(contract.run_id)
        judged = await self._checklist.judge(contract, record, event.snapshot)
        return event.model_copy(update={"preparation": judged})

    def _with_cadence(self, contract: Contract) -> Contract:
        """Return the contract with its cadence resolved, as checks expect it."""
        cadence = contract.cadence.model_copy(update={"check": contract.cadence.check or self._cadence})
        return contract.model_copy(update={"cadence": cadence})


def apart_from(seen: Snapshot, jobs: frozenset[JobId]) -> Snapshot:
    """Return the snapshot without these jobs, and what is below them, among the neighbours. For judging alone."""
    if not jobs or not isinstance(seen.neighbours, Known):
        return seen
    left = tuple(each for each in seen.neighbours.value if not any(_is_of(each.job_id, job) for job in jobs))
    return seen.model_copy(update={"neighbours": seen.neighbours.model_copy(update={"value": left})})


def _is_of(job_id: JobId, root: JobId) -> bool:
    return job_id == root or job_id.startswith(f"{root}/")


async def _nothing() -> None:
    """Stand in for a checklist that nothing calls for."""


def _ending(contract: Contract, seen: Snapshot, record: Record | None) -> Contract:
    """Return the contract as checks expect it.

    Where it names no final step, with the launched configuration's; and with what a trial under way hands over.
    """
    told = seen.config.value.count("final_step") if isinstance(seen.config, Known) else None
    ending = contract.ending_at(told or (record.run.progress.final_step if record else None))
    agreed = agreed_in(record)
    return ending if agreed is None else ending.model_copy(update={"trial": contract.trial.with_agreed(agreed)})


def _may_ask(record: Record | None, judgements: tuple[Judgement, ...]) -> bool:
    """Whether the check may end with a launch being put to the DRI, or an open question being asked anew."""
    known = frozenset(incident.check for incident in record.incidents) if record else frozenset[CheckId]()
    if any(
        isinstance(each.verdict, Fail) and each.verdict.finding.is_recoverable and each.check not in known
        for each in judgements
    ):
        return True
    if record is None or record.active_action is not None:
        return False
    wanted = bool(record.run.relaunch_wanted_by) or record.open_relaunch is not None
    return wanted or incident_to_ask_about(record) is not None
