"""The ladder: who is reached, when, while nobody gives a sign; and that it stops at the first one."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.delivery import ChannelName
from bot.model.event import Commanded, Inbound
from bot.model.hours import WORKING_WEEK, Weekday, WorkingHours
from bot.model.incident import Acknowledged, Incident, Open, Resolved, Silenced
from bot.model.ladder import PageStatus, Rung
from bot.model.person import Person
from bot.model.plan import Request, RequestState
from bot.model.record import Decision, Record, Telling
from bot.model.run import Run, RunState
from bot.model.update import UpdateKind
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, Severity
from bot.settings import EscalationSettings
from bot.settings.alerts import CriticalTimes, WarningTimes
from handlers.context import Context
from handlers.signs import attended, runs_meant
from handlers.timers import decide_time_passed
from tests.fakes.snapshots import AT, RUN
from tests.unit.handlers.scene import ADA, BOB, PEOPLE, POSTED, RULES, context, place, record, request, said, slack

LONG_AGO = AT - timedelta(days=3)
ALL = frozenset(Rung)
ALERTS = (ChannelName.EMAIL, ChannelName.PAGER)


def around(*, people: tuple[Person, ...] = PEOPLE, alerts: tuple[ChannelName, ...] = ALERTS, **fields: Any) -> Context:
    ladders = EscalationSettings(**fields).ladders
    rules = RULES.model_copy(update={"ladders": ladders})
    surroundings = context(rules=rules, people=people, deputies=(BOB,))
    return surroundings.model_copy(update={"alerts": alerts})


def incident(number: int = 4, **fields: Any) -> Incident:
    finding = Finding(
        check=CheckId("progress.stalled"),
        severity=fields.pop("severity", Severity.CRITICAL),
        summary="no step for 40 min",
        advice="look at the log",
    )
    given: dict[str, Any] = {
        "number": number,
        "run_id": RUN,
        "check": finding.check,
        "key": "",
        "finding": finding,
        "opened_at": AT,
    }
    return Incident(**given | fields)


class Night:
    """One run over time: what is decided is what is known next, as in the store, and ticks come every half minute."""

    def __init__(self, known: Record, surroundings: Context, since: datetime = LONG_AGO) -> None:
        self.known = known
        self.context = surroundings
        self.since = since
        self.told: list[tuple[datetime, Telling]] = []

    def until(self, minutes: float, *, step: float = 1) -> "Night":
        while self._at() < AT + timedelta(minutes=minutes):
            self.tick(self._at() + timedelta(minutes=step))
        return self

    def _at(self) -> datetime:
        return self.known.run.last_checked_at or AT

    def tick(self, at: datetime) -> Decision:
        run = self.known.run.model_copy(update={"last_checked_at": at})
        self.known = self.known.model_copy(update={"run": run})
        decision = decide_time_passed(self.known, self.context, at, since=self.since)
        self.apply(decision)
        self.told += [(at, telling) for telling in decision.tell]
        return decision

    def apply(self, decision: Decision) -> None:
        """Keep what is decided as the store would: through JSON, resolved incidents left out."""
        incidents = {i.number: i for i in (*self.known.incidents, *decision.incidents)}
        requests = {r.number: r for r in (*self.known.requests, *decision.requests)}
        run = decision.run or self.known.run
        self.known = self.known.model_copy(
            update={
                "run": Run.model_validate_json(run.model_dump_json()),
                "incidents": tuple(
                    Incident.model_validate_json(i.model_dump_json()) for i in incidents.values() if not i.is_resolved
                ),
                "requests": tuple(Request.model_validate_json(r.model_dump_json()) for r in requests.values()),
            }
        )

    def hear(self, event: Inbound, at: datetime) -> None:
        run = attended(self.known, event, self.context, at)
        if run is not None:
            self.apply(Decision(run=run))

    def rungs(self) -> list[tuple[int, str]]:
        """The minutes after ``AT`` and the ways in which something was told, in order."""
        return [
            (round((at - AT).total_seconds() / 60), _way(telling))
            for at, telling in self.told
            if telling.update.kind is UpdateKind.ESCALATION
        ]


def _way(telling: Telling) -> str:
    update = telling.update
    if update.page is not None:
        return f"page {update.page.status}"
    if telling.target.direct_to:
        return f"direct {telling.target.direct_to}"
    if telling.channels == (ChannelName.EMAIL,):
        return "email"
    asked = [name for name in (update.asked, *update.also_asked) if name]
    return f"thread {'+'.join(asked)}".strip()


def failing(*incidents: Incident, **fields: Any) -> Record:
    run = Run(run_id=RUN, state=RunState.FAILED, last_checked_at=AT, last_told_at=AT)
    return record(**{"run": run, "incidents": incidents} | fields)


def test_a_critical_incident_is_brought_to_more_people_in_louder_ways_until_the_pager_rings() -> None:
    night = Night(failing(incident()), around()).until(24 * 60 - 1)

    # The time counts from the first tick at which it is seen, a minute after AT here.
    assert night.rungs() == [
        (16, "thread ada"),
        (31, "direct U0ADA"),
        (61, "email"),
        (61, "thread ada+bob"),
        (61, "direct U0BOB"),
        (121, "page trigger"),
    ]


def test_each_message_says_what_it_is_about_since_when_what_was_tried_and_how_it_stops() -> None:
    night = Night(failing(incident()), around()).until(61)

    mail = next(telling.update for _, telling in night.told if telling.channels == (ChannelName.EMAIL,))
    assert mail.headline == "I4 has waited 1 h for a person: progress.stalled: no step for 40 min"
    assert mail.kind is UpdateKind.ESCALATION
    assert mail.evidence == (
        "I4 progress.stalled: no step for 40 min; told 2026-11-29 04:01 UTC",
        "I4 what to do: look at the log",
        "I4 tried so far: mention of the DRI 2026-11-29 04:16 UTC, direct message 2026-11-29 04:31 UTC",
    )
    assert "`/hero ack I4`" in mail.next
    assert (mail.asked, mail.also_asked) == (ADA, (BOB,))


def test_a_request_about_a_run_that_is_down_speaks_for_its_incident_too() -> None:
    down = failing(incident(1), requests=(request(incident=1),))

    night = Night(down, around()).until(120)

    about = [telling.update.headline for _, telling in night.told]
    assert [rung for _, rung in night.rungs()][-1] == "page trigger"
    assert all(headline.startswith("R7 has waited") for headline in about)
    assert "`approve R7` or `deny R7 because …`" in night.told[0][1].update.next
    assert "`/hero ack I1`" in night.told[0][1].update.next


def test_who_looks_after_the_incident_looks_after_its_question() -> None:
    taken_on = incident(1, state=Acknowledged(by=BOB, at=AT))

    assert Night(failing(taken_on, requests=(request(incident=1),)), around()).until(300, step=5).told == []


def test_a_question_that_is_put_anew_does_not_begin_the_ladder_anew() -> None:
    night = Night(failing(incident(1), requests=(request(incident=1),)), around()).until(59)
    at = AT + timedelta(minutes=59)
    void = night.known.requests[0].model_copy(update={"state": RequestState.VOID})
    night.apply(Decision(requests=(void, request(8, incident=1, asked_at=at, expires_at=at + timedelta(days=1)))))

    night.until(121)

    assert [way for _, way in night.rungs()].count("thread ada") == 1
    assert (121, "page trigger") in night.rungs()


def test_a_question_by_whose_waiting_nothing_is_lost_takes_its_time_and_wakes_nobody_at_night() -> None:
    ada = PEOPLE[0].model_copy(update={"timezone": "America/New_York", "working_hours": "09:00-17:00"})
    calm = failing(requests=(request(incident=None, expires_at=AT + timedelta(days=9)),))

    # AT is Sunday 04:00 UTC: 23:00 on Saturday in New York. All of it waits for Monday, 14:00 UTC.
    night = Night(calm, around(people=(ada, *PEOPLE[1:]))).until(3 * 24 * 60, step=5)

    monday = 34 * 60
    assert night.rungs() == [(monday, "email"), (monday, "direct U0ADA"), (monday, "thread ada")]


def test_what_is_critical_does_not_wait_for_working_hours() -> None:
    ada = PEOPLE[0].model_copy(update={"timezone": "America/New_York", "working_hours": "09:00-17:00"})

    night = Night(failing(incident()), around(people=(ada, *PEOPLE[1:]))).until(122)

    assert (121, "page trigger") in night.rungs()


@pytest.mark.parametrize(
    "state",
    [
        Acknowledged(by=ADA, at=AT),
        Silenced(by=ADA, at=AT, until=AT + timedelta(days=2)),
        Resolved(at=AT),
    ],
    ids=["acknowledged", "silenced", "resolved"],
)
def test_an_incident_that_somebody_took_on_or_that_is_over_is_escalated_to_nobody(state: Any) -> None:
    assert Night(failing(incident(state=state)), around()).until(300, step=5).told == []


def test_an_ack_of_a_warning_does_not_stop_the_ladder_of_what_it_became() -> None:
    taken = Acknowledged(by=ADA, at=AT, severity=Severity.WARNING)
    warned = incident(severity=Severity.WARNING, state=taken)
    night = Night(failing(warned), around()).until(60, step=5)
    assert night.told == []

    graver, _ = warned.after(Fail(finding=incident().finding), AT + timedelta(minutes=60))
    night.apply(Decision(incidents=(graver,)))
    night.until(78)

    assert night.rungs() == [(76, "thread ada")]


def test_neither_warnings_nor_what_was_never_told_nor_a_paused_run_climb() -> None:
    known = failing(incident(4, severity=Severity.WARNING), incident(5, is_told=False))
    paused = failing(incident(), run=Run(run_id=RUN, is_paused=True, last_told_at=AT))

    assert Night(known, around()).until(300, step=5).told == []
    assert Night(paused, around()).until(300, step=5).told == []


def test_after_a_silence_the_time_counts_anew_and_no_rung_is_taken_twice() -> None:
    night = Night(failing(incident()), around()).until(20)
    silenced = night.known.incidents[0].model_copy(
        update={"state": Silenced(by=BOB, at=AT, until=AT + timedelta(hours=5))}
    )
    night.apply(Decision(incidents=(silenced,)))
    night.until(300)
    night.apply(Decision(incidents=(night.known.incidents[0].model_copy(update={"state": Open()}),)))

    night.until(332)

    assert night.rungs() == [(16, "thread ada"), (331, "direct U0ADA")]


@pytest.mark.parametrize("words", ["on it", "approve R7", "what is this?"])
def test_anything_the_dri_says_after_people_were_told_stops_it(words: str) -> None:
    night = Night(failing(incident()), around()).until(20)

    night.hear(said(words, at=AT + timedelta(minutes=20)), AT + timedelta(minutes=20))

    assert night.until(300).rungs() == [(16, "thread ada")]


def test_what_was_said_before_people_were_told_stops_nothing() -> None:
    night = Night(failing(incident()), around())
    night.hear(said("good night", at=AT - timedelta(minutes=1)), AT)

    assert (16, "thread ada") in night.until(20).rungs()


def test_a_deputy_who_was_woken_stops_it_and_a_stranger_or_a_bot_does_not() -> None:
    at = AT + timedelta(minutes=62)
    for actor, is_sign in ((slack("U0BOB"), True), (slack("U0WHO"), False), (slack("U0ADA", is_bot=True), False)):
        night = Night(failing(incident()), around()).until(62)
        night.hear(said("hm", actor, at=at), at)
        rings = (121, "page trigger") in night.until(125).rungs()
        assert rings is not is_sign, actor


def test_a_command_counts_for_the_runs_that_it_is_about() -> None:
    def command(text: str) -> Commanded:
        return Commanded(actor=slack(), place=place(slack().platform, "300.1"), text=text, said_at=AT)

    other = type(RUN)("other")
    runs = (RUN, other)
    assert runs_meant(command(f"status {RUN}"), runs, about=()) == (RUN,)
    assert runs_meant(command("ack I4"), runs, about=(other, None)) == (other,)
    assert runs_meant(command("runs"), runs, about=(None,)) == ()
    assert runs_meant(command("runs"), (RUN,), about=(None,)) == (RUN,), "there is no other that it could be about"


def test_after_a_start_the_channels_are_read_before_anybody_is_woken() -> None:
    waiting = Night(failing(incident()), around()).until(1).known
    started = AT + timedelta(hours=10)
    night = Night(waiting, around(), since=started)

    assert night.tick(started + timedelta(minutes=2)).tell == ()
    assert "page trigger" in [_way(t) for t in night.tick(started + timedelta(minutes=3)).tell]


def test_what_cannot_be_tried_is_left_out() -> None:
    nobody = (Person(name=ADA), Person(name=BOB))

    night = Night(failing(incident()), around(people=nobody, alerts=())).until(300)

    assert night.rungs() == [(16, "thread ada"), (61, "thread ada+bob")]


def test_a_rung_that_is_off_is_not_taken_and_the_quiet_reminder_comes_when_it_is_given_a_time() -> None:
    times = CriticalTimes(thread=timedelta(minutes=5), mention=None, direct=None, deputies=None, email=None, pager=None)

    assert Night(failing(incident()), around(critical=times)).until(300).rungs() == [(6, "thread")]


def test_many_things_at_once_are_one_message_a_rung_and_one_page() -> None:
    many = tuple(incident(number) for number in range(20, 45))

    night = Night(failing(*many), around()).until(300)

    assert [way for _, way in night.rungs()] == [
        "thread ada",
        "direct U0ADA",
        "email",
        "thread ada+bob",
        "direct U0BOB",
        "page trigger",
    ]
    assert "25 things wait for a person" in night.told[0][1].update.headline
    assert len(night.told[0][1].update.evidence) == 31


def test_the_noise_budget_holds_messages_back_and_never_a_page() -> None:
    spent = tuple(AT + timedelta(minutes=minute) for minute in range(1, 11))
    known = failing(incident())
    known = known.model_copy(update={"run": known.run.model_copy(update={"escalated_at": spent})})

    night = Night(known, around(per_day=10)).until(24 * 60 + 30, step=5)

    assert night.rungs()[0] == (125, "page trigger")
    # As the day's messages grow old, the loudest that was held back goes first.
    assert [way for _, way in night.rungs()[1:]] == ["email", "direct U0ADA", "thread ada+bob", "direct U0BOB"]
    assert all(minute >= 24 * 60 for minute, _ in night.rungs()[1:])


def test_the_pager_hears_of_a_sign_and_of_the_end_once_each() -> None:
    night = Night(failing(incident()), around()).until(125)
    night.hear(said("awake", at=AT + timedelta(minutes=125)), AT + timedelta(minutes=125))
    night.until(130)
    night.apply(Decision(incidents=(night.known.incidents[0].model_copy(update={"state": Resolved(at=AT)}),)))
    night.until(140)

    pages = [t.update.page for _, t in night.told if t.update.page]
    assert [p.status for p in pages] == [PageStatus.TRIGGER, PageStatus.ACKNOWLEDGE, PageStatus.RESOLVE]
    assert {p.key for p in pages} == {f"hero/{RUN}/I4"}
    assert {t.target.slot for _, t in night.told if t.update.page} == {"page:I4"}
    assert night.known.run.pages == ()


def test_a_second_matter_rings_no_second_time_while_somebody_is_being_called() -> None:
    night = Night(failing(incident()), around()).until(125)
    night.apply(Decision(incidents=(incident(9, key="other"),)))
    night.until(400)
    first = night.known.incidents[0].model_copy(update={"state": Resolved(at=AT)})
    night.apply(Decision(incidents=(first,)))

    night.until(405)

    assert [way for _, way in night.rungs()].count("page trigger") == 1
    assert "page resolve" not in [way for _, way in night.rungs()], "the other one is still there"
    assert night.known.run.pages[0].about == ("I4", "I9")


def test_an_escalation_shows_where_the_run_is_talked_about() -> None:
    posted = tuple(p.model_copy(update={"link": f"https://chat.example/{p.channel}"}) for p in POSTED)

    night = Night(failing(incident(), posted=posted), around()).until(125)

    assert "https://chat.example/slack" in night.told[1][1].update.next
    pages = [t.update.page for _, t in night.told if t.update.page]
    assert pages[0].link == "https://chat.example/slack"


def test_without_the_ladder_a_critical_incident_is_told_once_and_that_is_all() -> None:
    night = Night(failing(incident()), context()).until(23 * 60, step=30)

    assert night.told == []


_MINUTES = st.integers(min_value=1, max_value=30 * 60)
_WAIT = st.one_of(st.none(), _MINUTES.map(lambda minutes: timedelta(minutes=minutes)))
_TIMES = st.fixed_dictionaries({rung.value: _WAIT for rung in Rung})
_ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia")


@st.composite
def _hours(draw: st.DrawFn) -> WorkingHours:
    start = draw(st.integers(min_value=0, max_value=23))
    end = draw(st.integers(min_value=0, max_value=23).filter(lambda hour: hour != start))
    days = tuple(draw(st.sets(st.sampled_from(list(Weekday)), min_size=1)))
    minute = draw(st.sampled_from(["00", "30"]))
    return WorkingHours(
        hours=f"{start:02}:{minute}-{end:02}:{minute}", days=days, timezone=draw(st.sampled_from(_ZONES))
    )


@settings(max_examples=40, deadline=None)
@given(
    critical=_TIMES,
    warning=_TIMES,
    ticks=st.lists(_MINUTES, min_size=1, max_size=40, unique=True).map(sorted),
    sign=st.one_of(st.none(), _MINUTES),
    hours=st.one_of(st.none(), _hours()),
    is_incident=st.booleans(),
)
def test_each_rung_is_taken_once_never_before_its_time_and_never_after_a_sign(
    *,
    critical: dict[str, timedelta | None],
    warning: dict[str, timedelta | None],
    ticks: list[int],
    sign: int | None,
    hours: WorkingHours | None,
    is_incident: bool,
) -> None:
    ada = PEOPLE[0]
    if hours is not None:
        ada = ada.model_copy(
            update={"working_hours": hours.hours, "working_days": hours.days, "timezone": hours.timezone}
        )
    surroundings = around(
        people=(ada, *PEOPLE[1:]), critical=CriticalTimes(**critical), warning=WarningTimes(**warning), per_day=500
    )
    waits = critical if is_incident else warning
    known = (
        failing(incident())
        if is_incident
        else failing(requests=(request(incident=None, expires_at=AT + timedelta(days=9)),))
    )
    night = Night(known, surroundings)
    night.tick(AT)
    heard = False
    for minute in ticks:
        at = AT + timedelta(minutes=minute)
        if sign is not None and sign <= minute and not heard:
            heard = True
            said_at = AT + timedelta(minutes=sign)
            night.hear(said("I see", at=said_at), at)
        night.tick(at)

    incidents, requests = night.known.incidents, night.known.requests
    climbs = [climb for climb in (*(i.climb for i in incidents), *(r.climb for r in requests)) if climb]
    taken = [each for climb in climbs for each in climb.rungs]
    assert len({each.rung for each in taken}) == len(taken), "each at most once"
    for each in taken:
        wait = waits[each.rung.value]
        assert wait is not None, "a rung that is off"
        assert each.at >= AT + wait, "before its time"
        assert sign is None or each.at < AT + timedelta(minutes=sign), "after a sign"
        if hours is not None and not is_incident:
            assert hours.next_open(each.at) == each.at or each.at > hours.next_open(AT + wait), "outside the hours"
    last = AT + timedelta(minutes=ticks[-1])
    if sign is None and is_incident:
        due = {rung for rung in Rung if (wait := waits[rung.value]) is not None and last >= AT + wait}
        assert {each.rung for each in taken} == due, "none that is due is left out"


@settings(max_examples=40, deadline=None)
@given(
    hours=_hours(),
    at=st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2027, 1, 1)).map(  # noqa: DTZ001 - given a zone below
        lambda at: at.replace(second=0, microsecond=0, tzinfo=ZoneInfo("UTC"))
    ),
)
def test_working_hours_begin_within_a_week_whatever_the_clocks_do(hours: WorkingHours, at: datetime) -> None:
    opened = hours.next_open(at)

    assert at <= opened <= at + timedelta(days=8)
    assert hours.next_open(opened) == opened
    local = opened.astimezone(ZoneInfo(hours.timezone))
    if opened > at:
        # What begins in an hour that is skipped begins after the skip.
        assert local.strftime("%H:%M") >= hours.hours[:5]
        assert list(Weekday)[local.weekday()] in hours.days


@pytest.mark.parametrize(
    ("at", "opens"),
    [
        ("2026-03-27T20:00+00:00", "2026-03-30T07:00+00:00"),  # Friday evening → Monday 09:00, summer time since Sunday
        ("2026-03-27T08:00+00:00", "2026-03-27T08:00+00:00"),  # Friday 09:00, winter time: open
        ("2026-10-23T20:00+00:00", "2026-10-26T08:00+00:00"),  # and back
        ("2026-03-30T16:00+00:00", "2026-03-31T07:00+00:00"),  # 18:00 is closed
    ],
)
def test_working_hours_are_those_of_the_wall_clock(at: str, opens: str) -> None:
    berlin = WorkingHours(hours="09:00-18:00", days=WORKING_WEEK, timezone="Europe/Berlin")

    assert berlin.next_open(datetime.fromisoformat(at)) == datetime.fromisoformat(opens)


def test_a_night_shift_ends_on_the_next_day() -> None:
    night = WorkingHours(hours="22:00-06:00", days=(Weekday.FRI,), timezone="UTC")
    saturday_at_five = datetime.fromisoformat("2026-11-28T05:00+00:00")

    assert night.next_open(saturday_at_five) == saturday_at_five
    assert night.next_open(saturday_at_five + timedelta(hours=1)) == datetime.fromisoformat("2026-12-04T22:00+00:00")


def test_empty_hours_are_refused() -> None:
    with pytest.raises(ValueError, match="are empty"):
        WorkingHours(hours="09:00-09:00", timezone="UTC")
