"""Deleting checkpoints: the list that is put to the DRI, and the steps that delete exactly that list."""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from bot.actions.ports import Fence
from bot.clock import Clock
from bot.contracts import BadContract
from bot.errors import ServiceError
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Waiting
from bot.model.contract import Contract
from bot.model.errand import Answer, CannotYet, Errand, Found, Planned
from bot.model.places import normalised, overlaps
from bot.model.planned import CleanUpPlan, PlannedRemoval
from bot.model.reading import Gap, Unknown
from bot.model.record import Record
from bot.model.run import Run
from bot.model.snapshot import Checkpoint
from bot.render.words import say_bytes
from bot.sources.checkpoints import absolute
from bot.sources.gaps import unknown_of
from bot.sources.ports import CheckpointSource
from bot.sources.storage import SERVICE, directory_at
from bot.store.store import Store
from bot.threads import BoundedThreads
from checks.cleanup import Kept, Split, handed_over_by, split_checkpoints, starts_of

_SHOWN_KEPT = 20
_SAME = {"gcs": "gs", "s3a": "s3", "s3n": "s3"}
"""Schemes that name the same store."""


class CleanUp:
    """Looks into a wish for a clean-up, and carries one out. Nothing is deleted that is not on the granted list."""

    def __init__(
        self,
        *,
        checkpoints: CheckpointSource,
        contracts: Callable[[], tuple[Contract | BadContract, ...]],
        store: Store,
        clock: Clock,
        threads: BoundedThreads | None = None,
        deadline: timedelta = timedelta(seconds=60),
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Take the parts.

        Args:
            checkpoints: lists what there is.
            contracts: of all runs: what one of them starts from stays. While one cannot be read, nothing is deleted.
            store: for the launches on record, and for what the trials of all runs hand over.
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
            fix = "mend that, and ask again; nothing is deleted on a guess"
            return CannotYet(reason=f"what there is cannot be seen: {split.detail}", fix=fix, is_unknown=True)
        kept = tuple(f"keep: {_say_kept(each)}" for each in split.kept[-_SHOWN_KEPT:])
        if len(split.kept) > _SHOWN_KEPT:
            kept = (f"keep: {len(split.kept) - _SHOWN_KEPT} more of lower steps", *kept)
        if not split.candidates:
            return Answer(headline="there is nothing to clean up", lines=kept, next="nothing to do")
        try:
            places = await self._real(tuple(each.path for each in split.candidates), contract)
        except ServiceError as error:
            fix = "mend the access to the checkpoint roots; nothing is deleted on a guess"
            return CannotYet(reason=f"where it lies cannot be seen: {error.detail}", fix=fix, is_unknown=True)
        removals = [
            PlannedRemoval(step=each.step, path=place, size_bytes=await self._size(place, contract))
            for each, place in zip(split.candidates, places, strict=True)
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
        known = self._contracts()
        bad = next((each for each in known if isinstance(each, BadContract)), None)
        if bad is not None:
            detail = f"what {bad.run_id} starts from is not known, as its contract cannot be used: {bad.problems[0]}"
            return Unknown(reason=Gap.REFUSED, detail=detail, at=found.at)
        others = tuple(each for each in known if isinstance(each, Contract) and each.run_id != contract.run_id)
        runs = await self._store.runs()
        try:
            protected = await self._protected(found.value, contract, others, runs)
        except ServiceError as error:
            return unknown_of(error, found.at)
        return split_checkpoints(found.value, contract, record, keep=keep, protected=protected)

    async def _protected(
        self, found: tuple[Checkpoint, ...], contract: Contract, others: tuple[Contract, ...], runs: tuple[Run, ...]
    ) -> Mapping[str, str]:
        """Return which of the checkpoints some run starts from, or some trial hands over, however it is spelled."""
        contracts = (contract, *others)
        checkouts = {each.run_id: each.checkout for each in contracts}

        def ask() -> Mapping[str, str]:
            starts = {
                real_place(start, each.checkout): why for each in contracts for start, why in starts_of((each,)).items()
            }
            starts |= {
                real_place(path, checkouts.get(run.run_id, contract.checkout)): why
                for run in runs
                for path, why in handed_over_by((run,)).items()
            }
            places = {each.path: real_place(each.path, contract.checkout) for each in found}
            return {
                path.rstrip("/"): why
                for path, place in places.items()
                for start, why in starts.items()
                if overlaps(place, start)
            }

        return await self._threads.call(ask, deadline=self._deadline, key=contract.run_id)

    async def _real(self, paths: tuple[str, ...], contract: Contract) -> tuple[str, ...]:
        """Return where these paths lie, with every link on the way followed.

        Raises:
            ServiceError: it cannot be seen in time.
        """

        def ask() -> tuple[str, ...]:
            return tuple(real_path(each, contract.checkout) for each in paths)

        return await self._threads.call(ask, deadline=self._deadline, key=contract.run_id)

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
        try:
            kept_places = await self._real(tuple(each.checkpoint.path for each in split.kept), contract)
            places = await self._real(tuple(each.path for each in left), contract)
        except ServiceError as error:
            return Waiting(detail=f"where it lies cannot be seen: {error.detail}")
        for each, place in zip(left, places, strict=True):
            if place != each.path:
                return Refused(detail=f"{each.path} is not where it was any more: it leads to {place} by now")
        kept = {place: each.why for each, place in zip(split.kept, kept_places, strict=True)}
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


def real_place(address: str, checkout: str) -> str:
    """Return a place in one spelling, so that two contracts' can be compared; links on a disk are followed."""
    place = normalised(address, checkout)
    scheme, found, rest = place.partition("://")
    return f"{_SAME.get(scheme, scheme)}://{rest}" if found else os.path.realpath(place)


def real_path(path: str, checkout: str) -> str:
    """Return a checkpoint's path with every link above it followed; an address stays as it is."""
    whole = absolute(path, checkout)
    if "://" in whole:
        return whole
    above, name = os.path.split(whole.rstrip("/"))
    return os.path.join(os.path.realpath(above), name)  # noqa: PTH118 - paths as text


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
