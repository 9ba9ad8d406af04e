"""A part goes from one person to another only when both have said so, and an edit of the file counts more."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.audit import ATTEMPTS
from bot.model.chronicle import HandedOver
from bot.model.contract import Contract
from bot.model.delivery import ChannelName
from bot.model.person import Actor, Person
from bot.model.record import Record
from bot.model.roles import with_roles
from bot.model.run import Run
from bot.model.value import PersonName
from handlers.command import answer_command
from handlers.commands.question import Answered
from handlers.gate import Allowed, Attempt, Turned, judge_attempt
from tests.fakes.snapshots import AT, RUN, contract
from tests.unit.handlers.scene import (
    ADA,
    BOB,
    GUEST,
    MEMBER,
    PEOPLE,
    SLACK_AFTER,
    context,
    place,
    record,
    request,
    slack,
)
from tests.unit.handlers.test_command import a_question

ALICE, BOBBY = slack("U0ADA"), slack("U0BOB")
KIM = Person(name=PersonName("kim"), slack="U0KIM")


def say(text: str, who: Actor, known: Record, promised: Contract | None = None, **fields: Any) -> Answered:
    effective = with_roles(promised or contract(), known.run.roles)
    surroundings = context().model_copy(update={"contract": effective})
    question = a_question(text, actor=who, records=(known,), contexts={RUN: surroundings}, **fields)
    return answer_command(question.model_copy(update={"people": (*PEOPLE, KIM)}))


def after(known: Record, answered: Answered) -> Record:
    run = answered.decision.run
    return known if run is None else known.model_copy(update={"run": run})


def dri_of(known: Record, promised: Contract | None = None) -> str:
    return with_roles(promised or contract(), known.run.roles).dri


def handed_over() -> Record:
    known = record()
    known = after(known, say("handoff bob", ALICE, known))
    return after(known, say("handoff accept", BOBBY, known))


def test_an_offer_alone_changes_nothing_and_asks_the_other() -> None:
    answered = say("handoff bob", ALICE, record())

    assert dri_of(after(record(), answered)) == ADA
    (told,) = answered.decision.tell
    assert told.update.asked == BOB
    assert "bob, do you agree?" in told.update.headline
    assert answered.telling.update.headline == "Noted; it waits for bob."


def test_both_yeses_make_the_taker_the_dri_with_all_that_is_needed() -> None:
    known = after(record(), say("handoff bob", ALICE, record()))

    done = say("handoff accept", BOBBY, known)

    assert dri_of(after(known, done)) == BOB
    (told,) = done.decision.tell
    assert told.update.headline == "DRI of this run is now bob; it was ada"
    labels = {line.split(":")[0] for line in told.update.evidence}
    assert {"state", "launches", "W&B", "launch again with", "as a file"} <= labels
    (happened,) = done.decision.happened
    assert isinstance(happened, HandedOver)
    assert (happened.changes[0].before, happened.changes[0].after) == ("ada", "bob")
    assert [entry.what for entry in done.decision.audit] == ["handed_over"]


def test_who_asks_for_the_part_needs_the_yes_of_who_has_it() -> None:
    known = after(record(), say("handoff bob", BOBBY, record()))

    alone = after(known, say("handoff accept", BOBBY, known))
    together = after(known, say("handoff accept", ALICE, known))

    assert dri_of(alone) == ADA
    assert dri_of(together) == BOB


def test_a_third_person_can_neither_begin_nor_confirm_it() -> None:
    both = handed_over()  # bob has it now
    offered = after(record(), say("handoff bob", ALICE, record()))

    assert say("handoff eve", ALICE, both).decision.run is None
    assert say("handoff accept", ALICE, offered).decision.run is None
    assert say("handoff accept", slack("U0STRANGER"), offered).decision.run is None
    assert say("handoff accept", BOBBY, offered, standing=GUEST).decision.run is None


def test_who_has_no_say_in_a_hand_over_and_tries_is_in_the_audit_log() -> None:
    both = handed_over()  # bob has it now
    offered = after(record(), say("handoff bob", ALICE, record()))

    for answered in (
        say("handoff ada as deputy", slack("U0KIM"), both),
        say("handoff accept", slack("U0KIM"), offered),
        say("handoff decline", slack("U0KIM"), offered),
        say("handoff accept", ALICE, offered),
    ):
        (entry,) = answered.decision.audit
        assert (entry.run_id, entry.what, entry.why) == (RUN, "command_refused", "not_theirs")
    assert {entry.what for entry in say("handoff bob", ALICE, record()).decision.audit} <= ATTEMPTS


def test_a_deputy_does_not_become_dri_where_too_few_would_be_left_to_say_yes() -> None:
    two = contract(deputies=("bob",), approval={"deputies": True, "quorum": 2})

    refused = say("handoff bob", ALICE, record(), two)

    assert refused.decision.run is None
    assert refused.telling.update.headline.startswith("With bob as DRI no request could be approved: it takes 2 yeses")
    # Neither does one whose offer was made while there were more of them.
    offered = after(record(), say("handoff bob", ALICE, record()))
    assert dri_of(after(offered, say("handoff accept", BOBBY, offered, two)), two) == ADA
    three = contract(deputies=("bob", "kim"), approval={"deputies": True, "quorum": 2})
    assert say("handoff bob", ALICE, record(), three).decision.run is not None


def test_an_offer_that_has_expired_is_none_any_more() -> None:
    known = after(record(), say("handoff bob", ALICE, record()))

    late = say("handoff accept", BOBBY, known, at=AT + timedelta(hours=24))

    assert late.decision.run is None
    assert "expired" in late.telling.update.headline


def test_either_of_the_two_can_decline() -> None:
    known = after(record(), say("handoff bob", ALICE, record()))

    for who in (ALICE, BOBBY):
        declined = after(known, say("handoff decline", who, known))
        assert declined.run.handover is None
        assert dri_of(declined) == ADA


def test_the_gate_follows_the_hand_over() -> None:
    known = handed_over().model_copy(update={"requests": (request(dri=BOB),), "posted": record().posted})
    surroundings = context().model_copy(update={"contract": with_roles(contract(), known.run.roles)})

    def judged(who: Actor) -> Allowed | Turned:
        attempt = Attempt(
            actor=who,
            standing=MEMBER,
            place=place(who.platform, SLACK_AFTER),
            request="R7",
            is_approval=True,
            said_at=AT,
        )
        return judge_attempt(known, attempt, surroundings)

    assert isinstance(judged(BOBBY), Allowed)
    assert isinstance(judged(ALICE), Turned)


def test_an_edit_of_the_file_counts_more_than_an_older_hand_over() -> None:
    known = handed_over()

    assert dri_of(known, contract(dri="ada")) == BOB
    assert dri_of(known, contract(dri="eve")) == "eve"


def test_a_part_that_came_back_is_where_it_was() -> None:
    known = handed_over()
    known = after(known, say("handoff ada", BOBBY, known))
    known = after(known, say("handoff accept", ALICE, known))

    assert dri_of(known) == ADA
    assert len(known.run.roles) == 1


@pytest.mark.parametrize(("role", "field", "value"), [("owner", "owner", BOB), ("deputy", "deputies", (BOB,))])
def test_the_other_parts_are_handed_over_in_the_same_way(role: str, field: str, value: object) -> None:
    known = after(record(), say(f"handoff {RUN} bob as {role}", ALICE, record()))
    known = after(known, say(f"handoff {RUN} accept", BOBBY, known))

    assert getattr(with_roles(contract(), known.run.roles), field) == value
    assert dri_of(known) == ADA


@pytest.mark.parametrize(
    "text", ["handoff nobody", "handoff ada", "handoff bob as king", "handoff bob as", "handoff accept"]
)
def test_what_makes_no_sense_is_answered_and_changes_nothing(text: str) -> None:
    answered = say(text, ALICE, record())

    assert answered.decision.run is None
    assert answered.telling.update.headline


def test_without_a_name_it_shows_what_the_next_person_needs() -> None:
    answered = say("handoff", slack("U0STRANGER"), Record(run=Run(run_id=RUN)))

    assert answered.decision.run is None
    assert any(line.startswith("launch again with") for line in answered.telling.update.evidence)


def test_a_part_goes_to_nobody_whom_hero_cannot_ask() -> None:
    known = record()
    slack_only = context(channels=(ChannelName.SLACK, ChannelName.EMAIL))
    out_of_reach = Person(name=PersonName("kim"), github="kim", email="kim@example.org")
    question = a_question("handoff kim", records=(known,), contexts={RUN: slack_only})

    answered = answer_command(question.model_copy(update={"people": (*PEOPLE, out_of_reach)}))

    assert answered.decision.run is None
    assert not answered.decision.tell
    assert answered.telling.update.headline.startswith("Hero reaches kim on no channel that is configured")
    assert "[people.kim]" in answered.telling.update.evidence[1]


def test_a_mistyped_run_or_person_hands_nothing_over_and_says_whom_and_what_there_is() -> None:
    known = record()

    for text in ("handoff nosuch bob", "handoff nosuch bob as owner", "handoff nosuch accept"):
        answered = say(text, ALICE, known, here=RUN)
        assert answered.telling.update.headline == "There is no run nosuch."
        assert answered.decision.run is None
    alone = say("handoff nosuch", ALICE, known, here=RUN)
    assert alone.telling.update.headline == "nosuch is no run, and nobody on record; nothing was changed."
    assert alone.telling.update.evidence == (f"runs: {RUN}", "people: ada, bob, eva, eve, kim")
    assert "Nobody on record is called carol" in say("handoff carol as owner", ALICE, known).telling.update.headline
