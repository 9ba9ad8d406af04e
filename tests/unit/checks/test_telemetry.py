"""``telemetry.gone``, ``run.down`` and ``sources.contradict``: two witnesses, weighed against each other."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from bot.model.job import Job, JobState, TaskState
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot
from bot.model.telemetry import Phase, Telemetry
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.telemetry import CONTRADICT, DOWN, GONE
from checks.witnesses import Heard
from tests.fakes.clock import START
from tests.fakes.snapshots import (
    AT,
    CADENCE,
    JOB,
    contract,
    failed_job,
    instance,
    job,
    later,
    snapshot,
    task,
    unknown,
)

CHILD = f"{JOB}/train"
ALL = (GONE, DOWN, CONTRADICT)


def says(at: datetime | None = AT, *, phase: Phase | None = Phase.TRAINING, **fields: Any) -> Telemetry:
    """What a trainer that was last heard at ``at`` says."""
    given = {"phase": phase, "phase_at": at, "last_row_at": at, "last_step": 1500, "is_of_current_execution": True}
    return Telemetry.model_validate(given | fields)


def look(at: datetime, telemetry: Telemetry | Unknown, **readings: Any) -> Snapshot:
    read = telemetry if isinstance(telemetry, Unknown) else Known(value=telemetry, at=at)
    return snapshot(at, **readings).model_copy(update={"telemetry": read})


def judge(check: Check[Any, Any], *looks: Snapshot, every: timedelta | None = None) -> Verdict:
    """Return the verdict on the last of the looks; the memory goes through JSON as in the store."""
    memory, verdict = check.memory, None
    watched = contract(cadence={"check": every}) if every else contract()
    for seen in looks:
        verdict, after = check.judge(seen, watched, check.thresholds, memory)
        memory = type(after).model_validate_json(after.model_dump_json())
    assert verdict is not None
    return verdict


def finding(verdict: Verdict) -> Finding:
    assert isinstance(verdict, Fail), verdict
    return verdict.finding


def is_told(check: Check[Any, Any], *looks: Snapshot) -> bool:
    return isinstance(judge(check, *looks), Fail)


def coordinated(child: Job | None) -> tuple[Job, ...]:
    """A coordinator that lives, and the trainer below it."""
    return (job(), child) if child else (job(),)


def test_a_run_that_is_heard_and_runs_passes_all_three() -> None:
    assert [judge(check, look(AT, says())) for check in ALL] == [Pass()] * 3


# --- telemetry.gone -----------------------------------------------------------------------------------------------


def test_telemetry_that_ends_while_tasks_run_is_gone_and_the_run_is_not_down() -> None:
    looks = [look(AT, says()), look(later(15), says())]

    found = finding(judge(GONE, *looks))

    assert "not heard for 15 min" in found.summary
    assert "while the orchestrator counts its tasks as running" in found.summary
    assert found.since_at == AT
    assert judge(DOWN, *looks) == Pass()


@pytest.mark.parametrize(("minutes", "told"), [(9.9, False), (10.1, True)])
def test_ten_minutes_of_silence_are_the_limit(minutes: float, told: bool) -> None:
    assert is_told(GONE, look(AT, says()), look(later(minutes), says())) is told


def test_a_trainer_that_said_it_has_finished_is_silent_on_purpose() -> None:
    looks = [look(AT, says(phase=Phase.FINISHED)), look(later(25), says(phase=Phase.FINISHED))]

    assert isinstance(judge(GONE, *looks), NotApplicable)


def test_a_new_attempt_may_take_its_time_before_it_is_heard() -> None:
    predecessors = says(later(-20), is_of_current_execution=False)
    began = task(started_at=later(-10))

    early = look(AT, predecessors, jobs=job(tasks=(began,)))
    late = look(later(40), predecessors, jobs=job(tasks=(began,)))

    assert isinstance(judge(GONE, early), NotApplicable)
    assert is_told(GONE, early, late)


def test_a_run_that_never_wrote_telemetry_misses_none() -> None:
    assert isinstance(judge(GONE, look(AT, Telemetry()), look(later(60), Telemetry())), NotApplicable)


def test_rows_that_vanish_from_the_store_are_gone_too() -> None:
    assert is_told(GONE, look(AT, says()), look(later(15), Telemetry()))


def test_a_trainers_clock_that_is_hours_off_neither_hides_silence_nor_makes_it() -> None:
    ahead, behind = timedelta(hours=5), timedelta(hours=-5)

    hidden = [look(AT, says(AT + ahead)), look(later(15), says(AT + ahead))]
    made = [look(later(m), says(later(m) + behind), jobs=job(submitted_at=START - timedelta(days=1))) for m in (0, 15)]

    assert is_told(GONE, *hidden)
    assert judge(GONE, *made) == Pass()


# --- run.down -----------------------------------------------------------------------------------------------------


def test_a_run_that_vanished_from_both_is_announced_within_a_cadence() -> None:
    """Field report R35."""
    looks = [look(AT, says()), look(AT + CADENCE, Telemetry(), jobs=(), launch=instance())]

    found = finding(judge(DOWN, *looks))

    assert found.severity is Severity.CRITICAL
    assert "the orchestrator answers that there is no such job" in found.summary
    assert not found.is_recoverable, "whoever vanished may train under another name"
    assert isinstance(judge(GONE, *looks), NotApplicable)


def test_a_run_of_which_nothing_was_ever_heard_is_watched_from_its_launch() -> None:
    launch = instance(launched_at=AT)

    assert not is_told(DOWN, look(later(5), Telemetry(), jobs=(), launch=launch))
    assert is_told(DOWN, look(later(15), Telemetry(), jobs=(), launch=launch))


@pytest.mark.parametrize("reason", [Gap.TIMEOUT, Gap.REFUSED, Gap.UNREACHABLE])
@pytest.mark.parametrize("dark", ["jobs", "telemetry", "tasks"])
def test_while_one_witness_cannot_be_read_nothing_is_concluded(dark: str, reason: Gap) -> None:
    gap = unknown(reason)
    seen = {
        "jobs": look(later(60), says(), jobs=gap, launch=instance()),
        "telemetry": look(later(60), gap, jobs=(), launch=instance()),
        "tasks": look(later(60), says(), jobs=job(tasks=gap)),
    }[dark]

    for check in ALL:
        verdict = judge(check, look(AT, says()), seen)
        assert isinstance(verdict, UnknownVerdict), check.id
        assert verdict.reason is reason


def test_where_finelog_is_not_configured_the_checks_do_not_apply() -> None:
    for check in ALL:
        assert isinstance(judge(check, look(AT, unknown(Gap.NOT_CONFIGURED))), NotApplicable)


def test_a_coordinator_alone_does_not_keep_a_run_up() -> None:
    ended = job(JobState.FAILED, job_id=CHILD, parent=JOB)
    signs = says(job_id=CHILD)

    with_child = look(later(15), signs, jobs=coordinated(ended))
    pruned = look(later(15), signs, jobs=coordinated(None))
    trains = look(later(15), signs, jobs=coordinated(job(job_id=CHILD, parent=JOB)))

    assert is_told(DOWN, look(AT, signs), with_child)
    assert is_told(DOWN, look(AT, signs), pruned)
    assert not is_told(DOWN, look(AT, signs), trains)


def test_a_failed_job_is_down_only_once_its_trainer_is_silent_too() -> None:
    dead = failed_job(finished_at=AT)

    assert not is_told(DOWN, look(later(1), says(), jobs=dead))
    assert is_told(DOWN, look(later(1), says(), jobs=dead), look(later(16), says(), jobs=dead))


@pytest.mark.parametrize(
    "jobs",
    [
        job(JobState.PENDING),
        job(tasks=(task(state=TaskState.PENDING), task(1, TaskState.ASSIGNED))),
        job(JobState.SUCCEEDED),
        job(JobState.KILLED),
    ],
)
def test_what_waits_or_ended_in_order_is_left_to_other_checks(jobs: Job) -> None:
    assert isinstance(judge(DOWN, look(AT, says()), look(later(60), says(), jobs=jobs)), NotApplicable)


def test_an_end_that_is_on_record_ends_the_watch() -> None:
    over = look(later(60), says(), jobs=(), launch=instance(ended_at=later(5), exit_code=0))

    assert isinstance(judge(DOWN, look(AT, says()), over), NotApplicable)


def test_signs_of_an_earlier_launch_do_not_count_for_a_new_one() -> None:
    old = says(phase=Phase.FINISHED, is_of_current_execution=False)
    launch = instance(1, submitted_at=later(20), launched_at=later(20))

    assert is_told(DOWN, look(AT, old), look(later(40), old, jobs=(), launch=launch))


# --- sources.contradict -------------------------------------------------------------------------------------------


def test_a_trainer_that_goes_on_after_its_job_is_gone_is_a_finding_after_a_cadence() -> None:
    looks = [look(later(m), says(later(m)), jobs=(), launch=instance()) for m in (0, 5, 15)]

    assert not is_told(CONTRADICT, *looks[:2])
    found = finding(judge(CONTRADICT, *looks))
    assert found.severity is Severity.CRITICAL
    assert found.advice.startswith("Do not relaunch")
    assert not is_told(DOWN, *looks)


def test_last_words_that_arrive_late_contradict_nothing() -> None:
    last = says(AT)
    looks = [look(later(m), last, jobs=failed_job(finished_at=AT)) for m in (1, 9, 16, 31)]

    assert not any(is_told(CONTRADICT, *looks[: n + 1]) for n in range(len(looks)))


def test_what_a_killed_trainer_says_while_it_ends_is_no_life_however_often_one_looks() -> None:
    """A run that is looked at every second, as in a trial, sees rows of the seconds after the kill."""
    ended = AT + timedelta(seconds=1)
    heard = (0, 2, 4, 4, 4)
    looks = [
        look(AT + timedelta(seconds=at), says(AT + timedelta(seconds=said)), jobs=failed_job(finished_at=ended))
        for at, said in zip((1, 3, 5, 40, 90), heard, strict=True)
    ]
    later_on = look(AT + timedelta(seconds=100), says(AT + timedelta(seconds=95)), jobs=failed_job(finished_at=ended))

    each = timedelta(seconds=1)
    assert not any(isinstance(judge(CONTRADICT, *looks[: n + 1], every=each), Fail) for n in range(len(looks)))
    assert isinstance(judge(CONTRADICT, *looks, later_on, every=each), Fail)


def test_a_contradiction_that_ends_begins_anew() -> None:
    apart: dict[str, Any] = {"jobs": (), "launch": instance()}
    together: dict[str, Any] = {}
    looks = [look(later(m), says(later(m)), **given) for m, given in ((0, apart), (10, together), (15, apart))]

    assert not is_told(CONTRADICT, *looks)


def test_a_trainer_that_finished_and_runs_on_is_a_finding_after_half_an_hour() -> None:
    looks = [look(later(m), says(phase=Phase.FINISHED)) for m in (1, 29, 31)]

    assert judge(CONTRADICT, *looks[:2]) == Pass()
    found = finding(judge(CONTRADICT, *looks))
    assert found.severity is Severity.WARNING
    assert "has finished" in found.summary


def test_the_end_of_an_earlier_execution_contradicts_no_new_one() -> None:
    earlier = says(phase=Phase.FINISHED, is_of_current_execution=False)

    assert judge(CONTRADICT, look(AT, earlier), look(later(60), earlier)) == Pass()


@pytest.mark.parametrize("check", ALL, ids=lambda check: str(check.id))
def test_the_memory_stays_small_whatever_happens(check: Check[Any, Any]) -> None:
    memory = check.memory
    for minute in range(500):
        _, memory = check.judge(look(later(minute), says(later(minute))), contract(), check.thresholds, memory)

    assert isinstance(memory, Heard)
    assert len(memory.model_dump_json()) < 500
