"""Draws a run's series: as a small picture for a message or a file, and as one line of text where none can be shown.

Drawing takes up to a second, and importing matplotlib as long: call it off the loop. Nothing here is shared between two
pictures, so that two threads may draw at once.
"""

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from bot.model.chart import Chart, Mark

_COLOURS = {"critical": "#c62828", "warning": "#ef8e00", "info": "#1565c0"}
_FEW = 200
_BARS = "▁▂▃▄▅▆▇█"
_SPEED = "tokens/s"
_PANELS = ("loss", _SPEED)

type Series = tuple[Sequence[float], Sequence[float]]
"""Steps and values; where both are NaN the line is broken."""


def chart_png(chart: Chart) -> bytes:
    """Return a PNG of some 900 by 500 pixels: loss above throughput, over steps, incidents marked."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - it takes a second to import
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    series = {word: each for word, each in _series_of(chart).items() if any(map(math.isfinite, each[1]))}
    figure = Figure(figsize=(9, 1 + 2.2 * max(1, len(series))), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots(max(1, len(series)), 1, sharex=True, squeeze=False)
    for axis, (word, points) in zip(axes[:, 0], series.items(), strict=False):
        draw_panel(axis, word, points, chart.marks)
    if not series:
        axes[0, 0].text(0.5, 0.5, "no figures are kept yet", ha="center", transform=axes[0, 0].transAxes)
    axes[-1, 0].set_xlabel("step")
    figure.suptitle(str(chart.run_id), parse_math=False)
    file = io.BytesIO()
    canvas.print_png(file)  # type: ignore[no-untyped-call] # matplotlib's own
    return file.getvalue()


def draw_panel(axis: Any, word: str, points: Series, marks: Iterable[Mark]) -> None:
    """Draw one series with what happened; on a logarithmic scale where that shows more."""
    steps, values = points
    axis.plot(steps, values, linewidth=0.7, color="#37474f", marker="." if len(steps) < _FEW else None)
    finite = [value for value in values if math.isfinite(value)]
    if finite and min(finite) > 0 and max(finite) > 5 * min(finite):
        axis.set_yscale("log")
    axis.set_ylabel(word)
    axis.grid(alpha=0.3)
    for number, mark in enumerate(marks):
        colour = _COLOURS[mark.severity.value]
        axis.axvspan(mark.from_step, max(mark.to_step, mark.from_step), color=colour, alpha=0.15, linewidth=0)
        axis.axvline(mark.step, color=colour, linewidth=1)
        axis.annotate(
            mark.label,
            (mark.step, 0.97 - 0.32 * (number % 3)),  # marks of one moment are read one below the other
            xycoords=("data", "axes fraction"),
            rotation=90,
            fontsize=7,
            color=colour,
            verticalalignment="top",
            horizontalalignment="right",
        )


def spark_lines(chart: Chart, width: int = 40) -> tuple[str, ...]:
    """Return each series as one line of text, e.g. ``loss ▇▅▃▂▁ 3.41 → 2.31 (steps 0 to 8123)``."""
    lines = []
    for word, (steps, values) in _series_of(chart).items():
        known = [(step, value) for step, value in zip(steps, values, strict=True) if math.isfinite(value)]
        if not known:
            lines.append(f"{word}: nothing is kept yet")
            continue
        # A throughput is read from zero: its small waves say nothing, its collapse everything.
        floor = 0.0 if word == _SPEED else None
        bars = _bars([value for _, value in known], width, floor)
        first, last = known[0], known[-1]
        span = f"steps {first[0]:.0f} to {last[0]:.0f}"
        lines.append(f"{word} {bars} {first[1]:,.4g} → {last[1]:,.4g} ({span})")
    return tuple(lines)


def _bars(values: list[float], width: int, floor: float | None) -> str:
    """The mean of so many neighbouring values a character, from the lowest of them or from a floor."""
    size = max(1, math.ceil(len(values) / width))
    means = [sum(part) / len(part) for part in (values[i : i + size] for i in range(0, len(values), size))]
    low, high = min(means) if floor is None else min(floor, *means), max(means)
    if not math.isfinite(high - low) or high == low:
        return _BARS[3] * len(means)
    return "".join(_BARS[round((mean - low) / (high - low) * (len(_BARS) - 1))] for mean in means)


def _series_of(chart: Chart) -> dict[str, tuple[list[float], list[float]]]:
    """Return both series; where the step goes back, because the run began anew from a checkpoint, the line breaks."""
    series: dict[str, tuple[list[float], list[float]]] = {word: ([], []) for word in _PANELS}
    before: int | None = None
    for step, *figures in chart.points:
        for word, value in zip(_PANELS, figures, strict=True):
            steps, values = series[word]
            if before is not None and step <= before:
                steps.append(math.nan)
                values.append(math.nan)
            steps.append(step)
            values.append(math.nan if value is None else value)
        before = step
    return series
