"""From lines to signs: which lines speak, and what each of them says.

The text is searched once for each needle of the tables; rules and the traceback reader see only the lines around the
hits.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from bot.model.crash import CrashClass
from checks.crash.exceptions import Opinion, judge
from checks.crash.rule import Rule, Weight
from checks.crash.rules.tables import RULES
from checks.crash.text import Line, cleaned
from checks.crash.tracebacks import Reading, Trace, read_tracebacks

_TRACE_NEEDLES = (
    'file "',
    "traceback (most",
    "above exception",
    "from user code:",
    "exception ignored",
    "error in atexit",
    "error:",
    "exception:",
    "interrupt",
    "error\n",
    "exception\n",
)
_MAX_HITS = 300
"""Hits of one needle that are looked at, from each end of the text."""
_MAX_LINES = 2_000
"""Lines that are looked at closely, from each end."""
_AROUND = 30


class Sign(NamedTuple):
    """One line, or one exception, that says something about the end of the run."""

    at: int
    """Index of the line."""
    stream: str
    opinion: Opinion
    trace: Trace | None = None

    @property
    def weight(self) -> Weight:
        return self.opinion.weight

    @property
    def crash_class(self) -> CrashClass:
        return self.opinion.crash_class


def signs_of(lines: tuple[Line, ...]) -> tuple[Sign, ...]:
    """Return every sign in the order of the log; noise is already left out."""
    text = "\n".join(line.raw for line in lines).lower() + "\n"
    # Lowering can change the length of odd letters, so the offsets are counted in the lowered text.
    starts = (0, *accumulate(len(part) + 1 for part in text.split("\n")))
    reading = _tracebacks(lines, text, starts)
    signs = [*_from_traces(reading.traces), *_from_lines(lines, reading, _hits(text, starts, _needles()))]
    return tuple(sorted(signs, key=lambda sign: sign.at))


@cache
def _needles() -> tuple[str, ...]:
    every = {needle for rule in RULES for needle in rule.needles}
    return tuple(sorted(needle for needle in every if not any(other != needle and other in needle for other in every)))


def _hits(text: str, starts: tuple[int, ...], needles: Iterable[str]) -> tuple[int, ...]:
    """Return the indices of the lines with a needle; of very many the first and the last."""
    found: set[int] = set()
    for needle in needles:
        found.update(_forward(text, starts, needle))
        found.update(_backward(text, starts, needle))
    ordered = sorted(index for index in found if index < len(starts) - 1)
    return tuple(ordered if len(ordered) <= 2 * _MAX_LINES else (*ordered[:_MAX_LINES], *ordered[-_MAX_LINES:]))


def _forward(text: str, starts: tuple[int, ...], needle: str) -> Iterator[int]:
    position = text.find(needle)
    for _ in range(_MAX_HITS):
        if position < 0:
            return
        index = bisect_right(starts, position) - 1
        yield index
        position = text.find(needle, starts[index + 1])


def _backward(text: str, starts: tuple[int, ...], needle: str) -> Iterator[int]:
    position = text.rfind(needle)
    for _ in range(_MAX_HITS):
        if position < 0:
            return
        index = bisect_right(starts, position) - 1
        yield index
        position = text.rfind(needle, 0, starts[index])


def _tracebacks(lines: tuple[Line, ...], text: str, starts: tuple[int, ...]) -> Reading:
    around: set[int] = set()
    for index in _hits(text, starts, _TRACE_NEEDLES):
        around.update(range(index, min(index + _AROUND, len(lines))))
    return read_tracebacks(lines, sorted(around))


def _from_traces(traces: tuple[Trace, ...]) -> Iterator[Sign]:
    for trace in traces:
        opinion = judge(trace)
        if opinion.weight > Weight.NOISE:
            yield Sign(trace.at, trace.stream, opinion, trace)


def _from_lines(lines: tuple[Line, ...], reading: Reading, hits: tuple[int, ...]) -> Iterator[Sign]:
    taken = reading.inside | {trace.at for trace in reading.traces}
    for index in hits:
        if index in taken:
            continue
        stream, body = cleaned(lines[index].raw)
        # What is taken for a prefix may carry the telling word (a source file's name), so the raw line is asked too.
        if rule := _rule_of(body.lower(), lines[index].raw.lower()):
            yield Sign(index, stream, Opinion(rule.id, rule.crash_class, rule.weight, rule))


def _rule_of(body: str, raw: str) -> Rule | None:
    held = [
        rule
        for rule in RULES
        if rule.holds(body) or (body is not raw and rule.weight is not Weight.SUCCESS and rule.holds(raw))
    ]
    if any(rule.weight is Weight.NOISE for rule in held):
        return None
    return max(held, key=lambda rule: rule.weight, default=None)
