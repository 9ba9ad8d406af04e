"""A gate judges the figure that was agreed: an edit of ``[metrics]`` changes nothing in a trial under way."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.comparing import Comparer
from bot.model.agreed_names import names_of, say_names, with_names
from bot.model.contract import Contract
from bot.model.reading import Known
from bot.model.trialplan import TrialPlan
from bot.sources.finelog.rows import figure_names, finelog_name
from bot.sources.finelog.window import names_of as finelog_names
from bot.sources.metric_rows import watched_in
from bot.sources.metric_rows_window import FileRows
from tests.fakes.clock import FakeClock
from tests.fakes.rehearsals import CHILD, HANDOFF, child_contract, old_contract, trial_plan
from tests.fakes.snapshots import RUN

FIGURES = ("loss", "grad_norm", "tokens_per_second", "step_time_s", "lr")
FURTHER = ("mfu", "token_drops", "moe_drops", "drop_rate")
OWN = ("train/loss", "train/ce", "a", "b/c", "mfu", "moe/drop_fraction", "loss", "moe_drops", "tps")
GATED = ("loss", "tokens_per_second", "mfu", "moe/drops", "moe_drops", "a", "train/loss")

WORDS = st.lists(st.sampled_from((*FIGURES, *FURTHER)), unique=True, max_size=5)


def metrics_of(words: list[str], names: list[str]) -> dict[str, Any]:
    given = dict(zip(words, names, strict=False))
    figures = {word: name for word, name in given.items() if word in FIGURES}
    return {**figures, "others": {word: name for word, name in given.items() if word not in FIGURES}}


@st.composite
def contracts(draw: st.DrawFn, *, is_plain: bool = False) -> Contract:
    """A contract that calls figures somehow; a plain one gives no name twice, and none that others are known by."""
    names = st.permutations(("train/xent", "train/ce", "x", "b/c", "tps", "moe/it", "n", "o", "p"))
    given = names if is_plain else st.lists(st.sampled_from(OWN), min_size=5, max_size=5)
    return old_contract(metrics=metrics_of(draw(WORDS), draw(given)))


def in_a_file(contract: Contract, fields: Mapping[str, object], metric: str) -> object:
    """Return what of a row a gate would be about."""
    found = watched_in(fields, contract.metrics)
    return found.get(metric, fields.get(metric, found.get(finelog_name(metric), fields.get(finelog_name(metric)))))


@given(agreed=contracts(is_plain=True), later=contracts(), gated=st.sets(st.sampled_from(GATED), min_size=1))
def test_whatever_the_contract_says_later_the_agreed_figures_are_read(
    agreed: Contract, later: Contract, gated: set[str]
) -> None:
    names = names_of(agreed, sorted(gated))
    read = with_names(later, names)

    row = {
        name: number
        for number, name in enumerate((*OWN, "train/xent", "x", "moe/it", "n", "o", "p", "tokens_per_second"))
    }
    for metric in gated:
        before = finelog_names(metric, figure_names(agreed.metrics))
        assert finelog_names(metric, figure_names(read.metrics)) == before
        assert in_a_file(read, row, metric) == in_a_file(agreed, row, metric)


@given(contract=contracts(is_plain=True), gated=st.sets(st.sampled_from(GATED), min_size=1))
def test_a_contract_that_was_not_edited_is_read_as_it_is(contract: Contract, gated: set[str]) -> None:
    read = with_names(contract, names_of(contract, gated))

    assert figure_names(read.metrics) == figure_names(contract.metrics)
    assert names_of(read, gated) == names_of(contract, gated)
    assert with_names(contract, {}) is contract


def test_names_are_said_as_people_read_them() -> None:
    contract = old_contract(metrics={"file": "m.jsonl", "loss": "train/loss", "others": {"drops": "moe/drops"}})

    assert say_names(names_of(contract, ("loss", "lr", "drops", "moe/it"))) == (
        "loss is train/loss, lr, drops is moe/drops, moe/it, moe_it, file is m.jsonl, step, timestamp"
    )


def local(contract: Contract, tmp_path: Path, **metrics: Any) -> Contract:
    table = {"file": f"{contract.run_id}.jsonl", "loss": "train/loss"} | metrics
    given = contract.model_dump() | {"checkout": str(tmp_path), "metrics": table}
    return Contract.model_validate(given)


def write(path: Path, loss: str, level: float) -> None:
    rows = ({"step": HANDOFF + n, "other": n, loss: level + n, "eval": 9.0} for n in range(5))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


EDITS: tuple[dict[str, Any], ...] = (
    {},
    {"loss": "eval"},
    {"loss": "eval", "others": {"loss2": "train/loss"}},
    {"lr": "train/loss", "loss": "absent"},
    {"file": "elsewhere.jsonl"},
    {"file": None},
    {"step": "other"},
)


@pytest.mark.parametrize("edit", EDITS, ids=map(str, EDITS))
async def test_an_edit_of_the_names_changes_nothing_in_a_trial_under_way(tmp_path: Path, edit: dict[str, Any]) -> None:
    old, child = old_contract(), child_contract()
    agreed = local(old, tmp_path), local(child, tmp_path, loss="ce")
    write(tmp_path / f"{RUN}.jsonl", "train/loss", 2.0)
    write(tmp_path / f"{CHILD}.jsonl", "ce", 3.0)
    plan = trial_plan(
        gates=("loss mean <= +0.002",),
        control_names=names_of(agreed[0], ("loss",)),
        child_names=names_of(agreed[1], ("loss",)),
    )

    found = [
        await Comparer(FileRows(FakeClock())).rows_of(local(contract, tmp_path, **{"loss": name} | edit), plan)
        for contract, name in ((old, "train/loss"), (child, "ce"))
    ]

    for reading, level in zip(found, (2.0, 3.0), strict=True):
        assert isinstance(reading, Known), reading
        assert reading.value.history.figures["loss"].values.tolist() == [level + n for n in range(5)]
        assert reading.value.history.figures["loss"].steps[0] == HANDOFF


def test_a_plan_from_before_the_names_is_what_it_was() -> None:
    """A yes that was given before an upgrade counts after it."""
    plan = trial_plan(control_names={}, child_names={})
    older = plan.model_dump(mode="json", exclude={"control_names", "child_names"})

    assert TrialPlan.model_validate(older).digest == plan.digest != trial_plan().digest
