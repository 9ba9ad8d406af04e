"""How old the installed ``marin-iris`` is, without importing it here.

The controller refuses submissions of a client that was built more than 14 days before (marin-iris 0.2.20 and 0.2.227,
run), so a forgotten upgrade shows itself at the first relaunch at night. The CLI has no ``--version``; the Python that
runs it is asked.
"""

import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.clock import Clock
from bot.errors import DeadlineError, RefusedError, ServiceError, UnrecognisedError
from bot.model.durations import say_duration
from bot.model.reading import Known, Reading
from bot.sources.gaps import unknown_of
from bot.sources.iris.failure import SERVICE, last_message
from bot.sources.iris.program import child_environment, run_program

MAY_SUBMIT_FOR = timedelta(days=14)
"""From this age of the client on, its submissions are refused."""

_ASK = "from iris.version import client_revision_date as d; print(d())"
# A console script begins with its interpreter, or for long paths with a line of sh that execs it.
_SHEBANG = re.compile(rb"\A#!\s*(?P<direct>[^\r\n]+)(?:\r?\n'''exec' [\"']?(?P<long>[^\"'\r\n]+?)[\"']? \"\$0\")?")


async def client_build_date(
    words: Sequence[str], *, deadline: timedelta, clock: Clock, directory: Path | None = None
) -> Reading[datetime]:
    """Ask when the client that these words call was built; its day, at midnight UTC.

    Args:
        words: how the CLI is called, e.g. ``("uv", "run", "iris")``.
        deadline: of the question.
        clock: for the moment of the reading.
        directory: where it would be called.
    """
    try:
        return Known(value=await _build_date(words, deadline, directory), at=clock.now())
    except ServiceError as error:
        return unknown_of(error, clock.now())


def client_words(command: Sequence[str]) -> tuple[str, ...]:
    """Return how a submit command calls the client, e.g. ``("uv", "run", "iris")``; () when it is not to be seen."""
    before_separator = command[: command.index("--")] if "--" in command else command
    place = next((n for n, word in enumerate(before_separator) if Path(word).name == "iris"), None)
    return () if place is None else tuple(command[: place + 1])


async def _build_date(words: Sequence[str], deadline: timedelta, directory: Path | None) -> datetime:
    argv = (*_python_of(words, directory), "-c", _ASK)
    try:
        ended = await run_program(argv, deadline=deadline, environment=child_environment(), directory=directory)
    except OSError as error:
        raise RefusedError(SERVICE, _not_run(argv[0], directory, error)) from error
    if ended.exit_code is None:
        raise DeadlineError(SERVICE, f"the client did not tell its age in {say_duration(deadline)}")
    if ended.exit_code != 0:
        raise UnrecognisedError(SERVICE, f"the client does not tell its age: {last_message(ended.stderr)}")
    try:
        return datetime.strptime(ended.stdout.strip(), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise UnrecognisedError(SERVICE, f"the client's build date reads {ended.stdout.strip()[:40]!r}") from error


def _not_run(program: str, directory: Path | None, error: OSError) -> str:
    """Say what is missing: the system's "no such file" may be about the directory as well as about the program."""
    if directory is not None and not directory.is_dir():
        return f"the checkout {directory} is no directory"
    return f"{program!r} cannot be run: {error.strerror}"


def _python_of(words: Sequence[str], directory: Path | None) -> tuple[str, ...]:
    if not words or Path(words[-1]).name != "iris":
        raise UnrecognisedError(SERVICE, f"{' '.join(words)[:80]!r} does not end in `iris`, so its age cannot be asked")
    *launcher, program = words
    if launcher:
        return (*launcher, "python")
    path = shutil.which(program) if directory is None or "/" not in program else str(directory / program)
    if path is None:
        raise RefusedError(SERVICE, f"{program!r} is not installed; install marin-iris or set [iris] cli")
    try:
        with Path(path).open("rb") as script:
            head = _SHEBANG.match(script.read(1024))
    except OSError as error:
        raise RefusedError(SERVICE, f"{path} cannot be read: {error.strerror}") from error
    if head is None:
        raise UnrecognisedError(SERVICE, f"{path} is no Python script, so its age cannot be asked")
    if head["long"]:
        return (head["long"].decode(errors="replace"),)
    return tuple(head["direct"].decode(errors="replace").split())
