"""What runs logged, as arrays: every figure's values by step and by the execution that logged them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

type Floats = npt.NDArray[np.float64]
type Ints = npt.NDArray[np.int64]
type Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Figure:
    """Every logged value of one figure, in the order in which it was logged; all arrays are of one length."""

    steps: Ints
    executions: Ints
    """Which execution of the run logged it; a later one has the higher number."""
    values: Floats

    def of(self, execution: int) -> "Figure":
        """Return what one execution logged."""
        kept = self.executions == execution
        return self if kept.all() else Figure(self.steps[kept], self.executions[kept], self.values[kept])


NOTHING = Figure(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


@dataclass(frozen=True, eq=False)
class History:
    """What one run logged."""

    figures: Mapping[str, Figure]

    def executions(self, first_step: int, last_step: int | None = None) -> tuple[int, ...]:
        """Return which executions logged anything from one step to another, the oldest first."""
        found: set[int] = set()
        for figure in self.figures.values():
            inside = figure.steps >= first_step
            if last_step is not None:
                inside &= figure.steps <= last_step
            found.update(np.unique(figure.executions[inside]).tolist())
        return tuple(sorted(found))


@dataclass(frozen=True, eq=False)
class RunRows:
    """One run's rows as a service of telemetry gives them."""

    history: History
    """Its executions are the positions in ``executions``."""
    executions: tuple[str, ...]
    """Who logged them, e.g. ``iris:<attempt uid>``, in the order in which they began to log."""
    newest_step: int | None
    """The highest step that was logged at all, also beyond the steps that were asked for; None when there is no row."""
    is_cut: bool = False
    """Whether there are more rows than one answer may have: then the newest are missing."""
    began_at: tuple[datetime | None, ...] = ()
    """When each of ``executions`` logged its first row, by the trainer's own clock; None where no row says, and empty
    where nobody asked."""
