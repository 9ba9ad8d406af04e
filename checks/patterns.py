"""How failures belong together: by cause, by cause and node, by place, or as a loop of short lives. Pure.

Two ledgers are kept at once over the same failures. A cause may come back so many times whatever the node, since a
fault of the program follows it everywhere; on one and the same node it may come back fewer times, since then the node
is the suspect. What the orchestrator retried by itself, because it lost the machine, counts in the wider ceiling alone
for the run and in the narrower one for the node.
"""

from datetime import timedelta
from typing import NamedTuple

from pydantic import Field

from bot.model.crash import CrashClass
from bot.model.durations import Duration
from checks.failures import Failure, window
from checks.thresholds import Thresholds

_OF_THE_NODE = frozenset({CrashClass.INFRA_HARDWARE, CrashClass.OOM_HOST, CrashClass.UNKNOWN})
"""What a node may be blamed for. A machine that is taken back by its owner did nothing wrong, and a bug, a bad file or
a divergence follow the run to any other."""

_BARE_KILL = "killed."
"""A kill that says no more than that: no proof of anything, least of all of memory that ran out."""


class RepeatThresholds(Thresholds):
    cause: int = Field(default=2, ge=2)
    """So many ends of one root cause without progress in between are a repetition, whatever the node. Babysit-job: the
    same error after one fix is not retried blindly."""

    machine: int = Field(default=4, ge=2)
    """So many machines lost to one cause without progress in between, which the orchestrator itself replaced, are one
    too. Ours: losing a machine or two says nothing about the run; never getting past a place does."""

    node: int = Field(default=2, ge=2)
    """So many failures of one class whose cause showed itself on the same node, machines lost there included, put the
    blame on that node. Ours, and narrower than ``machine``: of many nodes the same one twice is no accident."""

    window_steps: int = Field(default=50, ge=0)
    """Failures at most so many steps apart are in the same place; progress is to get further than this beyond one. The
    procedure's "same-step or same-window failures"; the number is ours: a few minutes of a large run."""

    window_fraction: float = Field(default=0.01, ge=0, le=1)
    """As ``window_steps``, as a fraction of the step; the larger of the two holds. Ours: checkpoints of long runs lie
    further apart."""

    loop: int = Field(default=3, ge=2)
    """So many short lives in a row are a crash loop, whatever each died of. Ours."""

    short: Duration = timedelta(minutes=20)
    """A life shorter than this is a short one. Ours: restore and compilation of a large run take up to
    half an hour, so little was trained."""


class Pattern(NamedTuple):
    """Failures that belong together, and how."""

    what: str
    failures: tuple[Failure, ...]
    node: str | None = None
    """The node that is to blame; None when none is."""


def pattern_in(failures: tuple[Failure, ...], limits: RepeatThresholds) -> Pattern | None:
    """Return how the newest failures repeat; None when they do not.

    Args:
        failures: that no progress has passed, oldest first.
        limits: the ceilings, and what is near and short.
    """
    told = tuple(failure for failure in failures if not failure.was_taken_away)
    return (
        _on_one_node(failures, limits)
        or _of_one_cause(told, limits.cause)
        or _in_one_place(told, limits)
        or _of_one_cause(failures, limits.machine)
        or _loop(failures, limits)
    )


def _on_one_node(failures: tuple[Failure, ...], limits: RepeatThresholds) -> Pattern | None:
    """Return the failures of one class that the newest one's node has seen."""
    last = failures[-1] if failures else None
    if last is None or last.node is None or last.crash_class not in _OF_THE_NODE:
        return None
    same = tuple(each for each in failures if (each.node, each.crash_class) == (last.node, last.crash_class))
    if len(same) < limits.node:
        return None
    return Pattern(f"{_say(last)} {len(same)} times on {last.node}", same, last.node)


def _of_one_cause(failures: tuple[Failure, ...], ceiling: int) -> Pattern | None:
    if not failures:
        return None
    same = tuple(each for each in failures if each.signature == failures[-1].signature)
    return Pattern(f"{_say(failures[-1])} {len(same)} times", same) if len(same) >= ceiling else None


def _say(failure: Failure) -> str:
    """Name what repeats; ends of which nobody knows the cause are not called the same."""
    is_bare = failure.signature == CrashClass.UNKNOWN or failure.signature.startswith(_BARE_KILL)
    return "an end without a known cause" if is_bare else "the same failure"


def _in_one_place(told: tuple[Failure, ...], limits: RepeatThresholds) -> Pattern | None:
    if not told or told[-1].step is None:
        return None
    here = told[-1].step
    reach = window(here, limits.window_steps, limits.window_fraction)
    near = tuple(each for each in told if each.step is not None and abs(each.step - here) <= reach)
    return Pattern(f"{len(near)} failures in the same place", near) if len(near) > 1 else None


def _loop(failures: tuple[Failure, ...], limits: RepeatThresholds) -> Pattern | None:
    lives = failures[-limits.loop :]
    if len(lives) == limits.loop and all(life.lived is not None and life.lived < limits.short for life in lives):
        return Pattern(f"{limits.loop} short lives in a row", lives)
    return None
