"""What can go wrong with a trial before its decision: the checkpoint that both runs hang on is gone, or damaged.

Source: the deploy checklist, "Agree the plan": the handoff checkpoint is protected from clean-up through trial and
rollback. Hero's own clean-up leaves it alone (``checks/cleanup.py``); this looks after everybody else's.
"""

from bot.model.contract import Contract
from bot.model.places import normalised
from bot.model.reading import Unknown
from bot.model.record import Record
from bot.model.snapshot import Checkpoint, Snapshot, Source
from bot.model.trial import AgreedHandoff
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import unseen
from checks.retention import is_sound
from checks.thresholds import NoMemory, NoThresholds

HANDOFF_ID = CheckId("trial.handoff")

_NEIGHBOURS = 3
_WAYS = (
    "an expiry rule of its bucket, somebody's clean-up, or the trainer itself, which deletes its temporary checkpoints "
    "when it saves a permanent one"
)


def agreed_in(record: Record | None) -> AgreedHandoff | None:
    """Return the handoff that a run's own trial protects; None when there is no trial, or it is closed."""
    trial = record.run.trial if record else None
    if trial is None or trial.is_over:
        return None
    return AgreedHandoff(
        child_run_id=trial.plan.child_run_id,
        step=trial.plan.handoff.step,
        path=trial.plan.handoff.path,
        is_temporary=trial.plan.handoff_is_temporary,
        is_cut_over=not trial.stage.is_before_the_stop,
    )


def handoff(seen: Snapshot, contract: Contract, _limits: NoThresholds, memory: NoMemory) -> tuple[Verdict, NoMemory]:
    """Fail when the handoff checkpoint of a trial under way is not there any more, or not complete."""
    agreed = contract.trial.agreed
    if agreed is None:
        return NotApplicable(reason="no trial of this run is under way"), memory
    if isinstance(seen.checkpoints, Unknown):
        return unseen(seen.checkpoints, "whether the handoff checkpoint is still there is not known"), memory
    found = seen.checkpoints.value
    wanted = normalised(agreed.path, contract.checkout)
    there = [each for each in found if normalised(each.path, contract.checkout) == wanted]
    if not there:
        return Fail(finding=_finding(agreed, "is not there any more", _around(agreed, found))), memory
    damaged = next((each for each in there if not is_sound(each) or each.step != agreed.step), None)
    if damaged is not None:
        fault = damaged.fault or f"it holds step {damaged.step}"
        return Fail(finding=_finding(agreed, f"is damaged: {fault}", _around(agreed, found))), memory
    return Pass(), memory


def _around(agreed: AgreedHandoff, found: tuple[Checkpoint, ...]) -> tuple[str, ...]:
    """Say what is still there, as the next thing anybody asks: those of the same step elsewhere, and the newest."""
    sound = [each for each in found if is_sound(each) and each.path != agreed.path]
    twins = [each for each in sound if each.step == agreed.step]
    newest = sorted(sound, key=lambda each: (each.step, each.path))[-_NEIGHBOURS:]
    said = tuple(f"the same step is complete at {each.path}" for each in twins[:_NEIGHBOURS])
    if not newest:
        return (*said, "no other complete checkpoint of this run is listed")
    listed = ", ".join(f"{each.step}{' (temporary)' if each.is_temporary else ''}" for each in newest)
    return (*said, f"newest complete ones that are listed: step {listed}")


def _finding(agreed: AgreedHandoff, what: str, around: tuple[str, ...]) -> Finding:
    kind = "temporary" if agreed.is_temporary else "permanent"
    return Finding(
        check=HANDOFF_ID,
        key=agreed.path,
        severity=Severity.CRITICAL,
        summary=f"the handoff checkpoint step {agreed.step} of the trial with {agreed.child_run_id} {what}",
        evidence=(f"agreed: {agreed.path} ({kind})", *around),
        advice=_advice(agreed),
        since_step=agreed.step,
    )


def _advice(agreed: AgreedHandoff) -> str:
    if agreed.is_cut_over:
        return (
            f"Find out what deletes it and stop that: {_WAYS}. The child's retries may still want it, and it may be "
            "what a rollback resumes from: verify the newest complete checkpoint of the old tree now, and decide with "
            "the DRI whether to roll back while that is there."
        )
    return (
        f"Do not cut over: the child could not start, or would start from something else. Find out what deletes it and "
        f"stop that: {_WAYS}. Then agree on another handoff; its control window begins anew at that step."
    )


HANDOFF = Check(
    id=HANDOFF_ID,
    title="The handoff checkpoint of a trial is gone or damaged",
    severity=Severity.CRITICAL,
    needs=(Source.CHECKPOINTS,),
    source='deploy checklist, "Agree the plan" (a complete handoff checkpoint, protected from cleanup through trial '
    "and rollback)",
    thresholds=NoThresholds(),
    memory=NoMemory(),
    judge=handoff,
)
