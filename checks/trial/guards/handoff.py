"""The handoff checkpoint: complete, as permanent as agreed, of the old run, and the one that the child is given."""

from collections.abc import Iterator

from bot.model.addresses import step_in
from bot.model.places import normalised
from bot.model.reading import Unknown
from bot.model.rehearsal import Rehearsal
from bot.model.snapshot import Checkpoint
from bot.model.value import CheckId
from checks.trial.guards.child import starts_elsewhere
from checks.trial.guards.guard import Group, Guard, Word, all_of, fails, passes, unseen
from checks.trial.guards.launches import no_child


def _complete(rehearsal: Rehearsal) -> Word:
    found = _found(rehearsal)
    if isinstance(found, Word):
        return found
    if not found.is_complete:
        return fails(f"{found.path} is not complete: {found.fault}", "agree on a plan with a complete one")
    return passes(f"{found.path} is complete: its metadata.json names step {found.step}")


def _found(rehearsal: Rehearsal) -> Checkpoint | Word:
    """Return the handoff checkpoint as it lies there, or why there is none."""
    reading = rehearsal.seen.checkpoints
    if isinstance(reading, Unknown):
        return unseen(reading, "what became of the handoff checkpoint")
    handoff = _place(rehearsal, rehearsal.plan.handoff.path)
    found = next((each for each in reading.value if _place(rehearsal, each.path) == handoff), None)
    if found is not None:
        return found
    return fails(
        f"{rehearsal.plan.handoff.path} is not there",
        "see who removed it, stop what cleans up there, and agree on a plan with one that is there",
    )


def _place(rehearsal: Rehearsal, path: str) -> str:
    return normalised(path, rehearsal.contract.checkout)


def _retention(rehearsal: Rehearsal) -> Word:
    found = _found(rehearsal)
    if isinstance(found, Word):
        return found
    if not found.is_temporary:
        return passes(f"{found.path} is permanent")
    if rehearsal.plan.handoff_is_temporary:
        return passes(f"{found.path} is hourly, as agreed; the trainer's next permanent save may remove it")
    return fails(
        f"{found.path} is temporary, and a permanent one was agreed",
        "copy it to a permanent place, or agree on an hourly one: [trial] handoff_hourly = true",
    )


def _lineage(rehearsal: Rehearsal) -> Word:
    if rehearsal.child is None:
        return no_child(rehearsal)
    found = _found(rehearsal)
    if isinstance(found, Word):
        return found
    return all_of(
        f"{found.path} lies in the old run's tree, and is what the child starts from",
        (*_against_layout(rehearsal, found), *starts_elsewhere(rehearsal, rehearsal.child)),
    )


def _against_layout(rehearsal: Rehearsal, found: Checkpoint) -> Iterator[Word]:
    plan, contract = rehearsal.plan, rehearsal.contract
    place = _place(rehearsal, found.path)
    roots = tuple(_place(rehearsal, root) for root in contract.roots)
    if place.rpartition("/")[0] not in roots:
        yield fails(
            f"{found.path} lies in none of the old run's trees: {', '.join(contract.roots)}",
            "hand over a checkpoint of the old run",
        )
    if step_in(place) != plan.handoff.step or found.step != plan.handoff.step:
        yield fails(
            f"{found.path} is step {found.step} to its metadata, step {plan.handoff.step} was agreed",
            "agree on the plan anew",
        )


COMPLETE = Guard(
    id=CheckId("handoff.complete"),
    title="The handoff checkpoint is there and complete",
    source='deploy checklist, "Rehearse", "Verify": handoff metadata.json exists, records the expected step',
    group=Group.REHEARSE,
    rule=_complete,
)
RETENTION = Guard(
    id=CheckId("handoff.retention"),
    title="The handoff checkpoint is permanent, or hourly as agreed",
    source='deploy checklist, "Rehearse", "Verify": handoff … has the intended retention',
    group=Group.REHEARSE,
    rule=_retention,
)
LINEAGE = Guard(
    id=CheckId("handoff.lineage"),
    title="The handoff checkpoint is step-N in the old run's tree, and what the child starts from",
    source='deploy checklist, "Rehearse", "Verify": confirm layout and checkpoint lineage',
    group=Group.REHEARSE,
    rule=_lineage,
)
