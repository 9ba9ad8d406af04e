"""Draws two runs over one another: each figure of both, and below the important ones the difference at equal steps."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bot.errors import ConfigurationError
from bot.model.gate import Direction, Reduce
from bot.model.series import NOTHING, Figure, Floats, History, Ints
from bot.model.trial import Comparison, Judged, Outcome, Window
from bot.render.trial import OUTCOME_SIGNS, compared_execution
from bot.replay.panels import shown_figures
from checks.trial.rows import Side, pair_up, take_side

MOST_PANELS = 14
_MOST_POINTS = 20_000
_CONTROL, _CHILD, _DELTA, _FAINT = "#78909c", "#1565c0", "#455a64", "#b0bec5"
_WINDOW, _ALLOWED = "#ffecb3", "#a5d6a7"
_OF_OUTCOME = {Outcome.PASS: "#2e7d32", Outcome.FAIL: "#c62828", Outcome.CANNOT_TELL: "#b26a00"}
_LARGE = 10_000
_LARGEST, _SMALLEST = 1e100, 1e-100
_WIDTH_IN, _DPI = 7.2, 150
_STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#90a4ae",
    "axes.formatter.useoffset": False,
}


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
    if not control.figures.keys() & child.figures.keys():
        raise ConfigurationError((f"--plot {path}: the two files share no figure that could be drawn",))
    title = f"steps {found.window.first_step} to {found.window.last_step}: {found.outcome.value}"
    try:
        _draw(control, child, found.window, found.gates, title, file=path)
    except (OSError, ValueError) as error:
        raise ConfigurationError((f"--plot {path}: {error}",)) from error


def overlay_png(control: History, child: History, window: Window, gates: tuple[Judged, ...], title: str) -> bytes:
    """Return a picture of the window and as much around it; takes a second or two, so call it off the loop.

    Args:
        control: what the old run logged.
        child: what the new run logged; its figures may be none yet.
        window: the steps that are compared; they are shaded.
        gates: what was judged; empty before the child's first step.
        title: of the whole.
    """
    file = io.BytesIO()
    _draw(control, child, window, gates, title, file=file, kind="png")
    return file.getvalue()


def _draw(
    control: History,
    child: History,
    window: Window,
    gates: tuple[Judged, ...],
    title: str,
    *,
    file: Path | io.BytesIO,
    kind: str | None = None,
) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - it takes a second to import
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - as above
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - as above

    words = shown_figures(control, child, (each.gate.metric for each in gates), MOST_PANELS)
    words = words or tuple(sorted(control.figures.keys() | child.figures.keys()))[:MOST_PANELS]
    views = tuple(_view(word, (control, child), window, gates) for word in words)
    # Its settings are the process's; a second picture drawn at the same time takes the same ones.
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type] # matplotlib's own stubs name every key
        figure = Canvas(layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, parse_math=False, fontsize=11, fontweight="bold")
        _fill(figure, views, window)
        figure.savefig(file, dpi=_DPI, format=kind)


@dataclass(frozen=True, eq=False)
class _View:
    """One figure of both runs, as it is drawn."""

    word: str
    judged: Judged | None
    old: Side
    new: Side
    others: tuple[tuple[Ints, Floats], ...]
    """What attempts logged that are not compared."""
    steps: Ints
    deltas: Floats
    """The child less the control, at the steps that both have."""
    in_window: tuple[Ints, Floats]
    scale: float
    """What a share of one is in the figure's own unit: the control's mean over the window."""

    @property
    def has_difference(self) -> bool:
        """Whether the difference is drawn: of the loss and what gates are about, once there is any."""
        return bool(self.steps.size) and (self.judged is not None or self.word == "loss")


def _view(word: str, histories: tuple[History, History], window: Window, gates: tuple[Judged, ...]) -> _View:
    first = max(0, window.first_step - window.steps)
    around = Window(first_step=first, steps=window.last_step + window.steps - first + 1)
    executions = [_newest(each, window, around) for each in histories]
    figures = [each.figures.get(word, NOTHING) for each in histories]
    figures = [_drawable(each) for each in figures]
    old, new = (take_side(figure, which, around) for figure, which in zip(figures, executions, strict=True))
    others = []
    for figure, which in zip(figures, executions, strict=True):
        inside = (figure.steps >= around.first_step) & (figure.steps <= around.last_step)
        for execution in np.unique(figure.executions[inside]).tolist():
            if execution != which:
                mine = inside & (figure.executions == execution)
                others.append((figure.steps[mine], figure.values[mine]))
    pairs = pair_up(old, new, around, every=None, warmup_rows=0)
    with np.errstate(all="ignore"):
        deltas = pairs.child - pairs.control
        inside = (pairs.steps >= window.first_step) & (pairs.steps <= window.last_step)
        scale = abs(float(pairs.control[inside].mean())) if inside.any() else math.nan
    return _View(
        word=word,
        judged=next((each for each in gates if each.gate.metric == word), None),
        old=old,
        new=new,
        others=tuple(others),
        steps=pairs.steps,
        deltas=deltas,
        in_window=(pairs.steps[inside], deltas[inside]),
        scale=scale,
    )


def _drawable(figure: Figure) -> Figure:
    """Return a figure whose values an axis can hold: what is beyond all sense is marked as infinite is."""
    size = np.abs(figure.values)
    if not (size > _LARGEST).any() and not ((size > 0) & (size < _SMALLEST)).any():
        return figure
    values = np.where(size > _LARGEST, np.inf, np.where(size < _SMALLEST, 0.0, figure.values))
    return Figure(figure.steps, figure.executions, values)


def _newest(history: History, window: Window, around: Window) -> int:
    """Return which attempt is compared; before the window has any row, the newest around it."""
    found = compared_execution(history, window)
    return (compared_execution(history, around) or 0) if found is None else found


def _fill(figure: Any, views: Sequence[_View], window: Window) -> None:
    """Lay the panels out: the first figure over the whole width, the others two in a row."""
    if not views:
        figure.set_size_inches(_WIDTH_IN, 2.5)
        axis = figure.subplots()
        axis.text(0.5, 0.5, "neither run has logged a figure yet", ha="center", transform=axis.transAxes)
        axis.set_axis_off()
        return
    rows = [views[:1], *(views[start : start + 2] for start in range(1, len(views), 2))]
    heights = [
        (3.4 if not number else 1.7) + 1.1 * any(each.has_difference for each in row) for number, row in enumerate(rows)
    ]
    figure.set_size_inches(_WIDTH_IN, 0.5 + sum(heights))
    for number, (part, row) in enumerate(zip(_parts(figure, heights), rows, strict=True)):
        cells = part.subfigures(1, len(row) if number == 0 else 2, squeeze=False)[0]
        for cell, view in zip(cells, row, strict=False):
            _draw_cell(cell, view, window, is_first=number == 0)


def _parts(figure: Any, heights: Sequence[float]) -> Sequence[Any]:
    found: Sequence[Any] = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    return found


def _draw_cell(cell: Any, view: _View, window: Window, *, is_first: bool) -> None:
    if view.has_difference:
        above, below = cell.subplots(2, 1, sharex=True, height_ratios=(2, 1.2) if is_first else (1, 1))
        _draw_difference(below, view)
        axes = [above, below]
    else:
        above = cell.subplots()
        axes = [above]
    _draw_both(above, view)
    for axis in axes:
        axis.axvspan(window.first_step - 0.5, window.last_step + 0.5, color=_WINDOW, alpha=0.55, linewidth=0, zorder=0)
        axis.grid(alpha=0.25, linewidth=0.6)
        axis.locator_params(axis="x", nbins=8 if is_first else 4, integer=True)
        axis.margins(x=0.01)
        _name_large_numbers(axis)
    if is_first:
        axes[-1].set_xlabel("step")
        above.plot([], [], color=_WINDOW, linewidth=6, label=f"window, {window.steps} steps")
        cell.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)


def _name_large_numbers(axis: Any) -> None:
    """Write 1.24M instead of a 1.24 whose millions stand in the corner."""
    from matplotlib.ticker import EngFormatter  # noqa: PLC0415 - it takes a second to import

    if max(map(abs, axis.get_ylim())) >= _LARGE:
        axis.yaxis.set_major_formatter(EngFormatter(sep=""))


def _draw_both(axis: Any, view: _View) -> None:
    for number, (steps, values) in enumerate(view.others):
        label = "attempts that are not compared" if not number else None
        axis.plot(*_thinned(steps, values), linewidth=1.1, color=_FAINT, linestyle=":", label=label)
    for side, label, colour, width in ((view.old, "control", _CONTROL, 1.4), (view.new, "child", _CHILD, 0.9)):
        if side.steps.size:
            marker = "." if side.steps.size < 60 else None  # noqa: PLR2004 - a few points are seen as points
            axis.plot(
                *_thinned(side.steps, side.values),
                linewidth=width,
                color=colour,
                label=label,
                marker=marker,
                markersize=3,
            )
            _mark_lost(axis, side, colour)
    judged = view.judged
    if judged is None:
        axis.set_title(view.word, loc="left", parse_math=False)
    else:
        axis.set_title(
            f"{OUTCOME_SIGNS[judged.outcome]} {judged.gate}",
            loc="left",
            color=_OF_OUTCOME[judged.outcome],
            fontweight="bold" if judged.outcome is Outcome.FAIL else "normal",
            parse_math=False,
        )
    _focus(axis, np.concatenate((view.old.values, view.new.values)))
    if not view.new.steps.size:
        axis.text(
            0.99, 0.04, "no step of the child yet", ha="right", fontsize=8, color=_CHILD, transform=axis.transAxes
        )


def _mark_lost(axis: Any, side: Side, colour: str) -> None:
    """Mark the steps whose value is no number: a line that merely breaks there is easily missed."""
    lost = side.steps[~np.isfinite(side.values)]
    if lost.size:
        axis.plot(
            lost[:200],
            np.full(min(lost.size, 200), 0.97),
            linestyle="",
            marker="x",
            color=colour,
            markersize=5,
            transform=axis.get_xaxis_transform(),
            label="NaN or infinite",
        )


def _draw_difference(axis: Any, view: _View) -> None:
    steps, deltas = view.in_window
    axis.axhline(0, color="#90a4ae", linewidth=0.8)
    axis.plot(*_thinned(view.steps, view.deltas), linewidth=0.6, color=_FAINT, marker=".", markersize=2)
    levels = [deltas[np.isfinite(deltas)]]
    judged = view.judged
    if judged is not None:
        levels.append(_draw_allowed(axis, view, judged))
    if deltas.size and (judged is None or judged.gate.reduce is Reduce.MEAN):
        with np.errstate(all="ignore"):
            so_far = np.cumsum(deltas) / np.arange(1, deltas.size + 1)
        axis.plot(*_thinned(steps, so_far), linewidth=1.5, color=_DELTA)
        axis.annotate(
            " mean so far", (steps[-1], so_far[-1]), va="center", fontsize=7, color=_DELTA, annotation_clip=True
        )
    _focus(axis, np.concatenate(levels), always=levels[-1] if judged is not None else None)
    axis.set_ylabel("difference")


def _draw_allowed(axis: Any, view: _View, judged: Judged) -> Floats:
    """Shade what the gate allows, and return its limits in the figure's own unit."""
    gate = judged.gate
    size = gate.tolerance * (view.scale if gate.is_relative else 1)
    if not math.isfinite(size):
        return np.empty(0)
    low, high = {
        Direction.UP: (None, size),
        Direction.DOWN: (-size, None),
        Direction.EITHER: (-size, size),
    }[gate.direction]
    limits = [each for each in (low, high) if each is not None]
    for limit in limits:
        axis.axhline(limit, color=_OF_OUTCOME[judged.outcome], linewidth=1.1, linestyle="--")
    far = 1e3 * max(abs(size), float(np.max(np.abs(view.deltas[np.isfinite(view.deltas)]), initial=0)), 1e-300)
    if math.isfinite(far):
        axis.axhspan(
            -far if low is None else low, far if high is None else high, color=_ALLOWED, alpha=0.25, linewidth=0
        )
    return np.array(limits)


def _focus(axis: Any, values: Floats, always: Floats | None = None) -> None:
    """Show where nearly all of the values are: one spike must not flatten the rest; it runs out at the edge."""
    known = values[np.isfinite(values)]
    if not known.size:
        return
    low, high = np.quantile(known, (0.01, 0.99))
    with np.errstate(all="ignore"):
        reach = 0.6 * (high - low)
        low, high = max(known.min(), low - reach), min(known.max(), high + reach)
        if always is not None and always.size:
            low, high = min(low, always.min()), max(high, always.max())
        room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
        if math.isfinite(low - room) and math.isfinite(high + room):
            axis.set_ylim(low - room, high + room)


def _thinned(steps: Ints, values: Floats) -> tuple[Ints, Floats]:
    stride = max(1, len(steps) // _MOST_POINTS)
    return steps[::stride], values[::stride]
