"""Draws a replayed file: its series over steps, with the incidents marked."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bot.errors import ConfigurationError
from bot.replay.player import Replay, Told
from bot.replay.reading import Logged

_MOST_POINTS = 20_000
"""Of a longer file so many points are drawn, evenly spaced; more cannot be told apart."""
_PANELS = ("loss", "grad_norm", "tokens_per_second", "step_time_s")
_OF_CHECK = {"loss.spike": ("loss",), "resume.mismatch": ("loss",), "gradients.explosion": ("grad_norm",)}
_SPEED = ("tokens_per_second", "step_time_s")
_COLOURS = {"critical": "#c62828", "warning": "#ef8e00", "info": "#1565c0"}


def draw(name: str, rows: Iterable[Logged], found: Replay, path: Path) -> None:
    """Write the plot of one file.

    Args:
        name: of the file, for the title.
        rows: of the file, once more.
        found: what its replay found.
        path: of the picture; its suffix says which format.

    Raises:
        ConfigurationError: the picture cannot be written.
    """
    import matplotlib as mpl  # noqa: PLC0415 - it takes a second to import, and only a plot needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above, and after the backend is chosen

    series = _series(rows, math.ceil(found.rows / _MOST_POINTS))
    panels = [word for word in _PANELS if word in series] or sorted(series)[:1]
    figure, axes = plt.subplots(
        len(panels), 1, sharex=True, squeeze=False, figsize=(11, 2.8 * len(panels) + 1), layout="constrained"
    )
    try:
        for axis, word in zip(axes[:, 0], panels, strict=True):
            _panel(axis, word, series[word], found.incidents)
        axes[-1, 0].set_xlabel("step")
        figure.suptitle(Path(name).name, parse_math=False)
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise ConfigurationError((f"--plot {path}: {error}",)) from error
    finally:
        plt.close(figure)


def _series(rows: Iterable[Logged], stride: int) -> dict[str, tuple[list[float], list[float]]]:
    """Return steps and values of each figure; where an attempt begins the line is broken."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    attempt: int | None = None
    for number, logged in enumerate(rows):
        if number % max(1, stride):
            continue
        for word, value in logged.row.values.items():
            steps, values = series.setdefault(word, ([], []))
            if attempt is not None and logged.attempt != attempt:
                steps.append(math.nan)
                values.append(math.nan)
            steps.append(logged.row.step)
            values.append(value if math.isfinite(value) else math.nan)
        attempt = logged.attempt
    return series


def _panel(axis: Any, word: str, points: tuple[list[float], list[float]], incidents: tuple[Told, ...]) -> None:
    steps, values = points
    axis.plot(steps, values, linewidth=0.7, color="#37474f", marker="." if len(steps) < 200 else None)  # noqa: PLR2004 - few
    finite = [value for value in values if math.isfinite(value)]
    if finite and min(finite) > 0 and max(finite) > 5 * min(finite):
        axis.set_yscale("log")
    axis.set_ylabel(word)
    axis.grid(alpha=0.3)
    last = max((step for step in steps if math.isfinite(step)), default=0)
    for number, told in enumerate(told for told in incidents if word in _panels_of(told)):
        colour = _COLOURS[told.severity.value]
        end = last if told.resolved_step is None else told.resolved_step
        axis.axvspan(told.first_step, max(end, told.first_step), color=colour, alpha=0.15, linewidth=0)
        axis.axvline(told.opened_step, color=colour, linewidth=1)
        axis.annotate(
            told.check,
            (told.opened_step, 0.97 - 0.32 * (number % 3)),  # incidents of one moment are read one below the other
            xycoords=("data", "axes fraction"),
            rotation=90,
            fontsize=7,
            color=colour,
            verticalalignment="top",
            horizontalalignment="right",
        )


def _panels_of(told: Told) -> tuple[str, ...]:
    if told.check == "throughput.collapse":
        return _SPEED
    return _OF_CHECK.get(told.check, _PANELS)
