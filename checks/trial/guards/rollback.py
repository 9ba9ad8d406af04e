"""The way back: the old run's launch as it was, as the same user, from its own newest checkpoint, without a fork."""

from collections.abc import Iterator

from bot.model.as_launched import is_as_launched
from bot.model.contract import Contract
from bot.model.places import normalised
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.rehearsal import Rehearsal
from bot.model.run import Instance
from bot.model.snapshot import newest_complete
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, all_of, cannot_tell, fails, passes, unseen
from checks.trial.guards.identity import RESUMES, is_tracked
from checks.trial.guards.launches import (
    forks_configured,
    forks_named,
    same_commit,
    unplanned,
    user_of_job,
    users_of,
)

_ADDED = "added by Hero: "


def _command(rehearsal: Rehearsal) -> Word:
    instance, contract = rehearsal.instance, rehearsal.contract
    if instance is None or (instance.config_digest is None and not instance.command):
        return cannot_tell(
            "how the old run was launched is not on record, so its command cannot be compared",
            f"let Hero watch {contract.run_id} under its contract first",
        )
    if instance.config_digest is None:
        return _by_words(rehearsal, instance)
    if is_as_launched(contract, instance):
        return passes(f"runs/{contract.run_id}.toml is as it was at the launch of {instance.job_id}")
    return fails(
        f"runs/{contract.run_id}.toml is not as it was at the launch of {instance.job_id}: {_changes(rehearsal)}",
        "take that back: a rollback launches the old run with its original command",
    )


def _by_words(rehearsal: Rehearsal, instance: Instance) -> Word:
    if isinstance(rehearsal.rollback, NoPlan):
        return cannot_tell(
            "the old run's command cannot be compared: no relaunch can be planned", "see rollback.launch"
        )
    if rehearsal.rollback.command == instance.command:
        return passes(f"the command is that of the launch of {instance.job_id}")
    return fails(
        f"the command is not that of the launch of {instance.job_id}",
        f"write the original one into runs/{rehearsal.contract.run_id}.toml",
    )


def _changes(rehearsal: Rehearsal) -> str:
    changes = rehearsal.rollback.changes if isinstance(rehearsal.rollback, RelaunchPlan) else ()
    named = "; ".join(line for line in changes if not line.startswith(_ADDED))
    return named or "a field that shapes the launch, or a value that is not shown, has changed"


def _user(rehearsal: Rehearsal) -> Word:
    if all(each.orchestrator.kind == "local" for each in _contracts(rehearsal)):
        return passes("local jobs are submitted by Hero itself, as one user")
    found = tuple(_users(rehearsal))
    users = {user for user, _ in found}
    if len(users) > 1:
        said = ", ".join(f"{user} by {what}" for user, what in found)
        fix = "let both launches name the user of the old run's job, with IRIS_USER or --user"
        return fails(f"the launches are not of one user: {said}", fix)
    return all_of(f"both launches are submitted as {', '.join(users)}", _unstated(rehearsal))


def _contracts(rehearsal: Rehearsal) -> tuple[Contract, ...]:
    return (rehearsal.contract, *((rehearsal.child,) if rehearsal.child else ()))


def _launches(rehearsal: Rehearsal) -> Iterator[tuple[Contract, RelaunchPlan | NoPlan]]:
    yield rehearsal.contract, rehearsal.rollback
    if rehearsal.child is not None:
        yield rehearsal.child, rehearsal.launch


def _users(rehearsal: Rehearsal) -> Iterator[tuple[str, str]]:
    """Yield every user that is named, with what names them."""
    for contract, launch in _launches(rehearsal):
        for how, user in users_of(contract, launch):
            yield user, f"{how} of {contract.run_id}"
        jobs = (contract.orchestrator.job_id, launch.job_id if isinstance(launch, RelaunchPlan) else None)
        for job in dict.fromkeys(each for each in jobs if user_of_job(each)):
            yield user_of_job(job), f"job {job}"
    if rehearsal.instance is not None and user_of_job(rehearsal.instance.job_id):
        yield user_of_job(rehearsal.instance.job_id), f"the launch on record, {rehearsal.instance.job_id}"


def _unstated(rehearsal: Rehearsal) -> Iterator[Word]:
    for contract, launch in _launches(rehearsal):
        if contract.orchestrator.kind == "iris" and not tuple(users_of(contract, launch)):
            yield cannot_tell(
                f"as whom the command of {contract.run_id} submits is not stated",
                f"set IRIS_USER under [environment] in runs/{contract.run_id}.toml",
            )
    if rehearsal.child is None:
        yield cannot_tell("the child has no contract that can be used", "see plan.child")


def _checkpoint(rehearsal: Rehearsal) -> Word:
    found = rehearsal.seen.checkpoints
    if isinstance(found, Unknown):
        return unseen(found, "what the old run would resume from")
    newest = newest_complete(found.value)
    if newest is None:
        return fails("the old run has no complete checkpoint", "do not stop it before it has saved one")
    handoff = rehearsal.plan.handoff
    if newest.step < handoff.step:
        return fails(
            f"the old run's newest complete checkpoint is {newest.path}, from before the handoff's step {handoff.step}",
            "see what became of the newer ones before it is stopped",
        )
    intended = rehearsal.rollback.resume_from if isinstance(rehearsal.rollback, RelaunchPlan) else None
    if isinstance(rehearsal.rollback, RelaunchPlan) and not _is_same(
        rehearsal, intended.path if intended else "", newest.path
    ):
        resumed = intended.path if intended else "nothing"
        return fails(f"a rollback would resume {resumed} and not the newest, {newest.path}", "rehearse again")
    return passes(f"a rollback resumes {newest.path}")


def _is_same(rehearsal: Rehearsal, one: str, other: str) -> bool:
    checkout = rehearsal.contract.checkout
    return bool(one) and normalised(one, checkout) == normalised(other, checkout)


def _no_fork(rehearsal: Rehearsal) -> Word:
    return all_of("the way back forks no history: the old run goes on under its own id", _against_fork(rehearsal))


def _against_fork(rehearsal: Rehearsal) -> Iterator[Word]:
    contract, config = rehearsal.contract, rehearsal.seen.config
    for word in forks_named(contract):
        yield fails(f"the old run's launch names a fork: {word}", f"take it out of runs/{contract.run_id}.toml")
    match config:
        case Known(value=launched):
            for key in forks_configured(launched):
                yield fails(
                    f"the old run's launched configuration names a fork: {key}", "see that a relaunch sets none"
                )
        case Unknown(reason=Gap.NOT_CONFIGURED):
            pass
        case Unknown() as gap:
            yield unseen(gap, "whether the launched configuration names a fork")
    if is_tracked(contract.tracker):
        yield from _against_identity(rehearsal)


def _against_identity(rehearsal: Rehearsal) -> Iterator[Word]:
    tracker, fork, seen = rehearsal.contract.tracker, rehearsal.plan.fork, rehearsal.seen.tracker
    file = f"runs/{rehearsal.contract.run_id}.toml"
    if tracker.resume not in RESUMES:
        yield fails(
            f"[tracker] resume = {tracker.resume or 'not stated'}: a rollback might not go on in the old history",
            f"set resume to must or allow in the trainer and in {file}",
        )
    if fork is not None and tracker.id != fork.parent_id:
        yield fails(f"the old run's tracker id is {tracker.id}, the fork's parent {fork.parent_id}", f"mend {file}")
    if isinstance(seen, Unknown):
        yield unseen(seen, "the old run in the tracker")
    elif seen.value.id != tracker.id:
        yield fails(
            f"the tracker shows {seen.value.id or 'no run'} for the old run, the contract names {tracker.id}",
            f"mend [tracker] in {file}",
        )


def _launch(rehearsal: Rehearsal) -> Word:
    rollback = rehearsal.rollback
    if isinstance(rollback, NoPlan):
        return unplanned(rollback, "the old run's relaunch")
    return all_of(f"the old run can be launched again as {rollback.job_id}", _against_launch(rehearsal, rollback))


def _against_launch(rehearsal: Rehearsal, rollback: RelaunchPlan) -> Iterator[Word]:
    contract = rehearsal.contract
    for line in rollback.accepts:
        yield fails(
            f"the launch checklist does not clear it: {line}", "clear it: nobody is asked in a rollback's hurry"
        )
    if rollback.run_id != contract.run_id or rollback.output_root != contract.output_root:
        yield fails(f"the relaunch is {rollback.run_id}'s in {rollback.output_root}", "rehearse again")
    if not same_commit(rollback.source_sha, contract.source_sha):
        yield fails(
            f"the relaunch is of {rollback.source_sha}, the contract of {contract.source_sha}", "rehearse again"
        )


COMMAND = Guard(
    id=CheckId("rollback.command"),
    title="The old run's command is the one that it was launched with",
    source='deploy checklist, "Rehearse", "Verify": preserve its original launch command',
    group=Group.REHEARSE,
    rule=_command,
)
USER = Guard(
    id=CheckId("rollback.user"),
    title="Child and rollback are submitted as the old run's user",
    source='deploy checklist, "Rehearse", "Verify": launches the old revision and run ID as IRIS_USER=marin',
    group=Group.REHEARSE,
    rule=_user,
)
CHECKPOINT = Guard(
    id=CheckId("rollback.checkpoint"),
    title="The checkpoint that a rollback resumes is complete, and not older than the handoff",
    source='deploy checklist, "Rehearse", "Verify": verify its intended resume checkpoint first',
    group=Group.REHEARSE,
    rule=_checkpoint,
)
NO_FORK = Guard(
    id=CheckId("rollback.no_fork"),
    title="A rollback forks no tracker history, and goes on under the old run's id",
    source='deploy checklist, "Rehearse", "Verify": never create another W&B fork for rollback',
    group=Group.REHEARSE,
    rule=_no_fork,
)
LAUNCH = Guard(
    id=CheckId("rollback.launch"),
    title="The old run's relaunch can be planned, and the launch checklist clears it",
    source='deploy checklist, "Rehearse": rehearse preflight and rollback',
    group=Group.REHEARSE,
    rule=_launch,
)
