"""Starts, supervises and stops every part. Start reading here.

The main loop: this file → ``scheduler.py`` → ``watcher.py`` → ``checks/__init__.py`` → ``handlers/checked.py`` → the
outbox → ``courier.py`` → ``channels/``. What is granted goes to ``actions/executor.py``. Who is who is joined in
``building.py``.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, TextIO

import structlog
import uvicorn
from rich.console import Console

from bot.building import Parts, build
from bot.channels.console import ConsoleChannel
from bot.clock import SystemClock
from bot.errors import LeaseLostError, StoreError
from bot.health import Examination
from bot.heartbeat import beat
from bot.logs import configure_logs
from bot.model.delivery import ChannelName
from bot.model.durations import say_duration
from bot.model.reading import Known
from bot.model.run import RunState
from bot.redaction import Redactor
from bot.settings import Settings
from bot.web.server import web_app, web_server

log = structlog.get_logger()

_CONTRACTS_EVERY = timedelta(seconds=10)
_TIMERS_EVERY = timedelta(seconds=30)
_DAY = timedelta(days=1)
_OVER = {RunState.COMPLETED, RunState.STOPPED}
_STOP_STEP = timedelta(seconds=3)
"""The longest that each step of stopping may take; with closing, all of it stays under ten seconds."""


async def run_bot(
    settings: Settings,
    *,
    stop: asyncio.Event | None = None,
    console: Console | None = None,
    log_stream: TextIO | None = None,
    started: Callable[[Parts], Awaitable[None]] | None = None,
) -> int:
    """Run Hero until it is told to stop.

    Args:
        settings: the whole tree.
        stop: set to stop; SIGTERM and SIGINT set it too.
        console: where the console channel prints.
        log_stream: where log lines go; None for standard error.
        started: awaited beside the loops once all of them run; the demo plays its part through it.

    Returns:
        The exit code: 0 after an orderly stop, 1 when another Hero took over.

    Raises:
        ConfigurationError: what the settings name can't be used.
        StoreError: the database can't be opened.
        BaseExceptionGroup: a part that should run for ever ended: our bug, as loud as it can be.
    """
    stop = stop or asyncio.Event()
    _listen_for_signals(stop)
    redactor = Redactor(settings.secrets)
    configure_logs(level=settings.bot.log_level, redactor=redactor, stream=log_stream)
    async with AsyncExitStack() as stack:
        parts = await build(settings, SystemClock(), stack, console=console, redactor=redactor)
        examination = Examination(
            store=parts.store,
            scheduler=parts.scheduler,
            tenure=parts.tenure,
            channels=parts.channels,
            clock=parts.clock,
        )
        stack.push_async_callback(examination.close)
        code = 0
        try:
            await _supervise(parts, examination, stop, started)
        except* LeaseLostError as lost:
            log.error("lease_lost", detail=str(lost.exceptions[0]))  # noqa: TRY400 - expected: no traceback
            code = 1
    log.info("hero_stopped", code=code)
    return code


def _listen_for_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


async def _begin_tenure(parts: Parts, stop: asyncio.Event) -> bool:
    """Wait for the lease; False when Hero was told to stop before it came."""
    begin = asyncio.ensure_future(parts.tenure.begin())
    told = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((begin, told), return_when=asyncio.FIRST_COMPLETED)
        if begin.done():
            begin.result()
        return begin.done()
    finally:
        begin.cancel()
        told.cancel()


async def _supervise(
    parts: Parts,
    examination: Examination,
    stop: asyncio.Event,
    started: Callable[[Parts], Awaitable[None]] | None,
) -> None:
    """Run every loop until told to stop; one that ends by itself takes Hero down, loudly."""
    server = web_server(web_app(examination.health, parts.routes), parts.settings.bot.http)
    async with asyncio.TaskGroup() as group:
        web = group.create_task(_serve(server, stop, parts), name="web")
        if not await _begin_tenure(parts, stop):
            await _close_web(server, web)
            return
        await _remind(parts)
        log.info("hero_started", channels=list(parts.channels), runs=len(parts.contracts.run_ids()))

        async def is_well() -> bool:
            return (await examination.health()).is_well

        def start(name: str, loop: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
            return group.create_task(_eternal(name, loop), name=name)

        intake = [
            start(f"channel-{name}", channel.run(parts.store.receive)) for name, channel in parts.channels.items()
        ]
        intake += [
            start("scheduler", parts.scheduler.run()),
            start("contracts", _watch_contracts(parts)),
            start("timers", _timers(parts)),
        ]
        inbox = start("inbox", parts.dispatcher.run())
        executor = start("executor", parts.executor.run())
        outbox = [start(f"outbox-{c.name}", c.run()) for c in parts.couriers]
        rest = [
            start("lease", parts.tenure.keep()),
            start("alarm", parts.alarm.run()),
            start("history", parts.historian.run()),
            start("heartbeat", beat(parts.settings.heartbeat, parts.clock, is_well)),
            start("housekeeping", _housekeeping(parts)),
        ]
        if started is not None:
            rest.append(group.create_task(_as_task(started(parts)), name="started"))
        await stop.wait()
        log.info("stopping")
        _cancel(intake)
        await _settle(parts.dispatcher.handle_pending(), "inbox")
        _cancel([inbox])
        await _settle(parts.executor.halt(_STOP_STEP), "executor")
        _cancel([executor])
        await _settle(_send_the_rest(parts), "outbox")
        _cancel([*outbox, *rest])
        await _close_web(server, web)


async def _remind(parts: Parts) -> None:
    """Show at the terminal what waits; a database that refuses just now keeps Hero from nothing else."""
    try:
        await parts.dispatcher.remind_console()
    except LeaseLostError:
        raise
    except StoreError as error:
        parts.alarm.ring(error)


async def _close_web(server: uvicorn.Server, web: asyncio.Task[None]) -> None:
    """Let the server answer what it has begun to; its socket is closed by itself, not by a cancellation."""
    server.should_exit = True
    await _settle(asyncio.shield(web), "web")
    web.cancel()


def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


async def _as_task(awaitable: Awaitable[None]) -> None:
    await awaitable


async def _settle(step: Awaitable[object], name: str) -> None:
    """Give one step of stopping its time; one that fails or takes longer does not keep the next from its turn."""
    try:
        async with asyncio.timeout(_STOP_STEP.total_seconds()):
            await step
    except TimeoutError:
        log.warning("stop_step_cut_off", step=name)
    except Exception:
        log.exception("stop_step_failed", step=name)


async def _send_the_rest(parts: Parts) -> None:
    """Wait while the couriers still carry what is due now."""
    while (await parts.store.counts()).get("deliveries_due", 0):
        await parts.clock.sleep(timedelta(seconds=0.1))


async def _eternal(name: str, loop: Coroutine[Any, Any, None]) -> None:
    """Run what should never end; an end is a fault, as loud as an exception."""
    await loop
    msg = f"{name} should run for ever and has ended"
    raise RuntimeError(msg)


async def _serve(server: uvicorn.Server, stop: asyncio.Event, parts: Parts) -> None:
    """Serve health and webhooks; an address that can't be bound is said, and Hero works on without."""
    with contextlib.suppress(SystemExit):  # how uvicorn says that it can't bind
        await server.serve()
    if not stop.is_set():
        log.error("http_not_served", address=server.config.host, port=server.config.port, fix="change [bot] http")
        terminal = parts.channels.get(ChannelName.CONSOLE)
        if isinstance(terminal, ConsoleChannel):
            address = parts.settings.bot.http
            terminal.note(
                f"Health and webhooks are not served: {address} cannot be had, something listens there. Hero works "
                "on without; stop the other, or set [bot] http to another HOST:PORT and start Hero anew."
            )


async def _watch_contracts(parts: Parts) -> None:
    """Watch every run that has a contract, and every run on record that is not over, for ever."""
    warned = False
    while True:
        run_ids = set(parts.contracts.run_ids())
        try:
            run_ids |= {run.run_id for run in await parts.store.runs() if run.state not in _OVER}
        except StoreError as error:
            parts.alarm.ring(error)
        for run_id in sorted(run_ids):
            parts.scheduler.watch(run_id)
        if not run_ids and not warned:
            warned = True
            log.warning("no_runs", directory=str(parts.contracts.directory), fix="put a contract there")
        await parts.clock.sleep(_CONTRACTS_EVERY)


async def _timers(parts: Parts) -> None:
    """Let requests expire, routine statuses fall due and silence be noticed, for ever."""
    while True:
        try:
            await parts.dispatcher.time_passed()
        except LeaseLostError:
            raise
        except StoreError as error:
            parts.alarm.ring(error)
        await parts.clock.sleep(_TIMERS_EVERY)


async def _housekeeping(parts: Parts) -> None:
    """Once a day: forget what is long done, and warn before the orchestrator's client is too old to submit."""
    while True:
        try:
            await parts.store.prune(parts.clock.now() - timedelta(days=30))
            await _warn_of_old_client(parts)
        except LeaseLostError:
            raise
        except StoreError as error:
            parts.alarm.ring(error)
        await parts.clock.sleep(_DAY)


async def _warn_of_old_client(parts: Parts) -> None:
    if parts.iris is None:
        return
    built = await parts.iris.client_build_date()
    if not isinstance(built, Known):
        log.warning("iris_client_age_unknown", detail=built.detail)
        return
    age = parts.clock.now() - built.value
    if age >= parts.settings.iris.client_age_warning:
        await parts.dispatcher.notice(
            f"iris-client/{parts.clock.now().date()}",
            f"the Iris client here is {say_duration(age)} old; from 14 days on the controller refuses its submissions",
            (f"built {built.value.date()}",),
            "upgrade marin-iris where Hero runs, else the next relaunch will be refused",
        )
