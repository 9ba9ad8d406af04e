"""All rows of some steps against a real Finelog: what a trial compares."""

import asyncio
import base64
import io
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aiohttp import web
from pyarrow import ipc

from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Unknown
from bot.model.series import Figure, RunRows
from bot.settings import FinelogSettings
from bot.sources.finelog.source import FinelogSource
from bot.sources.finelog.window import FinelogRows
from tests.fakes import snapshots
from tests.fakes.clock import FakeClock
from tests.fakes.finelog import Finelog, Trainer, finelog_server
from tests.fakes.waiting import until

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
EARLY = NOW - timedelta(hours=3)


@pytest.fixture(scope="module")
def finelog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finelog]:
    with finelog_server(tmp_path_factory.mktemp("finelog")) as running:
        yield running


@pytest.fixture
async def source(finelog: Finelog) -> AsyncIterator[FinelogSource]:
    asked = source_at(finelog.url)
    yield asked
    await asked.close()


@pytest.fixture
def trainer(request: pytest.FixtureRequest) -> Trainer:
    """A run of the test's own."""
    return Trainer(run_id=f"hero-{abs(hash(request.node.nodeid)):x}", execution="iris:one")


def source_at(url: str | None, **fields: Any) -> FinelogSource:
    return FinelogSource(FinelogSettings.model_validate({"url": url} | fields), FakeClock(NOW))


def contract_of(trainer: Trainer, **fields: Any) -> Contract:
    return snapshots.contract(**({"run_id": trainer.run_id, "tracker": {}} | fields))


def train(finelog: Finelog, trainer: Trainer, steps: range, began: datetime = EARLY, *, shift: float = 0.0) -> None:
    """Write what Levanter writes, one step every ten seconds."""
    for n, step in enumerate(steps):
        at = began + timedelta(seconds=10 * n)
        figures = {"train_loss": 10 / (step + 1) + shift, "progress_time_seconds": at.timestamp()}
        if step % 10 == 0:
            figures |= {"throughput_mfu": 0.21, "moe_my_figure": float(step)}
        finelog.write(trainer, step, at, phase=1.0, **figures)


async def read(
    source: FinelogSource, of: Contract, first: int, last: int, *figures: str, page_rows: int = 1000, **limits: int
) -> RunRows:
    rows = FinelogRows(source, page_rows=page_rows, **limits)
    reading = await rows.rows(of, first_step=first, last_step=last, figures=figures)
    assert isinstance(reading, Known), reading
    return reading.value


def columns(figure: Figure) -> tuple[list[int], list[int]]:
    return figure.steps.tolist(), figure.executions.tolist()


async def test_every_figure_comes_under_heros_word_or_its_own_name_and_signs_of_life_are_none(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    train(finelog, trainer, range(45))
    finelog.flush()

    found = await read(source, contract_of(trainer), 5, 30)

    assert found.history.figures.keys() == {"loss", "mfu", "moe_my_figure"}
    assert found.history.figures["loss"].steps.tolist() == list(range(5, 31))
    assert found.history.figures["loss"].values.tolist() == [10 / (step + 1) for step in range(5, 31)]
    assert found.history.figures["moe_my_figure"].steps.tolist() == [10, 20, 30]
    assert (found.executions, found.began_at, found.newest_step) == (("iris:one",), (EARLY,), 44)
    assert not found.is_cut


async def test_a_figure_is_found_by_the_name_that_it_was_asked_for_by(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    train(finelog, trainer, range(11))
    finelog.write(trainer, 3, EARLY, train_cross_entropy_loss=7.0)
    finelog.flush()
    of = contract_of(trainer, metrics={"loss": "train/cross_entropy_loss"})

    found = await read(source, of, 0, 10, "loss", "train/loss", "moe/my_figure", "throughput_mfu", "never/logged")

    figures = found.history.figures
    assert figures.keys() == {"loss", "train/loss", "moe/my_figure", "throughput_mfu"}
    assert figures["loss"].values.tolist() == [7.0]
    assert figures["train/loss"].steps.size == 11
    assert figures["moe/my_figure"].values.tolist() == [0.0, 10.0]


async def test_attempts_that_logged_the_same_steps_are_told_apart_in_the_order_in_which_they_began(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    """Rows of the earlier attempt that arrive last stay the earlier attempt's."""
    first, second = trainer, Trainer(trainer.run_id, "iris:two")
    nameless = Trainer(trainer.run_id, None)
    train(finelog, second, range(5, 8), EARLY + timedelta(hours=1), shift=1)
    finelog.flush()
    train(finelog, first, range(3, 8), EARLY)
    train(finelog, nameless, range(6, 7), EARLY + timedelta(hours=2))
    finelog.flush()

    loss = (await read(source, contract_of(trainer), 4, 7)).history.figures["loss"]
    found = await read(source, contract_of(trainer), 4, 7)

    assert found.executions == ("iris:one", "iris:two", "")
    assert found.history.executions(4, 7) == (0, 1, 2)
    assert columns(loss.of(0)) == ([4, 5, 6, 7], [0] * 4)
    assert columns(loss.of(1)) == ([5, 6, 7], [1] * 3)
    assert loss.of(1).values.tolist() == [10 / (step + 1) + 1 for step in (5, 6, 7)]
    assert columns(loss.of(2)) == ([6], [2])


async def test_gaps_and_rows_that_are_there_twice_are_as_they_were_logged(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    for step, value in ((3, 1.0), (5, math.nan), (4, 2.0), (5, math.inf), (9, -math.inf), (4, 2.0)):
        finelog.write(trainer, step, EARLY, train_loss=value)
    finelog.write(trainer, None, EARLY, train_loss=8.0)
    finelog.flush()

    loss = (await read(source, contract_of(trainer), 0, 20)).history.figures["loss"]

    assert loss.steps.tolist() == [3, 5, 4, 5, 9, 4]
    np.testing.assert_array_equal(loss.values, [1.0, math.nan, 2.0, math.inf, -math.inf, 2.0])


async def test_rows_of_other_runs_and_other_processes_are_left_out(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    for writer in (trainer, Trainer(trainer.run_id, "iris:one", process=1), Trainer(f"{trainer.run_id}x", "iris:x")):
        train(finelog, writer, range(3))
    finelog.flush()

    found = await read(source, contract_of(trainer), 0, 9)

    assert found.executions == ("iris:one",)
    assert found.history.figures["loss"].steps.tolist() == [0, 1, 2]


async def test_a_run_that_logged_nothing_is_known_to_have_none(source: FinelogSource, trainer: Trainer) -> None:
    found = await read(source, contract_of(trainer), 0, 9)

    assert (found.history.figures, found.executions, found.newest_step) == ({}, (), None)


async def test_executions_without_a_row_of_these_steps_are_named_all_the_same(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    train(finelog, trainer, range(5))
    train(finelog, Trainer(trainer.run_id, "iris:two"), range(50, 53), EARLY + timedelta(hours=1))
    finelog.flush()

    found = await read(source, contract_of(trainer), 0, 9)

    assert found.executions == ("iris:one", "iris:two")
    assert found.history.executions(0) == (0,)
    assert found.newest_step == 52


async def test_two_hundred_thousand_rows_come_page_by_page_and_whole(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    steps, values = np.arange(200_000), np.random.default_rng(1).random(200_000)
    finelog.write_many(trainer, "train_loss", steps, values, EARLY)

    whole = await read(source, contract_of(trainer), 0, 10**6, page_rows=70_000)
    cut = await read(source, contract_of(trainer), 0, 10**6, "loss", page_rows=40_000, most_rows=50_000)

    np.testing.assert_array_equal(whole.history.figures["loss"].steps, steps)
    np.testing.assert_array_equal(whole.history.figures["loss"].values, values)
    assert (whole.is_cut, whole.newest_step) == (False, 199_999)
    assert (cut.is_cut, cut.newest_step) == (True, 199_999)
    assert cut.history.figures["loss"].steps.tolist() == list(range(80_000))


@pytest.mark.parametrize("prefix", ["", "levanter_"])
async def test_the_gauges_of_older_trainers_are_read_too(
    finelog: Finelog, source: FinelogSource, trainer: Trainer, prefix: str
) -> None:
    for step in range(7, 12):
        at = EARLY + timedelta(seconds=step)
        figures = {"train_loss": float(step), "phase": 1.0, "progress_time_seconds": at.timestamp(), "step": step}
        finelog.gauges(trainer, at, {f"{prefix}{name}": value for name, value in figures.items()})

    async def are_there() -> bool:
        return (await read(source, contract_of(trainer), 0, 99)).newest_step == 11

    await until(are_there)
    found = await read(source, contract_of(trainer), 8, 10, page_rows=2)

    assert found.history.figures.keys() == {"loss"}
    assert found.history.figures["loss"].steps.tolist() == [8, 9, 10]
    assert found.history.figures["loss"].values.tolist() == [8.0, 9.0, 10.0]
    assert found.executions == ("iris:one",)


COLUMNS = [{"name": name} for name in ("run_id", "name", "value", "step", "execution_uid")]
TABLE = {"namespace": "levanter.metrics", "schema": {"columns": [*COLUMNS, {"name": "timestamp_ms", "type": "INT64"}]}}
WHO: dict[str, list[Any]] = {
    "execution_uid": ["iris:one"],
    "began": [1],
    "first_seq": [1],
    "last_seq": [9],
    "newest_step": [3],
}
COUNT: dict[str, list[Any]] = {"rows": [2]}
PAGE: dict[str, list[Any]] = {
    "seq": [1, 2],
    "step": [1, 2],
    "name": ["train_loss"] * 2,
    "value": [1.0, 2.0],
    "execution_uid": ["iris:one"] * 2,
}


def arrow(columns: dict[str, list[Any]], count: int | None = None) -> dict[str, str]:
    table = pa.table(columns)
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    rows = table.num_rows if count is None else count
    return {"arrowIpc": base64.b64encode(sink.getvalue()).decode(), "rowCount": str(rows)}


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[list[Any]], Awaitable[str]]]:
    """Starts something at an address that answers one question after the other as told; None is never."""
    runners: list[web.AppRunner] = []

    async def start(answers: list[Any]) -> str:
        left = list(answers)

        async def handler(request: web.Request) -> web.Response:
            if request.path.endswith("ListNamespaces"):
                return web.json_response({"namespaces": [TABLE]})
            answer = left.pop(0)
            if answer is None:
                await asyncio.sleep(30)
            return web.Response(status=answer) if isinstance(answer, int) else web.json_response(answer)

        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


async def test_the_answers_that_the_next_test_spoils_are_good_ones(
    serve: Callable[[list[Any]], Awaitable[str]], trainer: Trainer
) -> None:
    asked = source_at(await serve([arrow(WHO), arrow(COUNT), arrow(PAGE)]))

    found = await read(asked, contract_of(trainer), 0, 9)
    await asked.close()

    assert found.history.figures["loss"].values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("answers", "gap", "says"),
    [
        ([None], Gap.TIMEOUT, "no answer in"),
        ([arrow(WHO), arrow(COUNT), None], Gap.TIMEOUT, "no answer in"),
        ([arrow(WHO), 503], Gap.UNREACHABLE, "HTTP 503"),
        ([arrow(WHO), arrow(COUNT), arrow(PAGE, count=5)], Gap.UNRECOGNISED, "tells of '5' rows and holds 2"),
        ([arrow(WHO), arrow({"rows": [3]}), arrow(PAGE), arrow(PAGE)], Gap.UNRECOGNISED, "out of order"),
        (
            [arrow(WHO), arrow({"rows": [3]}), arrow(PAGE), arrow({name: [] for name in PAGE})],
            Gap.UNRELIABLE,
            "there are 3 rows of these steps, and 2 of them come",
        ),
        ([arrow(WHO), arrow(COUNT), arrow(PAGE | {"seq": [2, 1]})], Gap.UNRECOGNISED, "out of order"),
        ([arrow(WHO), arrow(COUNT), arrow(PAGE | {"step": [1, None]})], Gap.UNRECOGNISED, "no number"),
        ([arrow(WHO), arrow(COUNT), arrow(PAGE | {"value": ["a", "b"]})], Gap.UNRECOGNISED, "not as known"),
        ([arrow(WHO), arrow(COUNT), arrow({"seq": [1, 2]})], Gap.UNRECOGNISED, "not as known"),
        ([arrow(WHO), arrow(COUNT), arrow(PAGE | {"execution_uid": ["new"] * 2})], Gap.UNRECOGNISED, "nobody told"),
        ([arrow(WHO), arrow({"n": [2]})], Gap.UNRECOGNISED, "how many rows"),
        ([arrow({"execution_uid": ["iris:one"]})], Gap.UNRECOGNISED, "who logged"),
        ([arrow(WHO | {"newest_step": [-3]})], Gap.UNRECOGNISED, "newest step"),
        ([{"rows": []}], Gap.UNRECOGNISED, "no arrowIpc"),
    ],
)
async def test_an_answer_that_is_none_or_is_cut_is_unknown_and_never_fewer_rows(
    serve: Callable[[list[Any]], Awaitable[str]], trainer: Trainer, answers: list[Any], gap: Gap, says: str
) -> None:
    asked = source_at(await serve(answers), deadline=timedelta(seconds=1))

    reading = await FinelogRows(asked).rows(contract_of(trainer), first_step=0, last_step=9, figures=())
    await asked.close()

    assert isinstance(reading, Unknown), reading
    assert (reading.reason, says in reading.detail) == (gap, True), reading.detail


async def test_without_an_address_it_is_not_configured(trainer: Trainer) -> None:
    reading = await FinelogRows(source_at(None)).rows(contract_of(trainer), first_step=0, last_step=9, figures=())

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.NOT_CONFIGURED
