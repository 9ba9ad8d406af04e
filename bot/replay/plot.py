"""Draws a replayed file: its series over steps, with the incidents marked."""

import math
from collections.abc import Iterable
from pathlib import Path

from bot.errors import ConfigurationError
from bot.model.chart import Mark
from bot.render.chart import draw_panel
from bot.replay.player import Replay, Told
from bot.replay.reading import Logged

_MOST_POINTS = 20_000
"""Of a longer file so many points are drawn, evenly spaced; more cannot be told apart."""
_PANELS = ("loss", "grad_norm", "tokens_per_second", "step_time_s")
_OF_CHECK = {"loss.spike": ("loss",), "resume.mismatch": ("loss",), "gradients.explosion": ("grad_norm",)}
_SPEED = ("tokens_per_second", "step_time_s")


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
            draw_panel(axis, word, series[word], _marks(word, series[word], found.incidents))
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


def _marks(word: str, points: tuple[list[float], list[float]], incidents: tuple[Told, ...]) -> tuple[Mark, ...]:
    """Return the incidents that belong into a panel; one that goes on reaches to the last step."""
    last = max((int(step) for step in points[0] if math.isfinite(step)), default=0)
    return tuple(
        Mark(
            label=told.check,
            severity=told.severity,
            step=told.opened_step,
            from_step=told.first_step,
            to_step=last if told.resolved_step is None else told.resolved_step,
        )
        for told in incidents
        if word in _panels_of(told)
    )


def _panels_of(told: Told) -> tuple[str, ...]:
    if told.check == "throughput.collapse":
        return _SPEED
    return _OF_CHECK.get(told.check, _PANELS)
