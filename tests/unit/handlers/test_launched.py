"""What a look at the launched configuration leaves on record: the instance's shape, and an inferred final step."""

from bot import watcher
from bot.model.contract import Basis
from bot.model.drift import ConfigShape, changes_since
from bot.model.event import RunChecked
from bot.model.job import JobState
from bot.model.reading import Gap
from bot.model.record import Decision, Record
from bot.model.run import Instance, RunState
from bot.model.snapshot import Snapshot
from bot.model.update import UpdateKind
from handlers.checked import decide_checked
from handlers.context import Context, standing_of
from tests.fakes.launched import config, tree, with_config
from tests.fakes.snapshots import RUN, checkpoint, contract, instance, job, later, row, snapshot, unknown
from tests.unit.handlers.scene import context, planner, record, shape

UNPROMISED = context(final_step=None, final_step_source="")


def check(known: Record, seen: Snapshot, around: Context = UNPROMISED) -> Decision:
    event = RunChecked(run_id=RUN, snapshot=seen, judgements=())
    return decide_checked(known, event, around, make_plan=planner(around), shape=shape(around))


def after(known: Record, decision: Decision) -> Record:
    instances = {each.number: each for each in (*known.instances, *decision.instances)}
    return known.model_copy(update={"run": decision.run or known.run, "instances": tuple(instances.values())})


def test_an_instance_remembers_the_shape_of_its_own_configuration_and_the_next_one_can_be_held_against_it() -> None:
    first = after(record(), check(record(), with_config(snapshot(), config())))
    again = snapshot(later(60), launch=instance(), jobs=job(submitted_at=later(50)))
    unread = after(first, check(first, with_config(again, unknown(Gap.NOT_YET))))
    second = after(unread, check(unread, with_config(again, config(tree(trainer__seed=7)))))

    one, two = second.instances
    assert one.launched is not None
    assert (unread.instances[1].launched, two.number) == (None, 1)
    assert two.launched is not None
    assert len(one.launched.model_dump_json()) < 8_000
    assert one.launched.digest != two.launched.digest
    assert [each.line for each in changes_since(one.launched, config(tree(trainer__seed=7)))] == [
        "seed (trainer.seed): 0 → 7"
    ]


def test_an_instance_of_before_it_was_remembered_is_still_read() -> None:
    stored = instance().model_dump_json(exclude={"launched"})

    assert Instance.model_validate_json(stored).launched is None
    assert ConfigShape.model_validate_json(ConfigShape(origin="x").model_dump_json()) == ConfigShape(origin="x")


def test_where_the_contract_names_no_final_step_the_resolved_one_counts_and_is_shown_as_inferred() -> None:
    known = record()
    known = after(known, check(known, with_config(snapshot(metrics=[row(9_000)]), config())))
    known = after(known, check(known, with_config(snapshot(later(10), metrics=[row(9_600)]), unknown())))

    standing = standing_of(known, UNPROMISED.contract)

    assert (standing.final_step, standing.final_step_is_inferred) == (10_000, True)
    assert standing.eta is not None
    assert UNPROMISED.contract.final_step is None


def test_the_contracts_own_final_step_counts_before_the_resolved_one() -> None:
    around = context(final_step=20_000)
    known = after(record(), check(record(), with_config(snapshot(metrics=[row(9_000)]), config()), around))

    standing = standing_of(known, around.contract)

    assert (standing.final_step, standing.final_step_is_inferred) == (20_000, False)


def test_a_run_that_reached_the_resolved_final_step_is_completed() -> None:
    running = snapshot(metrics=[row(9_000)])
    known = after(record(), check(record(), with_config(running, config())))
    saved = [checkpoint(9_999, saved_at=later(9))]
    done = snapshot(
        later(10), jobs=job(JobState.SUCCEEDED, finished_at=later(9)), metrics=[row(9_999)], checkpoints=saved
    )

    decision = check(known, with_config(done, unknown(Gap.NOT_YET)))

    assert decision.run is not None
    assert decision.run.state is RunState.COMPLETED
    (told,) = [each.update for each in decision.tell if each.update.kind is UpdateKind.COMPLETED]
    assert told.headline == "complete: the job succeeded and the final step 10000 was seen"


def test_the_next_launch_has_to_tell_its_own_final_step() -> None:
    known = after(record(), check(record(), with_config(snapshot(metrics=[row(9_000)]), config())))

    relaunched = check(known, snapshot(later(20), launch=instance(), jobs=job(submitted_at=later(15))))

    assert relaunched.run is not None
    assert relaunched.run.progress.final_step is None


def test_a_contract_takes_a_final_step_only_where_it_has_none() -> None:
    promised, open_ended = contract(), contract(final_step=None)

    assert promised.ending_at(7) is promised
    assert open_ended.ending_at(None) is open_ended
    ending = open_ended.ending_at(7)
    assert (ending.final_step, ending.basis_of("final_step")) == (7, Basis.INFERRED)


def test_checks_are_handed_the_resolved_final_step_which_is_remembered_while_the_configuration_is_dark() -> None:
    promised = contract(final_step=None)
    seen, dark = with_config(snapshot(), config()), with_config(snapshot(), unknown())
    remembered = after(record(), check(record(), seen))

    assert watcher._ending(promised, seen, None).final_step == 10_000
    assert watcher._ending(promised, dark, remembered).final_step == 10_000
    assert watcher._ending(promised, dark, None) is promised
