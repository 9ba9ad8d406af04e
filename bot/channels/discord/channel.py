"""Discord as a channel: a thread per run, on a message that shows the live status.

Read ``posts`` for how something is said, ``threads`` for where, ``inbound`` for what people do, ``gateway`` and
``catch_up`` for how that reaches Hero, ``asides`` for answers that one person sees.
"""

import asyncio
from collections.abc import Callable

import structlog

from bot.channels.discord.api import CallError, DiscordApi
from bot.channels.discord.asides import Asides
from bot.channels.discord.catch_up import CatchUp
from bot.channels.discord.completing import AskNames, Names
from bot.channels.discord.doctor import Finding, examine
from bot.channels.discord.ears import Ears
from bot.channels.discord.gateway import Gateway
from bot.channels.discord.identify import standing_of
from bot.channels.discord.inbound import Inbox
from bot.channels.discord.link import Link
from bot.channels.discord.outcomes import GONE, NO_DIRECT_MESSAGES, UNKNOWN_USER, UNREACHED, fix_for, outcome_of
from bot.channels.discord.pictures import Pictures
from bot.channels.discord.posts import Posts, Ref
from bot.channels.discord.registering import keep_registered
from bot.channels.discord.threads import LIVE, Threads, root_mark
from bot.channels.discord.troubles import Troubles
from bot.channels.ports import Ledger, Receive
from bot.clock import Clock
from bot.errors import StoreError
from bot.model.delivery import ChannelName, Delivery, Later, Never, Posted, SendOutcome, Sent
from bot.model.person import Actor, Person, Standing
from bot.model.reading import Reading
from bot.model.update import Update, UpdateKind
from bot.model.value import RunId
from bot.render.discord import DiscordMessage, mark_of, render_discord
from bot.settings import DiscordSettings

log = structlog.get_logger()


async def _no_names() -> Names:
    return Names()


class DiscordChannel:
    """One guild, one channel for runs; see ``bot.channels.ports.Channel`` for what its methods promise."""

    name = ChannelName.DISCORD

    def __init__(
        self,
        settings: DiscordSettings,
        ledger: Ledger,
        clock: Clock,
        *,
        people: tuple[Person, ...] = (),
        timezone: str = "UTC",
        threads: Callable[[RunId], str | None] = lambda _run: None,
        is_command: Callable[[str], bool] = lambda _word: False,
        names: AskNames = _no_names,
    ) -> None:
        """Make it; nothing is asked of Discord yet.

        Args:
            settings: with a token, a guild and a channel.
            ledger: where the threads and messages of runs are remembered.
            clock: the time.
            people: whom updates may mention.
            timezone: in which people read times.
            threads: the thread that a run's contract names, None for one that Hero opens.
            is_command: whether a first word after ``@hero`` in a run's thread makes it a command; else it is a reply.
            names: what can be proposed while somebody types a command.
        """
        guild = settings.guild or ""
        self._settings = settings
        self._ledger = ledger
        self._clock = clock
        self._mentions = {person.name: person.discord or "" for person in people}
        self._timezone = timezone
        self._home = settings.channel or ""
        self._guild = guild
        self._troubles = Troubles()
        self._api = DiscordApi(settings)
        self._link = Link(clock)
        self._posts = Posts(self._api, self._troubles, self._link.spoke)
        self._threads = Threads(self._api, self._posts, ledger, clock, guild=guild, named=threads)
        self._pictures = Pictures(self._api, self._threads)
        self._asides = Asides(clock, settings.deadline)
        home = settings.channel or ""
        inbox = Inbox(self._api, ledger, clock, self._troubles, guild=guild, home=home, is_command=is_command)
        self._inbox = inbox
        self._catch_up = CatchUp(
            self._api,
            ledger,
            clock,
            every=settings.catch_up,
            inbox=inbox,
            link=self._link,
            troubles=self._troubles,
            threads=self._threads,
        )

        def ears(content: bool) -> Ears:  # noqa: FBT001 - the one thing that differs from session to session
            return Ears(
                inbox=inbox,
                asides=self._asides,
                link=self._link,
                threads=self._threads,
                names=names,
                guild=guild,
                content=content,
                quiet_limit_s=settings.quiet_limit.total_seconds(),
            )

        self._gateway = Gateway(settings, self._api, clock, link=self._link, troubles=self._troubles, ears=ears)

    @property
    def trouble(self) -> str:
        """What is wrong with Discord now, with the fix; empty when nothing is."""
        return str(self._troubles)

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Say, edit or whisper one delivery; see ``Channel.send``."""
        place = delivery.target.conversation or self._home
        try:
            outcome = await self._send(delivery)
        except CallError as error:
            return self._failed(error, place)
        except StoreError:
            raise  # the courier's to handle: it is no fault of Discord's or of this channel
        except Exception as error:  # the border of a channel: a fault in here must not stop the outbox
            log.exception("discord_send_broke", delivery=delivery.number)
            return Later(reason=f"Hero's own fault: {type(error).__name__}", is_uncertain=True)
        if isinstance(outcome, Sent):
            self._troubles.clear("posting")
            if delivery.update.chart is not None and not delivery.attempt:
                await self._pictures.attach(delivery.update.chart)
        return outcome

    async def identify(self, actor: Actor) -> Reading[Standing]:
        """Ask the guild what the account is now; anything but a clear answer is Unknown."""
        return await standing_of(actor, self._api, self._guild, self._clock)

    async def run(self, receive: Receive) -> None:
        """Listen for ever, and read what no event told of."""
        self._inbox.receive = receive
        await self._gateway.authenticate()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._gateway.keep(), name="discord-gateway")
            group.create_task(self._catch_up.keep(), name="discord-catch-up")
            group.create_task(
                keep_registered(self._api, self._guild, self._clock, self._troubles), name="discord-command"
            )

    async def doctor(self) -> tuple[Finding, ...]:
        """Check every part of the connection; each with the exact fix."""
        return await examine(self._settings, self._api)

    async def close(self) -> None:
        """End the connections for calls; the session ends with ``run``."""
        await self._api.close()

    async def _send(self, delivery: Delivery) -> SendOutcome:
        target = delivery.target
        if target.private_to:
            return await self._whisper(delivery)
        if target.direct_to:
            return await self._turn_to(delivery, target.direct_to)
        if target.conversation:
            return await self._say(delivery, target.conversation)
        if delivery.run_id is None:
            return await self._say(delivery, self._home)
        return await self._tell(delivery, delivery.run_id)

    async def _tell(self, delivery: Delivery, run_id: RunId, *, is_first: bool = True) -> SendOutcome:
        """Put it into the run's thread: by editing its slot's message, else as a new one or as what the thread is on.

        A thread that turns out to be gone or locked is opened anew, once.
        """
        slot = delivery.target.slot
        is_root = slot == LIVE or (not slot and delivery.update.kind is UpdateKind.WATCHING)
        thread, is_shown = await self._threads.make(
            run_id, (lambda mark: self._render(delivery.update, mark)) if is_root else None
        )
        known = await self._ledger.posted(ChannelName.DISCORD, run_id, slot or LIVE) if slot or is_shown else None
        if is_shown and known is not None:
            return Sent(message_id=known.message_id, link=known.link)
        try:
            return await self._edit(delivery, known) or await self._reply(delivery, thread)
        except CallError as error:
            if not is_first or not await self._threads.is_shut(error, thread.message_id):
                raise
            self._threads.lost(thread.message_id)
            return await self._tell(delivery, run_id, is_first=False)

    async def _edit(self, delivery: Delivery, known: Posted | None) -> Sent | None:
        """Edit what stands under the slot; None when there is nothing any more."""
        if known is None:
            return None
        try:
            # The same at every edit, so that one which changes nothing is not sent.
            mark = root_mark(known.run_id) if known.slot == LIVE else mark_of(known.message_id)
            await self._posts.edit(Ref.parse(known.message_id), self._render(delivery.update, mark))
        except CallError as error:
            if error.code not in GONE:
                raise
            return None
        return Sent(message_id=known.message_id, link=known.link)

    async def _reply(self, delivery: Delivery, thread: Posted) -> Sent:
        sent = await self._say(delivery, thread.message_id)
        if delivery.target.slot:
            await self._ledger.save_posted(
                Posted(
                    channel=ChannelName.DISCORD,
                    run_id=thread.run_id,
                    slot=delivery.target.slot,
                    message_id=sent.message_id,
                    link=sent.link,
                )
            )
        return sent

    async def _say(self, delivery: Delivery, channel: str) -> Sent:
        """Post it there, unless an earlier attempt did."""
        mark = mark_of(delivery.key)
        ref = await self._said_before(delivery, channel, mark) if delivery.attempt else None
        if ref is None:
            ref = await self._posts.post(int(channel), self._render(delivery.update, mark), mark)
        return Sent(message_id=str(ref), link=self._threads.link(str(ref.channel), str(ref.message)))

    async def _said_before(self, delivery: Delivery, channel: str, mark: str) -> Ref | None:
        since = delivery.first_intent_at or delivery.created_at
        try:
            return await self._posts.find(int(channel), since, mark)
        except CallError as error:
            if error.code in UNREACHED and channel != self._home:
                return None  # Hero can't read there: an answer said twice is better than one never said
            raise

    async def _whisper(self, delivery: Delivery) -> SendOutcome:
        """Show it to one person alone where what they did is still open; else say it where they spoke.

        Discord has no message for one person but as the answer to a command or a press. Where Hero can't speak, it
        turns to them directly.
        """
        channel, user = delivery.target.conversation, delivery.target.private_to
        mark = mark_of(delivery.key)
        if channel and await self._asides.answer(channel, user, self._render(delivery.update, mark)):
            return Sent(message_id="")
        if not channel and delivery.run_id is not None:
            thread = await self._threads.known(delivery.run_id)
            channel = thread.message_id if thread is not None else ""
        try:
            return await self._say(delivery, channel or self._home)
        except CallError as error:
            if error.code not in UNREACHED:
                raise
        return await self._say(delivery, str(await self._posts.direct(int(user))))

    async def _turn_to(self, delivery: Delivery, user: str) -> SendOutcome:
        """Say it in the direct conversation; who takes no direct messages is told in the run's."""
        try:
            return await self._say(delivery, str(await self._posts.direct(int(user))))
        except CallError as error:
            if error.code not in {NO_DIRECT_MESSAGES, UNKNOWN_USER}:
                raise
        if delivery.run_id is None:
            return await self._say(delivery, self._home)
        return await self._tell(delivery, delivery.run_id)

    def _render(self, update: Update, mark: str) -> DiscordMessage:
        return render_discord(
            update,
            timezone=self._timezone,
            mark=mark,
            mention=self._mentions.get(update.asked, "") if update.asked else "",
            also=tuple(self._mentions.get(name, "") for name in update.also_asked),
            reads_replies=self._gateway.reads_content,
        )

    def _failed(self, error: CallError, place: str) -> Later | Never:
        fix = fix_for(error, place)
        if fix and error.code in UNREACHED and place != self._home:
            return Never(reason=f"Hero can't post in {place}: {error.detail}", fix=fix)
        if fix:
            self._troubles.set("posting", f"Discord refuses posts ({error.detail[:100]}): {fix}")
        outcome = outcome_of(error, place)
        log.info("discord_send_failed", outcome=outcome.kind, code=error.code, reason=error.detail)
        return outcome
