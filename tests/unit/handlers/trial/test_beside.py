"""What else of Hero has to know that a trial is under way: pausing, planning another one, asking for launches, a no."""

from datetime import timedelta

import pytest

from bot.model.action import Refused, StepName
from bot.model.conduct import Ending, Stage
from bot.model.delivery import ChannelName, Posted
from bot.model.errand import Errand, ErrandKind, Planned
from bot.model.plan import RequestState
from bot.model.trial import Outcome
from handlers.errands import decide_found
from handlers.reply import decide_said
from tests.fakes.snapshots import AT, RUN
from tests.unit.handlers.scene import ADA as DRI
from tests.unit.handlers.scene import MEMBER, POSTED, record, said, slack
from tests.unit.handlers.test_checked import FAILED, check, fails, watched
from tests.unit.handlers.trial.story import Story, agreed, compared, rollback
from tests.unit.handlers.trial.test_commands import ADA, ask


def test_neither_run_s_watch_is_paused_while_a_trial_lasts() -> None:
    story = Story()
    story.agree()
    child = record(trial_of="hero-old", trial_stage=Stage.RUNNING)

    for answered in (ask(story, "pause"), ask(None, "pause", ADA, child)):
        assert answered.decision.run is None
        assert "the watch goes on" in answered.telling.update.headline


def test_a_second_plan_is_not_put_beside_a_trial_that_lives() -> None:
    story = Story()
    story.agree()
    errand = Errand(kind=ErrandKind.TRIAL, by=DRI, at=AT)
    run = story.record.run.model_copy(update={"errands": (errand,)})
    known = story.record.model_copy(update={"run": run})

    decision = decide_found(known, errand, Planned(plan=agreed(window_steps=40)), story.context, story.at)

    assert decision.requests == ()
    assert "is under way" in decision.tell[0].update.headline


def test_a_yes_to_a_second_plan_does_not_overwrite_a_trial_that_lives() -> None:
    story = Story()
    story.cut_over()
    before = story.trial
    story.plan = agreed(window_steps=40)

    story.agree()

    assert story.trial == before
    assert "does not hold" in story.told[-1]


@pytest.mark.parametrize("kind", ["rollback", "go"])
def test_a_no_right_after_the_yes_is_a_no(kind: str) -> None:
    """To a rollback that was begun on the yes in advance, and to a go that was granted."""
    story = Story()
    story.cut_over()
    outcome = Outcome.FAIL if kind == "rollback" else Outcome.PASS
    story.look(child=story.child(), comparison=compared(outcome))
    if kind == "rollback":
        story.look(rollback=rollback(story.plan))
    else:
        asked = story.open()
        assert asked is not None
        story.grant(asked.plan)
    number = story.record.requests[-1].number
    posted = Posted(channel=ChannelName.SLACK, run_id=RUN, slot=f"request:{number}", message_id="C0HERO:200.000200")
    known = story.record.model_copy(update={"posted": (*POSTED, posted)})
    deny = said(f"deny R{number} because I look first", at=story.at + timedelta(seconds=1))

    story.apply(decide_said(known, deny, MEMBER, story.context, story.at + timedelta(seconds=2)))

    assert story.record.active_action is None
    assert story.record.requests[-1].state is RequestState.DENIED
    later = story.look(child=story.child(), comparison=compared(outcome), rollback=rollback(story.plan))
    assert later.actions == ()
    assert story.stage() is Stage.NO_GO


def test_a_no_to_a_rollback_that_was_void_ends_the_yes_in_advance() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    story.look(rollback=rollback(story.plan))
    story.carry_out(StepName.VERIFY, Refused(detail="a newer checkpoint appeared", asks_anew=True))
    void = story.record.requests[-1]
    ended = void.model_copy(update={"state": RequestState.VOID})
    posted = Posted(
        channel=ChannelName.SLACK, run_id=RUN, slot=f"request:{void.number}", message_id="C0HERO:200.000200"
    )
    known = story.record.model_copy(
        update={"requests": (*story.record.requests[:-1], ended), "posted": (*POSTED, posted)}
    )
    deny = said(f"deny {void.name}", at=story.at + timedelta(seconds=1))

    story.apply(decide_said(known, deny, MEMBER, story.context, story.at + timedelta(seconds=2)))
    later = story.look(rollback=rollback(story.plan, source_sha="e" * 40))

    assert later.actions == ()
    assert story.open() is not None or story.record.requests[-1].state is RequestState.DENIED


def test_a_no_go_can_be_left_as_it_is_by_the_dri() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.FAIL))
    assert ask(story, "trial abandon", slack("U0BOB")).decision.run is None

    story.apply(ask(story, "trial abandon").decision)

    assert story.trial.ending is Ending.ABANDONED


def test_a_child_that_failed_its_trial_is_launched_again_only_when_somebody_wants_it() -> None:
    known = watched().model_copy(
        update={"trial_of": "hero-old", "trial_stage": Stage.CLOSED, "trial_ending": Ending.ROLLED_BACK}
    )
    wanted = known.model_copy(update={"run": known.run.model_copy(update={"relaunch_wanted_by": DRI})})

    by_itself, asked = check(known, FAILED, fails()), check(wanted, FAILED, fails())

    assert by_itself.requests == ()
    assert len(check(watched(), FAILED, fails()).requests) == 1
    (request,) = asked.requests
    evidence = [line for t in asked.tell for line in t.update.evidence]
    assert request.plan.kind == "relaunch"
    assert any("failed its trial" in line for line in evidence)
