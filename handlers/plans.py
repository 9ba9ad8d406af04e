"""A plan in words: what is asked, every value of it, what begins with a yes, and how to ask again. Pure."""

from typing import assert_never

from bot.model.action import Action, StepName
from bot.model.plan import Plan, Request
from bot.model.planned import CleanUpPlan, RelaunchPlan, SealPlan, StopPlan
from bot.model.record import Record
from bot.model.trialplan import CutOverPlan, GoPlan, RollbackPlan, TrialPlan
from bot.render.words import say_bytes, say_command
from handlers.trialplans import trial_deed, trial_first, trial_lines, trial_question


def question_of(plan: Plan, record: Record) -> str:
    """``relaunch this run from step 9000``: what follows "may Hero"."""
    match plan:
        case RelaunchPlan():
            return f"{deed_of(plan, record)} this run {from_where(plan)}"
        case StopPlan():
            return f"stop {plan.stop}"
        case CleanUpPlan():
            sizes = [each.size_bytes for each in plan.removals]
            known = sum(size for size in sizes if size is not None)
            freed = f"{'at least ' if None in sizes else ''}{say_bytes(known)}"
            one = len(plan.removals) == 1
            return f"delete {len(plan.removals)} checkpoint{'' if one else 's'} of this run for good ({freed})"
        case SealPlan():
            return f"seal this run with the tag {plan.tag}"
        case TrialPlan() | CutOverPlan() | GoPlan() | RollbackPlan():
            return trial_question(plan)
        case _:
            assert_never(plan)


def deed_of(plan: Plan, record: Record, action: Action | None = None) -> str:
    """Name what is done: ``launch`` when the run has no launch before this one, else ``relaunch``; or the others.

    Args:
        plan: of the request or the action.
        record: with the new instance in it once the action has submitted it.
        action: what is being carried out; None while it is only asked about.
    """
    match plan:
        case RelaunchPlan():
            submitted = action.record(StepName.SUBMIT) if action else None
            before = len(record.instances) - (1 if submitted is not None and submitted.is_done else 0)
            return "relaunch" if before > 0 else "launch"
        case StopPlan():
            return "stop"
        case CleanUpPlan():
            return "clean-up"
        case SealPlan():
            return "seal"
        case TrialPlan() | CutOverPlan() | GoPlan() | RollbackPlan():
            return trial_deed(plan)
        case _:
            assert_never(plan)


def first_of(plan: Plan) -> str:
    """Say what is changed first once the world was read anew."""
    match plan:
        case RelaunchPlan():
            return f"stop {plan.stop}, then submit" if plan.stop else "submit"
        case StopPlan():
            return f"stop {plan.stop}"
        case CleanUpPlan():
            return f"delete {plan.removals[0].path} first, then the others, one by one"
        case SealPlan():
            return f"create the tag {plan.tag}"
        case TrialPlan() | CutOverPlan() | GoPlan() | RollbackPlan():
            return trial_first(plan)
        case _:
            assert_never(plan)


_VERBS = {
    "relaunch": "relaunch",
    "stop": "stop",
    "cleanup": "cleanup",
    "seal": "seal",
    "trial": "trial plan",
    "cutover": "trial cutover",
    "go": "trial go",
    "rollback": "rollback",
}


def asks_again(request: Request) -> str:
    """Say which command puts the same question once more."""
    verb = _VERBS[request.plan.kind]
    return f"`/hero {verb} {request.run_id}` asks again"


def from_where(plan: RelaunchPlan) -> str:
    """``from step 9000``."""
    return f"from step {plan.resume_from.step}" if plan.resume_from else "from step 0"


def plan_lines(plan: Plan) -> tuple[str, ...]:
    """Every value of a plan as ``label: value``; what the DRI says yes to."""
    digest = f"digest: {plan.digest[:12]}"
    match plan:
        case RelaunchPlan():
            return (*_relaunch_lines(plan), digest)
        case StopPlan():
            return (f"stop: {plan.stop}", f"launch: {plan.instance}", "launched again: nothing", digest)
        case CleanUpPlan():
            removed = (
                f"delete: {each.path} (step {each.step}, "
                f"{'size unknown' if each.size_bytes is None else say_bytes(each.size_bytes)})"
                for each in plan.removals
            )
            return (*removed, "everything else: stays", digest)
        case SealPlan():
            return (
                f"tag: {plan.tag} in {plan.repository}",
                f"commit: {plan.sha}",
                f"final step: {plan.final_step}",
                f"final checkpoint: {plan.checkpoint.path}",
                f"text: {plan.message}",
                digest,
            )
        case TrialPlan() | CutOverPlan() | GoPlan() | RollbackPlan():
            return (*trial_lines(plan), digest)
        case _:
            assert_never(plan)


def _relaunch_lines(plan: RelaunchPlan) -> tuple[str, ...]:
    checkpoint = plan.resume_from
    nothing_to_stop = "nothing, the job has ended" if plan.instance else "nothing, no job of this run is known"
    resume = f"step {checkpoint.step}, {checkpoint.path}" if checkpoint else None
    return (
        *(f"NOT CLEAR, a yes accepts it: {line}" for line in plan.accepts),
        f"stop first: {plan.stop or nothing_to_stop}",
        f"command: {say_command(plan.command)}",
        f"environment added: {', '.join(plan.environment) or 'none'}",
        f"run in: {plan.directory}",
        f"job afterwards: {plan.job_id}",
        f"output root: {plan.output_root} (the contract's)",
        f"resume from: {resume or 'NO complete checkpoint was found; training would begin at step 0'}",
        f"source SHA: {plan.source_sha or 'not stated in the contract'}",
        *((f"checkout: {plan.code}",) if plan.code else ()),
        *(f"changed since the last launch: {change}" for change in plan.changes),
        *_no_change(plan),
    )


def _no_change(plan: RelaunchPlan) -> tuple[str, ...]:
    if plan.changes:
        return ()
    if not plan.instance:
        return ("changed since the last launch: there was none that Hero knows of",)
    return ("changed since the last launch: nothing that the contract states",)
