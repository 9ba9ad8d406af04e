"""From one line of JSON to one row of figures. Pure: never raises, whatever the trainer wrote."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime

from bot.model.contract import MetricsContract
from bot.model.snapshot import MetricRow
from bot.model.value import Value

FIGURES = ("loss", "grad_norm", "tokens_per_second", "step_time_s", "lr")
"""The words of ``[metrics]`` that are figures; the contract says what each is called in this run."""
HIGHEST_STEP = 2**53
_NOT_FINITE = {
    "nan": math.nan,
    "inf": math.inf,
    "infinity": math.inf,
    "+inf": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}
_SWITCHES = frozenset({"skipped_step"})
"""Figures that are also logged as true and false."""
_MILLISECONDS_FROM = 1e11
"""Seconds would be in the year 5138."""


class Row(Value):
    """One line that is one logged step."""

    row: MetricRow
    has_faults: bool = False
    """A figure of it could not be read and is left out."""


class Unreadable(Value):
    """A line that should be a row and is none."""


class Other(Value):
    """A line that is about something else."""


type Parsed = Row | Unreadable | Other


def parse_json_row(text: str, names: MetricsContract) -> Parsed:
    """Return the row in a line of JSON.

    NaN and infinities count in every spelling: bare constants, strings (field report R21). A null loss is NaN too, as
    many JSON writers put it; any other null figure was not logged at that step.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return Unreadable()
    if not isinstance(fields, dict):
        return Unreadable()
    found = watched_in(fields, names)
    if names.step not in fields and not found:
        return Other()
    step = parse_step(fields.get(names.step))
    if step is None:
        return Unreadable()
    values, has_faults = parse_figures(found)
    return Row(
        row=MetricRow(step=step, values=values, at=parse_moment(fields.get(names.timestamp))), has_faults=has_faults
    )


def watched_in(fields: Mapping[str, object], names: MetricsContract) -> dict[str, object]:
    """Return what is watched in a logged record, raw, by Hero's word: the contract's figures and further ones."""
    found = {figure: fields[name] for figure in FIGURES if (name := getattr(names, figure)) in fields}
    for word, given in names.further().items():
        name = next((name for name in given if name in fields), None)
        if name is not None:
            found[word] = fields[name]
    return found


def parse_figures(found: Mapping[str, object]) -> tuple[dict[str, float], bool]:
    """Return raw figures as numbers, and whether one of them could not be read.

    A loss that is null is NaN, as many writers of JSON put it (field report R21); any other null was not logged.
    """
    values: dict[str, float] = {}
    has_faults = False
    for word, raw in found.items():
        if raw is None:
            if word == "loss":
                values[word] = math.nan
            continue
        value = float(raw) if isinstance(raw, bool) and word in _SWITCHES else parse_figure(raw)
        if value is None:
            has_faults = True
        else:
            values[word] = value
    return values, has_faults


def parse_step(raw: object) -> int | None:
    """Return an optimizer step; None for what is none. 120.0 is a step, True and 120.5 are not."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    if isinstance(raw, float) and not raw.is_integer():
        return None
    return int(raw) if 0 <= raw <= HIGHEST_STEP else None


def parse_figure(raw: object) -> float | None:
    """Return a number, finite or not; None for anything else."""
    match raw:
        case bool():
            return None
        case float():
            return raw
        case int():
            try:
                return float(raw)
            except OverflowError:
                return math.copysign(math.inf, raw)
        case str():
            return _NOT_FINITE.get(raw.strip().lower())
        case _:
            return None


def parse_moment(raw: object) -> datetime | None:
    """Return when a row was logged: seconds or milliseconds of the epoch, or ISO 8601 with its zone.

    None for anything else, a time without zone included: nobody knows whose clock it is.
    """
    if isinstance(raw, bool):
        return None
    try:
        if isinstance(raw, int | float):
            return datetime.fromtimestamp(raw / 1000 if abs(raw) >= _MILLISECONDS_FROM else raw, UTC)
        if isinstance(raw, str):
            moment = datetime.fromisoformat(raw)
            return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError, OSError):
        return None
    return None
