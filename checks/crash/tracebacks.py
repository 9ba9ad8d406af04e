"""Python tracebacks in a log: frames, exception, and how one follows from another.

Ranks write over each other, so the reader is forgiving: frames of one stream belong together until an exception line
ends them, lines in between that are neither are passed over, and a traceback whose end was cut is dropped.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from checks.crash.text import Cleaned, Line, cleaned

_START = re.compile(r"Traceback \(most recent call last\)")
_FRAME = re.compile(r"\s{0,40}(?:\d+: )?File \"([^\"]{1,600})\", line (\d{1,9})(?:, in (.{1,200}))?\s*$")
_MARKER = re.compile(r"\s*[~^][\s~^]*$")
_TYPED = re.compile(r"((?:[A-Za-z_]\w{0,80}\.){0,10}[A-Za-z_]\w{0,80})(?::(?: (.*)|$)|$)")
_ALONE = re.compile(
    r"(?:[A-Za-z_]\w{0,80}\.){0,10}\w{0,80}(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Fault|Empty|StopIteration|OutOfResources)(?=:|$)"
)
_CAUSE = "The above exception was the direct cause"
_DURING = "During handling of the above exception"
_USER_CODE = "from user code:"
_IGNORED = ("Exception ignored in", "Error in atexit._run_exitfuncs", "Exception ignored on")
_MAX_GAP = 25
"""Foreign lines in a row after which an unfinished traceback is given up."""
_MAX_FRAMES = 400


class Link(StrEnum):
    """How a traceback follows from the one before it in its stream."""

    NONE = "none"
    CAUSE = "cause"
    """``raise … from error``: the one before is the cause."""
    DURING = "during"
    """Raised while the one before was being handled."""


class Frame(NamedTuple):
    """One frame; the outermost comes first."""

    file: str
    line: int
    function: str
    source: str


class Trace(NamedTuple):
    """One traceback with its exception; a bare exception line has no frames."""

    first: int
    """Index of its first line."""
    at: int
    """Index of the exception line."""
    stream: str
    frames: tuple[Frame, ...]
    type: str
    """As printed, e.g. ``torch.OutOfMemoryError``."""
    message: str
    link: Link
    ignored: bool
    """Python printed it and went on: a finalizer, an exit function."""
    user_code: tuple[Frame, ...]
    """What the compiler of torch names as "from user code"; empty for all others."""

    @property
    def kind(self) -> str:
        """The bare name of the type."""
        return self.type.rsplit(".", 1)[-1]


class Reading(NamedTuple):
    """What was found, and which lines belong to a traceback and are no message of their own."""

    traces: tuple[Trace, ...]
    inside: frozenset[int]


class _Open:
    """The traceback being read in one stream."""

    def __init__(self) -> None:
        self.reset()
        self.link = Link.NONE
        self.ignored = False
        self.user_of: int | None = None

    def reset(self) -> None:
        self.first = -1
        self.frames: list[Frame] = []
        self.active = False
        self.wants_source = False
        self.gap = 0


def read_tracebacks(lines: tuple[Line, ...], indices: Iterable[int]) -> Reading:
    """Read the tracebacks in the lines that ``indices`` names, in ascending order."""
    return _Reader(lines).read(indices)


class _Reader:
    def __init__(self, lines: tuple[Line, ...]) -> None:
        self._lines = lines
        self._streams: dict[str, _Open] = {}
        self._traces: list[Trace] = []
        self._inside: set[int] = set()

    def read(self, indices: Iterable[int]) -> Reading:
        for index in indices:
            stream, body = cleaned(self._lines[index].raw)
            self._take(index, self._streams.setdefault(stream, _Open()), Cleaned(stream, body))
        return Reading(tuple(self._traces), frozenset(self._inside))

    def _take(self, index: int, now: _Open, line: Cleaned) -> None:
        body = line.body
        if frame := _FRAME.match(body):
            self._frame(index, now, frame)
        elif _START.search(body):
            self._start(index, now, body)
        elif _CAUSE in body or _DURING in body:
            now.link = Link.CAUSE if _CAUSE in body else Link.DURING
            self._inside.add(index)
        elif body.startswith(_USER_CODE):
            now.user_of = self._last_of(line.stream)
        elif body.startswith(_IGNORED):
            now.ignored = True
        elif now.user_of is not None:
            self._source_of_user_code(index, now, body)
        elif now.active:
            self._within(index, now, line)
        elif _ALONE.match(body) and not body.startswith(" "):
            self._end(index, now, line)

    def _start(self, index: int, now: _Open, body: str) -> None:
        if now.frames and now.gap > 2:  # noqa: PLR2004 - interleaved starts stand close; a later one begins anew
            now.reset()
        now.first = index if now.first < 0 else now.first
        now.active, now.user_of = True, None
        now.ignored = now.ignored or body.startswith(_IGNORED)
        self._inside.add(index)

    def _frame(self, index: int, now: _Open, match: re.Match[str]) -> None:
        self._inside.add(index)
        frame = Frame(match.group(1), int(match.group(2)), (match.group(3) or "").strip(), "")
        if now.user_of is not None:
            trace = self._traces[now.user_of]
            self._traces[now.user_of] = trace._replace(user_code=(*trace.user_code[-20:], frame))
            return
        now.first = index if now.first < 0 else now.first
        now.active, now.wants_source, now.gap = True, True, 0
        if len(now.frames) < _MAX_FRAMES:
            now.frames.append(frame)
        else:
            now.frames[-1] = frame

    def _source_of_user_code(self, index: int, now: _Open, body: str) -> None:
        if body.startswith("  ") or not body.strip():
            self._inside.add(index)
        else:
            now.user_of = None

    def _within(self, index: int, now: _Open, line: Cleaned) -> None:
        body = line.body
        if _MARKER.match(body) or body.startswith("    "):
            self._source(now, body)
            self._inside.add(index)
            return
        ends = _TYPED.match(body) if body and body[0] not in " \t" else None
        if ends and (_ALONE.match(body) or (now.frames and _looks_like_type(ends.group(1)))):
            self._end(index, now, line)
        elif now.wants_source and body.strip():
            self._source(now, body)
            self._inside.add(index)
        else:
            now.gap += 1
            if now.gap > _MAX_GAP:
                now.reset()
                now.link, now.ignored = Link.NONE, False

    def _source(self, now: _Open, body: str) -> None:
        if now.wants_source and now.frames and not _MARKER.match(body):
            now.frames[-1] = now.frames[-1]._replace(source=body.strip()[:300])
            now.wants_source = False

    def _end(self, index: int, now: _Open, line: Cleaned) -> None:
        name, _, message = line.body.partition(":")
        self._traces.append(
            Trace(
                first=now.first if now.first >= 0 else index,
                at=index,
                stream=line.stream,
                frames=tuple(now.frames),
                type=name.strip()[:200],
                message=message.strip(),
                link=now.link,
                ignored=now.ignored,
                user_code=(),
            )
        )
        now.reset()
        now.link, now.ignored = Link.NONE, False

    def _last_of(self, stream: str) -> int | None:
        return next((at for at in range(len(self._traces) - 1, -1, -1) if self._traces[at].stream == stream), None)


def _looks_like_type(name: str) -> bool:
    last = name.rsplit(".", 1)[-1]
    return last[:1].isupper() and not last.isupper() and ("." in name or any(letter.islower() for letter in last))


def by_stream(traces: Iterable[Trace]) -> Mapping[str, tuple[Trace, ...]]:
    """Return the traces of each stream in the order of the log."""
    found: dict[str, tuple[Trace, ...]] = {}
    for trace in traces:
        found[trace.stream] = (*found.get(trace.stream, ()), trace)
    return found
