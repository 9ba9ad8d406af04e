"""Log lines, from the log service's entries and from what the CLI prints; pure."""

import re
from datetime import datetime, timedelta

from bot.model.snapshot import LogLine, LogTail
from bot.model.value import Value
from bot.sources.iris.parse import recognised
from bot.sources.iris.shape import Fields, ShapeError, storable

_LINE_CHARS = 16_000

# The old generations print no attempt.
_PRINTED = re.compile(
    r"\[(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\] task=(?P<task>/\S+)(?: attempt=(?P<attempt>\d+))? \| ?(?P<text>.*)",
    re.DOTALL,
)
_OUT_OF_ORDER = timedelta(minutes=5)
"""How far a line may be older than the one printed before it, since tasks are interleaved by arrival."""


class Entry(Value):
    """One row of the log service."""

    at: datetime
    line: LogLine
    seq: int | None = None
    """The service's number of the row; the old generation tells none."""


class Page(Value):
    """One answer of the log service, in the order in which the rows arrived."""

    entries: tuple[Entry, ...]
    cursor: int
    """The number of the last row; 0 when there is none."""


@recognised
def parse_entries(payload: object) -> Page:
    """Read FetchLogs' answer."""
    answer = Fields(payload, "answer")
    entries: list[Entry] = []
    for entry in answer.messages("entries"):
        at = entry.moment("timestamp")
        if at is None:
            raise ShapeError(f"{entry.name('timestamp')} is missing")
        task, _, number = entry.text("key").rpartition(":")
        attempt = entry.number("attempt_id")
        if attempt is None and number.isdecimal():
            attempt = int(number[:9])
        line = LogLine(text=_bounded(entry.text("data")), at=at, task=task or None, attempt=attempt)
        entries.append(Entry(at=at, line=line, seq=entry.number("seq")))
    return Page(entries=tuple(entries), cursor=answer.number("cursor") or 0)


@recognised
def parse_printed(payload: object, since: datetime | None, newest: int, now: datetime) -> LogTail:
    """Read what ``iris job logs`` prints; its clock has no date, so dates are inferred backwards from ``now``.

    ``since`` is None when the CLI was given it to the millisecond. Else seconds are all there is: lines of the very
    second of ``since`` may be a namesake's and are left out, rather than take a dead run's last words for new ones.
    """
    if not isinstance(payload, str):
        raise ShapeError(f"the printed log is {type(payload).__name__}, not a text")
    lines = _dated(storable(payload).split("\n"), now)
    if since is not None:
        first = since if since.microsecond == 0 else since.replace(microsecond=0) + timedelta(seconds=1)
        lines = [line for line in lines if line.at is not None and line.at >= first]
    return LogTail(lines=tuple(lines[-newest:]), is_cut=len(lines) > newest)


def _dated(printed: list[str], now: datetime) -> list[LogLine]:
    """Give every line its date. A line without a head belongs to the one before it."""
    lines: list[LogLine] = []
    later = now + _OUT_OF_ORDER
    tails: list[str] = []
    if printed and not printed[-1]:
        printed = printed[:-1]
    for raw in reversed(printed):
        head = _PRINTED.fullmatch(raw)
        if head is None:
            tails.append(raw)
            continue
        hour, minute, second = int(head["h"]), int(head["m"]), int(head["s"])
        if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 - a clock's own limits
            raise ShapeError(f"a log line's clock reads {hour:02}:{minute:02}:{second:02}")
        at = later.replace(hour=hour, minute=minute, second=second, microsecond=0)
        if at > later:
            at -= timedelta(days=1)
        later = min(later, at + _OUT_OF_ORDER)
        attempt = int(head["attempt"][:9]) if head["attempt"] else None
        whole = [head["text"], *reversed(tails)]
        lines.extend(
            LogLine(text=_bounded(text), at=at, task=head["task"], attempt=attempt) for text in reversed(whole)
        )
        tails = []
    if tails:
        raise ShapeError(f"the log begins with {tails[-1][:80]!r}, which is no line of `iris job logs`")
    lines.reverse()
    return lines


def _bounded(text: str) -> str:
    text = text.rstrip("\r\n")
    return text if len(text) <= _LINE_CHARS else f"{text[:_LINE_CHARS]} … ({len(text)} characters)"
