"""Hands each event to its handler and commits what it decides, in one transaction (law 4).

Inbox events come from outside and wait in the store until a transaction has handled them; what Hero itself notices (a
check's verdicts, a step's outcome, the time) is handled at once.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import structlog
from structlog.contextvars import bound_contextvars

from bot.actions.ports import Launcher
from bot.actions.relaunch import NoPlan, plan_relaunch, shape_of
from bot.channels.ports import Channel
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.errors import LeaseLostError, StoreError
from bot.model.action import Action, ActionState
from bot.model.answer import Approve, Deny, parse_answer
from bot.model.audit import AuditEntry
from bot.model.chronicle import HistoryWritten
from bot.model.contract import Contract
from bot.model.delivery import ChannelName, Delivery, Never
from bot.model.errand import Errand, Found
from bot.model.event import Commanded, InboxEvent, Pressed, RunChecked, Said, Unsaid
from bot.model.person import Actor, Person, Standing
from bot.model.plan import RelaunchPlan, RequestState
from bot.model.reading import Gap, Reading, Unknown
from bot.model.record import Decision, Record, Telling
from bot.model.run import Instance, RunState
from bot.model.snapshot import Snapshot
from bot.model.update import Update, UpdateKind
from bot.model.value import RunId
from bot.model.verdict import Severity
from bot.redaction import Redactor
from bot.render.words import say_time
from bot.store.leases import Lease
from bot.store.store import Store
from bot.store.transaction import Transaction
from handlers.blocked import decide_blocked
from handlers.checked import decide_checked
from handlers.command import answer_command, changes_something
from handlers.commands.question import Question
from handlers.context import Context, Rules
from handlers.errands import decide_found
from handlers.outcome import decide_outcome, voided_request
from handlers.recorded import recorded, recorded_without_contract
from handlers.reply import awaits_its_request, decide_pressed, decide_said, decide_unsaid
from handlers.terminal import NotMeant, named_request, remind_at_start, say_instead, which_run
from handlers.timers import decide_time_passed

log = structlog.get_logger()

_IDENTIFY_LIMIT = timedelta(seconds=15)
_TRIES = 5
_FIRST_RETRY = timedelta(seconds=2)
_MOST_DOUBLINGS = 7
_IDLE_S = 5.0


_ONLY_THERE = {UpdateKind.LIVE_STATUS, UpdateKind.ANSWER}
"""What makes no sense in another channel: a picture of now, and what was answered to one person in one place."""


class Conflict(Exception):  # noqa: N818 - not an error of anybody: the event is simply decided anew
    """The event is taken up again in a moment: another transaction was first, or what it is about is not settled."""


class Dispatcher:
    """The only caller of handlers."""

    def __init__(
        self,
        *,
        store: Store,
        contracts: Contracts,
        launchers: Mapping[str, Launcher],
        channels: Mapping[ChannelName, Channel],
        people: tuple[Person, ...],
        rules: Rules,
        redactor: Redactor,
        clock: Clock,
        check_soon: Callable[[RunId], None],
        alarm: Callable[[StoreError], None],
        lease: Callable[[], Lease | None],
    ) -> None:
        """Take the parts.

        Args:
            store: where decisions are committed.
            contracts: read anew for every event.
            launchers: plans are made with them; nothing is launched here.
            channels: asked who an account is, and told through the store.
            people: of the settings.
            rules: settings that decisions depend on.
            redactor: for what is shown of commands.
            clock: now.
            check_soon: makes a run due.
            alarm: hears that the database refuses.
            lease: this process's right to write.
        """
        self._store = store
        self._contracts = contracts
        self._launchers = launchers
        self._channels = channels
        self._people = people
        self._rules = rules
        self._redactor = redactor
        self._clock = clock
        self._check_soon = check_soon
        self._alarm = alarm
        self._lease = lease
        self._since = clock.now()

    # Events from outside

    async def run(self) -> None:
        """Handle what is in the inbox, for ever; what a crash left there comes first."""
        while True:
            self._store.inbox_arrived.clear()
            try:
                handled = await self.handle_pending()
            except LeaseLostError:
                raise
            except StoreError as error:
                self._alarm(error)
                handled = 0
            if not handled:
                await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_IDLE_S):
                await self._store.inbox_arrived.wait()
        except TimeoutError:
            return

    async def handle_pending(self) -> int:
        """Handle every event that is due, oldest first; return how many were done."""
        done = 0
        for event in await self._store.pending_inbox():
            with bound_contextvars(source=event.source, event_id=event.event_id):
                done += await self._handle(event)
        return done

    async def _handle(self, event: InboxEvent) -> bool:
        try:
            identified = await self._identify(event)
            await self._decide(event.model_copy(update={"standing": identified}))
        except LeaseLostError:
            raise
        except Exception as error:
            if not isinstance(error, Conflict):
                log.exception("event_failed", attempt=event.attempt)
            await self._put_off(event, error)
            return False
        log.info("event_handled", kind=event.payload.kind)
        return True

    async def _put_off(self, event: InboxEvent, error: Exception) -> None:
        """Note that an event could not be handled, so that those behind it have their turn.

        While the database refuses, this fails too and the event stays as it is; what our own code breaks at is given
        up after a few tries, kept, and told.
        """
        final = event.attempt + 1 >= _TRIES and not isinstance(error, StoreError)
        pause = _FIRST_RETRY * 2 ** min(event.attempt, _MOST_DOUBLINGS)
        at = self._clock.now()
        async with self._store.transaction(self._lease()) as tx:
            detail = f"{type(error).__name__}: {error}"
            await tx.inbox_failed(event.number, detail, None if final else at + pause)
            if final:
                told = self._notice(
                    f"event/{event.number}",
                    f"Hero could not handle what {event.payload.actor.user_id[:40]} did on {event.source}; it had no "
                    "effect",
                    (f"event {event.event_id[:80]}, received {say_time(event.received_at, self._rules.timezone)}",),
                    "report the traceback in Hero's log; if it was a decision, please send it once more",
                    at,
                )
                await tx.apply(Decision(tell=(told,)), None, at)

    async def _identify(self, event: InboxEvent) -> Reading[Standing] | None:
        """Ask the platform who the actor is now, when what they did may decide something."""
        payload = event.payload
        match payload:
            case Pressed():
                pass
            case Said() if isinstance(parse_answer(payload.text), Approve | Deny):
                pass
            case Commanded() if changes_something(payload.text):
                pass
            case _:
                return None
        return await self._ask_platform(payload.actor)

    async def _ask_platform(self, actor: Actor) -> Reading[Standing]:
        channel = self._channels.get(ChannelName(actor.platform.value))
        at = self._clock.now()
        if channel is None:
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=f"{actor.platform} is not configured", at=at)
        try:
            async with asyncio.timeout(_IDENTIFY_LIMIT.total_seconds()):
                return await channel.identify(actor)
        except TimeoutError:
            return Unknown(reason=Gap.TIMEOUT, detail=f"{actor.platform} did not answer in time", at=at)

    async def _decide(self, event: InboxEvent) -> None:
        at = self._clock.now()
        check_now: RunId | None = None
        async with self._store.transaction(self._lease()) as tx:
            match event.payload:
                case Commanded() as payload:
                    check_now = await self._command(tx, payload, event.standing, at)
                case payload:
                    check_now = await self._conversation(tx, event, payload, at)
            await tx.inbox_done(event.number)
        if check_now is not None:
            self._check_soon(check_now)

    async def _conversation(
        self, tx: Transaction, event: InboxEvent, payload: Said | Unsaid | Pressed, at: datetime
    ) -> RunId | None:
        """Handle what was said in a run's conversation; elsewhere it is nobody's business.

        Returns the run when it is to be checked at once.
        """
        channel = ChannelName(payload.actor.platform.value)
        run_id = await tx.find_run_by_thread(channel, payload.place.key)
        if channel is ChannelName.CONSOLE and isinstance(payload, Said):
            number = named_request(payload.text)
            named = await tx.find_request(number) if number is not None else None
            meant = which_run(payload.text, named, await tx.open_requests(), run_id)
            if isinstance(meant, NotMeant):
                await tx.apply(say_instead(payload, meant, at), None, at)
                return None
            run_id = meant.run_id
        if run_id is None:
            return None
        contract = self._contracts.load(run_id)
        if isinstance(contract, BadContract):
            await tx.apply(decide_blocked(payload, run_id, contract.problems, at), run_id, at)
            return None
        record = await tx.record(run_id)
        if isinstance(payload, Said) and event.attempt + 1 < _TRIES and awaits_its_request(record, payload):
            raise Conflict("the request's own message is not noted yet")
        context = self._context(contract)
        decision: Decision
        match payload:
            case Said():
                decision = decide_said(record, payload, event.standing, context, at)
            case Pressed():
                decision = decide_pressed(record, payload, event.standing, context, at)
            case Unsaid():
                decision = decide_unsaid(record, payload, context, at)
        await self._commit(tx, self._recorded(record, decision, context, at), run_id, at)
        is_over = any(action.state is not ActionState.GRANTED for action in decision.actions)
        return run_id if is_over else None

    async def _commit(self, tx: Transaction, decision: Decision, run_id: RunId, at: datetime) -> None:
        """Store a decision; a request that it decides is redeemed first, by whoever comes first (field report R43)."""
        for request in decision.requests:
            decided = request.state in {RequestState.GRANTED, RequestState.DENIED}
            if decided and not await tx.redeem(request.number, request):
                raise Conflict(request.name)
        await tx.apply(decision, run_id, at)

    async def _command(
        self, tx: Transaction, event: Commanded, standing: Reading[Standing] | None, at: datetime
    ) -> RunId | None:
        records = {record.run_id: record for record in await tx.all_records()}
        contexts: dict[RunId, Context] = {}
        blocked: dict[RunId, str] = {}
        for run_id in dict.fromkeys((*self._contracts.run_ids(), *records)):
            contract = self._contracts.load(run_id)
            if isinstance(contract, BadContract):
                blocked[run_id] = "; ".join(contract.problems)
            else:
                contexts[run_id] = self._context(contract)
        shown = [records.get(run_id) or await tx.record(run_id) for run_id in contexts]
        here = await tx.find_run_by_thread(ChannelName(event.actor.platform.value), event.place.key)
        question = Question(
            event=event,
            standing=standing,
            records=tuple(shown),
            contexts=contexts,
            blocked=blocked,
            here=here,
            people=self._people,
            timezone=self._rules.timezone,
            at=at,
        )
        answered = answer_command(question)
        decision = answered.decision.model_copy(update={"tell": (*answered.decision.tell, answered.telling)})
        about = answered.run_id
        if about is not None and about in contexts:
            record = next(each for each in shown if each.run_id == about)
            decision = self._recorded(record, decision, contexts[about], at)
        await tx.apply(decision, about, at)
        return answered.check_now

    # What Hero itself notices

    async def remind_console(self) -> None:
        """Show what waits for an answer at the terminal that Hero was started in."""
        at = self._clock.now()
        async with self._store.transaction(self._lease()) as tx:
            for record in await tx.all_records():
                contract = self._contracts.load(record.run_id)
                if isinstance(contract, BadContract):
                    continue
                reminder = remind_at_start(self._context(contract), record, at)
                if reminder is not None:
                    await tx.apply(Decision(tell=(reminder,)), record.run_id, at)

    async def run_checked(self, contract: Contract, event: RunChecked) -> None:
        """Commit what follows from one check of one run."""
        async with self._store.transaction(self._lease()) as tx:
            record = await tx.record(event.run_id)
            if _number(record.instance) != _number(event.snapshot.instance):
                # The run was launched while its sources were read: they tell of the launch before, and not of this one.
                log.info("check_outdated", run_id=event.run_id)
                self._check_soon(event.run_id)
                return
            decision = decide_checked(
                record,
                event,
                self._context(contract),
                make_plan=self._planner(contract),
                shape=shape_of(contract, self._redactor),
            )
            decision = self._recorded(record, decision, self._context(contract), event.snapshot.at, event.snapshot)
            await tx.apply(decision, event.run_id, event.snapshot.at)

    async def errand_found(self, contract: Contract, errand: Errand, found: Found) -> None:
        """Commit what follows from an errand that was looked into."""
        at = self._clock.now()
        async with self._store.transaction(self._lease()) as tx:
            record = await tx.record(contract.run_id)
            context = self._context(contract)
            decision = decide_found(record, errand, found, context, at)
            await tx.apply(self._recorded(record, decision, context, at), contract.run_id, at)

    def _planner(self, contract: Contract) -> Callable[[Snapshot, Record], RelaunchPlan | NoPlan]:
        launcher = self._launchers.get(contract.orchestrator.kind)

        def make(seen: Snapshot, record: Record) -> RelaunchPlan | NoPlan:
            if launcher is None:
                kind = contract.orchestrator.kind
                return NoPlan(
                    reason=f"{kind} is not configured", fix=f"configure [{kind}] in hero.toml", is_unknown=False
                )
            return plan_relaunch(contract, seen, record.instance, launcher, self._redactor)

        return make

    async def contract_broke(self, bad: BadContract) -> None:
        """Note that a run cannot be watched, and tell it once for each thing that is wrong."""
        at = self._clock.now()
        reason = self._redactor.text("; ".join(bad.problems))
        async with self._store.transaction(self._lease()) as tx:
            record = await tx.record(bad.run_id)
            if record.run.state is RunState.BLOCKED and record.run.blocked_reason == reason:
                return
            run = record.run.model_copy(update={"state": RunState.BLOCKED, "blocked_reason": reason})
            told = self._notice(
                f"contract/{bad.run_id}/{_short_digest(reason)}/{at.isoformat()}",
                f"{bad.run_id} is not watched: its contract cannot be used",
                bad.problems,
                "mend the file; Hero reads it again at the next check, and the other runs are not affected",
                at,
            )
            await tx.apply(Decision(run=run, tell=(told,)), bad.run_id, at)

    def decide_action(self, record: Record, action: Action, at: datetime) -> Decision:
        """Return what follows from an action; called by the executor inside its own transaction."""
        contract = self._contracts.load(action.run_id)
        if isinstance(contract, BadContract):
            return recorded_without_contract(record, self._action_without_contract(record, action, contract, at))
        if action.state is not ActionState.GRANTED:
            self._check_soon(action.run_id)
        shape = shape_of(contract, self._redactor)
        context = self._context(contract)
        decision = decide_outcome(record, action, context, at, shape=shape)
        return self._recorded(record, decision, context, at)

    def _action_without_contract(self, record: Record, action: Action, bad: BadContract, at: datetime) -> Decision:
        """Keep the action and say its end; without the contract there is no more to be said of the run."""
        what = "action_moved" if action.state is ActionState.GRANTED else "action_ended"
        detail = f"action {action.number} {action.state}: {action.noted}"
        audit = AuditEntry(at=at, run_id=action.run_id, who="hero", what=what, detail=detail)
        if action.state is ActionState.GRANTED:
            return Decision(actions=(action,), audit=(audit,))
        told = self._notice(
            f"action/{action.number}/without-contract",
            f"R{action.grant.request} of {action.run_id} was approved, and stopped: its contract cannot be used",
            (*(f"done before: {r.step}" for r in action.records if r.is_done), *bad.problems),
            "mend the file; Hero then checks the run, and asks afresh if nothing was done yet",
            at,
        )
        return Decision(actions=(action,), requests=voided_request(record, action), tell=(told,), audit=(audit,))

    async def time_passed(self) -> None:
        """Let the clock alone have its effects on every run that has a contract or is on record."""
        at = self._clock.now()
        for run_id in dict.fromkeys((*self._contracts.run_ids(), *(run.run_id for run in await self._store.runs()))):
            contract = self._contracts.load(run_id)
            if isinstance(contract, BadContract):
                continue
            async with self._store.transaction(self._lease()) as tx:
                record = await tx.record(run_id)
                context = self._context(contract)
                decision = decide_time_passed(record, context, at, since=self._since)
                if decision != Decision():
                    await tx.apply(self._recorded(record, decision, context, at), run_id, at)

    async def history_written(self, run_id: RunId, written: HistoryWritten, *, is_given_up: bool) -> None:
        """Put the outcome of the owner's run-history command on record; say it when it is not tried again."""
        at = self._clock.now()
        told = self._notice(
            f"history/{run_id}/{written.command}/{written.about}",
            f"{run_id}: the [history] command `{written.command}` failed, and is not tried again",
            (written.detail,),
            "mend it and run it by hand; the run itself is not affected",
            at,
        )
        decision = Decision(happened=(written,), tell=(told,) if is_given_up else ())
        contract = self._contracts.load(run_id)
        async with self._store.transaction(self._lease()) as tx:
            if not isinstance(contract, BadContract):
                decision = self._recorded(await tx.record(run_id), decision, self._context(contract), at)
            await tx.apply(decision, run_id, at)

    async def delivery_failed(self, delivery: Delivery, outcome: Never) -> None:
        """Bring a message that a channel can't take to people through the other channels."""
        at = self._clock.now()
        others = tuple(name for name in self._channels if name is not delivery.channel)
        if not others or delivery.update.kind in _ONLY_THERE:
            return
        why = f"(not delivered to {delivery.channel}: {outcome.reason}; {outcome.fix})"
        update = delivery.update.model_copy(update={"next": f"{delivery.update.next} {why}".strip()})
        key = f"undelivered/{delivery.key}"
        audit = AuditEntry(
            at=at,
            run_id=delivery.run_id,
            who="hero",
            what="delivery_given_up",
            detail=f"{delivery.key}: {outcome.reason}",
        )
        already = delivery.key.startswith("undelivered/")
        told = () if already else (Telling(update=update, key=key, channels=others, target=delivery.target),)
        async with self._store.transaction(self._lease()) as tx:
            await tx.apply(Decision(tell=told, audit=(audit,)), delivery.run_id, at)

    async def notice(self, key: str, headline: str, lines: tuple[str, ...], next_: str) -> None:
        """Tell something about Hero itself, once for each key."""
        at = self._clock.now()
        async with self._store.transaction(self._lease()) as tx:
            await tx.apply(Decision(tell=(self._notice(key, headline, lines, next_, at),)), None, at)

    def _notice(self, key: str, headline: str, lines: tuple[str, ...], next_: str, at: datetime) -> Telling:
        update = Update(
            kind=UpdateKind.NOTICE,
            run_id=None,
            at=at,
            severity=Severity.WARNING,
            headline=headline,
            evidence=lines,
            next=next_,
        )
        # An issue belongs to a run; what is about no run goes where people talk, and to GitHub only when that is all.
        talk = tuple(name for name in self._channels if name is not ChannelName.GITHUB)
        return Telling(update=update, key=f"notice/{key}", channels=talk or tuple(self._channels))

    def _recorded(
        self, record: Record, decision: Decision, context: Context, at: datetime, seen: Snapshot | None = None
    ) -> Decision:
        """Return the decision with what it adds to the run's record."""
        shape = shape_of(context.contract, self._redactor)
        return recorded(record, decision, context, at, shape=shape, seen=seen)

    def _context(self, contract: Contract) -> Context:
        return Context(contract=contract, people=self._people, channels=tuple(self._channels), rules=self._rules)


def _number(instance: Instance | None) -> int | None:
    return instance.number if instance else None


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
