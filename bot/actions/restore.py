"""Whether a relaunched job took up the run where the plan says: pure, from the log and the metrics."""

import re
from typing import Any, Literal

from bot.model.contract import Contract
from bot.model.planned import PlannedCheckpoint, RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot
from bot.model.telemetry import Phase
from bot.model.value import Value

_LOADING = re.compile(r"Loading checkpoint from (\S+)")
_STEP = re.compile(r"step-(\d+)(?:\D|$)")


class Restored(Value):
    """It loaded what was planned, and training moves."""

    kind: Literal["restored"] = "restored"
    first_step: int
    detail: str


class NotYet(Value):
    kind: Literal["not_yet"] = "not_yet"
    detail: str
    is_unknown: bool = False
    """Whether that is only because something could not be read, or because the witnesses contradict each other."""


class WrongRestore(Value):
    """It loaded something else, or began elsewhere: the lineage is not what was granted."""

    kind: Literal["wrong"] = "wrong"
    detail: str


def judge_restore(
    plan: RelaunchPlan,
    contract: Contract,
    seen: Snapshot,
    steps: tuple[int, ...],
    *,
    handoff: PlannedCheckpoint | None = None,
) -> Restored | NotYet | WrongRestore:
    """Judge from what the new instance printed and logged.

    Args:
        plan: what was granted.
        contract: for the names of things.
        seen: a snapshot of the new instance.
        steps: every optimizer step that the new instance has logged so far, in order.
        handoff: the other run's checkpoint from which a trial's child begins, where the plan names none of its own.
            Then the line has to be seen: a trial is judged by what was really loaded.

    A silent log is no proof of a wrong restore: the first logged step decides where no ``Loading checkpoint from`` line
    is found (facts of Levanter: its absence means nothing when the chosen directory is itself a search path).
    """
    loaded = _loaded_paths(seen)
    planned = plan.resume_from or handoff
    wrong = [path for path in loaded if not _is_planned(path, planned, contract)]
    if loaded and wrong == loaded:
        expected = f"step {planned.step} at {planned.path}" if planned else "no checkpoint at all"
        return WrongRestore(detail=f"it loaded {loaded[-1]}, the plan says {expected}")
    if not steps:
        seen_so_far = f"it has loaded {loaded[-1]}, and {_why_stepless(seen)}" if loaded else _why_silent(seen)
        return NotYet(detail=seen_so_far, is_unknown=_is_open(seen.metrics) or _says_it_trains(seen))
    start = planned.step if planned else 0
    if planned and steps[0] < start:
        return WrongRestore(detail=f"its first logged step is {steps[0]}, before the planned checkpoint's {start}")
    if handoff is not None and not loaded and not _began_out_of_sight(seen, steps[0], start):
        unseen = f"it has logged step {steps[0]}, but no `Loading checkpoint from` line was found"
        return NotYet(detail=unseen, is_unknown=_is_open(seen.log))
    silent = "no `Loading checkpoint from` line was found" if planned else "there was no checkpoint to load"
    how = f"loaded {loaded[-1]}" if loaded else silent
    return Restored(first_step=steps[0], detail=f"{how}; {_say_start(seen, start, steps[0])} in {contract.output_root}")


def _say_start(seen: Snapshot, start: int, first: int) -> str:
    """Say from where it trains, no more exactly than is known: the first row that was seen need not be the first."""
    if first <= start + 1:
        return f"training goes on from step {first}"
    if isinstance(seen.metrics, Known) and seen.metrics.value.is_from_start:
        return f"training goes on, its first logged step is {first}"
    return f"training goes on, from which step is not known: the first one seen is {first}"


def _loaded_paths(seen: Snapshot) -> list[str]:
    if isinstance(seen.log, Unknown):
        return []
    found = (_LOADING.search(line.text) for line in seen.log.value.lines)
    return [match[1].rstrip(".,;:'\"") for match in found if match]


def _is_open(reading: Known[Any] | Unknown) -> bool:
    """Whether it is not known what there is to read; that there is nothing yet is known."""
    return isinstance(reading, Unknown) and reading.reason is not Gap.NOT_YET


def _says_it_trains(seen: Snapshot) -> bool:
    """Whether the trainer itself says that its loop has begun, as the metrics may not show yet."""
    if isinstance(seen.telemetry, Unknown):
        return False
    said = seen.telemetry.value
    return said.phase is Phase.TRAINING and said.is_of_current_execution is True


def _began_out_of_sight(seen: Snapshot, first: int, start: int) -> bool:
    """Whether the log does not reach back to the start any more, while the first step of all shows where it began."""
    is_cut = isinstance(seen.log, Known) and seen.log.value.is_cut
    is_whole = isinstance(seen.metrics, Known) and seen.metrics.value.is_from_start
    return is_cut and is_whole and start <= first <= start + 1


def _is_planned(path: str, planned: PlannedCheckpoint | None, contract: Contract) -> bool:
    """Whether this is what the plan resumes from; a run that begins at step 0 may begin from given weights."""
    if planned is not None:
        return _same_checkpoint(path, planned.step, planned.path)
    return contract.initialize_from is not None and path.rstrip("/") == contract.initialize_from.rstrip("/")


def _same_checkpoint(path: str, step: int, planned: str) -> bool:
    """Whether a path from the log names the planned checkpoint; mounts and schemes may be written differently."""
    if path.rstrip("/") == planned.rstrip("/"):
        return True
    found = _STEP.search(path)
    return found is not None and int(found[1]) == step


def _why_stepless(seen: Snapshot) -> str:
    if isinstance(seen.metrics, Unknown) and _is_open(seen.metrics):
        return f"its metrics cannot be read: {seen.metrics.detail}"
    return "no training step is logged yet"


def _why_silent(seen: Snapshot) -> str:
    match seen.log, seen.metrics:
        case Known(), Known():
            return "it has neither loaded a checkpoint nor logged a step yet"
        case Unknown(detail=detail), _:
            return f"its log cannot be read: {detail}"
        case _, Unknown(detail=detail):
            return f"its metrics cannot be read: {detail}"
        case _:
            return "nothing is known yet"
