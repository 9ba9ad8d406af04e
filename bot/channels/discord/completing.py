"""What ``/hero`` proposes while somebody types: commands, then runs and open requests. Pure."""

from collections.abc import Awaitable, Callable

from bot.channels.discord.mapping import DECIDING
from bot.model.value import Value

_MOST = 25
_VALUE_CHARS = 100
"""Discord takes 25 choices of 100 characters (interactions/application-commands.mdx)."""


class Names(Value):
    """What can be named in a command now."""

    commands: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    """Open ones, ``R7``."""


type AskNames = Callable[[], Awaitable[Names]]


def complete(typed: str, names: Names) -> tuple[str, ...]:
    """Return whole texts to choose from."""
    words = typed.split()
    is_open = typed.endswith(" ") or not words
    last = "" if is_open else words[-1]
    before = words if is_open else words[:-1]
    if not before:
        candidates: tuple[str, ...] = (*names.commands, *(sorted(DECIDING) if names.requests else ()))
    elif before[0].lower() in DECIDING:
        candidates = names.requests if len(before) == 1 else ()
    else:
        candidates = tuple(name for name in names.runs if name not in before)
    fitting = [each for each in candidates if each.lower().startswith(last.lower())]
    texts = [" ".join((*before, each)) for each in fitting]
    return tuple(text for text in texts if len(text) <= _VALUE_CHARS)[:_MOST]
