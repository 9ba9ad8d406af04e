"""``/hero trial …`` and ``/hero rollback``: who may say what at which stage, and what each changes."""

from bot.model.conduct import Ending, Stage
from bot.model.errand import ErrandKind
from bot.model.event import Commanded, Place
from bot.model.person import Actor
from bot.model.plan import RequestState
from bot.model.record import Record
from bot.model.trial import Outcome
from handlers.command import answer_command
from handlers.commands.question import Answered, Question
from tests.fakes.snapshots import AT
from tests.unit.handlers.scene import GUEST, MEMBER, PEOPLE, context, record, slack
from tests.unit.handlers.trial.story import CHILD, Story, agreed, compared, guard

ADA, BOB = slack("U0ADA"), slack("U0BOB")
"""The DRI, who submits too; and somebody else."""


def ask(story: Story | None, text: str, actor: Actor = ADA, *records: Record, is_guest: bool = False) -> Answered:
    known = (*((story.record,) if story else ()), *records)
    return answer_command(
        Question(
            event=Commanded(actor=actor, place=Place(conversation="C0HERO"), text=text, said_at=AT),
            standing=GUEST if is_guest else MEMBER,
            records=known,
            contexts={each.run_id: context() for each in known} | {CHILD: context()},
            blocked={},
            here=None,
            people=PEOPLE,
            timezone="UTC",
            at=AT,
        )
    )


def take(story: Story, answered: Answered) -> None:
    assert answered.run_id == story.record.run_id
    story.apply(answered.decision)


def test_a_plan_and_a_rehearsal_are_looked_into_and_change_nothing() -> None:
    for word, kind in (("plan", ErrandKind.TRIAL), ("rehearse", ErrandKind.REHEARSAL)):
        answered = ask(None, f"trial {word}", ADA, record())

        run = answered.decision.run
        assert run is not None
        assert [each.kind for each in run.errands] == [kind]
        assert answered.check_now == run.run_id
        assert not answered.decision.actions
        assert not answered.decision.requests


def test_only_somebody_independent_reviews() -> None:
    story = Story()
    story.agree()

    refused = ask(story, "trial reviewed")
    take(story, ask(story, "trial reviewed", BOB))

    assert "an independent review cannot come from ada" in refused.telling.update.headline
    assert refused.decision.run is None
    assert story.trial.review is not None
    assert story.trial.review.by == "bob"
    assert story.trial.review.covers == context().contract.config_digest


def test_whoever_submits_is_not_independent_either() -> None:
    story = Story(agreed(submitter="bob"))
    story.agree()

    assert ask(story, "trial reviewed", BOB).decision.run is None


def test_a_guest_and_a_stranger_change_nothing() -> None:
    story = Story()
    story.agree()
    for word in ("reviewed", "abandon", "cutover"):
        assert ask(story, f"trial {word}", BOB, is_guest=True).decision.run is None
        assert ask(story, f"trial {word}", slack("U0NOBODY")).decision.run is None
    assert ask(story, "rollback", slack("U0NOBODY")).decision.run is None


def test_a_trial_is_abandoned_by_the_dri_as_long_as_the_old_run_trains() -> None:
    story = Story()
    story.prepare()
    assert ask(story, "trial abandon", BOB).decision.run is None

    take(story, ask(story, "trial abandon"))

    assert story.trial.ending is Ending.ABANDONED
    assert story.record.requests[-1].state is RequestState.WITHDRAWN


def test_after_the_stop_it_is_no_longer_abandoned_but_rolled_back() -> None:
    story = Story()
    story.prepare()
    assert "trial abandon" in ask(story, "rollback").telling.update.headline
    story.grant(story.record.open_request.plan) if story.record.open_request else None
    story.carry_out()

    assert "/hero rollback" in ask(story, "trial abandon").telling.update.headline
    take(story, ask(story, "rollback", BOB))
    story.look(child=story.child(), comparison=compared(Outcome.CANNOT_TELL))

    assert story.stage() is Stage.NO_GO
    assert story.trial.why == "bob asked for the rollback"


def test_the_child_s_name_means_the_trial_too() -> None:
    story = Story()
    story.cut_over()
    child = record(run=story.record.run.model_copy(update={"run_id": CHILD, "trial": None}))
    child = child.model_copy(update={"trial_of": story.record.run_id, "trial_stage": story.stage()})

    answered = ask(story, f"rollback {CHILD}", ADA, child)

    take(story, answered)
    assert story.trial.rollback_wanted_by == "ada"


def test_neither_run_is_relaunched_by_command_while_the_trial_decides() -> None:
    story = Story()
    story.cut_over()

    refused = ask(story, f"relaunch {story.record.run_id}")

    assert refused.decision.run is None
    assert "trial as hero-next is under way" in refused.telling.update.headline


def test_a_trial_is_shown_to_anybody_with_its_stages_and_its_gates() -> None:
    story = Story()
    story.cut_over()
    story.look(child=story.child(), comparison=compared(Outcome.CANNOT_TELL))

    shown = ask(story, "trial", slack("U0NOBODY")).telling.update

    assert "the child trains" in shown.headline
    assert any("the old run is stopped" in line for line in shown.evidence)
    assert any("loss mean" in line for line in shown.evidence)


def test_a_command_that_comes_too_early_or_too_late_says_so() -> None:
    story = Story()
    assert "has had no trial" in ask(None, "trial", ADA, record()).telling.update.headline
    story.agree()
    assert "nothing to ask now" in ask(story, "trial go").telling.update.headline
    story.look(guards=(guard(),))
    assert ask(story, "trial cutover").decision.run is None
    assert ask(story, "trial abandon extra words").decision.run is None
