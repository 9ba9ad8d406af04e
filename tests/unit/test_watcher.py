"""When the launch checklist is read: whenever a check may end with the question for a launch, and at no other time."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.model.conduct import Stage
from bot.model.contract import Contract
from bot.model.event import RunChecked
from bot.model.job import Job
from bot.model.preflight import PreflightReport
from bot.model.record import Decision, Record
from bot.model.run import Run
from bot.model.snapshot import Snapshot
from bot.redaction import Redactor
from bot.store.store import Store
from bot.watcher import Watcher
from checks import CHECKS
from checks.handoff import HANDOFF_ID
from tests.fakes.clock import FakeClock
from tests.fakes.handoffs import on_trial
from tests.fakes.snapshots import AT, RUN, contract, failed_job, instance, job, snapshot
from tests.unit.handlers.scene import request

REPORT = PreflightReport(values=(), findings=())


class Surroundings:
    """Everything around a watcher but the store."""

    def __init__(self) -> None:
        self.jobs: Job = job()
        self.log = ""
        self.judged = 0
        self.events: list[RunChecked] = []
        self.is_wish_late = False
        """Whether somebody asks for a launch while the sources are read."""

    async def read(self, _contract: Contract, launch: Any, *_: object) -> Snapshot:
        return snapshot(jobs=self.jobs, log=self.log, launch=launch, is_first=launch is None)

    async def judge(self, _contract: Contract, _record: Record | None, _seen: Snapshot) -> PreflightReport:
        self.judged += 1
        return REPORT

    async def hand_on(self, _contract: Contract, event: RunChecked) -> bool:
        self.events.append(event)
        return self.is_wish_late and event.preparation is None

    async def run(self, _contract: Contract) -> None:
        return

    def load(self, _run_id: str) -> Contract:
        return contract()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(f"sqlite:///{tmp_path / 'hero.db'}", FakeClock(), Redactor())
    yield opened
    await opened.close()


async def checked(around: Surroundings, store: Store) -> RunChecked:
    anything: Any = around
    watcher = Watcher(
        reader=anything,
        checks=CHECKS,
        contracts=anything,
        store=store,
        clock=FakeClock(),
        hand_on=around.hand_on,
        blocked=anything,
        errands=anything,
        checklist=anything,
        deadline=timedelta(seconds=60),
        cadence=timedelta(minutes=15),
    )
    await watcher.check(RUN)
    return around.events[-1]


async def put(store: Store, **decided: Any) -> None:
    decision = Decision.model_validate({"run": Run(run_id=RUN), "instances": (instance(),), **decided})
    async with store.transaction() as tx:
        await tx.apply(decision, RUN, AT)


async def test_a_run_that_is_well_has_no_checklist_read(store: Store) -> None:
    await put(store)

    event = await checked(Surroundings(), store)

    assert event.preparation is None


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_failure_that_may_be_relaunched_has_it_read_at_once(store: Store, is_known: bool) -> None:
    if is_known:
        await put(store)
    around = Surroundings()
    around.jobs, around.log = failed_job(137), "Received preemption notice: this spot machine will be reclaimed now"

    event = await checked(around, store)

    assert (event.preparation, around.judged) == (REPORT, 1)


async def test_a_wish_has_it_read_though_the_job_lives(store: Store) -> None:
    await put(store, run=Run(run_id=RUN, relaunch_wanted_by="ada"))

    assert (await checked(Surroundings(), store)).preparation == REPORT


async def test_a_wish_that_comes_while_the_sources_are_read_has_it_read_after_all(store: Store) -> None:
    await put(store)
    around = Surroundings()
    around.is_wish_late = True

    event = await checked(around, store)

    assert [each.preparation for each in around.events] == [None, REPORT]
    assert event.snapshot == around.events[0].snapshot


async def test_an_open_question_has_it_read_again(store: Store) -> None:
    await put(store, requests=(request(7),))

    assert (await checked(Surroundings(), store)).preparation == REPORT


async def test_the_handoff_that_the_runs_own_trial_protects_reaches_its_check_until_the_trial_is_closed(
    store: Store,
) -> None:
    found = {}
    for stage in (Stage.RUNNING, Stage.CLOSED):
        await put(store, run=on_trial("gs://bucket/hero/checkpoints/step-400", 400, stage))
        event = await checked(Surroundings(), store)
        found[stage] = next(each.verdict.kind for each in event.judgements if each.check == HANDOFF_ID)

    assert found == {Stage.RUNNING: "fail", Stage.CLOSED: "not_applicable"}
