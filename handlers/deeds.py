"""An action that launches nothing moved: a stop, a clean-up, a seal. What people are told of it. Pure."""

from datetime import datetime

from bot.model.action import Action, ActionState, Done, Refused
from bot.model.planned import SealPlan
from bot.model.record import Record, Telling
from bot.model.run import Run
from bot.model.update import UpdateKind
from bot.model.verdict import Severity
from handlers import tellings
from handlers.context import Context
from handlers.plans import asks_again, deed_of

_DONE = {
    "stop": "the job is stopped; nothing is launched again before somebody asks for it",
    "cleanup": "the listed checkpoints are gone; nothing else was touched",
    "seal": "the run is sealed",
}


def deed_news(
    record: Record, before: Action | None, action: Action, context: Context, at: datetime
) -> tuple[Run | None, tuple[Telling, ...]]:
    """Return the run after this commit when people are told something, and what they are told."""
    was = before.state if before else None
    if action.state is not was and action.state is ActionState.DONE:
        telling = _done(record, action, context, at)
    elif action.state is not was and action.state in {ActionState.VOID, ActionState.FAILED}:
        telling = _not_done(record, action, context, at)
    elif before is not None and action.noted != before.noted and action.records == before.records:
        telling = _uncertain(record, action, context, at)
    else:
        return None, ()
    update: dict[str, object] = {"last_told_at": at}
    if isinstance(action.plan, SealPlan) and action.state is ActionState.DONE:
        update["seal"] = action.plan.tag
    return record.run.model_copy(update=update), (telling,)


def _done(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key="done",
        headline=_DONE[action.plan.kind],
        evidence=(*_said(action), f"approved by {action.grant.by}, plan {action.grant.digest[:12]}"),
        next_="nothing to do",
    )


def _not_done(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    asked = next((r for r in record.requests if r.number == action.grant.request), None)
    again = f"; {asks_again(asked)}" if asked else ""
    is_void = action.state is ActionState.VOID
    failed = next((r for r in action.records if isinstance(r.outcome, Refused)), None)
    deed = deed_of(action.plan, record, action)
    void = f"R{action.grant.request} was approved, but nothing was done: {action.noted}"
    stopped = f"the {deed} stopped at `{failed.step if failed else '?'}`: {action.noted}"
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key="void" if is_void else "failed",
        headline=void if is_void else stopped,
        severity=Severity.WARNING,
        evidence=() if is_void else _said(action),
        next_=f"Hero does nothing further{again}",
        asks_dri=True,
    )


def _uncertain(record: Record, action: Action, context: Context, at: datetime) -> Telling:
    return tellings.action_told(
        context,
        record,
        action,
        at,
        kind=UpdateKind.ACTION_PROGRESS,
        key=f"uncertain/{action.next_step}",
        headline=f"it is not known whether the step `{action.next_step}` happened",
        severity=Severity.WARNING,
        evidence=(action.noted,),
        next_="Hero asks until it knows, and does not do the step a second time on a guess",
    )


def _said(action: Action) -> tuple[str, ...]:
    return tuple(f"{r.step}: {r.outcome.detail}" for r in action.records if isinstance(r.outcome, Done))
