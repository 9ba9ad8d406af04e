"""Whether a run may be sealed: everything that it was for is really there. Pure; anything unknown refuses.

Source: manage-hero-run, "What Can Go Wrong": benign-looking success with missing artifacts ("Do not seal until final
artifacts are verified").
"""

from collections.abc import Iterator

from bot.model.contract import Contract
from bot.model.job import JobState
from bot.model.reading import Gap, Reading, Unknown
from bot.model.record import Record
from bot.model.snapshot import Checkpoint, Snapshot
from bot.model.tracker import TrackerRunState
from bot.model.value import Value
from checks.current import is_final


class Lack(Value):
    """One thing that is missing, or that is not known to be there."""

    what: str
    is_unknown: bool = False


def lacks_of(
    seen: Snapshot,
    contract: Contract,
    record: Record,
    *,
    exported: Reading[int | None],
    record_fault: Reading[str],
) -> tuple[Lack, ...]:
    """Return all that stands against a seal; empty when the run is what it was meant to be.

    Args:
        seen: the world now.
        contract: what was promised.
        record: what is on record.
        exported: how many bytes lie at the export root; Known(None) when the contract names none.
        record_fault: what is wrong with the run's record, or with what its issue shows of it; empty when nothing is.
    """
    return (
        *_job(seen),
        *_checkpoint(seen, contract),
        *_tracker(seen, contract),
        *_export(exported, contract),
        *_record(record, record_fault),
        *_source(contract, record),
    )


def final_checkpoint(seen: Snapshot, contract: Contract) -> Checkpoint | None:
    """Return the complete, permanent checkpoint of the true final step."""
    if isinstance(seen.checkpoints, Unknown):
        return None
    found = (each for each in seen.checkpoints.value if is_final(each.step, contract.final_step))
    return next((each for each in found if each.is_complete and not each.fault and not each.is_temporary), None)


def _job(seen: Snapshot) -> Iterator[Lack]:
    match seen.jobs:
        case Unknown(detail=detail):
            yield Lack(what=f"whether the job succeeded is not known: {detail}", is_unknown=True)
        case known if not known.value:
            yield Lack(what="the orchestrator knows no job of the run, so its success cannot be seen", is_unknown=True)
        case known if known.value[0].state is not JobState.SUCCEEDED:
            yield Lack(what=f"{known.value[0].job_id} is {known.value[0].state}, not succeeded")
        case _:
            return


def _checkpoint(seen: Snapshot, contract: Contract) -> Iterator[Lack]:
    if contract.final_step is None:
        yield Lack(what="the contract names no final step, so the final checkpoint is not known", is_unknown=True)
        return
    if isinstance(seen.checkpoints, Unknown):
        yield Lack(what=f"the final checkpoint cannot be seen: {seen.checkpoints.detail}", is_unknown=True)
        return
    if final_checkpoint(seen, contract) is not None:
        return
    found = [each for each in seen.checkpoints.value if is_final(each.step, contract.final_step)]
    if not found:
        newest = max((each.step for each in seen.checkpoints.value if each.is_complete), default=None)
        newest_is = "there is no complete one at all" if newest is None else f"the newest complete one is step {newest}"
        yield Lack(what=f"there is no checkpoint of the final step {contract.final_step}; {newest_is}")
        return
    last = found[-1]
    fault = last.fault or ("it is a temporary one and will be deleted" if last.is_temporary else "it is not complete")
    yield Lack(what=f"the final checkpoint {last.path} does not count: {fault}")


def _tracker(seen: Snapshot, contract: Contract) -> Iterator[Lack]:
    if isinstance(seen.tracker, Unknown):
        is_promised = contract.tracker.mode not in {"disabled", "offline", "dryrun"} and contract.tracker.id
        if seen.tracker.reason is not Gap.NOT_CONFIGURED or is_promised:
            yield Lack(what=f"what the tracker has cannot be seen: {seen.tracker.detail}", is_unknown=True)
        return
    state = seen.tracker.value
    if state.state is not TrackerRunState.FINISHED:
        yield Lack(what=f"the tracker's run {state.id} is {state.state}, not finished")
    if contract.final_step is None:
        return  # told already, and nothing to compare with
    if state.trainer_step is None:
        yield Lack(what=f"the summary of the tracker's run {state.id} has no step", is_unknown=True)
    elif not is_final(state.trainer_step, contract.final_step):
        yield Lack(what=f"the summary of the tracker's run {state.id} ends at step {state.trainer_step}")


def _export(exported: Reading[int | None], contract: Contract) -> Iterator[Lack]:
    match exported:
        case Unknown(detail=detail):
            yield Lack(what=f"whether the export is there is not known: {detail}", is_unknown=True)
        case known if known.value == 0:
            yield Lack(what=f"nothing lies at the export root {contract.export_root}")
        case _:
            return


def _record(record: Record, fault: Reading[str]) -> Iterator[Lack]:
    match fault:
        case Unknown(detail=detail):
            yield Lack(what=f"whether the run's record is in order is not known: {detail}", is_unknown=True)
        case known if known.value:
            yield Lack(what=known.value)
        case _:
            pass
    alive = [incident for incident in record.incidents if incident.is_open and incident.finding.severity == "critical"]
    for incident in alive:
        yield Lack(what=f"I{incident.number} {incident.check} is open: {incident.finding.summary}")


def _source(contract: Contract, record: Record) -> Iterator[Lack]:
    launched = record.instance.source_sha if record.instance else None
    stated = launched or contract.source_sha
    if stated is None:
        yield Lack(what="the source SHA of the run is not on record, so there is nothing that the tag could point to")
    elif launched and contract.source_sha and launched != contract.source_sha:
        yield Lack(what=f"the last launch was of {launched}, and the contract says {contract.source_sha}")
