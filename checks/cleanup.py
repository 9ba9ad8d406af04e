"""Which checkpoints of a run could be deleted, and why each of the others stays. Pure.

Source: manage-hero-run, "Launch" (checkpoint retention) and "What Can Go Wrong" (cleanup threatens rollback coverage);
deploy checklist, "Plan" (the handoff checkpoint is protected through trial and rollback).
"""

from collections.abc import Iterable, Mapping

from bot.model.contract import Contract
from bot.model.planned import PlanBase, RelaunchPlan, SealPlan
from bot.model.record import Record
from bot.model.run import Run
from bot.model.snapshot import Checkpoint
from bot.model.trial import TrialContract
from bot.model.trialplan import CutOverPlan, RollbackPlan, TrialPlan
from bot.model.value import Value
from checks.current import is_final
from checks.handoff import agreed_in
from checks.retention import is_sound


class Kept(Value):
    """A checkpoint that stays."""

    checkpoint: Checkpoint
    why: str


class Split(Value):
    """All checkpoints of a run, by what a clean-up may do with them; each by step ascending."""

    candidates: tuple[Checkpoint, ...]
    kept: tuple[Kept, ...]


def split_checkpoints(
    found: tuple[Checkpoint, ...],
    contract: Contract,
    record: Record,
    *,
    keep: int | None = None,
    protected: Mapping[str, str] | None = None,
) -> Split:
    """Return what could be deleted.

    Args:
        found: every checkpoint in every root of the run.
        contract: says how many are kept, which steps are milestones, which step is the final one, and which one a
            trial hands over.
        record: the launches on record, what they were launched from stays; and the run's trial, its handoff stays
            until that is closed.
        keep: how many of the newest sound ones stay; never fewer than the contract says.
        protected: further paths that stay, each with the reason, e.g. what another run starts from.
    """
    newest = max(1, contract.retention.resume, keep or 0)
    sound_steps = sorted({each.step for each in found if is_sound(each)}, reverse=True)
    reasons = {each.path: _why_kept(each, contract, record, sound_steps[:newest], protected or {}) for each in found}
    ordered = sorted(found, key=lambda each: (each.step, each.path))
    return Split(
        candidates=tuple(each for each in ordered if not reasons[each.path]),
        kept=tuple(Kept(checkpoint=each, why=reasons[each.path]) for each in ordered if reasons[each.path]),
    )


def _why_kept(  # noqa: PLR0911 - one return a reason
    checkpoint: Checkpoint,
    contract: Contract,
    record: Record,
    newest_steps: list[int],
    protected: Mapping[str, str],
) -> str:
    """Say why a checkpoint stays; empty for one that may go."""
    step = checkpoint.step
    if (handed_over := _is_handoff(step, contract, record)) is not None:
        return handed_over
    if not newest_steps:
        return "no sound checkpoint is known, so nothing of this run is deleted"
    if step in newest_steps:
        return f"one of the {len(newest_steps)} newest sound ones" if len(newest_steps) > 1 else "the newest sound one"
    if step > newest_steps[-1]:
        return "newer than a sound one that is kept: it may still be written"
    if is_final(step, contract.final_step):
        return f"the final step {contract.final_step}"
    if any(step in {milestone, milestone - 1} for milestone in contract.retention.milestones):
        return "a milestone that the contract keeps for good"
    if (number := _launched_from(step, record)) is not None:
        return f"launch {number} of this run began from it"
    if (wanted := _is_wanted(checkpoint, record)) is not None:
        return wanted
    return protected.get(checkpoint.path.rstrip("/"), "")


def _is_handoff(step: int, contract: Contract, record: Record) -> str | None:
    """Say which trial hands this step over, agreed or only written down, and is not closed; None when none does."""
    agreed = agreed_in(record)
    if agreed is not None and step == agreed.step:
        return f"the handoff checkpoint of the trial with {agreed.child_run_id}: it stays until that is closed"
    written = contract.trial
    if step != written.handoff_step or _is_closed(written, record):
        return None
    return "the handoff checkpoint that [trial] of its contract names: it stays until that trial is closed"


def _is_closed(written: TrialContract, record: Record) -> bool:
    """Return whether the trial that the contract describes has been, and is over."""
    trial = record.run.trial
    return (
        trial is not None
        and trial.is_over
        and trial.plan.handoff.step == written.handoff_step
        and written.child_run_id in {None, trial.plan.child_run_id}
    )


def _launched_from(step: int, record: Record) -> int | None:
    return next((each.number for each in record.instances if each.from_step == step and step > 0), None)


def _is_wanted(checkpoint: Checkpoint, record: Record) -> str | None:
    """Say which plan that is asked about or carried out needs this checkpoint."""
    plans = [(r.name, r.plan) for r in record.requests if r.state == "open"]
    plans += [(f"R{a.grant.request}", a.plan) for a in record.actions if a.state == "granted"]
    for name, plan in plans:
        match plan:
            case RelaunchPlan() | CutOverPlan() | RollbackPlan() if checkpoint.path in _resumed_from(plan):
                return f"{name} would resume from it"
            case TrialPlan() | CutOverPlan() if plan.handoff.step == checkpoint.step:
                return f"{name} hands it over"
            case SealPlan() if plan.checkpoint.path == checkpoint.path:
                return f"{name} seals it"
            case _:
                pass
    return None


def _resumed_from(plan: PlanBase) -> frozenset[str]:
    """Return what the launches of a plan resume from, its parts' included."""
    own = plan.resume_from if isinstance(plan, RelaunchPlan) else None
    return frozenset({own.path} if own else ()).union(*(_resumed_from(part) for part in plan.parts))


def starts_of(contracts: Iterable[Contract]) -> dict[str, str]:
    """Return what the runs of these contracts start from, by path: their lineage is not to be cut."""
    return {
        each.initialize_from.rstrip("/"): f"{each.run_id} starts from it"
        for each in contracts
        if each.initialize_from is not None
    }


def handed_over_by(runs: Iterable[Run]) -> dict[str, str]:
    """Return what the trials of these runs that are not closed hand over, by path, whoever's tree it lies in."""
    trials = ((run.run_id, run.trial) for run in runs)
    return {
        trial.plan.handoff.path.rstrip("/"): f"the handoff checkpoint of {run_id}'s trial, until that is closed"
        for run_id, trial in trials
        if trial is not None and not trial.is_over
    }
