"""Whether the services of a trial can be used: each is asked for real, and only an answer that is understood counts."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from bot.clock import SystemClock
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import SERVICES
from bot.rehearsing import ServiceProbe
from bot.settings import FinelogSettings, IrisSettings, KubernetesSettings, WandbSettings
from bot.sources.finelog.source import FinelogSource
from bot.sources.iris.source import IrisOrchestrator
from bot.sources.liveness import FinelogAlive, IrisAlive, KubernetesAlive, WandbAlive
from tests.fakes.finelog import finelog_server
from tests.fakes.iris_cli import FakeIris
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.kubernetes import TOKEN, KubernetesApi, iris_pod
from tests.fakes.rehearsals import child_contract, old_contract
from tests.fakes.snapshots import JOB
from tests.fakes.wandb import FakeWandb, fresh_sdk

CLOCK = SystemClock()
DEADLINE = timedelta(seconds=3)
RUNS = (old_contract(), child_contract())
LOCAL = {"kind": "local", "directory": "jobs"}
PLAIN = tuple(
    each.model_copy(update={"orchestrator": old_contract(orchestrator=LOCAL).orchestrator, "tracker": quiet})
    for each in RUNS
    for quiet in (old_contract(tracker={"mode": "disabled"}).tracker,)
)


@pytest.fixture(scope="module", autouse=True)
def helper_process() -> Iterator[None]:
    with fresh_sdk():
        yield


async def said(probe: ServiceProbe) -> str:
    found = await probe.said(RUNS)
    assert isinstance(found, Known), found
    return found.value


def gap(found: Reading[str]) -> Gap:
    assert isinstance(found, Unknown), found
    return found.reason


async def iris(settings: IrisSettings) -> Reading[str]:
    orchestrator = IrisOrchestrator(settings, CLOCK)
    try:
        return await IrisAlive(settings, orchestrator, CLOCK).said(RUNS)
    finally:
        await orchestrator.close()


async def test_a_real_controller_that_answers_is_alive(iris_cluster: IrisCluster) -> None:
    await asyncio.to_thread(iris_cluster.launch, "/me/liveness", "true")

    found = await iris(IrisSettings(controller_url=iris_cluster.url))

    assert isinstance(found, Known), found
    assert iris_cluster.url in found.value


@pytest.fixture
async def answers() -> AsyncIterator[dict[str, Any]]:
    """An address at which everything is answered as the test says."""
    given: dict[str, Any] = {"status": 200, "json": {}, "hangs": False}

    async def say(_request: web.Request) -> web.Response:
        if given["hangs"]:
            await asyncio.Event().wait()
        return web.json_response(given["json"], status=given["status"])

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", say)
    server = TestServer(app)
    await server.start_server()
    given["url"] = str(server.make_url("/"))
    yield given
    await server.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"json": {}}, Gap.UNRECOGNISED),
        ({"json": {"welcome": "to something else"}}, Gap.UNRECOGNISED),
        ({"json": ["x"]}, Gap.UNRECOGNISED),
        ({"status": 401, "json": {"code": "unauthenticated", "message": "no token"}}, Gap.REFUSED),
        ({"status": 502, "json": "Bad Gateway"}, Gap.UNREACHABLE),
        ({"hangs": True}, Gap.TIMEOUT),
    ],
)
async def test_a_controller_that_refuses_hangs_or_says_something_else_is_unknown(
    answers: dict[str, Any], answer: dict[str, Any], reason: Gap
) -> None:
    answers |= answer

    assert gap(await iris(IrisSettings(controller_url=answers["url"], deadline=timedelta(seconds=0.5)))) is reason


async def test_a_cli_that_cannot_ask_is_asked_for_the_jobs_and_none_at_all_is_not_configured(tmp_path: Path) -> None:
    fake = FakeIris(tmp_path)
    settings = IrisSettings(cli=str(fake.path), cluster="hero", deadline=timedelta(seconds=20))
    fake.says("rpc", stderr="Error: No such command 'rpc'.", exit_code=2)
    fake.says("job", "list", stderr="Error: connection refused", exit_code=1)

    refused = await iris(settings)

    assert isinstance(refused, Unknown)
    assert any("job" in call for call in fake.calls)
    assert gap(await IrisAlive(IrisSettings(), None, CLOCK).said(RUNS)) is Gap.NOT_CONFIGURED


async def test_pods_are_listed_and_that_there_are_none_is_an_answer() -> None:
    with KubernetesApi() as api:
        settings = KubernetesSettings(api_url=api.url, token=SecretStr(TOKEN), deadline=DEADLINE)
        none = await said(KubernetesAlive(settings, CLOCK))
        api.pods = [iris_pod(f"{JOB}/0")]
        one = await said(KubernetesAlive(settings, CLOCK))
        wrong = settings.model_copy(update={"token": SecretStr("wrong")})
        refused = await KubernetesAlive(wrong, CLOCK).said(RUNS)

    assert none.startswith("lists pods; 0 match")
    assert one.startswith("lists pods; 1 match")
    assert gap(refused) is Gap.REFUSED


async def test_a_real_finelog_is_asked_for_its_tables(tmp_path: Path) -> None:
    with finelog_server(tmp_path) as running:
        source = FinelogSource(FinelogSettings(url=running.url, deadline=timedelta(seconds=20)), CLOCK)
        well = await said(FinelogAlive(source))
        await source.close()
    gone = FinelogSource(FinelogSettings(url=running.url, deadline=DEADLINE), CLOCK)
    dead = await FinelogAlive(gone).said(RUNS)
    await gone.close()

    assert "levanter.metrics" in well
    assert isinstance(dead, Unknown)


async def test_the_trackers_key_is_asked_whose_it_is_anew_each_time() -> None:
    with FakeWandb() as wb:
        settings = WandbSettings(base_url=wb.url, api_key=SecretStr(wb.key), deadline=DEADLINE)
        alive = WandbAlive(settings, CLOCK)
        first = await said(alive)
        asked = wb.queries.count("Viewer") + wb.queries.count("GetViewer")
        wb.key = "another-" + "0123456789abcdef" * 3
        revoked = await alive.said(RUNS)
        never = await WandbAlive(settings, CLOCK).said(RUNS)
    keyless = await WandbAlive(WandbSettings(), CLOCK).said(RUNS)

    assert asked
    assert first.startswith("the key is ")
    assert isinstance(revoked, Unknown)
    assert isinstance(never, Unknown)
    assert wb.key not in revoked.detail
    assert gap(keyless) is Gap.NOT_CONFIGURED


def test_each_probe_goes_by_the_name_of_a_guard_and_is_needed_only_where_the_runs_use_it() -> None:
    given = KubernetesSettings(api_url="http://127.0.0.1:1")
    finelog = FinelogSource(FinelogSettings(url="http://127.0.0.1:1"), CLOCK)
    probes: tuple[ServiceProbe, ...] = (
        IrisAlive(IrisSettings(), None, CLOCK),
        KubernetesAlive(given, CLOCK),
        WandbAlive(WandbSettings(), CLOCK),
        FinelogAlive(finelog),
    )
    unset: tuple[ServiceProbe, ...] = (KubernetesAlive(KubernetesSettings(), CLOCK), FinelogAlive(None))

    assert {each.service for each in probes} == set(SERVICES) - {"storage"}
    assert all(each.is_needed(RUNS) for each in probes)
    assert not any(each.is_needed(PLAIN) for each in probes)
    assert not any(each.is_needed(RUNS) for each in unset)
