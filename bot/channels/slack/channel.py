"""Slack as a channel: a thread per run, whose first message is the live status.

Read ``posts`` for how something is said, ``roots`` for threads, ``inbound`` for what people do, ``socket_mode`` and
``catch_up`` for how that reaches Hero.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog
from slack_bolt.async_app import AsyncApp
from starlette.routing import Route

from bot.channels.ports import Ledger, Receive
from bot.channels.slack.api import QUIET, CallError, SlackApi
from bot.channels.slack.asking import Asking
from bot.channels.slack.bolt import bolt_app
from bot.channels.slack.catch_up import CatchUp
from bot.channels.slack.doctor import Probe, probe
from bot.channels.slack.http_mode import slack_routes
from bot.channels.slack.identify import standing_of
from bot.channels.slack.inbound import Inbox
from bot.channels.slack.link import Link
from bot.channels.slack.outcomes import GONE, UNREACHED, fix_for, outcome_of
from bot.channels.slack.pace import Pace
from bot.channels.slack.pictures import Pictures
from bot.channels.slack.posts import Marker, Posts, Ref
from bot.channels.slack.roots import LIVE, Roots
from bot.channels.slack.socket_mode import SocketMode
from bot.channels.slack.troubles import Troubles
from bot.clock import Clock
from bot.errors import StoreError
from bot.model.delivery import ChannelName, Delivery, Later, Never, Posted, SendOutcome, Sent
from bot.model.person import Actor, Person, Standing
from bot.model.reading import Reading
from bot.model.update import Update, UpdateKind
from bot.model.value import RunId
from bot.render.slack import SlackMessage, render_slack
from bot.settings import SlackSettings

log = structlog.get_logger()


class SlackChannel:
    """One workspace, one channel for runs.

    ``threads`` gives the thread that a run's contract names, if any; ``runs`` those that a command can be about.
    """

    name = ChannelName.SLACK

    def __init__(
        self,
        settings: SlackSettings,
        ledger: Ledger,
        clock: Clock,
        *,
        people: tuple[Person, ...] = (),
        timezone: str = "UTC",
        threads: Callable[[RunId], str | None] = lambda _run: None,
        runs: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._clock = clock
        self._mentions = {person.name: person.slack or "" for person in people}
        self._timezone = timezone
        self._home = settings.channel or ""
        self._troubles = Troubles()
        self._api = SlackApi(settings)
        self._link = Link(clock)
        self._posts = Posts(self._api, Pace(clock), self._link.spoke)
        self._roots = Roots(self._api, self._posts, ledger, clock, channel=self._home, threads=threads)
        self._pictures = Pictures(self._api, self._roots)
        self._inbox = Inbox(self._api, ledger, clock, self._troubles, home=self._home, on_root_gone=self._roots.lost)
        self._app: AsyncApp = bolt_app(
            settings, self._api, self._inbox, self._link, asking=Asking(self._api, runs), logger=QUIET
        )
        self._catch_up = CatchUp(
            settings,
            self._api,
            ledger,
            clock,
            inbox=self._inbox,
            link=self._link,
            troubles=self._troubles,
            on_root_gone=self._roots.lost,
        )
        self._socket = SocketMode(settings, self._api, self._app, clock, link=self._link, troubles=self._troubles)

    @property
    def trouble(self) -> str:
        """What is wrong with Slack now, with the fix; empty when nothing is."""
        return str(self._troubles)

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Say, edit or whisper one delivery; see ``Channel.send``."""
        place = delivery.target.conversation or delivery.target.direct_to or self._home
        try:
            outcome = await self._send(delivery)
        except CallError as error:
            return self._failed(error, place)
        except StoreError:
            raise  # the courier's to handle: it is no fault of Slack's or of this channel
        except Exception as error:  # the border of a channel: a fault in here must not stop the outbox
            log.exception("slack_send_broke", delivery=delivery.number)
            return Later(reason=f"Hero's own fault: {type(error).__name__}", is_uncertain=True)
        if isinstance(outcome, Sent):
            self._troubles.clear("posting")
            if delivery.update.chart is not None and not delivery.attempt:
                await self._pictures.attach(delivery.update.chart)
        return outcome

    async def identify(self, actor: Actor) -> Reading[Standing]:
        """Ask users.info what the account is now; anything but a clear answer is Unknown."""
        return await standing_of(actor, self._api, self._clock)

    async def run(self, receive: Receive) -> None:
        """Listen for ever, by socket or by the routes, and read what no event told of."""
        self._inbox.receive = receive
        await self._socket.authenticate()
        async with asyncio.TaskGroup() as group:
            if self._settings.mode == "socket":
                group.create_task(self._socket.keep(), name="slack-socket")
            else:
                group.create_task(self._socket.watch_http(), name="slack-http")
            group.create_task(self._catch_up.keep(), name="slack-catch-up")

    async def doctor(self) -> tuple[Probe, ...]:
        """Check every part of the connection; each with the exact fix."""
        return await probe(self._settings, self._api)

    def routes(self) -> list[Route]:
        """What the web server has to serve for HTTP mode: ``/slack/events``, signatures checked."""
        secret = self._settings.signing_secret
        return slack_routes(self._app, secret.get_secret_value() if secret else "")

    async def close(self) -> None:
        """Nothing is held: every call has a connection of its own, and the socket ends with ``run``."""

    async def _send(self, delivery: Delivery) -> SendOutcome:
        message = self._render(delivery.update)
        target = delivery.target
        if target.direct_to:
            # chat.postMessage to a user's id opens the direct conversation with them (Slack: chat.postMessage).
            return await self._say(delivery, message, target.direct_to, "")
        if target.private_to:
            return await self._whisper(delivery, message)
        if target.conversation:
            return await self._say(delivery, message, target.conversation, target.thread)
        if delivery.run_id is None:
            return await self._say(delivery, message, self._home, "")
        return await self._tell(delivery, message, delivery.run_id)

    async def _tell(
        self, delivery: Delivery, message: SlackMessage, run_id: RunId, *, is_first: bool = True
    ) -> SendOutcome:
        """Put it into the run's thread: by editing its slot's message, else as a reply or as the root itself.

        A thread that turns out to be gone is opened anew, once.
        """
        slot = delivery.target.slot
        is_root = slot == LIVE or (not slot and delivery.update.kind is UpdateKind.WATCHING)
        root, is_shown = await self._roots.make(run_id, delivery.key, message if is_root else None)
        if is_shown:
            return Sent(message_id=root.message_id, link=root.link)
        known = await self._ledger.posted(ChannelName.SLACK, run_id, slot) if slot else None
        if known is not None:
            try:
                await self._posts.edit(Ref.parse(known.message_id), message)
                return Sent(message_id=known.message_id, link=known.link)
            except CallError as error:
                if error.code not in GONE:
                    raise
                if known.message_id == root.message_id and is_first:
                    self._roots.lost(root.message_id)
                    return await self._tell(delivery, message, run_id, is_first=False)
        try:
            return await self._reply(delivery, message, root)
        except CallError as error:
            if error.code not in GONE or not is_first:
                raise
            self._roots.lost(root.message_id)
            return await self._tell(delivery, message, run_id, is_first=False)

    async def _reply(self, delivery: Delivery, message: SlackMessage, root: Posted) -> Sent:
        ref = Ref.parse(root.message_id)
        sent = await self._say(delivery, message, ref.channel, ref.ts)
        if delivery.target.slot:
            await self._ledger.save_posted(
                Posted(
                    channel=ChannelName.SLACK,
                    run_id=root.run_id,
                    slot=delivery.target.slot,
                    message_id=sent.message_id,
                    link=sent.link,
                )
            )
        return sent

    async def _say(self, delivery: Delivery, message: SlackMessage, channel: str, thread: str) -> Sent:
        """Post it there, unless an earlier attempt did."""
        me = await self._api.me()
        ref = await self._said_before(delivery, channel, thread) if delivery.attempt else None
        if ref is None:
            ref = await self._posts.post(channel, message, Marker(key=delivery.key), root=thread)
        return Sent(message_id=str(ref), link=me.link(ref.channel, ref.ts, thread))

    async def _said_before(self, delivery: Delivery, channel: str, thread: str) -> Ref | None:
        since = delivery.first_intent_at or delivery.created_at
        try:
            return await self._posts.find(channel, since, key=delivery.key, root=thread)
        except CallError as error:
            if error.code in UNREACHED and channel != self._home:
                return None  # Hero can't read there: an answer said twice is better than one never said
            raise

    async def _whisper(self, delivery: Delivery, message: SlackMessage) -> SendOutcome:
        """Show it to one person where they spoke; where Hero is not, in its direct conversation with them."""
        channel, thread = delivery.target.conversation, delivery.target.thread
        root = await self._roots.known(delivery.run_id) if delivery.run_id is not None and not channel else None
        if root is not None:
            ref = Ref.parse(root.message_id)
            channel, thread = ref.channel, ref.ts
        user = delivery.target.private_to
        try:
            ts = await self._posts.whisper(channel or self._home, user, message, root=thread)
        except CallError as error:
            if error.code not in UNREACHED:
                raise
            return await self._say(delivery, message, user, "")
        return Sent(message_id=f"{channel or self._home}:{ts}")

    def _render(self, update: Update) -> SlackMessage:
        mention = self._mentions.get(update.asked, "") if update.asked else ""
        also = tuple(self._mentions.get(name, "") for name in update.also_asked)
        return render_slack(update, timezone=self._timezone, mention=mention, also=also)

    def _failed(self, error: CallError, place: str) -> Later | Never:
        fix = fix_for(error, place)
        if fix and error.code in UNREACHED and place != self._home:
            return Never(reason=f"Hero can't post in {place}: {error.detail}", fix=fix)
        if fix:
            self._troubles.set("posting", f"Slack refuses posts ({error.code}): {fix}")
        outcome = outcome_of(error, place)
        log.info("slack_send_failed", outcome=outcome.kind, code=error.code, reason=error.detail)
        return outcome
