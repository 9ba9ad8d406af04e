"""The other run of a trial, once a cut-over has ended it and the orchestrator has forgotten its job."""

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.model.reading import Known, Unknown
from bot.model.run import Run
from bot.trial_pairs import TrialPairs
from tests.fakes.snapshots import JOB, RUN
from tests.unit.actions.trial_world import CHILD, Bench, old_contract


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


class Kept:
    """The records of a bench, as the store gives them."""

    def __init__(self, bench: Bench) -> None:
        self.record = bench.store.record
        self._records = bench.store.records

    async def runs(self) -> tuple[Run, ...]:
        return tuple(each.run for each in self._records.values())


def pairs(bench: Bench) -> TrialPairs:
    world: Any = bench.world
    store: Any = Kept(bench)
    return TrialPairs(store=store, contracts=world, launchers={"iris": world}, clock=bench.clock)


async def test_an_old_run_that_a_cut_over_has_ended_needs_no_job_that_is_still_shown() -> None:
    bench = Bench()
    await bench.after_cutover()
    del bench.world.found[JOB]

    (pair,) = await pairs(bench).of(CHILD)

    assert isinstance(pair.live, Known)
    assert (pair.run_id, pair.live.value) == (RUN, ())


async def test_an_old_run_whose_contract_points_elsewhere_now_is_not_known_to_have_ended() -> None:
    """The other orchestrator answers that it has no such job, and the old run trains on where it was launched."""
    bench = Bench()
    del bench.world.found[JOB]
    bench.world.contracts[RUN] = old_contract(orchestrator={"kind": "iris", "job_id": "/me/another"})

    (pair,) = await pairs(bench).of(CHILD)

    assert isinstance(pair.live, Unknown)
    assert f"{JOB} was never seen to end" in pair.live.detail
