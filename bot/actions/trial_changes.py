"""How two plans of a trial differ, in words. Pure, and apart from what makes them, so that handlers may say it too."""

from bot.actions.relaunch import differences
from bot.model.planned import PlanBase, StopPlan
from bot.model.trialplan import CutOverPlan, RollbackPlan


def say_changes(asked: CutOverPlan | RollbackPlan, rebuilt: CutOverPlan | RollbackPlan) -> str:
    """Say field by field how a rebuilt plan differs from the one that was asked about, its launch's fields by name."""
    before, after = asked.launch, rebuilt.launch
    lines = list(differences(before, after)) if before is not None and after is not None else []
    for name in type(asked).model_fields:
        old, new = getattr(asked, name), getattr(rebuilt, name)
        if old != new and not (name == "launch" and lines):
            lines.append(f"{name}: {_brief(old)} → {_brief(new)}")
    return "; ".join(lines) or "in a way that has no words"


def _brief(value: object) -> str:
    match value:
        case None:
            return "none"
        case StopPlan(instance=instance):
            return instance
        case PlanBase():
            return value.digest[:12]
        case _:
            return str(value)
