"""The record in the real database: added to with the decision or not at all, and never changed."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.model.chronicle import Launched, MilestoneReached, StepEnded, find_fault
from bot.model.delivery import ChannelName, Later
from bot.model.record import Decision
from bot.model.run import Run, RunState
from bot.model.value import RunId
from bot.model.verdict import Severity
from bot.redaction import Redactor
from bot.store.store import Store
from tests.fakes.chronicles import LIFE
from tests.fakes.clock import START, FakeClock
from tests.fakes.decisions import RUN, a_request, a_telling

SECRET = "xoxb-1234567890-abcdefghijklmnop"
OTHER = RunId("other-run")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hero.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[Store]:
    store = await Store.open(f"sqlite:///{file}", FakeClock(), Redactor((SECRET,)))
    yield store
    await store.close()


async def add(store: Store, *happened: object, run_id: RunId = RUN) -> None:
    async with store.transaction() as tx:
        await tx.apply(Decision.model_validate({"happened": happened}), run_id, START)


async def test_what_happened_is_chained_over_many_transactions_for_each_run(store: Store) -> None:
    for each in LIFE:
        await add(store, each)
        await add(store, MilestoneReached(step=1), run_id=OTHER)

    entries, others = await store.chronicle(RUN), await store.chronicle(OTHER)

    assert tuple(each.happening for each in entries) == LIFE
    assert find_fault(RUN, entries) is None
    assert len(others) == len(LIFE)
    assert find_fault(OTHER, others) is None


async def test_a_decision_that_is_not_committed_leaves_no_entry(store: Store) -> None:
    async def is_killed() -> None:
        async with store.transaction() as tx:
            decision = Decision(run=Run(run_id=RUN, state=RunState.FAILED), happened=LIFE[:2])
            await tx.apply(decision, RUN, START)
            raise KeyboardInterrupt

    async def is_refused() -> None:
        async with store.transaction() as tx:
            await tx.apply(Decision(happened=LIFE[:2]), RUN, START)
            await tx.apply(Decision(requests=(a_request(1, RUN), a_request(1, OTHER))), RUN, START)

    with pytest.raises(KeyboardInterrupt):
        await is_killed()
    with pytest.raises(StoreError):
        await is_refused()

    assert await store.record(RUN) is None
    assert await store.chronicle(RUN) == ()


async def test_writers_at_once_make_one_chain(store: Store) -> None:
    await asyncio.gather(*(add(store, MilestoneReached(step=n)) for n in range(20)))

    entries = await store.chronicle(RUN)

    assert len(entries) == 20
    assert find_fault(RUN, entries) is None


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE chronicle SET payload = '{}' WHERE seq = 1",
        "DELETE FROM chronicle WHERE seq = 2",
        "INSERT OR REPLACE INTO chronicle SELECT run_id, seq, at, kind, '{}', prev, hash FROM chronicle WHERE seq = 1",
        "INSERT INTO chronicle SELECT run_id, seq + 7, at, kind, payload, prev, hash FROM chronicle WHERE seq = 2",
        "INSERT INTO chronicle SELECT run_id, 0, at, kind, payload, prev, hash FROM chronicle WHERE seq = 2",
    ],
)
async def test_the_database_refuses_to_change_cut_or_slip_in(store: Store, file: Path, change: str) -> None:
    await add(store, *LIFE[:2])

    with (
        closing(sqlite3.connect(file)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="the record of a run is append-only"),
    ):
        connection.execute(change)

    assert len(await store.chronicle(RUN)) == 2


async def test_who_removes_the_triggers_and_changes_an_entry_is_found_out(store: Store, file: Path) -> None:
    await add(store, *LIFE)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TRIGGER chronicle_is_not_changed")
        connection.execute("UPDATE chronicle SET payload = replace(payload, 'exit code 137', 'exit code 0')")

    fault = find_fault(RUN, await store.chronicle(RUN))

    assert fault is not None
    assert fault.seq == 4
    assert "content" in fault.what


async def test_secrets_are_cut_before_the_hash_is_made(store: Store, file: Path) -> None:
    launched = Launched.model_validate(LIFE[0].model_dump() | {"job_id": f"/me/{SECRET}"})
    fact = launched.facts[1].model_copy(
        update={"value": f"python train.py --token {SECRET} --wandb-api-key=" + "a1" * 20}
    )
    ended = StepEnded(action=1, step="submit", outcome="refused", detail=f"Authorization: Bearer {SECRET}")
    await add(store, launched.model_copy(update={"facts": (*launched.facts, fact)}), ended)
    await store.close()

    whole = b"".join(each.read_bytes() for each in file.parent.iterdir())

    assert SECRET.encode() not in whole
    assert b"a1a1a1a1a1" not in whole


async def test_a_record_that_waits_for_its_issue_holds_up_no_message(store: Store) -> None:
    github = (ChannelName.GITHUB,)
    async with store.transaction() as tx:
        record = a_telling("record", slot="record", severity=Severity.CRITICAL, channels=github)
        await tx.apply(Decision(tell=(record,)), RUN, START)
    (waiting,) = await store.due_deliveries(ChannelName.GITHUB)
    await store.delivery_begun(waiting.number)
    await store.delivery_ended(waiting.number, Later(reason="ill"), retry_after=timedelta(minutes=5))
    async with store.transaction() as tx:
        await tx.apply(Decision(tell=(a_telling("news", channels=github),)), RUN, START)

    due = await store.due_deliveries(ChannelName.GITHUB)

    assert [each.key for each in due] == ["news/github"]


async def test_an_entry_that_is_none_is_told_and_not_passed_over(store: Store, file: Path) -> None:
    await add(store, *LIFE[:1])
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TRIGGER chronicle_is_not_changed")
        connection.execute("UPDATE chronicle SET seq = 'one'")

    with pytest.raises(StoreError, match="entry of the record of hero-12d8b6f0 cannot be read"):
        await store.chronicle(RUN)
