"""Figures from what a trainer prints. Pure: never raises, and leaves out what it is not sure of.

Understood are ``key=value`` and ``key: value`` lines in any layout (``step=120 loss=3.21``, ``step 120 | loss 3.21``,
``iteration 120/ 1000 | lm loss: 3.2E+00``), JSON lines, tqdm bars and their logged form (``Progress on:train 120it/…
postfix:loss=3.2``), and a non-finite loss said in prose (``Loss: nan``, ``Non-finite loss (nan) at step 120.``).
"""

import math
import re
from collections.abc import Iterable

from bot.model.contract import MetricsContract
from bot.model.snapshot import LogLine, LogTail, MetricRow
from bot.model.value import Value
from bot.sources.metric_rows import FIGURES, HIGHEST_STEP, Row, Unreadable, parse_json_row

LINE_CHARS = 4000
"""Longer lines are not looked at: no row is that long, and patterns take time."""

_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)"
# What may follow a number for it to be one: 1.2k and 3.4M are rounded, 120it and 0.5s have a unit.
_END = r"(?=[.:]?(?:[\s,;|/)\]}'\"]|$))"
_NOT_WITHIN = r"(?<![\w./-])"
_LINK = r"['\"]?\s*[=:#]?\s*"
_ALIASES = {
    "loss": ("train/loss", "train_loss", "lm loss", "loss"),
    "grad_norm": ("grad/norm/total", "grad_norm", "grad norm", "gnorm"),
    "tokens_per_second": ("throughput/tokens_per_second", "tokens_per_second", "tokens/s", "tok/s"),
    "step_time_s": ("step_time_s",),
    "lr": ("optim/learning_rate", "learning_rate", "learning rate", "lr"),
}
_STEP_ALIASES = ("global_step", "step", "iteration", "iter")
_OTHER_LOSS = re.compile(
    r"\b(?:eval|evaluation|val|valid|validation|test|dev|aux|auxiliary|router|balanc\w*|kl|z|best|min|max|lowest|initial"
    r"|previous|last)[\s_/:-]+$",
    re.IGNORECASE,
)
_BAR = re.compile(r"(?:^|[|\s])(\d+)/(\d+)\s*\[")
_LOGGED_BAR = re.compile(r"Progress on:.*?\s(\d+)(?:\.0+)?it/")
_PROSE = re.compile(r"\bloss\s*(?:\(|is|=|:|was)\s*(?P<value>[+-]?(?:nan|inf(?:inity)?))\b", re.IGNORECASE)
_AT_STEP = re.compile(r"\bstep\s*[=:#]?\s*(\d+)\b", re.IGNORECASE)
_JSON = re.compile(r"\{.*\}\s*$")
_BEFORE_CHARS = 24


class LineRows(Value):
    """What a log's lines hold."""

    rows: tuple[MetricRow, ...]
    unreadable: int = 0


class LinePatterns:
    """The patterns of one run's names, compiled once."""

    def __init__(self, names: MetricsContract) -> None:
        self._names = names
        self._step = _pattern(_longest_first((names.step, *_STEP_ALIASES)))
        self._figures = {
            figure: _pattern(_longest_first((getattr(names, figure), *_ALIASES[figure]))) for figure in FIGURES
        }
        self._words = {name.lower(): word for word, given in names.further().items() for name in given}
        self._further = _pattern(_longest_first(tuple(self._words)))

    def parse(self, text: str) -> Row | Unreadable | None:
        """Return the row in one line; None when the line is about something else."""
        if len(text) > LINE_CHARS:
            return None
        if text.rstrip().endswith("}") and (found := _JSON.search(text)):
            parsed = parse_json_row(found[0], self._names)
            if isinstance(parsed, Row) and parsed.row.values:
                return parsed
        values = {figure: value for figure in FIGURES if (value := self._figure(figure, text)) is not None}
        for match in self._further.finditer(text):
            values.setdefault(self._words[match["name"].lower()], _number(match))
        if not values:
            return None
        step = self._step_of(text)
        return Row(row=MetricRow(step=step, values=values)) if step is not None else None

    def _figure(self, figure: str, text: str) -> float | None:
        for match in self._figures[figure].finditer(text):
            before = text[max(0, match.start() - _BEFORE_CHARS) : match.start()]
            if figure != "loss" or not _OTHER_LOSS.search(before):
                return _number(match)
        return None

    def _step_of(self, text: str) -> int | None:
        for match in self._step.finditer(text):
            value = _number(match)
            if value.is_integer() and 0 <= value <= HIGHEST_STEP:
                return int(value)
        bar = _LOGGED_BAR.search(text) or _BAR.search(text)
        return int(bar[1]) if bar and len(bar[1]) < len(str(HIGHEST_STEP)) else None


def parse_lines(tail: LogTail, names: MetricsContract) -> LineRows:
    """Return the rows of a log in the order in which they were printed.

    On many hosts every process prints the same step: only the first task's rows count. A non-finite loss that names no
    step is put at the last one seen before it.
    """
    by_task: dict[str, list[LogLine]] = {}
    for line in tail.lines:
        by_task.setdefault(line.task or "", []).append(line)
    patterns = LinePatterns(names)
    for task in sorted(by_task, key=_natural):
        found = _rows_of(by_task[task], patterns, is_cut=tail.is_cut)
        if found.rows or found.unreadable:
            return found
    return LineRows(rows=())


def _rows_of(lines: Iterable[LogLine], patterns: LinePatterns, *, is_cut: bool) -> LineRows:
    rows: list[MetricRow] = []
    unreadable = 0
    step = None if is_cut else 0
    for line in lines:
        parsed = patterns.parse(line.text)
        if isinstance(parsed, Row):
            unreadable += parsed.has_faults
            step = parsed.row.step
            rows.append(parsed.row if parsed.row.at else parsed.row.model_copy(update={"at": line.at}))
            continue
        value = _non_finite(line.text)
        if value is None:
            continue
        named = _AT_STEP.search(line.text)
        step = int(named[1]) if named and len(named[1]) < len(str(HIGHEST_STEP)) else step
        if step is None:
            unreadable += 1
        else:
            rows.append(MetricRow(step=step, values={"loss": value}, at=line.at))
    return LineRows(rows=tuple(rows), unreadable=unreadable)


def _non_finite(text: str) -> float | None:
    """Return NaN or an infinity when the line says that the loss is."""
    match = _PROSE.search(text[:LINE_CHARS])
    if match is None or _OTHER_LOSS.search(text[max(0, match.start() - _BEFORE_CHARS) : match.start()]):
        return None
    value = float(match["value"])
    return None if math.isfinite(value) else value


def _number(match: re.Match[str]) -> float:
    return float(match["value"].replace(",", ""))


def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in names)
    return re.compile(rf"{_NOT_WITHIN}(?P<name>{words}){_LINK}(?P<value>{_NUMBER}){_END}", re.IGNORECASE)


def _longest_first(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(names), key=len, reverse=True))


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key by which task 10 comes after task 9."""
    return tuple(
        (0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part) for part in re.split(r"(\d+)", name)
    )
