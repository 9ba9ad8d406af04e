"""Where a contract lets deputies decide, or asks for more than one yes: each person counts once, and one no is a no."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from bot.model.event import Place, Unsaid
from bot.model.person import Actor
from bot.model.plan import RequestState
from bot.model.record import Decision, Record
from handlers.context import Context
from handlers.reply import decide_said, decide_unsaid
from tests.fakes.snapshots import AT, contract
from tests.unit.handlers.scene import ADA, BOB, MEMBER, context, github, grants, record, request, said, slack

NOW = AT + timedelta(minutes=6)
BY_DEPUTY = {"deputies": ("bob",), "approval": {"deputies": True}}
BY_BOTH = {"deputies": ("bob",), "approval": {"deputies": True, "quorum": 2}}
ALICE, BOBBY = slack("U0ADA"), slack("U0BOB")


def say(text: str, who: Actor, around: Context, known: Record) -> Decision:
    return decide_said(known, said(text, who), MEMBER, around, NOW)


def after(known: Record, decision: Decision) -> Record:
    return known.model_copy(update={"requests": decision.requests}) if decision.requests else known


def test_a_deputy_decides_only_where_the_contract_says_so() -> None:
    known = record(request())

    (granted,) = grants(say("approve R7", BOBBY, context(**BY_DEPUTY), known))

    assert granted.grant.by == BOB
    assert grants(say("approve R7", BOBBY, context(deputies=("bob",)), known)) == ()


def test_of_two_that_are_needed_the_first_yes_does_nothing_yet() -> None:
    known = record(request())

    first = say("approve R7", ALICE, context(**BY_BOTH), known)

    assert grants(first) == ()
    (asked,) = first.requests
    assert asked.state is RequestState.OPEN
    (told,) = first.tell
    assert told.update.headline == "ada says yes to R7: 1 of 2"
    assert told.update.next == "1 more of bob; nothing is changed before that"
    (granted,) = grants(say("approve R7", BOBBY, context(**BY_BOTH), after(known, first)))
    assert granted.grant.by == BOB


def test_one_person_counts_once_from_however_many_accounts() -> None:
    known = record(request())
    known = after(known, say("approve R7", ALICE, context(**BY_BOTH), known))

    for again in (ALICE, github("ada", 11)):
        second = say("approve R7", again, context(**BY_BOTH), known)
        assert grants(second) == ()
        assert second.requests == ()
        assert [entry.detail.rsplit(": ", 1)[-1] for entry in second.audit] == ["said_already"]


def test_one_no_is_a_no() -> None:
    known = record(request())
    known = after(known, say("approve R7", ALICE, context(**BY_BOTH), known))

    (denied,) = say("deny R7 because no", BOBBY, context(**BY_BOTH), known).requests

    assert (denied.state, denied.decided_by) == (RequestState.DENIED, BOB)


def test_a_yes_that_is_deleted_before_the_last_one_does_not_count() -> None:
    known = record(request())
    event = said("approve R7", ALICE)
    known = after(known, decide_said(known, event, MEMBER, context(**BY_BOTH), NOW))
    gone = Unsaid(actor=ALICE, place=Place.model_validate(event.place.model_dump()), said_at=NOW)

    known = after(known, decide_unsaid(known, gone, context(**BY_BOTH), NOW))

    assert known.requests[0].yeses == ()
    assert grants(say("approve R7", BOBBY, context(**BY_BOTH), known)) == ()


def test_a_yes_of_somebody_who_is_no_deputy_any_more_does_not_count() -> None:
    """Bob said yes and handed his part on before the last yes came."""
    known = record(request())
    known = after(known, say("approve R7", BOBBY, context(**BY_BOTH), known))
    without_bob = context(deputies=("cy",), approval={"deputies": True, "quorum": 2})

    last = say("approve R7", ALICE, without_bob, known)

    assert grants(last) == ()
    assert [yes.by for yes in last.requests[0].yeses] == ["ada"]


def test_a_stranger_and_a_third_person_count_for_nothing() -> None:
    known = record(request())

    for who in (slack("U0STRANGER"), slack("U0BOB")):
        assert say("approve R7", who, context(approval={"quorum": 1}), known).requests == ()


@pytest.mark.parametrize(
    "fields", [{"approval": {"quorum": 2}}, {"deputies": ("bob",), "approval": {"deputies": True, "quorum": 3}}]
)
def test_more_yeses_than_people_are_refused_when_the_contract_is_read(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="no request could ever be approved"):
        contract(**fields)


def test_the_dri_alone_is_the_rule() -> None:
    assert contract().approvers == {ADA}
