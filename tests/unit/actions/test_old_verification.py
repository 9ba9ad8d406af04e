"""A plan that was compared, and then Hero was down: neither an old look nor an old yes changes the world."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.actions.stopping import plan_stop
from bot.model.action import ActionState, Done, StepName
from bot.model.planned import StopPlan
from bot.model.record import Decision
from tests.fakes.snapshots import AT, RUN, contract, job, snapshot
from tests.unit.actions.world import Bench, a_bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with a_bench(tmp_path) as made:
        yield made


async def verified_then_down(bench: Bench, down: timedelta) -> None:
    """Leave the action as a Hero does that dies after it has verified, and start another one later."""
    action = (await bench.action()).begun(StepName.VERIFY, AT).ended(StepName.VERIFY, Done(detail="as asked"), AT)
    async with bench.store._store.transaction() as tx:
        await tx.apply(Decision(actions=(action,)), RUN, AT)
    bench.clock.advance(down)
    bench.a_new_one()


async def test_a_world_that_changed_while_hero_was_down_is_compared_again_before_the_submission(bench: Bench) -> None:
    await bench.grant()
    await verified_then_down(bench, timedelta(minutes=20))
    bench.world.checkpoints = bench.world.checkpoints[:-1]

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert "what would be done has changed since it was asked" in action.noted
    assert bench.world.submissions == 0


async def test_a_world_that_stayed_the_same_is_submitted_once(bench: Bench) -> None:
    await bench.grant()
    await verified_then_down(bench, timedelta(minutes=20))

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert bench.world.submissions == 1


@pytest.mark.parametrize("is_relaunch", [False, True])
async def test_a_yes_that_ran_out_while_hero_was_down_stops_no_job(bench: Bench, is_relaunch: bool) -> None:
    bench.world.live()
    if is_relaunch:
        await bench.grant()
    else:
        plan = plan_stop(contract(), snapshot(AT, jobs=job()))
        assert isinstance(plan, StopPlan)
        await bench.grant_plan(plan)
    await verified_then_down(bench, timedelta(hours=2))

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert "the approval has expired" in action.noted
    assert bench.world.stops == []
    assert bench.world.submissions == 0
