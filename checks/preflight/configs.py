"""What two items say of how one configuration differs from another: which differences are ones, and in which words.

What a command launches with holds what its owner wrote, and a resolved configuration holds the trainer's defaults too.
So only keys that both of them have are compared here. Pure.
"""

import json
from collections.abc import Iterable

from bot.model.askedsteps import steps_of
from bot.model.drift import Change, ConfigShape
from bot.model.launched import UNSET, parse_span

_LINES = 6
_BREADTH = 160


def is_compared(change: Change) -> bool:
    """Whether both configurations have the key itself; of what is folded into a digest nobody knows."""
    return change.old is not None and change.new is not None and not change.key.endswith("*")


def is_added(change: Change, before: ConfigShape) -> bool:
    """Whether a key is new in a table that the configuration before has, or had as nothing: then it was not so set.

    Anywhere else it may be something that the launcher reads and no trainer resolves.
    """
    if change.old is not None or change.new is None or change.key.endswith("*"):
        return False
    table = change.key.rpartition(".")[0]
    if table and any(key.startswith(f"{table}.") for key in before.values):
        return True
    parts = change.key.split(".")
    return any(before.values.get(".".join(parts[:depth])) == UNSET for depth in range(1, len(parts)))


def is_real(change: Change) -> bool:
    """Whether the two values mean something else: ``15m`` and ``0:15:00`` do not, nor do ``1e4`` and ``10000``."""
    if change.old is None or change.new is None:
        return True
    return not _reads_alike(change.old, change.new)


def say_changes(changes: Iterable[Change]) -> str:
    """Return the differences in one line; what finds no room is counted."""
    listed = [_cut(each.line) for each in changes]
    more = f"; and {len(listed) - _LINES} more" if len(listed) > _LINES else ""
    return "; ".join(listed[:_LINES]) + more


def _cut(line: str) -> str:
    return f"{line[:_BREADTH]}…" if len(line) > _BREADTH else line


def _reads_alike(old: str, new: str) -> bool:
    one, other = _decoded(old), _decoded(new)
    if one == other and isinstance(one, bool) is isinstance(other, bool):
        return True
    spans = parse_span(one), parse_span(other)
    if isinstance(one, str) and isinstance(other, str):
        return spans[0] is not None and spans[0] == spans[1]
    if isinstance(one, bool) or isinstance(other, bool):
        return _word(one) == _word(other)
    numbers = _number(one), _number(other)
    if numbers[0] is not None and numbers[0] == numbers[1]:
        return True
    return spans[0] is not None and spans[0] == spans[1]


def _number(value: object) -> float | None:
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 else None  # noqa: PLR2004 - what a float holds
    if not isinstance(value, str):
        return None
    if (steps := steps_of(value)) is not None:
        return float(steps)
    try:
        return float(value)
    except ValueError:
        return None


def _word(value: object) -> str:
    return str(value).lower()


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text  # a digest of what is long
