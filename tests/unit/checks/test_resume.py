"""resume.mismatch: a launch from step N goes on at step N (field report R48)."""

import pytest

from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.resume import MISMATCH
from tests.fakes.clock import START
from tests.fakes.snapshots import contract, instance, job, later, lines, row, rows, snapshot, unknown
from tests.unit.checks.story import finding, verdict

FROM = instance(1, from_step=4_000)


@pytest.mark.parametrize(
    ("first", "is_fine"), [(0, False), (3_998, False), (3_999, True), (4_000, True), (4_100, True), (4_101, False)]
)
def test_the_first_step_must_be_the_one_after_the_checkpoint(first: int, is_fine: bool) -> None:
    found = verdict(MISMATCH, snapshot(launch=FROM, metrics=[row(first)]))

    assert isinstance(found, NotApplicable if is_fine else Fail)


def test_a_run_that_began_at_zero_is_critical_on_the_first_look_and_stays_so() -> None:
    began = snapshot(launch=FROM, metrics=rows(0, 20), log="Loading checkpoint from gs://bucket/base/step-0")

    found = finding(MISMATCH, began, snapshot(later(15), launch=FROM, metrics=rows(21, 30)))

    assert found.severity is Severity.CRITICAL
    assert found.summary == "lineage not confirmed: launched from checkpoint step 4000, but training logged step 0"
    assert not found.is_recoverable
    assert "log: Loading checkpoint from gs://bucket/base/step-0" in finding(MISMATCH, began).evidence


def test_a_later_retry_that_begins_elsewhere_is_found_too() -> None:
    story = [
        snapshot(launch=FROM, metrics=rows(4_000, 4_050)),
        snapshot(later(15), launch=FROM, metrics=rows(0, 3)),
    ]

    assert "step 0" in finding(MISMATCH, *story).summary


def test_an_ordinary_replay_of_later_steps_is_none() -> None:
    story = [
        snapshot(launch=FROM, metrics=rows(4_000, 4_050)),
        snapshot(later(15), launch=FROM, metrics=rows(4_020, 4_060)),
    ]

    assert isinstance(verdict(MISMATCH, *story), NotApplicable)


def _resumed(loss_at_4100: float) -> tuple[Snapshot, Snapshot]:
    """A launch that logged up to step 4200 and one from step 4000 that trains some of them again."""
    before = [row(step, loss=3.0 - step / 10_000) for step in range(3_900, 4_200, 10)]
    after = [row(step, loss=3.0 - step / 10_000) for step in range(4_000, 4_150, 10)]
    after[10] = row(4_100, loss=loss_at_4100)
    again = job(submitted_at=later(30))
    return (
        snapshot(metrics=before),
        snapshot(later(40), jobs=again, launch=instance(1, from_step=4_000, submitted_at=later(30)), metrics=after),
    )


def test_losses_that_repeat_at_the_steps_trained_again_pass() -> None:
    assert verdict(MISMATCH, *_resumed(3.0 - 0.41 + 0.0015)) == Pass()


def test_a_loss_that_differs_at_one_step_trained_again_is_critical() -> None:
    """Field report R51: the data loader's position was not restored, and nothing but the loss showed it."""
    found = finding(MISMATCH, *_resumed(3.0 - 0.41 + 0.0025))

    assert found.severity is Severity.CRITICAL
    assert found.since_step == 4_100
    assert found.summary.startswith("the loss does not go on as before the resume: 0.0025 apart at step 4100")


def test_without_a_step_logged_twice_the_resume_is_not_verifiable_rather_than_fine() -> None:
    before = snapshot(metrics=rows(3_900, 3_990))
    again = instance(1, from_step=4_000, submitted_at=later(30))

    found = verdict(
        MISMATCH,
        before,
        snapshot(later(40), jobs=job(submitted_at=later(30)), launch=again, metrics=rows(4_001, 4_050)),
    )

    assert isinstance(found, NotApplicable)
    assert "no step was logged twice" in found.reason


def test_a_launch_from_an_unknown_checkpoint_cannot_be_judged() -> None:
    assert isinstance(verdict(MISMATCH, snapshot(metrics=[row(0)])), NotApplicable)


def test_a_namesake_that_another_hand_launched_is_not_held_to_our_checkpoint() -> None:
    theirs = job(submitted_at=later(5))

    found = verdict(MISMATCH, snapshot(later(6), jobs=theirs, launch=FROM, metrics=[row(0)]))

    assert isinstance(found, NotApplicable)


def test_while_the_launch_before_is_still_shown_its_steps_are_not_held_against_the_new_one() -> None:
    """A submit command that prints the planned id and submits nothing leaves the old job under that name."""
    launch = instance(1, submitted_at=None, from_step=4_000, replaces=job().instance_id)

    assert isinstance(verdict(MISMATCH, snapshot(launch=launch, metrics=[row(0)])), NotApplicable)


def test_rows_of_the_instance_before_do_not_count() -> None:
    again = job(submitted_at=later(5))
    launch = instance(2, submitted_at=later(5), from_step=4_000)
    story = [
        snapshot(launch=instance(0, submitted_at=START), metrics=rows(0, 50)),
        snapshot(later(20), jobs=again, launch=launch, metrics=[row(4_001)]),
    ]

    assert isinstance(verdict(MISMATCH, *story), NotApplicable)


def test_a_first_step_that_may_have_been_cut_off_the_log_is_unknown() -> None:
    cut = lines("step 4500 loss 2.0").model_copy(update={"is_cut": True})
    seen = snapshot(launch=FROM, metrics=[row(4_500)], log=cut)

    assert isinstance(verdict(MISMATCH, seen), UnknownVerdict)
    assert isinstance(verdict(MISMATCH, seen, promised=contract(metrics={"file": "metrics.jsonl"})), Fail)


def test_no_step_yet_is_nothing_to_judge_and_no_metrics_are_unknown() -> None:
    assert isinstance(verdict(MISMATCH, snapshot(launch=FROM)), NotApplicable)
    assert isinstance(verdict(MISMATCH, snapshot(launch=FROM, metrics=unknown())), UnknownVerdict)
