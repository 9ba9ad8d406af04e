"""Which figures of two runs are worth a look, in the order in which people look at them. Pure."""

import re
from collections.abc import Iterable

from bot.model.series import History

_ORDER = tuple(
    re.compile(pattern)
    for pattern in (
        r"(train[/_])?loss",
        r"(.*[/_])?cross_entropy.*",
        r"(.*[/_])?tokens_per_second",
        r"(.*[/_])?mfu",
        r"step_time_s|(.*[/_])?(duration|iteration_time)",
        r"grad_norm|grad[/_]norm[/_]total",
        r".*(drop|overflow).*",
        r".*(router|routing)_?entropy.*",
        r".*(router.*loss|z_loss|load_balanc).*",
        r".*router_bias.*",
        r".*(peak|max)_?.*memory.*|.*memory.*(peak|max).*",
        r"lr|(.*[/_])?learning_rate",
    )
)
"""The deploy checklist, "Execute the trial", item 4: what the report has to show."""
_OF_A_PART = re.compile(r"layers?[/_.]?\d|(^|[/_])(blocks?|experts?)[/_.]?\d")
"""One layer's own figure: there are hundreds of these, and the whole run's stands beside them."""


def shown_figures(control: History, child: History, gated: Iterable[str], most: int) -> tuple[str, ...]:
    """Return the figures to show, at most so many: the loss, what gates are about, then what is known to matter.

    A figure that only one run logs is shown too: that the other lacks it says something.
    """
    there = control.figures.keys() | child.figures.keys()
    known = known_figures(there)
    loss = [word for word in known if _rank(word) == 0]
    return tuple(dict.fromkeys((*loss, *(word for word in gated if word in there), *known)))[:most]


def known_figures(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``names`` that are known to matter, in the order in which people look at them."""
    ranked = sorted((rank, name) for name in names if (rank := _rank(name)) is not None)
    return tuple(name for _, name in ranked)


def _rank(word: str) -> int | None:
    if _OF_A_PART.search(word):
        return None
    return next((place for place, pattern in enumerate(_ORDER) if pattern.fullmatch(word)), None)
