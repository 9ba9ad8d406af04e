"""How far a run's figures were read, and which of the new ones are handed out. Pure.

Finelog numbers its rows (``seq``) as they arrive, so a look goes on behind the last number that was handed out.
"""

from datetime import datetime, timedelta
from itertools import pairwise

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bot.model.snapshot import Metrics
from bot.model.value import Value
from bot.sources.finelog.executions import Executions
from bot.sources.finelog.rows import Parsed, Sample, by_step
from bot.sources.finelog.tables import Table

FIRST_ROWS = 20_000
"""On first sight so many of the newest rows are read, some thousand steps; a million steps would take long."""
ROWS_A_LOOK = 50_000
SETTLE = timedelta(seconds=5)
"""The rows of one step arrive one by one: the newest step is handed out when nothing came for so long."""
_PAST_KEPT = 8


class Cursor(BaseModel):
    """How far one run's figures were read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    seq: int
    at: AwareDatetime | None = None
    """When the last row was written; counts when the server has begun to number anew."""
    execution: str = ""
    """Who wrote the last row."""
    past: tuple[str, ...] = ()
    """Executions that another one has followed: what they still write is no longer this run's progress."""


class Question(Value):
    """Where to go on."""

    after: int | None
    since: datetime | None
    limit: int


def parse_cursor(written: str) -> Cursor | None:
    """Return how far it was read; None at the beginning, and for a cursor that is none of ours."""
    try:
        return Cursor.model_validate_json(written)
    except ValidationError:
        return None


def next_question(cursor: Cursor | None, table: Table, since: datetime | None) -> Question:
    """Return what to ask for; rows before ``since``, the submission, are an earlier instance's."""
    if cursor is None or cursor.table != table.name:
        return Question(after=None, since=since, limit=FIRST_ROWS)
    if table.max_seq < cursor.seq:  # the server lost its rows and counts from the beginning again
        began = max((each for each in (since, cursor.at) if each is not None), default=None)
        return Question(after=None, since=began, limit=FIRST_ROWS)
    return Question(after=cursor.seq, since=since, limit=ROWS_A_LOOK)


def hand_out(
    parsed: Parsed,
    *,
    table: str,
    question: Question,
    is_cut: bool,
    cursor: Cursor | None,
    executions: Executions,
    at: datetime,
) -> Metrics:
    """Return the rows that were not handed out before, and the cursor behind them.

    Args:
        parsed: what came.
        table: its name.
        question: that was asked.
        is_cut: there are more rows than were asked for.
        cursor: before.
        executions: whose rows are the run's.
        at: now.
    """
    past = _past(cursor, executions)
    own = [
        sample
        for sample in parsed.samples
        if sample.execution not in past and not executions.is_foreign(sample.execution)
    ]
    if is_cut and question.after is None:
        own = _without_first_step(own)
    own, superseded = _one_after_another(own, cursor, executions)
    own = _settled(own, at, is_cut=is_cut and question.after is not None)
    if not own:
        written = cursor.model_dump_json() if cursor is not None and cursor.table == table else ""
        return Metrics(rows=(), cursor=written, unreadable=parsed.unreadable)
    last = own[-1]
    gone = tuple(dict.fromkeys((*past, *(each for each in superseded if each != last.execution))))
    following = Cursor(table=table, seq=last.seq, at=last.at, execution=last.execution, past=gone[-_PAST_KEPT:])
    return Metrics(rows=by_step(own), cursor=following.model_dump_json(), unreadable=parsed.unreadable)


def _past(cursor: Cursor | None, executions: Executions) -> tuple[str, ...]:
    """Return who has ended.

    While the orchestrator could not be asked, a late row of an old attempt looks like one that has taken over; once it
    is heard, the later attempt is the run's again and the old one has ended.
    """
    if cursor is None:
        return ()
    mistaken = executions.later_than(cursor.execution).intersection(cursor.past)
    rest = tuple(each for each in cursor.past if each not in mistaken)
    return (*rest, cursor.execution) if mistaken else rest


def _one_after_another(
    samples: list[Sample], cursor: Cursor | None, executions: Executions
) -> tuple[list[Sample], tuple[str, ...]]:
    """Return the samples so that an execution ends where the next one begins, and those that have ended.

    Two that write at once would look like a step that jumps back and forth. Which one is next is the orchestrator's to
    say (the order of its attempts); only between executions that it does not tell of does the first row decide.
    """
    began = {cursor.execution: -1} if cursor is not None and samples else {}
    for sample in samples:
        began.setdefault(sample.execution, sample.seq)
    for execution in sorted(began, key=lambda each: len(executions.later_than(each))):
        after = [began[later] for later in executions.later_than(execution) if later in began]
        began[execution] = min([began[execution], *(first - 1 for first in after)])
    order = sorted(began, key=lambda execution: began[execution])
    ends = {execution: began[after] for execution, after in pairwise(order)}
    kept = [sample for sample in samples if sample.seq < ends.get(sample.execution, sample.seq + 1)]
    return kept, tuple(order[:-1])


def _settled(samples: list[Sample], at: datetime, *, is_cut: bool) -> list[Sample]:
    """Return the samples without the newest step, when more of it may be on its way."""
    if not samples:
        return samples
    newest = [each for each in samples if _step(each) == _step(samples[-1])]
    written = max((each.at for each in newest if each.at is not None), default=None)
    is_young = written is not None and at - SETTLE < written <= at
    if not is_young and not (is_cut and len(newest) < len(samples)):
        return samples
    first = newest[0].seq
    return [each for each in samples if each.seq < first]


def _without_first_step(samples: list[Sample]) -> list[Sample]:
    """Return the samples without the oldest step, of which only a part may be there."""
    rest = [each for each in samples if _step(each) != _step(samples[0])]
    return rest or samples


def _step(sample: Sample) -> tuple[str, int | None]:
    return sample.execution, sample.step
