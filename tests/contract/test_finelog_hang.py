"""What is on record of a hang, against a real Finelog, and of a real job on the local Iris cluster that hangs."""

import asyncio
import sys
import textwrap
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from bot.actions.ports import Checklist
from bot.clock import SystemClock
from bot.model.contract import Contract
from bot.model.event import RunChecked
from bot.model.hang import Counted, HangEvidence, OddRank
from bot.model.job import Job
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Decision, Record
from bot.model.run import Run
from bot.model.snapshot import Metrics
from bot.model.value import JobId, RunId
from bot.redaction import Redactor
from bot.settings import FinelogSettings, IrisSettings, Settings
from bot.sources.finelog.hang import FinelogHang
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.snapshots import SnapshotReader
from bot.store.store import Store
from bot.watcher import Watcher
from checks.progress import STARTUP, STARTUP_ID
from handlers.news import changes_after
from tests.fakes import snapshots
from tests.fakes.clock import FakeClock
from tests.fakes.finelog import Finelog, finelog_server
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.snapshots import attempt, job, task
from tests.fakes.waiting import until

pytest.importorskip("iris", reason="Iris has wheels for Python 3.12 and 3.13 only")

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TRAIN = f"{snapshots.JOB}/train"
DUMP = b'Process 1: python train.py --key hunter2\n\nThread 1 (idle): "MainThread"\n    step (moe/train.py:%d)\n\xff\n'


@pytest.fixture(scope="module")
def finelog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finelog]:
    with finelog_server(tmp_path_factory.mktemp("finelog")) as running:
        yield running


@pytest.fixture
async def source(finelog: Finelog) -> AsyncIterator[FinelogHang]:
    asked = source_at(finelog.url)
    yield asked
    await asked.close()


def source_at(url: str, **fields: Any) -> FinelogHang:
    return FinelogHang(FinelogSettings.model_validate({"url": url} | fields), FakeClock(NOW))


def gang(name: str, *, retried: bool = False) -> Reading[tuple[Job, ...]]:
    """Return a coordinator and four trainers below it; the trainers' attempts are of this test alone."""
    before = (attempt(0, uid=f"{name}-old", exit_code=124),) if retried else ()
    last = attempt(len(before), uid=name, started_at=NOW - timedelta(hours=2))
    tasks = tuple(task(n, job_id=f"{TRAIN}-{name}", attempts=(*before, last)) for n in range(4))
    child = job(job_id=f"{TRAIN}-{name}", parent=snapshots.JOB, tasks=tasks)
    return Known(value=(job(), child), at=NOW)


def write_use(finelog: Finelog, name: str, cores: Mapping[int, int], *, number: int = 0, minutes_ago: int = 0) -> None:
    """Write what each task used, once a minute for five minutes, as the node agent of Iris does."""
    from iris.cluster.stats.tables import IrisTaskStat  # noqa: PLC0415 - the real schema, on a Python that has it

    table = finelog.client.get_table("iris.task", IrisTaskStat)
    for minute in range(5):
        ts = (NOW - timedelta(minutes=minute + minutes_ago)).replace(tzinfo=None)
        for index, millicores in cores.items():
            table.write(
                [
                    IrisTaskStat(
                        task_id=f"{TRAIN}-{name}/{index}",
                        attempt_id=number,
                        worker_id="k8s/node",
                        ts=ts,
                        cpu_millicores=millicores + minute,
                        memory_mb=2048,
                        disk_mb=0,
                        memory_peak_mb=4096,
                        accelerator_util_pct=100.0 if index else None,
                    )
                ]
            )
    assert table.flush(timeout=20) == "succeeded"


def write_dump(finelog: Finelog, name: str, index: int, line: int, *, minutes_ago: float, **fields: Any) -> None:
    from iris.cluster.stats.tables import IrisProfile  # noqa: PLC0415 - the real schema, on a Python that has it

    table = finelog.client.get_table("iris.profile", IrisProfile)
    row: dict[str, Any] = {
        "source": f"{TRAIN}-{name}/{index}",
        "attempt_id": 0,
        "vm_id": "k8s/node",
        "captured_at": (NOW - timedelta(minutes=minutes_ago)).replace(tzinfo=None),
        "duration_seconds": 0,
        "type": "thread",
        "format": "raw",
        "trigger": "periodic",
        "locals_dump": False,
        "profile_data": DUMP % line + b"x" * 100_000,
    }
    table.write([IrisProfile(**row | fields)])
    assert table.flush(timeout=20) == "succeeded"


def write_ras(finelog: Finelog, run_id: str, execution: str, records: list[tuple[str, float, dict[str, str]]]) -> None:
    """Write one answer of NCCL's RAS as Levanter's process 0 does."""
    batch = str(uuid.uuid4())
    millis = int((NOW - timedelta(minutes=1)).timestamp() * 1000)
    body = {
        "batch_id": batch,
        "version": 1,
        "resource": {
            "service": "levanter",
            "attributes": {"run_id": run_id, "execution_uid": f"iris:{execution}", "job_id": TRAIN},
        },
        "records": [
            {"kind": "gauge", "name": name, "value": value, "unit": "", "attributes": says, "timestamp_ms": millis}
            for name, value, says in records
        ],
    }
    answer = httpx.post(
        f"{finelog.url}/v1/telemetry", json=body, headers={"Idempotency-Key": batch}, trust_env=False, timeout=10
    )
    assert answer.status_code == httpx.codes.OK, answer.text


async def read(source: FinelogHang, of: Contract, jobs: Reading[tuple[Job, ...]]) -> HangEvidence:
    found = await source.hang(of, jobs)
    assert isinstance(found, Known), found
    return found.value


async def test_use_of_the_running_attempts_over_the_last_minutes_is_read(finelog: Finelog, source: FinelogHang) -> None:
    write_use(finelog, "use", {0: 7900, 1: 7900, 2: 3, 3: 7900})
    write_use(finelog, "use", {0: 100}, minutes_ago=20)
    write_use(finelog, "use", {1: 100}, number=7)
    write_use(finelog, "user", {0: 100})

    found = (await read(source, snapshots.contract(), gang("use"))).use

    assert isinstance(found, Known), found
    assert [(each.task_id, each.cores, each.samples) for each in found.value] == [
        (f"{TRAIN}-use/0", 7.902, 5),
        (f"{TRAIN}-use/1", 7.902, 5),
        (f"{TRAIN}-use/2", 0.005, 5),
        (f"{TRAIN}-use/3", 7.902, 5),
    ]
    assert [each.accelerator_fraction for each in found.value] == [None, 1.0, 1.0, 1.0]
    assert {(each.memory_bytes, each.last_at) for each in found.value} == {(2 * 2**30, NOW)}


async def test_the_newest_dump_of_each_task_is_read_bounded_and_without_what_may_be_secret(
    finelog: Finelog, source: FinelogHang
) -> None:
    write_dump(finelog, "dump", 0, 1, minutes_ago=15)
    write_dump(finelog, "dump", 0, 585, minutes_ago=5)
    write_dump(finelog, "dump", 0, 9, minutes_ago=1, type="cpu")
    write_dump(finelog, "dump", 1, 9, minutes_ago=1, locals_dump=True, trigger="on_demand")
    write_dump(finelog, "dump", 2, 9, minutes_ago=90)

    found = (await read(source, snapshots.contract(), gang("dump"))).stacks

    assert isinstance(found, Known), found
    (only,) = found.value
    assert (only.task_id, only.at) == (f"{TRAIN}-dump/0", NOW - timedelta(minutes=5))
    assert [thread.frames for thread in only.threads] == [("step (moe/train.py:585)",)]
    assert "hunter2" not in only.model_dump_json()


async def test_the_newest_answer_of_nccl_is_read_of_this_run_and_its_running_attempt(
    finelog: Finelog, source: FinelogHang
) -> None:
    apart = {"communicator_hash": "0xa", "collective": "AllReduce"}
    odd = {"communicator_hash": "0xa", "rank": "17", "rank_host": "10.0.0.2", "reasons": "collective_outlier:AllReduce"}
    answer = [
        ("ras_available", 1.0, {"outcome": "success", "trigger": "periodic"}),
        ("communicators", 2.0, {}),
        ("communicator_state", 1.0, {"communicator_hash": "0xa", "collective_mismatch": "true"}),
        ("collective_operations", 1200.0, apart | {"rank_statistic": "minimum"}),
        ("collective_operations", 1203.0, apart | {"rank_statistic": "maximum"}),
        ("communicator_rank_status", 1.0, odd | {"rank_state": "reported"}),
    ]
    write_ras(finelog, "hero-ras", "ras", answer)
    write_ras(finelog, "hero-ras", "ras-old", [("ras_available", 0.0, {"outcome": "unavailable"})])
    write_ras(finelog, "hero-other", "ras", [("ras_available", 0.0, {"outcome": "unavailable"})])
    of = snapshots.contract(run_id="hero-ras", tracker={})

    async def is_there() -> bool:
        ranks = (await read(source, of, gang("ras", retried=True))).ranks
        return isinstance(ranks, Known) and ranks.value is not None

    await until(is_there, timeout_s=20)
    found = (await read(source, of, gang("ras", retried=True))).ranks
    none = (await read(source, snapshots.contract(run_id="hero-none", tracker={}), gang("ras"))).ranks

    assert isinstance(found, Known)
    assert found.value is not None
    assert (found.value.communicators, found.value.disagreeing, found.value.failed) == (2, 1, "")
    assert found.value.counted == (Counted(communicator="0xa", collective="AllReduce", fewest=1200, most=1203),)
    assert found.value.odd == (
        OddRank(communicator="0xa", rank="17", host="10.0.0.2", says=("collective_outlier:AllReduce",)),
    )
    assert isinstance(none, Known)
    assert none.value is None


async def test_without_the_tasks_there_is_nothing_to_ask(source: FinelogHang) -> None:
    found = await source.hang(snapshots.contract(), snapshots.unknown(Gap.TIMEOUT))

    assert isinstance(found, Unknown)
    assert found.detail == "which tasks run is not known: no answer in 20 s"


async def test_a_server_without_these_tables_says_which_it_lacks_and_hides_no_other_part(tmp_path: Path) -> None:
    with finelog_server(tmp_path) as bare:
        asked = source_at(bare.url)
        try:
            found = await read(asked, snapshots.contract(), gang("bare"))
        finally:
            await asked.close()

    assert isinstance(found.use, Unknown)
    assert isinstance(found.stacks, Unknown)
    assert (found.use.reason, found.use.detail) == (Gap.UNRECOGNISED, "there is no table iris.task")
    assert found.stacks.detail == "there is no table iris.profile"
    assert found.ranks == Known(value=None, at=NOW)


class Slow:
    """Stands before a Finelog and lets some questions hang."""

    def __init__(self, url: str, hangs_at: str) -> None:
        self._url = url
        self._hangs_at = hangs_at
        self._over = asyncio.Event()

    async def start(self) -> tuple[str, web.AppRunner]:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/{path:.*}", self._pass_on)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}", runner

    def let_go(self) -> None:
        self._over.set()

    async def _pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self._hangs_at.encode() in body or self._hangs_at in request.path:
            await self._over.wait()
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(
                f"{self._url}{request.path}", content=body, headers={"Content-Type": "application/json"}
            )
        return web.Response(status=answer.status_code, body=answer.content, content_type="application/json")


@pytest.mark.parametrize(
    ("hangs_at", "dark"), [("iris.profile", {"stacks"}), ("ListNamespaces", {"use", "stacks", "ranks"})]
)
async def test_a_question_that_hangs_takes_no_longer_than_the_deadline_and_takes_no_other_with_it(
    finelog: Finelog, hangs_at: str, dark: set[str]
) -> None:
    write_use(finelog, "slow", {0: 7900})
    slow = Slow(finelog.url, hangs_at)
    url, runner = await slow.start()
    asked = source_at(url, deadline="2s")
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        found = await read(asked, snapshots.contract(), gang("slow"))
        took_s = loop.time() - began
    finally:
        slow.let_go()
        await asked.close()
        await runner.cleanup()

    parts: dict[str, Any] = {"use": found.use, "stacks": found.stacks, "ranks": found.ranks}
    assert {name for name, part in parts.items() if isinstance(part, Unknown)} == dark
    assert all(parts[name].reason is Gap.TIMEOUT for name in dark)
    assert took_s < 4


HANGING = """
import os, time

index = int(os.environ["IRIS_TASK_ID"].split(":")[0].rpartition("/")[2])
print(f"task {index} waits for a collective that never ends", flush=True)
while True:
    if index == 2:
        time.sleep(0.2)  # the one that the others spin for
"""


class Nothing:
    """The sources of a run that never logged a row and never saved, and a launch checklist that says nothing."""

    async def metrics(self, *_: object, **__: object) -> Reading[Metrics]:
        return Known(value=Metrics(rows=()), at=SystemClock().now())

    async def checkpoints(self, _contract: Contract) -> Reading[tuple[Any, ...]]:
        return Known(value=(), at=SystemClock().now())

    async def run(self, _contract: Contract) -> None:
        return


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Iris has wheels for Python 3.12 and 3.13 only")
async def test_the_incident_of_a_real_job_that_hangs_says_which_of_its_tasks_spin_and_which_do_nothing(
    iris_cluster: IrisCluster, tmp_path: Path
) -> None:
    """Three tasks on the real local cluster: two spin, one sleeps, none ever trains."""
    (iris_cluster.work / "hanging.py").write_text(textwrap.dedent(HANGING))
    job_id = iris_cluster.launch("/me/hang-gang", "python", "hanging.py", replicas=3)
    settings = Settings(iris=IrisSettings(controller_url=iris_cluster.url))
    clock = SystemClock()
    orchestrator = IrisOrchestrator(settings.iris, clock)
    asked = FinelogHang(settings.finelog_in_use, clock)
    run_id = RunId("hang-hero")
    of = snapshots.contract(
        run_id=run_id,
        tracker={},
        orchestrator={"kind": "iris", "job_id": job_id},
        thresholds={"progress.startup": {"start": "1s"}},
    )
    events: list[RunChecked] = []
    store = await Store.open(f"sqlite:///{tmp_path / 'hero.db'}", clock, Redactor())
    watcher = a_watcher(of, events, store, orchestrator, asked)

    async def is_seen_to_idle() -> bool:
        jobs = await orchestrator.jobs(of, JobId(job_id))
        found = await asked.hang(of, jobs)
        use = found.value.use if isinstance(found, Known) else None
        return isinstance(use, Known) and sorted(each.cores > 0.05 for each in use.value) == [False, True, True]

    try:
        async with store.transaction() as tx:
            await tx.apply(Decision(run=Run(run_id=run_id)), run_id, clock.now())
        await until(is_seen_to_idle, timeout_s=120)
        await watcher.check(run_id)
        record = await store.record(run_id)
    finally:
        iris_cluster.rpc("TerminateJob", {"jobId": job_id})
        await orchestrator.close()
        await asked.close()
        await store.close()

    (incident,) = [each for each in incidents(record, events[-1]) if each.check == STARTUP_ID]
    evidence = incident.finding.evidence
    assert any(line.startswith("1 of 3 tasks use no CPU: 2 (on worker-") for line in evidence), evidence
    assert any("; the others " in line and " cores, since " in line for line in evidence), evidence
    assert any(line.startswith("on ") and "worker-" in line for line in evidence), evidence
    # A table is there once something was written to it: without one it is unknown what was, with one it is known.
    assert any("where its threads stand" in line for line in evidence), evidence
    assert any("statistics of ranks (NCCL RAS)" in line for line in evidence), evidence


def a_watcher(
    of: Contract, events: list[RunChecked], store: Store, orchestrator: IrisOrchestrator, asked: FinelogHang
) -> Watcher:
    clock, nothing = SystemClock(), Nothing()
    anything: Any = nothing
    checklist: Checklist = anything

    class Contracts:
        def load(self, _run_id: RunId) -> Contract:
            return of

        def run_ids(self) -> tuple[RunId, ...]:
            return (of.run_id,)

    async def hand_on(_contract: Contract, event: RunChecked) -> bool:
        events.append(event)
        return False

    contracts: Any = Contracts()
    return Watcher(
        reader=SnapshotReader(
            orchestrators={"iris": orchestrator},
            metrics=nothing,
            checkpoints=nothing,
            clock=clock,
            deadline=timedelta(seconds=30),
            hang=asked,
        ),
        checks=(STARTUP,),
        contracts=contracts,
        store=store,
        clock=clock,
        hand_on=hand_on,
        blocked=anything,
        errands=anything,
        checklist=checklist,
        deadline=timedelta(seconds=60),
        cadence=timedelta(minutes=15),
    )


def incidents(record: Record | None, event: RunChecked) -> tuple[Any, ...]:
    assert record is not None
    return changes_after(record, event.judgements, event.snapshot.at).incidents
