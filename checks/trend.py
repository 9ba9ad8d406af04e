"""Where a series stands against its own past: the shared mathematics of the checks on training curves.

A ``Tracker`` takes one series in, row by row, and tells the *episodes* in which it stayed too high. It looks at
logarithms, so that nothing depends on the series' unit, and at the floor of a stretch of rows, so that one bad row is
nothing. What is normal it learns from the series itself:

- the *expected level* is a running median. A training curve is roughly a power law, alike in logarithmic time, so the
  median is taken over the newest half of the steps so far (at most ``_PAST`` rows): short while the curve is steep;
- the *noise* comes from the differences between neighbours, which a trend does not disturb;
- how *long* a stretch has to last depends on how often single rows lie that high in this series anyway: data that
  swings by a factor of two from row to row needs a longer one.

Rows of an episode never enter the expected level, so that a long trouble does not become the new normal.
The state is a small value (``Level``); each row costs the same however long the history is. Pure; raises nothing.
"""

import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from bot.model.value import Value

_PAST = 48
"""At most so many normal rows are remembered; their median is good to about a seventh of the row's own noise."""
_FEWEST = 8
"""With fewer rows there is no expected level yet."""
_NEWEST = 16
"""While the curve falls, the median of so few newest rows is nearer to it than that of all, and the fall since so many
rows before is taken to go on, where rows are evenly spaced …"""
_MOST_FALL = 0.25
"""… for this share of the limit at most: curves flatten."""
_BLOCK = 8
"""Rows whose median is one level of the life so far (``Rule.looks_back``), at first …"""
_LEVELS = 32
"""… until there are so many levels; then each two become one, and a level stands for twice as many rows."""
_FEWEST_LEVELS = 4
_LOW_SHARE = 0.3
"""The level that the series was below for this share of its life is what it can do: a short fast beginning does not
set it, and half a life in trouble does not hide it."""
_RUN = 64
"""At most so many rows of a stretch are remembered for its median."""
_REFRESH = 3
"""The expected level is computed again after so many new normal rows."""
_CHANCE = 1e-6
"""A stretch must be so unlikely under the series' own rate of high rows: less than one false alarm in a run of a
million rows."""
_RAREST = 0.01
"""High rows are never taken to be rarer than this."""
_UNSEEN = 1.0
"""Nor rarer than this divided by the rows seen: what did not happen in n rows may well happen in the next n."""
_FORGET = 0.01
"""Weight of one row in the rate of high rows: about the newest hundred count."""
_SIGMA = 1.4826 / math.sqrt(2)
"""Median absolute difference of neighbours to the standard deviation of one, for normal noise."""
_MEDIAN_ERROR = 1.25
"""Standard error of a median, against that of a mean."""
_SURE = 0.75
"""So many standard errors above the limit is a level that counts as above it."""
_TOP = 700.0
"""Stands for infinity: exp of it is still a float."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What counts as too high, and for how long."""

    factor: float
    """Times the expected level; above 1."""
    rows: int
    """A stretch has at least so many rows."""
    steps: int
    """And spans at least so many optimizer steps; one row may stand for many."""
    steep: float = math.inf
    """Times the expected level at which ``steep_rows`` and ``steep_steps`` are enough."""
    steep_rows: int = 3
    steep_steps: int = 0
    warmup_steps: int = 0
    """While the series is younger than this, a stretch has to be ``warmup_patience`` times as long."""
    warmup_patience: int = 3
    warmup_steep: float = math.inf
    """``steep`` while it is that young."""
    fewest: int = _FEWEST
    """Normal rows before there is an expected level."""
    looks_back: bool = False
    """For a series that should be flat: the expected level is no higher than what it has held for a good share of its
    whole life, and a rewind of the steps changes nothing. Otherwise the curve's own past just before counts."""


class Stretch(Value):
    """Rows that followed each other and were all too high."""

    first_step: int
    last_step: int
    rows: int
    expected: float
    """ln of the level that was expected when it began."""
    top: float
    """ln of its highest row; ``inf`` is kept as 700."""
    level: float
    """ln of its median row, over the newest 64."""


class Level(Value):
    """The memory of one series: about 2 kB of JSON."""

    steps: tuple[int, ...] = ()
    """Of the newest normal rows, oldest first …"""
    past: tuple[float, ...] = ()
    """… and the ln of their values."""
    run: tuple[float, ...] = ()
    """ln of the newest rows of the stretch that is going on."""
    run_steps: tuple[int, ...] = ()
    stretch: Stretch | None = None
    """The stretch that is going on, too short to count unless ``is_open``."""
    is_open: bool = False
    rate: float = 0.0
    """Which share of rows is high in this series' normal life …"""
    seen: int = 0
    """… of so many rows."""
    block: tuple[float, ...] = ()
    """ln of normal rows that make no level yet."""
    stride: int = 1
    """Every so manieth normal row goes into a block …"""
    skipped: int = 0
    """… and so many went by since the last one."""
    levels: tuple[float, ...] = ()
    """ln of the levels of the life so far."""
    first_step: int | None = None
    last_step: int | None = None


class Tracker:
    """Takes rows in and collects the episodes. Not shared; made from a ``Level`` and turned into one again.

    Attributes:
        episodes: the stretches that counted since this was made, oldest first; the last one may go on.
    """

    def __init__(self, memory: Level, rule: Rule) -> None:
        self.rule = rule
        self.steps: deque[int] = deque(memory.steps, maxlen=_PAST)
        self.past: deque[float] = deque(memory.past, maxlen=_PAST)
        self.run: deque[float] = deque(memory.run, maxlen=_RUN)
        self.run_steps: deque[int] = deque(memory.run_steps, maxlen=_RUN)
        self.stretch = memory.stretch
        self.is_open = memory.is_open
        self.rate = memory.rate
        self.seen = memory.seen
        self.block = list(memory.block)
        self.stride = memory.stride
        self.skipped = memory.skipped
        self.levels = list(memory.levels)
        self.first_step = memory.first_step
        self.last_step = memory.last_step
        self.episodes: list[Stretch] = []
        self._expected: float | None = None
        self._noise = 0.0
        self._fall = 0.0
        self._half = 0
        self._stale = 0

    def memory(self) -> Level:
        """Return what has to be remembered until the next rows."""
        return Level(
            steps=tuple(self.steps),
            past=tuple(self.past),
            run=tuple(self.run),
            run_steps=tuple(self.run_steps),
            stretch=self.stretch,
            is_open=self.is_open,
            rate=self.rate,
            seen=self.seen,
            block=tuple(self.block),
            stride=self.stride,
            skipped=self.skipped,
            levels=tuple(self.levels),
            first_step=self.first_step,
            last_step=self.last_step,
        )

    def take(self, step: int, value: float) -> None:
        """Take one row in.

        Args:
            step: the optimizer step; one that is not above the last one rewinds: the series is taken up from there.
            value: ln of the series. NaN and +inf are as bad as can be, but they only prolong a stretch; -inf is
                nothing.
        """
        if value == -math.inf:
            return
        if self.last_step is not None and step <= self.last_step:
            self._rewind(step)
        if self.first_step is None:
            self.first_step = step
        self.last_step = step
        if not math.isfinite(value):
            if self.stretch is not None:
                self._lengthen(step, _TOP)
            return
        expected = self._expected_at(step)
        if expected is None:
            self._remember(step, value)
            return
        excess = value - expected
        limit = math.log(self.rule.factor)
        if self.is_open:
            self._go_on(step, value, excess, limit)
        elif excess > max(limit / 2, limit - 2 * self._noise):
            self._lengthen(step, value)
        else:
            self._flush()
            self._remember(step, value)
            self.rate -= self._weight() * self.rate

    def _go_on(self, step: int, value: float, excess: float, limit: float) -> None:
        """Take in a row of an open episode; it closes when most rows lie below half its limit, not by wobbling."""
        if excess > limit / 2:
            self._lengthen(step, value)
        else:
            self.run.append(value)
            self.run_steps.append(step)
        newest = list(self.run)[-self._rows_needed(step) :]
        if median(newest) - value + excess <= limit / 2:
            self.is_open = False
            self._drop()
            self._remember(step, value)

    def _lengthen(self, step: int, value: float) -> None:
        self.run.append(value)
        self.run_steps.append(step)
        before = self.stretch
        if before is None:
            before = Stretch(first_step=step, last_step=step, rows=0, expected=0.0, top=value, level=value)
        expected = before.expected if self.is_open else (self._expected_at(step) or 0.0)
        self.stretch = before.model_copy(
            update={
                "last_step": step,
                "rows": before.rows + 1,
                "expected": expected,
                "top": max(before.top, value) if value < _TOP or before.top == _TOP else before.top,
            }
        )
        if self.is_open or self._counts(self.stretch):
            self.is_open = True
            self._note()
        elif self._is_normal_life(self.stretch):
            self._flush()

    def _note(self) -> None:
        """Put the open episode among those found; one that goes on is noted once."""
        assert self.stretch is not None  # noqa: S101 - an open episode has its stretch
        found = self.stretch.model_copy(update={"level": median(self.run)})
        if self.episodes and self.episodes[-1].first_step == found.first_step:
            self.episodes[-1] = found
        else:
            self.episodes.append(found)

    def _counts(self, stretch: Stretch) -> bool:
        """Return whether the stretch is an episode: long enough, and high enough throughout."""
        rule = self.rule
        is_young = self._is_young(stretch.last_step)
        if sum(value < _TOP for value in self.run) < 2:  # noqa: PLR2004 - one row is none, whatever NaN follows it
            return False
        height = median(self.run) - stretch.expected
        span = _span(stretch)
        if height >= math.log(rule.warmup_steep if is_young else rule.steep) and (
            stretch.rows >= rule.steep_rows and span >= rule.steep_steps
        ):
            return True
        return height >= math.log(rule.factor) + self._doubt() and (
            stretch.rows >= self._rows_needed(stretch.last_step)
            and span >= rule.steps * (rule.warmup_patience if is_young else 1)
        )

    def _doubt(self) -> float:
        """Return by how much the stretch's level less the expected one may be too high by noise alone."""
        rows = 1 / len(self.run) + 1 / max(1, self._half)
        return _SURE * _MEDIAN_ERROR * self._noise * math.sqrt(rows)

    def _is_normal_life(self, stretch: Stretch) -> bool:
        """Return whether a long stretch stays below the limit: this series does lie a little higher now."""
        return stretch.rows >= max(_PAST, 3 * self._rows_needed(stretch.last_step)) and median(
            self.run
        ) - stretch.expected < math.log(self.rule.factor)

    def _rows_needed(self, step: int) -> int:
        rate = min(0.9, max(_RAREST, self.rate, _UNSEEN / max(1, self.seen)))
        rows = max(self.rule.rows, math.ceil(math.log(_CHANCE) / math.log(rate)))
        return rows * (self.rule.warmup_patience if self._is_young(step) else 1)

    def _weight(self) -> float:
        """Return what one row counts in the rate of high rows: all alike at first, then the newer ones more."""
        return max(_FORGET, 1 / (1 + self.seen))

    def _is_young(self, step: int) -> bool:
        return self.first_step is not None and step - self.first_step < self.rule.warmup_steps

    def _flush(self) -> None:
        """Take a stretch that did not count back into normal life: this series does that."""
        for step, value in zip(self.run_steps, self.run, strict=True):
            self.rate += self._weight() * (1 - self.rate)
            if value < _TOP:
                self._remember(step, value)
        self._drop()

    def _drop(self) -> None:
        self.run.clear()
        self.run_steps.clear()
        self.stretch = None

    def _remember(self, step: int, value: float) -> None:
        self.steps.append(step)
        self.past.append(value)
        self.seen += 1
        self._stale += 1
        if self.rule.looks_back:
            self._keep_level(value)

    def _keep_level(self, value: float) -> None:
        self.skipped += 1
        if self.skipped < self.stride:
            return
        self.skipped = 0
        self.block.append(value)
        if len(self.block) < _BLOCK:
            return
        self.levels.append(median(self.block))
        self.block.clear()
        if len(self.levels) == _LEVELS:
            self.levels = [(one + other) / 2 for one, other in zip(self.levels[::2], self.levels[1::2], strict=True)]
            self.stride *= 2

    def _expected_at(self, step: int) -> float | None:
        """Return ln of the expected level at this step; None while too few rows are known."""
        if len(self.past) < self.rule.fewest:
            return None
        if self._expected is None or (self._stale >= _REFRESH and self.stretch is None):
            past = list(self.past)
            if not self.rule.looks_back:
                recent = len(past) - bisect_left(self.steps, step / 2)
                past = past[-max(self.rule.fewest, recent) :]
            self._noise = _SIGMA * median([abs(b - a) for a, b in pairwise(past)])
            self._expected = median(past)
            self._fall, self._half = 0.0, min(_NEWEST, len(past) // 2)
            if not self.rule.looks_back:
                self._follow(past)
            if len(self.levels) >= _FEWEST_LEVELS:
                self._expected = min(self._expected, sorted(self.levels)[int(_LOW_SHARE * len(self.levels))])
            self._stale = 0
        rows_on = self._half / 2 + len(self.run)
        return self._expected - min(self._fall * rows_on, math.log(self.rule.factor) * _MOST_FALL)

    def _follow(self, past: list[float]) -> None:
        """Follow a falling curve: its level is that of the newest rows, and it goes on falling for a while."""
        newest = median(past[-self._half :])
        before = median(past[-2 * self._half : -self._half])
        self._expected = min(median(past), newest)
        used = list(self.steps)[-2 * self._half :]
        gaps = [b - a for a, b in pairwise(used)]
        if before - newest > self._noise and max(gaps) <= 2 * min(gaps):
            self._fall = (before - newest) / self._half

    def _rewind(self, step: int) -> None:
        """Go back to a step: what was logged from there on belongs to an execution that is gone."""
        if self.stretch is not None:
            self.is_open = False
            self._drop()
        if self.rule.looks_back:
            return
        while self.steps and self.steps[-1] >= step:
            self.steps.pop()
            self.past.pop()
        self._expected = None
        if not self.steps:
            self.first_step = None


def _span(stretch: Stretch) -> float:
    """Return how many steps a stretch stands for; a row stands for those since the row before it."""
    return (stretch.last_step - stretch.first_step) * stretch.rows / max(1, stretch.rows - 1)
