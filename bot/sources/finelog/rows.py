"""From Finelog's rows, one a figure, to rows of figures, one a step. Pure: never raises, whatever was written.

Levanter logs some figures at every step and others at each tenth, all of a step under one number.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from bot.model.contract import MetricsContract
from bot.model.figures import LEVANTER
from bot.model.snapshot import MetricRow
from bot.model.value import Value
from bot.sources.finelog.tables import GAUGE_PREFIX, Form
from bot.sources.metric_rows import FIGURES, parse_figure, parse_moment, parse_step

STEP = "step"
_NOT_SCALAR = ("summary", "histogram")


class Sample(Value):
    """One figure."""

    seq: int
    at: datetime | None
    execution: str
    """Empty when the row names none."""
    step: int | None
    name: str
    """Hero's word for it."""
    value: float


def figure_names(names: MetricsContract) -> dict[str, str]:
    """Return Hero's word for each watched figure by its name in Finelog.

    Every character but letters, digits and ``_`` becomes ``_`` there: ``train/loss`` is ``train_loss``. A word that the
    contract leaves at its default stands for Levanter's own name too.
    """
    found = {finelog_name(name): word for word, given in names.further().items() for name in reversed(given)}
    for figure in FIGURES:
        given = getattr(names, figure)
        if given == MetricsContract.model_fields[figure].default:
            found[LEVANTER[figure]] = figure
        found[finelog_name(given)] = figure
    return found


def finelog_name(name: str) -> str:
    """Return how Finelog spells a figure's name."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


class Parsed(Value):
    """What could be made of the rows of one answer."""

    samples: tuple[Sample, ...]
    """By ``seq`` ascending."""
    unreadable: int = 0


def parse_samples(rows: Iterable[Mapping[str, Any]], form: Form, words: Mapping[str, str]) -> Parsed:
    """Return the figures in an answer.

    Args:
        rows: as Finelog gave them, in any order.
        form: of the table.
        words: from ``figure_names``.
    """
    found: list[Sample] = []
    unreadable = 0
    for raw in rows:
        name = name_of(raw, form)
        word = STEP if form is Form.GAUGES and name == STEP else words.get(name)
        if word is None or raw.get("kind") in _NOT_SCALAR:
            continue
        seq, value = raw.get("seq"), parse_figure(raw.get("value"))
        step = parse_step(raw.get("step"))
        if not isinstance(seq, int) or value is None or (form is Form.METRICS and step is None):
            unreadable += 1
            continue
        found.append(
            Sample(
                seq=seq,
                at=moment_of(raw.get("timestamp_ms")),
                execution=execution_of(raw),
                step=step if form is Form.METRICS else None,
                name=word,
                value=value,
            )
        )
    found.sort(key=lambda sample: sample.seq)
    samples = tuple(found) if form is Form.METRICS else tuple(_with_steps(found))
    return Parsed(samples=samples, unreadable=unreadable)


def _with_steps(gauges: list[Sample]) -> Iterator[Sample]:
    """Give gauges their step: the step gauge of the same moment, else the last one before."""
    same: dict[tuple[str, datetime | None], int] = {}
    for gauge in gauges:
        if gauge.name == STEP and (step := parse_step(gauge.value)) is not None:
            same[gauge.execution, gauge.at] = step
    last: dict[str, int] = {}
    for gauge in gauges:
        step = same.get((gauge.execution, gauge.at), last.get(gauge.execution))
        if step is None:
            continue  # nobody knows to which step it belongs
        last[gauge.execution] = step
        yield gauge.model_copy(update={"step": step})


def by_step(samples: Iterable[Sample]) -> tuple[MetricRow, ...]:
    """Return one row a step of each execution, in the order in which the steps were first heard of."""
    found: dict[tuple[str, int], tuple[dict[str, float], datetime | None]] = {}
    for sample in samples:
        if sample.step is None:
            continue
        values, at = found.get((sample.execution, sample.step), ({}, None))
        if sample.name != STEP:
            values[sample.name] = sample.value
        known = [each for each in (at, sample.at) if each is not None]
        found[sample.execution, sample.step] = (values, max(known, default=None))
    return tuple(MetricRow(step=step, values=values, at=at) for (_, step), (values, at) in found.items())


def name_of(raw: Mapping[str, Any], form: Form) -> str:
    """Return a row's name without the prefix of the oldest gauges."""
    name = raw.get("name")
    if not isinstance(name, str):
        return ""
    return name.removeprefix(GAUGE_PREFIX) if form is Form.GAUGES else name


def execution_of(raw: Mapping[str, Any]) -> str:
    execution = raw.get("execution_uid")
    return execution if isinstance(execution, str) else ""


def moment_of(raw: object) -> datetime | None:
    """Return a time of Finelog's: milliseconds of the epoch, or a timestamp, which comes naive and means UTC."""
    if isinstance(raw, datetime):
        return raw.replace(tzinfo=UTC) if raw.tzinfo is None else raw.astimezone(UTC)
    return parse_moment(raw)
