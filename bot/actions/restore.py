"""Whether a relaunched job took up the run where the plan says: pure, from the log and the metrics."""

import re
from typing import Literal

from bot.model.contract import Contract
from bot.model.planned import RelaunchPlan
from bot.model.reading import Known, Unknown
from bot.model.snapshot import Snapshot
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


class WrongRestore(Value):
    """It loaded something else, or began elsewhere: the lineage is not what was granted."""

    kind: Literal["wrong"] = "wrong"
    detail: str


def judge_restore(
    plan: RelaunchPlan, contract: Contract, seen: Snapshot, steps: tuple[int, ...]
) -> Restored | NotYet | WrongRestore:
    """Judge from what the new instance printed and logged.

    Args:
        plan: what was granted.
        contract: for the names of things.
        seen: a snapshot of the new instance.
        steps: every optimizer step that the new instance has logged so far, in order.

    A silent log is no proof of a wrong restore: the first logged step decides where no ``Loading checkpoint from`` line
    is found (facts of Levanter: its absence means nothing when the chosen directory is itself a search path).
    """
    loaded = _loaded_paths(seen)
    planned = plan.resume_from
    wrong = [path for path in loaded if not _is_planned(path, plan, contract)]
    if loaded and wrong == loaded:
        expected = f"step {planned.step} at {planned.path}" if planned else "no checkpoint at all"
        return WrongRestore(detail=f"it loaded {loaded[-1]}, the plan says {expected}")
    if not steps:
        seen_so_far = f"it has loaded {loaded[-1]}, and no training step is logged yet" if loaded else _why_silent(seen)
        return NotYet(detail=seen_so_far)
    start = planned.step if planned else 0
    if planned and steps[0] < start:
        return WrongRestore(detail=f"its first logged step is {steps[0]}, before the planned checkpoint's {start}")
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


def _is_planned(path: str, plan: RelaunchPlan, contract: Contract) -> bool:
    """Whether this is what the plan resumes from; a run that begins at step 0 may begin from given weights."""
    if plan.resume_from is not None:
        return _same_checkpoint(path, plan.resume_from.step, plan.resume_from.path)
    return contract.initialize_from is not None and path.rstrip("/") == contract.initialize_from.rstrip("/")


def _same_checkpoint(path: str, step: int, planned: str) -> bool:
    """Whether a path from the log names the planned checkpoint; mounts and schemes may be written differently."""
    if path.rstrip("/") == planned.rstrip("/"):
        return True
    found = _STEP.search(path)
    return found is not None and int(found[1]) == step


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
