"""Values as TOML writes them; the standard library only reads it."""

import json
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path

from bot.model.durations import write_duration


def toml_value(value: object) -> str:  # noqa: PLR0911 - one return a type
    """Return a default or an example as it would stand behind ``key =``.

    Raises:
        TypeError: no setting has a value of this type.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case Enum():
            return toml_value(value.value)
        case int() | float():
            return repr(value)
        case str() | Path():
            return json.dumps(str(value), ensure_ascii=False)
        case timedelta():
            return f'"{write_duration(value)}"'
        case list() | tuple():
            return f"[{', '.join(toml_value(each) for each in value)}]"
        case Mapping():
            inside = ", ".join(f"{json.dumps(str(key))} = {toml_value(each)}" for key, each in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            msg = f"{value!r} cannot be written as TOML"
            raise TypeError(msg)
