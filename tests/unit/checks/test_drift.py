"""config.drift: this launch's configuration against that of the launch before."""

from typing import Any

import pytest

from bot.model.launched import LaunchedConfig
from bot.model.reading import Gap, Unknown
from bot.model.snapshot import Snapshot
from bot.model.verdict import NotApplicable, Pass, Severity, UnknownVerdict
from checks.check import judge_all
from checks.drift import DRIFT
from tests.fakes.launched import config, tree, with_config
from tests.fakes.snapshots import contract, instance, job, later, snapshot, unknown
from tests.unit.checks.story import finding, verdict

FIRST = with_config(snapshot(), config())


def relaunched(read: LaunchedConfig | Unknown, minutes: int = 60) -> Snapshot:
    submitted = later(minutes - 10)
    seen = snapshot(later(minutes), jobs=job(submitted_at=submitted), launch=instance(1, submitted_at=submitted))
    return with_config(seen, read)


def test_a_relaunch_with_the_same_configuration_passes_and_a_first_launch_has_nothing_to_be_held_against() -> None:
    assert isinstance(verdict(DRIFT, FIRST), NotApplicable)
    assert verdict(DRIFT, FIRST, relaunched(config())) == Pass()


def test_what_differs_is_told_by_heros_words_in_their_order_old_and_new() -> None:
    changed = tree(
        trainer__train_batch_size=512,
        trainer__seed=7,
        optimizer__learning_rate=1e-3,
        trainer__checkpointer__save_interval="30m",
        model__hidden_dim=2048,
        model__new_flag=True,
    )

    found = finding(DRIFT, FIRST, relaunched(config(changed)))

    assert found.severity is Severity.WARNING
    assert not found.is_recoverable
    assert found.summary == (
        "this launch was configured otherwise than the one before: "
        "batch size, optimizer, seed, checkpoint interval, model.hidden_dim and 1 more"
    )
    assert found.evidence[:6] == (
        "batch size (trainer.train_batch_size): 256 → 512",
        "optimizer (optimizer.learning_rate): 0.0003 → 0.001",
        "seed (trainer.seed): 0 → 7",
        'checkpoint interval (trainer.checkpointer.save_interval): "15m" → "30m"',
        "model.hidden_dim: 1024 → 2048",
        "model.new_flag: not set → true",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"trainer__id": "other"},
        {"trainer__distributed__coordinator_address": "10.0.0.9:8476"},
        {"trainer__log_dir": "logs/2026-11-30T11:22:33Z"},
        {"trainer__tracker__id": "other"},
        {"uuid": "0"},
    ],
)
def test_what_names_one_launch_its_hosts_or_its_time_is_no_drift(changes: dict[str, Any]) -> None:
    assert verdict(DRIFT, FIRST, relaunched(config(tree(**changes)))) == Pass()


@pytest.mark.parametrize(
    "changes",
    [
        {"data__components__web__cache_dir": "gs://bucket/tokenized/web-2026-11-30T11:22:33"},
        {"data__components__web__id": "other"},
        {"trainer__seed": 1764442935},
        {"trainer__log_dir": "elsewhere"},
    ],
)
def test_below_the_words_that_shape_the_training_everything_counts(changes: dict[str, Any]) -> None:
    assert len(finding(DRIFT, FIRST, relaunched(config(tree(**changes)))).evidence) == 2


def test_a_change_that_was_agreed_on_is_none_and_the_others_are_still_told() -> None:
    changed = config(tree(optimizer__learning_rate=1e-3, trainer__seed=7))
    all_of_it = contract(config={"intended": ["optimizer", "trainer.seed"]})
    a_part = contract(config={"intended": ["optimizer.learning_rate", "trainer.see"]})

    assert verdict(DRIFT, FIRST, relaunched(changed), promised=all_of_it) == Pass()
    found = finding(DRIFT, FIRST, relaunched(changed), promised=a_part)
    assert found.evidence[:2] == ("seed (trainer.seed): 0 → 7", "1 more differ as agreed on")


def test_a_launch_that_died_before_it_wrote_anything_does_not_hide_the_one_before_it() -> None:
    died = relaunched(unknown(Gap.NOT_YET, "config.yaml does not exist"), 60)

    assert isinstance(verdict(DRIFT, FIRST, died), UnknownVerdict)
    assert finding(DRIFT, FIRST, died, relaunched(config(tree(trainer__seed=7)), 120)).key.endswith(
        "@" + later(110).isoformat()
    )


def test_what_cannot_be_read_or_compared_is_no_pass() -> None:
    tracked = config().model_copy(update={"is_trackers": True, "origin": "W&B acme/hero/abc"})

    assert isinstance(verdict(DRIFT, FIRST, relaunched(unknown())), UnknownVerdict)
    assert isinstance(verdict(DRIFT, FIRST, relaunched(unknown(Gap.NOT_CONFIGURED))), NotApplicable)
    assert isinstance(verdict(DRIFT, FIRST, relaunched(tracked)), NotApplicable)
    assert isinstance(verdict(DRIFT, FIRST, with_config(snapshot(later(60), jobs=unknown()), config())), UnknownVerdict)


def test_the_memory_stays_small_and_still_sees_a_change_of_one_value_among_thousands() -> None:
    many = {f"part{n % 7}": {f"key{m}": f"value {m} " * 9 for m in range(n, 5000, 7)} for n in range(7)}
    changed = {**many, "part3": {**many["part3"], "key3": "another"}}
    first = with_config(snapshot(), config(tree(**many)))
    story = (first, relaunched(config(tree(**many)), 60), relaunched(config(tree(**changed)), 120))

    memories: dict[Any, str] = {}
    for seen in story[:2]:
        memories = judge_all((DRIFT,), seen, contract(), memories).memories

    assert len(memories[DRIFT.id]) <= 16_000
    assert verdict(DRIFT, *story[:2]) == Pass()
    assert finding(DRIFT, *story).evidence[0] == ("part3.*: something differs; so many values are kept by one digest")
