"""One Hero at a time acts on one database: a dead one is replaced at once, a live one is left at work."""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.errors import LeaseLostError, StoreError
from bot.redaction import Redactor
from bot.sources.local_processes import start_of
from bot.store.leases import Lease
from bot.store.store import Store
from bot.tenure import NAME, TTL, Tenure, is_dead_here, machine
from tests.fakes.clock import FakeClock
from tests.fakes.waiting import block_until, until


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await Store.open(f"sqlite:///{tmp_path}/hero.db", clock, Redactor())
    yield store
    await store.close()


def holder(pid: int, start: str | None = None, where: str | None = None) -> str:
    return f"{where or machine()}|{pid}|{start_of(pid) if start is None else start}|cafe"


@pytest.fixture
def dead() -> str:
    """Return the holder of a process that has lived and is gone."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = holder(process.pid)
    process.kill()
    process.communicate()
    return name


async def hold(store: Store, name: str) -> Lease:
    lease = await store.acquire_lease(NAME, name, TTL)
    assert lease is not None
    return lease


async def begin_within_moments(tenure: Tenure) -> None:
    async with asyncio.timeout(5):
        await tenure.begin()


async def test_a_free_lease_is_taken_at_once_and_given_back_at_the_end(store: Store, clock: FakeClock) -> None:
    first, second = Tenure(store, clock), Tenure(store, clock)
    await begin_within_moments(first)
    assert first.lease is not None
    fence = first.lease.fence
    await first.end()

    await begin_within_moments(second)

    assert second.lease is not None
    assert second.lease.fence > fence


async def test_the_lease_of_a_dead_process_of_this_machine_is_taken_over_at_once(
    store: Store, clock: FakeClock, dead: str
) -> None:
    """A Hero that was killed does not leave its runs unwatched for as long as its lease would last."""
    await hold(store, dead)

    tenure = Tenure(store, clock)
    await begin_within_moments(tenure)

    assert tenure.lease is not None


async def test_a_live_holder_is_stood_by_for_until_its_lease_runs_out(store: Store, clock: FakeClock) -> None:
    """Field report R30."""
    await hold(store, holder(os.getpid()))
    tenure = Tenure(store, clock)
    beginning = asyncio.create_task(tenure.begin())

    for _ in range(3):
        await until(lambda: clock._sleepers)
        clock.advance(timedelta(seconds=9))
    await until(lambda: clock._sleepers)
    assert tenure.lease is None
    clock.advance(timedelta(seconds=4))
    await beginning

    assert tenure.lease is not None


async def test_a_holder_on_another_machine_is_stood_by_for_since_nobody_can_tell(
    store: Store, clock: FakeClock, dead: str
) -> None:
    await hold(store, dead.replace(machine(), "another-machine"))
    tenure = Tenure(store, clock)
    beginning = asyncio.create_task(tenure.begin())

    await until(lambda: clock._sleepers)

    assert tenure.lease is None
    beginning.cancel()
    await asyncio.wait((beginning,))


async def test_the_lease_is_renewed_before_it_runs_out(store: Store, clock: FakeClock) -> None:
    tenure = Tenure(store, clock)
    await begin_within_moments(tenure)
    keeping = asyncio.create_task(tenure.keep())

    for _ in range(12):
        await until(lambda: clock._sleepers)
        clock.advance(TTL / 3)
    await until(lambda: clock._sleepers)

    assert await store.acquire_lease(NAME, "another", TTL) is None
    keeping.cancel()
    await asyncio.wait((keeping,))


async def test_a_hero_that_was_replaced_learns_it_and_stops(store: Store, clock: FakeClock) -> None:
    tenure = Tenure(store, clock)
    await begin_within_moments(tenure)
    assert tenure.lease is not None
    clock.advance(TTL * 2)
    await hold(store, "another")

    keeping = asyncio.create_task(tenure.keep())
    await until(lambda: clock._sleepers)
    clock.advance(TTL / 3)

    with pytest.raises(LeaseLostError):
        await keeping


async def test_two_that_bury_the_same_dead_one_do_not_both_hold(store: Store, clock: FakeClock, dead: str) -> None:
    await hold(store, dead)
    tenures = [Tenure(store, clock) for _ in range(5)]
    beginnings = [asyncio.create_task(tenure.begin()) for tenure in tenures]

    await until(lambda: len(clock._sleepers) == 4)

    assert sum(tenure.lease is not None for tenure in tenures) == 1
    for each in beginnings:
        each.cancel()
    await asyncio.wait(beginnings)


async def test_a_database_that_refuses_a_renewal_ends_nothing(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenure = Tenure(store, clock)
    await begin_within_moments(tenure)
    refused: list[int] = []

    async def refuse(*_args: object) -> Lease:
        refused.append(1)
        msg = "no space is left"
        raise StoreError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(store, "renew_lease", refuse)
        keeping = asyncio.create_task(tenure.keep())
        await until(lambda: clock._sleepers)
        clock.advance(TTL / 3)
        await until(lambda: refused and clock._sleepers)
    clock.advance(TTL / 3)
    await until(lambda: clock._sleepers)

    assert not keeping.done()
    keeping.cancel()
    await asyncio.wait((keeping,))


async def test_a_database_that_is_locked_at_the_start_is_waited_out_and_told_once(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "hero.db"
    store = await Store.open(f"sqlite:///{path}", clock, Redactor(), busy_timeout=timedelta(milliseconds=10))
    tenure = Tenure(store, clock)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, capture_logs() as logs:
        other.execute("BEGIN IMMEDIATE")
        beginning = asyncio.create_task(tenure.begin())
        for _ in range(3):
            await until(lambda: clock._sleepers)
            clock.advance(timedelta(seconds=2))
        await until(lambda: clock._sleepers)
        assert not beginning.done()
        other.execute("ROLLBACK")

        clock.advance(timedelta(seconds=2))
        await beginning

    assert tenure.lease is not None
    (told,) = [entry for entry in logs if entry["event"] == "standing_by"]
    assert "locked by another process" in told["reason"]
    await store.close()


async def test_a_lease_that_the_database_does_not_take_back_is_left_to_run_out(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    tenure = Tenure(store, clock)
    await begin_within_moments(tenure)
    (tmp_path / "hero.db").rename(tmp_path / "aside")

    with capture_logs() as logs:
        await tenure.end()

    assert tenure.lease is None
    assert [entry["event"] for entry in logs] == ["lease_not_given_back"]


# Who is dead?


def test_this_very_process_lives_and_a_later_one_of_its_pid_would_not_be_it() -> None:
    assert not is_dead_here(holder(os.getpid()))
    assert is_dead_here(holder(os.getpid(), start="another boot:17"))


def test_a_process_that_is_gone_is_dead(dead: str) -> None:
    assert is_dead_here(dead)


def test_a_zombie_that_nobody_waits_for_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = holder(process.pid)
    process.kill()
    try:
        block_until(lambda: is_dead_here(name))
    finally:
        process.communicate()


@pytest.mark.parametrize("name", ["", "x", "a|b|c", "a|b|c|d|e", f"{socket.gethostname()}|x|y|z"])
def test_of_what_hero_did_not_write_nobody_is_said_to_be_dead(name: str) -> None:
    assert not is_dead_here(name)


def test_a_process_of_another_container_of_the_same_name_cannot_be_judged() -> None:
    assert not is_dead_here(holder(2**22 - 1, "boot:1", f"{socket.gethostname()} pid:[1]"))
