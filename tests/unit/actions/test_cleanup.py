"""A clean-up on real directories: exactly the granted list goes, whenever Hero dies and whatever changes meanwhile."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.actions.cleanup import CleanUp
from bot.contracts import BadContract
from bot.model.action import ActionState
from bot.model.conduct import Stage
from bot.model.contract import Contract
from bot.model.errand import Answer, CannotYet, Errand, ErrandKind, Found, Planned
from bot.model.planned import CleanUpPlan
from bot.model.record import Decision
from bot.model.run import Run
from bot.model.value import RunId
from bot.sources.checkpoints import CheckpointReader
from tests.fakes.handoffs import on_trial
from tests.fakes.snapshots import RUN, contract, instance
from tests.unit.actions.world import Bench, Killed, a_bench
from tests.unit.handlers.scene import ADA, record

OLD, NEWEST = (1000, 2000, 3000), 4000


def save(root: Path, step: int) -> Path:
    directory = root / f"step-{step}"
    (directory / "model").mkdir(parents=True)
    (directory / "model" / "part-0").write_bytes(b"x" * 1000)
    (directory / "metadata.json").write_text(json.dumps({"step": step, "is_temporary": False}))
    return directory


@asynccontextmanager
async def a_run(directory: Path) -> AsyncIterator[tuple[Bench, CleanUp, Path]]:
    """A run with four checkpoints on disk, under the executor."""
    root = directory / "out" / "checkpoints"
    for step in (*OLD, NEWEST):
        save(root, step)
    async with a_bench(directory) as bench:
        bench.promised = contract(checkout=str(directory), output_root="out", final_step=9000)
        clean_up = a_clean_up(bench)
        bench.takers["cleanup"] = clean_up
        bench.a_new_one()
        yield bench, clean_up, root


def a_clean_up(bench: Bench, *others: Contract | BadContract) -> CleanUp:
    store: Any = bench.store
    return CleanUp(
        checkpoints=CheckpointReader(bench.clock),
        contracts=lambda: (promised(bench), *others),
        store=store,
        clock=bench.clock,
    )


def promised(bench: Bench) -> Contract:
    assert isinstance(bench.promised, Contract)
    return bench.promised


async def look(bench: Bench, clean_up: CleanUp, argument: str = "") -> Found:
    errand = Errand(kind=ErrandKind.CLEANUP, by=ADA, at=bench.clock.now(), argument=argument)
    return await clean_up.prepare(promised(bench), record(), errand)


async def planned(bench: Bench, clean_up: CleanUp) -> CleanUpPlan:
    found = await look(bench, clean_up)
    assert isinstance(found, Planned), found
    assert isinstance(found.plan, CleanUpPlan)
    return found.plan


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


async def test_the_list_has_sizes_and_says_what_stays_and_why(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        found = await look(bench, clean_up)

    assert isinstance(found, Planned)
    assert isinstance(found.plan, CleanUpPlan)
    assert [each.step for each in found.plan.removals] == list(OLD)
    assert {each.size_bytes for each in found.plan.removals} == {1000 + len('{"step": 1000, "is_temporary": false}')}
    assert found.evidence[0] == "frees 3.0 KiB"
    assert found.evidence[1] == f"keep: {root}/step-4000 (step 4000): the newest sound one"


async def test_more_may_be_kept_by_word_and_never_fewer(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, _):
        three = await look(bench, clean_up, "keep 3")
        all_of_them = await look(bench, clean_up, "keep 9")
        nonsense = await look(bench, clean_up, "everything")

    assert isinstance(three, Planned)
    assert isinstance(three.plan, CleanUpPlan)
    assert [each.step for each in three.plan.removals] == [1000]
    assert isinstance(all_of_them, Answer)
    assert isinstance(nonsense, CannotYet)


async def test_exactly_the_list_goes(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        save(root, 30_000).joinpath("metadata.json").unlink()  # being written
        (root / "notes.txt").write_text("mine")
        await bench.grant_plan(await planned(bench, clean_up), launch=instance())

        await bench.work()

        assert left(root) == ["notes.txt", "step-30000", "step-4000"]
        action = await bench.action()
        assert action.state is ActionState.DONE
        assert bench.told == ["the listed checkpoints are gone; nothing else was touched"]


async def test_a_list_that_has_changed_voids_the_yes(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        plan = await planned(bench, clean_up)
        (root / "step-1000").rename(root / "kept-by-hand")
        await bench.grant_plan(plan, launch=instance())

        await bench.work()

        assert (await bench.action()).state is ActionState.VOID
        assert left(root) == ["kept-by-hand", "step-2000", "step-3000", "step-4000"]


async def test_what_has_become_needed_since_the_yes_is_not_deleted(tmp_path: Path) -> None:
    """The newest one is lost after the list was made: now the next one is what the run would resume from."""
    async with a_run(tmp_path) as (bench, clean_up, root):
        plan = await planned(bench, clean_up)
        (root / "step-4000" / "metadata.json").write_text("{")
        await bench.grant_plan(plan, launch=instance())

        await bench.work()

        action = await bench.action()
        assert action.state is ActionState.VOID
        assert "step-3000 may not be deleted any more: the newest sound one" in action.noted
        assert left(root) == ["step-1000", "step-2000", "step-3000", "step-4000"]


async def test_what_another_run_starts_from_by_now_is_not_deleted(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        plan = await planned(bench, clean_up)
        child = contract(run_id="child", initialize_from=str(root / "step-2000"))
        bench.takers["cleanup"] = a_clean_up(bench, child)
        bench.a_new_one()
        await bench.grant_plan(plan, launch=instance())

        await bench.work()

        assert "child starts from it" in (await bench.action()).noted
        assert left(root) == [f"step-{step}" for step in (*OLD, NEWEST)]


@pytest.mark.parametrize("stage", [Stage.PLANNED, Stage.RUNNING, Stage.ROLLED_BACK])
@pytest.mark.parametrize("owner", [RUN, RunId("hero-of-others")])
async def test_what_a_trial_hands_over_since_the_yes_is_not_deleted_whoever_s_trial_it_is(
    tmp_path: Path, stage: Stage, owner: RunId
) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        plan = await planned(bench, clean_up)
        await bench.grant_plan(plan, launch=instance())
        await put(bench, on_trial(str(root / "step-2000"), 2000, stage, run_id=owner))

        await bench.work()

        action = await bench.action()
        assert action.state is ActionState.VOID
        assert "step-2000 may not be deleted any more: the handoff checkpoint of" in action.noted
        assert left(root) == [f"step-{step}" for step in (*OLD, NEWEST)]


async def test_a_trial_that_is_agreed_while_a_clean_up_deletes_keeps_its_handoff(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        plan = await planned(bench, clean_up)
        await bench.grant_plan(plan, launch=instance())
        await bench.work(until=lambda: not (root / "step-1000").exists())
        await put(bench, on_trial(str(root / "step-3000"), 3000))
        bench.a_new_one()

        await bench.work()

        assert "the handoff checkpoint of the trial with" in (await bench.action()).noted
        assert "step-3000" in left(root)


async def test_the_handoff_of_a_trial_that_is_closed_may_be_listed_again(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        await put(bench, on_trial(str(root / "step-2000"), 2000, Stage.CLOSED))

        plan = await planned(bench, clean_up)

        assert [each.step for each in plan.removals] == list(OLD)


async def put(bench: Bench, run: Run) -> None:
    async with bench.store.transaction() as tx:
        await tx.apply(Decision(run=run), run.run_id, bench.clock.now())


@pytest.mark.parametrize("spelled", ["file://{root}/step-2000/", "{root}//step-2000/model", "link/step-2000"])
async def test_another_runs_start_is_kept_however_it_is_spelled(tmp_path: Path, spelled: str) -> None:
    async with a_run(tmp_path) as (bench, _, root):
        (tmp_path / "link").symlink_to(root)
        child = contract(run_id="child", checkout=str(tmp_path), initialize_from=spelled.format(root=root))

        plan = await planned(bench, a_clean_up(bench, child))

    assert [each.step for each in plan.removals] == [1000, 3000]


async def test_while_a_contract_cannot_be_read_nothing_is_deleted(tmp_path: Path) -> None:
    """It may be the one that starts from what is on the list."""
    async with a_run(tmp_path) as (bench, _, _root):
        bad = BadContract(run_id=RunId("child"), problems=("runs/child.toml: is no TOML",))

        found = await look(bench, a_clean_up(bench, bad))

    assert isinstance(found, CannotYet)
    assert found.is_unknown
    assert "what child starts from is not known" in found.reason


async def test_a_root_that_leads_elsewhere_since_the_yes_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for step in (*OLD, NEWEST):
        save(elsewhere, step)
    async with a_run(tmp_path) as (bench, clean_up, root):
        plan = await planned(bench, clean_up)
        root.rename(tmp_path / "aside")
        root.symlink_to(elsewhere)
        await bench.grant_plan(plan, launch=instance())

        await bench.work()

        assert (await bench.action()).state is ActionState.VOID
        assert "is not where it was any more" in (await bench.action()).noted
        assert left(elsewhere) == [f"step-{step}" for step in (*OLD, NEWEST)]


async def test_a_root_behind_a_link_is_listed_by_where_it_lies(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        root.rename(tmp_path / "disk")
        root.symlink_to(tmp_path / "disk")
        plan = await planned(bench, clean_up)
        await bench.grant_plan(plan, launch=instance())

        await bench.work()

        assert plan.removals[0].path == str(tmp_path / "disk" / "step-1000")
        assert left(tmp_path / "disk") == ["step-4000"]


async def test_a_yes_that_runs_out_midway_stops_there_and_says_how_far_it_came(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        plan = await planned(bench, clean_up)
        await bench.grant_plan(plan, lasts=timedelta(seconds=8), launch=instance())

        await bench.work()

        action = await bench.action()
        assert action.state is ActionState.FAILED
        assert "of 3 are gone" in action.noted
        assert NEWEST in [int(name.removeprefix("step-")) for name in left(root)]


async def test_a_link_is_never_followed(tmp_path: Path) -> None:
    async with a_run(tmp_path) as (bench, clean_up, root):
        elsewhere = save(tmp_path / "elsewhere", 7)
        (root / "step-1000" / "model" / "link").symlink_to(elsewhere)
        await bench.grant_plan(await planned(bench, clean_up), launch=instance())

        await bench.work()

        assert left(root) == ["step-4000"]
        assert (elsewhere / "model" / "part-0").is_file()


async def test_a_hero_killed_at_any_moment_has_deleted_the_list_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    async with a_run(tmp_path / "whole") as (bench, clean_up, _):
        await bench.grant_plan(await planned(bench, clean_up), launch=instance())
        await bench.work()
        moments = dict(enumerate(bench.knife.moments))
    assert len(moments) > 8

    for moment, name in moments.items():
        directory = tmp_path / str(moment)
        directory.mkdir()
        async with a_run(directory) as (bench, clean_up, root):
            await bench.grant_plan(await planned(bench, clean_up), launch=instance())
            bench.knife.at = moment
            with pytest.raises(BaseExceptionGroup) as death:
                await bench.work()
            assert death.group_contains(Killed)
            bench.knife.at = None
            bench.a_new_one()
            if (await bench.action()).state is ActionState.GRANTED:
                await bench.work()

            where = f"killed at {moment}, {name}"
            assert (await bench.action()).state is ActionState.DONE, where
            assert left(root) == ["step-4000"], where
