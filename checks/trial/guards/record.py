"""The launch record: code and values on main, and a list of whoever pins the old run."""

from datetime import timedelta

from bot.model.durations import say_duration
from bot.model.reading import Unknown
from bot.model.rehearsal import MainState, Rehearsal
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, cannot_tell, fails, passes, unseen
from checks.trial.guards.launches import same_commit

_FRESH = timedelta(minutes=30)
"""How old the last fetch of main may be: "fetched main" is the one of the rehearsal. Ours."""
_NAMED = 5


def _main(rehearsal: Rehearsal) -> Word:
    main = rehearsal.main
    if isinstance(main, Unknown):
        return unseen(main, "what is on main")
    state = main.value
    wrong = misread(rehearsal, state)
    if wrong is not None:
        return wrong
    what = f"the child's commit {(state.source_sha or '')[:12]}"
    match state.is_on_main:
        case True:
            return passes(f"{what} is on {state.main}, fetched {state.fetched_at:%Y-%m-%d %H:%M %Z}")
        case False:
            return fails(
                f"{what} is not on {state.main}", "land the change on main, and name that commit as source_sha"
            )
        case None:
            return cannot_tell(f"whether {what} is on {state.main} cannot be said", "fetch the whole history there")


def misread(rehearsal: Rehearsal, state: MainState) -> Word | None:
    """Return why nothing follows from what was read of main: no commit is named, another one is, or it is old."""
    child = rehearsal.child
    if state.source_sha is None or child is None or child.source_sha is None:
        return fails(
            "the child's contract names no commit that is there",
            f"write the commit that is on main as source_sha into runs/{rehearsal.plan.child_run_id}.toml, "
            f"and fetch it in {state.directory}",
        )
    if not same_commit(state.source_sha, child.source_sha):
        detail = f"main was held against {state.source_sha[:12]}, the contract names {child.source_sha[:12]}"
        return cannot_tell(detail, "rehearse again")
    age = rehearsal.at - state.fetched_at
    if age > _FRESH:
        return cannot_tell(f"{state.main} was fetched {say_duration(age)} ago, it may have moved", "fetch it again")
    return None


def _values(rehearsal: Rehearsal) -> Word:
    main = rehearsal.main
    if isinstance(main, Unknown):
        return unseen(main, "whether the launch record is on main")
    state = main.value
    match state.contract_on_main:
        case True:
            return passes(f"{state.contract_path} is on {state.main} as it is here")
        case False:
            return fails(
                f"{state.contract_path} is not on {state.main} as it is here",
                "land it as it is to be launched, or take the change here back",
            )
        case None:
            return cannot_tell(
                f"no file of the child's launch values is below {state.directory}, so none can be held against main",
                "keep the contract, or the script that it runs, in that repository",
            )


def _inventory(rehearsal: Rehearsal) -> Word:
    if not rehearsal.searched:
        return fails(
            "nothing was searched for what pins the old run's id or a changed metric key",
            "name checkouts of downstream reports and trackers in [trial] inventory",
        )
    if isinstance(rehearsal.pins, Unknown):
        return unseen(rehearsal.pins, "what pins the old run")
    found = rehearsal.pins.value
    where = ", ".join(rehearsal.searched)
    if not found:
        return passes(f"nothing pins the old run in {where}")
    pins = "; ".join(f"{pin.where} ({pin.what})" for pin in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return passes(f"searched: {where}; to be moved when the child is accepted: {pins}{more}")


MAIN = Guard(
    id=CheckId("record.main"),
    title="The child's commit is on the fetched main",
    source='deploy checklist, "Land the launch record": land the code change on main before cutover',
    group=Group.RECORD,
    rule=_main,
)
VALUES = Guard(
    id=CheckId("record.values"),
    title="The launch values are on main as they are here",
    source='deploy checklist, "Land the launch record": finalized trigger_hero.sh values on main',
    group=Group.RECORD,
    rule=_values,
)
INVENTORY = Guard(
    id=CheckId("record.inventory"),
    title="What pins the old run downstream was searched, and is listed",
    source='deploy checklist, "Land the launch record": inventory downstream reports and trackers',
    group=Group.RECORD,
    rule=_inventory,
)
