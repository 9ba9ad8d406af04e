"""Git as a source: one reading of a checkout and of how the contract's commit lies to the remote's branches."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from bot.clock import Clock
from bot.errors import RefusedError, ServiceError
from bot.model.code import CodeState, Patch, SourceFault
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.redaction import Redactor
from bot.settings import GitSettings
from bot.sources.gaps import refused_by_system, unknown_of
from bot.sources.git.checkout import Checkout
from bot.sources.git.content import digest_of, is_repository, own_globs
from bot.sources.git.failure import SERVICE, NoGitError, NoRepositoryError
from bot.sources.git.fetching import Fetched, Fetches
from bot.sources.git.hidden import read_hidden
from bot.sources.git.lineage import Lineage
from bot.sources.git.parsing import Entry, Status, parse_status, say_path, with_hidden
from bot.sources.git.patch import patch_of, read_difference, read_new_files
from bot.sources.git.program import Git, Left, Place
from bot.threads import BoundedThreads

_FENCE = timedelta(seconds=5)
_DEEPEST = 3
_UNDERWAY = (
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
)


class NoCommitError(RefusedError):
    """The repository has no commit yet."""


class GitSource:
    """Implements ``bot.sources.ports.CodeSource`` with the ``git`` program on this machine."""

    def __init__(self, settings: GitSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._git = Git(settings.program)
        self._lineage = Lineage(self._git)
        self.fetches = Fetches(self._git, clock, settings.fetch_every)
        self._threads = BoundedThreads(SERVICE, settings.threads)
        self._places = asyncio.Semaphore(settings.threads)

    async def code(self, contract: Contract) -> Reading[CodeState]:
        """Say what the contract's checkout holds and how its source commit lies to the remote's branches."""
        at = self._clock.now()
        left = Left(self._clock, self._settings.deadline)
        try:
            async with asyncio.timeout((self._settings.deadline + _FENCE).total_seconds()), self._places:
                return Known(value=await self._ask(contract, left), at=at)
        except (NoGitError, NoRepositoryError, NoCommitError) as error:
            if contract.source_sha is None:
                return Unknown(reason=Gap.NOT_CONFIGURED, detail=error.detail, at=at)
            return unknown_of(error, at)
        except ServiceError as error:
            return unknown_of(error, at)
        except TimeoutError:
            return self._late(at)

    async def between(self, contract: Contract, before: str) -> Reading[tuple[str, ...]]:
        """Return the paths that differ between an earlier source commit of the run and the contract's, sorted."""
        at = self._clock.now()
        left = Left(self._clock, self._settings.deadline)
        try:
            async with asyncio.timeout((self._settings.deadline + _FENCE).total_seconds()), self._places:
                seen = await self.checkout(contract, left)
                earlier = contract.model_copy(update={"source_sha": before})
                old = await self._lineage.resolve(earlier, seen.place, left)
                new = await self._lineage.resolve(contract, seen.place, left)
                for each in (old, new):
                    if isinstance(each, SourceFault):
                        return Unknown(reason=Gap.REFUSED, detail=f"{each.detail}; {each.fix}", at=at)
                changed = await self._lineage.changed(str(old), str(new), seen.place, left)
        except TimeoutError:
            return self._late(at)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=_said(changed), at=at)

    async def patch(self, contract: Contract, redactor: Redactor) -> Reading[Patch]:
        """Write out what counts of the checkout's difference, as it may be kept on record; bounded and scrubbed."""
        at = self._clock.now()
        left = Left(self._clock, self._settings.deadline)
        try:
            async with asyncio.timeout((self._settings.deadline + _FENCE).total_seconds()), self._places:
                seen = await self.checkout(contract, left)
                identity = await self.digest(seen, left)
                known = await read_difference(self._git, seen, left)
                new = await self._threads.call(
                    read_new_files, seen.place.top, seen.entries_that_count, deadline=left.get()
                )
        except TimeoutError:
            return self._late(at)
        except OSError as error:
            return unknown_of(refused_by_system(SERVICE, error), at)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=patch_of(known + new, seen.status.head, identity, redactor), at=at)

    async def checkout(self, contract: Contract, left: Left) -> Checkout:
        """Look at the contract's checkout, without its source commit and without any remote.

        Raises:
            ServiceError: it cannot be looked at.
        """
        directory, is_there = await self._threads.call(_found, contract.checkout, deadline=left.get())
        if not is_there:
            detail = f"the checkout {directory} is no directory of this machine; correct `checkout` in the contract"
            raise NoRepositoryError(SERVICE, detail)
        place = await self._git.place(directory, left)
        own = await self._threads.call(own_globs, contract, place.top, place.prefix, deadline=left.get())
        status = await self._status(place.top, left)
        if not status.head:
            raise NoCommitError(SERVICE, f"{place.top} has no commit yet; commit what is to be launched")
        if place.prefix and not await self._is_tracked(place, left):
            detail = f"{directory} is no part of the repository around it, {place.top}; set `checkout` to a clone"
            raise NoRepositoryError(SERVICE, detail)
        return Checkout(place, status, (*self._settings.harmless, *contract.code.harmless, *own))

    async def digest(self, seen: Checkout, left: Left) -> str:
        """Return the digest of what counts of the checkout's difference; empty when nothing does.

        Raises:
            ServiceError: a file could not be read, or not in time.
        """
        return await self._digest(seen.place.top, seen.entries_that_count, left, depth=0)

    def _late(self, at: datetime) -> Unknown:
        detail = f"no answer in {say_duration(self._settings.deadline)}; raise [git] deadline or threads"
        return Unknown(reason=Gap.TIMEOUT, detail=detail, at=at)

    async def _ask(self, contract: Contract, left: Left) -> CodeState:
        seen = await self.checkout(contract, left)
        place, status, code = seen.place, seen.status, contract.code
        fetched = Fetched()
        if contract.source_sha is not None and self._settings.fetch:
            fetched = await self.fetches.fresh(place, code, left)
        source, fault, changed = await self._lineage.ask(contract, place, status.head, left)
        return CodeState(
            directory=str(place.top).encode(errors="replace").decode(),
            head=status.head,
            branch=status.branch,
            dirty=_said(each.path for each in status.entries),
            patch_sha256=await self.digest(seen, left),
            upstream=f"{code.remote}/{code.branch}",
            fetched_at=fetched.at,
            fetch_fault=fetched.fault,
            source=source,
            source_fault=fault,
            changed=_said(changed),
            harmless=seen.harmless,
            is_shallow=place.is_shallow,
            underway=await self._threads.call(_underway, place.own, deadline=left.get()),
        )

    async def _is_tracked(self, place: Place, left: Left) -> bool:
        """Whether the checkout's directory is in the commit: a home that is a repository does not own all below it."""
        told = await self._git.run(place.top, "ls-tree", "-z", "HEAD", "--", place.prefix.rstrip("/"), left=left)
        return bool(told.stdout_raw)

    async def _status(self, directory: Path, left: Left) -> Status:
        told = await self._git.run(
            directory,
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=none",
            "--no-renames",
            "--no-ahead-behind",
            left=left,
        )
        hidden = await read_hidden(self._git, self._threads, directory, left)
        return with_hidden(parse_status(told.stdout_raw), hidden)

    async def _digest(self, top: Path, entries: tuple[Entry, ...], left: Left, *, depth: int) -> str:
        inner: dict[bytes, str] = {}
        for entry in entries:
            if not entry.is_repository or depth >= _DEEPEST:
                continue
            below = top / entry.path.decode(errors="surrogateescape")
            if await self._threads.call(is_repository, below, deadline=left.get()):
                status = await self._status(below, left)
                own = await self._digest(below, status.entries, left, depth=depth + 1)
                inner[entry.path] = f"{status.head} {own}"
        return await self._threads.call(digest_of, top, entries, inner, lambda: left.is_over, deadline=left.get())


def _found(checkout: str) -> tuple[Path, bool]:
    directory = Path(checkout).absolute()
    return directory, directory.is_dir()


def _said(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(sorted({say_path(path) for path in paths}))


def _underway(own: Path) -> str:
    return next((what for name, what in _UNDERWAY if (own / name).exists()), "")
