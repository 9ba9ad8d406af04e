"""What is proposed while somebody types a command comes from what is on record now."""

from pathlib import Path

from bot.model.record import Decision
from bot.model.value import RunId
from bot.naming import names_from
from bot.redaction import Redactor
from bot.store.store import Store
from handlers.command import COMMANDS
from tests.fakes.clock import START, FakeClock
from tests.fakes.decisions import RUN, a_request


class OneRun:
    """Contracts of one run; the rest of what contracts do is not asked here."""

    def run_ids(self) -> tuple[RunId, ...]:
        return (RUN,)


async def test_commands_runs_and_open_requests_are_proposed(tmp_path: Path) -> None:
    store = await Store.open(f"sqlite:///{tmp_path / 'hero.db'}", FakeClock(), Redactor(()))
    try:
        names = names_from(store, OneRun())
        before = await names()
        async with store.transaction(None) as tx:
            await tx.apply(Decision(requests=(a_request(1),)), RUN, START)
        after = await names()
    finally:
        await store.close()

    assert (before.commands, before.runs, before.requests) == (tuple(COMMANDS), (str(RUN),), ())
    assert after.requests == ("R1",)
