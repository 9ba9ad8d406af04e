"""The settings and the contract as tables of keys, read from their classes.

``templates`` makes the files of ``hero init`` from it, ``pages`` the reference in ``docs/``.
"""

import re
import typing
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bot.model.contract import Contract
from bot.model.gate import Gate
from bot.model.wording import members, tables_of
from bot.settings import PersonSettings, Settings


class Entry(NamedTuple):
    """One key."""

    key: str
    meaning: str
    kind: str
    """What may stand there, in words."""
    default: object
    """None when there is none."""
    is_required: bool
    is_secret: bool


class Table(NamedTuple):
    """One table of a file, or its keys above all tables (then ``name`` is empty)."""

    name: str
    meaning: str
    entries: tuple[Entry, ...]


PEOPLE = "people.NAME"


def settings_tables() -> tuple[Table, ...]:
    """Return every table of ``hero.toml``."""
    return (*_tables(Settings, ""), Table(PEOPLE, _meaning(PersonSettings), _entries(PersonSettings)))


def contract_tables() -> tuple[Table, ...]:
    """Return every table of a contract; ``orchestrator`` once for each kind."""
    return _tables(Contract, "")


_ONE_OF = {2: "One of these two, by its `kind`. "}
"""What is said before the meaning of a table of which there are several."""


def _tables(model: type[BaseModel], name: str, before: str = "") -> tuple[Table, ...]:
    below = [
        table
        for key, field in model.model_fields.items()
        for parts in (tables_of(field.annotation),)
        for part in parts
        for table in _tables(part, f"{name}.{key}".strip("."), _ONE_OF.get(len(parts), ""))
    ]
    return (Table(name, before + _meaning(model), _entries(model)), *below)


def _entries(model: type[BaseModel]) -> tuple[Entry, ...]:
    return tuple(
        _entry(key, field)
        for key, field in model.model_fields.items()
        if not tables_of(field.annotation) and not _is_people(field)
    )


def _entry(key: str, field: FieldInfo) -> Entry:
    default = field.get_default(call_default_factory=False)
    return Entry(
        key=key,
        meaning=" ".join((field.description or "").split()),
        kind=_say_kind(field.annotation, field),
        default=None if default is PydanticUndefined else default,
        is_required=field.is_required(),
        is_secret=SecretStr in members(field.annotation),
    )


def _is_people(field: FieldInfo) -> bool:
    return any(PersonSettings in typing.get_args(kind) for kind in members(field.annotation))


_WORDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    timedelta: "duration",
    SecretStr: "secret",
    Gate: "text",
    AwareDatetime: "time with its zone",
}


def _say_kind(annotation: Any, field: FieldInfo) -> str:
    words = [_say_type(kind) for kind in members(annotation) if kind is not type(None)]
    limits = [
        f"{sign} {value:g}"
        for each in field.metadata
        for attribute, sign in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
        if (value := getattr(each, attribute, None)) is not None
    ]
    return ", ".join((" or ".join(dict.fromkeys(words)), *limits))


def _say_type(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return " or ".join(f'"{each}"' for each in arguments)
    if origin is tuple:
        return f"list of {_say_type(next(members(arguments[0])))}"
    if origin is dict:
        return f"table of {_say_type(arguments[1])}"
    if isinstance(kind, typing.NewType):
        return _say_type(kind.__supertype__)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f'"{each.value}"' for each in kind)
    return _WORDS.get(kind, "value")


def _meaning(model: type[BaseModel]) -> str:
    """Return what the class says of itself, without the table's name before it."""
    text = re.sub(r"^``\[[^]]+\]``: ", "", " ".join((model.__doc__ or "").split()))
    return text[:1].upper() + text[1:]
