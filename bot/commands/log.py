"""``hero log RUN``: the audit log of a run, who did what and on what grounds."""

import asyncio
from pathlib import Path

from bot.clock import Clock, SystemClock
from bot.commands.configuration import load
from bot.commands.printing import say, say_json
from bot.commands.sight import look, open_store
from bot.model.audit import AuditEntry
from bot.model.value import RunId
from bot.render.text import clean
from bot.render.words import say_time
from bot.settings import Settings

_LINE = 1000


def show_log(config: Path | None, run: str, *, limit: int, as_json: bool) -> None:
    """Show the newest entries, oldest first.

    Raises:
        HeroError: the configuration, no such run, or a database that cannot be read.
    """
    settings = load(config)
    entries = asyncio.run(_read(settings, SystemClock(), run, limit))
    if as_json:
        say_json([entry.model_dump(mode="json") for entry in entries])
        return
    for entry in entries:
        detail = f": {entry.detail}" if entry.detail else ""
        say(clean(f"{say_time(entry.at, settings.bot.timezone)}  {entry.who}  {entry.what}{detail}", _LINE))
    if not entries:
        say(f"{run}: nothing has been noted yet")


async def _read(settings: Settings, clock: Clock, run: str, limit: int) -> tuple[AuditEntry, ...]:
    await look(settings, clock, run)  # a run that does not exist is an error, not an empty log
    async with open_store(settings, clock) as store:
        return await store.audit(RunId(run), limit) if store else ()
