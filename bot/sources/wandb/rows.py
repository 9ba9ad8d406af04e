"""From a row of W&B's history to a row of figures. Pure: never raises, whatever the trainer logged.

``_step`` counts the SDK's own commits and need not be the trainer's step; ``_timestamp`` is the trainer's clock in
seconds. NaN and infinities come as strings from the live store and as floats from exported files, so both count.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.model.contract import MetricsContract
from bot.model.snapshot import MetricRow
from bot.model.value import Value
from bot.sources.metric_rows import FIGURES, parse_figures, parse_moment, parse_step

TRACKER_STEP = "_step"
_TRAINER_STEPS = ("global_step", "trainer/global_step", "train/global_step")
"""What trainers call their own step, after the contract's own word for it (Levanter, Lightning, HF Trainer)."""


class HistoryRow(Value):
    """One row of the history."""

    step: int
    """``_step``, the row's place in the history."""
    logged_at: datetime | None
    figures: MetricRow | None
    """What is watched of it; None when it holds nothing of that, or no trainer's step is known yet."""
    has_faults: bool = False
    """Something that is watched could not be read and is left out."""


def step_key(names: MetricsContract, logged: Mapping[str, Any]) -> str:
    """Return under which key this run logs the trainer's step.

    Args:
        names: the contract's words.
        logged: a mapping with every key that the run ever logged, such as its summary.
    """
    for key in (names.step, *_TRAINER_STEPS):
        if find(logged, key) is not None:
            return key
    return TRACKER_STEP


def step_of(raw: object) -> int | None:
    """Return a row's place in the history; None for what is no row."""
    return parse_step(raw.get(TRACKER_STEP)) if isinstance(raw, Mapping) else None


def parse_row(raw: object, names: MetricsContract, key: str, trainer_step: int | None) -> HistoryRow | None:
    """Return one row; None when it has no place in the history, so that nothing can be made of it.

    Args:
        raw: as the SDK gave it.
        names: the contract's words.
        key: where the trainer's step stands.
        trainer_step: of the row before. Several rows may belong to one step of the trainer, and only one of them need
            name it; a NaN in one of the others must not be lost.
    """
    step = step_of(raw)
    if step is None or not isinstance(raw, Mapping):
        return None
    logged_at = parse_moment(raw.get("_timestamp"))
    given = find(raw, key)
    own = parse_step(given)
    values, has_faults = figures_of(raw, names)
    at_step = trainer_step if own is None else own
    has_faults = has_faults or (given is not None and own is None)
    if at_step is None or (not values and own is None):
        return HistoryRow(step=step, logged_at=logged_at, figures=None, has_faults=has_faults or bool(values))
    figures = MetricRow(step=at_step, values=values, at=logged_at)
    return HistoryRow(step=step, logged_at=logged_at, figures=figures, has_faults=has_faults)


def figures_of(raw: Mapping[str, Any], names: MetricsContract) -> tuple[dict[str, float], bool]:
    """Return the watched figures by Hero's words, and whether one of them could not be read."""
    found = {figure: find(raw, name) for figure in FIGURES if has(raw, name := getattr(names, figure))}
    for word, given in names.further().items():
        name = next((name for name in given if has(raw, name)), None)
        if name is not None:
            found[word] = find(raw, name)
    return parse_figures(found)


def has(raw: Mapping[str, Any], name: str) -> bool:
    return _lookup(raw, name) is not _ABSENT


def find(raw: Mapping[str, Any], name: str) -> object:
    """Return a value by its name, also where the service hands nested tables out for ``a.b``; None when there is none.

    In a summary a metric may be a table with its last value under ``last`` (``define_metric``).
    """
    found = _lookup(raw, name)
    if isinstance(found, Mapping) and "last" in found:
        return found["last"]
    return None if found is _ABSENT else found


_ABSENT = object()


def _lookup(raw: Mapping[str, Any], name: str) -> object:
    if name in raw:
        return raw[name]
    inside: object = raw
    for part in name.split("."):
        if not isinstance(inside, Mapping) or part not in inside:
            return _ABSENT
        inside = inside[part]
    return inside
