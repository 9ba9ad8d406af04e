"""How Hero itself is: told at once whatever the database does, and never as an error of the server."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from bot.health import LATE_AFTER, NO_ANSWER, Examination
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.scheduler import Scheduler
from bot.store.store import Store
from bot.tenure import TTL, Tenure
from bot.web.server import web_app
from tests.fakes.clock import FakeClock
from tests.fakes.waiting import until

RUN = RunId("hero-12d8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hero.db"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(file: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await Store.open(f"sqlite:///{file}", clock, Redactor(), busy_timeout=timedelta(milliseconds=500))
    yield store
    await store.close()


async def unneeded(_run_id: RunId) -> timedelta:
    raise AssertionError("no check runs here")


@pytest.fixture
def scheduler(clock: FakeClock) -> Scheduler:
    return Scheduler(unneeded, clock, jitter=timedelta())


def examination(store: Store, scheduler: Scheduler, clock: FakeClock, patience: timedelta) -> Examination:
    return Examination(
        store=store,
        scheduler=scheduler,
        tenure=Tenure(store, clock),
        channels={},
        clock=clock,
        patience=patience,
    )


@pytest.fixture
async def hasty(store: Store, scheduler: Scheduler, clock: FakeClock) -> AsyncIterator[Examination]:
    """One whose patience ends long before that of SQLite."""
    it = examination(store, scheduler, clock, timedelta(milliseconds=50))
    yield it
    await it.close()


@pytest.fixture
async def patient(store: Store, scheduler: Scheduler, clock: FakeClock) -> AsyncIterator[Examination]:
    """One that waits for what SQLite says in the end."""
    it = examination(store, scheduler, clock, timedelta(seconds=10))
    yield it
    await it.close()


def remove(file: Path) -> int:
    """Remove the database and what SQLite keeps beside it; return how many files there were."""
    files = list(file.parent.glob(f"{file.name}*"))
    for each in files:
        each.unlink()
    return len(files)


async def ask(examination: Examination) -> httpx.Response:
    transport = httpx.ASGITransport(app=web_app(examination.health, ()))
    async with httpx.AsyncClient(transport=transport, base_url="http://hero") as client:
        return await client.get("/healthz")


async def test_all_is_well_with_a_database_that_answers(patient: Examination) -> None:
    answer = await ask(patient)

    assert answer.status_code == 200
    assert answer.json()["store"] == "ok"
    assert answer.json()["counts"]["requests_open"] == 0


async def test_a_locked_database_is_told_before_it_answers_and_passes(hasty: Examination, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        async with asyncio.timeout(0.4):
            answer = await ask(hasty)

        assert answer.status_code == 503
        assert answer.json()["store"] == NO_ANSWER
        other.execute("ROLLBACK")

    async def is_well() -> bool:
        return (await hasty.health()).is_well

    await until(is_well)


async def test_questions_that_come_together_look_at_the_database_once(
    hasty: Examination, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    may_go_on = asyncio.Event()

    async def probe() -> None:
        nonlocal looks
        looks += 1
        await may_go_on.wait()

    monkeypatch.setattr(store, "probe", probe)

    told = await asyncio.gather(*(hasty.health() for _ in range(5)))
    told.append(await hasty.health())
    may_go_on.set()
    assert {each.store for each in told} == {NO_ANSWER}
    assert looks == 1

    await until(lambda: hasty._look is not None and hasty._look.done())
    assert (await hasty.health()).is_well
    assert looks == 2, "an old answer is none"


async def test_a_lock_that_lasts_is_named_with_its_fix(patient: Examination, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        answer = await ask(patient)

        other.execute("ROLLBACK")
    assert answer.status_code == 503
    assert "locked by another process; stop the other program" in answer.json()["store"]


async def test_a_removed_database_is_told(patient: Examination, file: Path) -> None:
    assert (await patient.health()).is_well
    remove(file)

    answer = await ask(patient)

    assert answer.status_code == 503
    assert "was removed or replaced under Hero" in answer.json()["store"]
    assert remove(file) == 0, "asking makes no new file"


async def test_a_check_that_stays_out_is_told_and_one_that_the_guardian_has_yet_to_start_is_not(
    patient: Examination, scheduler: Scheduler, clock: FakeClock
) -> None:
    scheduler.watch(RUN)
    clock.advance(LATE_AFTER)
    assert (await patient.health()).is_well

    clock.advance(timedelta(seconds=1))

    answer = await ask(patient)
    assert answer.status_code == 503
    assert answer.json()["late"] == [RUN]


async def test_a_lease_that_could_not_be_renewed_is_not_called_held(
    store: Store, scheduler: Scheduler, clock: FakeClock
) -> None:
    """A Hero whose file was taken away still has the lease in mind while another holds that of a new file."""
    tenure = Tenure(store, clock)
    it = Examination(store=store, scheduler=scheduler, tenure=tenure, channels={}, clock=clock)
    before = (await it.health()).lease
    await tenure.begin()
    during = (await it.health()).lease
    clock.advance(TTL)

    assert (before, during, (await it.health()).lease) == ("standing by", "held", "ran out")
