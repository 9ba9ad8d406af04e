"""E-mail: people are told, and nobody answers. What it takes to send one mail is in ``submission``."""

import asyncio

import structlog

from bot.channels.email.message import compose, message_id
from bot.channels.email.submission import Refused, SubmissionError, connected, quit_politely, submit
from bot.channels.ports import Receive
from bot.clock import Clock
from bot.model.delivery import ChannelName, Delivery, Later, Never, SendOutcome, Sent
from bot.model.person import Actor, Person, Standing
from bot.model.reading import Known, Reading
from bot.model.update import Update
from bot.settings import EmailSettings

log = structlog.get_logger()

FIXES = {
    "connect": "see that [email] host and port are right and can be reached from here",
    "tls": "correct [email] security or port, or name the authority that signed the server's certificate in ca_file",
    "login": "correct [email] username and password",
    "sender": "set [email] sender to an address that the server lets this account send from",
    "recipients": "correct the address in [email] to or in [people]",
    "data": "see the server's own words; if it is about the message itself, report it",
}


_WAITS_FOR_ALL = 5
"""So many sends wait for an address that is put off; then the others get the mail without it."""


class EmailChannel:
    """One mail a delivery, to ``[email] to`` and to who is asked.

    A send whose end is not known is sent again under the same Message-ID: readers show it once, and a page that never
    arrives is worse than one that arrives twice.
    """

    name = ChannelName.EMAIL

    def __init__(
        self, settings: EmailSettings, clock: Clock, *, people: tuple[Person, ...] = (), timezone: str = "UTC"
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._addresses = {person.name: person.email for person in people if person.email}
        self._timezone = timezone
        self._trouble = ""

    @property
    def trouble(self) -> str:
        """What is wrong with the mail server now, with the fix; empty when nothing is."""
        return self._trouble

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Send one mail; see ``Channel.send``."""
        recipients = self._recipients(delivery.update)
        if not recipients:
            fix = "set [email] to, or the e-mail address of the run's people in [people.NAME]"
            return Never(reason="nobody who is asked has an e-mail address", fix=fix)
        sender = self._settings.sender or ""
        try:
            message = compose(delivery, sender=sender, recipients=recipients, timezone=self._timezone)
            waits = delivery.attempt < _WAITS_FOR_ALL
            refused = await self._submit(message, sender, recipients, waits_for_all=waits)
        except SubmissionError as error:
            return self._failed(error)
        except TimeoutError:
            self._trouble = f"the mail server takes too long; {FIXES['connect']}"
            return Later(reason="the mail server did not answer in time", is_uncertain=True)
        except Exception as error:  # the border of a channel: a fault in here must not stop the outbox
            log.exception("email_send_broke", delivery=delivery.number)
            return Later(reason=f"Hero's own fault: {type(error).__name__}", is_uncertain=True)
        told = ", ".join(f"{each.address} ({each.code})" for each in refused)
        self._trouble = f"the mail server refuses {told}; {FIXES['recipients']}" if told else ""
        return Sent(message_id=message_id(delivery.key, sender.rpartition("@")[2]))

    async def identify(self, actor: Actor) -> Reading[Standing]:  # noqa: ARG002 - the port's
        """Nobody's mail is read, so nobody's word counts here."""
        standing = Standing(is_member=False, is_bot=False, detail="Hero reads no mail")
        return Known(value=standing, at=self._clock.now())

    async def run(self, receive: Receive) -> None:  # noqa: ARG002 - the port's
        """Hear nothing, for ever."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is held open: each mail has a connection of its own."""

    async def _submit(
        self, message: bytes, sender: str, recipients: tuple[str, ...], *, waits_for_all: bool
    ) -> tuple[Refused, ...]:
        async with (
            asyncio.timeout(self._settings.deadline.total_seconds()) as limit,
            connected(self._settings) as client,
        ):
            refused = await submit(client, message, sender=sender, recipients=recipients, waits_for_all=waits_for_all)
            limit.reschedule(None)  # it is taken: no slow goodbye may make that uncertain again
            await quit_politely(client)
            return refused

    def _recipients(self, update: Update) -> tuple[str, ...]:
        asked = (self._addresses.get(name, "") for name in (update.asked, *update.also_asked) if name)
        return tuple(dict.fromkeys(address for address in (*asked, *self._settings.to) if address))

    def _failed(self, error: SubmissionError) -> Later | Never:
        """What only a person can mend is tried again by the outbox meanwhile; what is about this mail is not."""
        fix = FIXES[error.stage]
        log.info("email_send_failed", stage=error.stage, code=error.code, reason=error.reason)
        if error.stage == "data" and error.is_permanent:
            return Never(reason=f"the mail server does not take this mail: {error.reason}", fix=fix)
        if error.stage == "recipients" and error.is_permanent:
            return Never(reason=f"the mail server takes it for nobody: {error.reason}", fix=fix)
        self._trouble = f"e-mail: {error.reason}; {fix}"
        return Later(reason=error.reason, is_uncertain=error.is_uncertain)
