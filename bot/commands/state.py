"""``hero export-state RUN`` and ``hero import-state FILE``: a hand-over in the babysitting procedure's own file.

What comes in is a claim. It goes on the run's record as stated by its import, with every difference from what is known
here; nothing that Hero saw is changed by it.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from bot.actions.relaunch import shape_of
from bot.clock import Clock, SystemClock
from bot.commands.configuration import load, rules_of
from bot.commands.exits import Exit
from bot.commands.printing import say
from bot.commands.sight import look, open_store
from bot.contracts import BadContract
from bot.errors import ConfigurationError
from bot.model.audit import AuditEntry
from bot.model.chronicle import Entry, HistoryWritten, StateImported
from bot.model.contract import Contract
from bot.model.delivery import ChannelName
from bot.model.handover import StateFile, command_line, differences_from, without_waiting
from bot.model.record import Decision, Record
from bot.model.roles import with_roles
from bot.model.run import Instance
from bot.model.value import JobId, RunId
from bot.redaction import Redactor
from bot.regular_files import open_regular
from bot.render.text import clean
from bot.settings import Settings
from bot.store.store import Store
from handlers.context import Context
from handlers.recorded import recorded

_LARGEST_BYTES = 256 * 1024
_LINE = 600
_SKEW = timedelta(days=1)


def export_state(config: Path | None, run: str, out: Path | None) -> None:
    """Write a run's state file, or print it.

    Raises:
        HeroError: the configuration, no such run, one without a job, or a file that cannot be written.
    """
    settings = load(config)
    text = json.dumps(asyncio.run(_state_now(settings, SystemClock(), run)).model_dump(), indent=2)
    if out is None:
        say(text)
        return
    try:
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except FileExistsError:
        raise ConfigurationError((f"{out}: is there already; name another file",)) from None
    except OSError as error:
        raise ConfigurationError((f"{out}: cannot be written ({error.strerror})",)) from error


def import_state(config: Path | None, file: Path, run: str | None) -> int:
    """Take a state file for what it is, a claim; return the exit code.

    Returns:
        0 when its job is, or becomes, the run's current one; 3 when the contract or what was seen says otherwise: then
        the claim is on record and changes nothing.

    Raises:
        HeroError: the configuration, the file, no run that it could be about, or the database.
    """
    settings = load(config)
    claim = _read(file, SystemClock().now())
    return asyncio.run(_import(settings, SystemClock(), claim, run))


async def _state_now(settings: Settings, clock: Clock, run: str) -> StateFile:
    (seen,) = (await look(settings, clock, run)).runs
    async with open_store(settings, clock) as store:
        entries = await store.chronicle(seen.run_id) if store else ()
    if isinstance(seen.contract, BadContract):
        raise ConfigurationError(seen.contract.problems)
    if seen.contract is None:
        raise ConfigurationError((f"{run}: its contract is gone; put runs/{run}.toml back",))
    return _state(settings, seen.contract, seen.record, entries, clock.now())


def _state(
    settings: Settings, contract: Contract, record: Record | None, entries: tuple[Entry, ...], at: datetime
) -> StateFile:
    redactor = Redactor(settings.secrets)
    instance = record.instance if record else None
    job_id = instance.job_id if instance else contract.orchestrator.job_id
    if job_id is None:
        raise ConfigurationError((f"{contract.run_id}: has no job yet, so there is nothing to hand over",))
    command = without_waiting(instance.command if instance and instance.command else redactor.argv(contract.command))
    environment = tuple(
        (name, redactor.value({name: text})[name]) for name, text in sorted(contract.environment.items())
    )
    run = record.run if record else None
    state = StateFile(
        ts=round(at.timestamp() * 1000),
        job_id=job_id,
        config=str(settings.iris.config or settings.iris.cluster or ""),
        wandb_url=run.tracker_url if run else "",
        wandb_name=(run.tracker_name if run else "") or contract.tracker.name or "",
        history_file=history_file(entries),
        resubmit_command=command_line(command, environment),
        restart_count=instance.number if instance else 0,
    )
    return StateFile.model_validate(redactor.value(state.model_dump()))


def history_file(entries: tuple[Entry, ...]) -> str:
    """Return the run's history file as it was last told: by an import, or as the last word of the owner's command."""
    for entry in reversed(entries):
        match entry.happening:
            case StateImported(history_file=name) if name:
                return name
            case HistoryWritten(command="new", is_done=True, detail=detail) if detail.endswith(".md"):
                return detail.split()[-1]
            case _:
                pass
    return ""


def _read(file: Path, at: datetime) -> StateFile:
    try:
        with open_regular(file) as opened:
            raw = opened.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError((f"{file}: cannot be read ({error.strerror or error})",)) from error
    if len(raw) > _LARGEST_BYTES:
        raise ConfigurationError((f"{file}: is longer than {_LARGEST_BYTES} bytes, so it is no state file",))
    try:
        claim = StateFile.model_validate_json(raw)
    except ValidationError as error:
        problems = (
            f"{file}: {'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)
        )
        raise ConfigurationError(tuple(problems)) from None
    try:
        written = datetime.fromtimestamp(claim.ts / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        raise ConfigurationError((f"{file}: ts: {claim.ts} is no moment; write milliseconds since 1970",)) from None
    if written > at + _SKEW:
        raise ConfigurationError((f"{file}: ts: {written.isoformat()} lies in the future",))
    return claim


async def _import(settings: Settings, clock: Clock, claim: StateFile, named: str | None) -> int:
    contract = await _whose(settings, clock, claim, named)
    redactor, at = Redactor(settings.secrets), clock.now()
    cleaned = StateFile.model_validate(redactor.value(claim.model_dump()))
    async with _writable(settings, clock, redactor) as store:
        entries = await store.chronicle(contract.run_id)
        async with store.transaction() as tx:
            record = await tx.record(contract.run_id)
            known = _state(settings, contract, record, entries, at)
            differs = differences_from(cleaned, known)
            agrees = cleaned.job_id == known.job_id
            is_taken = agrees and record.instance is None
            imported = StateImported(
                job_id=cleaned.job_id,
                restart_count=claim.restart_count,
                tracker_url=cleaned.wandb_url or "",
                tracker_name=cleaned.wandb_name or "",
                history_file=cleaned.history_file or "",
                differences=differs,
                is_taken=is_taken,
            )
            decision = _decision(settings, contract, record, imported, launch=_launch(contract, cleaned, at), at=at)
            await tx.apply(decision, contract.run_id, at)
    for line in differs:
        say(clean(f"differs: {line}", _LINE))
    say(clean(_verdict(contract.run_id, cleaned, agrees=agrees, is_taken=is_taken), _LINE))
    return Exit.DONE if agrees else Exit.BLOCKED


def _decision(
    settings: Settings, contract: Contract, record: Record, imported: StateImported, *, launch: Instance, at: datetime
) -> Decision:
    """Return what goes on record, and the launch where it is taken for the current one."""
    audit = AuditEntry(
        at=at,
        run_id=contract.run_id,
        who=f"console:{os.getuid()}",
        what="state_imported",
        detail="; ".join(imported.differences),
    )
    decision = Decision(happened=(imported,), audit=(audit,))
    shape = shape_of(contract, Redactor(settings.secrets))
    if imported.is_taken:
        decision = decision.model_copy(update={"instances": (launch.model_copy(update={"shape": shape}),)})
    channels = (ChannelName.GITHUB,) if settings.github.is_set else ()
    meant = with_roles(contract, record.run.roles)
    context = Context(contract=meant, people=settings.persons, channels=channels, rules=rules_of(settings))
    return recorded(record, decision, context, at, shape=shape)


@asynccontextmanager
async def _writable(settings: Settings, clock: Clock, redactor: Redactor) -> AsyncIterator[Store]:
    """Hand out the database beside the bot that may be at work on it; make it when no bot has run here yet."""
    url = settings.bot.database
    store = await Store.open_existing(url, clock, redactor) or await Store.open(url, clock, redactor)
    try:
        yield store
    finally:
        await store.close()


async def _whose(settings: Settings, clock: Clock, claim: StateFile, named: str | None) -> Contract:
    """Return the contract of the run that is meant: the one that is named, else the one with the claim's job."""
    runs = (await look(settings, clock, named)).runs
    known = {seen.run_id: seen for seen in runs}
    if named is None:
        known = {
            run_id: seen
            for run_id, seen in known.items()
            if (isinstance(seen.contract, Contract) and seen.contract.orchestrator.job_id == claim.job_id)
            or (seen.record is not None and seen.record.instance and seen.record.instance.job_id == claim.job_id)
        }
    if len(known) != 1:
        there = ", ".join(known or (seen.run_id for seen in runs)) or "none"
        how = "more than one run has" if known else "no run here has"
        raise ConfigurationError((f"{how} the job {claim.job_id[:200]}; name the run with --run (runs: {there})",))
    (seen,) = known.values()
    match seen.contract:
        case Contract():
            return seen.contract
        case BadContract(problems=problems):
            raise ConfigurationError(problems)
        case None:
            raise ConfigurationError((f"{seen.run_id}: its contract is gone; put runs/{seen.run_id}.toml back",))


def _verdict(run_id: RunId, claim: StateFile, *, agrees: bool, is_taken: bool) -> str:
    if is_taken:
        job = f"{claim.job_id}, restart {claim.restart_count}"
        return f"{run_id}: its current job is {job}, as the file says; Hero looks at it at its next check"
    if agrees:
        return f"{run_id}: {claim.job_id} is its current job already; the claim is on record and changed nothing"
    return f"{run_id}: its job is not {claim.job_id} here; the claim is on record and changed nothing"


def _launch(contract: Contract, claim: StateFile, at: datetime) -> Instance:
    """Return the instance that the claim and the contract agree about; what it really is the next look finds out."""
    return Instance(
        run_id=contract.run_id,
        number=claim.restart_count,
        job_id=JobId(claim.job_id),
        submitted_at=None,
        launched_at=min(at, datetime.fromtimestamp(claim.ts / 1000, UTC)),
        source_sha=contract.source_sha,
        config_digest=contract.config_digest,
    )
