"""GitHub as a place where people are: one issue a run, one live status edited in place, one comment a material event.

Start here; ``client`` asks GitHub, ``posting`` makes posts once, ``inbound`` reads what people write.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog
from starlette.routing import Route

from bot.channels.github.account import OwnAccount
from bot.channels.github.client import GitHubClient
from bot.channels.github.doctor import Finding, examine
from bot.channels.github.errors import BadTokenError, DeniedError, LimitedError, MovedError, SettlingError
from bot.channels.github.inbound import Listener
from bot.channels.github.labels import Labels
from bot.channels.github.outcomes import outcome_of, say_trouble
from bot.channels.github.pins import Pins
from bot.channels.github.posting import Poster
from bot.channels.github.records import THREAD, Records
from bot.channels.github.standing import ask_standing
from bot.channels.github.successors import Successors, says_full
from bot.channels.github.telling import Teller
from bot.channels.github.trouble import Trouble
from bot.channels.github.webhook import Webhook
from bot.channels.github.words import load_template
from bot.channels.ports import Ledger, Receive
from bot.clock import Clock
from bot.errors import LeaseLostError, ServiceError, StoreError
from bot.model.delivery import ChannelName, Delivery, Later, Never, Posted, SendOutcome
from bot.model.person import Actor, Person, Standing
from bot.model.reading import Reading
from bot.model.value import RunId
from bot.render.issue_template import fill_template
from bot.settings import GitHubSettings

log = structlog.get_logger()

_RESOLVE_EVERY = timedelta(hours=1)


class GitHubChannel:
    """The channel; see ``bot.channels.ports.Channel`` for what its methods promise."""

    name = ChannelName.GITHUB

    def __init__(
        self,
        settings: GitHubSettings,
        ledger: Ledger,
        clock: Clock,
        *,
        people: tuple[Person, ...],
        issues: Callable[[RunId], int | None],
        timezone: str = "UTC",
        facts: Callable[[RunId], Mapping[str, str]] = lambda _: {},
        pacing: timedelta = timedelta(seconds=1),
    ) -> None:
        """Make it; nothing is asked of GitHub yet.

        Args:
            settings: with a token and a repository.
            ledger: where the issues and comments of runs are remembered.
            clock: the time.
            people: whom updates may name.
            issues: the issue that a run's contract names, None for one that Hero opens.
            timezone: in which people read times.
            facts: what a run's contract says for the issue that Hero opens.
            pacing: between two writes; GitHub asks for a second.

        Raises:
            ConfigurationError: the template for issues cannot be used.
        """
        self._settings = settings
        self._ledger = ledger
        self._clock = clock
        logins = {person.name: person.github for person in people if person.github}
        self._issues = issues
        self._client = GitHubClient(settings, clock, pacing=pacing)
        self._records = Records(ledger)
        self._pins = Pins(self._client, ledger, people)
        self._own = OwnAccount(self._client, self._records)
        template = load_template(settings.issue_template)
        self._poster = Poster(
            self._client,
            self._records,
            self._own,
            clock,
            words=lambda run_id: fill_template(template, run_id, facts(run_id)),
        )
        self._successors = Successors(self._client, ledger, self._records, self._poster, clock)
        self._trouble = Trouble(clock)
        known = frozenset(login.casefold() for login in logins.values())
        self._listener = Listener(
            client=self._client,
            ledger=ledger,
            records=self._records,
            own=self._own,
            clock=clock,
            trouble=self._trouble,
            people=known,
        )
        self._teller = Teller(
            client=self._client,
            ledger=ledger,
            records=self._records,
            poster=self._poster,
            clock=clock,
            trouble=self._trouble,
            comments_per_day=settings.comments_per_day,
            logins=logins,
            login_of=lambda user_id: self._listener.logins.get(user_id, ""),
            timezone=timezone,
        )
        self._labels = Labels(
            settings.label,
            client=self._client,
            ledger=ledger,
            records=self._records,
            clock=clock,
            trouble=self._trouble,
        )
        self._sending = asyncio.Lock()
        secret = settings.webhook_secret
        self._webhook: Webhook | None = None
        if secret is not None:
            self._webhook = Webhook(
                secret.get_secret_value().strip(),
                client=self._client,
                listener=self._listener,
                records=self._records,
                clock=clock,
            )

    def routes(self) -> list[Route]:
        """Return the routes by which GitHub reaches Hero; none without a webhook's secret."""
        return self._webhook.routes() if self._webhook is not None else []

    async def send(self, delivery: Delivery) -> SendOutcome:
        issue: int | None = None
        try:
            async with self._sending:
                found = await self._issue_of(delivery)
                if isinstance(found, Never):
                    return found
                issue = found
                outcome = await self._tell(delivery, issue)
                await self._roll_over(delivery, issue)
        except ServiceError as error:
            return await self._failed(error, issue)
        except StoreError:
            raise  # the courier's to handle: it is no fault of GitHub's or of this channel
        except Exception as error:
            log.exception("github_send_broke", delivery_key=delivery.key)
            return Later(reason=f"Hero itself failed ({type(error).__name__}); see its log", is_uncertain=True)
        self._trouble.end("writing")
        self._trouble.end(f"issue {issue}")
        return outcome

    async def _tell(self, delivery: Delivery, issue: int) -> SendOutcome:
        """Tell it there, or on the issue that follows when that one is full."""
        run_id = await self._successors.run_of(issue) if delivery.target.conversation else delivery.run_id
        former = await self._successors.former(run_id) if run_id is not None else ()
        try:
            return await self._teller.tell(delivery, issue, former)
        except DeniedError as error:
            if run_id is None or not says_full(error):
                raise
        successor = await self._successors.open(run_id, issue)
        return await self._teller.tell(delivery, await self._successors.current(run_id, successor), (*former, issue))

    async def _roll_over(self, delivery: Delivery, issue: int) -> None:
        """Open the successor of an issue that is nearly full; link forward. What fails is tried at the next send."""
        run_id = delivery.run_id
        if run_id is None or delivery.target.conversation:
            return
        concern = f"roll-over of issue {issue}"
        try:
            if issue in self._teller.full:
                await self._successors.open(run_id, issue)
                self._teller.full.discard(issue)
            await self._successors.announce(run_id)
        except ServiceError as error:
            if not isinstance(error, SettlingError):
                said = say_trouble(error, self._client.repository, None)
                self._trouble.begin(concern, f"issue #{issue} is nearly full, and going on elsewhere failed: {said}")
        else:
            self._trouble.end(concern)

    async def identify(self, actor: Actor) -> Reading[Standing]:
        return await self._pins.judge(actor, await ask_standing(self._client, actor, self._clock))

    async def run(self, receive: Receive) -> None:
        resolved_at: float | None = None
        is_begun = False
        while True:
            wait = self._settings.poll
            try:
                if self._webhook is not None and not is_begun:
                    await self._webhook.begin(receive)
                    is_begun = True
                if resolved_at is None or self._clock.monotonic() - resolved_at > _RESOLVE_EVERY.total_seconds():
                    await self._client.ask_repository()
                    await self._pins.pin()
                    resolved_at = self._clock.monotonic()
                await self._listener.poll(receive)
                await self._labels.keep()
                if self._webhook is not None and await self._webhook.is_reliable():
                    wait = max(wait, self._settings.sweep)
            except LeaseLostError:
                raise
            except ServiceError as error:
                await self._recover(error)
                wait = max(wait, error.after) if isinstance(error, LimitedError) else wait
                self._trouble.begin("reading", say_trouble(error, self._client.repository, None))
            except StoreError as error:
                self._trouble.begin("reading", f"comments on GitHub cannot be stored: {error}")
            except Exception:
                log.exception("github_poll_broke")
                self._trouble.begin("reading", "reading GitHub failed in Hero itself; see its log, and report it")
            else:
                self._trouble.end("reading")
            await self._clock.sleep(wait)

    async def doctor(self) -> tuple[Finding, ...]:
        """Examine token, repository, permission to write and rate limit, for ``hero doctor``."""
        return await examine(self._client)

    @property
    def trouble(self) -> str:
        return self._trouble.text

    async def close(self) -> None:
        self._client.close()

    async def _issue_of(self, delivery: Delivery) -> int | Never:
        """Return the number of the issue to write on, opening the run's if there is none."""
        target, run_id = delivery.target, delivery.run_id
        if target.conversation:
            if target.conversation.isdecimal():
                return int(target.conversation)
            return Never(reason=f"{target.conversation!r} is no issue number", fix="report it as a fault of Hero")
        if run_id is None:
            return Never(
                reason="GitHub has no place for news about Hero itself, only an issue for each run",
                fix="read it in Hero's other channels or in its log",
            )
        named = self._issues(run_id)
        if named is not None:
            return await self._successors.current(run_id, named)
        known = await self._ledger.posted(ChannelName.GITHUB, run_id, THREAD)
        if known is not None and known.message_id.isdecimal():
            return await self._successors.current(run_id, int(known.message_id))
        opened = await self._poster.issue(run_id)
        await self._records.begin_reading(opened.number, opened.created_at)
        await self._ledger.save_posted(
            Posted(
                channel=ChannelName.GITHUB,
                run_id=run_id,
                slot=THREAD,
                message_id=str(opened.number),
                link=opened.link,
            )
        )
        return opened.number

    async def _failed(self, error: ServiceError, issue: int | None) -> SendOutcome:
        await self._recover(error)
        outcome = outcome_of(error, self._client.repository, issue)
        if isinstance(outcome, Never):
            self._trouble.end("writing")
        if not isinstance(error, SettlingError):
            concern = f"issue {issue}" if isinstance(outcome, Never) and issue else "writing"
            self._trouble.begin(concern, say_trouble(error, self._client.repository, issue))
        return outcome

    async def _recover(self, error: ServiceError) -> None:
        """Do what may help the next try: look up the repository's new name, or take the token anew."""
        if isinstance(error, BadTokenError):
            self._client.renew()
            self._own.forget()
        elif isinstance(error, MovedError):
            with contextlib.suppress(ServiceError):
                await self._client.ask_repository()
