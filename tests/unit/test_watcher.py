"""When the launch checklist is read: whenever a check may end with the question for a launch, and at no other time."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.model.conduct import Stage
from bot.model.contract import Contract
from bot.model.event import RunChecked
from bot.model.hang import HangEvidence
from bot.model.job import Job
from bot.model.preflight import PreflightReport
from bot.model.reading import Known, Reading, Unknown
from bot.model.record import Decision, Record
from bot.model.run import Run
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, Finding
from bot.redaction import Redactor
from bot.store.store import Store
from bot.watcher import Watcher
from checks import CHECKS
from checks.handoff import HANDOFF_ID
from checks.progress import STARTUP_ID
from tests.fakes.clock import FakeClock
from tests.fakes.handoffs import on_trial
from tests.fakes.snapshots import AT, RUN, contract, failed_job, instance, job, snapshot, unknown
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
        self.hang: Reading[HangEvidence] | None = None
        """What is on record of a hang; None where nothing keeps it."""
        self.hangs_asked = 0

    async def read(self, _contract: Contract, launch: Any, *_: object) -> Snapshot:
        return snapshot(jobs=self.jobs, log=self.log, launch=launch, is_first=launch is None)

    async def with_hang(self, _contract: Contract, seen: Snapshot) -> Snapshot:
        self.hangs_asked += 1
        return seen if self.hang is None else seen.model_copy(update={"hang": self.hang})

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


def stalled(event: RunChecked) -> Finding | None:
    verdict = next(each.verdict for each in event.judgements if each.check == STARTUP_ID)
    return verdict.finding if isinstance(verdict, Fail) else None


async def test_a_run_that_stands_still_is_judged_with_what_is_on_record_of_it(store: Store) -> None:
    around = Surroundings()
    dark = unknown(detail="no answer in 20 s")
    around.hang = Known(value=HangEvidence(window_began_at=AT, use=dark, stacks=dark, ranks=dark), at=AT)

    event = await checked(around, store)
    found = stalled(event)

    assert found is not None
    assert "on 1 node: node-0" in found.evidence
    assert "use of processors: unknown, no answer in 20 s" in found.evidence
    assert event.snapshot.hang == around.hang
    assert around.hangs_asked == 1


@pytest.mark.parametrize("hang", [None, unknown(detail="no answer in 30 s")], ids=["nowhere", "dark"])
async def test_without_that_record_it_is_told_all_the_same(store: Store, hang: Unknown | None) -> None:
    around = Surroundings()
    around.hang = hang

    found = stalled(await checked(around, store))

    assert found is not None
    assert found.summary.startswith("running for 1 h without a training step")
    assert any("unknown: no answer in 30 s" in line for line in found.evidence) == (hang is not None)


async def test_a_run_that_moves_is_not_asked_about(store: Store) -> None:
    around = Surroundings()
    around.jobs = job(started_at=AT)

    assert stalled(await checked(around, store)) is None
    assert around.hangs_asked == 0
