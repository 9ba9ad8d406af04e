"""The log as lines: bounded, without control characters and without the prefixes of launchers and loggers.

A line's *stream* is the rank, task or process it came from, as far as a prefix tells; lines of one stream stand in
order.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from bot.model.crash import EVIDENCE_CHARS

MAX_CHARS = 4_000_000
"""Longest text looked at, some 40,000 lines; from a longer one the first eighth and the end are kept."""
MAX_LINE = 3_000
"""Longest line looked at; from a longer one both ends are kept."""
_MAX_SEGMENTS = 20
"""A progress bar redraws itself with carriage returns; only its last states are kept."""

_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07]{0,200}\x07)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_STREAMS = (
    re.compile(r"\[?(rank ?\d{1,6})\]?: ?"),
    re.compile(r"\[\d\d:\d\d:\d\d\] (task=\S{1,200}(?: attempt=\d+)?) \| ?"),
    re.compile(r"(task=\S{1,200}(?: attempt=\d+)?) \| ?"),
    re.compile(r"\((\w{0,80}(?:\([^()]{0,80}\))? ?pid=\d{1,9}(?:, ?ip=[^)]{1,60})?)\)[:]? ?"),
    re.compile(r"\((raylet|autoscaler)(?: ?[^)]{0,60})?\) ?"),
    re.compile(r"(\[\d{1,4},\d{1,6}\])<std(?:err|out)>: ?"),
    re.compile(r"(\[(?:default|trainer)\d{1,6}\]): ?"),
    re.compile(r"\[?(\d{1,5})\]?: (?=\s|Traceback|\S+Error|[\[(/{]|\w)"),
    re.compile(r"((?:pod/)?[a-z0-9][a-z0-9./-]{0,80}-[a-z0-9-]{1,20}(?: [a-z0-9-]{1,40})?) {1,4}\| ?"),
)
_STAMPS = (
    re.compile(r"\[?\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: -|:)? ?"),
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:Z)? \S{1,80} [\w./-]{1,60}(?:\[\d+\])?:? "),
    re.compile(r"\[?[IWEFD]\d{3,8} \d\d:\d\d:\d\d(?:\.\d+)?(?: +\d+)? [^\]\s]{1,200}\]? ?"),
    re.compile(r"(?:std(?:err|out) [FP] )"),
    re.compile(r"\[\d\d:\d\d:\d\d\] ?"),
    re.compile(r"(?:CRITICAL|ERROR|FATAL|error): ?(?:[\w.]{1,80}: ?)?(?=Traceback|[A-Z])"),
    re.compile(r"\[(?:ERROR|CRITICAL|FATAL|error)\] ?(?:\[[^\]]{1,80}\] ?)?"),
    re.compile(r"ERROR(?: -|:)? (?=\w*(?:Traceback|Error))"),
    re.compile(r"(?:Error: )?(?:Cumulative failed task attempts [^;]{0,200}; )?Exit code:? -?\d{1,3}[.:] stderr: "),
    re.compile(r"[\w.]{0,80}JobFailedError: Job \S{1,200} FAILED: "),
    re.compile(r" {0,8}[|+](?:[ |]{0,40}|-[-+ \d]{0,60}) (?=Traceback| *File|[A-Z]\w)"),
)
_GROUP = re.compile(r"^ {0,10}[|] {1,2}")


class Line(NamedTuple):
    """One line of the log."""

    number: int
    """As an editor counts, from 1."""
    raw: str


class Cleaned(NamedTuple):
    """A line without its prefixes; what stands before the text proper is kept as its stream."""

    stream: str
    body: str


def lines_of(log: str | Iterable[str]) -> tuple[Line, ...]:
    """Return the lines of ``log``, bounded in length and in number of characters."""
    text = log if isinstance(log, str) else "\n".join(line.rstrip("\r\n") for line in log)
    head, skipped = "", 0
    if len(text) > MAX_CHARS:
        head, tail = text[: MAX_CHARS // 8], text[-(MAX_CHARS - MAX_CHARS // 8) :]
        skipped = text.count("\n", len(head), len(text) - len(tail))
        text = tail
    found: list[Line] = []
    number = 0
    for part in (head, text):
        for raw in part.split("\n") if part else ():
            number += 1
            found.extend(Line(number, segment) for segment in _segments(raw))
        number += skipped if part is head else 0
    return tuple(found)


def _segments(raw: str) -> tuple[str, ...]:
    if "\r" not in raw:
        return (bounded(raw),)
    kept = [segment for segment in raw[-_MAX_SEGMENTS * MAX_LINE :].split("\r") if segment]
    return tuple(bounded(segment) for segment in kept[-_MAX_SEGMENTS:]) or ("",)


def bounded(raw: str) -> str:
    """Cut a long line in its middle, since a message ends with what matters as often as it begins with it."""
    return raw if len(raw) <= MAX_LINE else f"{raw[: MAX_LINE // 2]} … {raw[-MAX_LINE // 2 :]}"


def cleaned(raw: str) -> Cleaned:
    """Take off the prefixes of launchers and loggers, at most six of them."""
    body = _CONTROL.sub("", raw)
    streams: list[str] = []
    for _ in range(6):
        for pattern in _STREAMS:
            if match := pattern.match(body):
                streams.append(match.group(1))
                break
        else:
            match = next((hit for pattern in _STAMPS if (hit := pattern.match(body)) and hit.end()), None)
        if match is None:
            break
        body = body[match.end() :]
    return Cleaned("/".join(streams), body)


def printable(raw: str, bound: int = EVIDENCE_CHARS) -> str:
    """Return ``raw`` as text that any channel can carry: no control characters or lone surrogates, cut to ``bound``."""
    text = _CONTROL.sub("", raw).replace("\t", " ").strip()
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= bound else f"{text[: bound // 2 - 2]} … {text[-(bound - bound // 2 - 2) :]}"
