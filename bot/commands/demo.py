"""``hero demo``: the main job on a real process, without any account."""

from pathlib import Path
from typing import Literal

from bot.demo.story import run_demo
from bot.errors import ConfigurationError


def demo(*, is_auto: bool, is_denied: bool, directory: Path | None) -> int:
    """Tell the story; the DRI is whoever sits here, or an answer given for them.

    Raises:
        ConfigurationError: both answers at once.
    """
    if is_auto and is_denied:
        raise ConfigurationError(("--auto and --deny: one answers yes, the other no; give one of them",))
    mode: Literal["ask", "auto", "deny"] = "deny" if is_denied else "auto" if is_auto else "ask"
    return run_demo(mode, directory)
