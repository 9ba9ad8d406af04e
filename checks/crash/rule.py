"""What one rule of the pattern tables is, and how a text is held against it.

All patterns are written in lower case and see a line in lower case, cut to a bound, without the prefixes of launchers
and loggers. A rule is looked at only where one of its needles stands, so that a hundred thousand lines cost little more
than one pass of plain substring search.
"""

import re
from enum import IntEnum
from functools import cache

from bot.model.crash import CrashClass, RelaunchAdvice
from bot.model.value import Value


class Weight(IntEnum):
    """How much a sign says about the cause; the higher wins, then the earlier."""

    NOISE = 0
    """Looks bad, means nothing: probes of absent back ends, announced retries, noise of a process that ends."""
    SUCCESS = 1
    """The run says that it reached its end."""
    CASCADE = 2
    """Tells that something else failed: launcher summaries, siblings that were stopped. Never decides."""
    GUESS = 3
    """An exception of a general type, judged by where it was raised."""
    WEAK = 4
    """May be the cause and may be a consequence: collective time-outs, lost peers, a kill without a reason."""
    DECISIVE = 5


class Rule(Value):
    """One line of a pattern table."""

    id: str
    crash_class: CrashClass
    needles: tuple[str, ...]
    """Plain lower-case substrings; at least one must be present."""
    why: str
    """What the words mean, and who writes them."""
    pattern: str | None = None
    """What else must match; None when a needle is enough."""
    unless: str | None = None
    """A match of this takes the rule back."""
    weight: Weight = Weight.DECISIVE
    relaunch: RelaunchAdvice | None = None
    """Where the advice differs from the one of the class."""

    def holds(self, lowered: str) -> bool:
        """Return whether a lower-case line shows what this rule describes."""
        if not any(needle in lowered for needle in self.needles):
            return False
        if self.pattern is not None and not _compiled(self.pattern).search(lowered):
            return False
        return self.unless is None or not _compiled(self.unless).search(lowered)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
