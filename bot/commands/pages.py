"""The reference pages of the settings and of the contract, made from their classes; a test compares them.

``python -m bot.commands.pages`` writes them anew.
"""

from collections.abc import Iterable
from pathlib import Path

from bot.commands.reference import Entry, Table, contract_tables, settings_tables
from bot.commands.toml_values import toml_value

_SETTINGS_HEAD = """\
# Settings

This page is made from the classes in `bot/settings/` (`python -m bot.commands.pages`); a test compares it with them.

Hero reads one TOML file: the one that `--config` or `HERO_CONFIG` names, else `./hero.toml`. `hero init` writes it with
all of this as comments. Each value can be overridden by the environment variable beside it, which wins over the file. A
secret comes from its environment variable or from the file that `KEY_file` names, and is refused in the TOML itself.
Durations are written as `15m`, `570s`, `1h30m` or a number of seconds.
"""

_CONTRACT_HEAD = """\
# The contract of a run

This page is made from the classes in `bot/model/contract.py` (`python -m bot.commands.pages`); a test compares it with
them.

`runs/RUN_ID.toml` holds what a run's owner promised at launch, one file a run. It is read anew at each look, so an edit
counts at once. A contract with a mistake blocks its own run and no other; `hero doctor` names the mistake and the fix.
`hero init` writes an example. Durations are written as `15m`, `570s`, `1h30m` or a number of seconds. A key with the
default *needed* must be there. What the trainer has to print and write for Hero to see it is in
[trainer.md](trainer.md).

**Relative paths**: `checkout` is relative to the directory that holds `runs/`, where `hero.toml` lies in the layout
that `hero init` writes; every other path of this file is relative to `checkout`. What the trainer itself makes of its
arguments is its own affair: the command is run with `checkout` as its working directory.
"""


def settings_page() -> str:
    """Return ``docs/settings.md``."""
    return _page(_SETTINGS_HEAD, settings_tables(), is_settings=True)


def contract_page() -> str:
    """Return ``docs/contract.md``."""
    return _page(_CONTRACT_HEAD, contract_tables(), is_settings=False)


def _page(head: str, tables: Iterable[Table], *, is_settings: bool) -> str:
    return "\n".join((head, *(_section(table, is_settings=is_settings) for table in tables)))


def _section(table: Table, *, is_settings: bool) -> str:
    kind = next((f", kind = {entry.kind}" for entry in table.entries if entry.key == "kind" and table.name), "")
    title = f"## `[{table.name}]`{kind}\n\n{_prose(table.meaning)}" if table.name else "## Above all tables"
    columns = ("key", "value", "default", *(("environment",) if is_settings else ()), "meaning")
    rows = [columns, ("---",) * len(columns), *(_row(entry, table.name, is_settings) for entry in table.entries)]
    return f"{title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


_FROM_ELSEWHERE = {"run_id": "the file's name"}
"""What need not be written, and where it comes from then."""


def _row(entry: Entry, section: str, is_settings: bool) -> tuple[str, ...]:  # noqa: FBT001 - positional for the one caller
    if not section and entry.key in _FROM_ELSEWHERE:
        default = _FROM_ELSEWHERE[entry.key]
    elif entry.is_required:
        default = "*needed*"
    elif entry.default is None or entry.default == "":
        default = ""
    else:
        default = f"`{toml_value(entry.default)}`"
    variable = "HERO_" + "__".join((*filter(None, section.split(".")), entry.key)).upper()
    return (
        f"`{entry.key}`",
        _cell(entry.kind),
        default,
        *((f"`{variable}`",) if is_settings else ()),
        _cell(entry.meaning),
    )


def _prose(text: str) -> str:
    return text.replace("``", "`")


def _cell(text: str) -> str:
    return _prose(text).replace("|", r"\|")


if __name__ == "__main__":
    docs = Path(__file__).parents[2] / "docs"
    (docs / "settings.md").write_text(settings_page(), encoding="utf-8")
    (docs / "contract.md").write_text(contract_page(), encoding="utf-8")
