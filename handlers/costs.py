"""What a failure costs and a relaunch replays, in accelerator-hours; when it can still be decided in working hours.

Everything here is worked out from what is on record. What is not known is said to be, with why; nothing is guessed.
"""

from datetime import datetime, timedelta

from bot.model.durations import say_duration
from bot.model.plan import Request
from bot.model.record import Record
from bot.model.run import RunState
from bot.render.words import say_time
from checks.accelerator import wanted_of
from handlers.context import STANDS_STILL, Context

_DOWN = frozenset({RunState.FAILED, RunState.ENDED_SHORT})
_WORTH_SAYING = timedelta(minutes=1)
_FORESEEABLE = timedelta(days=3650)


def accelerators_of(record: Record, context: Context) -> int | None:
    """Return how many accelerators the run has: as its jobs ask for them, else as its contract counts them."""
    if (seen := record.run.progress.accelerators) is not None:
        return seen
    contract = context.contract
    wanted = wanted_of(contract.hardware)
    if len(wanted) != 1 or wanted[0].each is None or contract.hardware_tasks is None:
        return None
    return wanted[0].each * contract.hardware_tasks


def idle_line(record: Record, context: Context, at: datetime) -> str | None:
    """Say since when nothing is trained and what that costs; None for a run that trains, or stopped just now."""
    run = record.run
    if run.state in _DOWN:
        instance = record.instance
        if instance is None or instance.ended_at is None:
            return "idle: for how long is unknown, the end of the job was not seen"
        if at - instance.ended_at < _WORTH_SAYING:
            return None
        return f"idle: {_spent(at - instance.ended_at, accelerators_of(record, context))}, since the job ended"
    if run.state is RunState.RUNNING and _stands_still(record) and run.progress.step_at is not None:
        spent = _spent(at - run.progress.step_at, accelerators_of(record, context))
        return f"held without a new step: {spent}"
    return None


def downtime_line(record: Record, context: Context, at: datetime) -> str | None:
    """Say how long nothing was trained between the launch before and this one; None when that is not known."""
    ended_at = record.instances[-2].ended_at if len(record.instances) > 1 else None
    if ended_at is None or at - ended_at < _WORTH_SAYING:
        return None
    return f"idle: {_spent(at - ended_at, accelerators_of(record, context))}, until it trained again"


def replay_line(record: Record, context: Context, from_step: int | None) -> str | None:
    """Say what a launch from a checkpoint trains again; None while it is not known how far the run was.

    Args:
        record: the run.
        context: its contract.
        from_step: of the checkpoint; None when there is none.
    """
    step, pace = record.run.progress.step, record.run.progress.steps_per_s
    if step is None:
        return None
    if from_step is None:
        if any(gap.startswith("checkpoints:") for gap in record.run.gaps):
            return "to be trained again: unknown, the checkpoints could not be read"
        return f"to be trained again: all {step} steps, no complete checkpoint is known"
    if step < from_step:
        return None
    steps = step - from_step
    took = timedelta(seconds=steps / pace) if pace and steps / pace < _FORESEEABLE.total_seconds() else None
    if took is None:
        costs = "how long that takes is unknown, as the run's pace is" if steps else "nothing is lost"
    else:
        costs = f"about {_spent(took, accelerators_of(record, context))}" if steps else "nothing is lost"
    return f"steps to be trained again: {steps} (last seen step {step}); {costs}"


def next_save_line(record: Record, at: datetime) -> str | None:
    """Say when the next checkpoint is to be expected, by how the last ones came; None for a run that does not train."""
    progress = record.run.progress
    if record.run.state is not RunState.RUNNING or progress.step is None:
        return None
    if _stands_still(record):
        return "next save: none while no step is made"
    every, saved, pace = progress.save_every_steps, progress.checkpoint_step, progress.steps_per_s
    if not every or saved is None or not pace:
        return "next save: unknown, too few were seen to tell how far apart they are"
    due = saved + every * max(1, -(-(progress.step + 1 - saved) // every))
    seconds = (due - progress.step) / pace
    if not seconds < _FORESEEABLE.total_seconds():
        return f"next save: at step {due}, which at this pace is more than ten years away"
    left = timedelta(seconds=seconds) - (at - (progress.step_at or at))
    when = f"in about {say_duration(_rounded(left))}" if left > timedelta() else "due now"
    return f"next save: {when}, at step {due} (the last two were {every} steps apart)"


def decide_by_line(request: Request, context: Context, at: datetime) -> str | None:
    """Say the last moment of the DRI's working hours in which the request can still be decided; None without hours."""
    zone = context.rules.timezone
    person = next((each for each in context.people if each.name == request.dri), None)
    hours = person.hours(zone) if person else None
    if person is None or hours is None:
        return None
    last = hours.last_open(at, request.expires_at)
    if last is None:
        return f"working hours: {request.dri} has none before this expires"
    return f"working hours: {request.dri} can still decide in them until {say_time(last, person.timezone or zone)}"


def failure_costs(record: Record, context: Context, at: datetime) -> tuple[str, ...]:
    """Return what a failure costs: idle so far, and what a relaunch from the newest complete checkpoint replays."""
    lines = (idle_line(record, context, at), replay_line(record, context, record.run.progress.checkpoint_step))
    return tuple(line for line in lines if line is not None)


def running_costs(record: Record, context: Context, at: datetime) -> tuple[str, ...]:
    """Return what is at stake in a run that lives: what stands still, what a stop now loses, when it next saves."""
    replay = replay_line(record, context, record.run.progress.checkpoint_step)
    lines = (idle_line(record, context, at), replay, next_save_line(record, at))
    return tuple(line for line in lines if line is not None)


def _stands_still(record: Record) -> bool:
    return any(i.is_open and i.check.startswith(STANDS_STILL) for i in record.incidents)


def _spent(length: timedelta, accelerators: int | None) -> str:
    """``2 h 10 min, 555 accelerator-hours (256 accelerators)``."""
    length = max(length, timedelta())
    said = say_duration(_rounded(length))
    if accelerators is None:
        return f"{said}, accelerator-hours unknown"
    if accelerators == 0:
        return f"{said}, no accelerators"
    hours = length.total_seconds() / 3600 * accelerators
    counted = f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}"  # noqa: PLR2004 - two digits say enough
    return f"{said}, {counted} accelerator-hours ({accelerators} accelerators)"


def _rounded(length: timedelta) -> timedelta:
    """Whole minutes once there are many: nobody decides by seconds."""
    return length if length < timedelta(minutes=5) else timedelta(minutes=round(length.total_seconds() / 60))
