"""What the clock alone changes: requests end or are brought up again, a status falls due, a silent watch is noticed."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.delivery import ChannelName, Told
from bot.model.plan import RequestState
from bot.model.record import Decision, Record
from bot.model.run import Run, RunState
from bot.model.update import UpdateKind
from handlers.timers import UNCHECKED, decide_time_passed
from tests.fakes.snapshots import AT, RUN, later
from tests.unit.handlers.scene import ADA, context, kinds, record, request

LONG_AGO = AT - timedelta(days=3)


def passes(known: Record, hours: float, **fields: Any) -> Decision:
    """Return what happens that many hours after ``AT``, at which the run was checked and told of."""
    at = AT + timedelta(hours=hours)
    if "is_checked" not in fields or fields.pop("is_checked"):
        known = known.model_copy(update={"run": known.run.model_copy(update={"last_checked_at": at})})
    return decide_time_passed(known, context(), at, since=fields.pop("since", LONG_AGO), noise=fields.get("noise"))


def told_of(**fields: Any) -> Record:
    run = Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT, last_told_at=AT)
    return record(**{"run": run} | fields)


def test_nothing_is_due_soon_after_the_question() -> None:
    assert passes(record(request()), 3.9) == Decision()


def test_an_unanswered_request_is_brought_up_every_four_hours() -> None:
    first = passes(record(request()), 4)
    reminded = record(*first.requests)

    assert kinds(first) == [UpdateKind.REQUEST_REMINDER]
    assert first.tell[0].update.asked == ADA
    assert first.requests[0].state is RequestState.OPEN
    assert kinds(passes(reminded, 7.9)) == []
    assert kinds(passes(reminded, 8)) == [UpdateKind.REQUEST_REMINDER]


def test_an_unanswered_request_expires_and_says_how_to_ask_again() -> None:
    waiting = record(request(reminded_at=AT + timedelta(hours=23)))

    decision = passes(waiting, 24.1)

    assert passes(waiting, 24).requests == (), "an answer given in time may be read a little later"
    assert [r.state for r in decision.requests] == [RequestState.EXPIRED]
    assert kinds(decision) == [UpdateKind.REQUEST_ANSWERED, UpdateKind.ACTION_PROGRESS]
    edited, told = decision.tell
    assert edited.target.slot == "request:7"
    assert not told.target.slot, "an edit alone rings nobody's phone"
    assert f"`/hero relaunch {RUN}` asks again" in told.update.next
    assert [(e.what, e.detail) for e in decision.audit] == [("request_expired", "R7")]


def test_after_a_restart_the_channels_are_read_before_a_request_expires() -> None:
    waiting = record(request(reminded_at=AT + timedelta(hours=23)))
    started = AT + timedelta(hours=30)

    assert passes(waiting, 30.01, since=started).requests == ()
    assert [r.state for r in passes(waiting, 30.1, since=started).requests] == [RequestState.EXPIRED]


@pytest.mark.parametrize("state", [s for s in RequestState if s is not RequestState.OPEN])
def test_what_is_decided_neither_expires_nor_is_brought_up(state: RequestState) -> None:
    assert passes(record(request(state=state)), 23) == Decision()


def test_a_routine_status_is_due_a_day_after_the_last_news() -> None:
    assert passes(told_of(), 23.9) == Decision()

    decision = passes(told_of(), 24)

    assert kinds(decision) == [UpdateKind.ROUTINE_STATUS]
    assert decision.run is not None
    assert decision.run.last_told_at == AT + timedelta(hours=24)
    assert decision.tell[0].update.standing is not None
    assert decision.tell[0].update.next == (
        "the next check is due within 15 min; true at 2026-11-30 04:00 UTC; if nothing newer stands here by 2026-12-01 "
        "04:30 UTC, Hero is not looking"
    )


@pytest.mark.parametrize("state", [RunState.COMPLETED, RunState.STOPPED])
def test_a_run_that_is_over_needs_no_routine_status(state: RunState) -> None:
    known = told_of()
    over = known.model_copy(update={"run": known.run.model_copy(update={"state": state})})

    assert passes(over, 30) == Decision()


def test_a_reminder_takes_the_place_of_the_routine_status() -> None:
    waiting = told_of(requests=(request(expires_at=AT + timedelta(days=2)),))

    assert kinds(passes(waiting, 24)) == [UpdateKind.REQUEST_REMINDER]


def test_a_run_that_was_not_checked_for_two_cadences_is_said_to_be_unwatched_once() -> None:
    """Field reports R17 and R36: monitor stale is not run unhealthy."""
    assert passes(told_of(), 0.5, is_checked=False) == Decision()

    first = passes(told_of(), 0.51, is_checked=False)
    second = passes(told_of(incidents=first.incidents), 1.5, is_checked=False)

    assert [i.check for i in first.incidents] == [UNCHECKED]
    (update,) = [t.update for t in first.tell]
    assert update.kind is UpdateKind.INCIDENT_OPENED
    assert "Hero has not been able to check this run for 30 min" in update.headline
    assert "says nothing about the run" in update.next
    assert "last check: 2026-11-29 04:00 UTC" in update.evidence
    assert second == Decision()


def test_a_check_that_gets_through_closes_it() -> None:
    opened = passes(told_of(), 1, is_checked=False).incidents

    decision = passes(told_of(incidents=opened), 1)

    assert kinds(decision) == [UpdateKind.INCIDENT_RESOLVED]
    assert decision.incidents[0].is_resolved


def test_a_run_that_never_was_checked_is_noticed_too() -> None:
    never = Record(run=Run(run_id=RUN))

    early = passes(never, 0.4, is_checked=False, since=AT)
    late = passes(never, 0.6, is_checked=False, since=AT)

    assert early == Decision()
    assert [i.check for i in late.incidents] == [UNCHECKED]
    assert "last check: none yet" in late.tell[0].update.evidence


def test_a_hero_that_was_down_checks_first_and_complains_only_if_that_fails() -> None:
    known = told_of()
    start = later(600)

    at_once = decide_time_passed(known, context(), start, since=start)
    after_a_while = decide_time_passed(known, context(), start + timedelta(minutes=6), since=start)

    assert at_once == Decision()
    assert [i.check for i in after_a_while.incidents] == [UNCHECKED]


def test_a_restart_alone_closes_no_incident() -> None:
    opened = passes(told_of(), 1, is_checked=False).incidents
    start = later(120)

    decision = decide_time_passed(told_of(incidents=opened), context(), start, since=start)

    assert decision == Decision()


def test_a_paused_run_is_neither_missed_nor_reported_on() -> None:
    known = told_of()
    paused = known.model_copy(update={"run": known.run.model_copy(update={"is_paused": True})})

    assert passes(paused, 30, is_checked=False) == Decision()


def test_the_routine_status_says_how_many_messages_there_were() -> None:
    told = Told(day={}, week={ChannelName.SLACK: 12, ChannelName.GITHUB: 5})

    decision = passes(told_of(), 24, noise=told)

    assert decision.tell[0].update.evidence[-1] == (
        "messages about this run: none in the last 24h, 5 on github, 12 on slack in the last 7 days"
    )
