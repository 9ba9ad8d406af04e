"""From a tree of plain values to dotted keys with JSON text. Pure, bounded, the same for every language."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import Any

from bot.errors import UnrecognisedError
from bot.sources.config.parse import SERVICE

KEYS_AT_MOST = 20_000
WEIGHT_AT_MOST = 8_000_000
"""Characters and values in all, aliases written out."""
DEEPEST = 40
"""A scan for secrets goes no deeper either."""
VALUE_CHARS = 4_000
"""A longer value is told by its digest."""

_EXACT = 2.0**53
_BITS = 1_000


def weigh(tree: Mapping[Any, Any]) -> None:
    """Refuse a tree that would be too much once its aliases are written out; made before anything walks it.

    Raises:
        UnrecognisedError: it is too deep or too heavy, or holds itself.
    """
    left = WEIGHT_AT_MOST
    stack: list[tuple[Any, int]] = [(tree, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > DEEPEST:
            raise UnrecognisedError(SERVICE, f"the configuration is nested deeper than {DEEPEST} levels")
        left -= 1
        match value:
            case str() | bytes():
                left -= len(value)
            case Mapping():
                left -= sum(len(key) for key in value if isinstance(key, str))
                stack += [(each, depth + 1) for each in value.values()]
            case list() | tuple() | set() | frozenset():
                stack += [(each, depth + 1) for each in value]
            case _:
                pass
        if left < 0 or len(stack) > WEIGHT_AT_MOST:
            raise UnrecognisedError(
                SERVICE, "the configuration is larger than any that is known; is it the right file?"
            )


def flatten(tree: Mapping[Any, Any]) -> dict[str, str]:
    """Return each value as JSON text by its dotted key; lists, and tables without keys, are one value.

    A part of a key that holds a dot, a quote or nothing is quoted as in TOML: ``model."lm.head"``. A whole number is
    written the same whether the file has it as ``1`` or ``1.0``: trackers change the one into the other.

    Args:
        tree: weighed, and without secrets.

    Raises:
        UnrecognisedError: two keys read alike, or there are more than ``KEYS_AT_MOST``.
    """
    values: dict[str, str] = {}
    for key, value in _leaves(tree, ""):
        if key in values:
            raise UnrecognisedError(SERVICE, f"two keys of the configuration read {key[:100]!r}")
        values[key] = _text(value)
        if len(values) > KEYS_AT_MOST:
            raise UnrecognisedError(SERVICE, f"the configuration has more than {KEYS_AT_MOST} keys")
    return values


def quoted(part: str) -> str:
    """Return one part of a dotted key, quoted when it has to be."""
    if part.isprintable():
        return json.dumps(part, ensure_ascii=False) if not part or any(mark in part for mark in '."') else part
    return json.dumps(part)


def _leaves(table: Mapping[Any, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{above}.{_part(name)}" if above else _part(name)
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, key)
        else:
            yield key, value


def _part(name: Any) -> str:
    return quoted(name if isinstance(name, str) else json.dumps(_plain(name)))


def _text(value: Any) -> str:
    text = _encodable(json.dumps(_plain(value), ensure_ascii=False, sort_keys=True))
    if len(text) <= VALUE_CHARS:
        return text
    return json.dumps(f"{hashlib.sha256(text.encode()).hexdigest()} ({len(text)} characters)")


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: Any) -> Any:
    """Return a value that JSON has, NaN and infinities included."""
    match value:
        case Mapping():
            named = (
                (name if isinstance(name, str) else json.dumps(_plain(name)), each) for name, each in value.items()
            )
            return {name: _plain(each) for name, each in named}
        case list() | tuple():
            return [_plain(each) for each in value]
        case set() | frozenset():
            return sorted((_plain(each) for each in value), key=repr)
        case _:
            return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if value.bit_length() <= _BITS else f"a whole number of {value.bit_length()} bits"
        case float():
            is_whole = math.isfinite(value) and value == int(value) and abs(value) < _EXACT
            return int(value) if is_whole else value
        case bytes() | bytearray():
            return f"{hashlib.sha256(value).hexdigest()} ({len(value)} bytes)"
        case _:
            return value.isoformat() if isinstance(value, date | time) else str(value)
