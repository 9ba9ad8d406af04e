"""The picture of a run as values: its kept series, and what happened at which step. Drawn by ``bot.render.chart``."""

from bot.model.curve import Point
from bot.model.value import RunId, Value
from bot.model.verdict import Severity


class Mark(Value):
    """Something that happened at a step, or from one step to another."""

    label: str
    severity: Severity
    step: int
    """Where it was found."""
    from_step: int
    to_step: int


class Chart(Value):
    """What is drawn; bounded, so that it can travel with the message that it belongs to."""

    run_id: RunId
    points: tuple[Point, ...]
    marks: tuple[Mark, ...] = ()
