"""Looks into what people ask of a trial by command: its plan, for the DRI, and a dry rehearsal, for anybody."""

from typing import Protocol

from bot.actions.ports import Rehearses
from bot.actions.trial_agreement import handoff_of, plan_trial
from bot.contracts import BadContract, Contracts
from bot.model.contract import Contract
from bot.model.errand import Answer, CannotYet, Errand, Found, Planned
from bot.model.planned import NoPlan
from bot.model.reading import Known, Reading, Unknown
from bot.model.record import Record
from bot.model.rehearsal import Boundary, GuardSays
from bot.model.snapshot import Snapshot
from bot.model.trial import Outcome
from bot.model.trialplan import TrialPlan
from bot.redaction import Redactor
from bot.sources.chosen import is_tracked
from bot.sources.snapshots import SnapshotReader
from checks.trial.guards.guard import Group
from checks.trial.guards.judging import judge_guards


class FindsBoundary(Protocol):
    """The tracker's history of a run."""

    async def find_boundary(self, contract: Contract, global_step: int) -> Reading[Boundary | None]:
        """Return the row of the trainer's step; Known(None) when there is none."""
        ...


class TrialPlanner:
    """Makes the plan of a trial from the contracts of both runs and from what lies there."""

    def __init__(
        self,
        reader: SnapshotReader,
        contracts: Contracts,
        redactor: Redactor,
        boundaries: FindsBoundary | None = None,
    ) -> None:
        """Take the parts.

        Args:
            reader: reads the old run.
            contracts: of both runs.
            redactor: a plan is made as it may be stored and shown.
            boundaries: finds the row at which the tracker's history would be forked; None without a tracker.
        """
        self._reader = reader
        self._contracts = contracts
        self._redactor = redactor
        self._boundaries = boundaries

    async def plan(self, contract: Contract, record: Record | None) -> TrialPlan | NoPlan:
        """Return the plan that the DRI would be asked to agree to; why there is none, where there is none."""
        child_id = contract.trial.child_run_id
        child = self._contracts.load(child_id) if child_id else None
        if isinstance(child, BadContract):
            fix = f"mend it; `hero plan runs/{child_id}.toml` checks it"
            return NoPlan(reason=f"the child's contract cannot be used: {child.problems[0]}", fix=fix, is_unknown=False)
        instance = record.instance if record else None
        cursor, past = (record.run.metrics_cursor, record.jobs) if record else ("", ())
        seen = await self._reader.read(contract, instance, cursor, past)
        plan = plan_trial(contract, child, seen, self._redactor)
        if isinstance(plan, TrialPlan) or not is_tracked(contract) or contract.trial.fork_step is not None:
            return plan
        return await self._with_row(contract, seen, plan)

    async def _with_row(self, contract: Contract, seen: Snapshot, plan: NoPlan) -> NoPlan:
        """Say which row of the tracker's history it is, where the contract does not: nobody should have to look."""
        handoff = handoff_of(contract, seen)
        if isinstance(handoff, NoPlan) or self._boundaries is None:
            return plan
        found = await self._boundaries.find_boundary(contract, handoff.step - 1)
        match found:
            case Known(value=Boundary(fork_step=row)):
                return plan.model_copy(update={"fix": f"{plan.fix}; the tracker has it at _step {row}"})
            case Unknown(detail=detail):
                return plan.model_copy(update={"fix": f"{plan.fix} (it could not be looked up: {detail})"})
            case _:
                return plan.model_copy(update={"fix": f"{plan.fix}; no such row was found"})


class TrialPreparer:
    """Looks into ``/hero trial plan``."""

    def __init__(self, planner: TrialPlanner, rehearser: Rehearses) -> None:
        self._planner = planner
        self._rehearser = rehearser

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:  # noqa: ARG002 - the port's
        """Return the plan when nothing speaks against agreeing to it."""
        trial = record.run.trial
        if trial is not None and not trial.is_over:
            return CannotYet(
                reason=f"the trial of {trial.plan.child_run_id} is not closed",
                fix=f"`/hero trial {record.run_id}` says how far it is, and how it is ended",
            )
        plan = await self._planner.plan(contract, record)
        if isinstance(plan, NoPlan):
            return CannotYet(reason=plan.reason, fix=plan.fix, evidence=plan.evidence, is_unknown=plan.is_unknown)
        says = judge_guards(await self._rehearser.rehearse(contract, record, plan), groups=(Group.PLAN,))
        left = tuple(each for each in says if each.outcome is not Outcome.PASS)
        if left:
            return CannotYet(
                reason=left[0].detail,
                fix=f"mend what is listed, then `/hero trial plan {record.run_id}`",
                evidence=tuple(each.line for each in left),
                is_unknown=all(each.outcome is Outcome.CANNOT_TELL for each in left),
            )
        return Planned(plan=plan, evidence=tuple(each.line for each in says))


class RehearsalPreparer:
    """Looks into ``/hero trial rehearse``: every guard, dry."""

    def __init__(self, planner: TrialPlanner, rehearser: Rehearses) -> None:
        self._planner = planner
        self._rehearser = rehearser

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:  # noqa: ARG002 - the port's
        """Return what every guard says of the trial that is agreed, or of the one that the contract describes."""
        said = await rehearse(contract, record, self._planner, self._rehearser)
        if isinstance(said, NoPlan):
            return CannotYet(reason=said.reason, fix=said.fix, evidence=said.evidence, is_unknown=said.is_unknown)
        counts = [sum(each.outcome is outcome for each in said) for outcome in Outcome]
        passed, failed, unclear = counts
        return Answer(
            headline=f"rehearsal: {passed} guards pass, {failed} fail, {unclear} cannot tell",
            lines=tuple(each.line for each in sorted(said, key=lambda each: _RANK[each.outcome])),
            next="nothing was changed",
            is_warning=passed < len(said),
        )


_RANK = {Outcome.FAIL: 0, Outcome.CANNOT_TELL: 1, Outcome.PASS: 2}


async def rehearse(
    contract: Contract, record: Record, planner: TrialPlanner, rehearser: Rehearses
) -> tuple[GuardSays, ...] | NoPlan:
    """Run every guard dry, by the agreed plan where there is one; for chat and for ``hero trial rehearse``."""
    trial = record.run.trial
    plan = trial.plan if trial is not None and not trial.is_over else await planner.plan(contract, record)
    if isinstance(plan, NoPlan):
        return plan
    return judge_guards(await rehearser.rehearse(contract, record, plan))
