"""``hero catchup``, ``hero audit`` and ``hero plot``: what is new, who tried to decide what, how the figures went."""

import asyncio
import getpass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import structlog

from bot.clock import Clock, SystemClock
from bot.commands.configuration import load, rules_of
from bot.commands.printing import say, say_json
from bot.commands.sight import RunSeen, look, open_store
from bot.contracts import BadContract
from bot.errors import ConfigurationError, StoreError
from bot.model.audit import ATTEMPTS, AuditEntry
from bot.model.contract import Contract
from bot.model.durations import parse_duration
from bot.model.person import Actor, Platform
from bot.model.roles import with_roles
from bot.model.value import RunId
from bot.model.visit import read_visit, visit_at, visitor
from bot.render.chart import chart_png, spark_lines
from bot.render.text import clean
from bot.settings import Settings
from bot.store.store import Store
from handlers.catchup import Absence, catch_up
from handlers.charts import chart_of
from handlers.commands.recalling import say_attempt
from handlers.context import Context

log = structlog.get_logger()

_LINE = 1000


def show_catchup(config: Path | None, run: str | None, *, since: str | None, as_json: bool) -> None:
    """Say what is new since whoever asks last looked, here or by a command in chat; the first time, in a day.

    Raises:
        HeroError: the configuration, no such run, no such length of time, or a database that cannot be read.
    """
    settings, clock = load(config), SystemClock()
    absence = asyncio.run(_absence(settings, clock, run, _length(since) if since else None))
    headline, lines = catch_up(absence)
    if as_json:
        say_json({"since": absence.since.isoformat(), "at": absence.at.isoformat(), "said": headline, "lines": lines})
        return
    say(clean(headline, _LINE))
    for line in lines:
        say(f"  {clean(line, _LINE)}")


def show_audit(config: Path | None, run: str | None, *, limit: int, as_json: bool) -> None:
    """Show the newest attempts at a decision, oldest first; also those that were refused.

    Raises:
        HeroError: the configuration, no such run, or a database that cannot be read.
    """
    settings = load(config)
    entries = asyncio.run(_attempts(settings, SystemClock(), run, limit))
    if as_json:
        say_json([entry.model_dump(mode="json") for entry in entries])
        return
    for entry in entries:
        say(clean(say_attempt(entry, settings.bot.timezone), _LINE))
    if not entries:
        say(f"{run or 'all runs'}: nobody has tried to decide anything yet")


def draw_plot(config: Path | None, run: str, out: Path | None) -> None:
    """Draw a run's kept figures into a PNG, or print them as a line of text each.

    Raises:
        HeroError: the configuration, no such run, no figures of it, or a file that cannot be written.
    """
    if out is not None and find_spec("matplotlib") is None:
        raise ConfigurationError(("--out needs matplotlib; install it beside Hero",))
    (seen,) = asyncio.run(look(load(config), SystemClock(), run)).runs
    chart = chart_of(seen.record) if seen.record else None
    if chart is None:
        raise ConfigurationError((f"{run}: no figures are kept of it yet; they come with the looks of `hero run`",))
    if out is None:
        for line in spark_lines(chart):
            say(clean(line, _LINE))
        return
    try:
        out.write_bytes(chart_png(chart))
    except OSError as error:
        raise ConfigurationError((f"--out {out}: cannot be written ({error.strerror})",)) from error


def _length(text: str) -> timedelta:
    try:
        length = parse_duration(text)
    except ValueError:
        length = text
    if not isinstance(length, timedelta) or length <= timedelta():
        raise ConfigurationError((f"--since {text!r} is no duration; write it as 8h or 30m",))
    return length


async def _absence(settings: Settings, clock: Clock, run: str | None, length: timedelta | None) -> Absence:
    """Read what is remembered, and remember that somebody looked at it unless they chose the time themselves."""
    sight = await look(settings, clock, run)
    contexts = {
        each.run_id: _context(settings, each, each.contract)
        for each in sight.runs
        if isinstance(each.contract, Contract)
    }
    async with open_store(settings, clock) as store:
        since = sight.at - length if length else await _note_visit(store, settings, sight.at)
        entries = {each.run_id: await store.chronicle(each.run_id) if store else () for each in sight.runs}
    return Absence(
        records=tuple(each.record for each in sight.runs if each.record is not None),
        contexts=contexts,
        entries=entries,
        blocked={
            each.run_id: "; ".join(each.contract.problems)
            for each in sight.runs
            if isinstance(each.contract, BadContract)
        },
        since=since,
        at=sight.at,
        timezone=settings.bot.timezone,
    )


def _context(settings: Settings, seen: RunSeen, contract: Contract) -> Context:
    now = with_roles(contract, seen.record.run.roles if seen.record else ())
    return Context(contract=now, people=settings.persons, channels=(), rules=rules_of(settings))


async def _note_visit(store: Store | None, settings: Settings, at: datetime) -> datetime:
    """Return since when things are new to whoever sits here; a database that takes no note answers all the same."""
    if store is None:
        return visit_at(None, at).since
    name = visitor(Actor(platform=Platform.CONSOLE, user_id=getpass.getuser()), settings.persons)
    visit = visit_at(read_visit(await store.cursor(name)), at)
    try:
        await store.save_cursor(name, visit.model_dump_json())
    except StoreError as error:
        log.warning("visit_not_noted", reason=str(error))
    return visit.since


async def _attempts(settings: Settings, clock: Clock, run: str | None, limit: int) -> tuple[AuditEntry, ...]:
    if run is not None:
        await look(settings, clock, run)  # a run that does not exist is an error, not an empty log
    async with open_store(settings, clock) as store:
        return await store.audit(RunId(run) if run else None, limit, ATTEMPTS) if store else ()
