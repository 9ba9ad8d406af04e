"""Brings one branch of a remote up to date, seldom, and touches nothing else: no tag, no other branch, no work tree."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from bot.clock import Clock
from bot.errors import DeadlineError, ServiceError
from bot.model.contract import CodeContract
from bot.sources.git.program import Git, Left, Place

log = structlog.get_logger()

_SHARE = 0.5
"""Of the time of a reading; a remote that hangs must not cost what can be said without it."""


@dataclass(frozen=True)
class Fetched:
    """How the newest fetch went."""

    at: datetime | None = None
    """Of the newest one that brought the branch; None when none did."""
    fault: str = ""
    """Why the newest one brought nothing."""


@dataclass
class _Branch:
    newest: Fetched = Fetched()
    tried_s: float | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Fetches:
    """Every branch that was fetched, and when; runs that share a repository share its fetches."""

    def __init__(self, git: Git, clock: Clock, every: timedelta) -> None:
        self._git = git
        self._clock = clock
        self._every_s = every.total_seconds()
        self._branches: dict[tuple[str, str, str], _Branch] = {}

    async def fresh(self, place: Place, code: CodeContract, left: Left, *, within: timedelta | None = None) -> Fetched:
        """Fetch when it is time, and say how fresh the branch is; a fetch that fails is an answer too.

        Args:
            place: of the repository.
            code: names the remote and its branch.
            left: half of it may be taken.
            within: how old the newest fetch may be for whoever needs it fresher than it usually is.
        """
        every_s = self._every_s if within is None else min(self._every_s, within.total_seconds())
        branch = self._branches.setdefault((place.common, code.remote, code.branch), _Branch())
        async with branch.lock:
            if branch.tried_s is None or self._clock.monotonic() - branch.tried_s >= every_s:
                branch.tried_s = self._clock.monotonic()
                before = branch.newest.at
                branch.newest = Fetched(before, f"the fetch of {code.remote} was cut off")
                branch.newest = await self._fetch(place, code, left.part(_SHARE), before)
        return branch.newest

    async def _fetch(self, place: Place, code: CodeContract, left: Left, before: datetime | None) -> Fetched:
        at = self._clock.now()
        refspec = f"+refs/heads/{code.branch}:refs/remotes/{code.remote}/{code.branch}"
        by_hand = f"see that `git -C {place.top} fetch {code.remote} {code.branch}` works for the user who runs Hero"
        try:
            await self._git.run(
                place.top,
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-prune",
                "--no-prune-tags",
                "--no-write-fetch-head",
                "--no-auto-maintenance",
                "--no-recurse-submodules",
                "--refmap=",
                code.remote,
                refspec,
                left=left,
                may_load=True,
            )
        except DeadlineError:
            fault = f"{code.remote} did not answer in time; {by_hand}, or raise [git] deadline"
        except ServiceError as error:
            is_missing = "couldn't find remote ref" in error.detail
            fix = "correct [code] branch in the contract" if is_missing else by_hand
            fault = f"{error.detail}; {fix}"
        else:
            log.debug("code_fetched", remote=code.remote, branch=code.branch)
            return Fetched(at)
        log.warning("code_fetch_failed", remote=code.remote, branch=code.branch, detail=fault)
        return Fetched(before, fault)
