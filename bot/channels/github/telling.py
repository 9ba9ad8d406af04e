"""How an update reaches an issue: as a comment of its own, as an edit of one, or as a line in the live status."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog

from bot.channels.github.body import RECORD, Bodies
from bot.channels.github.client import GitHubClient
from bot.channels.github.posting import Poster
from bot.channels.github.records import THREAD, Day, News, Posting, Records, Reply
from bot.channels.github.successors import FULL_AT
from bot.channels.github.trouble import Trouble
from bot.channels.ports import Ledger
from bot.clock import Clock
from bot.model.delivery import ChannelName, Delivery, Never, Posted, SendOutcome, Sent
from bot.model.update import Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.model.verdict import Severity
from bot.render.github import github_body, is_same_text, news_alone, news_line, private_body, with_news

log = structlog.get_logger()

LIVE = "live"
POLITE_EVERY = timedelta(hours=1)
_REQUESTS = frozenset({UpdateKind.REQUEST_ASKED, UpdateKind.REQUEST_REMINDER, UpdateKind.REQUEST_ANSWERED})


class Teller:
    """Tells one delivery at a time on one issue; whoever calls holds the channel's turn."""

    def __init__(
        self,
        *,
        client: GitHubClient,
        ledger: Ledger,
        records: Records,
        poster: Poster,
        clock: Clock,
        trouble: Trouble,
        comments_per_day: int,
        logins: Mapping[PersonName, str],
        login_of: Callable[[str], str],
        timezone: str,
    ) -> None:
        """Make it.

        Args:
            client: asks GitHub.
            ledger: knows the runs' messages.
            records: what was posted today.
            poster: posts once.
            clock: the time.
            trouble: where a nearly full issue is shown.
            comments_per_day: the most new comments on an issue in 24 hours, urgent ones apart.
            logins: of the people whom an update may ask.
            login_of: the login of an account by its id, empty when it was not seen.
            timezone: in which people read times.
        """
        self._client = client
        self._ledger = ledger
        self._records = records
        self._poster = poster
        self._clock = clock
        self._trouble = trouble
        self._most = comments_per_day
        self._logins = logins
        self._login_of = login_of
        self._timezone = timezone
        self._bodies = Bodies(client, ledger, records, trouble)
        self.full: set[int] = set()
        """The issues that were seen to have nearly as many comments as GitHub takes."""

    async def tell(self, delivery: Delivery, issue: int, former: tuple[int, ...] = ()) -> SendOutcome:
        """Tell it, or find that it was told.

        Args:
            delivery: what to tell.
            issue: where.
            former: the run's full issues, where what was posted there is still edited; the live status moves on.

        Raises:
            ServiceError: GitHub did not take it, or did not say so.
        """
        update, target, key = delivery.update, delivery.target, delivery.key
        if target.slot == RECORD and delivery.run_id is not None:
            return await self._bodies.keep(delivery.run_id, issue)
        day = await self._records.day(issue, self._clock.now())
        if target.private_to:
            return await self._answer_politely(delivery, issue, day)
        slot = target.slot if delivery.run_id is not None and not target.conversation else ""
        body = github_body(
            update,
            key=key,
            timezone=self._timezone,
            asked_login=self._logins.get(update.asked) if update.asked else None,
            also_logins=tuple(self._logins.get(name) for name in update.also_asked),
            news=day.lines if slot == LIVE else (),
        )
        known = (
            await self._ledger.posted(ChannelName.GITHUB, delivery.run_id, slot) if slot and delivery.run_id else None
        )
        vanished: int | None = None
        if known is not None and known.message_id.isdecimal():
            there = frozenset({issue} if slot == LIVE else {issue, *former})
            edited = await self._client.edit_comment(
                there, int(known.message_id), lambda now: None if is_same_text(now, body) else body
            )
            if edited is not None:
                return Sent(message_id=str(edited.id), link=edited.link)
            vanished = int(known.message_id)
        if slot != LIVE and not is_urgent(update) and self._is_used_up(day):
            return await self._tell_in_live_status(delivery, issue, day)
        posting = await self._post(delivery, issue, body, day, vanished=vanished, former=former)
        if delivery.run_id is not None and slot:
            await self._remember(delivery.run_id, slot, posting)
        return Sent(message_id=str(posting.number), link=posting.link)

    async def _post(
        self,
        delivery: Delivery,
        issue: int,
        body: str,
        day: Day,
        *,
        vanished: int | None = None,
        former: tuple[int, ...] = (),
    ) -> Posting:
        """Post a comment of its own, count it, and read the issue from there on."""
        since = (delivery.first_intent_at or delivery.created_at) if delivery.attempt else None
        posting, seen = await self._poster.comment(
            issue, body, key=delivery.key, since=since, vanished=vanished, former=former
        )
        if seen is not None:
            posted_at = (*day.posted_at, self._clock.now())
            await self._records.save_day(issue, day.model_copy(update={"posted_at": posted_at}))
            if seen.comments + 1 >= FULL_AT:
                self.full.add(issue)
        run_id = delivery.run_id
        if run_id is not None and not delivery.target.conversation:
            thread = await self._ledger.posted(ChannelName.GITHUB, run_id, THREAD)
            if thread is None or thread.message_id != str(issue):
                # The position is saved first: a watched issue without one would be read from too far back.
                await self._records.begin_reading(issue, posting.posted_at or posting.begun_at)
                await self._ledger.save_posted(
                    Posted(
                        channel=ChannelName.GITHUB,
                        run_id=run_id,
                        slot=THREAD,
                        message_id=str(issue),
                        link=posting.link.partition("#")[0],
                    )
                )
        return posting

    async def _tell_in_live_status(self, delivery: Delivery, issue: int, day: Day) -> SendOutcome:
        """Add a line to the live status, which makes nobody's phone ring, instead of one more comment."""
        if all(each.key != delivery.key for each in day.news):
            line = news_line(delivery.update, key=delivery.key, timezone=self._timezone)
            news = News(key=delivery.key, at=self._clock.now(), line=line)
            day = day.model_copy(update={"news": (*day.news, news)})
            await self._records.save_day(issue, day)
            log.info("github_comment_folded", issue=issue, delivery_key=delivery.key)
        run_id = delivery.run_id
        if run_id is None:
            return Never(
                reason=f"the day's {self._most} comments on issue #{issue} are used up",
                fix="raise [github] comments_per_day, or ask again tomorrow",
            )
        known = await self._ledger.posted(ChannelName.GITHUB, run_id, LIVE)
        vanished = int(known.message_id) if known is not None and known.message_id.isdecimal() else None
        if vanished is not None:
            edited = await self._client.edit_comment(
                frozenset({issue}), vanished, lambda now: with_news(now, day.lines)
            )
            if edited is not None:
                return Sent(message_id=str(edited.id), link=edited.link)
        body = news_alone(run_id, day.lines, key=delivery.key)
        posting = await self._post(delivery, issue, body, day, vanished=vanished)
        await self._remember(run_id, LIVE, posting)
        return Sent(message_id=str(posting.number), link=posting.link)

    async def _answer_politely(self, delivery: Delivery, issue: int, day: Day) -> SendOutcome:
        """Answer one account: with what it asked for, or once an hour at most with why nothing was done (R42)."""
        who, now = delivery.target.private_to, self._clock.now()
        last = day.replies.get(who)
        is_told_why = not delivery.update.evidence
        if is_told_why and last is not None and now - last.at < POLITE_EVERY:
            return Sent(message_id=str(last.comment), link=last.link)
        if self._is_used_up(day):
            return await self._tell_in_live_status(delivery, issue, day)
        body = private_body(delivery.update, key=delivery.key, login=self._login_of(who))
        posting = await self._post(delivery, issue, body, day)
        day = await self._records.day(issue, now)
        reply = Reply(at=now, comment=posting.number or 0, link=posting.link)
        if is_told_why:
            await self._records.save_day(issue, day.model_copy(update={"replies": {**day.replies, who: reply}}))
        return Sent(message_id=str(posting.number), link=posting.link)

    async def _remember(self, run_id: RunId, slot: str, posting: Posting) -> None:
        await self._ledger.save_posted(
            Posted(
                channel=ChannelName.GITHUB,
                run_id=run_id,
                slot=slot,
                message_id=str(posting.number),
                link=posting.link,
            )
        )

    def _is_used_up(self, day: Day) -> bool:
        return len(day.posted_at) >= self._most


def is_urgent(update: Update) -> bool:
    """Say whether an update gets a comment of its own even when the day's are used up."""
    return update.severity is Severity.CRITICAL or update.kind in _REQUESTS
