"""Whether a run's record is kept for others to find: a production run's always is, a bounded diagnostic's when it must.

A bounded diagnostic goes the light path: its launch and its monitoring stay in the conversation that it came from, and
it gets no issue of its own. It is promoted, once and for good, when it outgrows that. Pure.

Source: manage-hero-run, "Operating Model" (classify the run) and "Run Record" ("If it needs a handoff, lasts more than
one day, changes production lineage, or produces a discoverable artifact").
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from bot.model.contract import Contract, RunKind
from bot.model.places import normalised, overlaps
from bot.model.reading import Known
from bot.model.record import Record
from bot.model.run import Run
from bot.model.snapshot import Snapshot

BOUNDED = timedelta(days=1)
"""A diagnostic that lasts longer is none that is bounded."""


def is_on_record(contract: Contract, run: Run | None) -> bool:
    """Whether the run's record is kept in the durable channel, and not only in Hero's own log.

    Args:
        contract: of the run; one that names an issue wants it kept there.
        run: as it is remembered; None when nothing is.
    """
    is_kept = contract.effective_kind is RunKind.PRODUCTION or contract.channels.github_issue is not None
    return is_kept or (run is not None and bool(run.promoted))


def why_promoted(
    contract: Contract, record: Record, seen: Snapshot, *, promised: Mapping[str, str], lineage: str
) -> str:
    """Return why a bounded diagnostic goes on record now; empty when it need not, or is there already.

    Args:
        contract: of the run.
        record: the run with what this look has changed.
        seen: the look.
        promised: the contract as it is now, field by field, to be held against what was on record before.
        lineage: what ``lineage_of`` says.
    """
    if is_on_record(contract, record.run):
        return ""
    return next(_reasons(contract, record, seen, promised, lineage), "")


def _reasons(
    contract: Contract, record: Record, seen: Snapshot, promised: Mapping[str, str], lineage: str
) -> Iterator[str]:
    before, first, last = record.run.promised, next(iter(record.instances), None), record.instance
    if record.run.handover is not None or record.run.roles:
        yield "it is being handed over, or was"
    if any(before and before.get(field) != promised.get(field) for field in ("dri", "owner")):
        yield "it was handed over: its contract names another DRI or monitoring owner than before"
    if before and before.get("initialize_from") != promised.get("initialize_from"):
        yield "its lineage has changed: its contract names another initialize_from than before"
    if lineage:
        yield lineage
    if record.run.seal:
        yield f"it was sealed as {record.run.seal}, for others to find"
    if isinstance(seen.export, Known) and seen.export.value:
        yield f"it has left an export for others to find, at {contract.export_root}"
    if first is not None and last is not None and (last.ended_at or seen.at) - first.launched_at > BOUNDED:
        yield f"it has lasted more than a day, since {first.launched_at:%Y-%m-%d %H:%M} UTC"


def lineage_of(contract: Contract, others: Iterable[Contract]) -> str:
    """Say how a diagnostic changes the lineage of another run; empty when it does not, as far as contracts tell.

    That it starts from a production run's checkpoint itself changes nothing there: most diagnostics do.
    """
    own = {normalised(root, contract.checkout) for root in (contract.output_root, *contract.roots)}
    for other in others:
        if other.run_id == contract.run_id:
            continue
        source = other.initialize_from
        if source is not None and any(_is_within(normalised(source, other.checkout), root) for root in own):
            return f"it has become lineage: {other.run_id} starts from its checkpoint {source}"
        theirs = {normalised(root, other.checkout) for root in other.roots}
        if other.effective_kind is RunKind.PRODUCTION and any(overlaps(a, b) for a in own for b in theirs):
            return f"it writes among the checkpoints of the production run {other.run_id}"
    return ""


def _is_within(place: str, root: str) -> bool:
    return place == root or place.startswith(f"{root.rstrip('/')}/")
