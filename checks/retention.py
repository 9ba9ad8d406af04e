"""What can go wrong with what is kept: the last state to go back to is about to be cleaned up, or is gone already."""

from datetime import timedelta

from pydantic import Field

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.reading import Unknown
from bot.model.snapshot import Checkpoint, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.thresholds import Thresholds

WINDOW_ID = CheckId("checkpoint.window")


class WindowThresholds(Thresholds):
    ttl: Duration = timedelta(days=30)
    """After so long a temporary checkpoint is deleted by its bucket's rule. Manage-hero-run, "Launch": ttl_days=30."""

    margin: Duration = timedelta(days=5)
    """It is told so long before. Ours."""

    permanent_age: Duration | None = None
    """The newest permanent checkpoint may be so old; not judged by default, as many runs keep none on the way."""

    spare: int = Field(default=0, ge=0)
    """So many sound checkpoints beside the newest one are wanted, e.g. where a deeper rollback was agreed upon."""


class Kept(Value):
    """The newest sound checkpoint that this instance was seen to have."""

    instance: str = ""
    step: int | None = None
    path: str = ""


def window(seen: Snapshot, contract: Contract, limits: WindowThresholds, memory: Kept) -> tuple[Verdict, Kept]:
    """Fail when the states to go back to are about to get too few, or are gone."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else Kept(instance=current)
    if isinstance(seen.checkpoints, Unknown):
        return unseen(seen.checkpoints, "what there is to go back to is not known"), memory
    found = seen.checkpoints.value
    sound = [each for each in found if is_sound(each)]
    newest = max(sound, key=lambda each: (each.step, not each.is_temporary, each.path), default=None)
    reasons = _reasons(seen, contract, limits, memory, found)
    if newest is not None and not any("is gone" in reason for reason in reasons):
        memory = Kept(instance=current, step=newest.step, path=newest.path)
    if reasons:
        return Fail(finding=_finding(reasons, newest, memory, found)), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the checkpoints are of is not known"), memory
    if newest is None:
        return NotApplicable(reason="there is no complete checkpoint yet; checkpoint.stalled looks after that"), memory
    return Pass(), memory


def is_sound(checkpoint: Checkpoint) -> bool:
    """Return whether one may be gone back to: complete, and saved without leftovers (field report R26)."""
    return checkpoint.is_complete and not checkpoint.fault


def _reasons(
    seen: Snapshot, contract: Contract, limits: WindowThresholds, memory: Kept, found: tuple[Checkpoint, ...]
) -> list[str]:
    sound = [each for each in found if is_sound(each)]
    steps = {each.step for each in sound}
    reasons: list[str] = []
    if memory.step is not None and not any(step >= memory.step for step in steps):
        reasons.append(f"the newest sound checkpoint, step {memory.step}, is gone, and no newer one is there")
    if not sound:
        return reasons
    top = max(steps)
    faulty = {each.step for each in found if each.step > top}  # one more than are kept may still be written
    if len(faulty) > contract.retention.resume and all(c.is_temporary for c in sound if c.step == top):
        reasons.append(
            f"{len(faulty)} newer directories are not sound, and {contract.retention.resume} are kept: the clean-up "
            f"may delete step {top}, the last sound one"
        )
    if limits.spare > 0 and len(steps) <= limits.spare:
        reasons.append(f"{len(steps)} sound checkpoints are left; {limits.spare} beside the newest are wanted")
    permanent = _permanent(found)
    missing = [step for step in contract.retention.milestones if step < top and not {step, step - 1} & permanent]
    if missing:
        reasons.append(f"milestone step {', '.join(map(str, missing))} is not kept for good, and the run is past it")
    return reasons + _ages(seen, limits, sound)


def _ages(seen: Snapshot, limits: WindowThresholds, sound: list[Checkpoint]) -> list[str]:
    reasons: list[str] = []
    dated = {each.saved_at: each for each in sound if each.saved_at is not None}
    if len(dated) == len(sound) and all(each.is_temporary for each in sound):
        last = dated[max(dated)]
        age = seen.at - max(dated)
        if age > limits.ttl - limits.margin:
            reasons.append(
                f"step {last.step} is temporary and {say_duration(age)} old: it is deleted after "
                f"{say_duration(limits.ttl)}"
            )
    permanent = [each.saved_at for each in sound if not each.is_temporary and each.saved_at is not None]
    if limits.permanent_age is not None and permanent and seen.at - max(permanent) > limits.permanent_age:
        reasons.append(
            f"the newest permanent checkpoint is {say_duration(seen.at - max(permanent))} old (limit "
            f"{say_duration(limits.permanent_age)})"
        )
    return reasons


def _permanent(found: tuple[Checkpoint, ...]) -> set[int]:
    return {each.step for each in found if is_sound(each) and not each.is_temporary}


def _finding(reasons: list[str], newest: Checkpoint | None, memory: Kept, found: tuple[Checkpoint, ...]) -> Finding:
    is_gone = newest is None
    faults = tuple(f"{each.path}: {each.fault}" for each in found[-3:] if each.fault)
    left = (
        "nothing is left to go back to" if is_gone else f"the newest sound one is step {newest.step if newest else ''}"
    )
    return Finding(
        check=WINDOW_ID,
        key=memory.instance,
        severity=Severity.CRITICAL if is_gone else Severity.WARNING,
        summary=f"the rollback window is about to collapse: {reasons[0]}; {left}",
        evidence=(*reasons[1:], *faults),
        advice="Protect the last sound checkpoint from clean-up now (copy it, or lift its expiry), and find out why "
        "newer ones are not complete; let the DRI decide before anything is deleted.",
        since_step=memory.step if newest is None else newest.step,
    )


WINDOW = Check(
    id=WINDOW_ID,
    title="The rollback window is about to collapse",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.CHECKPOINTS),
    source='manage-hero-run, "What Can Go Wrong": checkpoint not advancing (cleanup threatens rollback coverage) and '
    '"Launch": checkpoint retention policy',
    thresholds=WindowThresholds(),
    memory=Kept(),
    judge=window,
)
