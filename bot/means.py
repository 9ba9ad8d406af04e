"""What every decision is made with, whoever it is that calls the handler."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime

from bot.actions.relaunch import shape_of
from bot.channels.ports import Channel
from bot.clock import Clock
from bot.contracts import Contracts
from bot.model.contract import Contract
from bot.model.delivery import ONE_WAY, ChannelName
from bot.model.person import Person
from bot.model.record import Decision, Record, Telling
from bot.model.roles import with_roles
from bot.model.snapshot import Snapshot
from bot.model.update import Update, UpdateKind
from bot.model.verdict import Severity
from bot.redaction import Redactor
from bot.store.leases import Lease
from bot.store.store import Store
from bot.store.transaction import Transaction
from handlers.context import Context, Rules, channels_of
from handlers.recorded import recorded


@dataclass(frozen=True)
class Means:
    """The parts, and what is made of them for each decision anew."""

    store: Store
    """Where decisions are committed."""
    contracts: Contracts
    """Read anew for every event."""
    channels: Mapping[ChannelName, Channel]
    """Asked who an account is, and told through the store."""
    people: tuple[Person, ...]
    """Of the settings."""
    rules: Rules
    """Settings that decisions depend on."""
    redactor: Redactor
    """For what is shown of commands."""
    clock: Clock
    lease: Callable[[], Lease | None]
    """This process's right to write."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin the one transaction in which an event is decided."""
        return self.store.transaction(self.lease())

    def notice(self, key: str, headline: str, lines: tuple[str, ...], next_: str, at: datetime) -> Telling:
        """Return news about Hero itself, told once for each key."""
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
        there = self.conversations
        talk = tuple(name for name in there if name is not ChannelName.GITHUB) or there
        is_mailed = UpdateKind.NOTICE in self.rules.mailed and ChannelName.EMAIL in self.channels
        channels = (*talk, ChannelName.EMAIL) if is_mailed else talk
        return Telling(update=update, key=f"notice/{key}", channels=channels)

    @property
    def conversations(self) -> tuple[ChannelName, ...]:
        """The channels in which people answer."""
        return tuple(name for name in self.channels if name not in ONE_WAY)

    def recorded(
        self, record: Record, decision: Decision, context: Context, at: datetime, seen: Snapshot | None = None
    ) -> Decision:
        """Return the decision with what it adds to the run's record."""
        shape = shape_of(context.contract, self.redactor)
        return recorded(record, decision, context, at, shape=shape, seen=seen)

    def context(self, contract: Contract, record: Record | None) -> Context:
        """Return what a handler is told of a run beside its record; hand-overs on record count."""
        contract = with_roles(contract, record.run.roles) if record else contract
        told_on = channels_of(contract, record, self.conversations)
        return Context(
            contract=contract,
            people=self.people,
            channels=told_on,
            kept_out=tuple(name for name in self.conversations if name not in told_on),
            rules=self.rules,
            alerts=tuple(name for name in self.channels if name in ONE_WAY),
        )
