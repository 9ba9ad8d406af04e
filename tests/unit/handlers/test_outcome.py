"""What becomes of a run while an action is carried out, and what people hear of it."""

from datetime import timedelta
from typing import Any

from bot.model.action import STEPS, Action, ActionState, Done, Refused, StepName, StepOutcome
from bot.model.plan import Grant, RequestState
from bot.model.record import Decision, Record
from bot.model.run import RunState
from bot.model.update import Update, UpdateKind
from bot.model.value import JobId
from bot.model.verdict import Severity
from handlers.outcome import decide_outcome
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import AT, RUN
from tests.unit.handlers.scene import ADA, context, kinds, record, request

NEW = JobId("/me/hero-coord")
NEW_INSTANCE = f"{NEW}@2026-11-29T04:10:00+00:00"
PLAN = a_plan(RUN)
DETAILS = {
    StepName.SUBMIT: str(NEW),
    StepName.CONFIRM: f"exactly one live job: {NEW_INSTANCE}",
    StepName.RESTORE: "loaded step-200",
}


def an_action(upto: StepName | None = None, **fields: Any) -> Action:
    """Return a granted action of which every step up to that one is done."""
    plan = fields.pop("plan", PLAN)
    grant = Grant(request=7, run_id=RUN, digest=plan.digest, by=ADA, at=AT, expires_at=AT + timedelta(hours=1))
    action = Action(number=2, run_id=RUN, plan=plan, grant=grant, **fields)
    for step in STEPS["relaunch"]:
        if upto is None:
            break
        action = ended(action, step, Done(detail=DETAILS.get(step, "done")))
        if step is upto:
            break
    return action


def ended(action: Action, step: StepName, outcome: StepOutcome) -> Action:
    return action.begun(step, AT).ended(step, outcome, AT)


def on_record(action: Action, **fields: Any) -> Record:
    granted = request(state=RequestState.GRANTED, plan=action.plan)
    return record(granted, **{"actions": (action,)} | fields)


def moves(before: Action, now: Action, known: Record | None = None) -> Decision:
    return decide_outcome(known or on_record(before), now, context(), AT + timedelta(minutes=10), shape={"lr": "1e-4"})


def the_news(decision: Decision) -> Update:
    (telling,) = decision.tell
    return telling.update


def test_an_intent_is_kept_and_noted_but_is_no_news() -> None:
    before = an_action()

    decision = moves(before, before.begun(StepName.VERIFY, AT))

    assert decision.tell == ()
    assert decision.run is None
    assert [entry.detail for entry in decision.audit] == ["action 2 verify: intent"]


def test_a_submission_makes_the_new_instance_and_is_told() -> None:
    before = an_action(StepName.STOP).begun(StepName.SUBMIT, AT)
    now = before.ended(StepName.SUBMIT, Done(detail=str(NEW)), AT)

    decision = moves(before, now)

    (made,) = decision.instances
    assert (made.number, made.job_id, made.submitted_at) == (1, NEW, None)
    assert made.shape == {"lr": "1e-4"}
    assert kinds(decision) == [UpdateKind.LAUNCHED]
    assert decision.run is not None
    assert decision.run.state is RunState.RELAUNCHING


def test_the_confirmation_dates_the_new_instance() -> None:
    before = an_action(StepName.SUBMIT).begun(StepName.CONFIRM, AT)
    now = before.ended(StepName.CONFIRM, Done(detail=DETAILS[StepName.CONFIRM]), AT)

    (dated,) = moves(before, now).instances

    assert dated.submitted_at == AT + timedelta(minutes=10)


def test_the_end_of_all_steps_is_a_relaunch_told_with_its_proofs() -> None:
    before = an_action(StepName.STABILISE).begun(StepName.RESTORE, AT)
    now = before.ended(StepName.RESTORE, Done(detail="loaded step-200"), AT)
    now = now.model_copy(update={"state": ActionState.DONE})
    instances = (*record().instances, record().instances[0].model_copy(update={"number": 1}))

    decision = moves(before, now, on_record(before, instances=instances))

    update = the_news(decision)
    assert update.kind is UpdateKind.RELAUNCHED
    assert update.headline == "relaunched from step 0 and training again"
    assert f"exactly one live job: {NEW_INSTANCE}" in update.evidence
    assert "restore: loaded step-200" in update.evidence
    assert update.next == "Hero watches it as before"
    assert decision.run is not None
    assert decision.run.state is RunState.RUNNING


def test_a_job_that_is_over_by_then_is_not_said_to_train() -> None:
    before = an_action(StepName.CONFIRM)
    before = ended(before, StepName.STABILISE, Done(detail="it has already succeeded", has_succeeded=True))
    now = ended(before, StepName.RESTORE, Done(detail="loaded step-200", has_succeeded=True, step=10_000))
    now = now.model_copy(update={"state": ActionState.DONE})

    instances = (*record().instances, record().instances[0].model_copy(update={"number": 1}))
    decision = moves(before.begun(StepName.RESTORE, AT), now, on_record(before, instances=instances))

    update = the_news(decision)
    assert update.headline == "relaunched from step 0, and its job has already succeeded"
    assert update.next == "the next check looks whether the run is complete"
    assert update.standing is not None
    assert update.standing.step == 10_000, "what was seen while it was launched"
    assert decision.run is not None
    assert decision.run.state is RunState.UNKNOWN
    assert decision.run.progress.step != 10_000, "of which the next check takes note itself"


def test_a_first_launch_is_not_called_a_relaunch() -> None:
    before = an_action(StepName.STABILISE).begun(StepName.RESTORE, AT)
    now = before.ended(StepName.RESTORE, Done(detail="training"), AT).model_copy(update={"state": ActionState.DONE})

    update = the_news(moves(before, now))

    assert update.kind is UpdateKind.LAUNCHED
    assert update.headline == "launched from step 0 and training"


def test_a_plan_that_no_longer_holds_voids_the_request_and_is_asked_afresh() -> None:
    before = an_action().begun(StepName.VERIFY, AT)
    why = "what would be done has changed since it was asked: resume_from: step 200 → step 300"
    now = before.ended(StepName.VERIFY, Refused(detail=why), AT)
    now = now.model_copy(update={"state": ActionState.VOID, "noted": why})

    decision = moves(before, now)

    assert [r.state for r in decision.requests] == [RequestState.VOID]
    update = the_news(decision)
    assert update.headline == "R7 was approved, but nothing was done"
    assert why in update.evidence
    assert update.asked == ADA
    assert decision.run is not None
    assert decision.run.relaunch_wanted_by == "", "its incident calls for it still"


def test_a_relaunch_that_a_person_wanted_is_asked_afresh_too() -> None:
    before = an_action().begun(StepName.VERIFY, AT)
    now = before.ended(StepName.VERIFY, Refused(detail="changed"), AT)
    now = now.model_copy(update={"state": ActionState.VOID, "noted": "changed"})
    wanted = request(state=RequestState.GRANTED, incident=None)

    decision = moves(before, now, record(wanted, actions=(before,)))

    assert decision.run is not None
    assert decision.run.relaunch_wanted_by == ADA


def test_a_failure_says_where_it_stopped_and_what_may_still_run() -> None:
    before = an_action(StepName.SUBMIT).begun(StepName.CONFIRM, AT)
    now = before.ended(StepName.CONFIRM, Refused(detail="it ended at once"), AT)
    now = now.model_copy(update={"state": ActionState.FAILED, "noted": "it ended at once"})
    instances = (*record().instances, record().instances[0].model_copy(update={"number": 1}))

    decision = moves(before, now, on_record(before, instances=instances))

    update = the_news(decision)
    assert update.kind is UpdateKind.FAILED
    assert update.severity is Severity.CRITICAL
    assert update.headline == "the relaunch stopped at `confirm`: it ended at once"
    assert update.next.startswith(f"{NEW} may still run: look at it")
    assert update.asked == ADA
    assert decision.run is not None
    assert decision.run.state is RunState.UNKNOWN, "only a look can tell"


def test_a_stop_that_was_refused_says_that_the_old_job_may_run() -> None:
    plan = PLAN.model_copy(update={"stop": JobId("/me/old")})
    before = an_action(StepName.VERIFY, plan=plan).begun(StepName.STOP, AT)
    now = before.ended(StepName.STOP, Refused(detail="403"), AT)
    now = now.model_copy(update={"state": ActionState.FAILED, "noted": "403"})

    update = the_news(moves(before, now))

    assert update.next.startswith("/me/old may still run")


def test_a_submission_that_was_refused_left_no_job() -> None:
    before = an_action(StepName.STOP).begun(StepName.SUBMIT, AT)
    now = before.ended(StepName.SUBMIT, Refused(detail="client is too old"), AT)
    now = now.model_copy(update={"state": ActionState.FAILED, "noted": "client is too old"})

    assert the_news(moves(before, now)).next.startswith("no job of the run was submitted")


def test_an_uncertain_step_is_told_under_one_key_however_it_is_worded() -> None:
    before = an_action(StepName.STOP).begun(StepName.SUBMIT, AT)
    first = before.model_copy(update={"noted": "no answer in 180 s"})
    second = before.model_copy(update={"noted": "no answer in 20 s"})

    one, two = moves(before, first), moves(first, second)

    assert kinds(one) == kinds(two) == [UpdateKind.ACTION_PROGRESS]
    assert one.tell[0].key == two.tell[0].key
    assert "does not do the step a second time on a guess" in the_news(one).next


def test_what_ends_a_doubt_drops_it_where_it_was_not_told_yet() -> None:
    before = an_action(StepName.STOP).begun(StepName.SUBMIT, AT)
    doubt = moves(before, before.model_copy(update={"noted": "no answer in 180 s"})).tell[0]
    failed = before.ended(StepName.SUBMIT, Refused(detail="no"), AT)

    end = moves(before, failed.model_copy(update={"state": ActionState.FAILED, "noted": "no"})).tell[0]

    assert doubt.key in end.replaces
    assert doubt.key not in doubt.replaces


def test_nothing_is_told_twice_of_an_action_that_did_not_move() -> None:
    action = an_action(StepName.SUBMIT)

    decision = moves(action, action)

    assert not (decision.tell)
    assert not (decision.audit)
    assert not (decision.instances)
