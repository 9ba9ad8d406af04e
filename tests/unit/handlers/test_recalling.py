"""Commands that look back, the help, and what a mistyped command is answered with."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.audit import AuditEntry
from bot.model.chronicle import MilestoneReached, next_entry
from bot.model.curve import CURVE, Curve
from bot.model.event import Commanded, Place
from bot.model.incident import open_incident
from bot.model.person import Actor
from bot.model.record import Record
from bot.model.run import Progress, Run, RunState
from bot.model.snapshot import MetricRow
from bot.model.value import CheckId, RunId
from bot.model.verdict import Finding, Severity
from handlers.command import COMMANDS, GROUPS, answer_command, shows_past
from handlers.commands.question import Answered, Past, Question
from tests.fakes.snapshots import AT, RUN, later
from tests.unit.handlers.scene import MEMBER, PEOPLE, context, github, record, slack

OTHER = RunId("other-run")
LINK = "https://acme.slack.com/archives/C0HERO/p200000201"
REFUSED = AuditEntry(
    at=later(-5),
    run_id=RUN,
    who="slack:U0EVE",
    what="decision_refused",
    detail="approve R7",
    why="not_the_dri",
    digest="7c4caa464fd0" + "0" * 52,
    link=LINK,
)
FINDING = Finding(check=CheckId("loss.spike"), severity=Severity.WARNING, summary="a spike", advice="x", since_step=40)


def ask(text: str, *records: Record, actor: Actor | None = None, here: RunId | None = None, **past: Any) -> Answered:
    known = records or (record(),)
    question = Question(
        event=Commanded(actor=actor or slack(), place=Place(conversation="C0HERO"), text=text, said_at=AT),
        standing=MEMBER,
        records=known,
        contexts={each.run_id: context(milestones={"every": 100}) for each in known},
        blocked={},
        here=here,
        people=PEOPLE,
        timezone="UTC",
        at=AT,
        past=Past(**past),
    )
    return answer_command(question)


def text_of(answered: Answered) -> str:
    update = answered.telling.update
    return "\n".join((update.headline, *update.evidence, update.next))


def other() -> Record:
    return Record(run=Run(run_id=OTHER, state=RunState.RUNNING, last_checked_at=AT))


def with_figures() -> Record:
    rows = [MetricRow(step=step, values={"loss": 3 - step / 100, "tokens_per_second": 1000.0}) for step in range(100)]
    return record(
        memories={CURVE: Curve().followed_by(rows).model_dump_json()}, incidents=(open_incident(4, RUN, FINDING, AT),)
    )


def test_every_command_is_in_the_help_once_and_every_line_of_it_is_a_command() -> None:
    listed = [name for group in GROUPS.values() for name in group]

    assert sorted(listed) == sorted(COMMANDS)
    assert all(line.startswith(name) for group in GROUPS.values() for name, line in group.items())
    assert all(f"{title}:" in text_of(ask("help")) for title in GROUPS)


@pytest.mark.parametrize(("typed", "meant"), [("staus", "status"), ("relunch", "relaunch"), ("aprove", "approve")])
def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    said = text_of(ask(typed))

    assert f"`{typed}` is no command of Hero's" in said
    if meant in COMMANDS:
        assert f"did you mean `/hero {meant}`" in said
        assert len(ask(typed).telling.update.evidence) <= 2
    else:
        assert "approve R7" in said, "nothing is near, so the whole list stands there and with it how to decide"


def test_help_for_one_command_is_its_line_and_help_for_none_the_nearest() -> None:
    assert text_of(ask("help silence")).startswith("silence I4 2h")
    assert "did you mean `/hero silence`" in text_of(ask("help silense"))


def test_an_answer_is_the_same_on_every_channel() -> None:
    assert text_of(ask("status")) == text_of(ask("status", actor=github()))
    assert text_of(ask("help")) == text_of(ask("help", actor=github()))


def test_the_audit_says_who_what_why_not_for_which_plan_and_where() -> None:
    said = text_of(ask("audit", attempts=(REFUSED,)))

    assert f"2026-11-29 03:55 UTC  {RUN}  slack:U0EVE  decision_refused (not_the_dri); approve R7" in said
    assert f"plan 7c4caa464fd0; {LINK}" in said
    assert "nobody has tried" in text_of(ask(f"audit {OTHER}", record(), other(), attempts=(REFUSED,)))
    assert "nobody has tried" in text_of(ask("audit"))


def test_the_log_shows_the_newest_of_the_record() -> None:
    entry = next_entry(RUN, None, AT, "milestone", MilestoneReached(step=500).model_dump(exclude={"kind"}))

    assert "2026-11-29 04:00 UTC  step 500 is reached" in text_of(ask("log", entries={RUN: (entry,)}))
    assert "nothing is on record yet" in text_of(ask("log"))


def test_catching_up_reaches_back_to_the_last_look_or_as_far_as_is_asked_for() -> None:
    assert "(24 h)" in text_of(ask("catchup")) or "(1 d)" in text_of(ask("catchup"))
    assert "(3 h)" in text_of(ask("catchup", since=AT - timedelta(hours=3)))
    assert "(8 h)" in text_of(ask("catchup 8h", since=AT - timedelta(hours=3)))
    assert OTHER not in text_of(ask(f"catchup {RUN} 8h", record(), other()))
    assert "There is no run nonsense" in text_of(ask("catchup nonsense"))


def test_a_plot_is_a_line_of_text_with_a_picture_beside_it() -> None:
    answered = ask("plot", with_figures())

    assert "loss █" in text_of(answered)
    assert "3 → 2.01 (steps 0 to 99)" in text_of(answered)
    chart = answered.telling.update.chart
    assert chart is not None
    assert [(mark.label, mark.step, mark.to_step) for mark in chart.marks] == [("I4 loss.spike", 40, 99)]
    assert "no figures are kept" in text_of(ask("plot"))


def test_milestones_say_what_was_reached_and_what_comes() -> None:
    run = Run(run_id=RUN, milestone_step=300, progress=Progress(step=350, steps_per_s=0.5))

    said = text_of(ask("milestone", record(run=run)))

    assert "reached last: step 300" in said
    assert "next: step 400, in about 1 min 40 s" in said


def test_checks_are_listed_by_family_and_one_shows_its_thresholds() -> None:
    assert "progress: " in text_of(ask("checks"))
    assert "quiet = " in text_of(ask("checks progress.stalled"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"watch {RUN}", "is watched already"),
        (f"watch runs/{RUN}.toml", "is watched already"),
        ("watch new-run", "put new-run.toml there"),
        ("watch", "put RUN.toml there"),
    ],
)
def test_watch_says_whether_a_run_is_watched_and_how_to_have_it_watched(text: str, says: str) -> None:
    assert says in text_of(ask(text))


def test_only_what_shows_the_past_has_it_read() -> None:
    assert {verb for verb in COMMANDS if shows_past(verb)} == {"catchup", "log", "audit"}


def test_a_status_says_when_it_was_true_and_until_when() -> None:
    assert "true at 2026-11-29 04:00 UTC; ask again after 2026-11-29 04:30 UTC" in text_of(ask("status"))


@pytest.mark.parametrize("text", ["log {} --verify", "audit {} --all", "plot {} --out x.png", "checks loss.spike now"])
def test_words_that_a_command_of_the_past_does_not_take_are_refused(text: str) -> None:
    said = text_of(ask(text.format(RUN)))

    assert "was not understood; nothing was done" in said


def test_a_check_that_there_is_not_is_not_answered_with_all_of_them() -> None:
    assert text_of(ask("checks loss.spik")) == 'There is no check loss.spik; did you mean "loss.spike"?\n'
    assert "There is no check loss.spik" in text_of(ask(f"explain {RUN} loss.spik"))
    assert text_of(ask("checks launch.code")).startswith("launch.code (at launch): ")
    assert "checks" in text_of(ask("checks"))
