"""Shows what a look at a trial has seen: the report, the tracker's own one, and the picture for chat.

A report is a picture of the verdict. One that fails or hangs costs the look nothing.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog

from bot.clock import Clock
from bot.comparing import window_of
from bot.errors import StoreError
from bot.model.chart import Chart
from bot.model.conduct import Trial
from bot.model.contract import Contract
from bot.model.delivery import ChannelName
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Record
from bot.model.series import History
from bot.model.trial import Comparison
from bot.render.trial import chart_of_trial
from handlers.trial.look import TrialLook

log = structlog.get_logger()

_REPORT_DEADLINE = timedelta(seconds=30)
_TRACKER_DEADLINE = timedelta(seconds=45)
"""A report is a picture of the verdict: one that hangs is done without."""


class Reports(Protocol):
    """Where a comparison is shown; see ``bot.reporting``."""

    async def publish(
        self,
        contract: Contract,
        trial: Trial,
        control: History,
        child: History,
        found: Comparison | None,
        *,
        links: tuple[tuple[str, str], ...] = (),
        unknown: tuple[str, ...] = (),
    ) -> Reading[str]:
        """Write the report anew and return its address; what could not be read this time stands on it too."""
        ...


class TrackerReports(Protocol):
    """The tracker's own report of the two runs."""

    async def publish(self, contract: Contract, child: Contract, trial: Trial) -> Reading[str]:
        """Create it once, or find it; return its address."""
        ...


@dataclass(frozen=True)
class On:
    """One trial that is looked at."""

    contract: Contract
    record: Record
    trial: Trial
    child: Contract | None
    beside: Record | None
    """The child's record."""


@dataclass(frozen=True)
class Shown:
    """A look, and what its report shows."""

    look: TrialLook
    control: History
    child: History
    found: Comparison | None
    gaps: tuple[str, ...] = ()


class Showing:
    """Publishes what was seen."""

    def __init__(
        self, reports: Reports, tracker_reports: TrackerReports | None, clock: Clock, *, most: timedelta
    ) -> None:
        """Take the parts.

        Args:
            reports: where a comparison is shown.
            tracker_reports: None where the tracker has none of its own.
            clock: for when something could not be shown.
            most: how long one of the reports may take, whatever its own limit is.
        """
        self._reports = reports
        self._tracker_reports = tracker_reports
        self._clock = clock
        self._most = most

    async def show(self, on: On, seen: Shown) -> TrialLook:
        """Return the look with where it is shown; a report that fails, breaks or hangs is a gap and no more."""
        look, trial = seen.look, on.trial
        unknown = (f"the child's job: {look.child.detail}",) if isinstance(look.child, Unknown) else ()
        publishing = self._reports.publish(
            on.contract, trial, seen.control, seen.child, seen.found, links=_links(on), unknown=(*unknown, *seen.gaps)
        )
        shown = await self._published(on, publishing, _REPORT_DEADLINE)
        gaps = [f"the report could not be written: {shown.detail}"] if isinstance(shown, Unknown) else []
        tracker = trial.tracker_report_url
        if not tracker and self._tracker_reports is not None and on.child is not None:
            making = self._tracker_reports.publish(on.contract, on.child, trial)
            made = await self._published(on, making, _TRACKER_DEADLINE)
            tracker = made.value if isinstance(made, Known) else ""
            if isinstance(made, Unknown) and made.reason in {Gap.TIMEOUT, Gap.BROKEN}:
                gaps.append(f"the report in the tracker could not be made: {made.detail}")
        update = {
            "report_url": shown.value if isinstance(shown, Known) else trial.report_url,
            "report_gap": "; ".join(gaps),
            "tracker_report_url": tracker,
            "chart": await self._drawn(on, seen),
        }
        return look.model_copy(update=update)

    async def _published(self, on: On, publishing: Awaitable[Reading[str]], limit: timedelta) -> Reading[str]:
        limit = min(limit, self._most)
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await publishing
        except TimeoutError:
            detail = f"it took longer than {say_duration(limit)}"
            return Unknown(reason=Gap.TIMEOUT, detail=detail, at=self._clock.now())
        except StoreError:
            raise
        except Exception as error:
            log.exception("trial_report_broke", run_id=on.record.run_id)
            detail = f"Hero's own code broke at it: {type(error).__name__}"
            return Unknown(reason=Gap.BROKEN, detail=detail, at=self._clock.now())

    async def _drawn(self, on: On, seen: Shown) -> Chart | None:
        plan = on.trial.plan
        try:
            return await asyncio.to_thread(
                chart_of_trial, on.record.run_id, plan.child_run_id, seen.control, seen.child, window_of(plan)
            )
        except Exception:
            log.exception("trial_chart_broke", run_id=on.record.run_id)
            return None


def _links(on: On) -> tuple[tuple[str, str], ...]:
    """Return what to open for more: the issue, and both runs in the tracker."""
    issue = on.record.posted_at(ChannelName.GITHUB, "thread")
    named = (
        ("issue", issue.link if issue else ""),
        ("the old run in W&B", on.record.run.tracker_url),
        ("the child in W&B", on.beside.run.tracker_url if on.beside else ""),
    )
    return tuple((name, address) for name, address in named if address)
