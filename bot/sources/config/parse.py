"""From the bytes of a configuration file to a tree of plain values. Pure, and bounded: a file may be anybody's.

YAML is read by the safe loader alone, without merge keys: those multiply what they name, and a resolved configuration
has none. Aliases are shared objects here; ``bot.sources.config.flatten`` weighs what they come to before it is written
out.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from bot.errors import UnrecognisedError

SERVICE = "config"

_LONGEST_NUMBER = 300
_MERGE = "tag:yaml.org,2002:merge"
_SAFE_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads ten times as fast; it may be missing."""
_WRAPPED = frozenset({"value", "desc"})
_TRACKERS_OWN = frozenset({"_wandb", "wandb_version"})


def parse_config(raw: bytes, name: str) -> dict[str, Any]:
    """Return the table that a configuration file holds.

    Args:
        raw: of the file.
        name: of the file; what follows the last dot tells its language, else its content does.

    Raises:
        UnrecognisedError: it is none, or says the same key twice.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnrecognisedError(SERVICE, f"{name} is no UTF-8 text") from error
    tree = _by_name(name, text)
    if not isinstance(tree, dict):
        kind = "empty" if tree is None else f"a {type(tree).__name__}"
        raise UnrecognisedError(SERVICE, f"{name} is {kind}; a table of keys is expected")
    return unwrapped(tree)


def unwrapped(tree: Mapping[Any, Any]) -> dict[Any, Any]:
    """Take off W&B's own form, ``{"key": {"value": …, "desc": …}}``, and what the tracker notes of itself."""
    own = {key: value for key, value in tree.items() if key not in _TRACKERS_OWN}
    is_wrapped = bool(own) and all(
        isinstance(v, Mapping) and "value" in v and v.keys() <= _WRAPPED for v in own.values()
    )
    return {key: value["value"] for key, value in own.items()} if is_wrapped else own


def _by_name(name: str, text: str) -> Any:
    match PurePosixPath(name).suffix.lower():
        case ".json":
            return _read(_json, text, name, "JSON")
        case ".yaml" | ".yml":
            return _read(_yaml, text, name, "YAML")
        case ".toml":
            return _read(_toml, text, name, "TOML")
        case _:
            return _sniffed(name, text)


def _sniffed(name: str, text: str) -> Any:
    if text.lstrip()[:1] == "{":
        return _read(_json, text, name, "JSON")
    try:
        return _read(_toml, text, name, "TOML")
    except UnrecognisedError:
        return _read(_yaml, text, name, "YAML")


def _read(read: Callable[[str], Any], text: str, name: str, language: str) -> Any:
    try:
        return read(text)
    except RecursionError as error:
        raise UnrecognisedError(SERVICE, f"{name} is nested too deep") from error
    except yaml.MarkedYAMLError as error:
        # Neither the problem's context nor the line itself: it may hold a secret.
        place = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UnrecognisedError(SERVICE, f"{name}{place} is no {language} that is read here") from error
    except json.JSONDecodeError as error:
        raise UnrecognisedError(SERVICE, f"{name}, line {error.lineno} is no {language}: {error.msg}") from error
    except _RefusedContentError as error:
        raise UnrecognisedError(SERVICE, f"{name}: {error}") from error
    except (ValueError, TypeError, OverflowError, AttributeError, yaml.YAMLError) as error:
        # Dates that there are not, numbers that are none: the libraries raise what they meet.
        raise UnrecognisedError(SERVICE, f"{name} is no {language} that is read here") from error


class _RefusedContentError(Exception):
    """The file is well formed and ambiguous, or dangerous."""


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once, parse_int=_whole)


def _toml(text: str) -> Any:
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe loader, made stricter


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedContentError(f"the key {twice[:100]!r} is there twice")
    return table


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


class _Loader(_SAFE_LOADER):  # type: ignore[misc]  # which of the two is known at run time
    """The safe loader without what multiplies or overwrites."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's signature
        for key, _ in node.value:
            if key.tag == _MERGE:
                raise _RefusedContentError(f"line {key.start_mark.line + 1} has a merge key (<<), which is not read")
        table = super().construct_mapping(node, deep=deep)
        if len(table) < len(node.value):
            raise _RefusedContentError(f"a key is there twice in the table from line {node.start_mark.line + 1} on")
        return table
