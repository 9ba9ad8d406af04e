"""Whether a relaunched job took up the run where the plan says."""

from typing import Any

import pytest

from bot.actions.restore import NotYet, Restored, WrongRestore, judge_restore
from bot.model.planned import PlannedCheckpoint
from bot.model.reading import Known
from bot.model.snapshot import LogTail, MetricRow, Metrics
from bot.model.telemetry import Phase, Telemetry
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import blind, contract, snapshot, unknown

PATH = "gs://bucket/hero/checkpoints/step-200"
PLAN = a_plan().model_copy(update={"resume_from": PlannedCheckpoint(step=200, path=PATH)})
FROM_NOTHING = a_plan()
LOADED = f"INFO Loading checkpoint from {PATH}"


def judge(log: str, *steps: int, plan: Any = PLAN, **promised: Any) -> Restored | NotYet | WrongRestore:
    return judge_restore(plan, contract(**promised), snapshot(log=log), steps)


def test_the_planned_checkpoint_and_a_step_after_it_are_a_restore() -> None:
    judged = judge(LOADED, 200, 201)

    assert isinstance(judged, Restored)
    assert judged.first_step == 200
    assert f"loaded {PATH}" in judged.detail


@pytest.mark.parametrize(
    "line",
    [
        f"Loading checkpoint from {PATH}/",
        f"Loading checkpoint from '{PATH}'".replace("'", ""),
        f"Loading checkpoint from {PATH}.",
        "Loading checkpoint from /mnt/hero/checkpoints/step-200",
        "Loading checkpoint from gs://bucket/hero/checkpoints/step-0000200",
        "Loading checkpoint from gs://bucket/hero/checkpoints/step-200/metadata.json",
    ],
)
def test_the_same_checkpoint_may_be_written_in_another_way(line: str) -> None:
    assert isinstance(judge(line, 201), Restored)


@pytest.mark.parametrize(
    "line",
    [
        "Loading checkpoint from gs://bucket/hero/checkpoints/step-100",
        "Loading checkpoint from gs://bucket/hero/checkpoints/step-2000",
        "Loading checkpoint from gs://bucket/base-weights",
    ],
)
@pytest.mark.parametrize("steps", [(), (201,)])
def test_another_checkpoint_is_the_wrong_lineage_at_once(line: str, steps: tuple[int, ...]) -> None:
    """Field report R48."""
    assert isinstance(judge(line, *steps), WrongRestore)


@pytest.mark.parametrize("first", [0, 1, 199])
def test_a_first_step_before_the_checkpoint_is_the_wrong_lineage(first: int) -> None:
    assert isinstance(judge("", first), WrongRestore)


def test_a_silent_log_is_no_proof_against_a_good_first_step() -> None:
    judged = judge("step 201 loss 2.0", 201)

    assert isinstance(judged, Restored)
    assert "no `Loading checkpoint from` line was found" in judged.detail


def test_without_a_training_step_nothing_is_confirmed() -> None:
    assert isinstance(judge(LOADED), NotYet)
    assert isinstance(judge(""), NotYet)


def test_what_cannot_be_read_confirms_and_refutes_nothing() -> None:
    for seen in (blind(), snapshot(log=unknown()), snapshot(metrics=unknown())):
        judged = judge_restore(PLAN, contract(), seen, ())

        assert isinstance(judged, NotYet)


def test_training_from_step_0_loads_no_checkpoint() -> None:
    assert isinstance(judge("", 0, plan=FROM_NOTHING), Restored)
    assert isinstance(judge(LOADED, 200, plan=FROM_NOTHING), WrongRestore)


def test_training_from_step_0_may_load_what_the_contract_initialises_it_from() -> None:
    weights = "gs://bucket/base-weights"
    line = f"Loading checkpoint from {weights}"

    assert isinstance(judge(line, 0, plan=FROM_NOTHING, initialize_from=weights), Restored)
    assert isinstance(judge(line, 0, plan=PLAN, initialize_from=weights), WrongRestore), "it should go on from 200"


def a_first_row_of(step: int, *, is_from_start: bool) -> str:
    metrics = Metrics(rows=(MetricRow(step=step, values={"loss": 2.0}),), is_from_start=is_from_start)
    judged = judge_restore(PLAN, contract(), snapshot(log=LOADED, metrics=metrics), (step,))
    assert isinstance(judged, Restored)
    return judged.detail


def test_what_goes_into_the_record_of_the_first_step_is_no_more_than_is_known() -> None:
    assert "training goes on from step 201 in" in a_first_row_of(201, is_from_start=False)
    assert "training goes on, its first logged step is 216 in" in a_first_row_of(216, is_from_start=True)
    assert "from which step is not known: the first one seen is 216" in a_first_row_of(216, is_from_start=False)


# A trial's child, which begins at another run's checkpoint

HANDOFF = PlannedCheckpoint(step=200, path=PATH)


def judge_child(log: Any, *steps: int, seen: Any = None) -> Restored | NotYet | WrongRestore:
    seen = seen or snapshot(log=log)
    return judge_restore(FROM_NOTHING, contract(initialize_from=PATH), seen, steps, handoff=HANDOFF)


def test_a_child_is_restored_when_the_handoff_was_loaded_and_its_loop_has_begun() -> None:
    assert isinstance(judge_child(LOADED, 200, 201), Restored)
    assert isinstance(judge_child(LOADED), NotYet)


@pytest.mark.parametrize("path", ["gs://bucket/hero/checkpoints/step-100", "gs://bucket/child/checkpoints/step-250"])
def test_a_child_that_loaded_another_checkpoint_is_the_wrong_lineage(path: str) -> None:
    assert isinstance(judge_child(f"Loading checkpoint from {path}", 201), WrongRestore)


def test_a_child_that_began_before_the_handoff_is_the_wrong_lineage() -> None:
    assert isinstance(judge_child(LOADED, 0, 1), WrongRestore)


def test_a_silent_log_confirms_no_child() -> None:
    """Unlike a relaunch: deploy checklist, "confirm restore from Loading checkpoint from"."""
    judged = judge_child("compiling", 200, 201)

    assert isinstance(judged, NotYet)
    assert not judged.is_unknown
    assert "no `Loading checkpoint from` line was found" in judged.detail


def test_a_log_that_cannot_be_read_is_no_silent_one() -> None:
    judged = judge_child(unknown(), 200)

    assert isinstance(judged, NotYet)
    assert judged.is_unknown


@pytest.mark.parametrize(("first", "kind"), [(200, Restored), (201, Restored), (202, NotYet)])
def test_where_the_log_does_not_reach_back_the_very_first_step_tells(first: int, kind: type) -> None:
    cut = LogTail(lines=(), is_cut=True)

    assert isinstance(judge_child(cut, first, first + 1), kind)


def test_metrics_that_lag_behind_the_trainers_own_word_show_no_hang() -> None:
    """Deploy checklist: API lag proves nothing."""
    said = Telemetry(phase=Phase.TRAINING, is_of_current_execution=True)
    seen = snapshot(log=LOADED)
    seen = seen.model_copy(update={"telemetry": Known(value=said, at=seen.at)})

    judged = judge_child(LOADED, seen=seen)

    assert isinstance(judged, NotYet)
    assert judged.is_unknown
    old = said.model_copy(update={"is_of_current_execution": False})
    seen = seen.model_copy(update={"telemetry": Known(value=old, at=seen.at)})
    judged = judge_child(LOADED, seen=seen)
    assert isinstance(judged, NotYet)
    assert not judged.is_unknown
