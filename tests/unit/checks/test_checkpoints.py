"""checkpoint.stalled and checkpoint.incomplete: is there something to go back to?"""

from datetime import timedelta

from bot.model.job import JobState
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.checkpoints import INCOMPLETE, STALLED
from tests.fakes.clock import START
from tests.fakes.snapshots import checkpoint, contract, job, later, row, snapshot, unknown
from tests.unit.checks.story import finding, verdict, verdicts


def look(minutes: int, *saved_minutes: int, is_moving: bool = True) -> Snapshot:
    """Return a look at a run that trains one step a minute and saved at the given minutes."""
    return snapshot(
        later(minutes),
        metrics=[row(1000 + minutes, later(minutes))] if is_moving else [],
        checkpoints=[checkpoint(1000 + each, saved_at=later(each)) for each in saved_minutes],
    )


def test_steps_may_move_for_three_hours_before_the_first_save() -> None:
    found = verdicts(STALLED, [look(0), look(90), look(180), look(181)])

    assert [isinstance(each, Fail) for each in found] == [False, False, False, True]
    assert "there is none" in found[-1].model_dump_json()


def test_a_run_that_saves_hourly_is_told_of_after_three_intervals() -> None:
    saved = (0, 60, 120)

    found = verdicts(
        STALLED, [look(0), look(1, 0), look(61, 60), look(121, *saved), look(300, *saved), look(301, *saved)]
    )

    assert [isinstance(each, Fail) for each in found[-2:]] == [False, True]
    last = finding(STALLED, look(0), look(1, 0), look(61, 60), look(121, *saved), look(301, *saved))
    assert last.severity is Severity.CRITICAL
    assert last.summary.startswith("no new complete checkpoint for 3 h 1 min and 181 steps of training (limit 3 h)")
    assert "usual interval: 1 h, 60 steps" in last.evidence
    assert last.since_step == 1120
    assert not last.is_recoverable


def test_a_run_that_saves_every_minute_is_given_half_an_hour() -> None:
    often = [look(i, i) for i in range(4)]

    found = verdicts(STALLED, [*often, look(33, 3), look(34, 3)])

    assert [isinstance(each, Fail) for each in found[-2:]] == [False, True]


def test_a_run_that_slowed_down_is_late_in_time_but_not_in_steps() -> None:
    saved = (0, 60, 120)
    slow = snapshot(
        later(400),
        metrics=[row(1150, later(400))],
        checkpoints=[checkpoint(1000 + each, saved_at=later(each)) for each in saved],
    )

    assert verdict(STALLED, look(0), look(1, 0), look(61, 60), look(121, *saved), slow) == Pass()


def test_a_run_whose_steps_do_not_move_saves_nothing_and_that_is_for_another_check() -> None:
    assert verdict(STALLED, look(0, 0), look(600, 0, is_moving=False)) == Pass()


def test_an_incomplete_directory_is_no_save() -> None:
    half = snapshot(
        later(181),
        metrics=[row(1181, later(181))],
        checkpoints=[checkpoint(1100, saved_at=later(100), is_complete=False)],
    )

    assert isinstance(verdict(STALLED, look(0), half), Fail)


def test_time_before_training_began_is_not_counted_after_a_relaunch() -> None:
    again = job(submitted_at=later(600), started_at=later(600))
    seen = snapshot(
        later(660), jobs=again, metrics=[row(1001, later(659))], checkpoints=[checkpoint(1000, saved_at=later(0))]
    )

    assert verdict(STALLED, look(0, 0), seen) == Pass()


def test_saves_after_a_rollback_count_though_a_rejected_one_has_a_higher_step() -> None:
    again = job(submitted_at=later(60), started_at=later(60))
    rejected = checkpoint(1500, saved_at=later(50))
    looks = [
        snapshot(
            later(m),
            jobs=again,
            metrics=[row(900 + m, later(m))],
            checkpoints=[rejected, checkpoint(900 + m, saved_at=later(m))],
        )
        for m in (61, 121, 181, 241, 301)
    ]

    assert verdicts(STALLED, looks) == [Pass()] * 5


def test_what_cannot_be_read_is_unknown() -> None:
    for dark in ({"metrics": unknown()}, {"checkpoints": unknown()}, {"jobs": unknown()}):
        assert isinstance(verdict(STALLED, look(0), look(200).model_copy(update=dark)), UnknownVerdict)
    assert isinstance(verdict(INCOMPLETE, snapshot(checkpoints=unknown())), UnknownVerdict)


def test_a_job_that_does_not_run_saves_nothing() -> None:
    assert isinstance(verdict(STALLED, look(0), snapshot(jobs=job(JobState.PENDING))), NotApplicable)


def test_an_incomplete_newest_directory_is_a_warning_after_the_time_a_save_takes() -> None:
    """Field report R24: a job killed while saving left a newest-looking, incomplete folder."""
    dirs = [checkpoint(99_000, saved_at=START), checkpoint(100_000, is_complete=False)]

    found = verdicts(INCOMPLETE, [snapshot(later(m), checkpoints=dirs) for m in (0, 30, 31)])

    assert [isinstance(each, Fail) for each in found] == [False, False, True]
    last = finding(INCOMPLETE, snapshot(checkpoints=dirs), snapshot(later(31), checkpoints=dirs))
    assert last.severity is Severity.WARNING
    assert "step-100000 is not complete after 31 min" in last.summary
    assert "the newest complete one is step 99000" in last.summary
    assert not last.is_recoverable


def test_an_old_incomplete_directory_below_a_complete_one_is_history() -> None:
    dirs = [checkpoint(900, is_complete=False), checkpoint(1_000)]

    assert verdict(INCOMPLETE, *(snapshot(later(m), checkpoints=dirs) for m in (0, 60))) == Pass()


def test_each_save_has_its_own_time() -> None:
    looks = [
        snapshot(later(20 * i), checkpoints=[checkpoint(100 + i, is_complete=False), checkpoint(99)]) for i in range(4)
    ]

    assert verdicts(INCOMPLETE, looks) == [Pass()] * 4


def test_no_directory_is_nothing_to_judge() -> None:
    assert isinstance(verdict(INCOMPLETE, snapshot()), NotApplicable)


def test_a_contract_may_allow_longer_saves() -> None:
    promised = contract(thresholds={"checkpoint.incomplete": {"save_time": "2h"}})
    dirs = [checkpoint(5, is_complete=False, saved_at=later(0) - timedelta(hours=1))]

    assert verdict(INCOMPLETE, snapshot(checkpoints=dirs), promised=promised) == Pass()
    assert isinstance(verdict(INCOMPLETE, snapshot(checkpoints=dirs)), Fail)
