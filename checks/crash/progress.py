"""Lines that show a run alive: training steps, and the plain information of a logger."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice

from checks.crash.text import Line, cleaned

_STEP = re.compile(
    r"\b(?:global_step|step|iteration|iter|it)\W{0,3}\d|\d+(?:\.\d+)?\s?(?:it/s|s/it)\b"
    r"|\bepoch\W{0,3}\d.{0,120}loss|\bloss\W{0,4}\d|on step \d"
)
_COUNT = re.compile(r"\b(?:global_step|step|iteration|iter)\W{1,13}(\d{1,12})")
_FINITE = re.compile(r"\bloss\W{1,4}\d")
_NONFINITE = re.compile(r"\b(?:\w{1,40}[_ /])?loss\W{1,4}[-+]?(?:nan|inf)\b")
_TROUBLE = re.compile(
    r"error|exception|traceback|fail|abort|timed? ?out|killed|fatal|warn|signal|file \"|unable|cannot|could not"
)
_LOOKED_AT = 800
"""Characters of a line; what a step reports stands at its beginning."""
_NEAR = 400
"""Lines after a sign within which plain information counts."""


class Progress:
    """Where in a stretch of the log the run reported steps, and where it just talked."""

    def __init__(self, lines: Sequence[Line], first: int, until: int) -> None:
        """Read ``lines`` from index ``first`` to before ``until``."""
        self._steps: list[int] = []
        self._counts: list[str] = []
        self._plain: dict[str, list[int]] = {}
        for index in range(first, until):
            raw = lines[index].raw[:_LOOKED_AT].lower()
            if not raw or raw[0] in " \t" or _TROUBLE.search(raw):
                continue
            if _STEP.search(raw):
                count = _COUNT.search(raw)
                self._steps.append(index)
                self._counts.append(count.group(1) if count else raw)
            self._plain.setdefault(cleaned(lines[index].raw[:_LOOKED_AT]).stream, []).append(index)

    def steps_after(self, index: int, enough: int) -> int:
        """Count different steps reported after a line; at most ``enough`` are of interest."""
        seen: set[str] = set()
        for count in islice(self._counts, bisect_right(self._steps, index), None):
            seen.add(count)
            if len(seen) >= enough:
                break
        return len(seen)

    def plain_after(self, index: int, stream: str) -> int:
        """Count lines of the same stream that name no trouble, soon after a line."""
        found = self._plain.get(stream, [])
        return bisect_left(found, index + _NEAR) - bisect_right(found, index)


def nonfinite_loss(raw: str) -> bool | None:
    """Return whether a line reports a loss that is NaN or infinite; None when it reports no loss."""
    text = raw[:_LOOKED_AT].lower()
    if "loss" not in text:
        return None
    if _NONFINITE.search(text):
        return True
    return False if _FINITE.search(text) else None
