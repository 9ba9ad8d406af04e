"""The same run id or a new one: what changed in the code since the launch before decides what may be proposed.

Source: manage-hero-run, "What Can Go Wrong": an infrastructure failure is relaunched with the same run id and output
root; a bug in the model, the training loop, the optimizer or the data pipeline needs a new run with a new W&B id, from
``initialize_from``.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from bot.model.contract import Basis
from bot.model.crash import Classification, CrashClass
from bot.model.harmless import unharmless
from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.reading import Known, Unknown
from bot.model.value import CheckId, Value
from checks.check import thresholds_of
from checks.code import LINEAGE
from checks.crash.paths import DEFAULT_PATHS, TrajectoryPaths, path_affects_trajectory
from checks.preflight.item import Item, Told, stated

_INFRASTRUCTURE = frozenset(
    {CrashClass.INFRA_PREEMPTION, CrashClass.INFRA_HARDWARE, CrashClass.CAPACITY, CrashClass.BENIGN}
)
_SHOWN = 5
NEW_RUN = "a new contract with a new run id, a new W&B id and output root, and initialize_from at the last good step"


class SameRun(StrEnum):
    SAME = "same"
    NEW = "new"
    ASK = "ask"


class Proposal(Value):
    """Whether the run goes on under its id, and why."""

    run: SameRun
    reason: str


def propose(crash: Classification | None, changed: Iterable[str], paths: TrajectoryPaths = DEFAULT_PATHS) -> Proposal:
    """Decide by what changed, and where nothing did by how the run ended.

    Args:
        crash: how the last job ended; None when that is not known, or when it did not end.
        changed: paths that count and differ between the launch before and the one to come.
        paths: which of them are model, loop, optimizer or data pipeline.
    """
    judged = {path: path_affects_trajectory(path, paths) for path in changed}
    touching = sorted(path for path, affects in judged.items() if affects)
    unclear = sorted(path for path, affects in judged.items() if affects is None)
    if touching:
        return Proposal(run=SameRun.NEW, reason=f"the code that decides what is learned changed: {_named(touching)}")
    if unclear:
        return Proposal(
            run=SameRun.ASK, reason=f"code changed, and whether it affects what is learned is open: {_named(unclear)}"
        )
    if judged:
        return Proposal(run=SameRun.SAME, reason=f"what changed does not affect what is learned: {_named(judged)}")
    return _by_crash(crash)


def say_proposal(proposal: Proposal) -> str:
    """Return the line of a request that says under which id the run goes on, and why."""
    match proposal.run:
        case SameRun.SAME:
            return f"run id: the same ({proposal.reason})"
        case SameRun.NEW:
            return f"run id: a NEW one is needed ({proposal.reason}); {NEW_RUN}"
        case SameRun.ASK:
            return f"run id: the same, if you agree ({proposal.reason}); else {NEW_RUN}"


def _by_crash(crash: Classification | None) -> Proposal:
    if crash is None:
        return Proposal(run=SameRun.SAME, reason="no change of the code is known")
    words = crash.crash_class.value.replace("_", " ")
    if crash.crash_class in _INFRASTRUCTURE:
        return Proposal(run=SameRun.SAME, reason=f"it ended by {words}, and no change of the code is known")
    if crash.trajectory_affecting is False:
        return Proposal(run=SameRun.SAME, reason=f"it ended by {words}, whose mending changes nothing that is learned")
    may = "changes" if crash.trajectory_affecting else "may change"
    return Proposal(run=SameRun.ASK, reason=f"it ended by {words}, and mending that {may} what is learned")


def _named(paths: Iterable[str]) -> str:
    listed = [" ".join(path.split()) for path in paths]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def changed_paths(prepared: Preparation) -> tuple[str, ...]:
    """Return the paths that count and differ from what the launch before was made of, as far as that is known."""
    code = prepared.seen.code
    globs = code.value.harmless if isinstance(code, Known) else ()
    found: list[str] = []
    if isinstance(prepared.code_changes, Known):
        found += unharmless(prepared.code_changes.value, globs)
    contract = prepared.contract
    if isinstance(code, Known) and contract.bundle is None and contract.source_sha is not None:
        found += code.value.changed_that_counts
        # A patch by agreement was part of the launch before, as far as anybody knows; the plan carries its digest.
        found += () if contract.dirty_approved else code.value.dirty_that_counts
    return tuple(dict.fromkeys(found))


def judge(prepared: Preparation) -> Told:
    """Refuse a relaunch under the same id when what changed affects the trajectory."""
    if prepared.is_first:
        return Told()
    proposal = propose(None, changed_paths(prepared), thresholds_of(LINEAGE, prepared.contract).rules)
    return Told(
        values=(stated("same_run", f"{proposal.run}: {proposal.reason}", Basis.INFERRED),),
        findings=tuple(_findings(prepared, proposal)),
    )


def _findings(prepared: Preparation, proposal: Proposal) -> Iterator[PreflightFinding]:
    before = prepared.seen.instance.source_sha if prepared.seen.instance else None
    since = f" since {before[:12]}" if before else ""
    match proposal.run:
        case SameRun.NEW:
            message = f"{proposal.reason}{since}; a relaunch under the same run id would mix two lineages"
            yield TRAJECTORY.finding(Weight.BLOCKS, message, f"make {NEW_RUN}; or go back to the commit before")
        case SameRun.ASK:
            message = f"{proposal.reason}{since}"
            yield TRAJECTORY.finding(Weight.ASKS, message, f"accept it for the same run id; else make {NEW_RUN}")
        case SameRun.SAME:
            pass
    if isinstance(prepared.code_changes, Unknown):
        message = f"what changed in the code{since} cannot be read: {prepared.code_changes.detail}"
        fix = "fetch that commit into the checkout, or have the DRI accept the new source"
        yield TRAJECTORY.finding(Weight.ASKS, message, fix)


TRAJECTORY = Item(
    id=CheckId("launch.trajectory"),
    title="A relaunch under the same run id changes nothing that affects what is learned",
    source='manage-hero-run, "What Can Go Wrong": midrun crash; code bug',
    judge=judge,
)
