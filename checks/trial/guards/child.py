"""The child: a run of its own, its tree, its launch, and what that launch starts from."""

from collections.abc import Iterator

from bot.model.contract import Contract
from bot.model.places import normalised, overlaps, places_of
from bot.model.planned import NoPlan, PlannedCheckpoint, RelaunchPlan
from bot.model.reading import Unknown
from bot.model.rehearsal import Rehearsal
from bot.model.snapshot import Checkpoint, newest_complete
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, all_of, fails, passes, unseen
from checks.trial.guards.launches import no_child, same_commit, unplanned


def _identity(rehearsal: Rehearsal) -> Word:
    plan, child = rehearsal.plan, rehearsal.child
    if child is None:
        why = "; ".join(rehearsal.child_problems) or "there is no such file"
        return fails(
            f"the child has no contract that can be used: {why}", f"write or mend runs/{plan.child_run_id}.toml"
        )
    return all_of(
        f"{child.run_id} is a run of its own, with its checkpoints in {plan.child_root}",
        (*_names(rehearsal, child), *_places(rehearsal, child)),
    )


def _names(rehearsal: Rehearsal, child: Contract) -> Iterator[Word]:
    plan, old = rehearsal.plan, rehearsal.contract
    file = f"runs/{plan.child_run_id}.toml"
    if child.run_id != plan.child_run_id:
        yield fails(f"the contract is {child.run_id}'s, the agreed child is {plan.child_run_id}", f"mend {file}")
    if plan.child_run_id == old.run_id:
        yield fails(f"the child has the old run's id, {old.run_id}", "give it an id of its own: [trial] child_run_id")
    job = child.orchestrator.job_id
    if job is not None and job == old.orchestrator.job_id:
        yield fails(f"{job} is the old run's job too", f"name a job of the child's own in {file}, [orchestrator]")


def _places(rehearsal: Rehearsal, child: Contract) -> Iterator[Word]:
    plan, old = rehearsal.plan, rehearsal.contract
    fix = f"give the child a tree of its own, in [trial] child_root and in runs/{plan.child_run_id}.toml"
    mine, olds = _roots(child), _roots(old)
    if normalised(plan.child_root, child.checkout) not in mine:
        trees = ", ".join(child.roots)
        yield fails(f"the agreed tree {plan.child_root} is none of the child's contract, which has {trees}", fix)
    for field, place in places_of(child):
        for other in olds:
            if overlaps(place, other):
                yield fails(f"the child's {field} {place} and the old run's tree {other} are one place", fix)
    for field, place in places_of(old):
        if place not in olds and any(overlaps(place, tree) for tree in mine):
            yield fails(f"the child's tree and the old run's {field} {place} are one place", fix)


def _roots(contract: Contract) -> tuple[str, ...]:
    return tuple(normalised(root, contract.checkout) for root in contract.roots)


def _tree(rehearsal: Rehearsal) -> Word:
    if rehearsal.child_seen is None:
        return no_child(rehearsal)
    found = rehearsal.child_seen.checkpoints
    if isinstance(found, Unknown):
        return unseen(found, "what lies in the child's tree")
    if rehearsal.is_recovery:
        return _kept(found.value)
    if not found.value:
        return passes("the child's tree was looked at, and holds no checkpoint")
    return fails(
        f"the child's tree is not empty: {_named(found.value)}",
        "name an empty tree, or find out whose these are; the child would go on from them and not from the handoff",
    )


def _kept(found: tuple[Checkpoint, ...]) -> Word:
    if not found:
        return passes("the child has saved nothing yet, and begins at the handoff checkpoint again")
    newest = newest_complete(found)
    if newest is None:
        return fails(
            f"the child's tree holds no complete checkpoint: {_named(found)}",
            "see why its saves do not end; keep the tree as it is",
        )
    beyond = tuple(each for each in found if each.step > newest.step)
    above = f"; not complete: {_named(beyond)}" if beyond else ""
    return passes(f"the child's tree is kept; its newest complete checkpoint is {newest.path}{above}")


def _named(found: tuple[Checkpoint, ...]) -> str:
    return ", ".join(each.path for each in found[-3:])


def _launch(rehearsal: Rehearsal) -> Word:
    launch = rehearsal.launch
    if isinstance(launch, NoPlan):
        return unplanned(launch, "the child's launch")
    accepted = f"; the yes to the cut-over accepts: {', '.join(launch.accepts)}" if launch.accepts else ""
    return all_of(f"the launch makes {launch.job_id}{accepted}", _against_launch(rehearsal, launch))


def _against_launch(rehearsal: Rehearsal, launch: RelaunchPlan) -> Iterator[Word]:
    child = rehearsal.child
    if child is None:
        yield no_child(rehearsal)
        return
    file = f"runs/{child.run_id}.toml"
    promised = child.orchestrator.job_id
    if launch.run_id != rehearsal.plan.child_run_id:
        yield fails(f"the launch is {launch.run_id}'s and not the agreed child's", f"mend {file}")
    if promised is not None and launch.job_id != promised:
        yield fails(
            f"the command would make {launch.job_id}, and the contract's job is {promised}",
            f"let `command` and [orchestrator] job_id in {file} name one job",
        )
    if not same_commit(launch.source_sha, child.source_sha):
        yield fails(f"the launch is of {launch.source_sha}, the contract of {child.source_sha}", "rehearse again")


def _start(rehearsal: Rehearsal) -> Word:
    launch, child = rehearsal.launch, rehearsal.child
    if child is None:
        return no_child(rehearsal)
    if isinstance(launch, NoPlan):
        return unplanned(launch, "the child's launch")
    handoff = rehearsal.plan.handoff
    resume = launch.resume_from
    if resume is None or normalised(resume.path, child.checkout) == _handoff_place(rehearsal):
        return all_of(f"the launch starts from {handoff.path}", starts_elsewhere(rehearsal, child))
    return _resumes(rehearsal, resume)


def starts_elsewhere(rehearsal: Rehearsal, child: Contract) -> Iterator[Word]:
    """Yield why the child's contract does not start from the very checkpoint that is handed over."""
    start = child.initialize_from
    if start is None or normalised(start, child.checkout) != _handoff_place(rehearsal):
        yield fails(
            f"the child starts from {start or 'nothing'}, the handoff is {rehearsal.plan.handoff.path}",
            f"write the handoff as initialize_from into runs/{child.run_id}.toml, and pass it in the command",
        )


def _handoff_place(rehearsal: Rehearsal) -> str:
    return normalised(rehearsal.plan.handoff.path, rehearsal.contract.checkout)


def _resumes(rehearsal: Rehearsal, resume: PlannedCheckpoint) -> Word:
    if not rehearsal.is_recovery:
        return fails(
            f"the launch would resume {resume.path} and not the handoff {rehearsal.plan.handoff.path}",
            "see that the child's tree is empty",
        )
    if resume.step < rehearsal.plan.handoff.step:
        return fails(
            f"the launch would resume step {resume.step}, from before the handoff's {rehearsal.plan.handoff.step}",
            "see whose checkpoint that is; the child saves none below the handoff",
        )
    return passes(f"the child goes on from its own {resume.path}")


CHILD = Guard(
    id=CheckId("plan.child"),
    title="The child has a run id, a job and a checkpoint tree of its own",
    source='deploy checklist, "Agree the plan": a new run ID and checkpoint tree',
    group=Group.PLAN,
    rule=_identity,
)
TREE = Guard(
    id=CheckId("child.tree"),
    title="The child's tree is empty; in recovery it is kept, and its newest checkpoint is complete",
    source='deploy checklist, "Rehearse", "Verify": child checkpoint trees are empty for initial cutover',
    group=Group.REHEARSE,
    rule=_tree,
)
LAUNCH = Guard(
    id=CheckId("child.launch"),
    title="The child's launch can be planned, and makes the job that its contract names",
    source='deploy checklist, "Rehearse": dry-run every guard; "Verify": exactly one child coordinator afterward',
    group=Group.REHEARSE,
    rule=_launch,
)
START = Guard(
    id=CheckId("child.start"),
    title="The child's launch starts from the handoff checkpoint; in recovery, from there or from its own newer one",
    source='deploy checklist, "Agree the plan": a complete handoff checkpoint; "Decide": retries may restore either',
    group=Group.REHEARSE,
    rule=_start,
)
