"""What a clean-up may list: never what somebody could still need."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.conduct import Stage
from bot.model.planned import PlannedCheckpoint, RelaunchPlan
from bot.model.record import Record
from bot.model.snapshot import Checkpoint
from bot.model.trialplan import RollbackPlan
from checks.cleanup import Split, split_checkpoints, starts_of
from tests.fakes.decisions import a_plan
from tests.fakes.handoffs import CHILD, a_trial, on_trial
from tests.fakes.snapshots import checkpoint, contract, instance
from tests.unit.handlers.scene import record, request

ALL = tuple(checkpoint(step) for step in range(1000, 10_001, 1000))


def steps(split: Split) -> list[int]:
    return [each.step for each in split.candidates]


def why(split: Split, step: int) -> str:
    return next(each.why for each in split.kept if each.checkpoint.step == step)


def known(*requests: RelaunchPlan, starts: tuple[int, ...] = ()) -> Record:
    asked = tuple(request(number, plan=plan) for number, plan in enumerate(requests, start=7))
    launches = tuple(instance(number, from_step=step) for number, step in enumerate(starts))
    return record(*asked, instances=launches or (instance(),))


def test_everything_but_the_newest_and_the_final_may_go() -> None:
    found = split_checkpoints(ALL, contract(), known())

    assert steps(found) == [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]
    assert why(found, 10_000) == "the newest sound one"


def test_milestones_launches_and_what_others_start_from_stay() -> None:
    child = contract(run_id="child", initialize_from=f"{ALL[3].path}/")
    found = split_checkpoints(
        ALL,
        contract(retention={"resume": 2, "milestones": [2000]}),
        known(starts=(0, 6000)),
        protected=starts_of((child,)),
    )

    assert steps(found) == [1000, 3000, 5000, 7000, 8000]
    assert why(found, 2000) == "a milestone that the contract keeps for good"
    assert why(found, 6000) == "launch 1 of this run began from it"
    assert why(found, 4000) == "child starts from it"


def test_what_a_waiting_plan_would_resume_from_stays() -> None:
    third = ALL[2]
    plan = a_plan().model_copy(update={"resume_from": PlannedCheckpoint(step=third.step, path=third.path)})

    assert why(split_checkpoints(ALL, contract(), known(plan)), 3000) == "R7 would resume from it"


def test_the_final_step_stays_whichever_way_steps_are_counted() -> None:
    found = split_checkpoints((*ALL, checkpoint(12_000)), contract(final_step=9001), known())

    assert why(found, 9000) == "the final step 9001"


def test_a_directory_newer_than_the_newest_sound_one_may_still_be_written() -> None:
    saving = checkpoint(11_000, is_complete=False)
    found = split_checkpoints((*ALL, saving), contract(), known())

    assert "may still be written" in why(found, 11_000)
    assert 10_000 not in steps(found)


def test_an_incomplete_one_below_may_go() -> None:
    broken = checkpoint(500, is_complete=False)

    assert steps(split_checkpoints((broken, ALL[-1]), contract(), known())) == [500]


def test_without_a_sound_checkpoint_nothing_is_deleted() -> None:
    broken = tuple(each.model_copy(update={"is_complete": False}) for each in ALL)

    assert steps(split_checkpoints(broken, contract(), known())) == []


def test_both_roots_of_a_newest_step_stay() -> None:
    twin = checkpoint(10_000, is_temporary=True, root="gs://temp/hero")

    assert {each.checkpoint.path for each in split_checkpoints((*ALL, twin), contract(), known()).kept} == {
        ALL[-1].path,
        twin.path,
    }


STEPS = st.lists(st.integers(0, 50), min_size=1, max_size=20, unique=True)


@given(STEPS, st.integers(0, 6), st.lists(st.integers(0, 50), max_size=3), st.randoms())
def test_whatever_there_is_the_newest_sound_ones_are_never_listed(
    numbers: list[int], keep: int, milestones: list[int], chance: Random
) -> None:
    shuffled = [checkpoint(step, is_complete=step % 3 != 0) for step in numbers]
    chance.shuffle(shuffled)
    sound = sorted((step for step in numbers if step % 3), reverse=True)
    promised = contract(retention={"resume": 2, "milestones": milestones}, final_step=50)

    found: tuple[Checkpoint, ...] = tuple(shuffled)
    listed = set(steps(split_checkpoints(found, promised, known(), keep=keep)))

    kept = sound[: max(2, keep)]
    assert not listed & {*kept, *milestones, 50, 49}
    assert not kept or all(step < kept[0] for step in listed)
    assert sound or not listed


def agreed(step: int, stage: Stage = Stage.PLANNED) -> Record:
    """Return the record of a run whose trial hands this step over."""
    return known().model_copy(update={"run": on_trial(checkpoint(step).path, step, stage)})


LIVE = [stage for stage in Stage if stage is not Stage.CLOSED]


@pytest.mark.parametrize("stage", LIVE)
def test_the_handoff_of_a_trial_stays_until_that_is_closed_and_it_is_said_why(stage: Stage) -> None:
    found = split_checkpoints(ALL, contract(), agreed(4000, stage))

    assert 4000 not in steps(found)
    assert why(found, 4000) == f"the handoff checkpoint of the trial with {CHILD}: it stays until that is closed"
    assert 4000 in steps(split_checkpoints(ALL, contract(), agreed(4000, Stage.CLOSED)))


def test_both_copies_of_the_handoffs_step_stay_in_whichever_root() -> None:
    twin = checkpoint(4000, is_temporary=True, root="gs://temp/hero")

    assert 4000 not in steps(split_checkpoints((*ALL, twin), contract(), agreed(4000)))


def test_what_the_contract_only_names_stays_too_until_a_trial_of_it_is_closed() -> None:
    promised = contract(trial={"handoff_step": 4000, "child_run_id": CHILD})

    assert "that [trial] of its contract names" in why(split_checkpoints(ALL, promised, known()), 4000)
    assert 4000 in steps(split_checkpoints(ALL, promised, agreed(4000, Stage.CLOSED)))


@pytest.mark.parametrize(
    "over",
    [agreed(3000, Stage.CLOSED), agreed(4000, Stage.CLOSED)],
    ids=["from another step", "of another child"],
)
def test_the_end_of_an_earlier_trial_does_not_release_the_next_ones_handoff(over: Record) -> None:
    promised = contract(trial={"handoff_step": 4000, "child_run_id": "hero-second-try"})

    assert 4000 not in steps(split_checkpoints(ALL, promised, over))


def test_what_a_trials_plan_that_waits_for_its_answer_needs_stays() -> None:
    trial = a_trial(ALL[2].path, 3000).plan
    back = RollbackPlan(
        run_id=trial.run_id,
        trial=trial.digest,
        child_run_id=CHILD,
        stop=None,
        launch=a_plan().model_copy(update={"resume_from": PlannedCheckpoint(step=5000, path=ALL[4].path)}),
    )
    asked = record(request(7, plan=trial), request(8, plan=back), instances=(instance(),))

    found = split_checkpoints(ALL, contract(), asked)

    assert why(found, 3000) == "R7 hands it over"
    assert why(found, 5000) == "R8 would resume from it"


@given(STEPS, st.sampled_from(LIVE), st.booleans(), st.data())
def test_whatever_is_asked_the_handoff_of_a_live_trial_is_never_listed(
    numbers: list[int], stage: Stage, is_agreed: bool, data: st.DataObject
) -> None:
    """Agreed, or written down for a trial that has not ended; sound or damaged; in whichever root and order."""
    found = [
        checkpoint(
            step,
            is_complete=data.draw(st.booleans()),
            is_temporary=data.draw(st.booleans()),
            root=data.draw(st.sampled_from(["gs://bucket/hero/checkpoints", "gs://temp/hero"])),
        )
        for step in numbers
    ]
    handed = data.draw(st.sampled_from(found))
    milestones = data.draw(st.lists(st.integers(0, 50), max_size=3))
    promised = contract(
        retention={"resume": data.draw(st.integers(1, 3)), "milestones": milestones},
        final_step=50,
        trial={} if is_agreed else {"handoff_step": handed.step},
    )

    split = split_checkpoints(
        tuple(found),
        promised,
        agreed(handed.step, stage) if is_agreed else known(),
        keep=data.draw(st.none() | st.integers(0, 6)),
        protected=data.draw(st.none() | st.just({handed.path: "child starts from it"})),
    )

    assert handed.step not in steps(split)
    assert sorted(each.path for each in found) == sorted(
        each.path for each in (*split.candidates, *(kept.checkpoint for kept in split.kept))
    )
