"""What can go wrong after a success: the orchestrator says that all is well, and what the run was for is not there."""

from datetime import timedelta

from bot.model.contract import Contract
from bot.model.durations import Duration, say_duration
from bot.model.job import JobState
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Checkpoint, Snapshot, Source
from bot.model.tracker import TrackerRunState
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, is_final, unseen
from checks.thresholds import Thresholds

MISSING_ID = CheckId("artifacts.missing")


class MissingThresholds(Thresholds):
    settle: Duration = timedelta(minutes=10)
    """So long after the end something may still be written. Ours."""


class Finished(Value):
    """How far this instance got, and whether it ended well."""

    instance: str = ""
    step: int | None = None
    has_succeeded: bool = False
    has_export: bool = False
    """Something was seen at the export root; that is not looked at any more once the job is forgotten."""


def missing(
    seen: Snapshot, contract: Contract, limits: MissingThresholds, memory: Finished
) -> tuple[Verdict, Finished]:
    """Fail when a run succeeded at its final step and its final checkpoint, its export or W&B's end is not there.

    Whether the run's record is written up to its end, and the seal's tag, ``/hero seal`` looks after.
    """
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else Finished(instance=current)
    memory = _taken_in(seen, memory)
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the run succeeded is not known"), memory
    if isinstance(seen.checkpoints, Unknown):
        return unseen(seen.checkpoints, "what is left of the run is not known"), memory
    found = tuple(each for each in seen.checkpoints.value if is_final(each.step, contract.final_step))
    verdict = _not_yet(seen, contract, limits, memory, has_final=bool(found))
    if verdict is None:
        verdict = _judge_end(
            seen,
            contract,
            memory,
            (*_checkpoint_lacks(found, contract), *_export_lacks(seen, contract), *_tracker_lacks(seen, contract)),
        )
    return verdict, memory


def _not_yet(
    seen: Snapshot, contract: Contract, limits: MissingThresholds, memory: Finished, *, has_final: bool
) -> Verdict | None:
    """Return the verdict on a run that is not at its end, as far as that is known."""
    reason = ""
    if not memory.has_succeeded:
        reason = "the run has not succeeded yet"
    elif contract.final_step is None:
        reason = "the contract names no final step, so the final checkpoint is not known"
    elif not is_final(memory.step, contract.final_step) and not has_final:
        if isinstance(seen.metrics, Unknown):
            return unseen(seen.metrics, "whether the final step was reached is not known")
        reason = "its final step was not seen; job.ended tells of that"
    elif seen.job is not None and seen.job.finished_at and seen.at - seen.job.finished_at < limits.settle:
        reason = f"it ended less than {say_duration(limits.settle)} ago"
    return NotApplicable(reason=reason) if reason else None


def _judge_end(seen: Snapshot, contract: Contract, memory: Finished, lacks: tuple[str, ...]) -> Verdict:
    if lacks:
        return Fail(finding=_finding(lacks, memory, contract))
    if isinstance(seen.tracker, Unknown) and seen.tracker.reason is not Gap.NOT_CONFIGURED:
        return unseen(seen.tracker, "whether the tracker has the end is not known")
    if contract.export_root and not memory.has_export and isinstance(seen.export, Unknown):
        return unseen(seen.export, f"whether anything lies at the export root {contract.export_root} is not known")
    return Pass()


def _taken_in(seen: Snapshot, memory: Finished) -> Finished:
    steps = [row.step for row in seen.metrics.value.rows] if isinstance(seen.metrics, Known) else []
    known = [memory.step] if memory.step is not None else []
    has_succeeded = memory.has_succeeded if seen.job is None else seen.job.state is JobState.SUCCEEDED
    return memory.model_copy(
        update={
            "step": max((*steps, *known), default=None),
            "has_succeeded": has_succeeded,
            "has_export": bool(seen.export.value) if isinstance(seen.export, Known) else memory.has_export,
        }
    )


def _checkpoint_lacks(found: tuple[Checkpoint, ...], contract: Contract) -> tuple[str, ...]:
    complete = [each for each in found if each.is_complete]
    if not complete:
        faults = "; ".join(f"{each.path}: {each.fault}" for each in found) or f"looked in {', '.join(contract.roots)}"
        return (f"there is no complete checkpoint of the final step {contract.final_step} ({faults})",)
    if all(each.is_temporary for each in complete):
        return (f"the final checkpoint is only a temporary one, {complete[-1].path}, and will be deleted",)
    return ()


def _export_lacks(seen: Snapshot, contract: Contract) -> tuple[str, ...]:
    is_empty = contract.export_root is not None and isinstance(seen.export, Known) and seen.export.value == 0
    return (f"nothing lies at the export root {contract.export_root}",) if is_empty else ()


def _tracker_lacks(seen: Snapshot, contract: Contract) -> tuple[str, ...]:
    if isinstance(seen.tracker, Unknown):
        return ()
    tracked = seen.tracker.value
    if tracked.state is TrackerRunState.MISSING:
        return (f"the tracker has no run {tracked.entity}/{tracked.project}/{tracked.id}",)
    if tracked.trainer_step is not None and not is_final(tracked.trainer_step, contract.final_step):
        return (f"the tracker's summary ends at step {tracked.trainer_step}",)
    return ()


def _finding(lacks: tuple[str, ...], memory: Finished, contract: Contract) -> Finding:
    return Finding(
        check=MISSING_ID,
        key=memory.instance,
        severity=Severity.CRITICAL,
        summary=f"the job succeeded at its final step {contract.final_step}, but {lacks[0]}",
        evidence=lacks,
        advice="Do not seal the run and do not clean anything up. Look in the last lines of the log whether the final "
        "save failed; as long as an older checkpoint is there, the last steps can be trained again.",
        since_step=memory.step,
    )


MISSING = Check(
    id=MISSING_ID,
    title="The run succeeded, but its artifacts are missing",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS, Source.CHECKPOINTS, Source.TRACKER, Source.EXPORT),
    source='manage-hero-run, "What Can Go Wrong": benign-looking success with missing artifacts',
    thresholds=MissingThresholds(),
    memory=Finished(),
    judge=missing,
)
