"""The items on what is launched: final step, reference, drift. What blocks, what asks, what passes, what is Unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.actions.checklist import with_checklist
from bot.model.askedsteps import asked_steps, steps_of
from bot.model.contract import Basis, Contract
from bot.model.drift import ConfigShape, shape_of
from bot.model.launched import LaunchedConfig
from bot.model.planned import RelaunchPlan
from bot.model.preflight import Preparation, StepCount, Weight
from bot.model.reading import Gap, Known, Unknown
from checks.preflight import ITEMS
from checks.preflight.drift import DRIFT
from checks.preflight.finalstep import FINAL_STEP
from checks.preflight.item import Item
from checks.preflight.reference import REFERENCE
from tests.fakes.launched import config, tree
from tests.fakes.preparations import launch_contract, message, preparation, report, value, weights
from tests.fakes.snapshots import AT, unknown
from tests.unit.handlers.scene import request

BLOCKS, ASKS, UNKNOWN, NOTE = Weight.BLOCKS, Weight.ASKS, Weight.UNKNOWN, Weight.NOTE
FILE = "/srv/hero/run.yaml"


def steps(number: int | None, basis: Basis = Basis.MEASURED) -> dict[str, Any]:
    found = StepCount(steps=number, origin=f"trainer.num_train_steps of {FILE}", basis=basis) if number else None
    return {"steps": Known(value=found, at=AT)}


def ending(final: int | None = 10_000, source: str = "", **fields: Any) -> Contract:
    return launch_contract(final_step=final, final_step_source=source, **fields)


def asking(number: int) -> str:
    return f"iris job run --no-wait --tpu v5p-64 -- python -m train --trainer.num_train_steps {number}"


SOURCE = "config trainer.num_train_steps"
GUESSED: dict[str, Any] = {"basis": {"final_step": "inferred"}}
TOY: dict[str, Any] = {"kind": "diagnostic", "model_flops": 1e18}

FINAL_STEPS: list[tuple[Preparation, list[Weight], str]] = [
    # In order: they agree, whether steps are counted from 0 or from 1; or the contract says how it was found.
    (preparation(ending(), **steps(10_000)), [], ""),
    (preparation(ending(9_999), **steps(10_000)), [], ""),
    (preparation(ending(source=SOURCE)), [], ""),
    (preparation(ending(**TOY)), [], ""),
    (preparation(ending(command=asking(10_000)), **steps(10_000)), [], ""),
    # They contradict each other.
    (
        preparation(ending(10_000), **steps(12_000)),
        [BLOCKS],
        "12000 from trainer.num_train_steps of /srv/hero/run.yaml",
    ),
    (preparation(ending(10_000), is_first=False, **steps(12_000)), [BLOCKS], "final_step = 10000 (stated)"),
    (preparation(ending(10_000, **TOY), **steps(12_000)), [BLOCKS], "(measured)"),
    (preparation(ending(command=asking(12_000)), **steps(10_000)), [BLOCKS], "the command asks for 12000"),
    (preparation(ending(12_000, command=asking(12_000)), **steps(10_000)), [NOTE], "overrides it with 12000"),
    (preparation(ending(None, command=asking(12_000)), **steps(10_000)), [NOTE, ASKS], ""),
    # What is not stated is inferred.
    (preparation(ending(None), **steps(10_000)), [NOTE], "10000 from trainer.num_train_steps"),
    # Nothing that is launched tells.
    (preparation(ending(None)), [BLOCKS], "nothing that is launched tells one"),
    (preparation(ending(None), is_first=False), [NOTE], "nothing that is launched tells one"),
    (preparation(ending(None, **TOY)), [NOTE], "nothing that is launched tells one"),
    (preparation(ending()), [ASKS], "final_step_source does not say"),
    (preparation(ending(), is_first=False), [NOTE], "final_step_source does not say"),
    (preparation(ending(source=SOURCE, **GUESSED)), [NOTE], "(inferred), by 'config trainer"),
    (preparation(ending(source="the progress bar")), [BLOCKS], "a progress bar rounds"),
    (preparation(ending(source="tqdm output"), is_first=False), [NOTE], "a progress bar rounds"),
    (preparation(ending(source="the progress bar"), **steps(10_000)), [], ""),
    # It cannot be read.
    (preparation(ending(), steps=unknown(Gap.REFUSED, "run.yaml does not exist")), [UNKNOWN], "run.yaml does not"),
    (preparation(ending(None, **TOY), steps=unknown()), [UNKNOWN], "not known"),
]


@pytest.mark.parametrize(("prepared", "found", "named"), FINAL_STEPS)
def test_the_final_step_is_the_one_that_is_launched(prepared: Preparation, found: list[Weight], named: str) -> None:
    assert weights(FINAL_STEP, prepared) == found
    if named:
        assert named in message(FINAL_STEP, prepared)


def test_the_final_step_is_shown_with_how_it_is_known() -> None:
    shown = [
        value(FINAL_STEP, prepared, "final_step")
        for prepared in (
            preparation(ending(), **steps(10_000)),
            preparation(ending(None), **steps(10_000)),
            preparation(ending(source=SOURCE)),
            preparation(ending(source=SOURCE, **GUESSED)),
            preparation(ending(None)),
        )
    ]

    assert shown == [
        "10000 (as trainer.num_train_steps of /srv/hero/run.yaml says) (measured)",
        "10000 (from trainer.num_train_steps of /srv/hero/run.yaml) (inferred)",
        "10000 (config trainer.num_train_steps) (stated)",
        "10000 (config trainer.num_train_steps) (inferred)",
        "None (None)",
    ]


@given(number=st.integers(1, 10**14))
def test_a_number_of_steps_is_read_however_it_is_written(number: int) -> None:
    assert steps_of(str(number)) == steps_of(f"{number:_}") == number
    found = asked_steps(["python", "-m", "train", f"--trainer.num-train-steps={number}"])
    assert found is not None
    assert (found.steps, found.option) == (number, "trainer.num-train-steps")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--max-steps=200", ("max-steps", 200)),
        ("--max_steps 200", ("max_steps", 200)),
        ("--num-steps 200", ("num-steps", 200)),
        ("--steps 200", ("steps", 200)),
        ("--steps=1e4", ("steps", 10_000)),
        ("--total-steps 200", ("total-steps", 200)),
        ("--train-steps 200", ("train-steps", 200)),
        ("train_steps=200", ("train_steps", 200)),
        ("trainer.max_steps=200", ("trainer.max_steps", 200)),
        ("--max-steps 100 --max-steps 200", ("max-steps", 200)),
        ("--max-steps 200 --train-steps=200", ("max-steps", 200)),
        ("--num_train_steps 300 --steps 200", ("num_train_steps", 300)),
        # What is another thing's, contradicts itself or says no number tells nothing.
        ("--max-steps 200 --num-steps 8", None),
        ("--max-steps -1", None),
        ("--eval.steps 200", None),
        ("eval.max_steps=200", None),
        ("--save-steps 200", None),
        ("--warmup_steps=200", None),
        ("--steps-file 200", None),
        ("--note take steps 200", None),
        ("--out=/data/steps=200", None),
    ],
)
def test_the_plain_names_of_a_commands_end_are_known(words: str, told: tuple[str, int] | None) -> None:
    found = asked_steps(["python", "train.py", *words.split()])

    assert (found and (found.option, found.steps)) == told
    named = asked_steps(["python", "train.py", *words.split()], key="run.end")
    assert named is None or named.option == "num_train_steps"  # a plain name does not count beside a key of one's own


@given(said=st.text(max_size=30))
def test_no_text_makes_a_number_of_steps_raise(said: str) -> None:
    assert (steps_of(said) or 1) > 0
    asked_steps(["t", "--num_train_steps", said])
    asked_steps(["t", "--steps", said])


# The reference job and drift


def read(read_config: LaunchedConfig | Unknown | None) -> Any:
    return read_config if isinstance(read_config, Unknown) else Known(value=read_config, at=AT)


def written(**changes: Any) -> LaunchedConfig:
    """Return what a person writes: a part of the resolved configuration."""
    whole = tree(**changes)
    part = {
        "trainer": {
            name: whole["trainer"][name]
            for name in ("train_batch_size", "num_train_steps", "mp", "mesh", "checkpointer", "seed")
        },
        "optimizer": whole["optimizer"],
        "data": whole["data"],
        "launcher": {"slices": 4},
    }
    return config(part, origin=FILE)


def referring(
    coming: LaunchedConfig | Unknown | None,
    reference: ConfigShape | Unknown | None = None,
    *,
    is_first: bool = True,
    **fields: Any,
) -> Preparation:
    given = {"reference": "hero-7b", "launch": "run.yaml", **fields}
    shape: Any = reference or shape_of(config(), room=None)
    return preparation(
        launch_contract(config=given),
        is_first=is_first,
        coming=read(coming),
        reference=shape if isinstance(shape, Unknown) else Known(value=shape, at=AT),
    )


TRACKERS = shape_of(config().model_copy(update={"is_trackers": True}), room=None)
OTHER_SPELLING = shape_of(config({"train_batch_size": 256}), room=None)

REFERENCES: list[tuple[Preparation, list[Weight], str]] = [
    (preparation(), [], ""),
    (referring(written()), [], ""),
    (referring(written(trainer__seed=7, trainer__num_train_steps=20_000)), [], ""),
    (referring(written(trainer__checkpointer__save_interval="0:15:00", trainer__train_batch_size=256.0)), [], ""),
    (referring(written(optimizer__learning_rate="3e-4")), [], ""),
    (referring(written(trainer__train_batch_size=512)), [BLOCKS], "batch size (trainer.train_batch_size): 256 → 512"),
    (referring(written(optimizer__weight_decay=0.1)), [BLOCKS], "optimizer.weight_decay): not set → 0.1"),
    (referring(written(trainer__mesh__axes__model=8)), [BLOCKS], "mesh"),
    (referring(written(data__shuffle=1)), [BLOCKS], "data.shuffle"),
    (referring(written(trainer__train_batch_size=512), is_first=False), [NOTE], "256 → 512"),
    (referring(written(trainer__train_batch_size=512), intended=("trainer.train_batch_size",)), [NOTE], "as intended"),
    (referring(written(trainer__train_batch_size=512), TRACKERS), [ASKS], "tracker's copy"),
    (referring(written(trainer__seed=7), preserve=("seed",)), [BLOCKS], "seed"),
    (referring(written(trainer__train_batch_size=512), preserve=("seed",)), [], ""),
    (referring(written(), preserve=("model.hidden_dim",)), [ASKS], "model.hidden_dim"),
    (referring(written(), preserve=("model.no_such",)), [ASKS], "model.no_such"),
    (
        referring(written(trainer__train_batch_size=512), OTHER_SPELLING, preserve=("batch_size",)),
        [BLOCKS],
        "256 → 512",
    ),
    (referring(written(), OTHER_SPELLING, preserve=("batch_size",)), [], ""),
    (referring(None), [ASKS], "does not name what the command launches with"),
    (referring(None, is_first=False), [NOTE], "does not name what the command launches with"),
    (referring(written(), unknown(Gap.REFUSED, "no launch of hero-7b")), [UNKNOWN], "no launch of hero-7b"),
    (referring(unknown(Gap.REFUSED, "run.yaml does not exist")), [UNKNOWN], "run.yaml does not exist"),
]


@pytest.mark.parametrize(("prepared", "found", "named"), REFERENCES)
def test_what_has_to_be_preserved_is_as_in_the_reference(
    prepared: Preparation, found: list[Weight], named: str
) -> None:
    assert weights(REFERENCE, prepared) == found
    if named:
        assert named in message(REFERENCE, prepared)


def relaunch(
    coming: LaunchedConfig | Unknown | None,
    before: ConfigShape | None = None,
    *,
    is_first: bool = False,
    **fields: Any,
) -> Preparation:
    return preparation(
        launch_contract(config={"launch": "run.yaml", **fields}),
        is_first=is_first,
        coming=read(coming),
        launched_before=before or shape_of(config()),
    )


CROWDED = shape_of(config(tree(model={f"part{number}": "x" * 100 for number in range(200)})))

DRIFTS: list[tuple[Preparation, list[Weight], str]] = [
    (relaunch(written()), [], ""),
    (relaunch(written(trainer__seed=7), is_first=True), [], ""),
    (relaunch(written(trainer__checkpointer__save_interval="900s")), [], ""),
    (relaunch(written(), CROWDED), [], ""),
    (relaunch(None), [], ""),
    (relaunch(written(trainer__seed=7)), [BLOCKS], "seed (trainer.seed): 0 → 7"),
    (
        relaunch(written(trainer__num_train_steps=20_000)),
        [BLOCKS],
        "final step (trainer.num_train_steps): 10000 → 20000",
    ),
    (relaunch(written(trainer__checkpointer__save_interval="30m")), [BLOCKS], "checkpoint interval"),
    (relaunch(written(trainer__mp="f32")), [BLOCKS], "precision"),
    (relaunch(written(optimizer__nesterov=True)), [BLOCKS], "optimizer.nesterov"),
    (relaunch(written(trainer__seed=7), CROWDED), [BLOCKS], "seed"),
    (relaunch(written(trainer__seed=7), intended=("trainer.seed",)), [NOTE], "as intended: seed (trainer.seed): 0 → 7"),
    (relaunch(written(trainer__seed=7), TRACKERS), [ASKS], "tracker's copy"),
    (relaunch(unknown(Gap.REFUSED, "run.yaml does not exist")), [UNKNOWN], "run.yaml does not exist"),
]


@pytest.mark.parametrize(("prepared", "found", "named"), DRIFTS)
def test_a_relaunch_is_configured_as_the_launch_before(prepared: Preparation, found: list[Weight], named: str) -> None:
    assert weights(DRIFT, prepared) == found
    if named:
        assert named in message(DRIFT, prepared)


def test_a_launch_before_whose_configuration_was_never_read_is_said_and_holds_nothing_up() -> None:
    prepared = relaunch(written()).model_copy(update={"launched_before": None})

    assert weights(DRIFT, prepared) == [NOTE]
    assert value(DRIFT, prepared, "config_drift").startswith("not compared: ")


@pytest.mark.parametrize(
    ("item", "prepared", "line"),
    [
        (
            DRIFT,
            relaunch(written(trainer__seed=7), intended=("trainer.seed",)),
            "[config] as intended: seed (trainer.seed): 0 → 7",
        ),
        (
            REFERENCE,
            referring(written(trainer__train_batch_size=512), intended=("trainer",)),
            "differs from the reference as intended: batch size (trainer.train_batch_size): 256 → 512",
        ),
    ],
)
def test_an_intended_change_is_named_in_the_request_and_part_of_what_is_agreed_on(
    item: Item, prepared: Preparation, line: str
) -> None:
    bare = request(7).plan
    assert isinstance(bare, RelaunchPlan)

    plan = with_checklist(bare, report(item, prepared))

    assert isinstance(plan, RelaunchPlan)
    assert plan.changes == (*bare.changes, line)
    assert plan.digest != bare.digest


def test_many_differences_are_told_in_a_line_that_stays_readable() -> None:
    before = shape_of(config(tree(model={f"part{number}": number for number in range(40)})))
    coming = config(tree(model={f"part{number}": "x" * 300 for number in range(40)}))

    said = message(DRIFT, relaunch(coming, before))

    assert "and 34 more" in said
    assert len(said) < 1_500


def test_the_items_are_registered() -> None:
    assert {FINAL_STEP, REFERENCE, DRIFT} <= set(ITEMS)


def test_a_crowded_configuration_is_folded_and_what_is_written_is_compared_all_the_same() -> None:
    assert CROWDED.folded
    assert "trainer.seed" in CROWDED.values
