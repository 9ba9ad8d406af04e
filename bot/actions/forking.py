"""Forks the tracker's history exactly once: looked for first, and made again only when there is positively none."""

from datetime import timedelta

from bot.actions.ports import Fence, Forker
from bot.clock import Clock
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Uncertain, Waiting
from bot.model.reading import Known, Unknown
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.trialplan import PlannedFork

_MOST_TRIES = 2
"""How often one approval creates it at most; what the tracker never shows is no better for a third time."""


class Forking:
    """The step FORK of a cut-over.

    Source: deploy checklist, "Execute the trial" 1: the fork is created once.
    """

    def __init__(self, forker: Forker | None, *, clock: Clock, settle: timedelta) -> None:
        """Take the parts.

        Args:
            forker: the tracker; None where the settings name none.
            clock: for whether a grant still counts, and for ``settle``.
            settle: how long the tracker must positively know of no fork before a creation that was cut off counts as
                never made; at least as long as one may take, since a request on its way may still arrive.
        """
        self._forker = forker
        self._clock = clock
        self._settle = settle
        self._absent_since: dict[int, float] = {}
        self._failures: dict[int, str] = {}

    async def fork(  # noqa: PLR0911 - one return a case
        self, fork: PlannedFork | None, action: Action, fence: Fence
    ) -> StepOutcome:
        """Do the step once, or look once more at what became of it."""
        if fork is None:
            return Done(detail="the run has no tracker: there is no history to fork")
        if self._forker is None:
            return Refused(detail="no tracker is configured in hero.toml; nothing was forked or stopped")
        found = await self._forker.find(fork)
        if isinstance(found, Unknown):
            self._absent_since.pop(action.number, None)
            return self._unread(fork, action, found)
        if found.value is not None and found.value.state is not TrackerRunState.MISSING:
            return _judge(fork, found.value)
        if action.tries.get(StepName.FORK, 0) and not self._has_settled(action):
            return Uncertain(detail=f"asking the tracker whether {fork.child_id} was created before the break")
        if why := self._why_not(fork, action):
            return Refused(detail=why)
        return await self._create(self._forker, fork, action, fence)

    async def _create(self, forker: Forker, fork: PlannedFork, action: Action, fence: Fence) -> StepOutcome:
        self._absent_since.pop(action.number, None)
        await fence()
        outcome = await forker.create(fork)
        if isinstance(outcome, Refused):
            return outcome
        if isinstance(outcome, Uncertain | Waiting):
            if isinstance(outcome, Uncertain) and outcome.is_over:
                self._failures[action.number] = outcome.detail
            return Uncertain(detail=outcome.detail)
        found = await forker.find(fork)
        if isinstance(found, Known) and found.value is not None and found.value.state is not TrackerRunState.MISSING:
            return _judge(fork, found.value)
        self._failures[action.number] = f"{fork.child_id} is said to be created"
        return Uncertain(detail=f"{fork.child_id} is said to be created, and the tracker does not show it yet")

    def _unread(self, fork: PlannedFork, action: Action, gap: Unknown) -> StepOutcome:
        """Say that the tracker does not answer; what was never begun ends with the approval, what was is looked for."""
        detail = f"whether {fork.child_id} exists in the tracker cannot be asked: {gap.detail}"
        if action.tries.get(StepName.FORK, 0):
            return Uncertain(detail=detail)
        if not action.grant.covers(action.plan, self._clock.now()):
            return Refused(detail=f"the approval has expired, and {detail}; nothing was forked or stopped")
        return Waiting(detail=detail, is_unknown=True)

    def _why_not(self, fork: PlannedFork, action: Action) -> str:
        """Say why a fork that does not exist may not be created (again); empty when it may."""
        if failure := self._failures.get(action.number):
            return f"{failure}; the tracker knows no {fork.child_id}, and nothing was stopped"
        if action.tries.get(StepName.FORK, 0) >= _MOST_TRIES:
            return f"{fork.child_id} was begun twice without the tracker knowing of it; nothing was stopped, ask again"
        if not action.grant.covers(action.plan, self._clock.now()):
            return "the approval has expired; nothing was forked or stopped"
        return ""

    def _has_settled(self, action: Action) -> bool:
        now = self._clock.monotonic()
        return now - self._absent_since.setdefault(action.number, now) >= self._settle.total_seconds()


def _judge(fork: PlannedFork, state: TrackerState) -> StepOutcome:
    """Say whether what the tracker shows is that very fork; anything else under the child's id is not touched."""
    point = state.forked_from
    if point is not None and (point.run_id, point.step) == (fork.parent_id, fork.fork_step):
        return Done(detail=f"{fork.child_id} is forked off {fork.parent_id} at _step {fork.fork_step}")
    what = f"forked off {point.run_id} at _step {point.step}" if point else "no fork"
    planned = f"{fork.parent_id} at _step {fork.fork_step}"
    why = f"{fork.child_id} exists in the tracker and is {what}, not off {planned}; it was not touched"
    return Refused(detail=f"{why}, and nothing was stopped")
