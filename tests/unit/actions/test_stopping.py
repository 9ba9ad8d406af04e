"""A stop: what is asked, and that exactly that launch is ended, whenever Hero dies."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.actions.stopping import plan_stop
from bot.model.action import ActionState
from bot.model.job import JobState
from bot.model.planned import NoPlan, StopPlan
from bot.model.reading import Gap
from tests.fakes.snapshots import AT, JOB, contract, instance, job, snapshot, unknown
from tests.unit.actions.world import Bench, Killed, a_bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with a_bench(tmp_path) as made:
        made.world.live()
        yield made


def a_stop() -> StopPlan:
    plan = plan_stop(contract(), snapshot(AT, jobs=job()))
    assert isinstance(plan, StopPlan)
    return plan


def test_only_a_job_that_is_known_to_live_can_be_stopped() -> None:
    assert a_stop().stop == JOB
    assert a_stop().instance == job().instance_id
    for jobs in ((), job(JobState.SUCCEEDED)):
        nothing = plan_stop(contract(), snapshot(AT, jobs=jobs))
        assert isinstance(nothing, NoPlan)
        assert not nothing.is_unknown
    dark = plan_stop(contract(), snapshot(AT, jobs=unknown(Gap.TIMEOUT)))
    assert isinstance(dark, NoPlan)
    assert dark.is_unknown


async def test_the_job_is_stopped_once_and_seen_terminal_and_nothing_is_launched(bench: Bench) -> None:
    await bench.grant_plan(a_stop(), launch=instance())

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert bench.world.stops == [JOB]
    assert bench.world.submissions == 0
    assert bench.told == ["the job is stopped; nothing is launched again before somebody asks for it"]


async def test_another_launch_under_the_same_name_is_not_touched(bench: Bench) -> None:
    await bench.grant_plan(a_stop(), launch=instance())
    bench.world.found[JOB] = job(submitted_at=AT - timedelta(minutes=1))

    await bench.work()

    assert (await bench.action()).state is ActionState.VOID
    assert bench.world.stops == []
    assert "was approved, but nothing was done" in bench.told[0]


async def test_a_yes_that_has_expired_stops_nothing(bench: Bench) -> None:
    await bench.grant_plan(a_stop(), lasts=timedelta(minutes=1), launch=instance())
    bench.clock.advance(timedelta(minutes=2))

    await bench.work()

    assert (await bench.action()).state is ActionState.VOID
    assert bench.world.stops == []


async def test_while_the_orchestrator_is_silent_nothing_is_stopped_on_a_guess(bench: Bench) -> None:
    await bench.grant_plan(a_stop(), launch=instance())
    bench.world.is_reachable = False

    await bench.work(polls=20)

    assert (await bench.action()).state is ActionState.GRANTED
    assert bench.world.stops == []


async def test_a_hero_killed_at_any_moment_has_ended_that_job_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    async with a_bench(tmp_path / "whole") as bench:
        bench.world.live()
        await bench.grant_plan(a_stop(), launch=instance())
        await bench.work()
        moments = dict(enumerate(bench.knife.moments))
    assert len(moments) > 10

    for moment, name in moments.items():
        directory = tmp_path / str(moment)
        directory.mkdir()
        async with a_bench(directory) as bench:
            bench.world.live()
            await bench.grant_plan(a_stop(), launch=instance())
            bench.knife.at = moment
            with pytest.raises(BaseExceptionGroup) as death:
                await bench.work()
            assert death.group_contains(Killed)
            bench.knife.at = None
            bench.a_new_one()
            if (await bench.action()).state is ActionState.GRANTED:
                await bench.work()

            where = f"killed at {moment}, {name}"
            assert (await bench.action()).state in {ActionState.DONE, ActionState.VOID}, where
            assert bench.world.found[JOB].state is JobState.KILLED or not bench.world.stops, where
            assert set(bench.world.stops) <= {JOB}, where
            assert bench.world.submissions == 0, where
