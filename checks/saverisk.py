"""What can go wrong again with permanent saves: one has failed, a retry got past it, and the next is still exposed.

Field report R26: metadata was renamed into place, a bucket policy refused the clean-up, and the run died at a permanent
save. The retry passed that step, so all looked well until the next one. The risk stays open until a later permanent
save is complete and clean.
"""

from datetime import timedelta
from itertools import pairwise

from pydantic import Field

from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.reading import Known, Unknown
from bot.model.snapshot import Checkpoint, Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import known_tasks, listed, unseen
from checks.failures import FAILED_JOBS
from checks.progress import Pace
from checks.retention import is_sound
from checks.thresholds import Thresholds

RISK_ID = CheckId("checkpoint.risk")

_FEWEST_PERMANENT = 2
"""Permanent checkpoints tell the interval of their saves."""


class RiskThresholds(Thresholds):
    near_steps: int = Field(default=2, ge=0)
    """A failure so near to a permanent save's step is one at it. Ours."""

    near_share: float = Field(default=0.01, ge=0, lt=0.5)
    """Or within this share of the interval of permanent saves: few rows are logged. Ours."""


class Exposed(Value):
    """A permanent save that failed."""

    step: int
    """The step at which it was due."""
    reason: str


class SaveRisk(Value):
    """Where the run was, and which permanent save failed."""

    pace: Pace = Pace()
    seconds_a_step: float | None = None
    """By the two newest looks that saw it advance."""
    attempts: dict[str, int] = {}
    """Of each listed job instance: the highest number of an attempt."""
    failed_job: str = ""
    """The instance whose end was taken in."""
    exposed: Exposed | None = None

    def after(self, seen: Snapshot) -> "SaveRisk":
        """Return the memory with the snapshot's rows and jobs taken in."""
        pace = self.pace.after(seen)
        seconds = self.seconds_a_step
        older = self.pace
        if (
            older.step is not None
            and older.moved_at is not None
            and pace.step is not None
            and pace.moved_at is not None
        ):
            steps, elapsed_s = pace.step - older.step, (pace.moved_at - older.moved_at).total_seconds()
            seconds = elapsed_s / steps if steps > 0 and elapsed_s > 0 else seconds
        job = seen.job
        ended = job.instance_id if job is not None and job.state in FAILED_JOBS else self.failed_job
        attempts = _attempts(seen) or self.attempts
        return self.model_copy(
            update={"pace": pace, "seconds_a_step": seconds, "attempts": attempts, "failed_job": ended}
        )

    def failed_at(self, seen: Snapshot) -> int | None:
        """Return the last step before a failure that this snapshot is the first to show; None when there is none."""
        now = _attempts(seen)
        job = seen.job
        has_ended = job is not None and job.state in FAILED_JOBS and job.instance_id != self.failed_job
        if not has_ended and not any(number > self.attempts.get(name, number) for name, number in now.items()):
            return None
        step = self.pace.step
        for row in seen.metrics.value.rows if isinstance(seen.metrics, Known) else ():
            if step is not None and row.step < step:
                break  # from here on it is the retry
            step = row.step
        return step


def risk(seen: Snapshot, contract: Contract, limits: RiskThresholds, memory: SaveRisk) -> tuple[Verdict, SaveRisk]:
    """Fail from a failure at a permanent save, or one that left something behind, until a later one is clean."""
    if isinstance(seen.checkpoints, Unknown):
        return unseen(seen.checkpoints, "whether permanent saves are clean is not known"), memory
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the run failed at a save is not known"), memory
    permanent = [each for each in seen.checkpoints.value if each.is_complete and not each.is_temporary]
    exposed = memory.exposed
    for each in permanent:
        if each.fault and (exposed is None or each.step > exposed.step):
            exposed = Exposed(step=each.step, reason=f"{each.path}: {each.fault}")
    at = memory.failed_at(seen)
    if at is not None and (due := _save_near(at, permanent, contract, limits)) is not None:
        exposed = Exposed(step=due, reason=f"the run failed at step {at}, and a permanent save was due at step {due}")
    # One that is not clean has just moved the risk to itself, so that what lies beyond is clean.
    if exposed is not None and any(each.step > exposed.step for each in permanent):
        exposed = None
    memory = memory.after(seen).model_copy(update={"exposed": exposed})
    if exposed is not None:
        return Fail(finding=_finding(exposed, permanent, contract, memory, seen)), memory
    if isinstance(seen.metrics, Unknown):
        return unseen(seen.metrics, "at which step the run is, is not known"), memory
    if not permanent:
        return NotApplicable(reason="there is no permanent checkpoint"), memory
    return Pass(), memory


def _attempts(seen: Snapshot) -> dict[str, int]:
    """Return the highest number of an attempt of each listed job; of one whose tasks were not read, nothing."""
    found: dict[str, int] = {}
    for job, task in known_tasks(listed(seen)):
        for each in task.attempts:
            found[job.instance_id] = max(found.get(job.instance_id, 0), each.attempt)
    return found


def _save_near(at: int, permanent: list[Checkpoint], contract: Contract, limits: RiskThresholds) -> int | None:
    """Return the step of a permanent save that was due where the run failed and did not become sound."""
    interval = _interval(permanent)
    near = max(limits.near_steps, round(limits.near_share * interval) if interval else 0)
    due = set(contract.retention.milestones) | ({round(at / interval) * interval} if interval else set())
    sound = {each.step for each in permanent if is_sound(each)}
    return next(
        (step for step in sorted(due) if step > 0 and abs(step - at) <= near and not {step, step - 1} & sound), None
    )


def _interval(permanent: list[Checkpoint]) -> int | None:
    """Return after how many steps the run saves for good; None when that is not known yet."""
    steps = sorted({each.step for each in permanent if each.step > 0})
    gaps = [late - early for early, late in pairwise(steps)]
    return min(gaps) if len(steps) >= _FEWEST_PERMANENT else None


def _next_save(exposed: Exposed, permanent: list[Checkpoint], contract: Contract, step: int) -> int | None:
    interval = _interval(permanent)
    after = [each for each in contract.retention.milestones if each > step]
    if interval:
        after.append((max(step, exposed.step) // interval + 1) * interval)
    return min(after, default=None)


def _finding(
    exposed: Exposed, permanent: list[Checkpoint], contract: Contract, memory: SaveRisk, seen: Snapshot
) -> Finding:
    step = memory.pace.step if memory.pace.step is not None else exposed.step
    coming = _next_save(exposed, permanent, contract, step)
    when = ""
    if coming is not None and memory.seconds_a_step is not None and memory.pace.moved_at is not None:
        at = memory.pace.moved_at + timedelta(seconds=memory.seconds_a_step * (coming - step))
        when = f", expected at {at:%Y-%m-%d %H:%M} UTC" + (f", in {say_duration(at - seen.at)}" if at > seen.at else "")
    return Finding(
        check=RISK_ID,
        key=f"{exposed.step}",
        severity=Severity.WARNING,
        summary=f"permanent saves are at risk since step {exposed.step}; the next one is "
        + ("at a step that is not known yet" if coming is None else f"at step {coming}{when}"),
        evidence=(exposed.reason, *(f"{each.path}: {each.fault}" for each in permanent[-3:] if each.fault)),
        advice="A retry that got past the save proves nothing for the next one. Before it is due, look why it failed: "
        "bucket policy, rename or delete rights, quota; it closes when a later permanent save is complete and clean.",
        since_step=exposed.step,
    )


RISK = Check(
    id=RISK_ID,
    title="A permanent save has failed, and the next one is exposed",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.METRICS, Source.CHECKPOINTS),
    source='marin-community/marin#8506; manage-hero-run, "What Can Go Wrong": checkpoint not advancing',
    thresholds=RiskThresholds(),
    memory=SaveRisk(),
    judge=risk,
)
