"""Builds what belongs to the end of a run: the clean-up of checkpoints, and the seal."""

from contextlib import AsyncExitStack
from datetime import timedelta

from bot.actions.cleanup import CleanUp
from bot.actions.sealing import Seal
from bot.channels.github.tags import GitHubTagger
from bot.clock import Clock
from bot.contracts import BadContract, Contracts
from bot.model.contract import Contract
from bot.model.errand import CannotYet, Errand, Found
from bot.model.record import Record
from bot.redaction import Redactor
from bot.settings import Settings
from bot.sources.checkpoints import CheckpointReader
from bot.sources.exports import ExportReader
from bot.sources.snapshots import SnapshotReader
from bot.store.store import Store
from bot.written import RecordReader

_DELETION = timedelta(minutes=10)
"""One directory of a large checkpoint has tens of thousands of objects."""


def build_cleanup(contracts: Contracts, store: Store, clock: Clock) -> CleanUp:
    """Build the clean-up; what any run's contract starts from is protected."""

    def every() -> tuple[Contract | BadContract, ...]:
        return tuple(contracts.load(run_id) for run_id in contracts.run_ids())

    return CleanUp(checkpoints=CheckpointReader(clock), contracts=every, store=store, clock=clock, deadline=_DELETION)


class Unsealable:
    """Answers ``/hero seal`` where nothing is set up to create its tag (``bot.errands.Preparer``)."""

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:  # noqa: ARG002 - the port's
        """Name the settings that are missing."""
        return CannotYet(
            reason="the seal is a tag in the repository of the run's source, and [github] in hero.toml is not set up",
            fix=(
                "set [github] repository and HERO_GITHUB__TOKEN (or [github] app_id with app_private_key_file), and "
                "[github] source_repository where the source lies in another one; the token needs `contents: write` "
                f"there. Then start Hero anew and send `/hero seal {contract.run_id}`"
            ),
        )


def build_seal(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    reader: SnapshotReader,
    store: Store,
    clock: Clock,
    redactor: Redactor,
) -> Seal | None:
    """Build the seal, to be closed with ``stack``; None without GitHub, where the tag is created."""
    if not settings.github.is_set:
        return None
    tagger = GitHubTagger(settings.github, clock)
    stack.push_async_callback(tagger.close)
    return Seal(
        reader=reader,
        tagger=tagger,
        exported=ExportReader(clock).exported_bytes,
        record_fault=RecordReader(store, clock, has_issues=True).fault,
        store=store,
        clock=clock,
        redactor=redactor,
    )
