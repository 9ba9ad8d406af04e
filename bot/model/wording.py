"""What pydantic finds wrong with a file, in plain words and with the fix; for settings, contracts and thresholds alike.

Pure, and never shows a value: what is wrong may be a secret.
"""

import difflib
import json
import re
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAliasType

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

_BARE = re.compile(r"[\w-]+", re.ASCII)


class Wrong(NamedTuple):
    """One thing that is wrong."""

    location: tuple[str, ...]
    """The keys that lead to it, from the file's outside; positions in lists are left out."""
    name: str
    """The last of them as people read it, with the position in a list: ``command[2]``."""
    message: str
    """What is wrong, and behind the last semicolon the fix."""

    @property
    def named(self) -> str:
        """The key as it would be found in the file: ``[cadence] check``, ``[thresholds."progress.stalled"] quiet``."""
        table = ".".join(part if _BARE.fullmatch(part) else json.dumps(part) for part in self.location[:-1])
        return f"[{table}] {self.name}" if table else self.name


def wrongs(model: type[BaseModel], error: ValidationError, *, what: str, page: str) -> tuple[Wrong, ...]:
    """Return all that is wrong.

    Args:
        model: the class that the whole file is read into.
        error: what pydantic said of it.
        what: what a key of this file is called: ``setting``.
        page: where all of them are listed.
    """
    return tuple(
        Wrong(place.location, place.name, message)
        for each in error.errors(include_url=False)
        for place in (_place(model, each),)
        for message in _say(model, each, place, what, page).splitlines()
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean "…"?`` for a name that was mistyped; empty when none is near."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f'did you mean "{found[0]}"?' if found else ""


def members(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, or the one type, without aliases and annotations."""
    if isinstance(annotation, TypeAliasType):
        yield from members(annotation.__value__)
    elif typing.get_origin(annotation) is typing.Annotated:
        yield from members(typing.get_args(annotation)[0])
    elif typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        for each in typing.get_args(annotation):
            yield from members(each)
    else:
        yield annotation


def tables_of(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Return the classes of a field that is a table of its own; several when it is one of several."""
    return tuple(kind for kind in members(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel))


class _Place(NamedTuple):
    location: tuple[str, ...]
    name: str
    field: FieldInfo | None
    """What stands there; None for a key that there is not."""
    around: tuple[type[BaseModel], ...]
    """The table in which it stands; several when the file does not say which."""


def _place(model: type[BaseModel], error: Any) -> _Place:
    """Follow pydantic's path through the classes, and leave out what stands in no file: the tags of unions."""
    location: list[str] = []
    name = ""
    field: FieldInfo | None = None
    around: tuple[type[BaseModel], ...] = ()
    inside: tuple[type[BaseModel], ...] = (model,)
    entries: tuple[type[BaseModel], ...] = ()
    for part in (*error["loc"], *_discriminator(error)):
        if isinstance(part, int):
            name += f"[{part}]"
        elif len(inside) > 1 and (chosen := tuple(each for each in inside if part in _tags(each))):
            inside = chosen
        elif part != "[key]":
            location.append(part)
            name = part
            field = next((each.model_fields[part] for each in inside if part in each.model_fields), None)
            around = inside
            inside, entries = (tables_of(field.annotation), _entries(field.annotation)) if field else (entries, ())
    return _Place(tuple(location), name or "the file", field, around)


def _discriminator(error: Any) -> tuple[str, ...]:
    is_of_union = error["type"] in {"union_tag_invalid", "union_tag_not_found"}
    return (error["ctx"]["discriminator"].strip("'"),) if is_of_union else ()


def _tags(model: type[BaseModel]) -> tuple[object, ...]:
    return tuple(
        tag
        for field in model.model_fields.values()
        for kind in members(field.annotation)
        if typing.get_origin(kind) is Literal
        for tag in typing.get_args(kind)
    )


def _entries(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Return the class of the tables in a table of tables."""
    return tuple(
        table
        for kind in members(annotation)
        if typing.get_origin(kind) is dict
        for table in tables_of(typing.get_args(kind)[1])
    )


_TABLE = "must be a table; write [{name}] on a line of its own and its keys below"
_DURATION = "is no duration; write it as 15m, 570s, 1h30m or a number of seconds"
_TEXT = 'must be a text; write it in "quotes"'
_NUMBER = "must be a number; write it without quotes, e.g. 0.5"
_WHOLE = "must be a whole number; write it without quotes, e.g. 10000"
_BOOL = "must be true or false; write it without quotes"
_LIST = 'must be a list; write it as ["a", "b"]'
_BY_TYPE = {
    **dict.fromkeys(("bool_parsing", "bool_type"), _BOOL),
    **dict.fromkeys(("int_parsing", "int_parsing_size", "int_type", "int_from_float"), _WHOLE),
    **dict.fromkeys(("float_parsing", "float_type"), _NUMBER),
    "finite_number": "must be a finite number; write it without quotes, e.g. 0.5",
    **dict.fromkeys(("string_type", "path_type"), _TEXT),
    **dict.fromkeys(("tuple_type", "list_type"), _LIST),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), _TABLE),
    **dict.fromkeys(("time_delta_type", "time_delta_parsing"), _DURATION),
    **dict.fromkeys(("too_short", "string_too_short"), "must not be empty; give at least one"),
}
_BARE_KINDS = {int: _WHOLE, float: _NUMBER, bool: _BOOL}
_LIMITS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def _say(model: type[BaseModel], error: Any, place: _Place, what: str, page: str) -> str:  # noqa: PLR0911 - one a kind
    kind, context = error["type"], error.get("ctx", {})
    match kind:
        case "missing":
            return f"is missing; {_how_to_write(place)}"
        case "extra_forbidden":
            return f"is no {what}; {_instead(model, place)}{page} lists those there are"
        case "literal_error" | "enum":
            how = "choose one of them" if isinstance(error["input"], str) else "write it in quotes"
            return f"must be {_quoted(context['expected'])}; {how}"
        case "union_tag_invalid":
            how = "choose one of them" if isinstance(error["input"].get(place.name), str) else "write it in quotes"
            return f"must be {_quoted(context['expected_tags'].replace(', ', ' or '))}; {how}"
        case "union_tag_not_found":
            return "is missing; write " + " or ".join(
                f'{place.name} = "{tag}"' for each in place.around for tag in _tags(each)
            )
        case "string_pattern_mismatch":
            return f"is not of the right form; {_how_to_write(place)}"
        case "value_error":
            return str(context["error"])
        case _ if kind in _LIMITS:
            limit, words = _LIMITS[kind]
            return f"{words} {context[limit]:g}; correct the number"
        case _ if kind in _BY_TYPE:
            return _BY_TYPE[kind].format(name=".".join(place.location))
        case _:
            return str(error["msg"]).replace("Input should be", "must be").replace("Input", "it")


def _how_to_write(place: _Place) -> str:
    """Return an example where the field has one, else what it means."""
    field = place.field
    if field is not None and field.examples:
        return f"write it as {place.name} = {json.dumps(field.examples[0], ensure_ascii=False)}"
    if field is not None and (tables := tables_of(field.annotation)):
        kinds = " or ".join(f'kind = "{tag}"' for each in tables for tag in _tags(each))
        return f"write a table [{place.name}]" + (f" with {kinds}" if kinds else "")
    meaning = " ".join((field.description or "").split()).replace("``", "`").replace("; ", ", ") if field else ""
    return f"it says: {meaning}" if meaning else "give it"


def _instead(model: type[BaseModel], place: _Place) -> str:
    """Return what was meant, as a clause with its comma; empty when nobody can tell."""
    key, known = place.name, {name for each in place.around for name in each.model_fields}
    if len(place.location) > 1 and key in model.model_fields:
        return "it stands above all tables, "
    tables = [name for name, field in model.model_fields.items() if _holds(field, key)]
    if tables and place.location[0] not in tables:
        return "it stands in " + " or ".join(f"[{name}]" for name in tables) + ", "
    guess = nearest(key, known)
    return f"{guess} " if guess else ""


def _holds(field: FieldInfo, key: str) -> bool:
    return any(key in table.model_fields for table in tables_of(field.annotation))


def not_bare(
    tables: tuple[type[BaseModel], ...], given: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[Wrong]:
    """Yield every number and truth value that is in quotes, or is one where the other belongs.

    In TOML they are written bare. Pydantic takes ``"200"`` for 200 where it reads a variable of the environment, and
    would take it in a file too: there it is a slip, which one day is compared as a text.

    Args:
        tables: the class of the table; several when the file does not say which.
        given: the table as the file has it.
        above: the keys that lead to it.
    """
    for key, value in given.items():
        field = next((each.model_fields[key] for each in tables if key in each.model_fields), None)
        if field is None:
            continue
        if isinstance(value, dict):
            yield from not_bare(tables_of(field.annotation), value, (*above, key))
        elif (error := _bare_error(field.annotation, value)) is not None:
            yield Wrong((*above, key), key, error)


def _bare_error(annotation: Any, value: object) -> str | None:
    kinds = set(members(annotation))
    if isinstance(value, list):
        inside = [inner for kind in kinds if typing.get_origin(kind) is tuple for inner in typing.get_args(kind)[:1]]
        return next(filter(None, (_bare_error(inner, each) for inner in inside for each in value)), None)
    if not isinstance(value, str | bool) or type(value) in kinds:
        return None
    return next((message for kind, message in _BARE_KINDS.items() if kind in kinds), None)


def _quoted(expected: str) -> str:
    return expected.replace("'", '"')
