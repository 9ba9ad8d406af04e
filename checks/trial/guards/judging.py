"""How all guards of a trial judge one rehearsal, and what they say together. Pure."""

import traceback

from bot.model.rehearsal import GuardSays, Rehearsal
from bot.model.trial import Outcome, worst
from checks.trial.guards import GUARDS
from checks.trial.guards.guard import Group, Guard, cannot_tell


def judge_guards(
    rehearsal: Rehearsal, groups: tuple[Group, ...] = tuple(Group), *, guards: tuple[Guard, ...] = GUARDS
) -> tuple[GuardSays, ...]:
    """Let every guard of the groups judge; one that raises cannot tell, and hides none of the others."""
    return tuple(_said(guard, rehearsal) for guard in guards if guard.group in groups)


def outcome_of(says: tuple[GuardSays, ...]) -> Outcome:
    """Return what the guards say together: one that fails fails all, and none at all passes nothing."""
    return worst(tuple(each.outcome for each in says))


def _said(guard: Guard, rehearsal: Rehearsal) -> GuardSays:
    try:
        return guard.judge(rehearsal)
    except Exception as error:  # noqa: BLE001 - one of the borders: a check's run
        said = "".join(traceback.format_exception_only(error)).strip()
        return guard.says(cannot_tell(f"Hero's own guard broke: {said}", "report it"))
