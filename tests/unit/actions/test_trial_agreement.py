"""What a contract's ``[trial]`` comes to, and why it comes to nothing."""

from typing import Any

import pytest

from bot.actions.trial_agreement import plan_trial
from bot.model.planned import NoPlan
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import Checkpoint
from bot.model.trialplan import TrialPlan
from bot.redaction import Redactor
from tests.fakes.rehearsals import CHILD, FORK_ROW, HANDOFF, HANDOFF_PATH, OLD_TREE, child_contract, old_contract
from tests.fakes.snapshots import AT, RUN, snapshot


def saved(step: int, **fields: Any) -> Checkpoint:
    given: dict[str, Any] = {"step": step, "path": f"{OLD_TREE}/step-{step}", "is_complete": True}
    return Checkpoint(**given | fields)


def plan(*checkpoints: Checkpoint, trial: dict[str, Any] | None = None, **fields: Any) -> TrialPlan | NoPlan:
    seen = snapshot(checkpoints=checkpoints)
    child = fields.pop("child", child_contract())
    return plan_trial(old_contract(trial=trial, **fields), child, seen, Redactor())


def test_the_contract_s_words_become_the_plan() -> None:
    made = plan(saved(HANDOFF), saved(HANDOFF + 500))

    assert isinstance(made, TrialPlan)
    assert (made.run_id, made.child_run_id) == (RUN, CHILD)
    assert (made.handoff.step, made.handoff.path) == (HANDOFF, HANDOFF_PATH)
    assert made.fork is not None
    assert (made.fork.fork_step, made.fork.global_step) == (FORK_ROW, HANDOFF - 1)
    assert made.submitter == old_contract().dri
    assert not made.automatic_rollback


def test_the_plan_holds_what_each_run_calls_the_gated_figures() -> None:
    names = {"file": "m.jsonl", "loss": "train/loss"}
    made = plan(saved(HANDOFF), metrics={"loss": "ce"}, child=child_contract(metrics=names))

    assert isinstance(made, TrialPlan)
    assert made.control_names == {"loss": "ce", "tokens_per_second": "tokens_per_second"}
    assert made.child_names == {"loss": "train/loss", "tokens_per_second": "tokens_per_second"} | {
        "file": "m.jsonl",
        "step": "step",
        "timestamp": "timestamp",
    }


@pytest.mark.parametrize(("hourly", "step"), [(False, 6_000), (True, 6_200)])
def test_without_a_stated_step_the_newest_permanent_one_is_handed_over_and_an_hourly_one_only_by_agreement(
    hourly: bool, step: int
) -> None:
    made = plan(
        saved(5_000),
        saved(6_000),
        saved(6_200, is_temporary=True),
        saved(6_300, is_complete=False, fault="no metadata.json"),
        trial={"handoff_step": None, "handoff_hourly": hourly},
    )

    assert isinstance(made, TrialPlan)
    assert made.handoff.step == step
    assert made.handoff_is_temporary is hourly


@pytest.mark.parametrize(
    ("checkpoints", "trial", "why"),
    [
        ((saved(HANDOFF),), {"child_run_id": None}, "child_run_id is not set"),
        ((saved(HANDOFF),), {"gates": ()}, "gates is empty"),
        ((saved(HANDOFF),), {"fork_step": None}, "fork_step is not set"),
        ((), {}, f"no complete checkpoint of step {HANDOFF}"),
        ((saved(HANDOFF, is_complete=False, fault="no metadata.json"),), {}, "no metadata.json"),
        ((saved(HANDOFF, is_temporary=True),), {}, "is an hourly one"),
        ((saved(HANDOFF, is_temporary=True),), {"handoff_step": None}, "no complete permanent checkpoint yet"),
    ],
)
def test_what_is_missing_is_named_with_its_fix(
    checkpoints: tuple[Checkpoint, ...], trial: dict[str, Any], why: str
) -> None:
    made = plan(*checkpoints, trial=trial)

    assert isinstance(made, NoPlan)
    assert why in made.reason
    assert made.fix
    assert not made.is_unknown


def test_a_child_without_a_contract_is_no_trial_and_checkpoints_that_cannot_be_read_are_no_lack_of_them() -> None:
    alone = plan(saved(HANDOFF), child=None)
    dark = Unknown(reason=Gap.REFUSED, detail="403", at=AT)
    unread = plan_trial(old_contract(), child_contract(), snapshot(checkpoints=dark), Redactor())

    assert isinstance(alone, NoPlan)
    assert "no contract that can be used" in alone.reason
    assert isinstance(unread, NoPlan)
    assert unread.is_unknown


def test_a_secret_in_a_gap_is_scrubbed_before_the_plan_has_a_digest() -> None:
    seen = snapshot(checkpoints=(saved(HANDOFF),))
    contract = old_contract(trial={"coverage_gaps": ("see hunter2-hunter2",)})
    made = plan_trial(contract, child_contract(), seen, Redactor(("hunter2-hunter2",)))

    assert isinstance(made, TrialPlan)
    assert "hunter2" not in made.coverage_gaps[0]
    assert TrialPlan.model_validate(made.model_dump(mode="json")).digest == made.digest
