"""The ``iris`` program as a way to ask the controller, in each of its generations.

``iris rpc controller METHOD --json`` prints JSON in every generation and fails at once when the controller is down;
``job list`` and its kin retry for half an hour (marin-iris 0.2.20 and 0.2.227, run). So it is asked first, and the
other verbs only where a CLI lacks it.
"""

import asyncio
import json
import re
import shlex
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from bot.errors import DeadlineError, RefusedError, UnrecognisedError
from bot.model.durations import say_duration
from bot.model.value import JobId
from bot.settings import IrisSettings
from bot.sources.iris.failure import SERVICE, NoVerbError, of_cli
from bot.sources.iris.program import child_environment, run_program

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
# With a cluster of kind local every command starts an empty cluster of its own and answers from that one.
_LOCAL_INLINE = re.compile(r"^controller:\s*\{\s*local\b", re.MULTILINE)
_CONTROLLER_BLOCK = re.compile(r"^controller:[ \t]*(?:#.*)?\n((?:[ \t]+.*\n|[ \t]*(?:#.*)?\n)*)", re.MULTILINE)
_LOCAL_KEY = re.compile(r"^[ \t]+local[ \t]*:", re.MULTILINE)


class Generation(StrEnum):
    """Which verbs ``iris job`` has (facts by version: up to 0.2.34, 0.2.36 to 0.2.85, from 0.2.89)."""

    OLD = "A"
    MIDDLE = "B"
    NEW = "C"


class IrisCli:
    """Asks through the program. Every call is a process of some 180 MB that takes seconds."""

    def __init__(self, settings: IrisSettings) -> None:
        self._words = tuple(shlex.split(settings.cli))
        self._settings = settings
        self._places = asyncio.Semaphore(settings.threads)
        self._generation: Generation | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """How the program is called, without any argument."""
        return self._words

    async def call(self, method: str, payload: Mapping[str, object]) -> Any:
        """Ask one of the controller's RPC methods; the answer is snake_case.

        Raises:
            NotFoundError: the controller knows no such thing.
            NoVerbError: this CLI cannot ask that way.
            ServiceError: any other way in which there is no answer.
        """
        verb = _CAPITAL.sub("-", method).lower()
        return _decode(await self.run("rpc", "controller", verb, "--json", json.dumps(payload)))

    async def listed(self, prefix: JobId) -> Any:
        """Return what the old generation's ``job list`` knows; it takes neighbours along."""
        return _decode(await self.run("job", "list", "--json", "--prefix", prefix))

    async def summary(self, job_id: JobId) -> Any:
        """Return the old generation's summary of one job."""
        return _decode(await self.run("job", "summary", "--json", job_id))

    async def query(self, sql: str) -> str:
        """Return the CSV of one SELECT; admins only."""
        return await self.run("query", "-f", "csv", sql)

    async def logs(self, job_id: JobId, since: datetime | None, lines: int, now: datetime) -> tuple[str, bool]:
        """Return the newest printed lines of a job and its children, and whether all of them are after ``since``.

        Without a number of lines the CLI shows a thousand, whatever the window.
        """
        wanted = ("--max-lines", str(lines), job_id)
        if since is None:
            return await self.run("job", "logs", *wanted), True
        try:
            return await self.run("job", "logs", "--since-ms", str(int(since.timestamp() * 1000)), *wanted), True
        except NoVerbError:
            window_s = max(1, int((now - since).total_seconds()) + 1)
            return await self.run("job", "logs", "--since-seconds", str(window_s), *wanted), False

    async def stop(self, job_id: JobId) -> None:
        """End exactly one job and what is below it, with the verb of this generation.

        The old ones' ``job stop`` matches a string prefix by default and would take neighbours along.
        """
        match await self.generation():
            case Generation.NEW:
                await self.run("job", "cancel", job_id)
            case Generation.OLD | Generation.MIDDLE:
                await self.run("job", "stop", "--no-include-children", job_id)

    async def generation(self) -> Generation:
        """Find out once which verbs there are."""
        if self._generation is None:
            self._generation = generation_of(await self.run("job", "--help"))
        return self._generation

    async def run(self, *arguments: str) -> str:
        """Run one command to its end and return its stdout; stderr counts only when it failed.

        Raises:
            ServiceError: it could not be started, did not end in time, or failed.
        """
        argv = (*self._words, *self._selection(), *arguments)
        async with self._places:
            try:
                ended = await run_program(argv, deadline=self._settings.deadline, environment=child_environment())
            except OSError as error:
                raise RefusedError(
                    SERVICE,
                    f"{self._words[0]!r} cannot be run ({error.strerror}); install marin-iris or set [iris] cli",
                ) from error
        if ended.exit_code is None:
            raise DeadlineError(SERVICE, f"the iris CLI gave no answer in {say_duration(self._settings.deadline)}")
        if ended.exit_code != 0:
            trouble = of_cli(ended.exit_code, ended.stderr)
            if isinstance(trouble, NoVerbError):
                self._generation = None  # it may have been replaced by another one since it was looked at
            raise trouble
        if ended.is_cut:
            raise UnrecognisedError(SERVICE, "the iris CLI printed more than Hero reads")
        return ended.stdout

    def _selection(self) -> tuple[str, ...]:
        settings = self._settings
        if settings.controller_url is not None:
            return ("--controller-url", settings.controller_url)
        if settings.config is not None:
            _refuse_local(settings.config)
            return ("--config", str(settings.config))
        if settings.cluster == "local":
            raise RefusedError(SERVICE, _LOCAL_FIX.format('[iris] cluster = "local"'))
        return ("--cluster", settings.cluster) if settings.cluster is not None else ()


_LOCAL_FIX = "{} would start an empty cluster of its own for every question; give [iris] controller_url instead"


def generation_of(job_help: str) -> Generation:
    """Tell the generation by the verbs in ``iris job --help``.

    Raises:
        UnrecognisedError: none of the known sets.
    """
    verbs = set(re.findall(r"^  ([a-z][a-z-]*)  ", job_help, re.MULTILINE))
    if "cancel" in verbs:
        return Generation.NEW
    if "stop" in verbs:
        return Generation.OLD if "bug-report" in verbs else Generation.MIDDLE
    raise UnrecognisedError(SERVICE, f"`iris job --help` names no verb to end a job: {', '.join(sorted(verbs))[:200]}")


def _refuse_local(config: Path) -> None:
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RefusedError(SERVICE, f"[iris] config {config} cannot be read: {error.strerror}") from error
    block = _CONTROLLER_BLOCK.search(f"{text}\n")
    if _LOCAL_INLINE.search(text) or (block and _LOCAL_KEY.search(block[1])):
        raise RefusedError(SERVICE, _LOCAL_FIX.format(f"[iris] config {config}"))


def _decode(printed: str) -> Any:
    try:
        return json.loads(printed)
    except (ValueError, RecursionError) as error:
        raise UnrecognisedError(SERVICE, "the iris CLI printed no JSON") from error
