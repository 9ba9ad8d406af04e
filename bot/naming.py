"""What can be named in a command now: what a channel proposes while somebody types."""

from collections.abc import Iterable
from typing import Protocol

from bot.channels.discord.completing import AskNames, Names
from bot.model.plan import RequestState
from bot.model.value import RunId
from bot.store.store import Store
from handlers.command import COMMANDS


class Runs(Protocol):
    """Whoever knows which runs there are."""

    def run_ids(self) -> Iterable[RunId]: ...


def names_from(store: Store, contracts: Runs) -> AskNames:
    """Return how to ask for the commands, the runs and the requests that wait."""

    async def names() -> Names:
        records = [await store.record(run_id) for run_id in sorted((await store.awaited()).asked)]
        waiting = [
            each.name for record in records if record for each in record.requests if each.state is RequestState.OPEN
        ]
        runs = tuple(str(run_id) for run_id in contracts.run_ids())
        return Names(commands=tuple(COMMANDS), runs=runs, requests=tuple(waiting))

    return names
