"""The checkout that a trial's child is launched from, held against the remote's main branch as fetched just now.

Source of the rule: the deploy checklist, "Land the launch record" and "Rehearse preflight and rollback": a pristine
checkout at the verified SHA, clean at fetched main, with the finalized launch values on main.
"""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import MainState
from bot.settings import GitSettings
from bot.sources.gaps import unknown_of
from bot.sources.git.failure import SERVICE
from bot.sources.git.lineage import Lineage
from bot.sources.git.parsing import say_path
from bot.sources.git.program import Git, Left, Place
from bot.sources.git.source import GitSource
from bot.threads import BoundedThreads

FRESH = timedelta(minutes=1)
"""A fetch that is no older than this is one of just now: the look at the run itself has often made it already."""
_FENCE = timedelta(seconds=5)


class MainReader:
    """Implements ``bot.rehearsing.Mains`` with the ``git`` program on this machine."""

    def __init__(self, settings: GitSettings, clock: Clock, source: GitSource) -> None:
        """Take the parts.

        Args:
            settings: of git.
            clock: for times.
            source: looks at checkouts; its fetches are shared, since two at once of one branch would collide.
        """
        self._settings = settings
        self._clock = clock
        self._source = source
        self._git = Git(settings.program)
        self._lineage = Lineage(self._git)
        self._threads = BoundedThreads(SERVICE, settings.threads)
        self._places = asyncio.Semaphore(settings.threads)

    async def main(self, contract: Contract, contract_file: Path) -> Reading[MainState]:
        """Fetch the branch that ``[code]`` names, and hold the contract's checkout against it.

        Args:
            contract: the child's.
            contract_file: where it was read from; it is part of the launch record when it lies below the checkout.
        """
        at = self._clock.now()
        if not self._settings.fetch:
            detail = "[git] fetch = false: what is on the remote's branch now is not known; set it to true"
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=at)
        left = Left(self._clock, self._settings.deadline)
        try:
            async with asyncio.timeout((self._settings.deadline + _FENCE).total_seconds()), self._places:
                return await self._ask(contract, contract_file, left)
        except ServiceError as error:
            return unknown_of(error, at)
        except TimeoutError:
            detail = f"no answer in {say_duration(self._settings.deadline)}; raise [git] deadline or threads"
            return Unknown(reason=Gap.TIMEOUT, detail=detail, at=at)

    async def _ask(self, contract: Contract, contract_file: Path, left: Left) -> Reading[MainState]:
        seen = await self._source.checkout(contract, left)
        place, code = seen.place, contract.code
        fetched = await self._source.fetches.fresh(place, code, left, within=FRESH)
        if fetched.fault or fetched.at is None:
            detail = f"{code.remote}/{code.branch} could not be fetched: {fetched.fault}"
            return Unknown(reason=Gap.UNREACHABLE, detail=detail[:2000], at=self._clock.now())
        main = f"refs/remotes/{code.remote}/{code.branch}"
        told = await self._git.run(place.top, "rev-parse", "--verify", f"{main}^{{commit}}", left=left)
        source, _, _ = await self._lineage.ask(contract, place, seen.status.head, left)
        record, is_on_main = await self._launch_record(contract, contract_file, place, main, left)
        state = MainState(
            directory=os.fsencode(place.top).decode(errors="backslashreplace"),
            head=seen.status.head,
            main=f"{code.remote}/{code.branch}",
            main_sha=told.stdout.strip(),
            fetched_at=fetched.at,
            source_sha=source.sha if source else None,
            is_on_main=source.is_ancestor if source else None,
            dirty=tuple(sorted({say_path(each.path) for each in seen.entries_that_count})),
            contract_on_main=is_on_main,
            contract_path=record,
        )
        return Known(value=state, at=self._clock.now())

    async def _launch_record(
        self, contract: Contract, contract_file: Path, place: Place, main: str, left: Left
    ) -> tuple[str, bool | None]:
        """Return the files of the launch record, and whether all lie on main as here; those that don't, if one doesn't.

        What git ignores is none: a program of the checkout's own environment, or contracts that are kept elsewhere.
        """
        named = await self._threads.call(
            files_of_record, contract, contract_file, place.top, place.prefix, deadline=left.get()
        )
        kept = [each for each in named if not await self._is_ignored(each, place, left)]
        astray = [each for each in kept if not await self._is_same(each, place, main, left)]
        return ", ".join(say_path(os.fsencode(each)) for each in astray or kept), not astray if kept else None

    async def _is_ignored(self, path: str, place: Place, left: Left) -> bool:
        told = await self._git.run(place.top, "check-ignore", "--quiet", "--", path, left=left, accepts=(0, 1))
        return told.exit_code == 0

    async def _is_same(self, path: str, place: Place, main: str, left: Left) -> bool:
        """Whether the file's content on main is that of the work tree, whatever the index says."""
        there = await self._git.run(
            place.top, "rev-parse", "--verify", "--quiet", f"{main}:{path}", left=left, accepts=(0, 1, 128)
        )
        if there.exit_code != 0:
            return False
        here = await self._git.run(place.top, "hash-object", "--", path, left=left)
        return there.stdout.strip() == here.stdout.strip()


def files_of_record(contract: Contract, contract_file: Path, top: Path, prefix: str) -> tuple[str, ...]:
    """Return the files of the launch record below the checkout, relative to its top level. Blocking.

    They are the contract's own file, the first word of its command that reads like a path and names a file there, such
    as ``trigger_hero.sh``, and the configuration that the command launches with.

    Args:
        contract: the child's.
        contract_file: where it was read from.
        top: the checkout's top level.
        prefix: the directory below it in which the command is run.
    """
    real_top = Path(os.path.realpath(top))
    scripts = (_below(real_top / prefix / word, real_top) for word in contract.command if _reads_like_a_path(word))
    values = _below(real_top / prefix / contract.config.launch, real_top) if contract.config.launch else None
    found = (_below(contract_file, real_top), next((each for each in scripts if each), None), values)
    return tuple(dict.fromkeys(each for each in found if each))


def _reads_like_a_path(word: str) -> bool:
    return not word.startswith("-") and "\0" not in word and ("/" in word or bool(Path(word).suffix))


def _below(path: Path, real_top: Path) -> str | None:
    """Return a file's path relative to the top level; None when it lies elsewhere, or is none."""
    try:
        real = Path(os.path.realpath(path))
        return real.relative_to(real_top).as_posix() if real.is_file() else None
    except (OSError, ValueError):
        return None
