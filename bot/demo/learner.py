"""What the demo's trainer trains: a small network that learns which symbol follows two others. Pure, and repeatable.

The text comes from a random but biased grammar, so that there is something to learn: the loss falls from ln(24) = 3.18
towards the grammar's own entropy, fast at first and then slowly, as losses do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

type Floats = NDArray[np.float64]
type Symbols = NDArray[np.int64]

SYMBOLS = 24
WIDTH = 12
HIDDEN = 64
BATCH = 512
TEXT_SYMBOLS = 20_000
PEAK_LR = 2e-2
WARMUP_STEPS = 10
_SHARPNESS = 2.5
_DECAY, _DECAY_SQUARED, _EPSILON = 0.9, 0.99, 1e-8


@dataclass(frozen=True)
class StepResult:
    """What one optimizer step came to."""

    loss: float
    """Mean cross entropy of the batch before the step, in nats a symbol."""
    grad_norm: float
    """Global L2 norm."""
    lr: float


def make_text(seed: int) -> Symbols:
    """Return a text of the grammar that belongs to the seed; shape (TEXT_SYMBOLS,)."""
    rng = np.random.default_rng([seed, 0])
    odds = np.exp(_SHARPNESS * rng.standard_normal((SYMBOLS, SYMBOLS)))
    upto = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
    draws = rng.random(TEXT_SYMBOLS)
    text = np.zeros(TEXT_SYMBOLS, dtype=np.int64)
    for place in range(2, TEXT_SYMBOLS):
        # The symbol two places back shifts the odds of the last one, so that one symbol of context is not enough.
        row = (text[place - 1] + 5 * (text[place - 2] % 3)) % SYMBOLS
        text[place] = min(int(np.searchsorted(upto[row], draws[place])), SYMBOLS - 1)
    return text


class Learner:
    """Parameters, the optimizer's moments, and the step; all of it is what a checkpoint must hold."""

    def __init__(self, seed: int, steps: int) -> None:
        """Begin at step 0.

        Args:
            seed: of grammar, parameters and batches.
            steps: after how many the learning rate has come down to a tenth.
        """
        rng = np.random.default_rng([seed, 1])
        self._seed = seed
        self._steps = steps
        self._text = make_text(seed)
        shapes = {"embed": (SYMBOLS, WIDTH), "enter": (2 * WIDTH, HIDDEN), "leave": (HIDDEN, SYMBOLS)}
        self._parameters: dict[str, Floats] = {
            name: rng.standard_normal(shape) / np.sqrt(shape[0]) for name, shape in shapes.items()
        }
        self._means = {name: np.zeros(shape) for name, shape in shapes.items()}
        self._squares = {name: np.zeros(shape) for name, shape in shapes.items()}
        self.step = 0

    def state(self) -> dict[str, Floats]:
        """Return everything that the next step depends on."""
        kinds = {"parameter": self._parameters, "mean": self._means, "square": self._squares}
        return {f"{kind}.{name}": array for kind, arrays in kinds.items() for name, array in arrays.items()}

    def restore(self, step: int, state: dict[str, Floats]) -> None:
        """Go on from a saved state, bit by bit as if nothing had happened."""
        for kind, arrays in (("parameter", self._parameters), ("mean", self._means), ("square", self._squares)):
            for name in arrays:
                arrays[name] = np.array(state[f"{kind}.{name}"], dtype=np.float64)
        self.step = step

    def poison(self) -> None:
        """Let the next loss be NaN, as an overflow in a real run would."""
        self._parameters["leave"][0, 0] = np.nan

    def advance(self) -> StepResult:
        """Take one optimizer step."""
        self.step += 1
        loss, gradients = self._gradients(*self._batch())
        lr = self._lr()
        for name, gradient in gradients.items():
            mean = self._means[name] = _DECAY * self._means[name] + (1 - _DECAY) * gradient
            square = self._squares[name] = _DECAY_SQUARED * self._squares[name] + (1 - _DECAY_SQUARED) * gradient**2
            steady = np.sqrt(square / (1 - _DECAY_SQUARED**self.step)) + _EPSILON
            self._parameters[name] = self._parameters[name] - lr * (mean / (1 - _DECAY**self.step)) / steady
        norm = float(np.sqrt(sum(float((gradient**2).sum()) for gradient in gradients.values())))
        return StepResult(loss=loss, grad_norm=norm, lr=lr)

    def _batch(self) -> tuple[Symbols, Symbols]:
        """Draw by seed and step alone, so that a resumed run sees the batches that it would have seen."""
        places = np.random.default_rng([self._seed, 2, self.step]).integers(2, TEXT_SYMBOLS, size=BATCH)
        return np.stack([self._text[places - 2], self._text[places - 1]], axis=1), self._text[places]

    def _gradients(self, context: Symbols, target: Symbols) -> tuple[float, dict[str, Floats]]:
        rows = np.arange(BATCH)
        entered = self._parameters["embed"][context].reshape(BATCH, 2 * WIDTH)
        hidden = np.tanh(entered @ self._parameters["enter"])
        logits = hidden @ self._parameters["leave"]
        logits = logits - logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        total = odds.sum(axis=1, keepdims=True)
        loss = float((np.log(total[:, 0]) - logits[rows, target]).mean())
        blame = odds / total
        blame[rows, target] -= 1
        blame /= BATCH
        inner = (blame @ self._parameters["leave"].T) * (1 - hidden**2)
        embed = np.zeros_like(self._parameters["embed"])
        np.add.at(embed, context, (inner @ self._parameters["enter"].T).reshape(BATCH, 2, WIDTH))
        return loss, {"embed": embed, "enter": entered.T @ inner, "leave": hidden.T @ blame}

    def _lr(self) -> float:
        """Warm up, then come down along a cosine to a tenth."""
        done = min(1.0, self.step / max(1, self._steps))
        return PEAK_LR * min(1.0, self.step / WARMUP_STEPS) * (0.55 + 0.45 * float(np.cos(np.pi * done)))
