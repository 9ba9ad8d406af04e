"""Draws a run's series: as a small picture for a message or a file, and as one line of text where none can be shown.

Drawing takes up to a second, and importing matplotlib as long: call it off the loop. Nothing here is shared between two
pictures, so that two threads may draw at once.
"""

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from bot.model.chart import Chart, Mark
from bot.model.curve import Point
from bot.render.text import clean

_COLOURS = {"critical": "#c62828", "warning": "#ef8e00", "info": "#1565c0"}
_ONE, _FIRST, _SECOND = "#37474f", "#78909c", "#1565c0"
"""The line of a run alone; those of two runs over one another, told apart by lightness as well as by colour."""
_FEW = 200
_BARS = "▁▂▃▄▅▆▇█"
_SPEED = "tokens/s"
_PANELS = ("loss", _SPEED)
_LONGEST_LABEL, _LONGEST_TITLE = 40, 400

type Series = tuple[Sequence[float], Sequence[float]]
"""Steps and values; where both are NaN the line is broken."""


def chart_png(chart: Chart) -> bytes:
    """Return a PNG of some 900 by 500 pixels: loss above throughput, over steps, incidents marked.

    With another run beside it both are drawn over one another, and below the loss the difference at equal steps.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - it takes a second to import
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    panels = _panels_of(chart)
    figure = Figure(figsize=(9, 1 + 2.2 * max(1, len(panels))), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots(max(1, len(panels)), 1, sharex=True, squeeze=False)
    for axis, (word, lines) in zip(axes[:, 0], panels.items(), strict=False):
        _draw_lines(axis, word, lines, chart.marks)
    if not panels:
        axes[0, 0].text(0.5, 0.5, "no figures are kept yet", ha="center", transform=axes[0, 0].transAxes)
    axes[-1, 0].set_xlabel("step")
    figure.suptitle(chart_title(chart), parse_math=False)
    file = io.BytesIO()
    canvas.print_png(file)  # type: ignore[no-untyped-call] # matplotlib's own
    return file.getvalue()


def chart_title(chart: Chart) -> str:
    """Return what the picture is of: a run, or one held against another."""
    title = str(chart.run_id) if chart.beside is None else f"{chart.beside.label} against {chart.label}"
    return " ".join(clean(title, _LONGEST_TITLE).split())


def chart_words(chart: Chart) -> str:
    """Return what the picture shows, for who cannot see it."""
    if chart.beside is None:
        return f"Loss and throughput of {chart.run_id} over steps, with what is wrong marked"
    return f"Loss and throughput over steps of {chart_title(chart)}, and the difference of the losses at equal steps"


type Lines = tuple[tuple[str, str, Series], ...]
"""Label, colour and points of each line of a panel."""


def _panels_of(chart: Chart) -> dict[str, Lines]:
    """Return the lines of each panel that has any finite value, from the top."""
    mine = _series_of(chart.points)
    if chart.beside is None:
        lines: dict[str, Lines] = {word: (("", _ONE, each),) for word, each in mine.items()}
    else:
        theirs = _series_of(chart.beside.points)
        labels = (_label(chart.label), _label(chart.beside.label))
        lines = {word: ((labels[0], _FIRST, mine[word]), (labels[1], _SECOND, theirs[word])) for word in _PANELS}
        lines = {"loss": lines["loss"], "loss, difference": (("", _ONE, _difference(chart)),), _SPEED: lines[_SPEED]}
    return {
        word: each for word, each in lines.items() if any(math.isfinite(value) for line in each for value in line[2][1])
    }


def _label(text: str) -> str:
    """Return a label that fits, and that matplotlib does not hide: what begins with ``_`` stands in no legend."""
    return " ".join(clean(text, _LONGEST_LABEL).split()).lstrip("_")


def _difference(chart: Chart) -> Series:
    """Return the second run's loss less the first one's, at the steps that both have; of a step the last row counts."""
    if chart.beside is None:
        return [], []
    mine, theirs = ({step: loss for step, loss, _ in points} for points in (chart.points, chart.beside.points))
    steps = sorted(mine.keys() & theirs.keys())
    pairs = ((mine[step], theirs[step]) for step in steps)
    return steps, [math.nan if one is None or other is None else other - one for one, other in pairs]


def _draw_lines(axis: Any, word: str, lines: Lines, marks: Iterable[Mark]) -> None:
    """Draw a panel of one run or of two; a difference is read from zero."""
    first, *others = lines
    draw_panel(axis, word, first[2], marks, label=first[0], colour=first[1])
    if word.endswith("difference"):
        axis.set_yscale("linear")
        axis.axhline(0, color="#9e9e9e", linewidth=0.8)
    for label, colour, (steps, values) in others:
        marker = "." if len(steps) < _FEW else None
        axis.plot(steps, values, linewidth=0.9, color=colour, label=label, marker=marker, zorder=3)
    if others:
        for text in axis.legend(loc="upper right", fontsize=8, framealpha=0.8).get_texts():
            text.set_parse_math(False)


def draw_panel(
    axis: Any, word: str, points: Series, marks: Iterable[Mark], *, label: str = "", colour: str = _ONE
) -> None:
    """Draw one series with what happened; on a logarithmic scale where that shows more."""
    steps, values = points
    axis.plot(steps, values, linewidth=0.7, color=colour, label=label, marker="." if len(steps) < _FEW else None)
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
    """Return each series as one line of text, e.g. ``loss ▇▅▃▂▁ 3.41 → 2.31 (steps 0 to 8123)``.

    Of two runs each has its line, and the difference of their losses has one.
    """
    mine = _series_of(chart.points)
    if chart.beside is None:
        return tuple(_spark_line(word, word, each, width) for word, each in mine.items())
    theirs = _series_of(chart.beside.points)
    named = ((_label(chart.label), mine), (_label(chart.beside.label), theirs))
    lines = [_spark_line(word, f"{word}, {label}", side[word], width) for word in _PANELS for label, side in named]
    return (*lines[:2], _difference_line(_difference(chart), width), *lines[2:])


def _spark_line(word: str, name: str, points: Series, width: int) -> str:
    known = _finite(points)
    if not known:
        return f"{name}: nothing is kept yet"
    # A throughput is read from zero: its small waves say nothing, its collapse everything.
    floor = 0.0 if word == _SPEED else None
    bars = _bars([value for _, value in known], width, floor)
    first, last = known[0], known[-1]
    span = f"steps {first[0]:.0f} to {last[0]:.0f}"
    return f"{name} {bars} {first[1]:,.4g} → {last[1]:,.4g} ({span})"


def _difference_line(points: Series, width: int) -> str:
    known = _finite(points)
    if not known:
        return "loss, difference: no step of both yet"
    values = [value for _, value in known]
    step, largest = max(known, key=lambda each: abs(each[1]))
    mean = sum(values) / len(values)
    return f"loss, difference {_bars(values, width, None)} mean {mean:+.4g}, largest {largest:+.4g} at step {step:.0f}"


def _finite(points: Series) -> list[tuple[float, float]]:
    return [(step, value) for step, value in zip(*points, strict=True) if math.isfinite(value)]


def _bars(values: list[float], width: int, floor: float | None) -> str:
    """The mean of so many neighbouring values a character, from the lowest of them or from a floor."""
    size = max(1, math.ceil(len(values) / width))
    means = [sum(part) / len(part) for part in (values[i : i + size] for i in range(0, len(values), size))]
    low, high = min(means) if floor is None else min(floor, *means), max(means)
    if not math.isfinite(high - low) or high == low:
        return _BARS[3] * len(means)
    return "".join(_BARS[round((mean - low) / (high - low) * (len(_BARS) - 1))] for mean in means)


def _series_of(points: Sequence[Point]) -> dict[str, tuple[list[float], list[float]]]:
    """Return both series; where the step goes back, because the run began anew from a checkpoint, the line breaks.

    A figure that fewer than half of the rows have is logged at every so many steps: its line goes on over the others.
    """
    series: dict[str, tuple[list[float], list[float]]] = {word: ([], []) for word in _PANELS}
    sparse = [sum(point[place] is not None for point in points) < len(points) / 2 for place in (1, 2)]
    before: int | None = None
    for step, *figures in points:
        for word, value, is_sparse in zip(_PANELS, figures, sparse, strict=True):
            steps, values = series[word]
            if before is not None and step <= before:
                steps.append(math.nan)
                values.append(math.nan)
            if value is not None or not is_sparse:
                steps.append(step)
                values.append(math.nan if value is None else value)
        before = step
    return series
