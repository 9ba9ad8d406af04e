"""What was concluded when, on what grounds, and why it was told or not: kept at every change, and at nothing else."""

from datetime import timedelta

from bot.model.event import RunChecked
from bot.model.history import VerdictChange
from bot.model.incident import News
from bot.model.reading import Gap
from bot.model.record import Record
from bot.model.run import Run
from bot.model.value import CheckId
from bot.model.verdict import Fail, Finding, Judgement, Pass, Severity, UnknownVerdict, Verdict
from handlers.explained import NEWS_WORDS, explain_lines, say_seen, verdict_changes
from handlers.news import changes_after
from tests.fakes.snapshots import AT, RUN, checkpoint, later, rows, snapshot, unknown

STALLED = CheckId("progress.stalled")
BAD = Fail(
    finding=Finding(check=STALLED, severity=Severity.CRITICAL, summary="no new step for 40 min", advice="look at it")
)
DARK = UnknownVerdict(reason=Gap.TIMEOUT, detail="no answer in 20 s")


def play(*verdicts: Verdict) -> list[tuple[VerdictChange, ...]]:
    """Return what is noted at each of some looks, 15 minutes apart."""
    record = Record(run=Run(run_id=RUN))
    noted: list[tuple[VerdictChange, ...]] = []
    for number, verdict in enumerate(verdicts):
        seen = snapshot(AT + timedelta(minutes=15 * number), metrics=rows(200, 210))
        judgements = (Judgement(check=STALLED, verdict=verdict),)
        changes = changes_after(record, judgements, seen.at)
        made = verdict_changes(record, RunChecked(run_id=RUN, snapshot=seen, judgements=judgements), changes)
        noted.append(made)
        record = record.model_copy(
            update={
                "incidents": tuple(i for i in changes.incidents if not i.is_resolved),
                "verdicts": record.verdicts | {change.check: change for change in made},
            }
        )
    return noted


def test_a_verdict_is_noted_when_it_changes_and_not_while_it_stays() -> None:
    noted = play(Pass(), Pass(), BAD, BAD, BAD, DARK, DARK, Pass())

    assert [len(each) for each in noted] == [1, 0, 1, 1, 0, 1, 0, 1]
    news = [change.news for each in noted for change in each]
    assert news == [None, News.OPENED, News.NOTHING_NEW, News.UNKNOWN, News.RESOLVED]


def test_each_note_has_the_numbers_it_was_based_on() -> None:
    ((change,),) = play(BAD)

    assert change.incident == 1
    assert change.at == AT
    assert "11 new rows, last step 210, loss 2" in change.seen


def test_what_was_seen_names_what_could_not_be() -> None:
    seen = snapshot(later(1), jobs=unknown(), metrics=(), checkpoints=[checkpoint(200)])

    assert say_seen(seen).split("; ") == [
        "no new rows",
        "newest complete checkpoint step 200",
        f"jobs unknown ({unknown().reason})",
    ]


def test_the_answer_says_what_why_and_since_when() -> None:
    noted = [change for each in play(BAD, BAD) for change in each]

    lines = explain_lines((noted[-1],), AT, "UTC")

    assert lines[0] == (
        "progress.stalled: critical: no new step for 40 min (I1) — not told again: nothing new since it was"
    )
    assert lines[1].startswith("  since 2026-")


def test_before_the_first_look_nothing_is_on_record() -> None:
    assert explain_lines((), AT, "UTC")[0].startswith("nothing is on record for 2026-")


def test_every_reason_has_words() -> None:
    assert set(NEWS_WORDS) == set(News)
