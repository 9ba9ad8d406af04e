"""Whoever comes back reads what is new to them, the gravest first, in what fits a phone."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.chronicle import Asked, Entry, Failed, Happening, MilestoneReached, Recovered, next_entry
from bot.model.incident import Pending, Silenced, open_incident
from bot.model.record import Record
from bot.model.run import Run, RunState
from bot.model.value import CheckId, RunId
from bot.model.verdict import Finding, Severity
from bot.model.visit import Visit, visit_at, visitor
from checks.failures import Failure, Ledger
from checks.repeats import REPEATED_ID
from handlers.catchup import MOST_LINES, Absence, catch_up
from tests.fakes.snapshots import AT, JOB, RUN, later
from tests.unit.handlers.scene import ADA, PEOPLE, console, context, github, record, request, slack

OTHER = RunId("other-run")
BEFORE = AT - timedelta(hours=9)


def finding(summary: str = "no new step", severity: Severity = Severity.WARNING) -> Finding:
    return Finding(check=CheckId("progress.stalled"), severity=severity, summary=summary, advice="look at it")


def well(*requests: Any, **fields: Any) -> Record:
    run = Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT)
    return record(*requests, **{"run": run} | fields)


def entries(*happened: tuple[datetime, Happening]) -> tuple[Entry, ...]:
    made: list[Entry] = []
    for at, happening in happened:
        payload = happening.model_dump(mode="json", exclude={"kind"})
        made.append(next_entry(RUN, made[-1] if made else None, at, happening.kind, payload))
    return tuple(made)


def away(*records: Record, **fields: Any) -> Absence:
    given: dict[str, Any] = {
        "records": records,
        "contexts": {each.run_id: context() for each in records},
        "since": BEFORE,
        "at": AT,
        "timezone": "UTC",
    }
    return Absence(**given | fields)


def lines(*records: Record, **fields: Any) -> tuple[str, ...]:
    return catch_up(away(*records, **fields))[1]


def test_nothing_new_is_said_in_one_line() -> None:
    assert catch_up(away(well())) == ("nothing to catch up on since 2026-11-28 19:00 UTC (9 h)", ())


def test_a_decision_comes_first_then_what_is_grave_then_silences_then_the_rest() -> None:
    grave = open_incident(1, RUN, finding("the job died", Severity.CRITICAL), AT)
    quiet = open_incident(2, RUN, finding("slow"), BEFORE - timedelta(days=1)).model_copy(
        update={"state": Silenced(by=ADA, at=BEFORE, until=later(30))}
    )
    old = open_incident(3, RUN, finding("a bit odd"), BEFORE - timedelta(days=1))
    happened = entries((later(-60), MilestoneReached(step=500)), (BEFORE, MilestoneReached(step=400)))

    said = lines(well(request(), incidents=(old, quiet, grave)), entries={RUN: happened})

    assert said == (
        "TO DECIDE by ada until 2026-11-30 04:00 UTC: R7, relaunch this run from step 0?",
        "I1 progress.stalled (critical, new): the job died",
        "ada's silence over I2 progress.stalled ends in 30 min: slow",
        "I3 progress.stalled (warning): a bit odd",
        "2026-11-29 03:00 UTC step 500 is reached; newest complete checkpoint: unknown",
    )


def test_a_long_silence_is_left_alone_and_what_was_seen_once_is_said_to_be_no_incident_yet() -> None:
    long = open_incident(2, RUN, finding(), AT).model_copy(
        update={"state": Silenced(by=ADA, at=AT, until=later(60 * 9))}
    )
    once = open_incident(3, RUN, finding("slow"), AT).model_copy(
        update={"state": Pending(looks=(True,)), "is_told": False}
    )

    assert lines(well(incidents=(long, once))) == ("seen, not often enough to be told: I3 progress.stalled: slow",)


def test_what_still_stands_is_not_said_twice_and_what_is_over_is() -> None:
    failed = Failed(incident=1, check="job.ended", severity="critical", summary="it died")
    over = Failed(incident=2, check="job.ended", severity="critical", summary="it died before")
    asked = Asked(request=7, plan="relaunch", digest="d", dri=ADA, reason="it died")
    happened = entries(
        (later(-9), failed),
        (later(-8), asked),
        (later(-60), over),
        (later(-30), Recovered(incident=2, check="job.ended")),
    )
    grave = open_incident(1, RUN, finding("it died", Severity.CRITICAL), AT)

    said = lines(well(request(), incidents=(grave,)), entries={RUN: happened})

    assert [line for line in said if "it died" in line] == [
        "I1 progress.stalled (critical, new): it died",
        "2026-11-29 03:00 UTC I2 job.ended (critical): it died before",
    ]
    assert "2026-11-29 03:30 UTC I2 job.ended is over" in said


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (Run(run_id=RUN, state=RunState.FAILED, last_checked_at=AT), f"{RUN}: failed at step unknown/10000"),
        (Run(run_id=RUN, state=RunState.RUNNING, is_paused=True, last_checked_at=AT), f"{RUN}: the watch is paused"),
        (Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=later(-31)), f"{RUN}: not checked for 31 min"),
        (Run(run_id=RUN, state=RunState.PENDING), f"{RUN}: not checked yet"),
    ],
)
def test_a_run_that_is_not_well_or_not_seen_says_so(run: Run, says: str) -> None:
    (line,) = lines(well(run=run))

    assert line.startswith(says)


def test_a_run_without_a_usable_contract_is_named() -> None:
    (line,) = lines(well(), blocked={OTHER: "dri is missing"})

    assert line == f"{OTHER}: not watched, its contract cannot be used: dri is missing"


def failure(at: datetime, *, node: str | None = None, step: int | None = None) -> Failure:
    return Failure(job=JOB, attempt=0, signature="hardware.worker_lost", step=step, node=node, at=at)


def with_failures(run_id: RunId, *failures: Failure) -> Record:
    ledger = Ledger(failures=failures).model_dump_json()
    run = Run(run_id=run_id, state=RunState.RUNNING, last_checked_at=AT)
    return Record(run=run, memories={REPEATED_ID: ledger})


def test_failures_that_share_a_node_a_place_or_a_moment_are_named_once() -> None:
    mine = with_failures(
        RUN,
        failure(later(-600), node="node-3", step=1000),
        failure(later(-60), node="node-3", step=1040),
        failure(later(-50), node="node-4", step=5000),
    )
    theirs = with_failures(OTHER, failure(later(-44), node="node-9"))

    said = lines(mine, theirs)

    assert f"{RUN} failed more than once on node-3" in said
    assert f"{RUN} failed more than once within steps 1000 to 1040: hardware.worker_lost" in said
    assert f"{RUN} and {OTHER} failed 6 min apart, at 2026-11-29 03:16 UTC: one cause?" in said
    assert sum("node-3" in line for line in said) == 1


def test_failures_of_before_are_no_news() -> None:
    assert lines(with_failures(RUN, failure(later(-900), node="n"), failure(later(-800), node="n"))) == ()


@given(
    counts=st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 60)),
    summary=st.text(max_size=300),
    memory=st.text(max_size=50),
)
def test_however_much_happened_it_fits_a_phone_and_nothing_breaks_it(
    counts: tuple[int, int, int], summary: str, memory: str
) -> None:
    incidents = tuple(open_incident(n, RUN, finding(summary), AT) for n in range(counts[0]))
    requests = tuple(request(n + 1, reason=summary) for n in range(counts[1]))
    happened = entries(*((later(-n - 1), MilestoneReached(step=n)) for n in range(counts[2])))
    known = well(*requests, incidents=incidents, memories={REPEATED_ID: memory})

    headline, said = catch_up(away(known, entries={RUN: happened}))

    assert len(said) <= MOST_LINES
    assert all("\n" not in line for line in (headline, *said))
    every = sum(counts)
    assert len(said) == min(every, MOST_LINES)
    if every > MOST_LINES:
        assert said[-1].startswith(f"… and {every - MOST_LINES + 1} more")
    assert [line.startswith("TO DECIDE") for line in said[: counts[1]]] == [True] * min(counts[1], len(said)) or (
        counts[1] >= MOST_LINES
    )


def test_commands_of_one_sitting_are_one_look_and_the_next_one_begins_where_it_ended() -> None:
    first = visit_at(None, AT)
    again = visit_at(first, later(20))
    back = visit_at(again, later(600))

    assert first.since == again.since == AT - timedelta(hours=24)
    assert back.since == later(20)
    assert Visit.model_validate_json(back.model_dump_json()) == back


def test_a_person_is_the_same_on_every_platform_and_a_stranger_is_their_account() -> None:
    assert {visitor(actor, PEOPLE) for actor in (slack(), github(), console())} == {"looked:ada"}
    assert visitor(slack("U0EVIL"), PEOPLE) == "looked:slack:U0EVIL"
    assert visitor(slack("U0TWIN"), PEOPLE) == "looked:slack:U0TWIN"
