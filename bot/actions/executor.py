"""Carries out granted plans, one step at a time, so that a crash at any point is survived without doing a thing twice.

Each step's intent is committed before it and its outcome after it (law 3). A step that is found with an intent and no
outcome is resolved by asking the world; only a submission that the orchestrator positively does not know is made.
What the steps of a relaunch are is in ``bot/actions/steps.py``; what people are told of them is decided by the function
handed in.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Literal

import structlog
from structlog.contextvars import bound_contextvars

from bot.actions.ports import StepTaker
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.errors import LeaseLostError, StoreError
from bot.model.action import (
    CHANGING,
    Action,
    ActionState,
    Done,
    Refused,
    StepName,
    StepOutcome,
    Uncertain,
    Waiting,
)
from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.plan import Plan
from bot.model.planned import RelaunchPlan
from bot.model.record import Decision, Record
from bot.model.trialplan import CutOverPlan, RollbackPlan
from bot.model.value import RunId
from bot.store.leases import Lease
from bot.store.store import Store

log = structlog.get_logger()

type Decide = Callable[[Record, Action, datetime], Decision]
"""What follows from an action as it stands now: the changed run, instances, and what people are told."""

type _Claim = tuple[Literal["jobs", "launch"], RunId]
"""What one action under way has to itself: a run's jobs, or the right to launch it or the other run of its trial."""

type Alarm = Callable[[StoreError], None]
"""Called when the database refuses: tells people on a path that needs none."""

_PATIENT = (StepName.SUBMIT, StepName.FORK)
"""Steps that never give up: what may have been made stays unknown until the orchestrator, or the tracker, answers."""

_UNSEEN_TOLD_AFTER = 3
"""So many answered looks in a row that show no job of a submission are told; one or two are no news."""

_AFTER_SUBMIT = (StepName.CONFIRM, StepName.STABILISE, StepName.RESTORE)


class _TakenBackError(Exception):
    """The action ended in the database while it was under way here; nothing more of it may be done."""


class Executor:
    """One worker for all granted actions; at most one is under way for a run, also where it touches two."""

    def __init__(
        self,
        *,
        store: Store,
        steps: Mapping[str, StepTaker],
        contracts: Contracts,
        clock: Clock,
        decide: Decide,
        alarm: Alarm,
        poll: timedelta,
        deadlines: dict[StepName, timedelta],
        lease: Callable[[], Lease | None],
    ) -> None:
        """Take the parts.

        Args:
            store: where intents and outcomes are committed.
            steps: what each step does, by the plan's kind.
            contracts: read anew before every step; a contract that broke meanwhile stops the action.
            clock: for times and pauses.
            decide: what people are told.
            alarm: called when the database refuses.
            poll: pause between two looks at a world that is not there yet.
            deadlines: how long each step may wait for the world.
            lease: this process's right to act; checked inside every commit, so before every step.
        """
        self._store = store
        self._steps = steps
        self._contracts = contracts
        self._clock = clock
        self._decide = decide
        self._alarm = alarm
        self._poll = poll
        self._deadlines = deadlines
        self._lease = lease
        self._first_look: dict[tuple[int, StepName], float] = {}
        self._unseen: dict[tuple[int, StepName], int] = {}
        self._busy: dict[_Claim, asyncio.Task[None]] = {}
        self._halt = asyncio.Event()

    async def halt(self, limit: timedelta) -> None:
        """Begin no further step, and give the one that is under way a while to note its outcome."""
        self._halt.set()
        if self._busy:
            await asyncio.wait(set(self._busy.values()), timeout=limit.total_seconds())

    async def run(self) -> None:
        """Carry out whatever is granted, for ever; what a crash left unfinished comes first."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._store.actions_granted.clear()
                before = set(self._busy)  # an action that ends while this is read would be begun again as it was
                for action, claims in await self._unfinished():
                    if not (claims & (before | self._busy.keys())) and not self._halt.is_set():
                        task = group.create_task(self._carry_out(action), name=f"action-{action.number}")
                        self._busy |= dict.fromkeys(claims, task)
                await self._wait_for_news()

    async def _unfinished(self) -> list[tuple[Action, frozenset[_Claim]]]:
        try:
            actions = sorted(await self._store.unfinished_actions(), key=_begun_first)
            return [(action, await self._claims(action)) for action in actions]
        except LeaseLostError:
            raise
        except StoreError as error:
            self._alarm(error)
            return []

    async def _claims(self, action: Action) -> frozenset[_Claim]:
        """Return what no other action may have at the same time.

        Those are the runs that it touches, and for a launch also the other run of every trial: each of two launches
        would find that the other has no job yet. A stop of the other run waits for nothing.
        """
        claims: set[_Claim] = {("jobs", run_id) for run_id in action.runs}
        if action.launches:
            record = await self._store.record(action.run_id)
            trial = record.run.trial if record else None
            paired = (record.trial_of if record else None, trial.plan.child_run_id if trial else None)
            claims |= {("launch", run_id) for run_id in (*action.runs, *paired) if run_id}
        return frozenset(claims)

    async def _wait_for_news(self) -> None:
        try:
            async with asyncio.timeout(30):
                await self._store.actions_granted.wait()
        except TimeoutError:
            return

    async def _carry_out(self, action: Action) -> None:
        """Take one action to its end."""
        with bound_contextvars(run_id=action.run_id, action=action.number):
            try:
                while action.state is ActionState.GRANTED and not self._halt.is_set():
                    try:
                        action = await self._advance(action)
                    except LeaseLostError:
                        raise
                    except StoreError as error:
                        log.warning("action_held_up_by_store", detail=str(error))
                        self._alarm(error)
                        await self._pause()
                        action = await self._as_stored(action)
            finally:
                mine = asyncio.current_task()
                self._busy = {claim: task for claim, task in self._busy.items() if task is not mine}
                self._store.actions_granted.set()  # something may have waited for this one

    async def _as_stored(self, action: Action) -> Action:
        """Return the action as the database has it; what was noted before a write failed must not be forgotten."""
        while not self._halt.is_set():
            try:
                record = await self._store.record(action.run_id)
            except LeaseLostError:
                raise
            except StoreError as error:
                self._alarm(error)
                await self._pause()
            else:
                known = record.actions if record else ()
                return next((each for each in known if each.number == action.number), action)
        return action

    async def _pause(self) -> None:
        """Wait until the next look, or until Hero stops."""
        pause = asyncio.ensure_future(self._clock.sleep(self._poll))
        halted = asyncio.ensure_future(self._halt.wait())
        try:
            await asyncio.wait((pause, halted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            halted.cancel()

    async def _advance(self, action: Action) -> Action:
        """Do the next step once, or look once more at what it waits for."""
        step = action.next_step
        if step is None:
            return await self._commit(action.model_copy(update={"state": ActionState.DONE}))
        self._first_look.setdefault((action.number, step), self._clock.monotonic())
        is_resumed = action.record(step) is not None
        contract = self._contracts.load(action.run_id)
        if isinstance(contract, BadContract):
            outcome = without_contract(contract, step, is_resumed=is_resumed, has_changed=_has_changed(action))
        else:
            if not is_resumed:
                action = await self._commit(action.begun(step, self._clock.now()))
                if action.state is not ActionState.GRANTED:
                    return action
            action, outcome = await self._take(step, action, contract, is_resumed=is_resumed)
            if action.state is not ActionState.GRANTED:
                return action
        log.info("action_step_looked_at", step=step, outcome=outcome.kind, detail=outcome.detail, resumed=is_resumed)
        match outcome:
            case Done() | Refused():
                return await self._end(action, step, outcome)
            case Waiting() | Uncertain():
                return await self._wait(action, step, outcome, self._limit(step, action.plan, contract))

    async def _take(
        self, step: StepName, action: Action, contract: Contract, *, is_resumed: bool
    ) -> tuple[Action, StepOutcome]:
        """Take a step, and return the action as it stands then.

        An adapter that breaks leaves it open what happened, and takes no other run down with it.
        """
        before = action

        async def fence() -> None:
            nonlocal action
            submits = action.submits + (step is StepName.SUBMIT)
            tries = {**action.tries, step: action.tries.get(step, 0) + 1}
            action = await self._commit(action.model_copy(update={"submits": submits, "tries": tries}))
            if action.state is not ActionState.GRANTED:
                raise _TakenBackError

        try:
            taker = self._steps[before.plan.kind]
            outcome = await taker.take(step, before, contract, is_resumed=is_resumed, fence=fence)
        except _TakenBackError:
            return action, Waiting(detail="the action has ended meanwhile")
        except StoreError:
            raise
        except Exception as error:
            log.exception("action_step_broke", step=step)
            broke = f"Hero's own code broke at it: {type(error).__name__}; the traceback is in Hero's log"
            outcome = Uncertain(detail=broke) if step in _PATIENT else Waiting(detail=broke, is_unknown=True)
        return action, outcome

    def _limit(self, step: StepName, plan: Plan, contract: Contract | BadContract) -> timedelta:
        """How long a step may wait: the run's own first minutes are on top of what the orchestrator is given.

        So is a start-up in a trial. Whether that hangs is judged by the step itself, from what was read; this is for
        one of which nothing can be read, or that is not given its machines.
        """
        limit = self._deadlines.get(step, timedelta.max)
        if isinstance(contract, BadContract) and step in _PATIENT:
            return self._deadlines.get(StepName.VERIFY, timedelta.max)  # where it is not begun: see _wait
        if step is StepName.STABILISE and isinstance(contract, Contract):
            return limit + contract.cadence.stabilise
        if step is StepName.RESTORE and isinstance(plan, CutOverPlan) and limit < timedelta.max:
            return limit + timedelta(seconds=plan.startup_limit_s)
        return limit

    async def _wait(self, action: Action, step: StepName, outcome: Waiting | Uncertain, limit: timedelta) -> Action:
        """Come back to a step later, or give it up when its time is over.

        Its time is what this process has waited: while Hero was down or the machine asleep nobody looked.
        """
        waited = timedelta(seconds=self._clock.monotonic() - self._first_look[action.number, step])
        is_patient = step in _PATIENT and action.record(step) is not None
        if waited > limit and not is_patient:
            return await self._end(action, step, _given_up(outcome, limit))
        if isinstance(outcome, Uncertain):
            is_failed = outcome.is_over and step is StepName.SUBMIT
            failure = outcome.detail if is_failed else action.submit_failure
            waiting = action.model_copy(update={"noted": outcome.detail, "submit_failure": failure})
            if waiting != action:
                action = await self._commit(waiting)
        elif self._looks_unseen(action, step, outcome) == _UNSEEN_TOLD_AFTER:
            action = await self._commit(action.model_copy(update={"noted": outcome.detail}))
        await self._pause()
        return action

    def _looks_unseen(self, action: Action, step: StepName, outcome: Waiting) -> int:
        """Count how many looks in a row were answered without a job of the submission."""
        key = action.number, step
        self._unseen[key] = self._unseen.get(key, 0) + 1 if outcome.is_unseen else 0
        return self._unseen[key]

    async def _end(self, action: Action, step: StepName, outcome: StepOutcome) -> Action:
        """Note a step's outcome; a refusal ends the action.

        The write is shielded: the step has happened, and a stop of Hero must not lose that.
        """
        if action.record(step) is None:
            action = action.begun(step, self._clock.now())
        ended = action.ended(step, outcome, self._clock.now())
        update: dict[str, object] = {"noted": outcome.detail}
        if isinstance(outcome, Refused):
            update["state"] = ActionState.VOID if step is StepName.VERIFY else ActionState.FAILED
        elif ended.next_step is None:
            update["state"] = ActionState.DONE
        return await asyncio.shield(self._commit(ended.model_copy(update=update)))

    async def _commit(self, action: Action) -> Action:
        """Write the action and whatever follows from it in one transaction.

        One that ended meanwhile, because its approval was taken back, is returned as it stands and not written.
        """
        at = self._clock.now()
        async with self._store.transaction(self._lease()) as tx:
            record = await tx.record(action.run_id)
            stored = next((a for a in record.actions if a.number == action.number), action)
            if stored.state is not ActionState.GRANTED:
                return stored
            if action.record(StepName.SUBMIT) and not stored.record(StepName.SUBMIT):
                action = action.model_copy(update={"metrics_cursor": record.run.metrics_cursor})
            decision = self._decide(record, action, at)
            await tx.apply(decision, action.run_id, at)
        return action


def _has_changed(action: Action) -> bool:
    """Whether a launch, a cut-over or a rollback has begun to change the world; what it began is not left half done."""
    is_launch = isinstance(action.plan, RelaunchPlan | CutOverPlan | RollbackPlan)
    return is_launch and any(each.step in CHANGING for each in action.records)


def _begun_first(action: Action) -> tuple[bool, int]:
    """Order actions so that what a crash left unfinished comes before what was not begun."""
    return (not action.records, action.number)


def _given_up(outcome: Waiting | Uncertain, limit: timedelta) -> Refused:
    """Say that a step's time is over, and what was seen last."""
    if isinstance(outcome, Waiting) and outcome.is_unseen:
        detail = f"the submitted job was not seen within {say_duration(limit)}: {outcome.detail}"
        return Refused(detail=detail, is_unseen=True)
    is_unknown = isinstance(outcome, Waiting) and outcome.is_unknown
    return Refused(detail=f"not so within {say_duration(limit)}: {outcome.detail}", is_unknown=is_unknown)


def without_contract(bad: BadContract, step: StepName, *, is_resumed: bool, has_changed: bool = False) -> StepOutcome:
    """Refuse to begin on a contract that cannot be used; what is done already stays open until it can.

    Args:
        bad: why it cannot be used.
        step: that is next.
        is_resumed: whether it was begun already.
        has_changed: whether the world was changed for the action already: one bad look does not leave it half done.
    """
    why = "; ".join(bad.problems)
    if step in _PATIENT and is_resumed:
        return Uncertain(detail=f"whether it was done cannot be asked: {why}")
    if step in _AFTER_SUBMIT or has_changed:
        return Waiting(detail=why, is_unknown=True)
    return Refused(detail=why)
