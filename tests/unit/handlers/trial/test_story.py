"""A trial from the agreed plan to its end, decision by decision."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.action import STEPS, ActionState, Done, Refused, StepName
from bot.model.conduct import Ending, Stage
from bot.model.job import JobState
from bot.model.plan import RequestState
from bot.model.planned import NoPlan, StopPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.rehearsal import Pin
from bot.model.run import RunState
from bot.model.trial import Outcome
from bot.model.trialplan import GoPlan, RollbackPlan, TrialPlan
from bot.model.value import PersonName
from bot.model.verdict import Severity
from checks.trial.control import ControlSays
from checks.trial.trajectory import TrajectorySays
from handlers.outcome import decide_outcome
from handlers.tellings import live_status
from tests.fakes.snapshots import AT
from tests.unit.handlers.scene import ADA, record
from tests.unit.handlers.trial.story import (
    CHILD,
    CHILD_INSTANCE,
    CHILD_JOB,
    Story,
    agreed,
    compared,
    cutover,
    guard,
    rollback,
)


def test_a_trial_that_passes_goes_through_every_stage_and_each_is_told() -> None:
    story = Story()
    story.cut_over()
    assert story.stage() is Stage.RUNNING

    story.look(child=story.child(), comparison=compared(Outcome.CANNOT_TELL), child_step=41)
    story.look(child=story.child(), comparison=compared(Outcome.PASS), child_step=59)
    asked = story.open()
    assert asked is not None
    assert isinstance(asked.plan, GoPlan)
    assert asked.plan.coverage_gaps == ("evaluations",)
    story.grant(asked.plan)
    story.carry_out()
    story.look(pins=(Pin(where="reports: a.py:3", what="hero"),))

    assert story.trial.ending is Ending.ACCEPTED
    assert [step.stage for step in story.trial.steps] == [
        Stage.PLANNED,
        Stage.RECORDED,
        Stage.REHEARSED,
        Stage.CONTROL_COMPLETE,
        Stage.FORKED,
        Stage.OLD_STOPPED,
        Stage.LAUNCHED,
        Stage.RUNNING,
        Stage.GO,
        Stage.CLOSED,
    ]
    for words in ("kill", "launched", "first steps", "go, by ada", "accepted"):
        assert any(words in told for told in story.told), words
    assert story.record.held_by_trial == ""


def test_the_child_s_launch_is_on_record_as_its_own_from_the_submission_on() -> None:
    """A local child has no job's name beforehand: nobody else would know what to watch."""
    story = Story()
    story.grant(story.prepare())
    story.carry_out(StepName.STABILISE)

    submitted, confirmed = story.child_instances
    assert (submitted.run_id, submitted.number, submitted.job_id) == (CHILD, 0, CHILD_JOB)
    assert submitted.submitted_at is None
    assert (
        f"{confirmed.job_id}@{confirmed.submitted_at.isoformat()}" == CHILD_INSTANCE if confirmed.submitted_at else ""
    )
    assert confirmed.from_step == 40
    assert all(each.run_id == story.record.run_id for each in story.record.instances)


def test_nothing_is_asked_before_every_guard_passes_and_the_control_is_complete() -> None:
    story = Story()
    story.agree()
    for outcome in (Outcome.FAIL, Outcome.CANNOT_TELL):
        story.look(guards=(guard(), guard(outcome, "deploy.checkout")))
        assert story.stage() is Stage.PLANNED
    story.look(guards=(guard(),))
    story.look(guards=(guard(Outcome.CANNOT_TELL, "coordinators.none"),))
    assert story.stage() is Stage.RECORDED
    story.look(guards=(guard(),))
    for outcome in (Outcome.CANNOT_TELL, Outcome.FAIL):
        story.look(control=ControlSays(outcome=outcome, detail="up to step 50 of 59"))
        assert story.stage() is Stage.REHEARSED
    assert story.open() is None


def test_a_look_that_has_seen_nothing_moves_no_stage() -> None:
    story = Story()
    story.agree()
    for stage in (Stage.PLANNED, Stage.RECORDED, Stage.REHEARSED, Stage.CONTROL_COMPLETE):
        assert story.stage() is stage
        first, again = story.look(comparison_gap="it took too long"), story.look(comparison_gap="it took too long")
        assert story.stage() is stage
        assert story.open() is None
        assert len(first.tell) <= 1
        assert again.tell == ()
        story.look(guards=(guard(),), control=ControlSays(outcome=Outcome.PASS, detail="whole"))


def test_what_does_not_change_is_told_once() -> None:
    story = Story()
    story.agree()
    left = (guard(Outcome.FAIL, "deploy.checkout"),)

    first, again = story.look(guards=left), story.look(guards=left)
    other = story.look(guards=(guard(Outcome.CANNOT_TELL, "deploy.checkout"),))

    assert (len(first.tell), len(again.tell), len(other.tell)) == (1, 0, 1)


def test_the_cut_over_is_asked_for_once_and_anew_when_it_would_be_another() -> None:
    story = Story()
    plan = story.prepare()
    story.look(guards=(guard(),), cutover=plan)
    assert [r.name for r in story.record.requests] == ["R1", "R2"]

    story.look(guards=(guard(),), cutover=plan.model_copy(update={"startup_limit_s": 60}))

    assert [r.state for r in story.record.requests[1:]] == [RequestState.VOID, RequestState.OPEN]


def test_an_open_question_stays_while_a_guard_flips_and_people_hear_of_it_once() -> None:
    """The yes is held against every guard once more: nothing is carried out that does not hold then."""
    story = Story()
    plan = story.prepare()
    fails = NoPlan(reason="the checkout is dirty", fix="clean it", is_unknown=False)
    told = 0
    for turn in range(20):
        seen = fails if turn % 2 == 0 else plan
        told += len(story.look(guards=(guard(Outcome.FAIL if turn % 2 == 0 else Outcome.PASS),), cutover=seen).tell)

    assert [r.state for r in story.record.requests[1:]] == [RequestState.OPEN]
    assert told == 1


def test_the_cut_over_waits_for_its_time_and_is_not_asked_for_when_none_is_left_to_roll_back() -> None:
    early = Story(agreed(starts_at=AT + timedelta(hours=5)))
    early.prepare()
    assert early.open() is None

    late = Story(agreed(rollback_by=AT + timedelta(seconds=1)))
    late.prepare()
    assert late.open() is None
    assert "no time left" in late.told[-1]


def test_a_no_to_the_cut_over_is_not_asked_again_before_somebody_wants_it() -> None:
    story = Story()
    plan = story.prepare()
    asked = story.open()
    assert asked is not None
    story.record = story.record.model_copy(
        update={"requests": (story.record.requests[0], asked.model_copy(update={"state": RequestState.DENIED}))}
    )
    story.look(guards=(guard(),), cutover=plan)
    assert story.open() is None

    wanted = story.trial.model_copy(update={"question_wanted_by": ADA})
    story.record = story.record.model_copy(update={"run": story.record.run.model_copy(update={"trial": wanted})})
    story.look(guards=(guard(),), cutover=plan)

    assert story.open() is not None
    assert story.trial.question_wanted_by is None


def test_what_fails_before_the_stop_leaves_the_old_run_training() -> None:
    for step in (StepName.VERIFY, StepName.FORK):
        story = Story()
        story.grant(story.prepare())
        story.carry_out(step, Refused(detail="the fork is another's"))

        assert story.stage() in {Stage.CONTROL_COMPLETE, Stage.FORKED}
        assert story.record.run.state is RunState.RUNNING
        assert story.record.held_by_trial == ""


@pytest.mark.parametrize("step", STEPS["cutover"][3:])
def test_what_fails_from_the_stop_on_is_a_no_go_and_is_rolled_back_on_the_yes_that_came_with_the_plan(
    step: StepName,
) -> None:
    story = Story()
    story.grant(story.prepare())
    story.carry_out(step, Refused(detail="the handoff checkpoint is gone"))
    assert story.stage() is Stage.NO_GO
    assert "the handoff checkpoint is gone" in story.trial.why

    way_back = rollback(story.plan)
    if step is StepName.SUBMIT:
        way_back = way_back.model_copy(update={"stop": None})
    decision = story.look(rollback=way_back)

    (action,) = decision.actions
    assert (action.plan, action.grant.digest, action.grant.by) == (way_back, way_back.digest, ADA)
    story.carry_out()
    assert story.stage() is Stage.ROLLED_BACK
    assert story.record.run.state is RunState.RUNNING
    assert story.record.instance is not None
    assert story.record.instance.from_step == 60


def test_a_stop_that_was_told_and_not_seen_to_its_end_is_a_no_go_that_the_dri_decides() -> None:
    story = Story()
    story.grant(story.prepare())
    story.carry_out(StepName.STOP, Refused(detail="it is another launch now"))
    assert story.stage() is Stage.NO_GO

    decision = story.look(rollback=rollback(story.plan).model_copy(update={"stop": None}))

    assert decision.actions == ()
    assert story.open() is not None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"comparison": compared(Outcome.FAIL)}, "a gate failed"),
        ({"comparison": compared(Outcome.PASS, quiet=Outcome.FAIL)}, "1 retries"),
        ({"stuck": ("I4 progress.stalled: no step for 20 minutes",)}, "progress.stalled"),
        ({"state": JobState.FAILED}, "the child's job is failed"),
        ({"instance": "/me/hero-next@2026-11-29T09:00:00+00:00"}, "another hand"),
        ({"child": Known(value=(), at=AT)}, "knows no job"),
    ],
)
def test_a_failed_gate_a_hang_or_a_retry_is_a_no_go_at_once(fields: dict[str, Any], why: str) -> None:
    story = Story()
    story.cut_over()
    given = dict(fields)
    named = {key: given.pop(key) for key in ("state", "instance") if key in given}
    given.setdefault("child", story.child(**named))

    story.look(**given)

    assert story.stage() is Stage.NO_GO
    assert why in story.trial.why
    assert story.record.held_by_trial


def test_what_is_not_known_neither_fails_nor_passes() -> None:
    story = Story()
    story.cut_over()
    dark = Unknown(reason=Gap.TIMEOUT, detail="iris does not answer", at=AT)

    story.look(child=dark, comparison_gap="finelog does not answer")
    story.look(child=dark, comparison=compared(Outcome.CANNOT_TELL))
    story.look()

    assert story.stage() is Stage.RUNNING
    assert story.open() is None


def test_a_window_that_ends_without_a_word_is_put_to_the_dri_as_not_clear() -> None:
    story = Story()
    story.cut_over()
    for minutes in (0, 11):
        story.at += timedelta(minutes=minutes)
        story.look(child=story.child(), comparison=compared(Outcome.CANNOT_TELL), is_past_window=True)

    asked = story.open()
    assert asked is not None
    assert isinstance(asked.plan, GoPlan)
    assert asked.plan.verdict[0].startswith("NOT CLEAR: ")


def test_a_no_to_the_go_is_a_no_go() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.PASS))
    asked = story.open()
    assert asked is not None
    denied = asked.model_copy(update={"state": RequestState.DENIED, "decided_by": ADA, "note": "too slow"})
    story.record = story.record.model_copy(update={"requests": (*story.record.requests[:-1], denied)})

    story.look(child=story.child(), comparison=compared(Outcome.PASS))

    assert story.stage() is Stage.NO_GO
    assert story.trial.why == "ada said no to the go: too slow"


def test_a_gate_that_fails_takes_the_question_for_the_go_back() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.PASS))
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))

    assert story.open() is None
    assert story.stage() is Stage.NO_GO


@pytest.mark.parametrize(
    ("plan", "contract", "launch"),
    [
        (agreed(automatic_rollback=False), {}, {}),
        (agreed(), {"deputies": ("bob",), "approval": {"deputies": True, "quorum": 2}}, {}),
        (agreed(), {}, {"accepts": ("launch.region: not told",)}),
    ],
)
def test_without_a_yes_in_advance_that_covers_it_the_rollback_is_asked_for(
    plan: TrialPlan, contract: dict[str, Any], launch: dict[str, Any]
) -> None:
    story = Story(plan, **contract)
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))

    decision = story.look(rollback=rollback(story.plan, **launch))

    assert decision.actions == ()
    asked = story.open()
    assert asked is not None
    assert isinstance(asked.plan, RollbackPlan)


def test_what_ended_because_it_could_not_be_read_is_asked_about_and_not_undone_on_a_guess() -> None:
    story = Story()
    story.grant(story.prepare())
    story.carry_out(StepName.CONFIRM, Refused(detail="iris did not answer for 10 min", is_unknown=True))
    assert story.stage() is Stage.NO_GO

    decision = story.look(rollback=rollback(story.plan))

    assert decision.actions == ()
    assert story.open() is not None
    assert "on a guess" in " ".join(line for t in decision.tell for line in t.update.evidence)


def test_a_new_dri_is_asked_for_the_rollback_that_the_one_before_allowed() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    handed = story.context.contract.model_copy(update={"dri": PersonName("bob")})
    story.context = story.context.model_copy(update={"contract": handed})

    decision = story.look(rollback=rollback(story.plan))

    assert decision.actions == ()
    asked = story.open()
    assert asked is not None
    assert asked.dri == "bob"


def test_a_rollback_that_came_to_nothing_is_asked_for_and_not_begun_again_by_itself() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    story.look(rollback=rollback(story.plan))
    story.carry_out(StepName.SUBMIT, Refused(detail="the client is too old"))
    assert story.stage() is Stage.NO_GO

    decision = story.look(rollback=rollback(story.plan))

    assert decision.actions == ()
    assert story.open() is not None


def test_a_plan_that_changes_before_it_is_carried_out_is_begun_three_times_and_then_asked_for() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    begun = 0
    for step in range(5):
        begun += len(story.look(rollback=rollback(story.plan, source_sha=f"{step}" * 40)).actions)
        if story.record.active_action is not None:
            story.carry_out(StepName.VERIFY, Refused(detail="it has changed", asks_anew=True))

    assert begun == 3
    assert story.open() is not None


def test_a_cut_over_that_never_stopped_the_old_run_is_closed_and_rolls_nothing_back() -> None:
    story = Story()
    story.grant(story.prepare())
    story.carry_out(StepName.STOP, Refused(detail="it is another launch now"))
    none = NoPlan(reason="the old run's job is alive", fix="nothing", is_unknown=False)

    story.look(rollback=none, never_stopped="/me/hero-coord")

    assert story.stage() is Stage.CLOSED
    assert story.trial.ending is Ending.ABANDONED


def test_a_stop_that_was_never_told_leaves_the_old_run_training_and_the_yes_in_advance_unused() -> None:
    story = Story()
    story.grant(story.prepare())
    story.carry_out(StepName.STOP, Refused(detail="the child lives already; nothing was stopped"), is_tried=False)

    assert story.stage() is Stage.FORKED
    assert "nothing was cut over" in story.told[-1]


@pytest.mark.parametrize("state", [s for s in RequestState if s is not RequestState.VOID])
def test_a_rollback_that_was_put_to_the_dri_or_begun_in_any_way_is_not_begun_again_by_itself(
    state: RequestState,
) -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    story.look(rollback=rollback(story.plan))
    story.carry_out(StepName.VERIFY, Refused(detail="taken back"))
    ended = story.record.requests[-1].model_copy(update={"state": state})
    story.record = story.record.model_copy(update={"requests": (*story.record.requests[:-1], ended)})

    decision = story.look(rollback=rollback(story.plan))

    assert decision.actions == ()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"changes": ("command: a → b",)}, "would not be launched as it was"),
        ({"unseen": "the orchestrator shows no /me/hero-next"}, "shows no /me/hero-next"),
        ({"keeps": "/me/hero-coord@now", "launch": None}, "by another hand"),
        ({"instance": f"{CHILD_JOB}@2026-11-29T09:00:00+00:00"}, "is not the launch that this trial made"),
    ],
)
def test_the_yes_in_advance_covers_the_old_launch_as_it_was_and_the_job_of_this_trial_alone(
    changed: dict[str, Any], why: str
) -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    given = dict(changed)
    plan = rollback(story.plan, changes=given.pop("changes", ()))
    if instance := given.pop("instance", None):
        given["stop"] = StopPlan(run_id=CHILD, stop=CHILD_JOB, instance=instance)

    decision = story.look(rollback=plan.model_copy(update=given))

    assert decision.actions == ()
    asked = story.open()
    assert asked is not None
    assert why in " ".join(line for t in decision.tell for line in t.update.evidence)


@pytest.mark.parametrize(
    "edited", [{"environment": {"LR": "10"}}, {"output_root": "/elsewhere"}, {"source_sha": "f" * 40}]
)
def test_an_old_run_whose_contract_was_edited_is_not_launched_on_the_yes_in_advance(edited: dict[str, Any]) -> None:
    """Also where the difference does not show: the value of a variable, a word that is a secret."""
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    now = story.context.contract.model_copy(update=edited)
    story.context = story.context.model_copy(update={"contract": now})

    assert story.look(rollback=rollback(story.plan)).actions == ()
    assert story.open() is not None


def test_an_old_run_that_had_ended_by_itself_is_not_launched_on_the_yes_in_advance() -> None:
    story = Story()
    story.grant(story.prepare())
    story.carry_out(is_tried=False)
    assert any("had ended by itself" in told for told in story.told)
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))

    assert story.look(rollback=rollback(story.plan)).actions == ()


def test_a_failed_rollback_of_a_run_that_was_not_seen_to_stop_is_no_run_that_was_never_stopped() -> None:
    story = Story()
    story.grant(story.prepare())
    story.carry_out(StepName.STOP, Refused(detail="the answer was lost"))
    way_back = rollback(story.plan).model_copy(update={"stop": None})
    story.look(rollback=way_back)
    story.grant(way_back)
    story.carry_out(StepName.RESTORE, Refused(detail="it loaded step-100"))

    story.look(rollback=NoPlan(reason="alive", fix="nothing", is_unknown=False), never_stopped="/me/hero-coord")

    assert story.stage() is Stage.ROLLED_BACK


def test_nothing_is_closed_as_accepted_while_the_old_run_lives_again() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.PASS))
    asked = story.open()
    assert asked is not None
    story.grant(asked.plan)
    story.carry_out()

    story.look(old_lives="/me/hero-coord@now")
    assert story.stage() is Stage.GO
    story.look()
    assert story.trial.ending is Ending.ACCEPTED


def test_a_go_that_is_carried_out_after_the_no_go_accepts_nothing() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.PASS))
    asked = story.open()
    assert asked is not None
    story.grant(asked.plan)
    before = story.record

    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    assert story.stage() is Stage.NO_GO
    assert story.record.active_action is None

    late = before.active_action
    assert late is not None
    done = late.begun(StepName.VERIFY, story.at).ended(StepName.VERIFY, Done(detail="lives"), story.at)
    meanwhile = before.model_copy(update={"run": story.record.run})
    decision = decide_outcome(
        meanwhile, done.model_copy(update={"state": ActionState.DONE}), story.context, story.at, shape={}
    )
    assert decision.run is not None
    assert decision.run.trial is not None
    assert decision.run.trial.stage is Stage.NO_GO


def test_two_living_trainers_are_told_and_nothing_is_accepted() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.PASS))
    assert story.open() is not None

    decision = story.look(child=story.child(), comparison=compared(Outcome.PASS), old_lives="/me/hero-coord@now")

    assert story.open() is None
    assert story.stage() is Stage.RUNNING
    assert [t.update.severity for t in decision.tell if "two trainers" in t.update.headline] == [Severity.CRITICAL]


def test_an_old_run_that_lives_again_without_a_whole_rollback_is_held_against_its_past() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    story.look(rollback=rollback(story.plan))
    story.carry_out(StepName.RESTORE, Refused(detail="it loaded step-100"))
    none = NoPlan(reason="the old run's job is alive", fix="nothing", is_unknown=False)

    story.look(rollback=none, never_stopped="/me/hero-coord")

    assert story.stage() is Stage.ROLLED_BACK
    story.look(trajectory=TrajectorySays(outcome=Outcome.FAIL, detail="off by 1"))
    assert story.stage() is Stage.CLOSED
    assert "does NOT follow" in story.told[-1]


def test_a_service_that_comes_and_goes_is_not_told_at_every_look() -> None:
    story = Story()
    story.cut_over()
    told = 0
    for turn in range(20):
        dark = turn % 2 == 1
        decision = story.look(
            child=story.child(),
            comparison=None if dark else compared(Outcome.CANNOT_TELL),
            comparison_gap="finelog does not answer" if dark else "",
        )
        told += len(decision.tell)

    assert told == 2


def test_a_go_is_not_asked_anew_at_every_flip_of_a_gate_that_cannot_tell() -> None:
    story = Story()
    story.cut_over()
    for turn in range(9):
        outcome = Outcome.CANNOT_TELL if turn % 2 else Outcome.PASS
        story.look(child=story.child(), comparison=compared(outcome), is_past_window=True)

    assert [r.plan.kind for r in story.record.requests].count("go") == 1


def test_a_comparison_of_another_version_of_hero_does_not_keep_a_trial_open() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.PASS))
    asked = story.open()
    assert asked is not None
    story.grant(asked.plan)
    story.carry_out()
    odd = story.trial.model_copy(update={"compared": '{"window": "another shape"}'})
    story.record = story.record.model_copy(update={"run": story.record.run.model_copy(update={"trial": odd})})

    story.look(pins_gap="grep timed out")

    assert story.trial.ending is Ending.ACCEPTED


@pytest.mark.parametrize("outcome", list(Outcome))
def test_after_the_rollback_the_old_trajectory_is_looked_at_before_the_trial_is_closed(outcome: Outcome) -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    story.look(rollback=rollback(story.plan))
    story.carry_out()
    says = TrajectorySays(outcome=outcome, detail="10 pairs")

    story.look(trajectory=says)
    assert (story.stage() is Stage.CLOSED) is (outcome is not Outcome.CANNOT_TELL)
    story.look(trajectory=says, is_long_enough=True) if story.stage() is Stage.ROLLED_BACK else None

    assert story.trial.ending is Ending.ROLLED_BACK
    assert any("rolled back, and" in told for told in story.told)


def test_the_live_status_of_both_runs_says_that_a_trial_is_under_way() -> None:
    story = Story()
    story.cut_over()
    child = record(trial_of=story.record.run_id, trial_stage=story.stage())

    old = live_status(story.context, story.record, story.at).update.headline
    new = live_status(story.context, child, story.at).update.headline
    over = live_status(story.context, child.model_copy(update={"trial_stage": Stage.CLOSED}), story.at).update.headline

    assert "trial of hero-next: the child trains" in old
    assert f"on trial in the place of {story.record.run_id}" in new
    assert "trial" not in over


def test_neither_run_of_a_trial_is_launched_by_the_ordinary_policy_while_it_decides() -> None:
    story = Story()
    story.cut_over()
    child = record(trial_of=story.record.run_id, trial_stage=story.stage())

    assert CHILD in story.record.held_by_trial
    assert story.record.run_id in child.held_by_trial
    assert child.model_copy(update={"trial_stage": Stage.CLOSED}).held_by_trial == ""


_WORDS = st.sampled_from(list(Outcome))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "guard": _WORDS,
                "control": _WORDS,
                "gate": _WORDS,
                "trajectory": _WORDS,
                "is_past_window": st.booleans(),
                "has_plan": st.booleans(),
            }
        ),
        max_size=25,
    ),
    st.booleans(),
)
def test_whatever_is_seen_nothing_is_carried_out_without_a_yes_to_exactly_that(
    looks: list[dict[str, Any]], automatic: bool
) -> None:
    story = Story(agreed(automatic_rollback=automatic))
    story.agree()
    for seen in looks:
        if story.trial.is_over:
            break
        before = story.stage()
        decision = story.look(
            guards=(guard(Outcome(str(seen["guard"]))),),
            control=ControlSays(outcome=Outcome(str(seen["control"])), detail="d"),
            cutover=cutover(story.plan) if seen["has_plan"] and seen["guard"] == "pass" else None,
            rollback=rollback(story.plan) if seen["has_plan"] else None,
            child=story.child(),
            comparison=compared(Outcome(str(seen["gate"]))),
            is_past_window=bool(seen["is_past_window"]),
            trajectory=TrajectorySays(outcome=Outcome(str(seen["trajectory"])), detail="d"),
        )
        for action in decision.actions:
            assert automatic
            assert before is Stage.NO_GO
            assert isinstance(action.plan, RollbackPlan)
            assert action.grant.digest == action.plan.digest
        if (asked := story.open()) is not None:
            story.grant(asked.plan)
        if story.record.active_action is not None:
            story.carry_out()
    stages = [step.stage for step in story.trial.steps]
    assert stages == sorted(stages, key=list(Stage).index)
