"""The log of a job through the log service: its newest lines, of which only the new ones travel.

The service numbers its rows as they arrive, one counter for all jobs, and answers what lies behind a number (finelog
0.2.71, run: nothing is skipped while several write; the numbers survive a restart of the server). Behind a number that
it never gave it answers nothing, without a word: so a read goes on one row *before* the end, and only an answer that
begins with the row already seen is joined to the lines that were kept. Else the server has begun anew or forgotten that
row, and everything is read again. Rows are never picked by their time: a worker may deliver its lines late.
"""

from datetime import UTC, datetime

from bot.clock import Clock
from bot.model.reading import Known, Reading, Unknown
from bot.model.snapshot import LogLine, LogTail
from bot.model.value import JobId, RunId, Value
from bot.sources.iris.lines import Entry, Page, parse_entries
from bot.sources.iris.rpc import IrisRpc
from bot.sources.kept import Kept

_MOST_KEPT_CHARS = 4_000_000
"""A tail with more text than this is read whole each time, rather than kept in memory."""


class Followed(Value):
    """How far one instance's log was read."""

    job_id: JobId
    since: datetime | None
    lines: tuple[LogLine, ...] = ()
    """In the order in which they arrived; one more than is handed out tells of a cut."""
    end: Entry | None = None
    """The row that was read last."""
    cursor: int = 0
    """Its number."""

    def tail(self, newest: int) -> LogTail:
        """Return the newest lines, by their time."""
        ordered = sorted(self.lines, key=lambda line: line.at or datetime.min.replace(tzinfo=UTC))
        return LogTail(lines=tuple(ordered[-newest:]), is_cut=len(ordered) > newest)


class LogFollower:
    """Reads the logs of one controller's jobs."""

    def __init__(self, rpc: IrisRpc, clock: Clock, *, newest: int) -> None:
        """Take where to ask.

        Args:
            rpc: of the controller.
            clock: for the moment of the readings.
            newest: how many lines are handed out at most.
        """
        self._rpc = rpc
        self._clock = clock
        self._newest = newest
        self._kept: Kept[Followed] = Kept()

    async def tail(self, run_id: RunId, job_id: JobId, since: datetime | None) -> Reading[LogTail]:
        """Ask for the newest lines of a job and everything below it, printed after ``since``, the submission.

        What was read before counts only once an answer was understood: a lost one is asked for again.

        Raises:
            ServiceError: there is no answer.
        """
        whole = Followed(job_id=job_id, since=since)
        kept = self._kept.get(run_id)
        bases = [kept, whole] if kept is not None and (kept.job_id, kept.since) == (job_id, since) else [whole]
        for base in bases:
            answer = await self._rpc.fetch_logs(_question(base, self._newest + 1))
            page = parse_entries(answer, self._clock.now())
            if isinstance(page, Unknown):
                return page
            if (joined := join(base, page.value, self._newest + 1)) is not None:
                self._kept.put(run_id, joined if _may_go_on(joined) else None)
                return Known(value=joined.tail(self._newest), at=page.at)
        raise AssertionError("a whole read joins to nothing and cannot fail to")


def join(base: Followed, page: Page, most: int) -> Followed | None:
    """Return what is known with this answer; None when it does not follow on what was kept. Pure.

    Args:
        base: that the question was made of.
        page: the answer.
        most: how many rows were asked for, the newest ones: so many, and the answer stands for itself.
    """
    entries = page.entries
    if base.end is None or len(entries) >= most:
        old: tuple[LogLine, ...] = ()
    elif entries and entries[0] == base.end:
        old, entries = base.lines, entries[1:]
    else:
        return None
    new = (entry.line for entry in entries if base.since is None or entry.at >= base.since)
    end = page.entries[-1] if page.entries else None
    number = end.seq if end is not None and end.seq is not None else page.cursor
    return Followed(job_id=base.job_id, since=base.since, lines=(*old, *new)[-most:], end=end, cursor=number or 0)


def _may_go_on(followed: Followed) -> bool:
    """Whether the next read can begin at the last row: it has a number, and what is kept is small enough."""
    kept_chars = sum(len(line.text) for line in followed.lines)
    return followed.end is not None and followed.cursor > 1 and kept_chars <= _MOST_KEPT_CHARS


def _question(base: Followed, lines: int) -> dict[str, object]:
    question: dict[str, object] = {
        "source": f"{base.job_id}/",
        "match_scope": "MATCH_SCOPE_PREFIX",
        "max_lines": lines,
        "tail": True,
    }
    if base.since is not None:
        # The service leaves out the very millisecond that it is given.
        question["since_ms"] = int(base.since.timestamp() * 1000) - 1
    if base.end is not None:
        question["cursor"] = base.cursor - 1
    return question
