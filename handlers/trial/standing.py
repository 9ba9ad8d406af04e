"""Whether a failed trial is rolled back on the yes that the DRI gave with the plan, or is put to them. Pure."""

from bot.model.action import StepName
from bot.model.as_launched import is_as_launched
from bot.model.conduct import Stage, Trial
from bot.model.contract import Contract
from bot.model.plan import RequestState
from bot.model.record import Record
from bot.model.trialplan import CutOverPlan, RollbackPlan

_MOST_BY_ITSELF = 3
"""How often the yes in advance is used for one trial: a plan that changes each time before it is carried out is one
that somebody has to look at."""
_BY_HERO = "added by Hero: "


def why_not_standing(trial: Trial, contract: Contract) -> str:
    """Say why no rollback of this trial is begun without asking; empty when one may be, as far as the trial tells."""
    standing = trial.standing
    if standing is None:
        return "no rollback was agreed in advance"
    if standing.by != contract.dri:
        return f"the yes in advance was {standing.by}'s, and the DRI is {contract.dri} now"
    if contract.approval.quorum > 1:
        return "more than one yes is needed"
    if trial.is_unclear:
        return "what happened could not be read, and nothing is undone on a guess"
    if trial.reached_at(Stage.OLD_STOPPED) is None:
        return "the old run was not seen to be stopped for the child"
    return ""


def why_asked(record: Record, trial: Trial, contract: Contract, plan: RollbackPlan) -> str:
    """Say why this very rollback is put to the DRI although they said yes in advance; empty when that covers it.

    Never for a job that this trial did not launch, a job that nobody saw end, another launch than the one that was
    stopped, an open point of the launch checklist, or once more after it was put to them or came to nothing.
    """
    return (
        why_not_standing(trial, contract)
        or _why_not_the_old(record, trial, contract)
        or _why_not_this(record, trial, plan)
        or _why_not_again(record, trial)
    )


def _why_not_the_old(record: Record, trial: Trial, contract: Contract) -> str:
    """Say why the old run's launch is not the one that Hero stopped, as it was."""
    before = record.instance
    if before is None or before.config_digest is None:
        return "what the old run was launched with is not on record"
    if not is_as_launched(contract, before):
        return f"runs/{contract.run_id}.toml is not as it was at its launch"
    cut = [
        each
        for each in record.actions
        if isinstance(each.plan, CutOverPlan) and each.grant.request > trial.request and each.record(StepName.STOP)
    ]
    if cut and not cut[-1].tries.get(StepName.STOP):
        return "the old run had ended by itself before it was told to stop, and why is not known"
    return ""


def _why_not_this(record: Record, trial: Trial, plan: RollbackPlan) -> str:
    if plan.unseen:
        return plan.unseen
    if plan.keeps or plan.launch is None:
        return "the old run's job lives already, by another hand"
    if plan.launch.accepts:
        return "the launch checklist has open points"
    if changed := [each for each in plan.launch.changes if not each.startswith(_BY_HERO)]:
        return f"the old run would not be launched as it was: {changed[0]}"
    if plan.stop is not None and not _is_ours(record, trial, plan):
        return f"{plan.stop.instance} is not the launch that this trial made"
    return ""


def _is_ours(record: Record, trial: Trial, plan: RollbackPlan) -> bool:
    """Whether the job that would be stopped is the one that the cut-over launched."""
    if plan.stop is None or trial.child_instance:
        return plan.stop is None or plan.stop.instance == trial.child_instance
    submitted = (
        each.plan.launch.job_id
        for each in record.actions
        if isinstance(each.plan, CutOverPlan)
        and each.grant.request > trial.request
        and (made := each.record(StepName.SUBMIT)) is not None
        and made.is_done
    )
    return plan.stop.stop in submitted


def _why_not_again(record: Record, trial: Trial) -> str:
    mine = [r for r in record.requests if r.plan.kind == "rollback" and r.number > trial.request]
    if any(r.state is RequestState.GRANTED for r in mine):
        return "a rollback was carried out already and did not come to its end"
    if any(r.state is not RequestState.VOID for r in mine):
        return "it was put to them already"
    if len(mine) >= _MOST_BY_ITSELF:
        return f"it was begun {len(mine)} times, and each time the plan had changed before it could be carried out"
    return ""
