"""How far a run's history was read, and what the next look has to ask for. Pure.

History grows at its end, except when it is rewound: then the last step goes down and other rows take the place of those
that were read. So the reader keeps the last row that it saw as an anchor and reads it again with the next ones.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bot.model.contract import MetricsContract
from bot.model.snapshot import MetricRow
from bot.model.tracker import ForkPoint
from bot.model.value import Value
from bot.sources.metric_rows import parse_moment
from bot.sources.wandb.rows import HistoryRow, parse_row, step_of

PAGE_STEPS = 1000
"""A page of the history is a window of so many ``_step``s, however few rows are in it."""
FIRST_ROWS = 5000
"""On first sight about so many of the newest rows are read; a million would take a quarter of a minute."""
ROWS_A_LOOK = 20_000


class Anchor(BaseModel):
    """The last row that was seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int
    logged_at: AwareDatetime | None


class Cursor(BaseModel):
    """How far one run's history was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    """``entity/project/id``: another run is read from its own beginning."""
    anchor: Anchor | None = None
    next_step: int = 0
    last_step: int = -1
    """Of the history when it was last looked at."""
    trainer_step: int | None = None
    """The trainer's step at the anchor."""


class Window(Value):
    """What to ask for: ``first <= _step < end``."""

    first: int
    end: int
    page: int
    is_anew: bool
    """The history was not read before, or is no longer the one that was read."""


class Gathered(Value):
    """What one look made of the rows that came."""

    rows: tuple[MetricRow, ...]
    cursor: Cursor
    unreadable: int
    inherited: int = 0
    """Rows up to the fork boundary: another run's, and no progress of this one."""
    earlier: int = 0
    """Rows that were logged before this instance was submitted."""


def parse_cursor(text: str, path: str) -> Cursor:
    """Return where to go on; at the beginning for another run, and for a cursor that is none of ours."""
    try:
        cursor = Cursor.model_validate_json(text)
    except ValidationError:
        return Cursor(path=path)
    return cursor if cursor.path == path else Cursor(path=path)


def next_window(cursor: Cursor, last_step: int, row_count: int, boundary: ForkPoint | int | None) -> Window:
    """Return what to ask for.

    Args:
        cursor: of the last look.
        last_step: the newest ``_step`` now.
        row_count: how many rows there are about; 0 when that is not known. ``_step`` may run in strides of millions,
            and a page is a window of steps.
        boundary: a fork, or the step to which this run's own history was rewound.
    """
    stride = max(1, math.ceil((last_step + 1) / row_count)) if row_count > 0 else 1
    page = PAGE_STEPS * stride
    if cursor.anchor is None or last_step < cursor.last_step:
        first = _first_step(last_step, stride, boundary)
        if last_step >= cursor.last_step:
            first = max(first, cursor.next_step)
        return Window(first=first, end=min(last_step + 1, first + ROWS_A_LOOK * stride), page=page, is_anew=True)
    # From the anchor itself on; with a gap behind it that was already found empty, from the end of that.
    first = cursor.anchor.step if cursor.next_step <= cursor.anchor.step + 1 else cursor.next_step
    return Window(first=first, end=min(last_step + 1, first + ROWS_A_LOOK * stride), page=page, is_anew=False)


def _first_step(last_step: int, stride: int, boundary: ForkPoint | int | None) -> int:
    newest = max(0, last_step + 1 - FIRST_ROWS * stride)
    match boundary:
        case ForkPoint():
            return max(newest, boundary.step + 1)
        case int() if boundary <= last_step:
            return max(newest, boundary + 1)
        case _:
            return newest


def is_empty_handed(
    cursor: Cursor, window: Window, rows: Iterable[object], *, history_step: int, told_step: int
) -> bool:
    """Return whether rows are missing that the service itself tells of (field report R19).

    When the window reaches the last step, the row of that step must be in it, and so must the anchor.

    Args:
        cursor: of the last look.
        window: what was asked for.
        rows: all that came.
        history_step: the newest ``_step`` by the history's own account.
        told_step: the newest one by any account.
    """
    if window.end <= history_step:
        return False
    steps = {step for row in rows if (step := step_of(row)) is not None and window.first <= step < window.end}
    if window.is_anew or cursor.anchor is None:
        return not steps
    return not steps or (told_step > cursor.anchor.step and max(steps) <= cursor.anchor.step)


def is_rewritten(cursor: Cursor, window: Window, rows: Iterable[object]) -> bool:
    """Return whether the anchor is no longer what it was: rewound, and already grown past it again."""
    if window.is_anew or cursor.anchor is None or window.first != cursor.anchor.step:
        return False
    steps = {step: row for row in rows if isinstance(row, Mapping) and (step := step_of(row)) is not None}
    there = steps.get(cursor.anchor.step)
    if there is None:
        return bool(steps)
    logged_at = parse_moment(there.get("_timestamp"))
    return logged_at is not None and cursor.anchor.logged_at not in {None, logged_at}


def gather(
    raw: Iterable[object],
    *,
    window: Window,
    is_whole: bool,
    cursor: Cursor,
    last_step: int,
    names: MetricsContract,
    key: str,
    fork: ForkPoint | None,
    since: datetime | None,
) -> Gathered:
    """Return the new rows in the order of their steps, each once, and the cursor behind them.

    Args:
        raw: as they came: pages overlap, and some servers send more than was asked for.
        window: what was asked for.
        is_whole: whether all of it came.
        cursor: of the last look.
        last_step: the newest ``_step`` now.
        names: the contract's words.
        key: where the trainer's step stands.
        fork: where this run's own history begins, when it was taken over.
        since: when this instance was submitted; older rows are another one's.
    """
    start = cursor if not window.is_anew else Cursor(path=cursor.path)
    trainer_step, unreadable, inherited, earlier = start.trainer_step, 0, 0, 0
    anchor, rows, seen = start.anchor, list[MetricRow](), set[int]()
    for each in sorted(raw, key=_place):
        row = parse_row(each, names, key, trainer_step)
        if row is None:
            unreadable += 1
            continue
        if not window.first <= row.step < window.end or row.step in seen or (anchor and row.step <= anchor.step):
            continue
        seen.add(row.step)
        anchor = Anchor(step=row.step, logged_at=row.logged_at)
        trainer_step = row.figures.step if row.figures else trainer_step
        match _owner(row, fork, since):
            case "fork":
                inherited += 1
            case "earlier":
                earlier += 1
            case _:
                unreadable += row.has_faults
                rows += [row.figures] if row.figures else []
    next_step = max(start.next_step, anchor.step + 1 if anchor else 0)
    if is_whole and window.end <= last_step:
        next_step = max(next_step, window.end)
    behind = Cursor(
        path=cursor.path, anchor=anchor, next_step=next_step, last_step=last_step, trainer_step=trainer_step
    )
    return Gathered(rows=tuple(rows), cursor=behind, unreadable=unreadable, inherited=inherited, earlier=earlier)


def _owner(row: HistoryRow, fork: ForkPoint | None, since: datetime | None) -> str:
    if fork is not None and row.step <= fork.step:
        return "fork"
    if since is not None and row.logged_at is not None and row.logged_at < since:
        return "earlier"
    return "current"


def _place(raw: object) -> int:
    step = step_of(raw)
    return -1 if step is None else step
