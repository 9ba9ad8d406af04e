"""A rollback beside an old run that lives already: the words say that it is not launched, and no launch is noted."""

from datetime import timedelta

from bot.model.action import Action, Done, StepName
from bot.model.plan import Grant
from bot.model.trialplan import RollbackPlan
from handlers.outcome import decide_outcome
from handlers.plans import plan_lines
from handlers.trialplans import trial_first, trial_question
from tests.fakes.snapshots import AT, JOB, RUN
from tests.unit.handlers.scene import ADA, context, record
from tests.unit.handlers.trial.story import CHILD, CHILD_JOB, agreed, rollback

KEPT = f"{JOB}@2026-11-29T06:00:00+00:00"
UNSEEN = f"the orchestrator shows no {CHILD_JOB}, and nobody saw it end: see that it trains nowhere"


def kept() -> RollbackPlan:
    return rollback(agreed()).model_copy(update={"launch": None, "keeps": KEPT})


def test_its_lines_name_what_is_stopped_and_what_is_left_alone() -> None:
    plan = kept()

    assert trial_question(plan) == f"roll back: stop {CHILD}, and leave {KEPT} as it is"
    assert trial_first(plan) == f"stop {CHILD_JOB}"
    assert f"old run: {KEPT} lives already, by another hand; it is not launched" in plan_lines(plan)
    assert not [line for line in plan_lines(plan) if "command" in line]


def test_what_nobody_saw_end_is_the_first_thing_that_a_yes_accepts() -> None:
    plan = rollback(agreed()).model_copy(update={"stop": None, "unseen": UNSEEN})

    assert plan_lines(plan)[0] == f"NOT CLEAR, a yes accepts it: {UNSEEN}"


def test_no_launch_is_noted_for_a_job_that_another_hand_has_launched() -> None:
    for plan, noted in ((kept(), 0), (rollback(agreed()), 1)):
        grant = Grant(request=7, run_id=RUN, digest=plan.digest, by=ADA, at=AT, expires_at=AT + timedelta(hours=1))
        begun = Action(number=1, run_id=RUN, plan=plan, grant=grant).begun(StepName.SUBMIT, AT)
        known = record().model_copy(update={"actions": (begun,)})

        decision = decide_outcome(known, begun.ended(StepName.SUBMIT, Done(detail=JOB), AT), context(), AT, shape={})

        assert len(decision.instances) == noted
