"""Durations as people write them: ``15m``, ``570s``, ``1h30m``, ``0.5s``, or a plain number of seconds."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(raw: object) -> object:
    """Turn ``"1h30m"`` into a timedelta; leave everything else to pydantic.

    Raises:
        ValueError: a text that is no duration.
    """
    if not isinstance(raw, str):
        return raw
    if raw.lstrip("+-").startswith("P"):
        return raw  # ISO 8601, as pydantic itself writes a duration
    text = raw.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        text += "s"
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        msg = f"{raw[:80]!r} is no duration; write it as 15m, 570s, 1h30m or a number of seconds"
        raise ValueError(msg)
    try:
        return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))
    except OverflowError:
        msg = f"{raw[:80]!r} is longer than any duration can be"
        raise ValueError(msg) from None


type Duration = Annotated[timedelta, BeforeValidator(parse_duration)]


def write_duration(value: timedelta) -> str:
    """Return a duration as people write it in a file, ``1h30m``; ``parse_duration`` reads the same value back."""
    left = round(value.total_seconds() * 1000)
    parts: list[str] = []
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def say_duration(value: timedelta) -> str:
    """Return a duration for people: the two largest units, ``2 d 3 h``, ``15 min``, ``40 s``, ``0.5 s``."""
    seconds = value.total_seconds()
    if abs(seconds) < 10:  # noqa: PLR2004 - below ten seconds a decimal tells something
        return f"{seconds:.1f} s".replace(".0 s", " s")
    left = round(abs(seconds))
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return ("-" if seconds < 0 else "") + " ".join(parts[:2])
