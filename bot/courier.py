"""Takes deliveries from the outbox to one channel, oldest and gravest first, each noted before and after it is sent.

One courier a channel, so that a slow service delays only itself.
"""

import asyncio
import random
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog
from structlog.contextvars import bound_contextvars

from bot.channels.ports import Channel
from bot.clock import Clock
from bot.errors import LeaseLostError, StoreError
from bot.model.delivery import Delivery, Later, Never, SendOutcome, Sent
from bot.store.leases import Lease
from bot.store.store import Store

log = structlog.get_logger()

type GiveUp = Callable[[Delivery, Never], Awaitable[None]]
"""Called when a delivery can't ever be sent: opens the matter on another channel."""

_FIRST_RETRY_S = 2.0
_LONGEST_RETRY_S = 300.0
_GIVE_UP_AFTER = timedelta(hours=48)
_TRIES_AT_LEAST = 8
"""Fewer tries give up nothing: a machine that slept for three days has not tried for three days."""
_IDLE = timedelta(seconds=5)
_MINUTE_S = 60.0


class Courier:
    """The outbox worker of one channel."""

    def __init__(
        self,
        *,
        channel: Channel,
        store: Store,
        clock: Clock,
        deadline: timedelta,
        posts_per_minute: int,
        give_up: GiveUp,
        alarm: Callable[[StoreError], None],
        lease: Callable[[], Lease | None],
    ) -> None:
        """Take the parts.

        Args:
            channel: where to.
            store: the outbox.
            clock: for the retry times.
            deadline: of one send; the channel's own is shorter.
            posts_per_minute: loop guard, new messages a minute in one run's conversation (field report R04).
            give_up: hears of what can't be sent here.
            alarm: hears that the database refuses.
            lease: this process's right to act; checked with each intent to send, so that a Hero that was replaced
                says nothing a second time (field report R30).
        """
        self._channel = channel
        self._store = store
        self._clock = clock
        self._deadline = deadline
        self._limit = posts_per_minute
        self._give_up = give_up
        self._alarm = alarm
        self._lease = lease
        self._posts: defaultdict[str, deque[float]] = defaultdict(deque)
        self._bell = store.outbox_filled.listen()

    @property
    def name(self) -> str:
        return self._channel.name

    async def run(self) -> None:
        """Send what is due, for ever."""
        while True:
            self._bell.clear()
            try:
                moved = await self.send_due()
            except LeaseLostError:
                raise
            except StoreError as error:
                self._alarm(error)
                moved = False
            if not moved:
                await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_IDLE.total_seconds()):
                await self._bell.wait()
        except TimeoutError:
            return

    async def send_due(self) -> bool:
        """Try everything that is due once; whether anything reached the channel."""
        moved = False
        for delivery in await self._store.due_deliveries(self._channel.name):
            if self._is_too_much(delivery):
                continue
            begun = await self._store.delivery_begun(delivery.number, lease=self._lease())
            if begun is not None:
                moved |= await self._send(begun)
        return moved

    async def _send(self, delivery: Delivery) -> bool:
        with bound_contextvars(run_id=delivery.run_id, delivery=delivery.key, channel=self._channel.name):
            outcome = await self._try(delivery)
            outcome = self._with_an_end(delivery, outcome)
            retry = self._retry_after(delivery, outcome) if isinstance(outcome, Later) else None
            if isinstance(outcome, Never):
                # Before it is noted: what a crash comes in between is brought to the others once more, by the same key.
                await self._give_up(delivery, outcome)
            await asyncio.shield(self._store.delivery_ended(delivery.number, outcome, retry_after=retry))
            match outcome:
                case Sent(message_id=message_id):
                    self._count(delivery)
                    log.info("delivery_sent", message_id=message_id, attempt=delivery.attempt)
                    return True
                case Later(reason=reason):
                    wait_s = retry.total_seconds() if retry else 0
                    log.warning("delivery_put_off", reason=reason, attempt=delivery.attempt, retry_after_s=wait_s)
                case Never(reason=reason, fix=fix):
                    log.error("delivery_given_up", reason=reason, fix=fix)
            return False

    async def _try(self, delivery: Delivery) -> SendOutcome:
        """Send once; a channel that hangs or breaks is uncertain, never a crash."""
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                return await self._channel.send(delivery)
        except TimeoutError:
            return Later(reason=f"no end of the send in {self._deadline.total_seconds():g} s", is_uncertain=True)
        except StoreError as error:
            self._alarm(error)
            return Later(reason=str(error), is_uncertain=True)
        except Exception as error:
            log.exception("channel_broke")
            return Later(reason=f"Hero's own channel broke: {type(error).__name__}", is_uncertain=True)

    def _with_an_end(self, delivery: Delivery, outcome: SendOutcome) -> SendOutcome:
        """Turn a Later that has gone on for two days into a Never."""
        tried_since = delivery.first_intent_at or delivery.created_at
        is_old = self._clock.now() - tried_since > _GIVE_UP_AFTER and delivery.attempt >= _TRIES_AT_LEAST
        if isinstance(outcome, Later) and is_old:
            return Never(reason=f"not accepted for two days: {outcome.reason}", fix="see `hero doctor`")
        return outcome

    def _retry_after(self, delivery: Delivery, outcome: Later) -> timedelta:
        """What the service asked for, else doubling from 2 s to 5 min with jitter."""
        if outcome.after is not None:
            return outcome.after
        backoff = min(_FIRST_RETRY_S * 2.0 ** min(delivery.attempt, 10), _LONGEST_RETRY_S)
        return timedelta(seconds=backoff * (0.75 + random.random() / 2))

    def _is_too_much(self, delivery: Delivery) -> bool:
        """Whether this thread has had its fill of new messages for the minute."""
        if delivery.target.slot:
            return False
        posts = self._posts[_thread_of(delivery)]
        while posts and posts[0] < self._clock.monotonic() - _MINUTE_S:
            posts.popleft()
        if len(posts) < self._limit:
            return False
        log.warning("delivery_held_by_loop_guard", run_id=delivery.run_id, posts_in_a_minute=len(posts))
        return True

    def _count(self, delivery: Delivery) -> None:
        if not delivery.target.slot:
            self._posts[_thread_of(delivery)].append(self._clock.monotonic())


def _thread_of(delivery: Delivery) -> str:
    """Return what counts as one thread for the loop guard: where a command was given, else the run's conversation."""
    target = delivery.target
    return f"{target.conversation}:{target.thread}" if target.conversation else delivery.run_id or ""
