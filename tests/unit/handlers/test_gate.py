"""Who may decide: every forged, stale or malformed yes is refused, and each real one makes exactly one grant."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from bot.model.action import Action, ActionState, StepName
from bot.model.event import Place, Pressed, Said, Unsaid
from bot.model.person import Person, Platform, Standing
from bot.model.plan import Grant, Request, RequestState
from bot.model.reading import Known, Reading
from bot.model.record import Decision
from bot.model.update import UpdateKind
from bot.model.value import JobId, PersonName
from handlers.reply import decide_pressed, decide_said, decide_unsaid
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import AT
from tests.unit.handlers.scene import (
    A_BOT,
    BOB,
    DARK,
    EVERYWHERE,
    GUEST,
    MEMBER,
    PEOPLE,
    console,
    context,
    github,
    grants,
    pressed,
    record,
    request,
    said,
    slack,
)

NOW = AT + timedelta(minutes=6)
GONE: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="deleted"), at=AT)
STRANGER: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="another workspace"), at=AT)


@dataclass
class Try:
    """One attempt to decide R7, an open request put to ada; what it says is refused for ``why``."""

    name: str
    event: Said | Pressed
    why: str
    standing: Reading[Standing] | None = MEMBER
    requests: tuple[Request, ...] = (request(),)
    surroundings: dict[str, Any] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)
    is_answered: bool = True


def in_state(state: RequestState, **fields: Any) -> Request:
    return request(state=state, decided_at=AT + timedelta(minutes=1), **fields)


def under_way() -> Action:
    grant = Grant(request=6, run_id=a_plan().run_id, digest="0", by=BOB, at=AT, expires_at=AT + timedelta(hours=1))
    return Action(number=1, run_id=grant.run_id, plan=a_plan(), grant=grant)


TWIN = slack("U0TWIN")
TWO_AT_THE_TERMINAL = {"people": (*PEOPLE, Person(name=PersonName("zoe"), console=True))}
NOBODY_AT_THE_TERMINAL = {"people": tuple(p.model_copy(update={"console": False}) for p in PEOPLE)}

REFUSED = [
    # Bots
    Try("a bot on Slack", said("approve R7", slack(is_bot=True)), "a_bot", is_answered=False),
    Try("a bot on GitHub", said("approve R7", github(is_bot=True)), "a_bot", is_answered=False),
    Try("a bot by the platform's word", said("approve R7"), "a_bot", A_BOT, is_answered=False),
    Try("a bot that presses", pressed(actor=slack(is_bot=True)), "a_bot", is_answered=False),
    Try("a bot that edits", said("approve", slack(is_bot=True), is_edited=True), "a_bot", is_answered=False),
    # Edited
    Try("an edited message on Slack", said("approve R7", is_edited=True), "edited"),
    Try("an edited comment", said("approve R7", github(), is_edited=True), "edited"),
    Try("an edited no", said("deny R7", is_edited=True), "edited"),
    # Not after the request
    Try("before the request on Slack", said("approve R7", message="200.000199"), "before_the_request"),
    Try("before it by the last digit of the ts", said("approve", message="200.0001"), "before_the_request"),
    Try("the request's own message", said("approve R7", message="200.000200"), "before_the_request"),
    Try("before the request on GitHub", said("approve R7", github(), "1999"), "before_the_request"),
    Try("a shorter id is an older one", said("approve R7", github(), "999"), "before_the_request"),
    Try("before the request at the console", said("approve", console(), "1999"), "before_the_request"),
    Try("without a message id", said("approve R7", message=""), "before_the_request"),
    Try("with an id that is no number", said("approve R7", message="latest"), "before_the_request"),
    Try("the request was never posted here", said("approve R7"), "before_the_request", known={"posted": ()}),
    # Another request
    Try("another run's request", said("approve R3"), "other_request"),
    Try("an id that nobody gave", said("approve R999999999"), "other_request"),
    Try("a button of an unknown request", pressed("R99"), "other_request"),
    Try("a forged button without an id", pressed(""), "other_request"),
    Try("a forged button with words for an id", pressed("R7 please"), "other_request"),
    # No longer open
    Try("an expired request", said("approve R7"), "already_decided", requests=(in_state(RequestState.EXPIRED),)),
    Try("a void request", said("approve R7"), "already_decided", requests=(in_state(RequestState.VOID),)),
    Try("a withdrawn request", said("approve R7"), "already_decided", requests=(in_state(RequestState.WITHDRAWN),)),
    Try("a denied request", said("approve"), "already_decided", requests=(in_state(RequestState.DENIED),)),
    Try("a no after the yes", said("deny R7"), "already_decided", requests=(in_state(RequestState.GRANTED),)),
    Try("a second yes", said("approve R7"), "already_decided", requests=(in_state(RequestState.GRANTED),)),
    Try("the button once more", pressed(), "already_decided", requests=(in_state(RequestState.GRANTED),)),
    Try("the void one's button", pressed(), "already_decided", requests=(in_state(RequestState.VOID), request(8))),
    Try("no request at all", said("approve"), "no_request", requests=()),
    # Too late, though nobody has noted the end yet
    Try("after the end", said("approve R7", at=AT + timedelta(hours=24)), "expired"),
    Try("the button after the end", pressed(at=AT + timedelta(hours=25)), "expired"),
    # Which one?
    Try("two wait and none is named", said("approve"), "ambiguous", requests=(request(), request(8))),
    # Who?
    Try("a colleague", said("approve R7", slack("U0BOB")), "not_the_dri"),
    Try("a colleague on GitHub", said("approve R7", github("bob", 22)), "not_the_dri"),
    Try("a colleague who presses", pressed(actor=slack("U0BOB")), "not_the_dri"),
    Try("a colleague's no", said("deny R7", slack("U0BOB")), "not_the_dri"),
    Try("a deputy", said("approve R7", slack("U0BOB")), "not_the_dri", surroundings={"deputies": ("bob",)}),
    Try("the owner", said("approve R7", slack("U0BOB")), "not_the_dri", surroundings={"owner": "bob"}),
    Try("the former DRI", said("approve R7"), "another_dri", surroundings={"dri": "bob"}),
    Try("the new DRI, of the old one's", said("approve", slack("U0BOB")), "another_dri", surroundings={"dri": "bob"}),
    Try("nobody on record", said("approve R7", slack("U0EVIL")), "nobody_on_record"),
    Try("the DRI's name shown", said("approve R7", slack("U0EVIL", display_name="ada")), "nobody_on_record"),
    Try("the DRI's id for a name", pressed(actor=slack("U0EVIL", display_name="U0ADA")), "nobody_on_record"),
    Try("the id in small letters", said("approve R7", slack("u0ada")), "nobody_on_record"),
    Try("the DRI's login, taken over", said("approve R7", github("ada", 99)), "nobody_on_record"),
    Try("a Slack id on GitHub", said("approve R7", github("U0ADA", 99)), "nobody_on_record"),
    Try("one account of two people", said("approve R7", TWIN), "two_people"),
    Try("nobody at the terminal", said("approve", console()), "nobody_on_record", surroundings=NOBODY_AT_THE_TERMINAL),
    Try("two at the terminal", said("approve", console()), "two_people", surroundings=TWO_AT_THE_TERMINAL),
    Try("a guest", said("approve R7"), "no_full_member", GUEST),
    Try("a guest who presses", pressed(), "no_full_member", GUEST),
    Try("a deleted account", said("approve R7"), "no_full_member", GONE),
    Try("from another workspace", said("approve R7"), "no_full_member", STRANGER),
    Try("a membership that could not be asked", said("approve R7"), "membership_unknown", DARK),
    Try("a membership that was not asked", pressed(), "membership_unknown", None),
    # Something is under way
    Try("an action is under way", said("approve R7"), "busy", known={"actions": (under_way(),)}),
]


def decide(attempt: Try) -> Decision:
    around = context(**attempt.surroundings)
    known = record(*attempt.requests, **attempt.known)
    if isinstance(attempt.event, Said):
        return decide_said(known, attempt.event, attempt.standing, around, NOW)
    return decide_pressed(known, attempt.event, attempt.standing, around, NOW)


@pytest.mark.parametrize("attempt", REFUSED, ids=lambda attempt: attempt.name)
def test_what_is_no_valid_decision_grants_nothing_and_is_noted(attempt: Try) -> None:
    decision = decide(attempt)

    assert decision.actions == ()
    assert decision.requests == ()
    assert decision.run is None
    (entry,) = decision.audit
    assert entry.what == "decision_refused"
    assert entry.detail.endswith(f": {attempt.why}")
    assert attempt.event.actor.user_id in entry.who


@pytest.mark.parametrize("attempt", REFUSED, ids=lambda attempt: attempt.name)
def test_whoever_is_refused_is_answered_in_private_and_a_bot_never(attempt: Try) -> None:
    told = decide(attempt).tell

    if not attempt.is_answered:
        assert told == ()
        return
    (answer,) = told
    actor = attempt.event.actor
    assert answer.update.kind is UpdateKind.ANSWER
    assert answer.target.private_to == actor.user_id
    assert answer.target.conversation == attempt.event.place.conversation
    assert [name.value for name in answer.channels] == [actor.platform.value]
    assert answer.update.asked is None
    assert answer.update.headline.endswith((".", "it."))


def test_the_table_of_refusals_is_not_thin() -> None:
    assert len(REFUSED) >= 55
    assert len({attempt.name for attempt in REFUSED}) == len(REFUSED)


NO_DECISION = [
    "> approve R7",
    "```\napprove R7\n```",
    "`approve R7`",
    "On Monday ada wrote:\n> approve R7",
    "<!-- approve R7 -->",
    "what does this do?",
    "",
    "    approve R7",
]


@pytest.mark.parametrize("text", NO_DECISION)
def test_what_nobody_said_in_their_own_words_decides_nothing_and_is_noted_when_it_speaks_of_it(text: str) -> None:
    decision = decide_said(record(request()), said(text), MEMBER, context(), NOW)

    assert (decision.actions, decision.requests) == ((), ())
    assert [entry.why for entry in decision.audit] == (["not_own_words"] if "approve" in text else [])
    assert len(decision.tell) == len(decision.audit)


UNCLEAR = [
    "approve R7 but use step 120000",
    "don't approve",
    "approve? not yet",
    "yes",
    "lgtm",
    "approve R7\nwait, use the other one",
    "approve R7 and R8",
    "approve\ndeny",
    "I approve",
    "аpprove R7",  # noqa: RUF001 - the Cyrillic letter is the point
]


@pytest.mark.parametrize("text", UNCLEAR)
def test_a_conditioned_yes_of_the_dri_is_asked_about_and_grants_nothing(text: str) -> None:
    decision = decide_said(record(request()), said(text), MEMBER, context(), NOW)

    assert grants(decision) == ()
    assert decision.requests == ()
    assert [entry.what for entry in decision.audit] == ["decision_unclear"]
    (answer,) = decision.tell
    assert "`approve R7`" in answer.update.headline
    assert answer.target.private_to == "U0ADA"


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_colleagues_discuss_is_not_interrupted(text: str) -> None:
    decision = decide_said(record(request()), said(text, slack("U0BOB")), MEMBER, context(), NOW)

    assert (decision.actions, decision.requests, decision.tell) == ((), (), ())
    assert [entry.what for entry in decision.audit] == (["decision_unclear"] if "approv" in fold(text) else [])


def fold(text: str) -> str:
    return text.replace("\u0430", "a")


LEGITIMATE = [
    said("approve R7"),
    said("approve"),
    said("APPROVE r7"),
    said("Approve."),
    said("@hero approve R7"),
    said("> Hero asks: may I?\n> `approve R7`\n\napprove R7"),
    said("approve R7", github()),
    said("approve", github("ada-renamed", 11)),
    said("approve", github("ADA", 11)),
    said("approve", console()),
    said("approve R7", slack(display_name="Renamed Person")),
    said("approve R7", message="200.0003"),
    said("approve R7", message="1000.000001"),
    said("approve R7", at=AT + timedelta(hours=24) - timedelta(seconds=1)),
    pressed(),
    pressed("r7"),
]


@pytest.mark.parametrize("event", LEGITIMATE, ids=str)
def test_each_way_in_which_the_dri_says_yes_makes_exactly_one_grant(event: Said | Pressed) -> None:
    waiting = request()
    known = record(waiting)
    decide_event: Any = decide_said if isinstance(event, Said) else decide_pressed

    decision: Decision = decide_event(known, event, MEMBER, context(), NOW)

    (action,) = grants(decision)
    assert action.number == known.next_action
    assert action.plan == waiting.plan
    assert action.grant.digest == waiting.digest
    assert action.grant.by == "ada"
    assert action.grant.covers(waiting.plan, NOW)
    assert not action.grant.covers(waiting.plan, NOW + timedelta(hours=1))
    (granted,) = decision.requests
    assert granted.state is RequestState.GRANTED
    assert [entry.what for entry in decision.audit] == ["approved"]
    told = {telling.update.kind for telling in decision.tell}
    assert told == {UpdateKind.REQUEST_ANSWERED, UpdateKind.ACTION_PROGRESS}
    assert all(telling.channels == EVERYWHERE for telling in decision.tell)


@pytest.mark.parametrize("state", [RequestState.GRANTED, RequestState.DENIED])
def test_the_later_of_two_answers_hears_who_was_first_and_when(state: RequestState) -> None:
    """Field report R43."""
    decided = request(state=state, decided_by="ada", decided_at=AT + timedelta(minutes=1))

    decision = decide_said(record(decided), said("approve R7", github()), MEMBER, context(), NOW)

    (answer,) = decision.tell
    assert "already handled" in answer.update.headline
    assert "by ada at 2026-11-29 04:01 UTC" in answer.update.headline


def test_the_named_one_of_two_waiting_requests_is_decided() -> None:
    known = record(request(), request(8))
    known = known.model_copy(
        update={"posted": (*known.posted, known.posted[1].model_copy(update={"slot": "request:8"}))}
    )

    decision = decide_said(known, said("approve R8"), MEMBER, context(), NOW)

    assert [r.number for r in decision.requests] == [8]


def test_a_no_is_kept_with_its_reason_and_changes_nothing() -> None:
    decision = decide_said(record(request()), said("deny R7 because the data is wrong"), MEMBER, context(), NOW)

    (denied,) = decision.requests
    assert denied.state is RequestState.DENIED
    assert denied.note == "the data is wrong"
    assert decision.actions == ()
    assert {t.update.kind for t in decision.tell} == {UpdateKind.REQUEST_ANSWERED, UpdateKind.ACTION_PROGRESS}


def test_a_button_says_no_as_well() -> None:
    decision = decide_pressed(record(request()), pressed(is_approval=False), MEMBER, context(), NOW)

    assert [r.state for r in decision.requests] == [RequestState.DENIED]
    assert decision.actions == ()


# Taking a yes back (field report R45)


def approved(*, begun: StepName | None = None) -> tuple[Request, Action]:
    granted = request(state=RequestState.GRANTED, decided_via="slack:C0HERO:100.000100:200.000201")
    grant = Grant(
        request=7, run_id=granted.run_id, digest=granted.digest, by=BOB, at=AT, expires_at=AT + timedelta(hours=1)
    )
    action = Action(number=2, run_id=granted.run_id, plan=granted.plan, grant=grant)
    return granted, action if begun is None else action.begun(begun, AT)


def unsaid(message: str = "200.000201") -> Unsaid:
    where = Place(conversation="C0HERO", thread="100.000100", message=message)
    return Unsaid(actor=slack(), place=where, said_at=NOW)


@pytest.mark.parametrize("begun", [None, StepName.VERIFY])
def test_an_approval_deleted_before_anything_was_changed_is_withdrawn(begun: StepName | None) -> None:
    granted, action = approved(begun=begun)

    decision = decide_unsaid(record(granted, actions=(action,)), unsaid(), context(), NOW)

    assert [a.state for a in decision.actions] == [ActionState.VOID]
    assert [r.state for r in decision.requests] == [RequestState.WITHDRAWN]
    assert [entry.what for entry in decision.audit] == ["approval_withdrawn"]
    assert "asks again" in decision.tell[0].update.next


@pytest.mark.parametrize("begun", [StepName.STOP, StepName.SUBMIT, StepName.RESTORE])
def test_an_approval_deleted_too_late_stands(begun: StepName) -> None:
    granted, action = approved(begun=StepName.STOP)
    action = action if begun is StepName.STOP else action.begun(begun, AT)

    decision = decide_unsaid(record(granted, actions=(action,)), unsaid(), context(), NOW)

    assert (decision.requests, decision.actions) == ((), ())
    assert [t.update.headline for t in decision.tell] == ["the message by which R7 was approved was deleted; it stands"]
    assert [entry.what for entry in decision.audit] == ["decision_words_deleted"]


def test_the_words_of_a_decision_that_are_deleted_after_all_is_over_change_nothing_either() -> None:
    denied = request(state=RequestState.DENIED, decided_via="slack:C0HERO:100.000100:200.000201")

    decision = decide_unsaid(record(denied), unsaid(), context(), NOW)

    assert decision.requests == ()
    assert "was denied was deleted; it stands" in decision.tell[0].update.headline


def test_deleting_another_message_withdraws_nothing() -> None:
    granted, action = approved()

    assert decide_unsaid(record(granted, actions=(action,)), unsaid("150.0"), context(), NOW) == Decision()


def test_a_person_by_login_alone_is_compared_without_case_and_never_by_another_platforms_id() -> None:
    by_login = (Person(name=PersonName("ada"), github="Ada"),)
    around = context(people=by_login)

    yes = decide_said(record(request()), said("approve", github("aDA", 99)), MEMBER, around, NOW)
    no = decide_said(record(request()), said("approve", slack("Ada")), MEMBER, around, NOW)

    assert len(grants(yes)) == 1
    assert grants(no) == ()
    assert Platform.SLACK.value in no.audit[0].who


def test_a_job_that_is_to_be_stopped_is_named_before_it_is() -> None:
    waiting = request(plan=a_plan().model_copy(update={"stop": JobId("/ann/hero")}))

    decision = decide_said(record(waiting), said("approve R7"), MEMBER, context(), NOW)

    assert any("stop /ann/hero, then submit" in t.update.next for t in decision.tell)
