"""On which line of a TOML file a key stands.

The standard library's reader does not tell, so the lines are looked over once more; what is written over several lines
may be missed, and then the line of its table is named.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

_HEADER = re.compile(r"\s*\[+([^\]]+)\]")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_WORD = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


@dataclass(frozen=True)
class TomlFile:
    """A file and its text."""

    path: Path
    text: str

    def where(self, location: tuple[str, ...]) -> str:
        """``hero.toml:12``; without the line for a key that stands in no table of the file, as one that is missing."""
        line = line_of(self.text, location)
        return f"{self.path}:{line}" if line else str(self.path)

    def broken(self, error: tomllib.TOMLDecodeError) -> str:
        """Say why it is no TOML, by the line and its key, and never by its value: that may be a secret."""
        message = str(error)
        found = _AT_LINE.search(message)
        reason = message[: found.start()].strip() if found else message
        lines = self.text.splitlines()
        number = int(found[1]) if found else len(lines)
        key = re.match(r"\s*([\w.\"-]+)\s*=", lines[number - 1] if 0 < number <= len(lines) else "")
        named = f"{key[1]}: " if key else ""
        fix = 'write texts in "quotes", numbers and true/false bare, lists as ["a", "b"]'
        return f"{self.path}:{number}: {named}this line is no TOML ({reason}); {fix}"


def line_of(text: str, location: tuple[str, ...]) -> int | None:
    """Return the line on which a key or, for want of it, its table begins; None when neither is there."""
    table: tuple[str, ...] = ()
    nearest: int | None = None
    depth = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = here = _words(header[1])
        elif key := _KEY.match(line):
            here = (*table, *_words(key[1]))
        else:
            continue
        if here == location:
            return number
        if len(here) > depth and here == location[: len(here)]:
            nearest, depth = number, len(here)
    return nearest


def _words(dotted: str) -> tuple[str, ...]:
    return tuple(double or single or bare for double, single, bare in _WORD.findall(dotted))
