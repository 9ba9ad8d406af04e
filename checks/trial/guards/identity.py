"""The tracker's identity: one project, the child under an id of its own, forked once at the verified row."""

from collections.abc import Iterator

from bot.model.conduct import Stage
from bot.model.contract import Contract, TrackerContract
from bot.model.reading import Unknown
from bot.model.rehearsal import Boundary, Rehearsal
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.trialplan import PlannedFork
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, all_of, cannot_tell, fails, passes, unseen
from checks.trial.guards.launches import forks_named, no_child

RESUMES = frozenset({"must", "allow"})
"""The policies under which a tracker's run goes on that is there already."""
_UNTRACKED = frozenset({"disabled", "offline", "dryrun"})
_FORKED = frozenset({Stage.FORKED, Stage.OLD_STOPPED, Stage.LAUNCHED, Stage.RUNNING})
_NO_TRACKER = "no tracker is used"


def is_tracked(tracker: TrackerContract) -> bool:
    """Whether the run's rows go to a tracker's server, where a history can be forked."""
    return tracker.mode not in _UNTRACKED


def _tracker(rehearsal: Rehearsal) -> Word:
    child, old = rehearsal.child, rehearsal.contract
    if child is None:
        return no_child(rehearsal)
    fork = rehearsal.plan.fork
    if fork is None and not is_tracked(old.tracker) and not is_tracked(child.tracker):
        return passes(_NO_TRACKER)
    good = f"{fork.entity}/{fork.project}: {fork.child_id} forked off {fork.parent_id}" if fork else ""
    return all_of(good, (*_same_project(old, child), *_agreed_fork(rehearsal, child)))


def _same_project(old: Contract, child: Contract) -> Iterator[Word]:
    mend = f"mend [tracker] in runs/{child.run_id}.toml"
    if (old.tracker.entity, old.tracker.project) != (child.tracker.entity, child.tracker.project):
        yield fails(f"the child is tracked in {_project(child)}, the old run in {_project(old)}", mend)
    if old.tracker.mode != child.tracker.mode:
        yield fails(f"the child's tracker mode is {child.tracker.mode}, the old run's {old.tracker.mode}", mend)
    if not child.tracker.id or child.tracker.id == old.tracker.id:
        yield fails(f"the child's tracker id is {child.tracker.id or 'not stated'}, it needs one of its own", mend)
    if child.tracker.resume not in RESUMES:
        policy = child.tracker.resume or "not stated"
        yield fails(f"the child's [tracker] resume is {policy}: it might not go on in the forked history", mend)


def _project(contract: Contract) -> str:
    return f"{contract.tracker.entity or '(not stated)'}/{contract.tracker.project or '(none)'}"


def _agreed_fork(rehearsal: Rehearsal, child: Contract) -> Iterator[Word]:
    fork, old = rehearsal.plan.fork, rehearsal.contract
    if fork is None:
        yield fails(
            "no fork of the tracker's history is agreed", "state [trial] fork_step, then agree on the plan anew"
        )
        return
    named = (fork.entity, fork.project, fork.parent_id)
    olds = (old.tracker.entity, old.tracker.project, old.tracker.id)
    if named != olds:
        yield fails(
            f"the agreed fork is of {'/'.join(named)}, the old run is {'/'.join(each or '?' for each in olds)}",
            "agree on the plan anew",
        )
    if fork.child_id != child.tracker.id:
        yield fails(f"the agreed fork makes {fork.child_id}, the child is {child.tracker.id}", "agree on the plan anew")
    if old.trial.fork_step is not None and old.trial.fork_step != fork.fork_step:
        detail = f"[trial] fork_step is {old.trial.fork_step}, row {fork.fork_step} was agreed"
        yield fails(detail, "agree on the plan anew, or correct [trial] fork_step")


def _boundary(rehearsal: Rehearsal) -> Word:
    reading, fork = rehearsal.boundary, rehearsal.plan.fork
    if isinstance(reading, Unknown):
        return unseen(reading, "where the old history would be forked")
    if reading.value is None and fork is None and not is_tracked(rehearsal.contract.tracker):
        return passes(_NO_TRACKER)
    if reading.value is None or fork is None:
        return fails(
            "the row at which the history would be forked is not stated",
            "state [trial] fork_step: the _step whose row has the step before the handoff's; then agree anew",
        )
    step = rehearsal.plan.handoff.step
    good = f"row {fork.fork_step} of {fork.parent_id} has global_step {step - 1}, and the next one {step} or more"
    return all_of(good, _against_boundary(reading.value, fork, step))


def _against_boundary(row: Boundary, fork: PlannedFork, step: int) -> Iterator[Word]:
    fix = "find the last row below the handoff's step, state its _step as [trial] fork_step, and agree anew"
    if row.fork_step != fork.fork_step:
        yield fails(f"row {row.fork_step} was looked at, row {fork.fork_step} was agreed", "agree on the plan anew")
    if row.global_step != step - 1 or fork.global_step != step - 1:
        has = "no global_step" if row.global_step is None else f"global_step {row.global_step}"
        yield fails(f"row {row.fork_step} has {has}; before the handoff it has to be {step - 1}", fix)
    if row.next_global_step is None:
        yield cannot_tell(
            f"no row after {row.fork_step} has a global_step yet, so it may not be the last of its step",
            "wait until the old run has logged the next step",
        )
    elif row.next_global_step < step:
        yield fails(f"the row after {row.fork_step} has global_step {row.next_global_step}, still below {step}", fix)


def _once(rehearsal: Rehearsal) -> Word:
    child, fork = rehearsal.child, rehearsal.plan.fork
    if child is None or rehearsal.child_seen is None:
        return no_child(rehearsal)
    named = tuple(
        fails(f"the child's launch would fork by itself: {word}", f"take it out of runs/{child.run_id}.toml")
        for word in forks_named(child)
    )
    if fork is None and not is_tracked(child.tracker):
        return all_of(_NO_TRACKER, named)
    reading = rehearsal.child_seen.tracker
    if isinstance(reading, Unknown):
        return all_of("", (*named, unseen(reading, "whether the tracker has the child already")))
    if fork is None:
        return fails("no fork of the tracker's history is agreed", "see plan.tracker")
    return all_of(_say_once(reading.value, fork), (*named, *_against_once(rehearsal, reading.value, fork)))


def _say_once(state: TrackerState, fork: PlannedFork) -> str:
    if state.state is TrackerRunState.MISSING:
        return f"the tracker has no run {fork.child_id} yet: it is forked once"
    return f"the tracker has {fork.child_id} as it was agreed: it is not forked again"


def _against_once(rehearsal: Rehearsal, state: TrackerState, fork: PlannedFork) -> Iterator[Word]:
    must_exist = rehearsal.is_recovery or rehearsal.stage in _FORKED
    other = "name a tracker id that was never used in [tracker] id of the child, and agree on the plan anew"
    if state.state is TrackerRunState.MISSING:
        if must_exist:
            detail = f"the history was forked, and the tracker has no run {fork.child_id}"
            yield fails(detail, "see who removed it; a second fork is not made")
        return
    if state.id != fork.child_id:
        yield fails(f"the tracker shows {state.id} for the child, {fork.child_id} was agreed", other)
    origin = state.forked_from
    if origin is None or (origin.run_id, origin.step) != (fork.parent_id, fork.fork_step):
        said = f"forked off {origin.run_id} at row {origin.step}" if origin else "no fork"
        yield fails(f"{fork.child_id} is there, and is {said}", other)
    if not rehearsal.is_recovery and state.last_step is not None and state.last_step > fork.fork_step:
        yield fails(f"{fork.child_id} has rows up to {state.last_step}, beyond the fork at {fork.fork_step}", other)


TRACKER = Guard(
    id=CheckId("plan.tracker"),
    title="The child is tracked in the same project, under an id of its own that is forked off the old run",
    source='deploy checklist, "Agree the plan": the unchanged W&B entity/project',
    group=Group.PLAN,
    rule=_tracker,
)
BOUNDARY = Guard(
    id=CheckId("fork.boundary"),
    title="The history is forked at the last row before the handoff's step",
    source='deploy checklist, "Agree the plan": the verified parent history boundary',
    group=Group.REHEARSE,
    rule=_boundary,
)
ONCE = Guard(
    id=CheckId("fork.once"),
    title="The child is not in the tracker yet, or is there as exactly the agreed fork",
    source='deploy checklist, "Execute the trial": create the W&B fork once',
    group=Group.REHEARSE,
    rule=_once,
)
