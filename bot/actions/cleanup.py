"""Deleting checkpoints: the list that is put to the DRI, and the steps that delete exactly that list."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from bot.actions.ports import Fence
from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.contract import Contract
from bot.model.errand import Answer, CannotYet, Errand, Found, Planned
from bot.model.plan import CleanUpPlan, PlannedRemoval
from bot.model.reading import Unknown
from bot.model.record import Record
from bot.render.words import say_bytes
from bot.sources.checkpoints import absolute
from bot.sources.ports import CheckpointSource
from bot.sources.storage import SERVICE, directory_at
from bot.store.store import Store
from bot.threads import BoundedThreads
from checks.cleanup import Kept, Split, split_checkpoints, starts_of

_SHOWN_KEPT = 20


class CleanUp:
    """Looks into a wish for a clean-up, and carries one out. Nothing is deleted that is not on the granted list."""

    def __init__(
        self,
        *,
        checkpoints: CheckpointSource,
        contracts: Callable[[], tuple[Contract, ...]],
        store: Store,
        clock: Clock,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=60),
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take the parts.

        Args:
            checkpoints: lists what there is.
            contracts: of all runs: what one of them starts from stays.
            store: for the launches on record.
            clock: for whether a grant still counts.
            threads: where the storage is asked.
            deadline: of one look at one directory, and of one deletion.
            options: by protocol, for fsspec.
        """
        self._checkpoints = checkpoints
        self._contracts = contracts
        self._store = store
        self._clock = clock
        self._threads = threads or BoundedThreads(SERVICE, 4)
        self._deadline = deadline
        self._options = options

    # The errand

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:
        """List the candidates with their sizes; ``errand.argument`` may say ``keep N``."""
        keep = _keep(errand.argument)
        if isinstance(keep, str):
            return CannotYet(reason=keep, fix=f"`/hero cleanup {contract.run_id}`, or with `keep 3` after it")
        split = await self._split(contract, record, keep)
        if isinstance(split, Unknown):
            fix = "mend the access to the checkpoint roots; nothing is deleted on a guess"
            return CannotYet(reason=f"what there is cannot be seen: {split.detail}", fix=fix, is_unknown=True)
        kept = tuple(f"keep: {_say_kept(each)}" for each in split.kept[-_SHOWN_KEPT:])
        if len(split.kept) > _SHOWN_KEPT:
            kept = (f"keep: {len(split.kept) - _SHOWN_KEPT} more of lower steps", *kept)
        if not split.candidates:
            return Answer(headline="there is nothing to clean up", lines=kept, next="nothing to do")
        removals = [
            PlannedRemoval(step=each.step, path=each.path, size_bytes=await self._size(each.path, contract))
            for each in split.candidates
        ]
        known = sum(each.size_bytes or 0 for each in removals)
        unknown = sum(each.size_bytes is None for each in removals)
        size = f"frees {say_bytes(known)}" + (f" and {unknown} of unknown size" if unknown else "")
        plan = CleanUpPlan(run_id=contract.run_id, removals=tuple(removals), keep=keep)
        return Planned(plan=plan, evidence=(size, *kept))

    async def _size(self, path: str, contract: Contract) -> int | None:
        def ask() -> int | None:
            return directory_at(absolute(path, contract.checkout), self._options).size_bytes()

        try:
            return await self._threads.call(ask, deadline=self._deadline, key=contract.run_id)
        except ServiceError:
            return None  # shown as unknown; the list does not depend on it

    async def _split(self, contract: Contract, record: Record, keep: int | None) -> Split | Unknown:
        found = await self._checkpoints.checkpoints(contract)
        if isinstance(found, Unknown):
            return found
        others = (each for each in self._contracts() if each.run_id != contract.run_id)
        protected: Mapping[str, str] = starts_of((contract, *others))
        return split_checkpoints(found.value, contract, record, keep=keep, protected=protected)

    # The steps

    async def take(
        self,
        step: StepName,
        action: Action,
        contract: Contract,
        *,
        is_resumed: bool,  # noqa: ARG002 - the port's; a deletion is safe to repeat
        fence: Fence,
    ) -> StepOutcome:
        """Verify the list, or delete the next one of it."""
        plan = action.plan
        if not isinstance(plan, CleanUpPlan) or step not in {StepName.VERIFY, StepName.DELETE}:
            msg = f"action {action.number} is no clean-up, or has no step {step}"
            raise AssertionError(msg)
        if not action.grant.covers(plan, self._clock.now()):
            return Refused(detail=await self._say_expired(plan, contract))
        left = await self._left(plan, contract)
        if isinstance(left, ServiceError):
            return Waiting(detail=f"what is there cannot be seen: {left.detail}")
        if step is StepName.VERIFY:
            return await self._verify(plan, left, contract, action)
        return await self._delete(plan, left, contract, action, fence)

    async def _verify(
        self, plan: CleanUpPlan, left: tuple[PlannedRemoval, ...], contract: Contract, action: Action
    ) -> StepOutcome:
        gone = next((each.path for each in plan.removals if each not in left), None)
        if gone is not None:
            return Refused(detail=f"the list has changed since it was asked about: {gone} is gone already")
        return await self._still_candidates(plan, left, contract, action)

    async def _delete(
        self, plan: CleanUpPlan, left: tuple[PlannedRemoval, ...], contract: Contract, action: Action, fence: Fence
    ) -> StepOutcome:
        if not left:
            freed = sum(each.size_bytes or 0 for each in plan.removals)
            return Done(detail=f"{len(plan.removals)} deleted, {say_bytes(freed)} as far as was measured")
        checked = await self._still_candidates(plan, left, contract, action)
        if not isinstance(checked, Done):
            return checked
        await fence()
        first = left[0]
        where = directory_at(absolute(first.path, contract.checkout), self._options)
        try:
            await self._threads.call(where.remove, deadline=self._deadline, key=contract.run_id)
        except ServiceError as error:
            return Waiting(detail=f"{first.path} is not gone yet: {error.detail}")
        done = len(plan.removals) - len(left) + 1
        return Waiting(detail=f"{done} of {len(plan.removals)} deleted, last {first.path}")

    async def _left(self, plan: CleanUpPlan, contract: Contract) -> tuple[PlannedRemoval, ...] | ServiceError:
        """Return what of the list is still there."""

        def ask() -> tuple[PlannedRemoval, ...]:
            return tuple(
                each
                for each in plan.removals
                if directory_at(absolute(each.path, contract.checkout), self._options).exists()
            )

        try:
            return await self._threads.call(ask, deadline=self._deadline, key=contract.run_id)
        except ServiceError as error:
            return error

    async def _still_candidates(
        self, plan: CleanUpPlan, left: tuple[PlannedRemoval, ...], contract: Contract, action: Action
    ) -> StepOutcome:
        """See that everything that is left of the list may still go; a half-deleted one has lost its metadata."""
        record = await self._store.record(action.run_id)
        if record is None:
            return Waiting(detail="nothing is on record of the run")
        split = await self._split(contract, record, plan.keep)
        if isinstance(split, Unknown):
            return Waiting(detail=f"what there is cannot be seen: {split.detail}")
        kept = {each.checkpoint.path: each.why for each in split.kept}
        for each in left:
            if each.path in kept:
                return Refused(detail=f"{each.path} may not be deleted any more: {kept[each.path]}")
        return Done(detail=f"all {len(left)} may still be deleted")

    async def _say_expired(self, plan: CleanUpPlan, contract: Contract) -> str:
        left = await self._left(plan, contract)
        expired = "the approval is no longer valid: it has expired or is for another plan"
        if isinstance(left, ServiceError):
            return expired
        return f"{expired}; {len(plan.removals) - len(left)} of {len(plan.removals)} are gone"


def _keep(argument: str) -> int | str | None:
    """Return the number after ``keep``; None when nothing is said; what is wrong with it as text."""
    match argument.split():
        case []:
            return None
        case ["keep", number] if number.isascii() and number.isdigit() and 0 < int(number) < 1000:  # noqa: PLR2004 - sane
            return int(number)
        case _:
            return f"{argument[:60]!r} is not understood"


def _say_kept(kept: Kept) -> str:
    return f"{kept.checkpoint.path} (step {kept.checkpoint.step}): {kept.why}"
