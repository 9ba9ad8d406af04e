"""What the doctor looks at on Hero's own machine: database, contracts, checkpoint roots, heartbeat."""

import asyncio
import os
import shutil
import socket
from datetime import timedelta
from pathlib import Path

import httpx

from bot.actions.iris_command import prepare_submission
from bot.actions.ports import Unlaunchable
from bot.clock import Clock
from bot.commands.probing import Probe, bad, good
from bot.commands.sight import Holder, holder_of, open_store
from bot.contracts import BadContract, Contracts
from bot.model.contract import Contract, IrisContract
from bot.model.reading import Gap, Known, Unknown, install_of
from bot.model.snapshot import newest_complete
from bot.secret_names import is_secret_name
from bot.secret_shapes import scrub_shapes
from bot.settings import HeartbeatSettings, Settings
from bot.sources.checkpoints import CheckpointReader
from bot.store.store import database_path

_LISTING = timedelta(seconds=10)
"""Somebody sits and waits; a store's own client would retry for half a minute."""


async def probe_database(settings: Settings, clock: Clock) -> tuple[Probe, ...]:
    """Write into the database where it is, and see that a copy of it would fit beside it before an upgrade."""
    path = database_path(settings.bot.database)
    if path is None:
        return (good("database", "in memory alone: nothing is remembered after a stop", "set [bot] database"),)
    if not path.parent.is_dir():
        return (bad("database", f"the directory {path.parent} does not exist", "create it, or set [bot] database"),)
    async with open_store(settings, clock) as store:
        if store is None:
            if not os.access(path.parent, os.W_OK):
                return (bad("database", f"{path.parent} cannot be written", "let Hero's user write this directory"),)
            return (good("database", f"{path} does not exist yet; `hero run` creates it"),)
        await store.probe()
        counts = await store.counts()
    waiting = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count)
    return (good("database", f"{path} can be written ({waiting or 'nothing waits'})"), _probe_backup(path))


def _probe_backup(path: Path) -> Probe:
    """A copy is made beside the file before each upgrade."""
    name = "database backup"
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    if not os.access(path.parent, os.W_OK):
        return bad(name, f"{path.parent} cannot be written", "let Hero's user write this directory")
    if free < 2 * size:
        return bad(name, f"{free:,} bytes are free beside a database of {size:,}", "free some space on its disk")
    return good(name, f"{path.parent} has room for a copy")


async def probe_http(settings: Settings, clock: Clock) -> tuple[Probe, ...]:
    """See that the address of health and webhooks can be had; by a Hero that runs it is taken, as it should be."""
    address = settings.bot.http
    host, _, port = address.rpartition(":")
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            tried.bind(where)
            tried.listen()
    except (OSError, OverflowError) as error:
        if await _is_running(settings, clock):
            return (good("http", f"{address} is taken, and Hero runs"),)
        reason = getattr(error, "strerror", None) or error
        fix = "stop what listens there, or set [bot] http to another HOST:PORT"
        return (bad("http", f"{address} cannot be had: {reason}", fix),)
    return (good("http", f"{address} is free"),)


async def _is_running(settings: Settings, clock: Clock) -> bool:
    async with open_store(settings, clock) as store:
        return store is not None and await holder_of(store, clock.now()) is Holder.HELD


async def probe_contracts(contracts: Contracts) -> tuple[Probe, ...]:
    """Read every contract; each bad one is a line with all of its mistakes."""
    directory = contracts.directory
    if not directory.is_dir():
        fix = "create it, or set [bot] runs; `hero init` writes an example"
        return (bad("contracts", f"the directory {directory} does not exist", fix),)
    read = [contracts.load(run_id) for run_id in contracts.run_ids()]
    bad_ones = [
        bad(f"contract {each.run_id}", "; ".join(each.problems), f"correct {directory / each.run_id}.toml")
        for each in read
        if isinstance(each, BadContract)
    ]
    if not read:
        return (good("contracts", f"no run in {directory} yet", f"put RUN_ID.toml into {directory} for each run"),)
    looked_into = {each.run_id: _look_into(each, directory) for each in read if isinstance(each, Contract)}
    at_fault = [run_id for run_id, probes in looked_into.items() if not all(probe.ok for probe in probes)]
    said = f"{len(looked_into)} of {len(read)} can be read"
    if at_fault:
        said += f"; what would fail of {', '.join(at_fault)} is said above"
    return (*bad_ones, *(probe for probes in looked_into.values() for probe in probes), good("contracts", said))


def _look_into(contract: Contract, directory: Path) -> tuple[Probe, ...]:
    """Find at noon what would keep a relaunch from being submitted at night."""
    probes = (
        _probe_checkout(contract, directory),
        _probe_environment(contract, directory),
        _probe_command(contract, directory),
    )
    return tuple(probe for probe in probes if probe is not None)


def _probe_checkout(contract: Contract, directory: Path) -> Probe | None:
    if Path(contract.checkout).is_dir():
        return None
    file = directory / f"{contract.run_id}.toml"
    fix = f"create it, or correct `checkout` in {file}; it is relative to {directory.parent}"
    return bad(f"checkout {contract.run_id}", f"{contract.checkout} is no directory", fix)


def _probe_environment(contract: Contract, directory: Path) -> Probe | None:
    """A contract is shown to colleagues and kept in version control; no place for a key."""
    held = [name for name, value in contract.environment.items() if value and _is_secret(name, value)]
    if not held:
        return None
    detail = f"`environment` holds what looks like a secret: {', '.join(sorted(held))}"
    fix = (
        f"take it out of {directory / contract.run_id}.toml and set it in Hero's own environment, which the command "
        "inherits but for HERO_…"
    )
    return good(f"environment {contract.run_id}", detail, fix)


def _is_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or scrub_shapes(value) != value


def _probe_command(contract: Contract, directory: Path) -> Probe | None:
    if not isinstance(contract.orchestrator, IrisContract):
        return None
    prepared = prepare_submission(contract, default_name=f"{contract.run_id}-r1")
    if not isinstance(prepared, Unlaunchable):
        return None
    name, fix = f"command {contract.run_id}", f"correct `command` in {directory / contract.run_id}.toml"
    return bad(name, "; ".join(prepared.problems), fix)


async def probe_checkpoints(contracts: tuple[Contract, ...], clock: Clock) -> tuple[Probe, ...]:
    """List every run's checkpoints, as a check would; a root that does not exist yet holds none."""
    reader = CheckpointReader(clock, deadline=_LISTING)
    return tuple(await asyncio.gather(*(_probe_roots(reader, contract) for contract in contracts)))


async def _probe_roots(reader: CheckpointReader, contract: Contract) -> Probe:
    name = f"checkpoints {contract.run_id}"
    roots = ", ".join(contract.roots)
    match await reader.checkpoints(contract):
        case Unknown(reason=reason, detail=detail):
            said, install = install_of(detail)
            fix = install or f"let Hero's user read {roots}, or correct output_root or checkpoint_roots in the contract"
            if reason in {Gap.TIMEOUT, Gap.UNREACHABLE}:
                fix = f"see that {roots} can be reached from this machine, or correct the contract"
            return bad(name, f"{reason}: {said}", fix)
        case Known(value=found):
            newest = newest_complete(found)
            said = f"the newest complete one is step {newest.step}" if newest else "none is complete yet"
            return good(name, f"{roots} can be read; {said}")


async def probe_heartbeat(settings: HeartbeatSettings, client: httpx.AsyncClient) -> tuple[Probe, ...]:
    """Ask the address once, as the bot does; for whoever listens there this was a sign of life."""
    if settings.url is None:
        fix = "set [heartbeat] url to one of healthchecks or Grafana OnCall"
        return (good("heartbeat", "not set: nobody outside notices when Hero is dead", fix),)
    fix = "correct [heartbeat] url"
    try:
        answer = await client.get(settings.url)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return (bad("heartbeat", f"no answer: {type(error).__name__}", fix),)
    if not answer.is_success:
        return (bad("heartbeat", f"it answered HTTP {answer.status_code}", fix),)
    return (good("heartbeat", f"it answered HTTP {answer.status_code}; this counted as one sign of life"),)
