"""Reads ``hero.toml``, the environment and the files of secrets into the tree, and says all that is wrong at once."""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from bot.errors import ConfigurationError
from bot.model.wording import Wrong, wrongs
from bot.settings.tree import SECRETS, TABLES, Settings
from bot.toml_lines import TomlFile


def load_settings(path: Path | None) -> Settings:
    """Read ``hero.toml`` (None: environment and defaults alone) and the environment.

    Raises:
        ConfigurationError: the file cannot be read, or a key is wrong; all problems at once, each with its fix.
    """
    file, table = _read(path) if path is not None else (None, {})
    base = path.parent if path is not None else Path()
    problems: list[str] = []
    # What one step refuses it leaves out, so that the next ones say what else is wrong.
    for step in (_without_values_for_tables, _without_plain_secrets):
        table, found = step(file, table)
        problems += found
    table, found = _with_secret_files(file, table, base)
    problems += found
    settings: Settings | None = None
    try:
        settings = Settings(**table)
    except ValidationError as error:
        said = wrongs(Settings, error, what="setting", page="docs/settings.md")
        problems += [_problem(file, each) for each in said]
    except SettingsError:
        problems += [
            f"environment variable {name}: a whole table cannot be set at once; set its keys, {name}__KEY"
            for name in sorted(f"HERO_{table.upper()}" for table in TABLES)
            if name in os.environ
        ]
    if settings is not None:
        problems += _accounts_of_two(settings, file)
    if settings is None or problems:
        raise ConfigurationError(tuple(problems))
    placed = {"runs": base / settings.bot.runs, "database": _placed(settings.bot.database, base)}
    history = settings.history.model_copy(update={"directory": base / settings.history.directory})
    template = settings.github.issue_template
    github = settings.github.model_copy(update={"issue_template": base / template if template else None})
    bot = settings.bot.model_copy(update=placed)
    return settings.model_copy(update={"bot": bot, "history": history, "github": github})


def _placed(database: str, base: Path) -> str:
    """Return the database's address with its path below ``base``, unless it is absolute or names no file."""
    scheme, found, name = database.partition(":///")
    return f"{scheme}:///{base / name}" if found and name and name != ":memory:" else database


def _read(path: Path) -> tuple[TomlFile, dict[str, Any]]:
    try:
        file = TomlFile(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"{path}: no such file; `hero init` writes one, or name yours with --config or HERO_CONFIG"
        raise ConfigurationError((problem,)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError((f"{path}: cannot be read ({error})",)) from None
    try:
        return file, tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        problem = file.broken(error)
    except RecursionError:
        problem = f"{path}: is no TOML: it is nested too deeply"
    raise ConfigurationError((problem,))


def _without_values_for_tables(file: TomlFile | None, table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Refuse ``slack = 5``, which the environment's own part of the table would silently cover."""
    wrong = sorted(name for name in TABLES & table.keys() if not isinstance(table[name], dict))
    problems = [
        f"{_where(file, (name,))}: [{name}]: is a table; write [{name}] on a line of its own and its keys below"
        for name in wrong
    ]
    return {name: value for name, value in table.items() if name not in wrong}, problems


def _without_plain_secrets(file: TomlFile | None, table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    left = dict(table)
    for section, keys in SECRETS.items():
        inside = table.get(section, {})
        problems += [
            f"{_where(file, (section, key))}: [{section}] {key} is a secret and must not stand in this file; "
            f"set HERO_{section.upper()}__{key.upper()} or {key}_file"
            for key in keys
            if key in inside
        ]
        if section in table:
            left[section] = {key: value for key, value in inside.items() if key not in keys}
    return left, problems


def _with_secret_files(file: TomlFile | None, table: dict[str, Any], base: Path) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    merged = dict(table)
    for section, keys in SECRETS.items():
        for key in keys:
            inside = table.get(section, {})
            name = os.environ.get(f"HERO_{section.upper()}__{key.upper()}_FILE") or inside.get(f"{key}_file")
            if not isinstance(name, str):
                continue
            where = f"{_where(file, (section, f'{key}_file'))}: [{section}] {key}_file {name}"
            try:
                secret = (base / name).read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:
                problems.append(f"{where}: cannot be read ({error})")
                continue
            if not secret:
                problems.append(f"{where}: is empty; it must hold the secret and nothing else")
                continue
            merged[section] = {**merged.get(section, {}), key: secret, f"{key}_file": str((base / name).absolute())}
    return merged, problems


def _accounts_of_two(settings: Settings, file: TomlFile | None) -> Iterator[str]:
    """Yield each account that more than one person has: nothing said from it could ever count (handlers/gate.py)."""
    for key in ("slack", "discord", "github", "github_id", "console"):
        owners: dict[object, list[str]] = {}
        for name, person in settings.people.items():
            account = getattr(person, key)
            if account:
                owners.setdefault(account.casefold() if key == "github" else account, []).append(name)
        for first, *others in owners.values():
            if others:
                what = "`console = true`" if key == "console" else f"the same {key}"
                named = ", ".join(f"[people.{name}]" for name in (first, *others))
                yield (
                    f"{_where(file, ('people', others[0], key))}: {named} have {what}, so nothing said from it counts "
                    "as either's; leave it with the one whose it is"
                )


def _problem(file: TomlFile | None, wrong: Wrong) -> str:
    named = f"[{wrong.name}]" if wrong.location[0] in TABLES and len(wrong.location) == 1 else wrong.named
    variable = "HERO_" + "__".join(part.upper() for part in wrong.location)
    where = f"environment variable {variable}" if variable in os.environ else _where(file, wrong.location)
    return f"{where}: {named}: {wrong.message}"


def _where(file: TomlFile | None, location: tuple[str, ...]) -> str:
    return file.where(location) if file is not None else "settings"
