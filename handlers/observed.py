"""What a check's readings change in the picture of a run: its state, its progress, its instances. Pure."""

from datetime import datetime
from typing import NamedTuple

from bot.model.drift import shape_of
from bot.model.job import Job, JobState
from bot.model.reading import Known, Reading, Unknown
from bot.model.record import Record
from bot.model.run import Instance, Progress, Run, RunState
from bot.model.snapshot import Checkpoint, Snapshot, newest_complete
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Judgement, UnknownVerdict
from handlers.context import Context

ARTIFACTS_MISSING = CheckId("artifacts.missing")

_PACE_WEIGHT = 0.5
"""How much the newest pace counts against the one before; smooths evals and saves out of the time left."""


class Seen(Value):
    """The picture after a check."""

    run: Run
    instances: tuple[Instance, ...]
    """New or changed ones."""
    is_first_sight: bool
    is_new_launch: bool
    """A launch appeared that Hero did not make."""


def observe(
    record: Record, seen: Snapshot, context: Context, shape: dict[str, str], judgements: tuple[Judgement, ...] = ()
) -> Seen:
    """Return the run as it is after a snapshot.

    Args:
        record: the run as it was.
        seen: what was read now.
        context: the run's contract and rules.
        shape: the contract's launch-shaping fields, scrubbed, to remember with a new instance.
        judgements: what the checks made of the snapshot; a success whose artifacts they miss is no completion.
    """
    instance, is_new = _instance(record, seen, context, shape)
    instance = _with_launched(instance, seen)
    progress = _progress(record.run.progress, seen, starts_anew=is_new and record.instance is not None)
    is_same_launch = not is_new and record.instance is not None
    end = _End(
        was=record.run.state if is_same_launch else RunState.UNKNOWN,
        lacks_artifacts=_lacks_artifacts(record, judgements),
        final_step=context.contract.ending_at(progress.final_step).final_step,
        progress=progress,
        saved=seen.checkpoints,
    )
    run = record.run.model_copy(
        update={
            "state": _state(record, seen, end),
            "progress": progress,
            "last_checked_at": seen.at,
            "gaps": _gaps(seen),
            "metrics_cursor": seen.metrics.value.cursor
            if isinstance(seen.metrics, Known)
            else record.run.metrics_cursor,
            "blocked_reason": "",
        }
    )
    changed = (instance,) if instance is not None and instance != record.instance else ()
    first = record.run.last_checked_at is None and instance is not None
    return Seen(run=run, instances=changed, is_first_sight=first, is_new_launch=is_new and not first)


def _instance(record: Record, seen: Snapshot, context: Context, shape: dict[str, str]) -> tuple[Instance | None, bool]:
    """Return the current instance after this snapshot, and whether it is a launch that was not known before."""
    before, job = record.instance, seen.job
    if job is None or is_launching(record):
        return before, False
    if before is not None and before.submitted_at is None and job.instance_id == before.replaces:
        return before, False  # the launch before is still shown under this name; of the new one nothing was seen yet
    if before is not None and before.job_id == job.job_id and before.submitted_at in {None, job.submitted_at}:
        known = before.model_copy(update={"submitted_at": job.submitted_at})
        if job.state.is_terminal:
            return _ended(known, job, seen.at), False
        # The orchestrator may have begun the same submission once more.
        return known.model_copy(update={"ended_at": None, "exit_code": None}), False
    found = Instance(
        run_id=record.run_id,
        number=before.number + 1 if before else 0,
        job_id=job.job_id,
        submitted_at=job.submitted_at,
        launched_at=job.submitted_at if before is None else seen.at,
        source_sha=context.contract.source_sha,
        config_digest=context.contract.config_digest,
        shape=shape,
    )
    return (_ended(found, job, seen.at) if job.state.is_terminal else found), True


def _with_launched(instance: Instance | None, seen: Snapshot) -> Instance | None:
    """Return the instance with what is remembered of the configuration that its trainer resolved."""
    is_its_own = instance is not None and seen.job is not None and seen.job.job_id == instance.job_id
    if instance is None or not is_its_own or isinstance(seen.config, Unknown):
        return instance
    return instance.model_copy(update={"launched": shape_of(seen.config.value)})


def _ended(instance: Instance, job: Job, at: datetime) -> Instance:
    if instance.ended_at is not None and instance.exit_code is not None:
        return instance
    codes = [t.exit_code for t in job.tasks.value if t.exit_code is not None] if isinstance(job.tasks, Known) else []
    worst = next((code for code in codes if code != 0), codes[0] if codes else None)
    return instance.model_copy(update={"ended_at": instance.ended_at or job.finished_at or at, "exit_code": worst})


def is_launching(record: Record) -> bool:
    """Whether a launch is being carried out; a stop, a clean-up and a seal leave the run what it is seen to be."""
    action = record.active_action
    return action is not None and action.plan.kind in {"relaunch", "rollback"}


class _End(NamedTuple):
    """What tells a completion from a success that is none."""

    was: RunState
    """Before this look, as far as it is of the same launch."""
    lacks_artifacts: bool
    final_step: int | None
    progress: Progress
    saved: Reading[tuple[Checkpoint, ...]]

    @property
    def state(self) -> RunState:
        """The state of a run whose job has succeeded."""
        if self.lacks_artifacts or not has_reached_end(self.progress, self.final_step):
            return RunState.ENDED_SHORT
        if self.was is RunState.COMPLETED or _is_last(self.progress.checkpoint_step, self.final_step):
            return RunState.COMPLETED
        if isinstance(self.saved, Known):
            return RunState.ENDED_SHORT
        # It trained to its end, and whether the final checkpoint is there could not be read.
        return self.was if self.was is RunState.ENDED_SHORT else RunState.UNKNOWN


def _lacks_artifacts(record: Record, judgements: tuple[Judgement, ...]) -> bool:
    """Return whether the check misses what the run was for; while it cannot tell, what it last found counts."""
    verdict = next((each.verdict for each in judgements if each.check == ARTIFACTS_MISSING), None)
    if verdict is None or isinstance(verdict, UnknownVerdict):
        return any(i.check == ARTIFACTS_MISSING and not i.is_resolved for i in record.incidents)
    return isinstance(verdict, Fail)


def _state(record: Record, seen: Snapshot, end: _End) -> RunState:
    """Return the run's state; one that could not be read stays what it was, and the gap is shown beside it."""
    if is_launching(record):
        return RunState.RELAUNCHING
    before = record.run.state
    match seen.jobs:
        case Unknown():
            # The contract was read and no action is under way, so neither of the two is true any more.
            return RunState.UNKNOWN if before in {RunState.BLOCKED, RunState.RELAUNCHING} else before
        case Known(value=()):
            was_alive = before in {RunState.RUNNING, RunState.PENDING, RunState.RELAUNCHING}
            if was_alive:
                return RunState.FAILED
            return RunState.UNKNOWN if before is RunState.BLOCKED else before
        case Known(value=jobs):
            return _state_of_job(jobs[0], end)


def _state_of_job(job: Job, end: _End) -> RunState:
    match job.state:
        case JobState.PENDING | JobState.BUILDING:
            return RunState.PENDING
        case JobState.RUNNING:
            return RunState.RUNNING
        case JobState.KILLED:
            return RunState.STOPPED
        case JobState.SUCCEEDED:
            return end.state
        case JobState.FAILED | JobState.WORKER_FAILED | JobState.UNSCHEDULABLE:
            return RunState.FAILED


def has_reached_end(progress: Progress, final_step: int | None) -> bool:
    """Whether the final step was seen, in the metrics or as a checkpoint; steps may be counted from 0 or from 1."""
    return _is_last(progress.step, final_step) or _is_last(progress.checkpoint_step, final_step)


def _is_last(step: int | None, final_step: int | None) -> bool:
    return step is not None and final_step is not None and step >= final_step - 1


def _progress(before: Progress, seen: Snapshot, *, starts_anew: bool) -> Progress:
    after = before.model_copy(update={"steps_per_s": None, "final_step": None}) if starts_anew else before
    if isinstance(seen.config, Known):
        after = after.model_copy(update={"final_step": seen.config.value.count("final_step")})
    if isinstance(seen.checkpoints, Known):
        after = after.model_copy(update=_saved(seen.checkpoints.value))
    if (held := _accelerators(seen)) is not None:
        after = after.model_copy(update={"accelerators": held})
    if isinstance(seen.metrics, Unknown) or not seen.metrics.value.rows:
        return after
    row = seen.metrics.value.rows[-1]
    at = row.at or seen.at
    figures = {key: values[-1] for key in ("loss", "tokens_per_second") if (values := _values(seen, key))}
    return after.model_copy(
        update={"step": row.step, "step_at": at, "steps_per_s": _pace(after, row.step, at), **figures}
    )


def _saved(checkpoints: tuple[Checkpoint, ...]) -> dict[str, object]:
    """What is there to go back to, and how far apart it was saved."""
    newest = newest_complete(checkpoints)
    steps = sorted({each.step for each in checkpoints if each.is_complete})
    return {
        "checkpoint_step": newest.step if newest else None,
        "checkpoint_at": newest.saved_at if newest else None,
        "save_every_steps": steps[-1] - steps[-2] if len(steps) > 1 else None,
    }


def _accelerators(seen: Snapshot) -> int | None:
    """How many accelerators the run's live jobs hold together; None when one of them does not say, or none lives.

    Of a job that has ended nothing new is to be learned: what it held is on record from when it lived. Only one that
    was never seen alive is asked, and of several such the largest, since the others were tried before or after it.
    """
    if isinstance(seen.jobs, Unknown) or not seen.jobs.value:
        return None
    live = [_held_by(job) for job in seen.jobs.value if not job.state.is_terminal]
    counts = live or [_held_by(job) for job in seen.jobs.value]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts) or not any(known):
        return None
    return sum(known) if live else max(known)


def _held_by(job: Job) -> int | None:
    tasks = job.expected_tasks or (len(job.tasks.value) if isinstance(job.tasks, Known) else None)
    if job.accelerators == 0 or job.accelerator == "":
        return 0
    return None if job.accelerators is None or not tasks else job.accelerators * tasks


def _values(seen: Snapshot, key: str) -> list[float]:
    rows = seen.metrics.value.rows if isinstance(seen.metrics, Known) else ()
    return [row.values[key] for row in rows if key in row.values]


def _pace(before: Progress, step: int, at: datetime) -> float | None:
    """Steps a second, smoothed; None until two looks have seen the step go forward."""
    if before.step is None or before.step_at is None or step <= before.step or at <= before.step_at:
        return None if before.step is not None and step < before.step else before.steps_per_s
    now = (step - before.step) / (at - before.step_at).total_seconds()
    return now if before.steps_per_s is None else _PACE_WEIGHT * now + (1 - _PACE_WEIGHT) * before.steps_per_s


def _gaps(seen: Snapshot) -> tuple[str, ...]:
    return tuple(f"{source}: {gap.reason} ({gap.detail})" for source, gap in seen.gaps())
