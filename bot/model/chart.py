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


class Beside(Value):
    """Another run's series, drawn over the first one; where both have a step, the difference is drawn too."""

    label: str
    points: tuple[Point, ...]


class Chart(Value):
    """What is drawn; bounded, so that it can travel with the message that it belongs to."""

    run_id: RunId
    """In whose thread it stands."""
    points: tuple[Point, ...]
    marks: tuple[Mark, ...] = ()
    label: str = ""
    """What ``points`` are called beside another run's; empty where there is none."""
    beside: Beside | None = None
