"""What a clean-up may list: never what somebody could still need."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bot.model.planned import PlannedCheckpoint, RelaunchPlan
from bot.model.record import Record
from bot.model.snapshot import Checkpoint
from checks.cleanup import Split, split_checkpoints, starts_of
from tests.fakes.decisions import a_plan
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
