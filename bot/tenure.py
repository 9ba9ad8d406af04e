"""One Hero at a time acts on one database: the lease, held, renewed, and taken over from a holder that is dead."""

import asyncio
import os
import socket
import uuid
from datetime import timedelta
from pathlib import Path

import psutil
import structlog

from bot.clock import Clock
from bot.errors import LeaseLostError, StoreError
from bot.sources.local_processes import is_living, start_of
from bot.store.leases import Lease
from bot.store.store import Store

log = structlog.get_logger()

NAME = "bot"
TTL = timedelta(seconds=30)
_STANDBY_POLL = timedelta(seconds=2)


class Tenure:
    """This process's right to act."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lease: Lease | None = None
        self._holder = f"{machine()}|{os.getpid()}|{start_of(os.getpid())}|{uuid.uuid4().hex}"

    @property
    def lease(self) -> Lease | None:
        """The lease while it is held."""
        return self._lease

    async def begin(self) -> None:
        """Wait until the lease is ours: at once when nobody holds it, or whoever held it on this machine is dead.

        A database that refuses, as one that another program has locked, is asked again and again too: whoever stands by
        must be there when it answers.
        """
        told: set[str] = set()
        while self._lease is None:
            reason = "another Hero is at work on this database"
            try:
                await self._bury_the_dead()
                self._lease = await self._store.acquire_lease(NAME, self._holder, TTL)
            except StoreError as error:
                reason = str(error)
            if self._lease is None:
                if reason not in told:
                    told.add(reason)
                    log.warning("standing_by", reason=reason)
                await self._clock.sleep(_STANDBY_POLL)
        log.info("lease_taken", fence=self._lease.fence)

    async def _bury_the_dead(self) -> None:
        """Give back the lease of a process of this machine that does not live any more: it can't do that itself."""
        current = await self._store.current_lease(NAME)
        if current is not None and current.expires_at > self._clock.now() and is_dead_here(current.holder):
            log.info("lease_of_dead_holder_given_back", holder=current.holder.rsplit("|", 1)[0])
            await self._store.release_lease(current)

    async def keep(self) -> None:
        """Renew for ever.

        Raises:
            LeaseLostError: another Hero took over; this one must stop.
        """
        while True:
            await self._clock.sleep(TTL / 3)
            if self._lease is None:
                raise LeaseLostError("the lease was given back while Hero still runs")
            try:
                self._lease = await self._store.renew_lease(self._lease, TTL)
            except LeaseLostError:
                raise
            except StoreError as error:
                log.warning("lease_not_renewed", detail=str(error))

    async def end(self) -> None:
        """Give the lease back; when the database does not take it, it runs out by itself."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            async with asyncio.timeout(2):
                await self._store.release_lease(lease)
        except (StoreError, TimeoutError) as error:
            log.warning("lease_not_given_back", detail=str(error) or "the database does not answer in time")


def machine() -> str:
    """Name what this process can see the processes of: two containers may share a host name, not a pid namespace."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def is_dead_here(holder: str) -> bool:
    """Whether a holder was a process of this machine and is gone; False for other machines: nobody can tell.

    A pid that another process has got since does not keep it alive, a clock that was set does not kill it, and a zombie
    that nobody waits for is dead.
    """
    parts = holder.split("|")
    if len(parts) != 4 or parts[0] != machine() or not parts[1].isdigit():  # noqa: PLR2004 - as made above
        return False
    pid, start = int(parts[1]), parts[2]
    try:
        return not is_living(psutil.Process(pid)) or start_of(pid) not in {start, ""}
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
