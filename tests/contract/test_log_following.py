"""The log of a job is followed through a real Finelog: what the source relies on, and how much travels."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from bot.clock import SystemClock
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail
from bot.model.value import JobId
from bot.settings import IrisSettings
from bot.sources.iris.source import IrisOrchestrator
from tests.fakes.finelog import finelog_server
from tests.fakes.snapshots import contract
from tests.fakes.waiting import until

JOB = JobId("/me/boom")
SUBMITTED = datetime(2026, 11, 29, 3, tzinfo=UTC)
LINES = 3000


class Way:
    """Stands where the controller's proxy does: passes on what is asked, counts, and loses what it is told to."""

    def __init__(self) -> None:
        self.behind = ""
        self.lose: web.Response | None = None
        self.bytes_sent = 0
        self._client = httpx.AsyncClient(trust_env=False, timeout=30)
        self._ticks = itertools.count()

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix("/proxy/system.log-server")
        found = await self._client.post(f"{self.behind}{path}", content=await request.read(), headers=JSON)
        if self.lose is not None:
            lost, self.lose = self.lose, None
            return lost
        self.bytes_sent += len(found.content)
        return web.Response(body=found.content, status=found.status_code, content_type="application/json")

    async def write(self, *texts: str, key: str = f"{JOB}/0:0") -> None:
        """Deliver lines as a worker does; they can be read as soon as this returns."""
        entries = [
            {"timestamp": {"epochMs": str(int(SUBMITTED.timestamp() * 1000) + next(self._ticks))}, "data": text}
            for text in texts
        ]
        told = await self._client.post(
            f"{self.behind}/finelog.logging.LogService/PushLogs", json={"key": key, "entries": entries}
        )
        assert told.status_code == httpx.codes.OK, told.text

    async def close(self) -> None:
        await self._client.aclose()


JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def way(tmp_path: Path) -> AsyncIterator[Way]:
    with finelog_server(tmp_path / "finelog") as running:
        through = Way()
        through.behind = running.url
        yield through
        await through.close()


@pytest.fixture
async def iris(way: Way) -> AsyncIterator[IrisOrchestrator]:
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{rest:.*}", way.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    asked = IrisOrchestrator(
        IrisSettings(controller_url=url, deadline=timedelta(seconds=30), log_lines=LINES), SystemClock()
    )
    yield asked
    await asked.close()
    await runner.cleanup()


async def ask(iris: IrisOrchestrator, since: datetime = SUBMITTED) -> Reading[LogTail]:
    return await iris.log(contract(run_id="boom"), JOB, since)


async def texts(iris: IrisOrchestrator) -> list[str]:
    reading = await ask(iris)
    assert isinstance(reading, Known), reading
    return [line.text for line in reading.value.lines]


async def test_between_two_looks_only_the_new_lines_travel(way: Way, iris: IrisOrchestrator) -> None:
    """Some 30 lines a look, as a trainer prints in a cadence of 15 minutes, at the end of a long log."""
    lines = [f"I1129 03:00:00 train.py:77 step={n} loss=2.5 tokens_per_second=2.1e6" for n in range(LINES + 60)]
    await way.write(*lines[:-60])
    await ask(iris)
    first, way.bytes_sent = way.bytes_sent, 0

    await way.write(*lines[-60:-30])
    await way.write(*(["a neighbour's"] * 30), key="/me/boom2/0:0")
    await ask(iris)
    second, way.bytes_sent = way.bytes_sent, 0
    await way.write(*lines[-30:])
    found = await texts(iris)
    third = way.bytes_sent

    assert found == lines[-LINES:]
    assert first > 500_000
    assert max(second, third) < 8_000
    assert second > 30 * len(lines[0])


@pytest.mark.parametrize(
    ("lost", "gap"),
    [
        (web.Response(status=502), Gap.UNREACHABLE),
        (web.Response(text='{"entries": [{"data": '), Gap.UNRECOGNISED),
        (web.json_response({"entries": [{"data": "no time"}], "cursor": "99"}), Gap.UNRECOGNISED),
    ],
)
async def test_what_a_lost_answer_held_is_in_the_next_one(
    way: Way, iris: IrisOrchestrator, lost: web.Response, gap: Gap
) -> None:
    await way.write("one", "two")
    await ask(iris)

    await way.write("three", "three")
    way.lose = lost
    reading = await ask(iris)
    await way.write("four")

    assert isinstance(reading, Unknown)
    assert reading.reason is gap
    assert await texts(iris) == ["one", "two", "three", "three", "four"]


async def test_a_server_whose_numbers_went_back_is_read_whole(way: Way, iris: IrisOrchestrator, tmp_path: Path) -> None:
    await way.write(*(f"old {n}" for n in range(9)))
    await ask(iris)

    with finelog_server(tmp_path / "anew") as anew:
        way.behind = anew.url
        await way.write("new 0")
        behind_the_old_end = await texts(iris)
        await way.write(*(f"new {n}" for n in range(1, 20)))
        past_it = await texts(iris)

    assert behind_the_old_end == ["new 0"]
    assert past_it == [f"new {n}" for n in range(20)]


async def test_while_many_write_nothing_is_skipped_and_nothing_comes_twice(way: Way, iris: IrisOrchestrator) -> None:
    tasks, batches = 4, 5
    expected = sorted(f"task {task} line {n}" for task in range(tasks) for n in range(batches))

    async def write(task: int) -> None:
        for n in range(batches):
            await way.write(f"task {task} line {n}", key=f"{JOB}/{task}:0")

    async with asyncio.TaskGroup() as group:
        writers = [group.create_task(write(task)) for task in range(tasks)]
        while not all(writer.done() for writer in writers):
            await ask(iris)

    async def all_there() -> bool:
        return len(await texts(iris)) >= len(expected)

    await until(all_there, timeout_s=30)
    assert sorted(await texts(iris)) == expected


async def test_a_new_instance_under_the_same_id_is_not_told_the_old_ones_lines(
    way: Way, iris: IrisOrchestrator
) -> None:
    await way.write("old", "old")
    await ask(iris)

    resubmitted: Any = await ask(iris, SUBMITTED + timedelta(milliseconds=2))
    await way.write("new")
    after: Any = await ask(iris, SUBMITTED + timedelta(milliseconds=2))

    assert resubmitted.value.lines == ()
    assert [line.text for line in after.value.lines] == ["new"]
