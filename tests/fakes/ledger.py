"""A ledger in memory; it outlives a channel as the database outlives Hero."""

from bot.model.chronicle import Entry
from bot.model.delivery import Awaited, ChannelName, Posted
from bot.model.record import Record
from bot.model.value import RunId


class FakeLedger:
    def __init__(self) -> None:
        self.messages: dict[tuple[ChannelName, str, str], Posted] = {}
        self.cursors: dict[str, str] = {}
        self.awaits = Awaited()
        self.entries: list[Entry] = []
        self.records: dict[RunId, Record] = {}

    async def posted(self, channel: ChannelName, run_id: str, slot: str) -> Posted | None:
        return self.messages.get((channel, run_id, slot))

    async def threads(self, channel: ChannelName) -> tuple[Posted, ...]:
        slots = ((name, slot.partition(":")[0], p) for (name, _, slot), p in self.messages.items())
        return tuple(p for name, slot, p in slots if name is channel and slot == "thread")

    async def awaited(self) -> Awaited:
        return self.awaits

    async def save_posted(self, posted: Posted) -> None:
        self.messages[posted.channel, posted.run_id, posted.slot] = posted

    async def chronicle(self, run_id: RunId) -> tuple[Entry, ...]:
        return tuple(each for each in self.entries if each.run_id == run_id)

    async def record(self, run_id: RunId) -> Record | None:
        return self.records.get(run_id)

    async def cursor(self, name: str) -> str | None:
        return self.cursors.get(name)

    async def save_cursor(self, name: str, value: str) -> None:
        self.cursors[name] = value
