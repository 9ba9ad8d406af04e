"""What a contract's ``[trial]`` comes to: the plan that the DRI agrees to. Pure."""

from bot.model.agreed_names import names_of
from bot.model.contract import Contract
from bot.model.planned import NoPlan, PlannedCheckpoint
from bot.model.reading import Unknown
from bot.model.snapshot import Checkpoint, Snapshot
from bot.model.trialplan import PlannedFork, TrialPlan
from bot.redaction import Redactor
from bot.sources.chosen import is_tracked


def plan_trial(contract: Contract, child: Contract | None, seen: Snapshot, redactor: Redactor) -> TrialPlan | NoPlan:
    """Return the plan of the trial that the old run's contract describes.

    Source: deploy checklist, "Agree the plan".

    Args:
        contract: the old run's.
        child: the child's; None when there is none that can be used.
        seen: of the old run, for its checkpoints.
        redactor: a plan is made as it may be stored and shown.
    """
    asked = contract.trial
    file = f"runs/{contract.run_id}.toml"
    if asked.child_run_id is None:
        return _no(f"[trial] child_run_id is not set in {file}", "name the run id under which the changed code goes on")
    if child is None:
        name = f"runs/{asked.child_run_id}.toml"
        return _no(f"the child has no contract that can be used: {name}", f"write {name}; `hero plan {name}` checks it")
    if not asked.gates:
        return _no(f"[trial] gates is empty in {file}", 'say what must hold, e.g. ["loss mean <= +0.002"]')
    handoff = handoff_of(contract, seen)
    if isinstance(handoff, NoPlan):
        return handoff
    fork = _fork(contract, child, handoff.step)
    if isinstance(fork, NoPlan):
        return fork
    metrics = tuple(gate.metric for gate in asked.gates)
    plan = TrialPlan(
        run_id=contract.run_id,
        child_run_id=asked.child_run_id,
        child_root=asked.child_root or child.roots[0],
        handoff=PlannedCheckpoint(step=handoff.step, path=handoff.path),
        handoff_is_temporary=handoff.is_temporary,
        window_steps=asked.window_steps,
        first_step=asked.first_step,
        gates=tuple(str(gate) for gate in asked.gates),
        control_names=names_of(contract, metrics),
        child_names=names_of(child, metrics),
        quiet=asked.quiet,
        alpha=asked.alpha,
        fork=fork,
        coverage_gaps=asked.coverage_gaps,
        starts_at=asked.starts_at,
        rollback_by=asked.rollback_by,
        submitter=asked.submitter or contract.dri,
        automatic_rollback=asked.automatic_rollback,
    )
    return TrialPlan.model_validate(redactor.value(plan.model_dump(mode="json")))


def _no(reason: str, fix: str, *, is_unknown: bool = False) -> NoPlan:
    return NoPlan(reason=reason, fix=fix, is_unknown=is_unknown)


def handoff_of(contract: Contract, seen: Snapshot) -> Checkpoint | NoPlan:
    """Return the checkpoint that is stated; else the newest complete one, an hourly one only when that is agreed."""
    if isinstance(seen.checkpoints, Unknown):
        why = f"the checkpoints cannot be read: {seen.checkpoints.detail}"
        return _no(why, "mend the access to the checkpoint roots", is_unknown=True)
    asked = contract.trial
    found = [each for each in seen.checkpoints.value if asked.handoff_step in {None, each.step}]
    complete = [each for each in found if each.is_complete]
    usable = [each for each in complete if asked.handoff_hourly or not each.is_temporary]
    if usable:
        return max(usable, key=lambda each: (each.step, not each.is_temporary, each.path))
    if asked.handoff_step is None:
        return _no("the old run has no complete permanent checkpoint yet", "wait for the next one")
    if complete:
        fix = "say handoff_hourly = true when that is agreed, and keep it from being deleted"
        return _no(f"the checkpoint of step {asked.handoff_step} is an hourly one", fix)
    fault = f": {found[0].fault}" if found else ""
    return _no(
        f"there is no complete checkpoint of step {asked.handoff_step}{fault}",
        f"set [trial] handoff_step in runs/{contract.run_id}.toml to one that is there",
    )


def _fork(contract: Contract, child: Contract, handoff_step: int) -> PlannedFork | NoPlan | None:
    """Return what is forked in the tracker; None for a run without one."""
    tracker = contract.tracker
    if not is_tracked(contract):
        return None
    if contract.trial.fork_step is None:
        return _no(
            f"[trial] fork_step is not set in runs/{contract.run_id}.toml",
            f"set it to the tracker's _step whose row has global_step {handoff_step - 1}",
        )
    return PlannedFork(
        entity=tracker.entity or "",
        project=tracker.project or "",
        parent_id=tracker.id or contract.run_id,
        child_id=child.tracker.id or child.run_id,
        fork_step=contract.trial.fork_step,
        global_step=handoff_step - 1,
    )
