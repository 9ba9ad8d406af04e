"""What can go wrong with a resume: the run does not go on from its checkpoint, or its loss does not go on as before."""

import math

from pydantic import Field

from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Unknown
from bot.model.run import Instance
from bot.model.snapshot import MetricRow, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.lineage import ENOUGH_AFTER, FEWEST_AFTER, Shift, shift_of
from checks.thinning import CHECKPOINTS, LoggedLoss, Losses, logged_loss, thinned
from checks.thresholds import Thresholds

MISMATCH_ID = CheckId("resume.mismatch")


class Lineage(Value):
    """Where this instance began to train, and how its losses compare with those before it at the same steps."""

    instance: str = ""
    first_step: int | None = None
    lowest_step: int | None = None
    """Below the first one when a later retry began somewhere else."""
    earlier: Losses = ()
    """Of the launches before this one, by step; thinned."""
    own: Losses = ()
    """Of this one, by step; thinned."""
    checkpoints: tuple[int, ...] = ()
    """Where a restart can begin: the oldest complete checkpoint and the newest ones, as last seen."""
    compared: int = 0
    """How many steps were logged by both."""
    worst: LoggedLoss | None = None
    """The step at which the two differ most, and by how much."""
    settled: Losses = ()
    """This one's losses after the warm-up of its resume, until there are enough of them."""
    shift: Shift | None = None
    """How they lie against the trend before; None when that could not be told."""
    is_settled: bool = False
    """Whether that was judged."""

    def after(self, seen: Snapshot, limits: "MismatchThresholds") -> "Lineage":
        """Return the memory with the snapshot's rows taken in; a new instance starts afresh."""
        current = instance_of(seen, self.instance)
        mine = self if current == self.instance else self.followed_by(current)
        mine = mine.model_copy(update={"checkpoints": _checkpoints(seen, mine.checkpoints)})
        rows = seen.metrics.value.rows if isinstance(seen.metrics, Known) else ()
        steps = [row.step for row in rows]
        if not steps:
            return mine
        first = steps[0] if mine.first_step is None else mine.first_step
        lowest = min(steps) if mine.lowest_step is None else min(mine.lowest_step, *steps)
        fresh = tuple(logged_loss(r.step, r.values["loss"]) for r in rows if math.isfinite(_loss(r)))
        mine = mine.model_copy(update={"first_step": first, "lowest_step": lowest})
        return mine.compared_with(fresh).settled_with(fresh, limits)

    def followed_by(self, instance: str) -> "Lineage":
        """Return the memory of the launch after this one, which knows the losses of all before."""
        earlier = thinned(_joined(self.earlier, self.own), self.checkpoints)
        return Lineage(instance=instance, earlier=earlier, checkpoints=self.checkpoints)

    def compared_with(self, fresh: tuple[LoggedLoss, ...]) -> "Lineage":
        """Return the memory with this instance's new losses held against those of the launches before."""
        before = {logged.step: logged.loss for logged in self.earlier}
        apart = [
            LoggedLoss(step=logged.step, loss=abs(logged.loss - before[logged.step]))
            for logged in fresh
            if logged.step in before
        ]
        candidates = (*apart, *((self.worst,) if self.worst else ()))
        return self.model_copy(
            update={
                "own": thinned(_joined(self.own, fresh), self.checkpoints),
                "compared": self.compared + len(apart),
                "worst": max(candidates, key=lambda logged: logged.loss, default=None),
            }
        )

    def settled_with(self, fresh: tuple[LoggedLoss, ...], limits: "MismatchThresholds") -> "Lineage":
        """Return the memory with the level after the resume held against the trend before, once it is known."""
        if self.is_settled or not self.earlier or self.first_step is None:
            return self
        begin, end = self.first_step + limits.settle, self.first_step + limits.until
        found = list(self.settled)
        for logged in fresh:
            if logged.step >= begin and (not found or logged.step > found[-1].step):
                found.append(logged)
            if len(found) >= FEWEST_AFTER and (len(found) >= ENOUGH_AFTER or logged.step >= end):
                shared = tuple(logged for logged in self.earlier if logged.step <= self.first_step)
                shift = shift_of(shared, tuple(found))
                return self.model_copy(update={"settled": (), "shift": shift, "is_settled": True})
        return self.model_copy(update={"settled": tuple(found[:ENOUGH_AFTER])})


def _loss(row: MetricRow) -> float:
    return row.values.get("loss", math.nan)


def _joined(older: tuple[LoggedLoss, ...], newer: tuple[LoggedLoss, ...]) -> tuple[LoggedLoss, ...]:
    """Return one loss a step, by step; the newer one where both have it."""
    by_step = {logged.step: logged for logged in (*older, *newer)}
    return tuple(by_step[step] for step in sorted(by_step))


def _checkpoints(seen: Snapshot, before: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps from which a restart can begin, by step; what was known before while they cannot be read."""
    if isinstance(seen.checkpoints, Unknown):
        return before
    steps = sorted({each.step for each in seen.checkpoints.value if each.is_complete})
    return tuple(steps) if len(steps) <= CHECKPOINTS else (steps[0], *steps[-CHECKPOINTS:])


class MismatchThresholds(Thresholds):
    before: int = Field(default=1, ge=0)
    """The first logged step may be so many below the checkpoint's. A checkpoint step-N is followed by step N, and some
    trainers log the last finished step, N-1."""

    window: int = Field(default=100, ge=0)
    """The first logged step may be so many above the checkpoint's: trainers log every so many steps. Ours."""

    loss: float = Field(default=0.002, gt=0)
    """The loss at a step that is trained again may differ by so much from what was logged there before, in the loss's
    own unit. Manage-hero-run, "Resume loss mismatch": TPU resumes are bitwise identical, GPU ones very close."""

    level: float = Field(default=0.01, gt=0)
    """After the warm-up of a resume the median loss may differ from the lineage's trend by this share, and by what
    noise and extrapolation make doubtful. The same rule: more than 1 %."""

    settle: int = Field(default=50, ge=0)
    """So many steps after the resume are warm-up. Ours."""

    until: int = Field(default=500, ge=1)
    """The level is taken over the steps from there to this many after the resume, over more where few are logged and
    over fewer where 128 are enough. Ours."""


def mismatch(
    seen: Snapshot, contract: Contract, limits: MismatchThresholds, memory: Lineage
) -> tuple[Verdict, Lineage]:
    """Fail when a launch does not begin at its checkpoint, or logs other losses at steps that are trained again."""
    memory = memory.after(seen, limits)
    verdict = _judge_beginning(seen, contract, limits, memory)
    shift = memory.shift
    if isinstance(verdict, Fail):
        return verdict, memory
    if memory.worst is not None and memory.worst.loss > limits.loss:
        verdict = Fail(finding=_loss_finding(seen, memory, memory.worst, limits))
    elif shift is not None and abs(shift.share) > limits.level + shift.doubt:
        verdict = Fail(finding=_level_finding(seen, memory, shift, limits))
    elif isinstance(verdict, Pass) and not memory.compared and memory.first_step and not _is_verified(shift, limits):
        verdict = NotApplicable(
            reason="not verifiable: it began at its checkpoint, but no step was logged twice to compare the loss at, "
            "and the losses before and after do not tell its level"
        )
    if isinstance(seen.jobs, Unknown) and not isinstance(verdict, Fail):
        return unseen(seen.jobs, "which job the steps are of is not known"), memory
    return verdict, memory


def _judge_beginning(seen: Snapshot, contract: Contract, limits: MismatchThresholds, memory: Lineage) -> Verdict:
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
    if job is None:
        return True
    if launch.submitted_at is None and job.instance_id == launch.replaces:
        return False  # the orchestrator still shows the launch before under this name
    return launch.job_id == job.job_id and launch.submitted_at in {None, job.submitted_at}


def _is_verified(shift: Shift | None, limits: MismatchThresholds) -> bool:
    """Return whether a level is known well enough for a difference of the limit to have been seen."""
    return shift is not None and shift.doubt <= limits.level


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


def _loss_finding(seen: Snapshot, memory: Lineage, worst: LoggedLoss, limits: MismatchThresholds) -> Finding:
    before = next((logged.loss for logged in memory.earlier if logged.step == worst.step), math.nan)
    return Finding(
        check=MISMATCH_ID,
        key=memory.instance,
        severity=Severity.CRITICAL,
        summary=f"the loss does not go on as before the resume: {worst.loss:.4g} apart at step {worst.step}, "
        f"allowed {limits.loss:g}",
        evidence=(
            f"loss at step {worst.step} before the resume: {before:.6g}",
            f"steps logged by both launches: {memory.compared}",
        ),
        advice="Data order, precision or weights may differ from the lineage before. Compare the launched config and "
        "the restore line with the last launch; let the DRI decide whether to stop it before it saves.",
        since_step=worst.step,
        since_at=seen.at,
    )


def _level_finding(seen: Snapshot, memory: Lineage, shift: Shift, limits: MismatchThresholds) -> Finding:
    return Finding(
        check=MISMATCH_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"the loss level after the resume is {100 * abs(shift.share):.1f} % "
        f"{'above' if shift.share > 0 else 'below'} the trend before it, allowed {100 * limits.level:g} %",
        evidence=(
            f"median loss at steps {shift.first_step} to {shift.last_step}: {shift.level:.6g}",
            f"expected by the trend before: {shift.expected:.6g}",
            f"noise, bend and distance of the trend explain {100 * shift.doubt:.2g} %",
        ),
        advice="Data order, learning rate, batch size or weights may differ from the lineage before. Compare the "
        "launched config and the restore line with the last launch; a new stage of the data mixture looks the same.",
        since_step=shift.first_step,
        since_at=seen.at,
    )


MISMATCH = Check(
    id=MISMATCH_ID,
    title="The run did not resume at its checkpoint, or its loss does not go on",
    severity=Severity.CRITICAL,
    needs=(Source.JOBS, Source.METRICS, Source.CHECKPOINTS),
    source='manage-hero-run, "What Can Go Wrong": wrong checkpoint selected, resume loss mismatch; '
    "allenai/open-instruct#1823, "
    "marin-community/marin#8868",
    thresholds=MismatchThresholds(),
    memory=Lineage(),
    judge=mismatch,
)
