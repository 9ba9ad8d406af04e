"""progress.stalled and progress.startup: a job that says it runs, and does it train?"""

from datetime import timedelta

import pytest

from bot.model.job import JobState, TaskState
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.progress import STALLED, STARTUP
from tests.fakes.clock import START
from tests.fakes.launched import config, tree, with_config
from tests.fakes.snapshots import AT, attempt, contract, job, later, row, rows, snapshot, task, unknown
from tests.unit.checks.story import finding, verdict, verdicts

TRAINING = snapshot(metrics=rows(1, 50, until=later(0)))


def test_new_steps_pass() -> None:
    found = verdicts(STALLED, [TRAINING, snapshot(later(15), metrics=rows(51, 60, until=later(14)))])

    assert found == [Pass(), Pass()]


def test_no_new_step_for_more_than_15_minutes_is_a_stall_with_the_last_words_of_the_log() -> None:
    found = verdicts(STALLED, [TRAINING, snapshot(later(15)), snapshot(later(16), log="saving\nwaiting for barrier")])

    assert found[:2] == [Pass(), Pass()]
    last = found[2]
    assert isinstance(last, Fail)
    assert last.finding.severity is Severity.CRITICAL
    assert "stalled at step 50: no new step for 16 min (limit 15 min)" in last.finding.summary
    assert "last log line: waiting for barrier" in last.finding.evidence
    assert last.finding.since_step == 50
    assert last.finding.since_at == later(0)


def test_a_slow_run_is_judged_by_its_own_pace() -> None:
    """Steps of 5 minutes: ten times that is 50 minutes."""
    slow = snapshot(metrics=rows(1, 6, until=later(0), every_s=300), jobs=job(started_at=START))

    found = verdicts(STALLED, [slow, snapshot(later(50)), snapshot(later(51))])

    assert [isinstance(each, Fail) for each in found] == [False, False, True]


def test_rows_without_times_teach_the_pace_too() -> None:
    looks = [snapshot(later(15 * i), metrics=[row(3 * i), row(3 * i + 1), row(3 * i + 2)]) for i in range(4)]

    found = verdicts(STALLED, [*looks, snapshot(later(94)), snapshot(later(96))])

    assert [isinstance(each, Fail) for each in found[-2:]] == [False, True]


def test_a_declared_pause_is_no_stall_until_it_is_over() -> None:
    promised = contract(thresholds={"progress.stalled": {"allowance": "40m"}})

    found = verdicts(STALLED, [TRAINING, snapshot(later(40)), snapshot(later(41))], promised)

    assert [isinstance(each, Fail) for each in found] == [False, False, True]


def test_time_without_readable_metrics_is_unknown_and_counts_once_they_are_back() -> None:
    dark = [snapshot(later(m), metrics=unknown()) for m in (15, 30)]

    found = verdicts(STALLED, [TRAINING, *dark, snapshot(later(45))])

    assert [type(each) for each in found] == [Pass, UnknownVerdict, UnknownVerdict, Fail]


def test_rows_that_arrive_after_a_gap_are_progress() -> None:
    found = verdicts(STALLED, [TRAINING, snapshot(later(60), metrics=rows(51, 300, until=later(59)))])

    assert found[-1] == Pass()


@pytest.mark.parametrize("wrong_by", [timedelta(hours=-3), timedelta(hours=3)])
def test_a_trainer_whose_clock_is_wrong_neither_stalls_nor_hides_a_stall(wrong_by: timedelta) -> None:
    looks = [snapshot(later(m), metrics=[row(m, later(m) + wrong_by)]) for m in (0, 15, 30)]

    found = verdicts(STALLED, [*looks, snapshot(later(61))])

    assert found[1:3] == [Pass(), Pass()]
    assert isinstance(found[3], Fail)


def test_replayed_steps_after_a_restore_are_progress() -> None:
    """Field report R22: after a restore from step 110 the steps up to 161 come again; nothing is stalled."""
    first = snapshot(metrics=rows(120, 161, until=later(0)))
    replay = snapshot(later(30), metrics=rows(110, 130, until=later(30)))

    assert verdicts(STALLED, [first, replay, snapshot(later(45))]) == [Pass(), Pass(), Pass()]


def test_a_new_instance_is_not_judged_by_the_old_ones_last_step() -> None:
    again = job(submitted_at=later(60), started_at=later(61))

    found = verdict(STALLED, TRAINING, snapshot(later(62), jobs=again))

    assert isinstance(found, NotApplicable)


def test_a_retry_inside_the_job_gets_its_time_to_restore_and_compile() -> None:
    retried = task(attempts=(attempt(0, TaskState.FAILED, finished_at=later(1)), attempt(1, started_at=later(2))))
    looks = [TRAINING, *(snapshot(later(m), jobs=job(tasks=(retried,))) for m in (30, 47, 48))]

    assert isinstance(verdict(STALLED, *looks), NotApplicable)
    assert [isinstance(each, Fail) for each in verdicts(STARTUP, looks)] == [False, False, False, True]


@pytest.mark.parametrize("last", [9_999, 10_000])
def test_a_run_at_its_final_step_is_not_stalled(last: int) -> None:
    done = snapshot(metrics=rows(last - 1, last, until=later(0)))

    assert isinstance(verdict(STALLED, done, snapshot(later(120))), NotApplicable)


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.FAILED, JobState.SUCCEEDED])
def test_only_running_jobs_can_stall(state: JobState) -> None:
    for check in (STALLED, STARTUP):
        assert isinstance(verdict(check, TRAINING, snapshot(later(120), jobs=job(state))), NotApplicable)


def test_a_job_that_is_gone_is_for_other_checks() -> None:
    assert isinstance(verdict(STALLED, TRAINING, snapshot(later(120), jobs=())), NotApplicable)


def test_startup_may_take_45_minutes() -> None:
    fresh = job(started_at=later(0))

    found = verdicts(STARTUP, [snapshot(later(m), jobs=fresh, log="compiling") for m in (1, 45, 46)])

    assert [type(each) for each in found] == [NotApplicable, NotApplicable, Fail]
    assert "running for 46 min without a training step" in found[2].model_dump_json()


def test_the_first_step_ends_the_startup() -> None:
    fresh = job(started_at=later(0))

    found = verdicts(
        STARTUP, [snapshot(later(10), jobs=fresh, metrics=[row(0, later(9))]), snapshot(later(90), jobs=fresh)]
    )

    assert found == [Pass(), Pass()]


def test_a_startup_that_cannot_be_seen_is_unknown() -> None:
    assert isinstance(verdict(STARTUP, snapshot(later(90), metrics=unknown())), UnknownVerdict)


def test_a_stall_may_be_put_to_the_dri_as_a_question() -> None:
    assert finding(STALLED, TRAINING, snapshot(later(20))).is_recoverable


@pytest.mark.parametrize(
    ("watchdog", "stalls_after"),
    [("0:30:00", 30), ("30m", 30), (5400, 90), ("5m", 15), (None, 15), ("soon", 15), (float("nan"), 15), ("9h", 120)],
)
def test_the_launched_configs_step_watchdog_lengthens_the_limit_by_two_hours_at_most(
    watchdog: object, stalls_after: int
) -> None:
    launched = config(tree(trainer__progress_watchdog__step_timeout=watchdog))
    trained = with_config(snapshot(metrics=rows(1, 20, until=AT)), launched)

    def look(minutes: int) -> Snapshot:
        return with_config(snapshot(later(minutes)), launched)

    assert verdict(STALLED, trained, look(stalls_after)) == Pass()
    assert isinstance(verdict(STALLED, trained, look(stalls_after + 1)), Fail)


def test_a_stall_says_that_the_trainers_watchdog_did_not_end_it_and_an_unreadable_config_does_not_shorten_it() -> None:
    trained = with_config(snapshot(metrics=rows(1, 20, until=AT)), config())
    dark = [with_config(snapshot(later(minutes)), unknown()) for minutes in (20, 31)]

    assert verdict(STALLED, trained, dark[0]) == Pass()
    assert (
        "the trainer's own step watchdog (trainer.progress_watchdog.step_timeout: 30 min) has not ended it either"
        in finding(STALLED, trained, *dark).evidence
    )
