"""Made-up training curves: decays of several schedules with noise, logged every so many steps, and looks at them."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from bot.model.snapshot import MetricRow, Snapshot
from bot.model.verdict import Fail, Finding, Verdict
from checks.check import Check
from tests.fakes.clock import START
from tests.fakes.snapshots import job, later, snapshot
from tests.unit.checks.story import verdicts

SCHEDULES: dict[str, Callable[[float], float]] = {
    "power": lambda share: 2.0 + 8.0 / (1 + 2_000 * share) ** 0.4,
    "exponential": lambda share: 1.5 + 9.0 * math.exp(-12 * share),
    "plateau": lambda share: 6.0 if share < 0.3 else 1.5 + 4.5 * math.exp(-9 * (share - 0.3)),
    "cosine": lambda share: 2.5 + 4.0 * (1 + math.cos(math.pi * share)),
    "flat": lambda _share: 0.7,
    "linear": lambda share: 10.0 - 8.0 * share,
}


def decay(
    schedule: str = "power",
    *,
    rows: int = 300,
    every: int = 1,
    noise: float = 0.02,
    seed: int = 0,
    outliers: float = 0.0,
) -> list[MetricRow]:
    """Return a healthy run's losses.

    Args:
        schedule: one of ``SCHEDULES``.
        rows: how many are logged.
        every: so many steps.
        noise: standard deviation of a row's logarithm.
        seed: of the noise.
        outliers: share of rows that are twice as high by bad luck.
    """
    dice = random.Random(seed)
    curve = SCHEDULES[schedule]
    made = []
    for number in range(rows):
        value = curve(number / rows) * math.exp(dice.gauss(0, noise))
        if outliers and dice.random() < outliers:
            value *= 2
        made.append(MetricRow(step=1 + number * every, values={"loss": value}))
    return made


def scaled(
    rows: Iterable[MetricRow], factor: float, first: int = 0, last: int = 2**62, name: str = "loss"
) -> list[MetricRow]:
    """Return the rows with a figure multiplied at the steps from ``first`` to ``last``."""
    return [
        row.model_copy(update={"values": {**row.values, name: row.values[name] * factor}})
        if first <= row.step <= last and name in row.values
        else row
        for row in rows
    ]


def named(rows: Iterable[MetricRow], name: str, transform: Any = lambda value: value) -> list[MetricRow]:
    """Return the rows with their loss under another name."""
    return [row.model_copy(update={"values": {name: transform(row.values["loss"])}}) for row in rows]


def looks(
    rows: Sequence[MetricRow], sizes: Sequence[int] = (50,), *, submitted_at: datetime = START, minutes: float = 0
) -> Iterator[Snapshot]:
    """Yield snapshots that hand out the rows, so many at a time by turns."""
    start, turn = 0, 0
    while start < len(rows):
        size = sizes[turn % len(sizes)]
        yield snapshot(
            later(minutes + 15 * turn), jobs=job(submitted_at=submitted_at), metrics=rows[start : start + size]
        )
        start += size
        turn += 1


def findings(check: Check[Any, Any], story: Iterable[Snapshot], **kwargs: Any) -> list[Finding]:
    """Return the findings of the looks that have one."""
    return [found.finding for found in verdicts(check, story, **kwargs) if isinstance(found, Fail)]


def first_fail(found: Sequence[Verdict]) -> int | None:
    """Return which look found something first."""
    return next((number for number, verdict in enumerate(found) if isinstance(verdict, Fail)), None)


def sizes() -> st.SearchStrategy[list[int]]:
    """Return how many rows each look hands out."""
    return st.lists(st.integers(1, 80), min_size=1, max_size=6)


HOUR = timedelta(hours=1)
