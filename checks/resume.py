"""What can go wrong with a resume: the run does not go on from the checkpoint that it was launched from."""

from pydantic import Field

from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Unknown
from bot.model.run import Instance
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.thresholds import Thresholds

MISMATCH_ID = CheckId("resume.mismatch")


class Lineage(Value):
    """Where this instance began to train."""

    instance: str = ""
    first_step: int | None = None
    lowest_step: int | None = None
    """Below the first one when a later retry began somewhere else."""

    def after(self, seen: Snapshot) -> "Lineage":
        """Return the memory with the snapshot's rows taken in; a new instance starts afresh."""
        current = instance_of(seen, self.instance)
        mine = self if current == self.instance else Lineage(instance=current)
        steps = [row.step for row in seen.metrics.value.rows] if isinstance(seen.metrics, Known) else []
        if not steps:
            return mine
        first = steps[0] if mine.first_step is None else mine.first_step
        lowest = min(steps) if mine.lowest_step is None else min(mine.lowest_step, *steps)
        return Lineage(instance=current, first_step=first, lowest_step=lowest)


class MismatchThresholds(Thresholds):
    before: int = Field(default=1, ge=0)
    """The first logged step may be so many below the checkpoint's. A checkpoint step-N is followed by step N, and some
    trainers log the last finished step, N-1."""

    window: int = Field(default=100, ge=0)
    """The first logged step may be so many above the checkpoint's: trainers log every so many steps. Ours."""


def mismatch(
    seen: Snapshot, contract: Contract, limits: MismatchThresholds, memory: Lineage
) -> tuple[Verdict, Lineage]:
    """Fail when a launch from a known checkpoint does not log its first step there."""
    memory = memory.after(seen)
    verdict = _judge(seen, contract, limits, memory)
    if isinstance(seen.jobs, Unknown) and not isinstance(verdict, Fail):
        return unseen(seen.jobs, "which job the steps are of is not known"), memory
    return verdict, memory


def _judge(seen: Snapshot, contract: Contract, limits: MismatchThresholds, memory: Lineage) -> Verdict:
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "at which step training began is not known")
    launch = seen.instance
    if launch is None or launch.from_step is None or not _is_of(launch, seen):
        return NotApplicable(reason="it is not known from which checkpoint this job was launched")
    if memory.first_step is None or memory.lowest_step is None:
        return NotApplicable(reason="no step was logged yet")
    if launch.from_step - limits.before <= memory.lowest_step <= memory.first_step <= launch.from_step + limits.window:
        return Pass()
    is_below = memory.lowest_step < launch.from_step - limits.before
    if not is_below and contract.metrics.file is None and (isinstance(seen.log, Unknown) or seen.log.value.is_cut):
        detail = f"the first lines of the log were cut; the first step seen is {memory.first_step}"
        return UnknownVerdict(reason=Gap.UNRECOGNISED, detail=detail)
    found = memory.lowest_step if is_below else memory.first_step
    return Fail(finding=_finding(seen, memory, launch.from_step, found))


def _is_of(launch: Instance, seen: Snapshot) -> bool:
    job = seen.job
    return job is None or (launch.job_id == job.job_id and launch.submitted_at in {None, job.submitted_at})


def _finding(seen: Snapshot, memory: Lineage, expected: int, found: int) -> Finding:
    restores = (
        [line.text.strip() for line in seen.log.value.lines if "Loading checkpoint from" in line.text]
        if isinstance(seen.log, Known)
        else []
    )
    return Finding(
        check=MISMATCH_ID,
        key=memory.instance,
        severity=Severity.CRITICAL,
        summary=f"lineage not confirmed: launched from checkpoint step {expected}, but training logged step {found}",
        evidence=(
            f"first step logged by this instance: {memory.first_step}",
            *(f"log: {text[:300]}" for text in restores[-1:]),
        ),
        advice="Stop it before it saves over the run's checkpoints or metrics, if the DRI agrees: it seems to train "
        "from other weights. Check the restore option and path of the command, and the launched config.",
        since_step=found,
        since_at=seen.at,
    )


MISMATCH = Check(
    id=MISMATCH_ID,
    title="The run did not resume at its checkpoint",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS),
    source='manage-hero-run, "What Can Go Wrong": wrong checkpoint selected; allenai/open-instruct#1823, '
    "marin-community/marin#8868",
    thresholds=MismatchThresholds(),
    memory=Lineage(),
    judge=mismatch,
)
