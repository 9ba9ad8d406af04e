"""Looks into what people asked for by command, after the check that follows it; what is found goes to the handlers.

A command is answered at once and never waits for a service. What needs one is noted with the run as an errand, the run
is checked soon, and this comes after the check: one preparer for each kind, read-only, each with a deadline.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Protocol

import structlog

from bot.clock import Clock
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.errand import CannotYet, Errand, ErrandKind, Found
from bot.model.record import Record
from bot.model.roles import with_roles
from bot.store.store import Store

log = structlog.get_logger()

type HandOn = Callable[[Contract, Errand, Found], Awaitable[None]]


class Preparer(Protocol):
    """Reads what one kind of errand needs, and says what could be done."""

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:
        """Read the world and return a plan, an answer, or why there is none. Changes nothing."""
        ...


class Errands:
    """All kinds of errands."""

    def __init__(
        self,
        *,
        preparers: Mapping[ErrandKind, Preparer],
        store: Store,
        clock: Clock,
        hand_on: HandOn,
        deadline: timedelta,
    ) -> None:
        """Take the parts.

        Args:
            preparers: by kind.
            store: where errands are remembered.
            clock: for the log.
            hand_on: gets what was found; commits what follows and takes the errand off.
            deadline: of one errand.
        """
        self._preparers = preparers
        self._store = store
        self._clock = clock
        self._hand_on = hand_on
        self._deadline = deadline

    async def run(self, contract: Contract) -> None:
        """Look into everything that is asked of one run.

        Raises:
            StoreError: the database refused.
        """
        record = await self._store.record(contract.run_id)
        for errand in record.run.errands if record else ():
            assert record is not None  # noqa: S101 - the loop is empty without one
            began = self._clock.monotonic()
            found = await self._look(with_roles(contract, record.run.roles), record, errand)
            log.info(
                "errand_looked_into",
                run_id=contract.run_id,
                errand=errand.kind,
                found=found.kind,
                duration_s=round(self._clock.monotonic() - began, 3),
            )
            await self._hand_on(contract, errand, found)

    async def _look(self, contract: Contract, record: Record, errand: Errand) -> Found:
        preparer = self._preparers.get(errand.kind)
        if preparer is None:
            return CannotYet(
                reason=f"a {errand.kind} cannot be prepared: what it needs is not configured",
                fix="`hero doctor` says what is missing in hero.toml",
            )
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                return await preparer.prepare(contract, record, errand)
        except TimeoutError:
            reason = f"looking into it took longer than {say_duration(self._deadline)}"
            return CannotYet(reason=reason, fix="ask again; `hero doctor` says what is slow", is_unknown=True)
        except Exception as error:
            log.exception("errand_broke", run_id=contract.run_id, errand=errand.kind)
            reason = f"Hero's own code broke at it: {type(error).__name__}"
            return CannotYet(reason=reason, fix="report the traceback in Hero's log", is_unknown=True)
