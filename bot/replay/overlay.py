"""Draws two runs over one another: each figure of both, and below it the difference at the same steps."""

from pathlib import Path
from typing import Any

import numpy as np

from bot.errors import ConfigurationError
from bot.model.series import NOTHING, History
from bot.model.trial import Comparison, Judged, Outcome, Window
from checks.trial.rows import Side, pair_up, take_side

_FIRST = ("loss", "tokens_per_second", "step_time_s", "mfu")
_MOST_FIGURES = 4
_MOST_POINTS = 20_000
_CONTROL, _CHILD, _DELTA = "#607d8b", "#1565c0", "#37474f"
_OF_OUTCOME = {Outcome.PASS: "#2e7d32", Outcome.FAIL: "#c62828", Outcome.CANNOT_TELL: "#ef8e00"}


def draw_comparison(control: History, child: History, found: Comparison, path: Path) -> None:
    """Write a picture of the window and as much around it.

    Args:
        control: what the old run logged.
        child: what the new run logged.
        found: what was judged.
        path: of the picture; its suffix says which format.

    Raises:
        ConfigurationError: the picture cannot be written, or there is nothing to draw.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - it takes a second to import
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    shared = control.figures.keys() & child.figures.keys()
    gated = tuple(each.gate.metric for each in found.gates)
    words = tuple(dict.fromkeys(word for word in (*_FIRST[:2], *gated, *_FIRST[2:]) if word in shared))[:_MOST_FIGURES]
    if not words:
        raise ConfigurationError((f"--plot {path}: the two files share no figure that could be drawn",))
    figure = Figure(figsize=(11, 1 + 3.2 * len(words)), layout="constrained")
    FigureCanvasAgg(figure)
    heights = [part for _ in words for part in (2, 1)]
    axes = figure.subplots(2 * len(words), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for number, word in enumerate(words):
        judged = next((each for each in found.gates if each.gate.metric == word), None)
        _draw_figure((axes[2 * number], axes[2 * number + 1]), word, (control, child), found.window, judged)
    axes[-1].set_xlabel("step")
    figure.suptitle(f"steps {found.window.first_step} to {found.window.last_step}: {found.outcome.value}")
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise ConfigurationError((f"--plot {path}: {error}",)) from error


def _draw_figure(
    axes: tuple[Any, Any], word: str, histories: tuple[History, History], window: Window, judged: Judged | None
) -> None:
    first = max(0, window.first_step - window.steps)
    around = Window(first_step=first, steps=window.last_step + window.steps - first + 1)
    old, new = (_newest(history, word, window, around) for history in histories)
    above, below = axes
    for side, label, colour in ((old, "control", _CONTROL), (new, "child", _CHILD)):
        stride = max(1, len(side.steps) // _MOST_POINTS)
        above.plot(side.steps[::stride], side.values[::stride], linewidth=0.8, color=colour, label=label)
    above.set_ylabel(word)
    above.legend(loc="upper right", fontsize=7)
    pairs = pair_up(old, new, around, every=None, warmup_rows=0)
    stride = max(1, len(pairs.steps) // _MOST_POINTS)
    with np.errstate(all="ignore"):
        deltas = pairs.child - pairs.control
    below.plot(pairs.steps[::stride], deltas[::stride], linewidth=0.7, color=_DELTA)
    below.axhline(0, color="#9e9e9e", linewidth=0.7)
    below.set_ylabel("difference")
    if judged is not None:
        above.set_title(f"{judged.gate}: {judged.outcome.value}", fontsize=8, color=_OF_OUTCOME[judged.outcome])
        if not judged.gate.is_relative:
            limit = -judged.gate.tolerance if judged.gate.direction.value == "down" else judged.gate.tolerance
            below.axhline(limit, color=_OF_OUTCOME[judged.outcome], linewidth=0.8, linestyle="--")
    for axis in axes:
        axis.axvspan(window.first_step, window.last_step, color="#fff59d", alpha=0.4, linewidth=0)
        axis.grid(alpha=0.3)


def _newest(history: History, word: str, window: Window, around: Window) -> Side:
    """Return what is compared, and what the same execution logged around it."""
    found = history.executions(window.first_step, window.last_step)
    return take_side(history.figures.get(word, NOTHING), found[-1] if found else 0, around)
