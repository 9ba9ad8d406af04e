"""``hero run``: the bot itself."""

import asyncio
from pathlib import Path

from bot.app import run_bot
from bot.commands.configuration import find_configuration
from bot.settings import load_settings


def run(config: Path | None) -> int:
    """Run the bot until SIGTERM or SIGINT; return its exit code."""
    return asyncio.run(run_bot(load_settings(find_configuration(config))))
