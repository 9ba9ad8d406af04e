"""What is remembered of every run, read beside a bot that runs or does not: for ``status``, ``runs`` and ``log``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from enum import StrEnum

from pydantic import AwareDatetime

from bot.clock import Clock
from bot.contracts import BadContract
from bot.errors import ConfigurationError
from bot.model.contract import Contract
from bot.model.record import Record
from bot.model.value import RunId, Value
from bot.redaction import Redactor
from bot.run_contracts import contracts_of
from bot.settings import Settings
from bot.store.store import Store
from bot.tenure import NAME, is_dead_here


class Holder(StrEnum):
    """Whether a bot is at work on the database."""

    HELD = "running"
    """A lease that has not run out, of a process that is not known to be dead."""
    FREE = "not running"


class RunSeen(Value):
    """One run: what its owner promised, and what is remembered of it."""

    run_id: RunId
    contract: Contract | BadContract | None
    """None when its file is gone."""
    record: Record | None
    """None when the bot never looked at it."""


class Sight(Value):
    """All runs at one moment."""

    at: AwareDatetime
    runs: tuple[RunSeen, ...]
    holder: Holder
    has_database: bool


@asynccontextmanager
async def open_store(settings: Settings, clock: Clock) -> AsyncIterator[Store | None]:
    """Hand out the database as it is; None when the bot has not made one yet.

    Raises:
        ConfigurationError: it is no database of this Hero.
        StoreError: it cannot be read.
    """
    store = await Store.open_existing(settings.bot.database, clock, Redactor(settings.secrets))
    try:
        yield store
    finally:
        if store is not None:
            await store.close()


async def look(settings: Settings, clock: Clock, named: str | None = None) -> Sight:
    """Read what is remembered of every run, or of the one that is named.

    Raises:
        ConfigurationError: there is no run of that name; or as ``open_store``.
        StoreError: the database cannot be read.
    """
    contracts = contracts_of(settings)
    async with open_store(settings, clock) as store:
        remembered = tuple(run.run_id for run in await store.runs()) if store else ()
        known = tuple(dict.fromkeys((*contracts.run_ids(), *remembered)))
        wanted = _chosen(known, named, settings)
        runs = tuple(
            [
                RunSeen(
                    run_id=run_id,
                    contract=contracts.load(run_id) if run_id in contracts.run_ids() else None,
                    record=await store.record(run_id) if store else None,
                )
                for run_id in wanted
            ]
        )
        at = clock.now()
        holder = await holder_of(store, at) if store else Holder.FREE
    return Sight(at=at, runs=runs, holder=holder, has_database=store is not None)


def _chosen(known: tuple[RunId, ...], named: str | None, settings: Settings) -> tuple[RunId, ...]:
    if named is None:
        return known
    if RunId(named) not in known:
        there = ", ".join(known) or "none"
        problem = f"{named}: no such run; there is no {settings.bot.runs / named}.toml (runs: {there})"
        raise ConfigurationError((problem,))
    return (RunId(named),)


async def holder_of(store: Store, at: datetime) -> Holder:
    """Return whether a Hero is at work on this database."""
    lease = await store.current_lease(NAME)
    if lease is None or lease.expires_at <= at or is_dead_here(lease.holder):
        return Holder.FREE
    return Holder.HELD
