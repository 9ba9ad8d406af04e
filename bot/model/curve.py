"""The small series of a run's figures that is kept for its picture: thinned evenly, the newest row always in it.

It is kept as the memory of a check that there is not (``CURVE``): written in the transaction of the look whose rows it
takes in, so that no row counts twice or is lost, without a table or a migration of its own, and small enough to be read
with the rest of the run. What it is drawn for needs its shape and no single row, so thinning loses nothing that a chart
of this size could show.
"""

import math
import statistics
from collections.abc import Iterable

from pydantic import ValidationError

from bot.model.snapshot import MetricRow
from bot.model.value import CheckId, Value

CURVE = CheckId("run.curve")

MOST_POINTS = 480
"""A point takes some 45 characters at most, so that a run's series stays below 32 kB; a chart is no wider."""
_FEWEST_FOR_USUAL = 20

type Point = tuple[int, float | None, float | None]
"""Step, loss, tokens a second. A value that was not logged or is not finite is None: the line has a gap there."""


class Curve(Value):
    """Points in the order in which they were logged; where the step goes back, the run began anew from a checkpoint."""

    stride: int = 1
    """Every so many rows one is kept."""
    rows: int = 0
    """How many rows it is made of."""
    points: tuple[Point, ...] = ()

    def followed_by(self, rows: Iterable[MetricRow]) -> "Curve":
        """Return the series with further rows of the run."""
        stride, count, points = self.stride, self.rows, list(self.points)
        for row in rows:
            if points and (count - 1) % stride:
                points.pop()  # the newest row was shown although it is not one of those that are kept
            points.append((row.step, _figure(row, "loss"), _figure(row, "tokens_per_second")))
            count += 1
            if len(points) > MOST_POINTS:
                stride *= 2
                newest = points[-1]
                points = points[::2]
                if points[-1] != newest:
                    points.append(newest)
        return Curve(stride=stride, rows=count, points=tuple(points))

    @property
    def usual_tokens_per_second(self) -> float | None:
        """The median throughput of what is kept; None while that is little."""
        seen = [speed for _, _, speed in self.points if speed is not None]
        return statistics.median(seen) if len(seen) >= _FEWEST_FOR_USUAL else None


def read_curve(memory: str | None) -> Curve:
    """Return a series as it was stored; an empty one when there is none, or none that can be read."""
    try:
        return Curve.model_validate_json(memory) if memory else Curve()
    except ValidationError:
        return Curve()


def _figure(row: MetricRow, word: str) -> float | None:
    value = row.values.get(word)
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
