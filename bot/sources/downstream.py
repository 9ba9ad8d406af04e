"""What lies downstream of a run and pins it: searched before a trial, to be moved when the child is accepted.

Source of the rule: the deploy checklist, "Land the launch record": inventory downstream reports and trackers that pin
the run ID or affected metric keys.
"""

import asyncio
from typing import Protocol

from bot.clock import Clock
from bot.model.contract import Contract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import Pin
from bot.model.trialplan import TrialPlan
from bot.sources.checkpoints import absolute
from bot.sources.chosen import is_tracked
from bot.sources.git.pins import Searched, Word
from bot.sources.guarded import Guarded


class Inventory(Protocol):
    """Checkouts of what lies downstream of a run."""

    async def search(self, directory: str, words: tuple[Word, ...]) -> Reading[Searched]:
        """Search one of them for each of the words."""
        ...


class Reports(Protocol):
    """The tracker's reports."""

    async def pinning(self, entity: str, project: str, words: tuple[str, ...]) -> Reading[tuple[Pin, ...]]:
        """Return the reports of a project that name one of the words; without an entity, of the settings' own."""
        ...


class Downstream:
    """Searches every place that the contract names, and the tracker's reports, side by side."""

    def __init__(
        self, clock: Clock, guarded: Guarded, *, inventory: Inventory | None = None, reports: Reports | None = None
    ) -> None:
        """Take the parts.

        Args:
            clock: for the moment of the readings.
            guarded: puts each place behind its deadline.
            inventory: searches checkouts; None when there is no git.
            reports: searches the tracker's reports; None when none is configured.
        """
        self._clock = clock
        self._guarded = guarded
        self._inventory = inventory
        self._reports = reports

    async def pins(self, contract: Contract, plan: TrialPlan) -> tuple[tuple[str, ...], Reading[tuple[Pin, ...]]]:
        """Return where was searched, and what was found; one place that cannot be searched makes that Unknown."""
        words = words_of(contract, plan)
        directories = [absolute(each, contract.checkout) for each in contract.trial.inventory]
        async with asyncio.TaskGroup() as group:
            places = [group.create_task(self._search(each, words)) for each in directories]
            if self._reports is not None and (where := _project_of(contract, plan)) is not None:
                places.append(group.create_task(self._search_reports(self._reports, *where, words)))
        if not places:
            return (), self._absent("nothing is searched; name checkouts in [trial] inventory")
        found = [each.result() for each in places]
        searched = tuple(place for place, _ in found)
        pins: list[Pin] = []
        for place, reading in found:
            if isinstance(reading, Unknown):
                detail = f"{place}: {reading.detail}"
                return searched, Unknown(reason=reading.reason, detail=detail[:2000], at=reading.at)
            pins += reading.value
        return searched, Known(value=tuple(pins), at=self._clock.now())

    async def _search(self, directory: str, words: tuple[Word, ...]) -> tuple[str, Reading[tuple[Pin, ...]]]:
        if self._inventory is None:
            return directory, self._absent("no git is configured")
        found = await self._guarded.read(f"search of {directory}", self._inventory.search(directory, words))
        if isinstance(found, Unknown):
            return directory, found
        return found.value.place, Known(value=found.value.pins, at=found.at)

    async def _search_reports(
        self, reports: Reports, entity: str, project: str, words: tuple[Word, ...]
    ) -> tuple[str, Reading[tuple[Pin, ...]]]:
        place = f"W&B reports of {entity}/{project}" if entity else f"W&B reports of {project}"
        asked = reports.pinning(entity, project, tuple(each.text for each in words))
        return place, await self._guarded.read("search of reports", asked)

    def _absent(self, detail: str) -> Unknown:
        return Unknown(reason=Gap.NOT_CONFIGURED, detail=detail, at=self._clock.now())


def words_of(contract: Contract, plan: TrialPlan) -> tuple[Word, ...]:
    """Return what is searched for: the old run's id, the tracker's where that is another, and every changed key."""
    ids = dict.fromkeys(filter(None, (contract.run_id, contract.tracker.id if is_tracked(contract) else None)))
    child = tuple(dict.fromkeys((plan.child_run_id, *((plan.fork.child_id,) if plan.fork else ()))))
    return (
        *(Word(each, unless_within=child) for each in ids),
        *(Word(each) for each in dict.fromkeys(contract.trial.changed_metrics)),
    )


def _project_of(contract: Contract, plan: TrialPlan) -> tuple[str, str] | None:
    """Return entity, empty where none is named, and project in which reports are searched; None without a tracker."""
    if plan.fork is not None:
        return plan.fork.entity, plan.fork.project
    if not is_tracked(contract) or not contract.tracker.project:
        return None
    return contract.tracker.entity or "", contract.tracker.project
