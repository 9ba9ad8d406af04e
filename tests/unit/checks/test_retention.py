"""checkpoint.window: there must be something sound to go back to, also tomorrow."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.snapshot import Checkpoint
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict
from checks.retention import WINDOW
from tests.fakes.snapshots import AT, checkpoint, contract, instance, job, later, snapshot, unknown
from tests.unit.checks.story import finding, verdict, verdicts


def temporary(step: int, *, is_complete: bool = True, fault: str = "", age: timedelta = timedelta()) -> Checkpoint:
    made = checkpoint(step, is_complete=is_complete, is_temporary=True, saved_at=AT - age)
    return made.model_copy(update={"fault": fault or made.fault})


def broken(step: int) -> Checkpoint:
    return checkpoint(step, is_complete=False)


@pytest.mark.parametrize(
    ("found", "retention", "is_told"),
    [
        ([temporary(100)], {"resume": 1}, False),
        ([temporary(100), broken(200)], {"resume": 1}, False),
        ([temporary(100), broken(200), broken(300)], {"resume": 1}, True),
        ([temporary(100), broken(200), broken(300)], {"resume": 2}, False),
        ([temporary(100), broken(200), temporary(300, fault="the save is not clean")], {"resume": 1}, True),
        ([checkpoint(100), broken(200), broken(300)], {"resume": 1}, False),
        ([temporary(100), broken(50), broken(60)], {"resume": 1}, False),
        ([temporary(5_000)], {"milestones": [4_000]}, True),
        ([checkpoint(4_000), temporary(5_000)], {"milestones": [4_000]}, False),
        ([checkpoint(3_999), temporary(5_000)], {"milestones": [4_000]}, False),
        ([temporary(4_000), temporary(5_000)], {"milestones": [4_000]}, True),
        ([temporary(3_900)], {"milestones": [4_000]}, False),
        ([temporary(100, age=timedelta(days=24))], {}, False),
        ([temporary(100, age=timedelta(days=26))], {}, True),
        ([temporary(100, age=timedelta(days=26)), temporary(200)], {}, False),
    ],
)
def test_what_threatens_the_last_sound_checkpoint(
    found: list[Checkpoint], retention: dict[str, Any], is_told: bool
) -> None:
    last = verdict(WINDOW, snapshot(checkpoints=found), promised=contract(retention=retention))

    assert isinstance(last, Fail) is is_told


def test_the_last_sound_one_that_goes_away_is_critical_until_there_is_a_newer_one() -> None:
    story = [
        snapshot(checkpoints=[checkpoint(100)]),
        snapshot(later(15), checkpoints=[broken(200)]),
        snapshot(later(30), checkpoints=[broken(200)]),
        snapshot(later(45), checkpoints=[checkpoint(200)]),
    ]

    assert [isinstance(each, Fail) for each in verdicts(WINDOW, story)] == [False, True, True, False]
    found = finding(WINDOW, *story[:3])
    assert found.severity is Severity.CRITICAL
    assert "step 100, is gone" in found.summary
    assert "nothing is left to go back to" in found.summary


def test_ordinary_rotation_is_no_loss_and_a_relaunch_after_a_rollback_starts_afresh() -> None:
    rotation = [snapshot(later(m), checkpoints=[temporary(100 + m)]) for m in (0, 15, 30)]
    again = snapshot(
        later(45),
        jobs=job(submitted_at=later(40)),
        launch=instance(1, submitted_at=later(40)),
        checkpoints=[temporary(90)],
    )

    assert verdicts(WINDOW, [*rotation, again]) == [Pass()] * 4


def test_a_contract_may_want_a_deeper_window_and_newer_permanent_ones() -> None:
    deep = contract(thresholds={"checkpoint.window": {"spare": 1}})
    young = contract(thresholds={"checkpoint.window": {"permanent_age": "2d"}})
    old = [checkpoint(100, saved_at=AT - timedelta(days=3)), temporary(200)]

    assert isinstance(verdict(WINDOW, snapshot(checkpoints=[checkpoint(100)]), promised=deep), Fail)
    assert verdict(WINDOW, snapshot(checkpoints=[checkpoint(100), checkpoint(200)]), promised=deep) == Pass()
    assert "3 d old" in finding(WINDOW, snapshot(checkpoints=old), promised=young).summary


def test_no_checkpoint_yet_and_what_cannot_be_read_are_no_pass() -> None:
    assert isinstance(verdict(WINDOW, snapshot()), NotApplicable)
    assert isinstance(verdict(WINDOW, snapshot(checkpoints=unknown())), UnknownVerdict)
    assert isinstance(verdict(WINDOW, snapshot(checkpoints=[checkpoint(1)], jobs=unknown())), UnknownVerdict)
