"""``/hero …`` is answered from what is on record; what changes something asks who speaks, as a decision does."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.event import Commanded, Place
from bot.model.history import VerdictChange
from bot.model.incident import Acknowledged, News, Silenced, open_incident
from bot.model.person import Actor, Platform, Standing
from bot.model.reading import Known, Reading
from bot.model.record import Record
from bot.model.run import Run, RunState
from bot.model.update import UpdateKind
from bot.model.value import CheckId, RunId
from bot.model.verbs import VERBS
from bot.model.verdict import Fail, Finding, Pass, Severity
from handlers.command import COMMANDS, answer_command, changes_something
from handlers.commands.question import Answered, Question
from handlers.context import Context
from tests.fakes.snapshots import AT, RUN, later
from tests.unit.handlers.scene import ADA, DARK, GUEST, MEMBER, PEOPLE, context, record, request, slack

OTHER = RunId("other-run")
FINDING = Finding(
    check=CheckId("progress.stalled"), severity=Severity.WARNING, summary="no new step for 40 min", advice="look at it"
)
INCIDENT = open_incident(4, RUN, FINDING, AT)


def ask(text: str, **fields: Any) -> Answered:
    return answer_command(a_question(text, **fields))


def a_question(
    text: str,
    *,
    actor: Actor | None = None,
    standing: Reading[Standing] | None = MEMBER,
    records: tuple[Record, ...] | None = None,
    contexts: Mapping[RunId, Context] | None = None,
    here: RunId | None = None,
    blocked: dict[RunId, str] | None = None,
    timezone: str = "UTC",
    at: Any = AT,
) -> Question:
    known = (record(incidents=(INCIDENT,)),) if records is None else records
    place = Place(conversation="C0HERO", thread="100.000100")
    return Question(
        event=Commanded(actor=actor or slack(), place=place, text=text, said_at=AT),
        standing=standing,
        records=known,
        contexts={each.run_id: context() for each in known} if contexts is None else contexts,
        blocked=blocked or {},
        here=here,
        people=PEOPLE,
        timezone=timezone,
        at=at,
    )


def text_of(answered: Answered) -> str:
    update = answered.telling.update
    return "\n".join((update.headline, *update.evidence, update.next))


def other(**fields: Any) -> Record:
    return Record(run=Run(run_id=OTHER, **fields))


def test_an_answer_goes_to_whoever_asked_where_they_asked_and_nowhere_else() -> None:
    telling = ask("status").telling

    assert telling.update.kind is UpdateKind.ANSWER
    assert telling.target.private_to == "U0ADA"
    assert (telling.target.conversation, telling.target.thread) == ("C0HERO", "100.000100")
    assert [channel.value for channel in telling.channels] == ["slack"]


def test_the_status_says_how_fresh_it_is_and_what_waits() -> None:
    said = text_of(ask("status", records=(record(request(), incidents=(INCIDENT,)),), at=later(5)))

    assert said.startswith(f"{RUN}: failed")
    assert "monitor: checked 5 min ago, every 15 min" in said
    assert "I4 progress.stalled (warning): no new step for 40 min" in said
    assert "R7 waits for ada until 2026-11-30 04:00 UTC" in said


def test_a_stale_status_says_that_it_may_no_longer_be_true() -> None:
    assert "STALE, not checked for 31 min" in text_of(ask("status", at=later(31)))


def test_an_unchecked_and_a_paused_run_say_so() -> None:
    never = Record(run=Run(run_id=RUN))
    paused = record(run=Run(run_id=RUN, is_paused=True, last_checked_at=AT))

    assert "not checked yet" in text_of(ask("status", records=(never,)))
    assert "monitor: paused; checked" in text_of(ask("status", records=(paused,)))


def test_of_several_runs_the_status_lists_all_and_the_rest_ask_which() -> None:
    both = (record(), other(state=RunState.RUNNING))

    assert "2 runs" in text_of(ask("status", records=both))
    assert "Which run?" in text_of(ask("relaunch", records=both))
    assert f"runs: {RUN}, {OTHER}" in text_of(ask("relaunch", records=both))


def test_in_a_runs_own_conversation_it_needs_no_name() -> None:
    both = (record(), other(state=RunState.RUNNING))

    assert text_of(ask("status", records=both, here=OTHER)).startswith(f"{OTHER}: running")


def test_an_unknown_run_is_answered_with_those_that_there_are() -> None:
    said = text_of(ask("status hero-typo"))

    assert "There is no run hero-typo." in said
    assert RUN in said


def test_a_run_whose_contract_is_broken_says_why_and_hides_no_other() -> None:
    blocked = {OTHER: "runs/other-run.toml: dri is missing"}

    assert "dri is missing" in text_of(ask(f"status {OTHER}", blocked=blocked))
    assert "dri is missing" in text_of(ask("status", here=OTHER, blocked=blocked))
    listed = text_of(ask("runs", blocked=blocked))
    assert RUN in listed
    assert f"{OTHER}: not watched: runs/other-run.toml: dri is missing" in listed


def test_incidents_are_counted_in_english() -> None:
    assert ask("incidents").telling.update.headline == "1 open incident"
    assert ask("incidents", records=(record(),)).telling.update.headline == "No open incident."


@pytest.mark.parametrize("name", ["I4", "i4", "4"])
def test_an_incident_is_acknowledged_by_its_number(name: str) -> None:
    answered = ask(f"ack {name}")

    (incident,) = answered.decision.incidents
    assert incident.state == Acknowledged(by=ADA, at=AT, severity=INCIDENT.finding.severity)
    assert [entry.what for entry in answered.decision.audit] == ["acknowledged"]


@pytest.mark.parametrize("name", ["", "I5", "all", "R4"])
def test_an_unknown_incident_is_asked_about(name: str) -> None:
    answered = ask(f"ack {name}")

    assert answered.decision.incidents == ()
    assert "Which incident?" in text_of(answered)


@pytest.mark.parametrize(("text", "length"), [("silence I4", 60), ("silence i4 2h", 120), ("silence 4 45m", 45)])
def test_an_incident_is_silenced_for_a_while(text: str, length: int) -> None:
    answered = ask(text)

    (incident,) = answered.decision.incidents
    assert incident.state == Silenced(by=ADA, at=AT, until=AT + timedelta(minutes=length))
    assert "it is still watched" in text_of(answered)
    assert [entry.what for entry in answered.decision.audit] == ["silenced"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("silence", "Which incident?"),
        ("silence I9 1h", "Which incident?"),
        ("silence I4 soon", "'soon' is no duration"),
        ("silence I4 0s", "A silence lasts from a second to 7 d"),
        ("silence I4 30d", "A silence lasts from a second to 7 d"),
    ],
)
def test_a_silence_without_an_incident_or_an_end_is_none(text: str, says: str) -> None:
    answered = ask(text)

    assert answered.decision.incidents == ()
    assert says in text_of(answered)


def test_explain_answers_from_the_verdicts_on_record() -> None:
    stalled = VerdictChange(
        run_id=RUN,
        check=FINDING.check,
        at=AT,
        verdict=Fail(finding=FINDING),
        seen="job /me/hero running; no new rows",
        incident=4,
        news=News.INHIBITED,
    )
    fine = VerdictChange(run_id=RUN, check=CheckId("job.ended"), at=AT, verdict=Pass(), seen="job /me/hero running")
    known = record(verdicts={stalled.check: stalled, fine.check: fine})

    everything = text_of(ask("explain", records=(known,)))
    one = text_of(ask("explain progress.stalled", records=(known,)))

    assert "progress.stalled: warning: no new step for 40 min (I4) — not told: another open incident" in everything
    assert "job.ended: fine" in everything
    assert "job.ended" not in one
    assert "having seen: job /me/hero running; no new rows" in one


def test_a_relaunch_is_only_noted_and_the_run_checked_at_once() -> None:
    answered = ask("relaunch", actor=slack("U0BOB"))

    assert answered.check_now == RUN
    assert answered.decision.run is not None
    assert answered.decision.run.relaunch_wanted_by == "bob"
    assert not (answered.decision.actions)
    assert not (answered.decision.requests)


def test_a_relaunch_that_is_asked_for_already_is_not_asked_twice() -> None:
    answered = ask("relaunch", records=(record(request()),))

    assert answered.decision.run is None
    assert "R7 asks for that already and waits for ada" in text_of(answered)


def test_a_paused_run_is_resumed_before_it_is_relaunched() -> None:
    answered = ask("relaunch", records=(record(run=Run(run_id=RUN, is_paused=True)),))

    assert answered.check_now is None
    assert answered.decision.run is None
    assert f"/hero resume {RUN}" in text_of(answered)


def test_a_pause_is_said_in_the_runs_own_conversation_and_so_is_its_end() -> None:
    paused = ask("pause", actor=slack("U0BOB"))
    resumed = ask("resume", records=(record(run=Run(run_id=RUN, is_paused=True)),))

    told, live = paused.decision.tell
    assert live.update.headline == "not watched now: the watch is paused"
    assert "Hero is not looking" not in live.update.next
    assert told.update.headline == "the watch over this run was paused by bob"
    assert told.update.severity is Severity.WARNING
    assert told.update.run_id == RUN
    assert paused.check_now is None
    assert [t.update.headline for t in resumed.decision.tell] == ["the watch over this run was resumed by ada"]
    assert resumed.check_now == RUN
    assert resumed.decision.memories == {CheckId("monitor.stale"): "{}"}, "the pause would be told as an outage of Hero"


CHANGING = ["ack I4", "relaunch", "pause", "resume"]


@pytest.mark.parametrize("text", CHANGING)
@pytest.mark.parametrize(
    ("actor", "standing"),
    [
        (slack("U0EVIL"), MEMBER),
        (slack("U0EVIL", display_name="ada"), MEMBER),
        (slack("U0TWIN"), MEMBER),
        (slack(), GUEST),
        (slack(), DARK),
        (slack(), None),
        (slack(is_bot=True), MEMBER),
        (slack(), Known(value=Standing(is_member=True, is_bot=True), at=AT)),
    ],
)
def test_whoever_may_not_decide_changes_nothing_by_command_either(
    text: str, actor: Actor, standing: Reading[Standing] | None
) -> None:
    """Field reports R39 and R40: every way in has the same list."""
    answered = ask(text, actor=actor, standing=standing)

    assert answered.check_now is None
    assert answered.decision.run is None
    assert answered.decision.incidents == ()
    assert answered.decision.tell == ()
    assert [entry.what for entry in answered.decision.audit] == ["command_refused"]
    assert answered.telling.update.headline


def test_only_what_changes_something_needs_to_ask_the_platform() -> None:
    harmless = {"status", "runs", "incidents", "explain", "help"}
    harmless |= {"catchup", "log", "audit", "checks", "milestone", "plot", "watch", "trial"}

    assert {verb for verb in COMMANDS if not changes_something(verb)} == harmless
    assert not changes_something("")
    assert changes_something("PAUSE x")
    assert changes_something("trial Plan x")
    assert not changes_something("trial x")


def test_two_questions_in_one_second_are_both_answered() -> None:
    keys = {ask(text, actor=slack(user)).telling.key for text in ("status", "runs") for user in ("U0ADA", "U0BOB")}

    assert len(keys) == 4


@pytest.mark.parametrize(
    "text", ["", "help", "<!channel>", "`" * 100, "sudo rm -rf /", 'status "unclosed', "status -->", "x" * 5_000]
)
def test_an_unknown_or_hostile_command_gets_a_short_answer(text: str) -> None:
    answered = ask(text, standing=None)

    assert answered.decision.run is None
    assert len(answered.telling.update.headline) < 200
    assert "-->" not in answered.telling.key


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    answered = ask(text, standing=None)

    assert answered.telling.update.kind is UpdateKind.ANSWER
    assert answered.check_now is None


def test_the_terminal_speaks_for_whoever_owns_it() -> None:
    place = Place(conversation="console", thread=RUN, message="1")
    event = Commanded(actor=Actor(platform=Platform.CONSOLE, user_id="root"), place=place, text="relaunch", said_at=AT)
    question = Question(
        event=event,
        standing=MEMBER,
        records=(record(),),
        contexts={RUN: context()},
        blocked={},
        here=None,
        people=PEOPLE,
        timezone="UTC",
        at=AT + timedelta(minutes=1),
    )

    assert answer_command(question).check_now == RUN


def test_every_channel_knows_every_command_by_its_first_word() -> None:
    """What is said to ``@hero`` in a thread is a command only when its first word is one."""
    assert set(COMMANDS) == VERBS


@pytest.mark.parametrize("verb", ["stop", "seal", "plan", "cleanup", "launch", "relaunch", "pause", "resume"])
def test_a_mistyped_run_is_never_another_one(verb: str) -> None:
    answered = ask(f"{verb} nosuch", here=RUN)

    assert answered.telling.update.headline == "There is no run nosuch."
    assert answered.telling.update.evidence == (f"there are: {RUN}",)
    assert answered.decision.run is None


@pytest.mark.parametrize("verb", ["stop", "seal", "plan", "relaunch", "pause", "resume"])
def test_a_word_that_a_command_does_not_take_is_refused(verb: str) -> None:
    answered = ask(f"{verb} {RUN} tomorrow")

    assert answered.telling.update.headline == "`tomorrow` was not understood; nothing was done."
    assert answered.decision.run is None


@pytest.mark.parametrize("text", ["cleanup keep 3", f"cleanup {RUN} keep 3"])
def test_a_cleanup_alone_takes_how_many_to_keep(text: str) -> None:
    run = ask(text, here=RUN).decision.run

    assert run is not None
    assert [errand.argument for errand in run.errands] == ["keep 3"]


def test_of_many_runs_those_like_the_mistyped_one_come_first() -> None:
    many = tuple(Record(run=Run(run_id=RunId(f"run-{number}"))) for number in range(30))

    listed = ask("stop run-29x", records=many, here=RUN).telling.update.evidence[0]

    assert listed.startswith("there are: run-29, ")
    assert listed.endswith(" and 10 more (`runs` lists them)")
