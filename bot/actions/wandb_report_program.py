"""Makes one report in W&B, and ends: a program of its own, so that the SDK and its helper process can be cut off.

Run by path as ``python -P wandb_report_program.py ORDER`` with the key in ``WANDB_API_KEY``; it imports nothing of
Hero's. ORDER is JSON: entity, project, title, text, runs (label, id), grids (heading, x, range, metrics), seconds. On
success it prints one line of JSON with the report's address and exits 0.
"""

import importlib
import json
import signal
import sys
from typing import Any

_COLUMNS = 24
"""A grid of panels is so many units wide."""
_WIDTH, _HEIGHT = 8, 6


def main(order: dict[str, Any]) -> None:
    signal.alarm(order["seconds"])
    wr = importlib.import_module("wandb_workspaces.reports.v2")
    blocks = [wr.P(line) for line in order["text"]]
    for grid in order["grids"]:
        panels = [_panel(wr, grid, n, metric) for n, metric in enumerate(grid["metrics"])]
        blocks += [wr.H2(grid["heading"]), wr.PanelGrid(runsets=_run_sets(wr, order), panels=panels)]
    report = wr.Report(
        entity=order["entity"], project=order["project"], title=order["title"], width="fluid", blocks=blocks
    )
    report.save()
    sys.stdout.write(json.dumps({"url": report.url}) + "\n")


def _run_sets(wr: Any, order: dict[str, Any]) -> list[Any]:
    return [
        wr.Runset(entity=order["entity"], project=order["project"], name=run["label"], filters=f"ID in [{run['id']!r}]")
        for run in order["runs"]
    ]


def _panel(wr: Any, grid: dict[str, Any], n: int, metric: str) -> Any:
    """Return a plot that shows every row as it was logged: nothing is smoothed, and no outlier is left out."""
    across = _COLUMNS // _WIDTH
    return wr.LinePlot(
        title=metric,
        x=grid["x"],
        y=[metric],
        range_x=tuple(grid["range"]),
        smoothing_type="none",
        ignore_outliers=False,
        layout=wr.Layout(x=n % across * _WIDTH, y=n // across * _HEIGHT, w=_WIDTH, h=_HEIGHT),
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
