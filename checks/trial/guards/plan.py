"""What has to be agreed before a trial: its handoff, its window, its schedule, and what it cannot show."""

from collections.abc import Iterator

from bot.model.addresses import step_in
from bot.model.hours import WorkingHours
from bot.model.rehearsal import Rehearsal
from bot.model.trial import WINDOW_STEPS
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, all_of, fails

_WORKING_HOURS = "08:00-18:00"
"""Within which a rollback has to be possible where the DRI states no hours of their own. Ours."""


def _handoff(rehearsal: Rehearsal) -> Word:
    handoff = rehearsal.plan.handoff
    kind = "hourly, by agreement" if rehearsal.plan.handoff_is_temporary else "permanent"
    return all_of(f"step {handoff.step}, {kind}: {handoff.path}", _against_handoff(rehearsal))


def _against_handoff(rehearsal: Rehearsal) -> Iterator[Word]:
    plan, stated = rehearsal.plan, rehearsal.contract.trial
    if stated.handoff_step is not None and stated.handoff_step != plan.handoff.step:
        yield fails(
            f"[trial] handoff_step is {stated.handoff_step}, the agreed handoff is step {plan.handoff.step}",
            "agree on the plan anew, or correct [trial] handoff_step",
        )
    if plan.handoff_is_temporary and not stated.handoff_hourly:
        yield fails(
            "the handoff is an hourly checkpoint, which nobody agreed to",
            "set [trial] handoff_hourly = true, or take the newest permanent one",
        )
    if step_in(plan.handoff.path) != plan.handoff.step:
        yield fails(f"{plan.handoff.path} is no step-{plan.handoff.step}", "agree on the plan anew")


def _window(rehearsal: Rehearsal) -> Word:
    plan = rehearsal.plan
    usual = "" if plan.window_steps >= WINDOW_STEPS else f", fewer than the usual {WINDOW_STEPS}"
    return all_of(
        f"{plan.window_steps} steps of the old run, {plan.window_first} to {plan.window_last}{usual}",
        _against_window(rehearsal),
    )


def _against_window(rehearsal: Rehearsal) -> Iterator[Word]:
    plan, contract = rehearsal.plan, rehearsal.contract
    if plan.window_steps != contract.trial.window_steps:
        yield fails(
            f"[trial] window_steps is {contract.trial.window_steps}, {plan.window_steps} were agreed",
            "agree on the plan anew, or correct [trial] window_steps",
        )
    if plan.first_step != contract.trial.first_step:
        yield fails(
            f"[trial] first_step is {contract.trial.first_step}, {plan.first_step} was agreed",
            "agree on the plan anew, or correct [trial] first_step",
        )
    if plan.window_first - plan.handoff.step not in {0, 1}:
        yield fails(
            f"the window would begin at step {plan.window_first}, and the handoff is step {plan.handoff.step}",
            f"set [trial] first_step to {plan.handoff.step} or {plan.handoff.step + 1}, the first step the child logs",
        )
    if contract.final_step is not None and plan.window_last >= contract.final_step:
        yield fails(
            f"the old run ends at step {contract.final_step}, before it has logged the whole window",
            "take an earlier handoff checkpoint, or a shorter window",
        )


def _gaps(rehearsal: Rehearsal) -> Word:
    gaps = rehearsal.plan.coverage_gaps
    if any(gap.strip() for gap in gaps):
        return all_of(f"written down: {'; '.join(gaps)}", ())
    return fails(
        "nothing is written down of what the trial cannot show",
        "name in [trial] coverage_gaps what falls outside it: evaluations, the child's own save and resume, retries",
    )


def _schedule(rehearsal: Rehearsal) -> Word:
    plan = rehearsal.plan
    hours = _hours(rehearsal)
    when = f"{plan.rollback_by:%Y-%m-%d %H:%M %Z}" if plan.rollback_by else "no time"
    note = "" if hours else f"; whether {rehearsal.contract.dri} works then is not known, no zone of theirs is"
    return all_of(f"{plan.submitter} submits, rollback by {when}{note}", _against_schedule(rehearsal, hours))


def _hours(rehearsal: Rehearsal) -> WorkingHours | None:
    if rehearsal.dri_hours is not None or rehearsal.dri_zone is None:
        return rehearsal.dri_hours
    return WorkingHours(hours=_WORKING_HOURS, timezone=rehearsal.dri_zone)


def _against_schedule(rehearsal: Rehearsal, hours: WorkingHours | None) -> Iterator[Word]:
    plan = rehearsal.plan
    if plan.submitter not in rehearsal.people:
        yield fails(f"{plan.submitter}, who owns the submission, is nobody of [people]", "correct [trial] submitter")
    fix = "name a time in [trial] rollback_by that leaves room for a rollback within working hours"
    if plan.rollback_by is None:
        yield fails("until when a rollback is possible is not agreed", fix)
        return
    if plan.starts_at is not None and plan.rollback_by <= plan.starts_at:
        yield fails("the rollback's deadline is before the cut-over", fix)
    if plan.rollback_by <= rehearsal.at:
        yield fails("the rollback's deadline has passed", fix)
        return
    begins = max(plan.starts_at or rehearsal.at, rehearsal.at)
    if (
        hours is not None
        and plan.rollback_by > begins
        and hours.last_open(begins, plan.rollback_by) != plan.rollback_by
    ):
        yield fails(
            f"{plan.rollback_by:%Y-%m-%d %H:%M %Z} is outside {rehearsal.contract.dri}'s working hours, "
            f"{hours.hours} on {', '.join(hours.days)} in {hours.timezone}",
            fix,
        )


HANDOFF = Guard(
    id=CheckId("plan.handoff"),
    title="One checkpoint step-N is agreed on, permanent unless an hourly one was agreed",
    source='deploy checklist, "Agree the plan": a complete handoff checkpoint; hourly if agreed, otherwise permanent',
    group=Group.PLAN,
    rule=_handoff,
)
WINDOW = Guard(
    id=CheckId("plan.window"),
    title="The matched control window is agreed, and the old run lives to log it",
    source='deploy checklist, "Agree the plan": a matched control window, 200 steps by default',
    group=Group.PLAN,
    rule=_window,
)
GAPS = Guard(
    id=CheckId("plan.gaps"),
    title="What the trial cannot show is written down",
    source='deploy checklist, "Agree the plan": coverage gaps',
    group=Group.PLAN,
    rule=_gaps,
)
SCHEDULE = Guard(
    id=CheckId("plan.schedule"),
    title="Somebody known owns the submission, and a rollback stays possible within working hours",
    source='deploy checklist, "Agree the plan": a schedule that leaves time for rollback, a submission owner',
    group=Group.PLAN,
    rule=_schedule,
)
