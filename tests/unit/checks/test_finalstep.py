"""progress.final_step: the contract's final step against what the run shows of its end."""

import pytest

from bot.model.reading import Gap
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, NotApplicable, Pass, UnknownVerdict
from checks.finalstep import FINAL_STEP
from tests.fakes.launched import config, tree, with_config
from tests.fakes.snapshots import contract, instance, job, later, lines, rows, snapshot, unknown
from tests.unit.checks.story import finding, verdict


def look(last: int = 500, log: str = "", minutes: int = 0) -> Snapshot:
    return snapshot(later(minutes), metrics=rows(last - 3, last), log=log)


@pytest.mark.parametrize(("last", "is_told"), [(9_999, False), (10_000, False), (10_001, True), (12_000, True)])
def test_steps_beyond_the_final_one_are_told(last: int, is_told: bool) -> None:
    assert isinstance(verdict(FINAL_STEP, look(last)), Fail) is is_told


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("trainer.num_train_steps: 10000", False),
        ("num_train_steps=10_001", False),
        ("  'num_train_steps': 10100,", True),
        ("INFO config: {train_iters=9000, lr=1e-3}", True),
        ("progress 500/10.1k", False),
        ("500/12000 [01:00<20:00, loss=2.0]", False),
        ("eval_num_train_steps_seen=3", False),
        ("num_train_steps=1.5e4", False),
    ],
)
def test_the_launched_config_counts_and_the_progress_bar_does_not(line: str, is_told: bool) -> None:
    assert isinstance(verdict(FINAL_STEP, look(log=line)), Fail) is is_told


def test_the_command_itself_counts_and_an_inferred_final_step_is_shown_as_such() -> None:
    promised = contract(command="train --trainer.num_train_steps 20000", basis={"final_step": "inferred"})

    found = finding(FINAL_STEP, look(), promised=promised)

    assert found.summary == (
        "final-step misunderstanding: the contract's final step is 10000 (inferred), but the command says 20000 steps"
    )
    assert "the contract's final step is from: config trainer.num_train_steps" in found.evidence


def test_a_config_line_that_has_rotated_away_is_remembered_until_the_next_launch() -> None:
    first = look(log="num_train_steps: 12000")
    again = snapshot(later(60), jobs=job(submitted_at=later(50)), launch=instance(1, submitted_at=later(50)))

    assert isinstance(verdict(FINAL_STEP, first, look(600, minutes=15)), Fail)
    assert isinstance(verdict(FINAL_STEP, first, again), NotApplicable)


def test_without_a_final_step_or_a_reading_there_is_no_pass() -> None:
    assert isinstance(verdict(FINAL_STEP, look(), promised=contract(final_step=None)), NotApplicable)
    assert verdict(FINAL_STEP, look()) == Pass()
    for dark in ({"metrics": unknown()}, {"log": unknown()}, {"jobs": unknown()}):
        assert isinstance(verdict(FINAL_STEP, look().model_copy(update=dark)), UnknownVerdict)
    assert isinstance(verdict(FINAL_STEP, snapshot(log=lines(""))), NotApplicable)


def test_the_resolved_config_counts_and_the_logs_text_only_where_there_is_none() -> None:
    longer = with_config(look(log="num_train_steps: 10000"), config(tree(trainer__num_train_steps=12_000)))
    same = with_config(look(log="num_train_steps: 12000"), config())

    found = finding(FINAL_STEP, longer)

    assert found.summary.endswith("but the launched config says 12000 steps")
    assert "launched config: trainer.num_train_steps = 12000" in found.evidence
    assert verdict(FINAL_STEP, same) == Pass()
    assert isinstance(verdict(FINAL_STEP, with_config(look(log="num_train_steps: 12000"), unknown())), Fail)


def test_a_run_that_stops_before_its_schedule_ends_is_held_to_where_it_stops() -> None:
    stops = config(tree(stop_after_steps=10_000, trainer__num_train_steps=40_000))

    assert verdict(FINAL_STEP, with_config(look(), stops)) == Pass()


def test_a_resolved_config_that_is_out_of_reach_is_remembered_until_the_next_launch() -> None:
    read = with_config(look(), config(tree(trainer__num_train_steps=12_000)))
    right = with_config(look(), config())
    dark = with_config(look(600, minutes=15), unknown())

    assert isinstance(verdict(FINAL_STEP, read, dark), Fail)
    assert verdict(FINAL_STEP, right, dark) == Pass()
    assert isinstance(verdict(FINAL_STEP, dark), UnknownVerdict)
    assert isinstance(verdict(FINAL_STEP, with_config(look(), unknown(Gap.NOT_YET))), UnknownVerdict)


def test_without_a_final_step_in_the_contract_the_resolved_one_is_named_as_what_counts() -> None:
    said = verdict(FINAL_STEP, with_config(look(), config()), promised=contract(final_step=None))

    assert said == NotApplicable(
        reason="the contract names no final step; trainer.num_train_steps of the launched config counts: 10000"
    )
