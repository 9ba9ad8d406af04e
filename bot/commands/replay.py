"""``hero replay``: what would Hero have told about a run whose figures are in a file? The same checks as live."""

import re
from importlib.util import find_spec
from pathlib import Path

from bot.commands.exits import Exit
from bot.commands.printing import say, say_json
from bot.errors import ConfigurationError
from bot.render.text import clean
from bot.replay.player import Replay, Told, replay
from bot.replay.reading import BadFileError, read_rows

_LINE = 500
_WORD = re.compile(r"[A-Za-z_][\w./-]*")


def replay_files(files: list[str], *, every: int, metrics: list[str], plot: Path | None, as_json: bool) -> Exit:
    """Replay each file by itself; one that cannot be read is said to be, and the others go on.

    Raises:
        ConfigurationError: a ``--metric`` is none, or ``--plot`` cannot be done.
    """
    columns = parse_columns(metrics)
    if plot is not None:
        _check_plot(plot, files)
    result = Exit.DONE
    for name in files:
        try:
            found = replay(read_rows(name, columns), every)
        except BadFileError as error:
            _say_error(name, str(error), as_json=as_json)
            result = Exit.FAILED
            continue
        if as_json:
            for told in found.incidents:
                say_json(incident_row(name, told), is_line=True)
            say_json(summary_row(name, found), is_line=True)
        else:
            _say_replay(name, found)
        if found.broken:
            _say_error(
                name, f"a check of Hero's own broke: {found.broken[0].strip().splitlines()[-1]}", as_json=as_json
            )
            result = Exit.FAILED
        if plot is not None:
            from bot.replay.plot import draw  # noqa: PLC0415 - matplotlib takes a second, and only a plot needs it

            draw(name, read_rows(name, columns), found, plot)
    return result


def parse_columns(metrics: list[str]) -> dict[str, str]:
    """Return our word -> the file's column, of ``loss=train/loss``.

    Raises:
        ConfigurationError: one is not of that form, or a word is given twice.
    """
    columns: dict[str, str] = {}
    for each in metrics:
        word, equals, name = (part.strip() for part in each.partition("="))
        if not equals or not name or not _WORD.fullmatch(word):
            raise ConfigurationError((f"--metric {each}: write it as NAME=COLUMN, as in --metric loss=train/loss",))
        if word in columns:
            raise ConfigurationError((f"--metric {each}: {word} is mapped twice; give it once",))
        columns[word] = name
    return columns


def incident_row(name: str, told: Told) -> dict[str, object]:
    """Return what outsiders rely on."""
    return {
        "file": name,
        "check": told.check,
        "severity": told.severity.value,
        "first_step": told.first_step,
        "opened_step": told.opened_step,
        "resolved_step": told.resolved_step,
        "message": told.message,
    }


def summary_row(name: str, found: Replay) -> dict[str, object]:
    """Return the line that ends a file."""
    summary = {"rows": found.rows, "incidents": len(found.incidents), "seconds": round(found.seconds, 3)}
    return {"file": name, "summary": summary}


def _check_plot(plot: Path, files: list[str]) -> None:
    problems = []
    if len(files) != 1 or files[0] == "-":
        problems.append("--plot draws one file; give one FILE, and not standard input")
    if find_spec("matplotlib") is None:
        problems.append("--plot needs matplotlib; install it beside Hero")
    if not plot.parent.is_dir():
        problems.append(f"--plot {plot}: {plot.parent} is no directory")
    if problems:
        raise ConfigurationError(tuple(problems))


def _say_replay(name: str, found: Replay) -> None:
    count = len(found.incidents)
    what = "nothing to tell" if count == 0 else "1 incident" if count == 1 else f"{count} incidents"
    say(f"{clean(name, _LINE)}: {what} ({found.rows} rows, {found.looks} looks, {found.seconds:.1f} s)")
    for told in found.incidents:
        end = "goes on" if told.resolved_step is None else f"resolved at step {told.resolved_step}"
        say(f"    · {told.severity} {told.check}: {clean(told.message, _LINE)}")
        say(f"      opened at step {told.opened_step}, {end}")


def _say_error(name: str, reason: str, *, as_json: bool) -> None:
    if as_json:
        say_json({"file": name, "error": f"{name}: {reason}"}, is_line=True)
    else:
        say(f"{clean(name, _LINE)}: {clean(reason, _LINE)}")
