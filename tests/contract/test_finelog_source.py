"""The Finelog source against a real Finelog: an embedded server, and the one of the local Iris cluster."""

import asyncio
import math
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from bot.clock import SystemClock
from bot.errors import UnrecognisedError
from bot.model.contract import Contract
from bot.model.job import Job
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogTail, Metrics
from bot.model.telemetry import Phase, Telemetry
from bot.model.value import JobId
from bot.model.verdict import Fail
from bot.settings import FinelogSettings, IrisSettings, Settings
from bot.sources.finelog.rpc import FinelogRpc
from bot.sources.finelog.source import FinelogMetrics, FinelogSource
from bot.sources.iris.source import IrisOrchestrator
from checks.check import judge_all
from checks.numerics import NONFINITE
from checks.telemetry import GONE
from tests.fakes import snapshots
from tests.fakes.clock import FakeClock
from tests.fakes.finelog import Finelog, Trainer, finelog_server
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.snapshots import attempt, job, task, unknown
from tests.fakes.waiting import until

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
EARLY = NOW - timedelta(hours=3)
NO_LOG: Reading[LogTail] = Known(value=LogTail(lines=(), is_cut=False), at=NOW)


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
    return Trainer(run_id=f"hero-{abs(hash(request.node.nodeid)):x}")


def source_at(url: str | None, **fields: Any) -> FinelogSource:
    return FinelogSource(FinelogSettings.model_validate({"url": url} | fields), FakeClock(NOW))


def contract_of(trainer: Trainer, **fields: Any) -> Contract:
    return snapshots.contract(**({"run_id": trainer.run_id, "tracker": {}} | fields))


def train(finelog: Finelog, trainer: Trainer, steps: range, began: datetime = EARLY) -> None:
    """Write what Levanter writes, one step every ten seconds."""
    for n, step in enumerate(steps):
        at = began + timedelta(seconds=10 * n)
        figures = {"train_loss": 10 / (step + 1), "progress_time_seconds": at.timestamp()}
        if step % 10 == 0:
            figures |= {"grad_norm_total": 0.5, "throughput_tokens_per_second": 2e6, "throughput_mfu": 0.21}
        finelog.write(trainer, step, at, phase=1.0, **figures)


def shown(*attempts: str) -> Reading[tuple[Job, ...]]:
    """A coordinator, and below it a trainer with these attempts."""
    tried = tuple(attempt(n, uid=uid) for n, uid in enumerate(attempts))
    child = job(job_id=f"{snapshots.JOB}/train", parent=snapshots.JOB, tasks=(task(attempts=tried),))
    return Known(value=(job(), child), at=NOW)


async def rows(source: FinelogSource, of: Contract, cursor: str = "", **given: Any) -> Metrics:
    asked: dict[str, Any] = {"since": None, "cursor": cursor, "log": NO_LOG, "jobs": unknown()}
    reading = await FinelogMetrics(source).metrics(of, **(asked | given))
    assert isinstance(reading, Known), reading
    return reading.value


async def signs(source: FinelogSource, of: Contract, jobs: Reading[tuple[Job, ...]] | None = None) -> Telemetry:
    reading = await source.telemetry(of, unknown() if jobs is None else jobs)
    assert isinstance(reading, Known), reading
    return reading.value


def steps(metrics: Metrics) -> list[int]:
    return [row.step for row in metrics.rows]


async def test_figures_become_one_row_a_step_under_heros_words(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    train(finelog, trainer, range(21))
    finelog.flush()

    found = await rows(source, contract_of(trainer))

    assert steps(found) == list(range(21))
    assert found.rows[3].values == {"loss": 2.5}
    assert found.rows[10].values == {
        "loss": pytest.approx(10 / 11),
        "grad_norm": 0.5,
        "tokens_per_second": 2e6,
        "mfu": 0.21,
    }
    assert found.rows[10].at == EARLY + timedelta(seconds=100)
    assert found.unreadable == 0


async def test_what_the_contract_calls_a_figure_is_looked_for_as_finelog_spells_it(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    finelog.write(trainer, 5, EARLY, train_cross_entropy_loss=3.0, train_loss=4.0)
    finelog.flush()

    found = await rows(source, contract_of(trainer, metrics={"loss": "train/cross_entropy.loss"}))

    assert [row.values for row in found.rows] == [{"loss": 3.0}]


async def test_nan_and_infinity_arrive_as_what_they_are_and_reach_the_checks(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    train(finelog, trainer, range(5))
    finelog.write(trainer, 5, EARLY + timedelta(minutes=1), train_loss=math.nan, grad_norm_total=math.inf)
    finelog.flush()

    found = await rows(source, contract_of(trainer))
    told = await source.telemetry(contract_of(trainer), shown("abc"))
    seen = snapshots.snapshot(NOW, metrics=found).model_copy(update={"telemetry": told, "jobs": shown("abc")})
    judged = judge_all((NONFINITE, GONE), seen, contract_of(trainer), {})

    assert math.isnan(found.rows[-1].values["loss"])
    assert found.rows[-1].values["grad_norm"] == math.inf
    summaries = {j.check: j.verdict.finding.summary for j in judged.judgements if isinstance(j.verdict, Fail)}
    assert "step 5" in summaries[NONFINITE.id]
    assert "not heard for 2 h 59 min" in summaries[GONE.id]


async def test_other_processes_and_other_runs_are_left_out_whatever_they_are_called(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    odd = Trainer(run_id="o'hara-x")
    for writer in (Trainer(trainer.run_id, process=1), Trainer(f"{trainer.run_id}x"), odd):
        train(finelog, writer, range(3))
    finelog.flush()

    assert steps(await rows(source, contract_of(trainer))) == []
    assert await signs(source, contract_of(trainer)) == Telemetry()
    assert steps(await rows(source, contract_of(trainer, tracker={"id": odd.run_id}))) == [0, 1, 2]


async def test_each_look_brings_the_new_rows_alone(finelog: Finelog, source: FinelogSource, trainer: Trainer) -> None:
    train(finelog, trainer, range(5))
    finelog.flush()
    first = await rows(source, contract_of(trainer))

    none = await rows(source, contract_of(trainer), first.cursor)
    train(finelog, trainer, range(5, 8), EARLY + timedelta(minutes=5))
    finelog.flush()
    second = await rows(source, contract_of(trainer), none.cursor)

    assert (steps(first), steps(none), steps(second)) == ([0, 1, 2, 3, 4], [], [5, 6, 7])


async def test_a_step_that_is_still_being_written_is_handed_out_whole_later(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    finelog.write(trainer, 9, NOW - timedelta(seconds=30), train_loss=2.0)
    finelog.write(trainer, 10, NOW - timedelta(seconds=1), train_loss=1.9)
    finelog.flush()
    early = await rows(source, contract_of(trainer))

    finelog.write(trainer, 10, NOW - timedelta(seconds=1), grad_norm_total=0.4)
    finelog.write(trainer, 11, NOW - timedelta(seconds=0.5), train_loss=1.8)
    finelog.flush()
    later = await rows(source, contract_of(trainer), early.cursor)

    assert steps(early) == [9]
    assert [(row.step, row.values) for row in later.rows] == [(10, {"loss": 1.9, "grad_norm": 0.4})]


async def test_after_a_restore_the_new_executions_rows_follow_and_the_old_ones_are_no_progress(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    """Field reports R22 and R37: steps are replayed, and a predecessor that still writes would make them jump."""
    before, after = Trainer(trainer.run_id, "iris:one"), Trainer(trainer.run_id, "iris:two")
    train(finelog, before, range(100, 111))
    finelog.flush()
    first = await rows(source, contract_of(trainer), jobs=shown("one"))

    train(finelog, before, range(111, 113), EARLY + timedelta(minutes=2))
    train(finelog, after, range(105, 108), EARLY + timedelta(minutes=30))
    train(finelog, before, range(113, 115), EARLY + timedelta(minutes=31))
    finelog.flush()
    second = await rows(source, contract_of(trainer), first.cursor, jobs=shown("one", "two"))
    train(finelog, before, range(115, 117), EARLY + timedelta(minutes=32))
    train(finelog, after, range(108, 110), EARLY + timedelta(minutes=33))
    finelog.flush()
    third = await rows(source, contract_of(trainer), second.cursor, jobs=shown("one", "two"))

    assert steps(first) == list(range(100, 111))
    assert steps(second) == [111, 112, 105, 106, 107]
    assert steps(third) == [108, 109]


async def test_two_attempts_whose_clocks_overlap_are_told_apart_by_who_wrote(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    """Rows of the old attempt that arrive behind the new one's first, with later clocks, do not take over."""
    old, new = Trainer(trainer.run_id, "iris:one"), Trainer(trainer.run_id, "iris:two")
    train(finelog, new, range(105, 108), EARLY + timedelta(minutes=10))
    finelog.flush()
    first = await rows(source, contract_of(trainer), jobs=shown("one", "two"))

    train(finelog, old, range(111, 114), EARLY + timedelta(minutes=12))
    finelog.flush()
    late = await rows(source, contract_of(trainer), first.cursor, jobs=shown("one", "two"))
    train(finelog, new, range(108, 110), EARLY + timedelta(minutes=11))
    train(finelog, old, range(114, 116), EARLY + timedelta(minutes=14))
    finelog.flush()
    second = await rows(source, contract_of(trainer), late.cursor, jobs=shown("one", "two"))
    anew = await rows(source, contract_of(trainer), jobs=shown("one", "two"))

    assert steps(first) == [105, 106, 107]
    assert steps(late) == []
    assert steps(second) == [108, 109]
    assert steps(anew) == [105, 106, 107, 108, 109]


async def test_a_namesakes_rows_are_told_by_who_wrote_them_and_without_that_by_when(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    namesake, own = Trainer(trainer.run_id, "iris:gone"), Trainer(trainer.run_id, "iris:own")
    train(finelog, namesake, range(3))
    train(finelog, own, range(10, 13), NOW - timedelta(minutes=10))
    finelog.flush()
    submitted = NOW - timedelta(minutes=15)

    by_name = await rows(source, contract_of(trainer), jobs=shown("own"))
    by_time = await rows(source, contract_of(trainer), since=submitted)
    by_time_again = await rows(source, contract_of(trainer), since=submitted, jobs=unknown())

    assert steps(by_name) == steps(by_time) == steps(by_time_again) == [10, 11, 12]


async def test_a_server_that_lost_its_rows_is_read_from_its_new_beginning(
    finelog: Finelog, trainer: Trainer, tmp_path: Any
) -> None:
    train(finelog, trainer, range(50))
    finelog.flush()
    before = source_at(finelog.url)
    first = await rows(before, contract_of(trainer))
    await before.close()

    with finelog_server(tmp_path) as anew:
        train(anew, trainer, range(50, 52), EARLY + timedelta(minutes=30))
        anew.flush()
        after = source_at(anew.url)
        second = await rows(after, contract_of(trainer), first.cursor)
        await after.close()

    assert steps(second) == [50, 51]


async def test_signs_of_life_are_the_newest_of_whoever_runs_now(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    old, new = Trainer(trainer.run_id, "iris:old"), Trainer(trainer.run_id, "iris:new")
    train(finelog, old, range(30))
    finelog.write(new, None, EARLY + timedelta(hours=1), phase=0.0, progress_time_seconds=0.0)
    train(finelog, old, range(30, 60), EARLY + timedelta(hours=2))
    finelog.flush()

    starting = await signs(source, contract_of(trainer), shown("old", "new"))
    predecessor = await signs(source, contract_of(trainer), shown("other"))
    unjudged = await signs(source, contract_of(trainer), unknown())

    assert (starting.phase, starting.execution_uid, starting.is_of_current_execution) == (
        Phase.INITIALIZING,
        "iris:new",
        True,
    )
    assert (starting.last_step, starting.progress_at) == (None, None)
    assert predecessor.is_of_current_execution is False
    assert (predecessor.phase, predecessor.last_step, predecessor.job_id) == (Phase.TRAINING, 59, old.job_id)
    assert predecessor.last_row_at == predecessor.phase_at == EARLY + timedelta(hours=2, seconds=290)
    assert predecessor.progress_at == predecessor.last_row_at
    assert unjudged.is_of_current_execution is None


async def test_a_finished_trainer_says_so(finelog: Finelog, source: FinelogSource, trainer: Trainer) -> None:
    train(finelog, trainer, range(3))
    finelog.write(trainer, 2, EARLY + timedelta(minutes=1), phase=2.0)
    finelog.flush()

    assert (await signs(source, contract_of(trainer))).phase is Phase.FINISHED


async def test_a_phase_from_the_future_is_unrecognised(
    finelog: Finelog, source: FinelogSource, trainer: Trainer
) -> None:
    finelog.write(trainer, 2, EARLY, phase=7.0)
    finelog.flush()

    reading = await source.telemetry(contract_of(trainer), unknown())

    assert isinstance(reading, Unknown)
    assert (reading.reason, "phase is 7.0" in reading.detail) == (Gap.UNRECOGNISED, True)


@pytest.mark.parametrize("prefix", ["", "levanter_"])
async def test_the_gauges_of_older_trainers_are_read_too(
    finelog: Finelog, source: FinelogSource, trainer: Trainer, prefix: str
) -> None:
    for step in (7, 8):
        at = EARLY + timedelta(seconds=step)
        figures = {"train_loss": float(step), "phase": 1.0, "progress_time_seconds": at.timestamp(), "step": step}
        finelog.gauges(trainer, at, {f"{prefix}{name}": value for name, value in figures.items()})
        finelog.gauges(trainer, at, {"step": 999.0, "phase": 2.0}, service="node_agent")

    async def are_there() -> bool:
        return len((await rows(source, contract_of(trainer))).rows) == 2

    await until(are_there)
    found = await rows(source, contract_of(trainer))
    alive = await signs(source, contract_of(trainer), shown("abc"))

    assert [(row.step, row.values) for row in found.rows] == [(7, {"loss": 7.0}), (8, {"loss": 8.0})]
    assert steps(await rows(source, contract_of(trainer), found.cursor)) == []
    assert (alive.phase, alive.last_step, alive.is_of_current_execution) == (Phase.TRAINING, 8, True)


async def test_an_unknown_table_or_column_is_never_an_empty_answer(finelog: Finelog) -> None:
    rpc = FinelogRpc(finelog.url, token=None, deadline=timedelta(seconds=10), at_once=2)

    with pytest.raises(UnrecognisedError, match=r"'datafusion\.public\.nosuch' not found"):
        await rpc.rows("SELECT * FROM nosuch")
    with pytest.raises(UnrecognisedError, match="No field named bogus"):
        await rpc.rows('SELECT bogus FROM "levanter.metrics"')
    await rpc.close()


async def test_without_pyarrow_or_an_address_it_is_not_configured_and_says_the_fix(
    finelog: Finelog, trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare, lacking = source_at(None), source_at(finelog.url)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    nowhere = await bare.telemetry(contract_of(trainer), unknown())
    undecoded = await lacking.metrics(contract_of(trainer), since=None, cursor="", jobs=unknown())
    await lacking.close()

    assert isinstance(nowhere, Unknown)
    assert isinstance(undecoded, Unknown)
    assert nowhere.reason is undecoded.reason is Gap.NOT_CONFIGURED
    assert "set [finelog] url" in nowhere.detail
    assert "pip install hero-bot[finelog]" in undecoded.detail


COLUMNS = [{"name": name} for name in ("run_id", "name", "value", "step")]
TABLE = {"namespace": "levanter.metrics", "schema": {"columns": [*COLUMNS, {"name": "timestamp_ms", "type": "INT64"}]}}
WHOLE: dict[str, Any] = {"ListNamespaces": {"namespaces": [TABLE]}}


@pytest.mark.parametrize(
    ("answers", "gap", "says"),
    [
        ({"ListNamespaces": {"namespaces": []}}, Gap.UNRECOGNISED, "no table for training metrics"),
        ({"ListNamespaces": {"namespaces": [{"namespace": "log"}]}}, Gap.UNRECOGNISED, "there are: log"),
        ({"ListNamespaces": {"jobs": []}}, Gap.UNRECOGNISED, "no namespaces"),
        ({"ListNamespaces": {"namespaces": [{"namespace": "levanter.metrics"}]}}, Gap.UNRECOGNISED, "columns"),
        ({"ListNamespaces": "<html>Welcome"}, Gap.UNRECOGNISED, "no JSON"),
        ({"ListNamespaces": 302}, Gap.REFUSED, "set [finelog] token"),
        ({"ListNamespaces": 401}, Gap.REFUSED, "set [finelog] token"),
        ({"ListNamespaces": 404}, Gap.REFUSED, "set [finelog] url"),
        ({"ListNamespaces": 503}, Gap.UNREACHABLE, "HTTP 503"),
        ({"ListNamespaces": None}, Gap.TIMEOUT, "no answer in"),
        (WHOLE | {"Query": {"arrowIpc": "AAAA", "rowCount": "0"}}, Gap.UNRECOGNISED, "no Arrow stream"),
        (WHOLE | {"Query": {"arrowIpc": "%", "rowCount": "0"}}, Gap.UNRECOGNISED, "no Arrow stream"),
        (WHOLE | {"Query": {"rows": []}}, Gap.UNRECOGNISED, "no arrowIpc"),
    ],
)
async def test_an_answer_that_is_none_is_unknown_and_never_no_rows(
    serve: Callable[[dict[str, Any]], Awaitable[str]], answers: dict[str, Any], gap: Gap, says: str, trainer: Trainer
) -> None:
    asked = source_at(await serve(answers), deadline=timedelta(seconds=1), token="t0ken")

    readings = (
        await asked.telemetry(contract_of(trainer), unknown()),
        await asked.metrics(contract_of(trainer), since=None, cursor="", jobs=unknown()),
    )
    await asked.close()

    for reading in readings:
        assert isinstance(reading, Unknown), reading
        assert reading.reason is gap
        assert says in reading.detail
        assert "t0ken" not in reading.detail


async def test_a_server_that_is_not_there_is_unreachable(trainer: Trainer, unused_tcp_port: int) -> None:
    asked = source_at(f"http://127.0.0.1:{unused_tcp_port}")

    reading = await asked.telemetry(contract_of(trainer), unknown())
    await asked.close()

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNREACHABLE


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[dict[str, Any]], Awaitable[str]]]:
    """Starts something at an address that answers each method as told: a status, a text, JSON, or (None) never."""
    runners: list[web.AppRunner] = []

    async def start(answers: dict[str, Any]) -> str:
        async def handler(request: web.Request) -> web.Response:
            match answers[request.path.rsplit("/", 1)[-1]]:
                case None:
                    await asyncio.sleep(30)
                    return web.Response()
                case int() as status:
                    return web.Response(status=status, headers={"Location": "https://accounts.example.org"})
                case str() as body:
                    return web.Response(text=body)
                case answer:
                    return web.json_response(answer)

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


TRAINER = """
    import dataclasses, pathlib, sys, time
    from typing import ClassVar
    from finelog.client import LogClient
    from iris.runtime.telemetry import resolve

    @dataclasses.dataclass
    class Row:
        key_column: ClassVar[str] = "timestamp_ms"
        timestamp_ms: int
        run_id: str
        execution_uid: str
        job_id: str
        process_index: int
        step: int
        name: str
        kind: str
        value: float

    run_id, mark = sys.argv[1], pathlib.Path("fl_trainer.mark")
    is_retry = mark.exists()
    mark.touch()
    runtime = resolve(run_id=run_id, process_index=0)
    who = runtime.attributes
    client = LogClient.connect(runtime.endpoint, resolver=runtime.resolver)
    table = client.get_table(f"levanter.metrics.{run_id}", Row)
    for step in range(20, 25) if is_retry else range(20, 30):
        for name, value in (("train_loss", 100 / step), ("progress_time_seconds", time.time()), ("phase", 1.0)):
            table.write([Row(time.time_ns() // 10**6, run_id, who["execution_uid"], who["job_id"], 0, step, name,
                             "scalar", value)])
    assert table.flush(timeout=20) == "succeeded"
    client.close()
    print("flushed", flush=True)
    if not is_retry:
        sys.exit(3)
    time.sleep(300)
"""


async def test_a_trainer_inside_a_real_job_is_told_from_its_own_first_attempt(iris_cluster: IrisCluster) -> None:
    (iris_cluster.work / "fl_trainer.py").write_text(textwrap.dedent(TRAINER))
    trainer = Trainer(run_id="fl-hero")
    job_id = iris_cluster.launch(
        # Not sys.executable: the cluster rewrites arguments below /tmp, and takes its own interpreter for this word.
        "/me/fl-hero",
        "python",
        "fl_trainer.py",
        trainer.run_id,
        maxRetriesFailure=2,
        maxTaskFailures=2,
    )
    settings = Settings(iris=IrisSettings(controller_url=iris_cluster.url))
    orchestrator = IrisOrchestrator(settings.iris, SystemClock())
    asked = FinelogSource(settings.finelog_in_use, SystemClock())
    of = contract_of(trainer, orchestrator={"kind": "iris", "job_id": job_id})

    async def retrained() -> bool:
        jobs = await orchestrator.jobs(of, JobId(job_id))
        alive = await signs(asked, of, jobs)
        return alive.is_of_current_execution is True and alive.last_step == 24

    try:
        await until(retrained, timeout_s=90)
        jobs = await orchestrator.jobs(of, JobId(job_id))
        alive = await signs(asked, of, jobs)
        found = await rows(asked, of, jobs=jobs)
    finally:
        iris_cluster.rpc("TerminateJob", {"jobId": job_id})
        await orchestrator.close()
        await asked.close()

    assert isinstance(jobs, Known)
    (listed,) = jobs.value
    assert isinstance(listed.tasks, Known)
    attempts = listed.tasks.value[0].attempts
    assert len({each.uid for each in attempts}) == len(attempts) >= 2
    assert alive.execution_uid == f"iris:{attempts[-1].uid}"
    assert (alive.phase, alive.job_id) == (Phase.TRAINING, job_id)
    assert steps(found)[:10] == list(range(20, 30))
    assert steps(found)[10:] in ([20, 21, 22, 23], [20, 21, 22, 23, 24]), "the newest step may not have settled"
