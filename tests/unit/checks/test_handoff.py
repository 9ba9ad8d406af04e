"""trial.handoff: while a trial is under way, is the checkpoint that both runs hang on still there, and whole?"""

import pytest

from bot.model.conduct import Stage
from bot.model.contract import Contract
from bot.model.record import Record
from bot.model.snapshot import Checkpoint
from bot.model.verdict import NotApplicable, Pass, Severity, UnknownVerdict
from checks.handoff import HANDOFF, agreed_in
from tests.fakes.handoffs import CHILD, on_trial
from tests.fakes.snapshots import checkpoint, contract, snapshot, unknown
from tests.unit.checks.story import finding, verdict

ROOT = "gs://bucket/users/ada/hero-12d8b6f0/checkpoints"
KEPT = checkpoint(54_000)
NEWER = checkpoint(54_250, is_temporary=True)


def promised(stage: Stage = Stage.PLANNED, path: str = KEPT.path, **fields: object) -> Contract:
    """Return the contract as the watcher resolves it while a trial of step 54,000 is at this stage."""
    written = contract(**fields)
    record = Record(run=on_trial(path, 54_000, stage))
    return written.model_copy(update={"trial": written.trial.with_agreed(agreed_in(record))})


def test_a_handoff_that_is_there_and_complete_passes() -> None:
    assert verdict(HANDOFF, snapshot(checkpoints=(KEPT, NEWER)), promised=promised()) == Pass()


@pytest.mark.parametrize(
    "of", [contract(), promised(Stage.CLOSED), contract(trial={"handoff_step": 54_000})], ids=["no", "over", "written"]
)
def test_without_a_trial_under_way_it_is_not_judged(of: Contract) -> None:
    assert isinstance(verdict(HANDOFF, snapshot(checkpoints=(NEWER,)), promised=of), NotApplicable)


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.CLOSED])
def test_at_every_stage_until_it_is_closed_a_handoff_that_vanishes_wakes_the_dri(stage: Stage) -> None:
    found = finding(HANDOFF, snapshot(checkpoints=(NEWER,)), promised=promised(stage))

    assert found.severity is Severity.CRITICAL
    assert found.summary == f"the handoff checkpoint step 54000 of the trial with {CHILD} is not there any more"
    assert f"agreed: {ROOT}/step-54000 (permanent)" in found.evidence
    assert "newest complete ones that are listed: step 54250 (temporary)" in found.evidence
    assert not found.is_recoverable


def test_before_the_stop_the_advice_is_not_to_cut_over_and_after_it_to_look_at_the_way_back() -> None:
    before = finding(HANDOFF, snapshot(), promised=promised(Stage.FORKED)).advice
    after = finding(HANDOFF, snapshot(), promised=promised(Stage.RUNNING)).advice

    assert before.startswith("Do not cut over")
    assert "agree on another handoff" in before
    assert "cut over" not in after
    assert "verify the newest complete checkpoint of the old tree" in after
    assert all("Find out what deletes it" in each for each in (before, after))


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        (checkpoint(54_000, is_complete=False), "is damaged: metadata.json is missing"),
        (KEPT.model_copy(update={"fault": "holds leftovers of a save"}), "is damaged: holds leftovers of a save"),
        (KEPT.model_copy(update={"step": 53_000}), "is damaged: it holds step 53000"),
    ],
)
def test_a_damaged_one_is_as_bad_as_none(damaged: Checkpoint, says: str) -> None:
    assert says in finding(HANDOFF, snapshot(checkpoints=(damaged, NEWER)), promised=promised()).summary


def test_the_same_step_elsewhere_is_told_and_does_not_stand_in_for_it() -> None:
    twin = checkpoint(54_000, root="gs://temp/hero")

    found = finding(HANDOFF, snapshot(checkpoints=(twin,)), promised=promised())

    assert "the same step is complete at gs://temp/hero/step-54000" in found.evidence


def test_a_listing_that_cannot_be_read_is_unknown() -> None:
    found = verdict(HANDOFF, snapshot(checkpoints=unknown(detail="no answer in 20 s")), promised=promised())

    assert isinstance(found, UnknownVerdict)
    assert found.detail == "whether the handoff checkpoint is still there is not known: no answer in 20 s"


def test_the_place_is_the_same_however_it_is_spelled() -> None:
    relative = promised(path="out/checkpoints/step-54000/", checkout="/runs/hero", output_root="out")
    there = KEPT.model_copy(update={"path": "/runs/hero/out/checkpoints/step-54000"})

    assert verdict(HANDOFF, snapshot(checkpoints=(there,)), promised=relative) == Pass()
    assert verdict(HANDOFF, snapshot(checkpoints=(KEPT,)), promised=promised(path=f"GS://{KEPT.path[5:]}/")) == Pass()


def test_what_is_agreed_is_no_key_of_the_contract_and_changes_none_of_its_digests() -> None:
    told = promised()

    assert told.model_dump() == contract().model_dump()
    assert told.config_digest == contract().config_digest
    with pytest.raises(ValueError, match="agreed"):
        contract(trial={"agreed": {"child_run_id": CHILD, "step": 1, "path": "x"}})
