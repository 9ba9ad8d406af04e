"""From a snapshot's new rows to the episodes of one series: what the checks on training curves share.

Rows are put in order, told apart by execution, and handed to a ``Tracker`` (``checks/trend.py``), whose memory is the
check's. A step that goes back is a restore or a retry: the series is taken up from there, never read as a jump.
"""

import math
from collections.abc import Callable, Iterable

from bot.model.snapshot import MetricRow
from bot.model.value import Value
from checks.trend import Level, Rule, Stretch, Tracker

type Figure = Callable[[MetricRow], float | None]
"""From a row to ln of the series; None where the row has no such figure."""


class Curve(Value):
    """The memory about one series of one instance."""

    level: Level = Level()
    last: Stretch | None = None
    """The episode that goes on, as it stood when rows were last seen."""


class Seen(Value):
    """What new rows said about a series."""

    curve: Curve
    episodes: tuple[Stretch, ...]
    """Those that began, went on or ended in these rows; one that goes on is told even without new rows."""
    is_known: bool
    """Whether there is an expected level, so that silence means that all is well."""


def follow(rows: tuple[MetricRow, ...], figure: Figure, rule: Rule, curve: Curve) -> Seen:
    """Take the new rows of one instance in; the cost is that of the new rows."""
    tracker = Tracker(curve.level, rule)
    for row in rows:
        value = figure(row)
        if value is not None:
            tracker.take(row.step, value)
    episodes = tuple(tracker.episodes)
    last = None
    if tracker.is_open:
        last = episodes[-1] if episodes and tracker.stretch is not None else curve.last
    if last is not None and not episodes:
        episodes = (last,)
    is_known = len(tracker.past) >= rule.fewest
    return Seen(curve=Curve(level=tracker.memory(), last=last), episodes=episodes, is_known=is_known)


def in_order(rows: tuple[MetricRow, ...], last_step: int | None) -> tuple[MetricRow, ...]:
    """Return the rows as the trainer logged them, without those that arrived late or twice.

    Rows arrive in any order within one read. Their own times put them in order; without times their steps do, unless
    a step is there twice, which only a retry explains: then they stay as they came.

    Args:
        rows: new ones.
        last_step: of the rows before; a single row at or below it is late or a repetition, several are a retry.
    """
    timed = [(row.at, row.step) for row in rows if row.at is not None]
    if len(timed) == len(rows):
        ordered = sorted(rows, key=lambda row: (row.at, row.step))
    elif len({row.step for row in rows}) == len(rows):
        ordered = sorted(rows, key=lambda row: row.step)
    else:
        ordered = list(rows)
    if last_step is None:
        return tuple(ordered)
    below = sum(row.step <= last_step for row in ordered)
    is_late = below == 1 and (len(ordered) > 1 or ordered[0].step == last_step)
    return tuple(row for row in ordered if not is_late or row.step > last_step)


def logarithm(value: float) -> float:
    """Return ln of a value that should be positive; -inf, which is no row, for zero and what lies below."""
    return math.log(value) if value > 0 else (value if math.isnan(value) else -math.inf)


def log_of(*names: str) -> Figure:
    """Return the figure ln of the first of these names that a row has."""

    def figure(row: MetricRow) -> float | None:
        return next((logarithm(row.values[each]) for each in names if each in row.values), None)

    return figure


def worst(episodes: Iterable[Stretch]) -> Stretch:
    """Return the episode that stands furthest above what was expected."""
    return max(episodes, key=lambda each: each.level - each.expected)


def times(stretch: Stretch) -> float:
    """Return how many times the expected level the stretch's median row is; infinite beyond what is a number."""
    height = stretch.level - stretch.expected
    return math.exp(height) if height < 600 else math.inf  # noqa: PLR2004 - where exp overflows


def say_times(stretch: Stretch) -> str:
    """``62 % above`` or ``3.1 times``, as people say it."""
    factor = times(stretch)
    if not math.isfinite(factor):
        return "beyond every number against"
    return f"{100 * (factor - 1):.0f} % above" if factor < 2 else f"{factor:.3g} times"  # noqa: PLR2004 - double


def say_level(value: float) -> str:
    """Return exp of a level as text."""
    return f"{math.exp(value):.4g}" if value < 600 else "infinite"  # noqa: PLR2004 - where exp overflows
