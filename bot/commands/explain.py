"""``hero explain RUN``: what each check saw and concluded at any past minute, and why it told you or did not."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from bot.clock import Clock, SystemClock
from bot.commands.configuration import load
from bot.commands.printing import say, say_json
from bot.commands.sight import look, open_store
from bot.errors import ConfigurationError
from bot.model.history import VerdictChange, say_verdict
from bot.model.value import RunId
from bot.render.text import clean
from bot.render.words import say_time
from bot.settings import Settings
from checks.named import no_such_check
from handlers.explained import NEWS_WORDS, explain_lines

_LINE = 1000
_MINUTE = re.compile(r"(?P<date>\d{4}-\d{2}-\d{2}[T ])?\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2})?", re.ASCII)
_TO_ITS_END = timedelta(seconds=59, microseconds=999_999)


def explain(config: Path | None, run: str, *, check: str | None, at: str | None, as_json: bool) -> None:
    """Show what was concluded at a moment, by default now.

    Raises:
        HeroError: the configuration, no such run or check, a time that cannot be read, or a database that cannot be.
    """
    if check is not None and (missing := no_such_check(check)):
        raise ConfigurationError((missing,))
    settings = load(config)
    clock = SystemClock()
    moment = parse_moment(at, settings.bot.timezone, clock.now()) if at else clock.now()
    changes = asyncio.run(_read(settings, clock, run, moment))
    wanted = tuple(change for change in changes if check is None or change.check == check)
    if as_json:
        say_json([_row(change) for change in wanted])
        return
    say(f"{run} at {say_time(moment, settings.bot.timezone)}:")
    for line in explain_lines(wanted, moment, settings.bot.timezone):
        say(clean(line, _LINE))


def parse_moment(text: str, timezone: str, now: datetime) -> datetime:
    """Read a time as people write it; without a zone it is in the settings' one.

    A minute is meant to its end: verdicts are shown as "since 22:21", whatever their second. A time without a date is
    the last one that was.

    Raises:
        ConfigurationError: it is no time.
    """
    minute, zone = _MINUTE.fullmatch(text), ZoneInfo(timezone)
    spelled = text if minute is None or minute["date"] else f"{now.astimezone(zone):%Y-%m-%d}T{text}"
    try:
        moment = datetime.fromisoformat(spelled)
    except ValueError:
        problem = f"--at {text!r} is no time; write it as 2026-11-29T03:00, 2026-11-29T03:00+01:00 or 03:00"
        raise ConfigurationError((problem,)) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    if minute is not None and not minute["date"] and aware > now:
        aware -= timedelta(days=1)
    return (aware + _TO_ITS_END if minute is not None else aware).astimezone(UTC)


def _row(change: VerdictChange) -> dict[str, object]:
    return {
        "check": change.check,
        "since": change.at.isoformat(),
        "verdict": change.verdict.kind,
        "said": say_verdict(change.verdict),
        "seen": change.seen,
        "incident": f"I{change.incident}" if change.incident else None,
        "news": change.news,
        "why": NEWS_WORDS[change.news] if change.news else "nothing to tell",
    }


async def _read(settings: Settings, clock: Clock, run: str, at: datetime) -> tuple[VerdictChange, ...]:
    await look(settings, clock, run)  # a run that does not exist is an error, not an empty answer
    async with open_store(settings, clock) as store:
        return await store.verdicts_at(RunId(run), at) if store else ()
