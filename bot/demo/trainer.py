"""A small real training run to watch: ``python -m bot.demo.trainer --output DIR --steps N``.

It learns, writes metrics and checkpoints in the layout that Hero reads, resumes from its newest complete checkpoint,
and can be told to come to harm once: what goes wrong in the first launch does not go wrong again in the next. It
imports nothing of Hero but what it trains (``learner``).
"""

import argparse
import json
import logging
import math
import os
import re
import signal
import sys
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is there: a demo leaves the machine to its user

import numpy as np

from bot.demo.learner import BATCH, Learner, StepResult

log = logging.getLogger("demo.trainer")

_STEP = re.compile(r"step-(\d+)", re.ASCII)


class Checkpoints:
    """``step-N`` directories: ``state.npz``, and ``metadata.json`` written last."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def save(self, learner: Learner) -> None:
        """Write a checkpoint that is complete or, whenever we are killed, visibly not."""
        folder = self._directory / f"step-{learner.step}"
        log.info("Saving checkpoint at step %d.", learner.step)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "draft-state").open("wb") as file:
            np.savez(file, **learner.state())  # type: ignore[arg-type]  # numpy's stub confuses the arrays with allow_pickle
            os.fsync(file.fileno())
        (folder / "draft-state").replace(folder / "state.npz")
        metadata = {"step": learner.step, "timestamp": datetime.now(UTC).isoformat(), "is_temporary": False}
        with (folder / "draft-metadata").open("w", encoding="utf-8") as text:
            json.dump(metadata, text)
            text.flush()
            os.fsync(text.fileno())
        (folder / "draft-metadata").replace(folder / "metadata.json")
        log.info("Saved checkpoint to %s for step %d", folder, learner.step)

    def restore(self, learner: Learner) -> None:
        """Let the learner go on from the newest complete checkpoint; leave it as it is when there is none."""
        found = [step for folder in self._directory.glob("step-*") if (step := _complete_step(folder)) is not None]
        if not found:
            log.info("Checkpoint not found in %s; training begins at step 0", self._directory)
            return
        folder = self._directory / f"step-{max(found)}"
        log.info("Loading checkpoint from %s", folder)
        with np.load(folder / "state.npz", allow_pickle=False) as state:
            learner.restore(max(found), {name: state[name] for name in state.files})


def _complete_step(folder: Path) -> int | None:
    """Return the step of a complete checkpoint; None for any other directory."""
    named = _STEP.fullmatch(folder.name)
    try:
        told = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))["step"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_whole = named is not None and told == int(named[1]) and zipfile.is_zipfile(folder / "state.npz")
    return told if is_whole else None


class MetricsFile:
    """One JSON object a step, appended; the file of all launches."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(self._handle).st_size
        if size and os.pread(self._handle, 1, size - 1) != b"\n":
            os.write(self._handle, b"\n")

    def append(self, step: int, result: StepResult, seconds: float) -> None:
        """Write a row at once, so that a reader never sees two halves of two rows as one."""
        row = {
            "step": step,
            "loss": result.loss,
            "grad_norm": result.grad_norm,
            "lr": result.lr,
            "tokens_per_second": BATCH / seconds,
            "step_time_s": seconds,
            "timestamp": time.time(),
        }
        os.write(self._handle, json.dumps(row).encode() + b"\n")

    def close(self) -> None:
        os.close(self._handle)


class Harm:
    """What goes wrong, at which step, and only once in the life of an output directory."""

    def __init__(self, options: argparse.Namespace, output: Path) -> None:
        self._options = options
        self._marker = output / "harm-was-done"

    def strike(self, learner: Learner) -> None:
        """Do what was asked for before the step after ``learner.step``."""
        step, options = learner.step + 1, self._options
        if step not in {options.crash_at, options.raise_at, options.nan_at} or self._marker.exists():
            return
        self._marker.write_text(f"at step {step}\n", encoding="utf-8")
        if options.last_words:
            log.warning("%s", options.last_words)
        if step == options.crash_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == options.raise_at:
            rescale_logits(learner)
        learner.poison()


def rescale_logits(learner: Learner) -> None:
    """Be the small code bug that ``--raise-at`` asks for."""
    temperature = learner.step / softness  # type: ignore[name-defined]  # noqa: F821 - the bug itself
    log.info("rescaled by %s", temperature)


def train(options: argparse.Namespace) -> None:
    """Train to the last step.

    Raises:
        RuntimeError: the loss is not finite; nothing is saved of that.
    """
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    checkpoints, harm = Checkpoints(output / "checkpoints"), Harm(options, output)
    learner = Learner(options.seed, options.steps)
    checkpoints.restore(learner)
    metrics = MetricsFile(output / "metrics.jsonl")
    begun_at, first = time.monotonic(), learner.step
    log.info("Training loop entered at step %d of %d", learner.step, options.steps)
    try:
        while learner.step < options.steps:
            harm.strike(learner)
            result, seconds = _timed_step(learner, options.step_seconds)
            metrics.append(learner.step, result, seconds)
            if not math.isfinite(result.loss):
                raise RuntimeError(f"Non-finite loss ({result.loss}) at step {learner.step}.")
            is_last = learner.step == options.steps
            if learner.step % options.log_every == 0 or is_last:
                log.info("%s", progress(learner.step, first, options.steps, time.monotonic() - begun_at, result.loss))
            if learner.step % options.checkpoint_every == 0 or is_last:
                checkpoints.save(learner)
    finally:
        metrics.close()
    log.info("Training finished at step %d", learner.step)


def _timed_step(learner: Learner, least_s: float) -> tuple[StepResult, float]:
    begun_at = time.monotonic()
    result = learner.advance()
    time.sleep(max(0.0, least_s - (time.monotonic() - begun_at)))
    return result, max(time.monotonic() - begun_at, 1e-9)


def progress(step: int, first: int, steps: int, elapsed_s: float, loss: float) -> str:
    """Return a line as the logged form of a tqdm bar has it."""
    rate = (step - first) / max(elapsed_s, 1e-9)
    remaining, elapsed = _clock((steps - step) / max(rate, 1e-9)), _clock(elapsed_s)
    place = f"{step}it/{steps}it rate:{rate:.1f}it/s remaining:{remaining} elapsed:{elapsed}"
    return f"Progress on:train {place} postfix:loss={loss:.4f}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bot.demo.trainer", description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="where checkpoints/ and metrics.jsonl go")
    parser.add_argument("--steps", type=int, required=True, help="the last optimizer step")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--step-seconds", type=float, default=0.0, help="how long a step takes at least")
    parser.add_argument("--checkpoint-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--log-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--crash-at", type=int, metavar="STEP", help="be killed there, as by a lost machine; once")
    parser.add_argument("--raise-at", type=int, metavar="STEP", help="fail there with a NameError; once")
    parser.add_argument("--nan-at", type=int, metavar="STEP", help="diverge there; once")
    parser.add_argument("--last-words", default="", help="a line to log just before any of these")
    return parser.parse_args(arguments)


def main() -> None:
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="%(asctime)s - %(name)s - %(levelname)s - %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    train(parse_options(sys.argv[1:]))


if __name__ == "__main__":
    main()
