"""What comparing two runs of a million steps costs, relative to the plainest numpy that joins and subtracts them."""

import time

import numpy as np

from benchmarks.ratios import compare
from bot.model.gate import parse_gate
from bot.model.series import Figure
from bot.model.trial import Window
from checks.trial.gates import judge_gate

_STEPS = 1_000_000
_GATES = tuple(map(parse_gate, ("loss mean <= +0.002", "loss max <= +0.5", "loss p95 <= +0.01")))


def run(seed: int) -> Figure:
    """Return a history with a gap in every hundred rows, a repeated row in every fifty, and two attempts."""
    random = np.random.default_rng(seed)
    steps = np.flatnonzero(random.random(_STEPS) > 0.01)  # noqa: PLR2004 - as said above
    steps = np.sort(np.concatenate((steps, random.choice(steps, _STEPS // 50, replace=False))))
    losses = 2 + np.random.default_rng(0).random(_STEPS)[steps] + 0.001 * seed
    executions = np.where(random.random(len(steps)) > 0.001, 1, 0)  # noqa: PLR2004 - a few rows of an older attempt
    return Figure(steps, executions, losses)


def plainly() -> float:
    """Return the seconds of numpy's own way: unique steps, their intersection, the mean and the quantile."""
    began = time.perf_counter()
    one, first = np.unique(control.steps, return_index=True)
    other, second = np.unique(child.steps, return_index=True)
    _, mine, theirs = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    deltas = child.values[second][theirs] - control.values[first][mine]
    deltas.mean()
    deltas.max()
    np.quantile(deltas, 0.95)
    return time.perf_counter() - began


def judged() -> float:
    """Return the seconds of one gate, the mean of three kinds."""
    began = time.perf_counter()
    for gate in _GATES:
        judge_gate(gate, (control, 1), (child, 1), window, alpha=0.05)
    return (time.perf_counter() - began) / len(_GATES)


control, child = run(1), run(2)
window = Window(first_step=0, steps=_STEPS)

if __name__ == "__main__":
    compare(f"judging one gate over {_STEPS:,} steps, relative to plain numpy", plainly, judged, rounds=7)
