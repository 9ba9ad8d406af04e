"""What can go wrong between a run and its tracker: another identity, a lost link, a state that is not the run's.

The tracker is one witness. Its "crashed" is a guess from missing heartbeats and its "running" may be weeks old (field
report R18), so nothing here is ever more than a warning, and nothing proposes a relaunch.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract, TrackerContract
from bot.model.durations import Duration, say_duration
from bot.model.job import Job, JobState
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Patience, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.current import life_began, unseen
from checks.thresholds import NoMemory, Thresholds

IDENTITY_ID = CheckId("tracker.identity")
_UNTRACKED = frozenset({"disabled", "offline", "dryrun"})


class IdentityThresholds(Thresholds):
    appear: Duration = timedelta(minutes=30)
    """How long a job may run before the tracker has to have its run. Ours: compiling may come before the first word."""
    heartbeat: Duration = timedelta(minutes=10)
    """From this age of the last heartbeat on a run that "runs" is not heard of any more. The SDK posts every 30 s while
    it lives; several minutes are normal when the network is slow."""
    settle: Duration = timedelta(minutes=15)
    """How long after a start or an end of the job the tracker may still tell of the time before."""
    clock_ahead: Duration = timedelta(minutes=10)
    """How far a row may be dated in the future before the trainer's clock counts as wrong."""
    steps_apart: int = Field(default=1000, ge=1)
    """How many steps the tracker and another source may be apart, when both are fresh."""


class StepSeen(Value):
    """The newest step of the current instance by a source other than the tracker: a log, a file, telemetry."""

    step: int
    at: AwareDatetime


class Mismatch(Value):
    """One thing that is not as it should be."""

    kind: str
    severity: Severity
    text: str
    advice: str


def judge_identity(
    reading: Reading[TrackerState],
    contract: Contract,
    at: datetime,
    *,
    jobs: Reading[tuple[Job, ...]],
    step: StepSeen | None = None,
    began: datetime | None = None,
    recorded_url: str = "",
    limits: IdentityThresholds | None = None,
) -> Verdict:
    """Compare what the tracker says with the contract, the scheduler and the other sources.

    Args:
        reading: of the tracker.
        contract: of the run.
        at: now.
        jobs: what the scheduler says; without it states are not judged.
        step: how far the run is by another source; None when no other source tells.
        began: when the newest attempt began; None for the job's own start.
        recorded_url: the run's address as it was last told or written down; empty when it was not.
        limits: the thresholds.
    """
    limits = limits or IdentityThresholds()
    tracker = contract.tracker
    if tracker.mode in _UNTRACKED:
        return NotApplicable(reason=f"the tracker's mode is {tracker.mode}")
    if isinstance(reading, Unknown):
        return unseen(reading, "the tracker cannot be read")
    state = reading.value
    if state.state is TrackerRunState.MISSING:
        return _judge_missing(tracker, at, jobs, limits)
    found = [*_drift(state, tracker, recorded_url), *_link(state, at, jobs, step, limits)]
    found += _clock(state, at, limits)
    started_at = jobs.value[0].started_at if isinstance(jobs, Known) and jobs.value else None
    found += _steps(state, began or started_at, step, limits)
    if found:
        return Fail(finding=_finding(state, found))
    if isinstance(jobs, Unknown) and not _is_heard(state, at, limits):
        detail = f"the tracker says {state.state} with an old heartbeat, and whether the job lives is not known"
        return UnknownVerdict(reason=jobs.reason, detail=f"{detail}: {jobs.detail}")
    return Pass()


def counts_as_dead(
    state: TrackerState, at: datetime, jobs: Reading[tuple[Job, ...]], limits: IdentityThresholds
) -> bool:
    """Whether a run that the tracker shows as running is dead: no heartbeat, and the scheduler has no live job of it.

    One of the two alone is not enough (field report R18).
    """
    return (
        not state.state.is_terminal
        and state.state is not TrackerRunState.PENDING
        and not _is_heard(state, at, limits)
        and isinstance(jobs, Known)
        and all(job.state.is_terminal for job in jobs.value)
    )


def silent_until(state: TrackerState, started_at: datetime | None, step: StepSeen | None) -> int | None:
    """Return the trainer's step up to which the tracker shows nothing, while steps are replayed; else None.

    After a restart from an earlier checkpoint the tracker drops every row at or below its highest step, so its curves
    stand still although the run advances (field report R22).

    Args:
        state: what the tracker says.
        started_at: when the current attempt began.
        step: how far it is by another source.
    """
    is_old = started_at is not None and state.last_row_at is not None and state.last_row_at < started_at
    if not is_old or step is None or state.trainer_step is None or step.step > state.trainer_step:
        return None
    return state.trainer_step


def _judge_missing(
    tracker: TrackerContract, at: datetime, jobs: Reading[tuple[Job, ...]], limits: IdentityThresholds
) -> Verdict:
    name = tracker.id or tracker.name or "this run"
    match jobs:
        case Unknown() as gap:
            return unseen(gap, f"the tracker has no run {name}, and whether the job runs is not known")
        case Known(value=(job, *_)) if job.state is JobState.RUNNING and job.started_at is not None:
            age = at - job.started_at
        case _:
            return NotApplicable(reason=f"the tracker has no run {name}, and no job runs")
    if age <= limits.appear:
        return NotApplicable(reason=f"the tracker has no run {name} yet; the job started {say_duration(age)} ago")
    finding = Finding(
        check=IDENTITY_ID,
        key="missing",
        severity=Severity.WARNING,
        summary=f"The tracker has no run {name}, {say_duration(age)} after the job started "
        f"(limit {say_duration(limits.appear)})",
        evidence=(
            f"looked for in {tracker.entity or 'the default entity'}/{tracker.project or 'the default project'}",
        ),
        advice="Look in the job's log under which entity, project and id it logs, and whether the key may see those. "
        "This says nothing about the run's health.",
    )
    return Fail(finding=finding)


def _drift(state: TrackerState, tracker: TrackerContract, recorded_url: str) -> Iterator[Mismatch]:
    advice = "Mend the contract if the change was meant; else ask the DRI which run is the right one."
    for field, promised in (
        ("id", tracker.id),
        ("project", tracker.project),
        ("entity", tracker.entity),
        ("name", tracker.name),
    ):
        shown = getattr(state, field)
        if promised and shown != promised:
            text = f"the tracker's {field} is {shown!r}, the contract says {promised!r}"
            yield Mismatch(kind=field, severity=Severity.WARNING, text=text, advice=advice)
    if tracker.resume == "never":
        yield Mismatch(
            kind="resume",
            severity=Severity.WARNING,
            text=f'the contract says resume = "never" and run {state.id} exists, so a relaunch under its id is refused',
            advice='Set resume to "must" or "allow" before anybody relaunches, in the command and in the contract.',
        )
    if recorded_url and state.url and recorded_url.rstrip("/") != state.url.rstrip("/"):
        yield Mismatch(
            kind="url",
            severity=Severity.INFO,
            text=f"the address on record is stale: {recorded_url}; the tracker's is {state.url}",
            advice="Replace it in the state files and in the thread's head.",
        )
    if state.namesakes:
        others = ", ".join(state.namesakes)
        yield Mismatch(
            kind="namesakes",
            severity=Severity.INFO if tracker.id else Severity.WARNING,
            text=f"the name {state.name!r} is not this run's alone: {others} {_have(len(state.namesakes))} it too",
            advice="Name runs by their ids, and give the others another name.",
        )


def _link(
    state: TrackerState,
    at: datetime,
    jobs: Reading[tuple[Job, ...]],
    step: StepSeen | None,
    limits: IdentityThresholds,
) -> Iterator[Mismatch]:
    """Compare the tracker's state with the scheduler's; neither is believed alone."""
    if isinstance(jobs, Unknown):
        return
    if counts_as_dead(state, at, jobs, limits):
        yield Mismatch(
            kind="dead",
            severity=Severity.INFO,
            text=f"the tracker still says {state.state}, {_heard(state, at)}, and no job lives: the run counts as dead",
            advice="Nothing to do for the run; the tracker corrects itself, or does not.",
        )
        return
    job = next((each for each in jobs.value if each.state is JobState.RUNNING), None)
    if job is None or job.started_at is None or at - job.started_at <= limits.settle:
        return
    if state.state.is_terminal and (state.heartbeat_at is None or at - state.heartbeat_at > limits.settle):
        what = f"the tracker says {state.state} while the scheduler shows {job.job_id} running"
    elif state.state is TrackerRunState.RUNNING and not _is_heard(state, at, limits):
        what = f"the tracker has not heard of the run while the scheduler shows {job.job_id} running"
    else:
        return
    moved = "" if step is None or at - step.at > limits.settle else f", and step {step.step} was seen elsewhere"
    yield Mismatch(
        kind="link",
        severity=Severity.WARNING,
        text=f"tracker link lost: {what}{moved} ({_heard(state, at)})",
        advice="Do not relaunch for this. Watch the run by its log and its checkpoints, and look at the network from "
        "its hosts to the tracker.",
    )


def _clock(state: TrackerState, at: datetime, limits: IdentityThresholds) -> Iterator[Mismatch]:
    if state.last_row_at is not None and state.last_row_at - at > limits.clock_ahead:
        ahead = say_duration(state.last_row_at - at)
        yield Mismatch(
            kind="timestamp",
            severity=Severity.INFO,
            text=f"the newest row is dated {ahead} ahead of now: the trainer's clock is wrong",
            advice="Do not trust times in the tracker's curves; look at the host's clock.",
        )


def _steps(
    state: TrackerState, started_at: datetime | None, step: StepSeen | None, limits: IdentityThresholds
) -> Iterator[Mismatch]:
    if step is None or state.trainer_step is None or state.last_row_at is None:
        return
    until = silent_until(state, started_at, step)
    if until is not None:
        yield Mismatch(
            kind="replaying",
            severity=Severity.INFO,
            text=f"replaying from an earlier checkpoint: step {step.step} elsewhere, tracker silent until step {until}",
            advice="Wait; its curves move again once the run has passed that step.",
        )
        return
    apart = step.step - state.trainer_step
    is_fresh = abs(step.at - state.last_row_at) <= limits.settle
    if not is_fresh or abs(apart) <= limits.steps_apart:
        return
    where = "behind" if apart > 0 else "ahead of"
    yield Mismatch(
        kind="global_step",
        severity=Severity.WARNING,
        text=f"the tracker is at step {state.trainer_step}, {abs(apart)} {where} step {step.step} of another source "
        f"(limit {limits.steps_apart})",
        advice="Look whether another process logs to the same run, and which of the two steps the contract names.",
    )


def _finding(state: TrackerState, found: list[Mismatch]) -> Finding:
    worst = max(found, key=lambda each: each.severity.rank)
    rest = tuple(each.text for each in found if each is not worst)
    return Finding(
        check=IDENTITY_ID,
        key=worst.kind,
        severity=worst.severity,
        summary=worst.text[0].upper() + worst.text[1:],
        evidence=(*rest, *((f"tracker: {state.url}",) if state.url else ())),
        advice=worst.advice,
    )


def _is_heard(state: TrackerState, at: datetime, limits: IdentityThresholds) -> bool:
    return state.state.is_terminal or (state.heartbeat_at is not None and at - state.heartbeat_at <= limits.heartbeat)


def _heard(state: TrackerState, at: datetime) -> str:
    if state.heartbeat_at is None:
        return "no heartbeat ever"
    return f"last heartbeat {say_duration(max(timedelta(), at - state.heartbeat_at))} ago"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def identity(
    seen: Snapshot, contract: Contract, limits: IdentityThresholds, memory: NoMemory
) -> tuple[Verdict, NoMemory]:
    """Fail when the tracker's run is not the one that the contract names, or the link to it is lost."""
    if isinstance(seen.tracker, Unknown) and seen.tracker.reason is Gap.NOT_CONFIGURED:
        return NotApplicable(reason=f"no tracker is read: {seen.tracker.detail}"), memory
    verdict = judge_identity(
        seen.tracker,
        contract,
        seen.at,
        jobs=seen.jobs,
        step=_step_elsewhere(seen),
        began=life_began(seen),
        limits=limits,
    )
    return verdict, memory


def _step_elsewhere(seen: Snapshot) -> StepSeen | None:
    """Return the trainer's step by its figures; by its telemetry where they, being the tracker's, may stand still."""
    if isinstance(seen.metrics, Known) and seen.metrics.value.rows:
        last = seen.metrics.value.rows[-1]
        return StepSeen(step=last.step, at=last.at or seen.metrics.at)
    if isinstance(seen.telemetry, Known):
        said = seen.telemetry.value
        if said.last_step is not None and said.progress_at is not None and said.is_of_current_execution:
            return StepSeen(step=said.last_step, at=said.progress_at)
    return None


IDENTITY = Check(
    id=IDENTITY_ID,
    title="The tracker shows another run, or has lost this one",
    severity=Severity.WARNING,
    needs=(Source.TRACKER, Source.JOBS, Source.METRICS, Source.TELEMETRY),
    source='manage-hero-run, "What Can Go Wrong": W&B identity drift; wandb/wandb#3405, #1526',
    thresholds=IdentityThresholds(),
    memory=NoMemory(),
    judge=identity,
    patience=Patience(fails=2, of=3, passes=2),
)
