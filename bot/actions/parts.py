"""A launch that is one part of a larger plan: carried out as the relaunch that it is, by the yes to the whole."""

from bot.actions.relaunch import differences
from bot.model.action import Action, Refused, StepOutcome, Waiting
from bot.model.planned import NoPlan, RelaunchPlan


def as_part(action: Action, launch: RelaunchPlan, *, cursor: str) -> Action:
    """Return the action as it looks to whoever carries out its launch alone.

    Args:
        action: of the whole plan.
        launch: that part of it.
        cursor: where the launched run's metrics ended before.

    Raises:
        AssertionError: the grant is not for this plan, or the launch is no part of it.
    """
    grant = action.grant.for_part(action.plan, launch)
    changes = {"run_id": launch.run_id, "plan": launch, "grant": grant, "metrics_cursor": cursor}
    return action.model_copy(update=changes)


def launch_barred(
    approved: RelaunchPlan, rebuilt: RelaunchPlan | NoPlan, nothing: str, *, asks_anew: bool = False
) -> StepOutcome | None:
    """Return why a launch that was rebuilt from the world as it is now is not the approved one; None when it is.

    What the launch checklist said when it was asked is not read a second time between a stop and a launch.

    Args:
        approved: as the yes is for it.
        rebuilt: without the checklist's word.
        nothing: what was not done yet, for people.
        asks_anew: what a refusal says of asking again.
    """
    match rebuilt:
        case NoPlan(is_unknown=True, reason=reason):
            return Waiting(detail=reason, is_unknown=True)
        case NoPlan(reason=reason):
            return Refused(detail=f"{reason}; {nothing}", asks_anew=asks_anew)
        case RelaunchPlan():
            same = rebuilt.model_copy(update={"accepts": approved.accepts, "changes": approved.changes})
            if same.digest == approved.digest:
                return None
            changed = "; ".join(differences(approved, same))
            return Refused(
                detail=f"the launch is not the approved one any more: {changed}; {nothing}", asks_anew=asks_anew
            )
