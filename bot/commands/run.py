"""``hero run``: the bot itself."""

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from bot.app import run_bot
from bot.commands.configuration import find_configuration
from bot.commands.printing import say
from bot.settings import Settings, load_settings
from bot.store.store import database_path

LOG = "hero.log"


def run(config: Path | None) -> int:
    """Run the bot until SIGTERM or SIGINT; return its exit code."""
    settings = load_settings(find_configuration(config))
    with ExitStack() as stack:
        return asyncio.run(run_bot(settings, log_stream=_log_stream(settings, stack)))


def _log_stream(settings: Settings, stack: ExitStack) -> TextIO | None:
    """Return the log file when the conversation is held where the log lines would stand; None for standard error."""
    is_shared = settings.speaks_in_terminal and sys.stdout.isatty() and sys.stderr.isatty()
    database = database_path(settings.bot.database)
    if not is_shared or database is None:
        return None
    path = database.with_name(LOG)
    try:
        stream = stack.enter_context(path.open("a", encoding="utf-8"))
    except OSError as error:
        say(f"Log lines stand below, since {path} cannot be written ({error.strerror}).")
        return None
    say(f"Hero talks here; its log lines go to {path}. Ctrl-C stops it.")
    return stream
