"""Made-up runs: a loss whose swings come from the batches, and are common to both sides."""

import numpy as np

from bot.model.gate import parse_gate
from bot.model.series import Figure, Floats, Ints
from bot.model.trial import Judged, Window
from checks.trial.gates import judge_gate

FIRST = 1000
STEPS = np.arange(FIRST, FIRST + 200)
WINDOW = Window(first_step=FIRST)


def batches(seed: int = 0, size: int = 200, swing: float = 0.06) -> Floats:
    """Return losses as the batches make them: they swing thirty times as much as a change is meant to matter."""
    return 2.3 + swing * np.random.default_rng(seed).standard_normal(size)


def noise(seed: int, size: int = 200, *, sd: float = 0.002, r: float = 0.0, trials: int = 1) -> Floats:
    """Return noise of a run's own, with a first-order autocorrelation, shape (trials, size)."""
    fresh = np.random.default_rng(seed).standard_normal((trials, size))
    out = np.empty_like(fresh)
    out[:, 0] = fresh[:, 0]
    for i in range(1, size):
        out[:, i] = r * out[:, i - 1] + np.sqrt(1 - r * r) * fresh[:, i]
    return sd * out


def figure(values: Floats, steps: Ints = STEPS, execution: int = 0) -> Figure:
    return Figure(steps, np.full(len(steps), execution, np.int64), values)


def judge(gate: str, control: Figure | None, child: Figure | None, window: Window = WINDOW) -> Judged:
    return judge_gate(parse_gate(gate), (control, 0), (child, 0), window, alpha=0.05)
