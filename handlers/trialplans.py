"""The plans of a trial in words, as ``handlers/plans.py`` has the others. Pure."""

from datetime import UTC, datetime, timedelta
from typing import assert_never

from bot.model.agreed_names import say_names
from bot.model.durations import say_duration
from bot.model.planned import RelaunchPlan, StopPlan
from bot.model.trialplan import CutOverPlan, GoPlan, PlannedFork, RollbackPlan, TrialPlan
from bot.render.words import say_command

type AnyTrialPlan = TrialPlan | CutOverPlan | GoPlan | RollbackPlan


def trial_question(plan: AnyTrialPlan) -> str:
    """What follows "may Hero"."""
    match plan:
        case TrialPlan():
            return f"prepare the trial of {plan.child_run_id}, as it stands below"
        case CutOverPlan():
            return f"cut over: stop {plan.stop.stop} and launch {plan.launch.run_id} in its place"
        case GoPlan():
            return f"accept {plan.child_run_id} (go)"
        case RollbackPlan():
            if plan.launch is None:
                return f"roll back: stop {plan.child_run_id}, and leave {plan.keeps} as it is"
            return f"roll back: launch {plan.run_id} again{_from(plan.launch)}"
        case _:
            assert_never(plan)


def trial_deed(plan: AnyTrialPlan) -> str:
    """Name what is done."""
    match plan:
        case TrialPlan():
            return "trial's preparation"
        case CutOverPlan():
            return "cut-over"
        case GoPlan():
            return "go"
        case RollbackPlan():
            return "rollback"
        case _:
            assert_never(plan)


def trial_first(plan: AnyTrialPlan) -> str:
    """Say what is changed first once the world was read anew."""
    match plan:
        case TrialPlan():
            return "prepare it, and change nothing: the cut-over is asked for by itself"
        case CutOverPlan():
            fork = f"fork {plan.fork.parent_id} in the tracker, then " if plan.fork else ""
            return f"{fork}stop {plan.stop.stop}, then launch {plan.launch.job_id}"
        case GoPlan():
            return "leave the child running and close the trial"
        case RollbackPlan():
            stop = f"stop {plan.stop.stop}" if plan.stop else ""
            launch = f"launch {plan.launch.job_id}" if plan.launch else ""
            return ", then ".join(each for each in (stop, launch) if each)
        case _:
            assert_never(plan)


def trial_lines(plan: AnyTrialPlan) -> tuple[str, ...]:
    """Every value of the plan as ``label: value``, but its digest."""
    match plan:
        case TrialPlan():
            return _agreed(plan)
        case CutOverPlan():
            return (
                *_not_clear(plan.launch),
                *_fork(plan.fork),
                f"handoff: {plan.handoff.path}",
                *_stop(plan.stop),
                *_launch("child", plan.launch),
                f"start-up limit: {_limit(plan)}",
                f"independent review: {plan.review}",
                f"agreed plan: {plan.trial[:12]}",
            )
        case GoPlan():
            return (
                f"child: {plan.child_run_id}, {plan.instance}",
                *plan.verdict,
                *(f"not covered: {gap}" for gap in plan.coverage_gaps),
                "changed by a yes: nothing; the child stays, and its failures are put to the DRI as any run's",
            )
        case RollbackPlan():
            stop = _stop(plan.stop) if plan.stop else ("stop first: nothing, no job of the child lives",)
            unseen = (f"NOT CLEAR, a yes accepts it: {plan.unseen}",) if plan.unseen else ()
            kept = (f"old run: {plan.keeps} lives already, by another hand; it is not launched",)
            return (
                *unseen,
                *(_not_clear(plan.launch) if plan.launch else ()),
                *stop,
                *(_launch("old run", plan.launch) if plan.launch else kept),
                "tracker: no fork; the old run goes on under its own id",
                f"agreed plan: {plan.trial[:12]}",
            )
        case _:
            assert_never(plan)


def _limit(plan: CutOverPlan) -> str:
    return f"{say_duration(timedelta(seconds=plan.startup_limit_s))} ({plan.startup_limit_source})"


def _agreed(plan: TrialPlan) -> tuple[str, ...]:
    kind = "hourly, by agreement" if plan.handoff_is_temporary else "permanent"
    quiet = ("gate: no crash, retry, watchdog or alert",) if plan.quiet else ()
    standing = (
        "rollback: at once when a gate fails, it hangs or retries; a yes to this is the yes to that"
        if plan.automatic_rollback
        else "rollback: put to the DRI when a gate fails, it hangs or retries"
    )
    return (
        f"handoff: {plan.handoff.path} (step {plan.handoff.step}, {kind}), protected until the trial is closed",
        f"child: {plan.child_run_id}, checkpoints in {plan.child_root}",
        *_fork(plan.fork),
        f"control: the old run's steps {plan.window_first} to {plan.window_last}",
        *(f"gate: {gate}" for gate in plan.gates),
        *_named(plan),
        *quiet,
        f"error rate: at most {plan.alpha:.0%} for all gates together",
        *(f"not covered: {gap}" for gap in plan.coverage_gaps),
        f"cut-over: {f'from {_time(plan.starts_at)}' if plan.starts_at else 'as soon as all is ready'}",
        f"rollback by: {_time(plan.rollback_by) if plan.rollback_by else 'not stated'}",
        standing,
        f"submission: {plan.submitter}",
    )


def _named(plan: TrialPlan) -> tuple[str, ...]:
    """Say under which names the two runs log the gated figures."""
    old, child = say_names(plan.control_names), say_names(plan.child_names)
    if not old and not child:
        return ()
    return (f"figures: {old}" if old == child else f"figures: {old}; of the child: {child}",)


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _fork(fork: PlannedFork | None) -> tuple[str, ...]:
    if fork is None:
        return ("tracker: none",)
    at = f"_step {fork.fork_step} (global_step {fork.global_step})"
    return (f"tracker: {fork.entity}/{fork.project}, {fork.child_id} forked off {fork.parent_id} at {at}",)


def _stop(stop: StopPlan) -> tuple[str, ...]:
    return (f"stop first: {stop.stop} ({stop.instance})",)


def _not_clear(launch: RelaunchPlan) -> tuple[str, ...]:
    return tuple(f"NOT CLEAR, a yes accepts it: {line}" for line in launch.accepts)


def _launch(who: str, launch: RelaunchPlan) -> tuple[str, ...]:
    resume = launch.resume_from
    return (
        f"{who}, command: {say_command(launch.command)}",
        f"{who}, environment added: {', '.join(launch.environment) or 'none'}",
        f"{who}, run in: {launch.directory}",
        f"{who}, job afterwards: {launch.job_id}",
        f"{who}, output root: {launch.output_root}",
        f"{who}, resumes from: {f'step {resume.step}, {resume.path}' if resume else 'the handoff checkpoint'}",
        f"{who}, source SHA: {launch.source_sha or 'not stated in the contract'}",
        *((f"{who}, checkout: {launch.code}",) if launch.code else ()),
    )


def _from(launch: RelaunchPlan) -> str:
    return f" from step {launch.resume_from.step}" if launch.resume_from else " from step 0"
