"""Events from outside: each waits in the inbox until one transaction has handled it (law 4)."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from structlog.contextvars import bound_contextvars

from bot.contracts import BadContract
from bot.errors import LeaseLostError, StoreError
from bot.means import Means
from bot.model.action import ActionState
from bot.model.answer import Approve, Deny, parse_answer
from bot.model.audit import ATTEMPTS
from bot.model.delivery import ChannelName
from bot.model.event import Commanded, Inbound, InboxEvent, Pressed, Said, Unsaid
from bot.model.person import Actor, Platform, Standing, find_people
from bot.model.plan import RequestState
from bot.model.reading import Gap, Reading, Unknown
from bot.model.record import Decision, Record
from bot.model.value import RunId
from bot.model.visit import read_visit, visit_at, visitor
from bot.render.words import say_time
from bot.store.transaction import Transaction
from handlers.attempts import decide_elsewhere, named_number
from handlers.blocked import decide_blocked
from handlers.command import answer_command, changes_something, shows_past
from handlers.commands.question import Past, Question
from handlers.context import Context
from handlers.reply import (
    awaits_its_request,
    decide_pressed,
    decide_said,
    decide_unsaid,
    decided_by_words,
    via_of,
)
from handlers.signs import attended, runs_meant
from handlers.terminal import NotMeant, named_request, say_instead, which_run

log = structlog.get_logger()

_IDENTIFY_LIMIT = timedelta(seconds=15)
_TRIES = 5
_FIRST_RETRY = timedelta(seconds=2)
_MOST_DOUBLINGS = 7
_IDLE_S = 5.0
_ENTRIES_SHOWN = 60
_ATTEMPTS_SHOWN = 200
"""So much of the past is read for a command that shows it; the program shows all of it."""


def _with_sign(record: Record, decision: Decision, event: Inbound, context: Context, at: datetime) -> Decision:
    """Return the decision with the sign of life that the event is, if it is one."""
    after = record.model_copy(update={"run": decision.run or record.run})
    sign = attended(after, event, context, at)
    return decision if sign is None else decision.model_copy(update={"run": sign})


async def _meant_of_several(tx: Transaction, channel: ChannelName, payload: Said | Unsaid | Pressed) -> RunId | None:
    """Return whose request a decision names that was given where several runs are talked about, as on one issue.

    None when it names none, or one that is talked about elsewhere; and for what is taken back, when it decided nothing.
    """
    if isinstance(payload, Unsaid):
        via = via_of(payload)
        records = [each for each in await tx.all_records() if decided_by_words(each, via) is not None]
    else:
        number = named_number(payload)
        request = await tx.find_request(number) if number is not None else None
        records = [await tx.record(request.run_id)] if request is not None else []
    return next((each.run_id for each in records if payload.place.key in each.roots(channel)), None)


class Conflict(Exception):  # noqa: N818 - not an error of anybody: the event is simply decided anew
    """The event is taken up again in a moment: another transaction was first, or what it is about is not settled."""


class Intake:
    """Hands what people say, press and command to the handlers, oldest first."""

    def __init__(
        self, means: Means, *, check_soon: Callable[[RunId], None], alarm: Callable[[StoreError], None]
    ) -> None:
        """Take the parts.

        Args:
            means: what decisions are made with.
            check_soon: makes a run due.
            alarm: hears that the database refuses.
        """
        self._on = means
        self._check_soon = check_soon
        self._alarm = alarm

    async def run(self) -> None:
        """Handle what is in the inbox, for ever; what a crash left there comes first."""
        while True:
            self._on.store.inbox_arrived.clear()
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
                await self._on.store.inbox_arrived.wait()
        except TimeoutError:
            return

    async def handle_pending(self) -> int:
        """Handle every event that is due, oldest first; return how many were done."""
        done = 0
        for event in await self._on.store.pending_inbox():
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
        at = self._on.clock.now()
        async with self._on.transaction() as tx:
            detail = f"{type(error).__name__}: {error}"
            await tx.inbox_failed(event.number, detail, None if final else at + pause)
            if final:
                told = self._on.notice(
                    f"event/{event.number}",
                    f"Hero could not handle what {event.payload.actor.user_id[:40]} did on {event.source}; it had no "
                    "effect",
                    (f"event {event.event_id[:80]}, received {say_time(event.received_at, self._on.rules.timezone)}",),
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
        channel = self._on.channels.get(ChannelName(actor.platform.value))
        at = self._on.clock.now()
        if channel is None:
            return Unknown(reason=Gap.NOT_CONFIGURED, detail=f"{actor.platform} is not configured", at=at)
        try:
            async with asyncio.timeout(_IDENTIFY_LIMIT.total_seconds()):
                return await channel.identify(actor)
        except TimeoutError:
            return Unknown(reason=Gap.TIMEOUT, detail=f"{actor.platform} did not answer in time", at=at)

    async def _decide(self, event: InboxEvent) -> None:
        at = self._on.clock.now()
        check_now: RunId | None = None
        async with self._on.transaction() as tx:
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
        run_id = run_id or await _meant_of_several(tx, channel, payload)
        if run_id is None:
            await self._elsewhere(tx, payload, at)
            return None
        contract = self._on.contracts.load(run_id)
        if isinstance(contract, BadContract):
            await tx.apply(decide_blocked(payload, run_id, contract.problems, at), run_id, at)
            return None
        record = await tx.record(run_id)
        if isinstance(payload, Said) and event.attempt + 1 < _TRIES and awaits_its_request(record, payload):
            raise Conflict("the request's own message is not noted yet")
        context = self._on.context(contract, record)
        decision: Decision
        match payload:
            case Said():
                decision = decide_said(record, payload, event.standing, context, at)
            case Pressed():
                decision = decide_pressed(record, payload, event.standing, context, at)
            case Unsaid():
                decision = decide_unsaid(record, payload, context, at)
        decision = _with_sign(record, decision, payload, context, at)
        await self._commit(tx, self._on.recorded(record, decision, context, at), record, at)
        is_over = any(action.state is not ActionState.GRANTED for action in decision.actions)
        return run_id if is_over else None

    async def _elsewhere(self, tx: Transaction, payload: Said | Unsaid | Pressed, at: datetime) -> None:
        """Note a decision that was given outside of every run's conversation; all else there is nobody's business."""
        if isinstance(payload, Unsaid):
            return
        number = named_number(payload)
        request = await tx.find_request(number) if number is not None else None
        asked = await tx.record(request.run_id) if request is not None else None
        await tx.apply(decide_elsewhere(payload, asked, request, at), None, at)

    async def _commit(self, tx: Transaction, decision: Decision, record: Record, at: datetime) -> None:
        """Store a decision; a request that it decides is redeemed first, by whoever comes first (field report R43).

        A no that takes back what was open no more, as a yes before anything was changed by it, has nothing to redeem.
        A yes always has.
        """
        over = {each.number for each in record.requests if each.state is not RequestState.OPEN}
        for request in decision.requests:
            decided = request.state is RequestState.GRANTED or (
                request.state is RequestState.DENIED and request.number not in over
            )
            if decided and not await tx.redeem(request.number, request):
                raise Conflict(request.name)
        await tx.apply(decision, record.run_id, at)

    def _is_anybody(self, actor: Actor) -> bool:
        """Whether somebody who is not on record speaks where the whole world may: on a public repository.

        Of them nothing is remembered, and they hear of no run but the one whose issue they stand before.
        """
        return actor.platform is Platform.GITHUB and not find_people(actor, self._on.people)

    async def _past(self, tx: Transaction, event: Commanded, runs: tuple[RunId, ...], at: datetime) -> Past:
        """Note that somebody looked, and read what their command shows of the past."""
        name = visitor(event.actor, self._on.people)
        visit = visit_at(read_visit(await tx.cursor(name)), at)
        if not self._is_anybody(event.actor):
            await tx.save_cursor(name, visit.model_dump_json())
        if not shows_past(event.text):
            return Past()
        return Past(
            attempts=await tx.audit(_ATTEMPTS_SHOWN, ATTEMPTS),
            entries={run_id: await tx.newest_entries(run_id, _ENTRIES_SHOWN) for run_id in runs},
            since=visit.since,
        )

    async def _command(
        self, tx: Transaction, event: Commanded, standing: Reading[Standing] | None, at: datetime
    ) -> RunId | None:
        records = {record.run_id: record for record in await tx.all_records()}
        contexts: dict[RunId, Context] = {}
        blocked: dict[RunId, str] = {}
        for run_id in dict.fromkeys((*self._on.contracts.run_ids(), *records)):
            contract = self._on.contracts.load(run_id)
            if isinstance(contract, BadContract):
                blocked[run_id] = "; ".join(contract.problems)
            else:
                contexts[run_id] = self._on.context(contract, records.get(run_id))
        shown = [records.get(run_id) or await tx.record(run_id) for run_id in contexts]
        here = await tx.find_run_by_thread(ChannelName(event.actor.platform.value), event.place.key)
        question = Question(
            event=event,
            standing=standing,
            records=tuple(shown),
            contexts=contexts,
            blocked=blocked,
            here=here,
            people=self._on.people,
            timezone=self._on.rules.timezone,
            at=at,
            past=await self._past(tx, event, tuple(contexts), at),
        )
        if self._is_anybody(event.actor):
            place = event.place.key
            question = question.of_runs(
                {each.run_id for each in records.values() if place in each.roots(ChannelName.GITHUB)}
            )
        answered = answer_command(question)
        # A robot is not answered: two that answer each other never end (field report R04).
        answer = () if event.actor.is_bot else (answered.telling,)
        decision = answered.decision.model_copy(update={"tell": (*answered.decision.tell, *answer)})
        about = answered.run_id
        if about is not None and about in contexts:
            record = next(each for each in shown if each.run_id == about)
            decision = _with_sign(record, decision, event, contexts[about], at)
            decision = self._on.recorded(record, decision, contexts[about], at)
        await tx.apply(decision, about, at)
        known = tuple(run_id for run_id in contexts if run_id in records)
        for run_id in runs_meant(event, known, about=(about, here)):
            sign = None if run_id == about else attended(records[run_id], event, contexts[run_id], at)
            if sign is not None:
                await tx.apply(Decision(run=sign), run_id, at)
        return answered.check_now
