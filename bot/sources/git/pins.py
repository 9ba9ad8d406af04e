"""Searches checkouts for what pins a run's id, or a metric key: reports, dashboards and scripts that a trial moves.

Source of the rule: the deploy checklist, "Land the launch record": inventory downstream reports and trackers that pin
the run ID or affected metric keys. What is committed at ``HEAD`` is searched, and nothing is fetched.
"""

import asyncio
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.clock import Clock
from bot.errors import RefusedError, ServiceError, UnrecognisedError
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import Pin
from bot.model.value import Value
from bot.settings import GitSettings
from bot.sources.gaps import unknown_of
from bot.sources.git.failure import SERVICE
from bot.sources.git.parsing import say_path
from bot.sources.git.program import Git, Left, Place
from bot.threads import BoundedThreads

MOST_PINS = 500
"""Of one place; who reads a longer list has not narrowed what is searched."""
_FENCE = timedelta(seconds=5)
_SHORT = 12
_RECORD = re.compile(rb"([^\0]+)\0(\d{1,9})[\0:]([^\n]*)\n")
_REMOTE = re.compile(r"(?:^[a-z+]+://[^/]+/|^[^/:]+@[^/:]+:)(?:.*/)?([^/:]+)/([^/:]+?)(?:\.git)?/?")


class Searched(Value):
    """One place that was searched."""

    place: str
    """What it is called: ``owner/name at 1a2b3c4d5e6f``."""
    pins: tuple[Pin, ...]
    """Sorted; a file that names a word in several lines is there once, with the first of them."""


@dataclass(frozen=True)
class Word:
    """What is looked for."""

    text: str
    """As people know it: the run's id, or a key as the tracker writes it."""
    unless_within: tuple[str, ...] = ()
    """Longer words that hold this one and are meant otherwise, such as the child's id."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """The ways in which it is written: Finelog has every character that is no letter, digit or ``_`` as ``_``."""
        flat = re.sub(r"\W", "_", self.text, flags=re.ASCII)
        return tuple(dict.fromkeys((self.text, flat))) if "/" in self.text else (self.text,)

    def is_in(self, line: str) -> bool:
        """Whether a line names it: as a word of its own, or with something joined to it by a sign."""
        for longer in self.unless_within:
            if self.text in longer:
                line = line.replace(longer, "\n")
        return any(re.search(rf"(?<![^\W_]){re.escape(each)}(?![^\W_])", line) for each in self.spellings)


class PinSearch:
    """Implements ``bot.sources.downstream.Inventory`` with the ``git`` program on this machine."""

    def __init__(self, settings: GitSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._git = Git(settings.program)
        self._threads = BoundedThreads(SERVICE, settings.threads)
        self._places = asyncio.Semaphore(settings.threads)

    async def search(self, directory: str, words: tuple[Word, ...]) -> Reading[Searched]:
        """Search what is committed in a checkout, below the directory, for each of the words.

        Args:
            directory: an absolute path.
            words: at least one.
        """
        at = self._clock.now()
        left = Left(self._clock, self._settings.deadline)
        try:
            async with asyncio.timeout((self._settings.deadline + _FENCE).total_seconds()), self._places:
                return Known(value=await self._ask(Path(directory), words, left), at=at)
        except ServiceError as error:
            return unknown_of(error, at)
        except TimeoutError:
            detail = f"no answer in {say_duration(self._settings.deadline)}; raise [git] deadline or threads"
            return Unknown(reason=Gap.TIMEOUT, detail=detail, at=at)

    async def _ask(self, directory: Path, words: tuple[Word, ...], left: Left) -> Searched:
        if not await self._threads.call(directory.is_dir, deadline=left.get()):
            raise RefusedError(SERVICE, f"{directory} is no directory of this machine")
        place = await self._git.place(directory, left)
        await self._demand_tracked(place, left)
        name = await self._name(place, left)
        head = (await self._git.run(place.top, "rev-parse", "--verify", "HEAD^{commit}", left=left)).stdout.strip()
        printed = await self._grep(directory, head, words, left)
        pins = await self._threads.call(pins_in, printed, name, head, words, deadline=left.get())
        if len(pins) > MOST_PINS:
            fix = "name a narrower directory in [trial] inventory, or fewer [trial] changed_metrics"
            raise UnrecognisedError(SERVICE, f"more than {MOST_PINS} files of {directory} name them; {fix}")
        return Searched(place=f"{name} at {head[:_SHORT]}", pins=pins)

    async def _demand_tracked(self, place: Place, left: Left) -> None:
        """Refuse a directory that is only surrounded by a repository: nothing would ever be found in it.

        Raises:
            RefusedError: it is no part of the commit.
        """
        if not place.prefix:
            return
        told = await self._git.run(place.top, "ls-tree", "-z", "HEAD", "--", place.prefix.rstrip("/"), left=left)
        if not told.stdout_raw:
            detail = f"{place.top / place.prefix} is no part of the repository around it, {place.top}; name a clone"
            raise RefusedError(SERVICE, detail)

    async def _name(self, place: Place, left: Left) -> str:
        """Return ``owner/name`` by the address of the remote, else the directory's own name; never any credentials."""
        told = await self._git.run(place.top, "config", "--get", "remote.origin.url", left=left, accepts=(0, 1))
        return name_of_remote(told.stdout.strip()) or say_path(os.fsencode(place.top.name))

    async def _grep(self, directory: Path, head: str, words: tuple[Word, ...], left: Left) -> bytes:
        spellings = dict.fromkeys(spelling for word in words for spelling in word.spellings)
        told = await self._git.run(
            directory,
            "grep",
            "-n",
            "-I",
            "-F",
            "-z",
            "--full-name",
            "--no-color",
            "--no-column",
            "--no-heading",
            "--no-break",
            "--no-show-function",
            "--no-recurse-submodules",
            *(part for spelling in spellings for part in ("-e", spelling)),
            head,
            "--",
            left=left,
            accepts=(0, 1),  # 1: nothing was found
        )
        return told.stdout_raw


def pins_in(printed: bytes, name: str, head: str, words: tuple[Word, ...]) -> tuple[Pin, ...]:
    """Read ``git grep -n -z`` of a commit; of each file and word the first line that names it. Pure.

    Raises:
        UnrecognisedError: it is not that, or it ends in the middle.
    """
    found: dict[tuple[str, str], int] = {}
    for path, number, line in _records(printed, head.encode()):
        for word in words:
            if word.is_in(line) and found.get((path, word.text), number) >= number:
                found[path, word.text] = number
    return tuple(
        Pin(where=f"{name}: {path}:{number}", what=text)
        for (path, text), number in sorted(found.items(), key=lambda each: (each[0][0], each[1], each[0][1]))
    )


def name_of_remote(url: str) -> str:
    """Return ``owner/name`` of a remote's address; empty when it tells none, as a path does not."""
    if url.startswith("file:"):
        return ""
    found = _REMOTE.fullmatch(url)
    return f"{found[1]}/{found[2]}" if found else ""


def _records(printed: bytes, head: bytes) -> Iterator[tuple[str, int, str]]:
    at = 0
    while at < len(printed):
        found = _RECORD.match(printed, at)
        if found is None or not found[1].startswith(head + b":"):
            seen = printed[at : at + 80]
            raise UnrecognisedError(SERVICE, f"git's grep reads {seen!r}, which is not known here; Hero needs git 2.31")
        path = found[1].removeprefix(head + b":")
        yield say_path(path), int(found[2]), found[3].decode(errors="replace")
        at = found.end()
