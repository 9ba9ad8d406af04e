"""Told or not told, and why: n of m looks to open, a row of passes to close, one cause told once."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.incident import Acknowledged, Incident, News, Open, Pending, Silenced, begin_incident
from bot.model.reading import Gap
from bot.model.record import Record
from bot.model.run import Run
from bot.model.value import CheckId, PersonName
from bot.model.verdict import (
    Fail,
    Finding,
    Judgement,
    NotApplicable,
    Pass,
    Patience,
    Severity,
    UnknownVerdict,
    Verdict,
)
from handlers.news import changes_after
from tests.fakes.clock import START
from tests.fakes.snapshots import RUN

THREE_OF_FIVE = Patience(fails=3, of=5, passes=2)
SLOW = CheckId("throughput.collapse")


def finding(check: str = SLOW, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(check=CheckId(check), severity=severity, summary=f"{check} is off", advice="look")


def bad(check: str = SLOW, patience: Patience = Patience(), severity: Severity = Severity.WARNING) -> Judgement:  # noqa: B008 - frozen
    return Judgement(check=CheckId(check), verdict=Fail(finding=finding(check, severity)), patience=patience)


def fine(check: str = SLOW, patience: Patience = Patience()) -> Judgement:  # noqa: B008 - frozen
    return Judgement(check=CheckId(check), verdict=Pass(), patience=patience)


class Desk:
    """Plays looks one after the other, as the store does between two checks."""

    def __init__(self) -> None:
        self.record = Record(run=Run(run_id=RUN))
        self.at = START

    def look(self, *judgements: Judgement) -> list[News]:
        self.at += timedelta(minutes=15)
        changes = changes_after(self.record, judgements, self.at)
        self.record = self.record.model_copy(
            update={
                "incidents": tuple(i for i in changes.incidents if not i.is_resolved),
                "next_incident": max((self.record.next_incident, *(i.number + 1 for i in changes.incidents))),
            }
        )
        return [change.news for change in changes.changes]


def test_three_bad_looks_of_five_open_an_incident_and_two_good_ones_close_it() -> None:
    desk = Desk()
    looks = [bad, fine, bad, bad, fine, fine, bad]

    news = [desk.look(look(patience=THREE_OF_FIVE)) for look in looks]

    assert news == [
        [News.PENDING],
        [News.PENDING],
        [News.PENDING],
        [News.OPENED],
        [News.CLOSING],
        [News.RESOLVED],
        [News.PENDING],
    ]


def test_a_value_that_wobbles_around_its_limit_for_an_hour_is_told_once_and_over_at_most_once() -> None:
    """Field report R38: endless fire and resolve pairs."""
    desk = Desk()

    news = [desk.look((bad if n % 2 else fine)(patience=Patience(passes=3))) for n in range(60)]

    told = [each for look in news for each in look if each.is_told]
    assert told == [News.OPENED]


def test_what_was_pending_and_went_away_is_never_reported_as_over() -> None:
    desk = Desk()
    desk.look(bad(patience=Patience(fails=2, of=2)))

    assert desk.look(fine(patience=Patience(fails=2, of=2))) == [News.PENDING]
    assert desk.look(fine(patience=Patience(fails=2, of=2))) == [News.DROPPED]
    assert desk.record.incidents == ()


def test_a_dead_job_explains_that_nothing_moves_until_it_lives_again() -> None:
    desk = Desk()

    both = desk.look(bad("job.ended", severity=Severity.CRITICAL), bad("progress.stalled"))
    later = desk.look(fine("job.ended"), bad("progress.stalled"))

    assert both == [News.OPENED, News.INHIBITED]
    assert later == [News.RESOLVED, News.OPENED]


def test_an_inhibited_incident_that_ends_before_it_was_told_is_not_reported_as_over() -> None:
    desk = Desk()
    desk.look(bad("job.ended"), bad("progress.stalled"))

    assert desk.look(fine("job.ended"), fine("progress.stalled")) == [News.RESOLVED, News.DROPPED]


def test_a_silence_mutes_even_what_gets_worse_and_its_end_is_told() -> None:
    desk = Desk()
    desk.look(bad())
    (incident,) = desk.record.incidents
    until = desk.at + timedelta(minutes=40)
    silenced = incident.model_copy(update={"state": Silenced(by=PersonName("ada"), at=desk.at, until=until)})
    desk.record = desk.record.model_copy(update={"incidents": (silenced,)})

    news = [desk.look(bad(severity=Severity.CRITICAL)) for _ in range(3)]

    assert news == [[News.SILENCED], [News.SILENCED], [News.SILENCE_ENDED]]
    assert isinstance(desk.record.incidents[0].state, Open)


def test_what_somebody_looks_after_is_open_again_once_it_is_graver_than_they_took_on() -> None:
    desk = Desk()
    desk.look(bad())
    (incident,) = desk.record.incidents
    taken = Acknowledged(by=PersonName("ada"), at=desk.at, severity=Severity.WARNING)
    desk.record = desk.record.model_copy(update={"incidents": (incident.model_copy(update={"state": taken}),)})

    news = [desk.look(bad(severity=each)) for each in (Severity.WARNING, Severity.CRITICAL, Severity.CRITICAL)]

    assert news == [[News.NOTHING_NEW], [News.WORSE], [News.NOTHING_NEW]]
    assert isinstance(desk.record.incidents[0].state, Open)
    # One who knew the worst when they took it on is not asked again, however it wobbles.
    grave = taken.model_copy(update={"severity": Severity.CRITICAL})
    desk.record = desk.record.model_copy(update={"incidents": (incident.model_copy(update={"state": grave}),)})
    for each in (Severity.WARNING, Severity.CRITICAL):
        desk.look(bad(severity=each))
    assert isinstance(desk.record.incidents[0].state, Acknowledged)


def test_a_silenced_incident_that_ends_is_over() -> None:
    desk = Desk()
    desk.look(bad())
    (incident,) = desk.record.incidents
    silenced = Silenced(by=PersonName("ada"), at=desk.at, until=desk.at + timedelta(hours=9))
    desk.record = desk.record.model_copy(update={"incidents": (incident.model_copy(update={"state": silenced}),)})

    assert desk.look(fine()) == [News.RESOLVED]


def test_more_bad_looks_than_there_are_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="3 of 2 looks can't fail"):
        Patience(fails=3, of=2)


VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from(
    [
        Pass(),
        Fail(finding=finding()),
        Fail(finding=finding(severity=Severity.CRITICAL)),
        NotApplicable(reason="no"),
        UnknownVerdict(reason=Gap.TIMEOUT, detail="late"),
    ]
)
PATIENCE = st.builds(
    lambda fails, more, passes: Patience(fails=fails, of=fails + more, passes=passes),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(1, 4),
)


@given(verdicts=st.lists(VERDICTS, max_size=40), patience=PATIENCE)
def test_people_hear_of_each_incident_once_and_of_its_end_only_when_they_heard_of_it(
    verdicts: list[Verdict], patience: Patience
) -> None:
    desk = Desk()
    told: list[News] = []

    for verdict in verdicts:
        told += desk.look(Judgement(check=SLOW, verdict=verdict, patience=patience))

    heard = [each for each in told if each in {News.OPENED, News.RESOLVED}]
    assert heard == [News.OPENED, News.RESOLVED][:2] * (len(heard) // 2) + [News.OPENED] * (len(heard) % 2)


@given(verdicts=st.lists(VERDICTS, max_size=40), patience=PATIENCE)
def test_an_unknown_look_changes_nothing(verdicts: list[Verdict], patience: Patience) -> None:
    with_gaps, without = Desk(), Desk()

    for verdict in verdicts:
        judgement = Judgement(check=SLOW, verdict=verdict, patience=patience)
        with_gaps.look(judgement)
        if not isinstance(verdict, UnknownVerdict):
            without.look(judgement)

    assert [(i.number, i.state.kind) for i in with_gaps.record.incidents] == [
        (i.number, i.state.kind) for i in without.record.incidents
    ]


def test_an_incident_that_is_pending_was_not_told() -> None:
    begun, news = begin_incident(1, RUN, finding(), START, Patience(fails=2, of=3))

    assert news is News.PENDING
    assert isinstance(begun.state, Pending)
    with pytest.raises(ValueError, match="pending incident was told"):
        Incident.model_validate({**begun.model_dump(), "is_told": True})
