"""What is kept of a lineage's losses, to compare a later launch with them: few, and where they count. Pure.

A restart begins at a complete checkpoint and trains what came after it once more. So the first losses after each of the
newest complete checkpoints are kept as they are, the stretch that a restart can replay evenly thinned, and of what lies
before it as much as a trend needs. A step that is kept has its own loss, never a mean: thinning delays a comparison by
a few logged steps, and blurs none.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from bot.model.value import Value

AFTER_CHECKPOINT = 6
"""So many losses at and after a complete checkpoint are kept, of each of …"""
CHECKPOINTS = 4
"""… so many of the newest complete checkpoints, and of the oldest."""
ROLLING = 2
"""The newest complete checkpoints that are kept to resume from. Manage-hero-run: one by default and at most two; those
before them are milestones, and a restart there is a rare one."""
REPLAY = 56
"""So many, at most, of the stretch that a restart from a rolling checkpoint can train again."""
TREND = 120
"""So many, at most, of what lies before it; where there are more logged, never fewer than half."""
_NEAR = 0.05
"""The trend is taken from this share of the steps before: a curve is nearly straight there."""
_REPLAYED = 0.02
"""This share of the steps counts as what a restart can train again while no checkpoint is known."""
_DIGITS = 7
"""Significant digits of a loss: finer than any limit on it, and the memory stays small."""


class LoggedLoss(Value):
    """The loss that was logged at one step."""

    step: int
    loss: float


def logged_loss(step: int, loss: float) -> LoggedLoss:
    """Return a loss as it is remembered; equal losses stay equal."""
    return LoggedLoss(step=step, loss=float(f"{loss:.{_DIGITS}g}"))


def _packed(losses: tuple[LoggedLoss, ...]) -> str:
    """Write losses as ``STEPS-SINCE-THE-LAST LOSS``, joined by commas."""
    steps = (0, *(each.step for each in losses))
    return ",".join(
        f"{each.step - before} {each.loss!r}" for before, each in zip(steps[: len(losses)], losses, strict=True)
    )


def _unpacked(stored: Any) -> Any:
    if not isinstance(stored, str):
        return stored
    found: list[LoggedLoss] = []
    step = 0
    for pair in stored.split(",") if stored else ():
        ahead, _, loss = pair.partition(" ")
        step += int(ahead)
        found.append(LoggedLoss(step=step, loss=float(loss)))
    return tuple(found)


type Losses = Annotated[
    tuple[LoggedLoss, ...], BeforeValidator(_unpacked), PlainSerializer(_packed, return_type=str, when_used="json")
]
"""Losses by step ascending, stored in a third of the space of plain JSON."""


def thinned(losses: Iterable[LoggedLoss], checkpoints: tuple[int, ...]) -> tuple[LoggedLoss, ...]:
    """Return the losses that are kept.

    Args:
        losses: by step ascending, each step once.
        checkpoints: steps of the complete checkpoints, ascending; empty when none is known.
    """
    every = tuple(losses)
    if len(every) <= REPLAY:
        return every
    highest = every[-1].step
    rolling = checkpoints[-ROLLING:]
    floor = rolling[0] if rolling and rolling[0] <= highest else highest - round(_REPLAYED * highest)
    replay = [each for each in every if each.step >= floor]
    before = [each for each in every if each.step < floor]
    near = [each for each in before if each.step >= floor - _NEAR * floor]
    kept = [*_evenly(near if len(near) >= TREND else before[-TREND:], TREND), *_evenly(replay, REPLAY)]
    for start in {*checkpoints[-CHECKPOINTS:], *checkpoints[:1]}:
        kept.extend(_first_after(every, start))
    by_step = {each.step: each for each in kept}
    return tuple(by_step[step] for step in sorted(by_step))


def _evenly(losses: Sequence[LoggedLoss], most: int) -> list[LoggedLoss]:
    """Return at most so many, and at least half as many where there are enough: the first of each stretch of steps.

    Stretches are powers of two long and begin at multiples of their length, so that thinning again, when more have
    come, keeps a part of what was kept and not another one.
    """
    length = 1
    found = list(losses)
    while len(found) > most:
        length *= 2
        first: dict[int, LoggedLoss] = {}
        for each in found:
            first.setdefault(each.step // length, each)
        found = list(first.values())
    return found


def _first_after(losses: tuple[LoggedLoss, ...], start: int) -> tuple[LoggedLoss, ...]:
    """Return the first few from a step on."""
    return tuple(each for each in losses if each.step >= start)[:AFTER_CHECKPOINT]
