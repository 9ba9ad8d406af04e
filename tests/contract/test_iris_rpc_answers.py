"""Answers that a controller, something in front of it, or something else at its address can give."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from aiohttp import web
from pydantic import SecretStr

from bot.model.contract import Contract, IrisContract
from bot.model.reading import Gap, Known, Unknown
from bot.model.value import JobId, PersonName, RunId
from bot.settings import IrisSettings
from bot.sources.iris.source import IrisOrchestrator
from tests.fakes.clock import FakeClock

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CONTRACT = Contract(
    run_id=RunId("boom"),
    dri=PersonName("ana"),
    command=("true",),
    output_root="/nowhere",
    orchestrator=IrisContract(kind="iris", job_id=JobId("/me/boom")),
)
RUNNING = {
    "jobId": "/me/boom",
    "state": "JOB_STATE_RUNNING",
    "submittedAt": {"epochMs": "1795976322863"},
    "taskCount": 1,
    "hasChildren": False,
}


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[IrisOrchestrator]]]:
    """Makes an orchestrator over a web server with one handler for everything."""
    runners: list[web.AppRunner] = []
    asked: list[IrisOrchestrator] = []

    async def start(handler: Handler) -> IrisOrchestrator:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        port = runner.addresses[0][1]
        settings = IrisSettings(
            controller_url=f"http://127.0.0.1:{port}/", token=SecretStr("t0ken"), deadline=timedelta(seconds=1)
        )
        asked.append(IrisOrchestrator(settings, FakeClock()))
        return asked[-1]

    yield start
    for orchestrator in asked:
        await orchestrator.close()
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("answer", "gap"),
    [
        ({"status": 200, "text": "<html>Welcome to nginx!</html>"}, Gap.UNRECOGNISED),
        ({"status": 200, "text": "{}"}, Gap.UNRECOGNISED),
        ({"status": 200, "text": '{"job": null}'}, Gap.UNRECOGNISED),
        ({"status": 404, "text": ""}, Gap.UNRECOGNISED),
        ({"status": 404, "text": '{"code": "not_found", "message": "no route"}'}, Gap.UNRECOGNISED),
        ({"status": 302, "headers": {"Location": "https://accounts.example.org"}}, Gap.REFUSED),
        ({"status": 502, "text": "<html>Bad Gateway</html>"}, Gap.UNREACHABLE),
        ({"status": 500, "text": '{"code": "internal", "message": "id"}'}, Gap.UNRECOGNISED),
        ({"status": 401, "text": '{"code": "unauthenticated", "message": "Missing authentication"}'}, Gap.REFUSED),
    ],
)
async def test_an_answer_that_is_no_answer_is_unknown_and_never_no_job(
    serve: Callable[[Handler], Awaitable[IrisOrchestrator]], answer: dict[str, object], gap: Gap
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(**answer)  # type: ignore[arg-type]  # a table of keyword arguments

    reading = await (await serve(handler)).jobs(CONTRACT, JobId("/me/boom"))

    assert isinstance(reading, Unknown)
    assert reading.reason is gap


async def test_a_controller_that_stalls_is_cut_off_at_the_deadline(
    serve: Callable[[Handler], Awaitable[IrisOrchestrator]],
) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"job": {')
        await asyncio.sleep(30)
        return response

    orchestrator = await serve(handler)
    begun = time.monotonic()

    reading = await orchestrator.jobs(CONTRACT, JobId("/me/boom"))

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.TIMEOUT
    assert time.monotonic() - begun < 3


async def test_tasks_that_cannot_be_read_leave_the_job_known(
    serve: Callable[[Handler], Awaitable[IrisOrchestrator]],
) -> None:
    """An empty list of tasks is not believed while the job says that it has one."""
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        return web.json_response({"job": RUNNING} if request.path.endswith("GetJobStatus") else {})

    reading = await (await serve(handler)).jobs(CONTRACT, JobId("/me/boom"))

    assert isinstance(reading, Known), reading
    assert isinstance(reading.value[0].tasks, Unknown)
    assert {request.headers["Authorization"] for request in seen} == {"Bearer t0ken"}
    assert {request.headers["Accept-Encoding"] for request in seen} == {"identity"}


async def test_children_that_are_promised_and_not_listed_make_the_reading_unknown(
    serve: Callable[[Handler], Awaitable[IrisOrchestrator]],
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"job": RUNNING | {"hasChildren": True}} if "GetJobStatus" in request.path else {})

    reading = await (await serve(handler)).jobs(CONTRACT, JobId("/me/boom"))

    assert isinstance(reading, Unknown)
    assert "children" in reading.detail


async def test_logs_are_found_at_the_old_controllers_root_too(
    serve: Callable[[Handler], Awaitable[IrisOrchestrator]],
) -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path.startswith("/proxy"):
            return web.Response(status=404)
        entry = {"timestamp": {"epochMs": "1795976322863"}, "data": "hello", "key": "/me/boom/0:0"}
        return web.json_response({"entries": [entry], "cursor": "1"})

    reading = await (await serve(handler)).log(CONTRACT, JobId("/me/boom"), None)

    assert isinstance(reading, Known), reading
    assert reading.value.text == "hello"


async def test_nothing_configured_is_said_so() -> None:
    reading = await IrisOrchestrator(IrisSettings(), FakeClock()).jobs(CONTRACT, JobId("/me/boom"))

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.NOT_CONFIGURED


@pytest.mark.parametrize("trouble", ["none", "error", "stall"])
async def test_a_child_is_asked_once_what_it_wants_and_is_no_less_known_when_that_fails(
    serve: Callable[[Handler], Awaitable[IrisOrchestrator]], trouble: str
) -> None:
    child = {**RUNNING, "jobId": "/me/boom/train"}
    device = {"tpu": {"variant": "v5p-64", "count": 4}}
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        method, payload = request.path.rpartition("/")[2], await request.json()
        if method == "ListJobs":
            return web.json_response({"jobs": [child], "hasMore": False})
        if method == "ListTasks":
            task = {"taskId": f"{payload['job_id']}/0", "state": "TASK_STATE_RUNNING"}
            return web.json_response({"tasks": [task]})
        if payload["job_id"] == "/me/boom":
            return web.json_response({"job": {**RUNNING, "hasChildren": True, "resources": {"device": {}}}})
        asked.append(payload["job_id"])
        if trouble == "error":
            return web.json_response({"code": "internal", "message": "no"}, status=500)
        if trouble == "stall":
            await asyncio.sleep(30)
        return web.json_response({"job": {**child, "resources": {"device": device}, "taskCount": 8}})

    orchestrator = await serve(handler)
    readings = [await orchestrator.jobs(CONTRACT, JobId("/me/boom")) for _ in range(2)]

    expected = ("v5p-64", 4, 8) if trouble == "none" else (None, None, 1)
    for reading in readings:
        assert isinstance(reading, Known), reading
        told = [(job.accelerator, job.accelerators, job.expected_tasks) for job in reading.value]
        assert told == [("", 0, 1), expected]
    assert len(asked) == (1 if trouble == "none" else 2)
