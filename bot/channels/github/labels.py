"""Labels of the runs' issues, so that a list of issues shows which run needs whom.

Only labels of Hero's own are ever touched: the one that ``[github] label`` names, and those that are it, a colon and an
end of ``_MEANINGS``. What people take away or add of these by hand is set right within the hour; every other label is
theirs, also one that merely begins alike: where the setting is ``area``, a repository has its own ``area:docs``.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from http import HTTPStatus

import structlog
from github.Repository import Repository

from bot.channels.github.client import GitHubClient
from bot.channels.github.errors import DeniedError
from bot.channels.github.records import DAY, THREAD, Labelled, Records
from bot.channels.github.trouble import Trouble
from bot.channels.ports import Ledger
from bot.clock import Clock
from bot.model.delivery import ChannelName
from bot.model.record import Record
from bot.model.run import RunState

log = structlog.get_logger()

NEEDS_DRI = "needs-dri"
SEALED = "sealed"
_BY_STATE = {
    RunState.FAILED: "failed",
    RunState.RELAUNCHING: "relaunching",
    RunState.BLOCKED: "blocked",
    RunState.ENDED_SHORT: "ended-short",
    RunState.COMPLETED: "completed",
    RunState.STOPPED: "stopped",
}
_COLOURS = {NEEDS_DRI: "d93f0b", "failed": "b60205", "blocked": "b60205", "ended-short": "b60205", SEALED: "0e8a16"}
_PLAIN = "5319e7"
_MEANINGS = {
    "": "A training run that Hero looks after",
    NEEDS_DRI: "A request waits for its DRI's answer",
    "failed": "The job ended and the run is not complete",
    "relaunching": "A relaunch is under way",
    "blocked": "The run's contract cannot be used",
    "ended-short": "Ended, and something of its final artifacts is missing",
    "completed": "Done, with its final checkpoint",
    "stopped": "Ended on purpose",
    SEALED: "Finished, and all of it in its place",
}
_ENDS = frozenset(_MEANINGS) - {""}
_LOOK_EVERY = timedelta(hours=1)
_CONCERN = "labels"


def labels_of(records: Iterable[Record], label: str) -> frozenset[str]:
    """Return what an issue's own labels should be, from the runs that have their conversation there."""
    ends: set[str] = set()
    for record in records:
        if record.open_request is not None:
            ends.add(NEEDS_DRI)
        if record.run.state in _BY_STATE:
            ends.add(_BY_STATE[record.run.state])
        if record.run.seal:
            ends.add(SEALED)
    return frozenset({label, *(f"{label}:{end}" for end in ends)})


class Labels:
    """Keeps them right."""

    def __init__(
        self, label: str, *, client: GitHubClient, ledger: Ledger, records: Records, clock: Clock, trouble: Trouble
    ) -> None:
        """Make it; an empty ``label`` switches it off."""
        self._label = label
        self._client = client
        self._ledger = ledger
        self._records = records
        self._clock = clock
        self._trouble = trouble
        self._there: set[str] = set()

    async def keep(self) -> None:
        """Set the labels of all runs' issues right, where they are not known to be.

        Raises:
            ServiceError: GitHub could not be asked; the rest is done at the next call.
        """
        if not self._label:
            return
        over = (await self._ledger.awaited()).over
        roots = await self._ledger.threads(ChannelName.GITHUB)
        for issue in sorted({int(t.message_id) for t in roots if t.message_id.isdecimal()}):
            runs = [t.run_id for t in roots if t.message_id == str(issue) and t.slot == THREAD]
            records = [found for run_id in runs if (found := await self._ledger.record(run_id)) is not None]
            wanted, known = labels_of(records, self._label), await self._records.labelled(issue)
            if self._is_due(wanted, known, is_over=over.issuperset(runs)):
                await self._set(issue, wanted, known)

    def _is_due(self, wanted: frozenset[str], known: Labelled | None, *, is_over: bool) -> bool:
        if known is None:
            return True
        age = self._clock.now() - known.at
        if known.is_refused:
            return age >= DAY
        return known.names != wanted or (age >= _LOOK_EVERY and not is_over)

    async def _set(self, issue: int, wanted: frozenset[str], known: Labelled | None) -> None:
        now = self._clock.now()
        try:
            changed = await self._change(issue, wanted)
        except DeniedError as error:
            await self._refused(issue, error, known, now)
            return
        if changed:
            log.info("github_labels_set", issue=issue, labels=sorted(wanted))
        self._trouble.end(_CONCERN)
        await self._records.save_labelled(issue, Labelled(names=wanted, at=now))

    async def _refused(self, issue: int, error: DeniedError, known: Labelled | None, now: datetime) -> None:
        """Say it once, and try no more for a day: messages matter more than labels."""
        await self._records.save_labelled(issue, Labelled(names=frozenset(), at=now, is_refused=True))
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return  # the issue itself; whoever reads and writes there says it
        if known is None or not known.is_refused:
            log.warning("github_labels_refused", issue=issue, detail=error.detail)
        self._trouble.begin(
            _CONCERN,
            f"GitHub refuses labels on issue #{issue} ({error.detail}): give Hero the role triage, or the permission "
            'Issues: read and write; or set [github] label = "" for none',
        )

    async def _change(self, issue: int, wanted: frozenset[str]) -> bool:
        """Add and take away what differs; one write a label, so that a person's own labels are never written over."""
        present = await self._client.read(
            lambda repository: [label.name for label in repository.get_issue(issue).labels]
        )
        have = {name.casefold(): name for name in present if self._is_own(name)}
        lacking = sorted(name for name in wanted if name.casefold() not in have)
        for name in lacking:
            await self._ensure(name)
            await self._client.write(_adding(issue, name))
        stale = sorted(have[key] for key in have.keys() - {name.casefold() for name in wanted})
        for name in stale:
            await self._remove(issue, name)
        return bool(lacking or stale)

    async def _remove(self, issue: int, name: str) -> None:
        try:
            await self._client.write(_removing(issue, name))
        except DeniedError as error:
            if error.status != HTTPStatus.NOT_FOUND:  # somebody took it away just now
                raise

    def _is_own(self, name: str) -> bool:
        start, colon, end = name.casefold().partition(f"{self._label.casefold()}:")
        return name.casefold() == self._label.casefold() or (not start and bool(colon) and end in _ENDS)

    async def _ensure(self, name: str) -> None:
        """Create a label with its colour and meaning; one that is there keeps those that people gave it."""
        if name in self._there:
            return
        end = name.removeprefix(self._label).removeprefix(":")

        def create(repository: Repository, enter: Callable[[], None]) -> None:
            enter()
            repository.create_label(name, _COLOURS.get(end, _PLAIN), _MEANINGS[end])

        try:
            await self._client.read(lambda repository: repository.get_label(name).complete().name)
        except DeniedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            try:
                await self._client.write(create)
            except DeniedError as refused:
                # It came into being meanwhile (422), or may be put on issues and not created: that is seen there.
                log.info("github_label_not_created", label=name, detail=refused.detail)
        self._there.add(name)


def _adding(issue: int, name: str) -> Callable[[Repository, Callable[[], None]], None]:
    def add(repository: Repository, enter: Callable[[], None]) -> None:
        enter()
        repository.get_issue(issue).add_to_labels(name)

    return add


def _removing(issue: int, name: str) -> Callable[[Repository, Callable[[], None]], None]:
    def remove(repository: Repository, enter: Callable[[], None]) -> None:
        enter()
        repository.get_issue(issue).remove_from_labels(name)

    return remove
