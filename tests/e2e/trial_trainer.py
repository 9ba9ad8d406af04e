"""A trainer for the trials: a script of its own that runs as a real Iris job and logs to the cluster's own Finelog.

    python train.py RUN_ID --home DIR [--initialize-from CHECKPOINT] [--loss-factor 1.005] …

What the code does differently stands beside it, in a file ``change`` that is committed with it: more words for this
command line. So the old commit and the new one are launched in the same way and train differently. A batch is made of
its step alone, so that every run sees the same one; what a run adds of its own is a hundredth of a gate's tolerance.

Below DIR: ``lives``, one JSON object a start (which commit, which attempt, from where), ``config.json`` and
``checkpoints/step-N``. It goes on from its own newest complete checkpoint, else from ``--initialize-from``; where a
checkpoint that it was given is not there, it fails. Checkpoint N holds what steps 0 to N - 1 have made of the model.
"""

import argparse
import dataclasses
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

HERE = Path(__file__).resolve().parent
TOKENS_A_STEP = 4096
FINELOG = "/proxy/system.log-server"


@dataclasses.dataclass
class Row:
    """The columns of ``levanter.metrics`` that matter; a subset of the real ones is accepted."""

    key_column: ClassVar[str] = "timestamp_ms"
    timestamp_ms: int
    run_id: str
    execution_uid: str
    job_id: str
    process_index: int
    step: int | None
    name: str
    kind: str
    value: float


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def parse(words: list[str]) -> argparse.Namespace:
    """Read the command line, and what stands beside the script after it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run_id")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--initialize-from", type=Path)
    parser.add_argument("--steps", type=int, default=1_000_000, help="far away: a trial is over long before")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--step-time", type=float, default=0.04, help="seconds")
    parser.add_argument("--first-save", type=int, default=40)
    parser.add_argument("--save-every", type=int, default=400, help="from the first one on")
    parser.add_argument("--log-every", type=int, default=2, help="steps between rows of all but the loss")
    parser.add_argument("--compile", type=float, default=0.5, help="seconds between loading and the first step")
    parser.add_argument("--loss-factor", type=float, default=1.0)
    parser.add_argument("--slow", type=float, default=1.0, help="times as long a step")
    parser.add_argument("--hang-at", type=int, help="log no further step, and stay alive")
    parser.add_argument("--crash-at", type=int, help="in every attempt")
    change = HERE / "change"
    return parser.parse_args([*words, *(change.read_text().split() if change.exists() else [])])


class Checkpoints:
    """``step-N`` directories, as Levanter leaves them: ``metadata.json`` is written last."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def newest(self) -> Path | None:
        complete = [file.parent for file in self._directory.glob("step-*/metadata.json")]
        return max(complete, key=lambda path: int(path.name.removeprefix("step-")), default=None)

    def save(self, step: int, seed: int) -> None:
        folder = self._directory / f"step-{step}"
        say(f"Saving checkpoint to {folder.absolute()} for step {step}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.json").write_text(json.dumps({"step": step, "seed": seed}))
        metadata = {"step": step, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S"), "is_temporary": False}
        (folder / "draft").write_text(json.dumps(metadata))
        (folder / "draft").rename(folder / "metadata.json")
        say(f"Saved checkpoint to {folder.absolute()} for step {step}")


def load(checkpoint: Path | None, seed: int) -> tuple[int, int]:
    """Return the step to go on with and the seed of the batches, as the checkpoint has them."""
    if checkpoint is None:
        say("Checkpoint not found; training begins at step 0")
        return 0, seed
    say(f"Loading checkpoint from {checkpoint.absolute()}")
    state = json.loads((checkpoint / "state.json").read_text())
    return int(state["step"]), int(state["seed"])


class Telemetry:
    """Rows of this attempt, in the table of this run."""

    def __init__(self, run_id: str) -> None:
        # Only here: it takes seconds, and the tests read this file too.
        from finelog.client import LogClient  # noqa: PLC0415 - as above

        self._client = LogClient.connect(os.environ["IRIS_CONTROLLER_URL"].rstrip("/") + FINELOG)
        self._table = self._client.get_table(f"levanter.metrics.{run_id}", Row)
        self._run_id = run_id

    def write(self, step: int | None, figures: dict[str, float]) -> None:
        self._table.write(
            [
                Row(
                    timestamp_ms=time.time_ns() // 1_000_000,
                    run_id=self._run_id,
                    execution_uid=f"iris:{os.environ['IRIS_ATTEMPT_UID']}",
                    job_id=job_id(),
                    process_index=0,
                    step=step,
                    name=name,
                    kind="scalar",
                    value=value,
                )
                for name, value in figures.items()
            ]
        )

    def flush(self) -> None:
        self._table.flush(timeout=10)


def job_id() -> str:
    """The job of this task: ``/user/name/0:3`` is attempt 3 of task 0."""
    return os.environ["IRIS_TASK_ID"].rpartition("/")[0]


def figures_of(step: int, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """What is logged at a step: a batch's own swing, the same for every run, and a little of the run's own."""
    batch, own = random.Random(f"{seed} {step}"), random.Random(f"{options.run_id} {step}")
    loss = (2.0 + 2.0 / math.sqrt(1 + step / 50) + batch.gauss(0, 0.03)) * options.loss_factor + own.gauss(0, 2e-5)
    figures = {"train_loss": loss, "train_cross_entropy_loss": loss - 0.01, "progress_time_seconds": time.time()}
    if step % options.log_every == 0:
        duration = options.step_time * options.slow * (1 + own.gauss(0, 0.002))
        figures |= {
            "throughput_tokens_per_second": TOKENS_A_STEP / duration,
            "throughput_duration": duration,
            "throughput_mfu": 40.0 * options.step_time / duration,
            "grad_norm_total": 0.4 + batch.gauss(0, 0.02) + own.gauss(0, 1e-4),
            "train_router_routing_entropy_mean": 2.0 + batch.gauss(0, 0.001),
            "moe_drop_fraction": abs(batch.gauss(0.01, 0.001)),
        }
    return figures


def begin(options: argparse.Namespace) -> None:
    """Write down who has started, and with what."""
    sha = subprocess.run(["git", "-C", HERE, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    life = {"sha": sha.stdout.strip(), "uid": os.environ["IRIS_ATTEMPT_UID"], "job_id": job_id(), "at": time.time()}
    options.home.mkdir(parents=True, exist_ok=True)
    with (options.home / "lives").open("a") as lives:
        lives.write(f"{json.dumps(life)}\n")
    config = {
        "git_commit": life["sha"],
        "trainer": {
            "id": options.run_id,
            "num_train_steps": options.steps,
            "seed": options.seed,
            "checkpointer": {"base_path": str(options.home.absolute() / "checkpoints")},
        },
    }
    draft = options.home / "config.draft"
    draft.write_text(json.dumps(config))
    draft.rename(options.home / "config.json")


def main() -> None:
    options = parse(sys.argv[1:])
    begin(options)
    telemetry = Telemetry(options.run_id)
    telemetry.write(None, {"phase": 0.0, "progress_time_seconds": 0.0})
    checkpoints = Checkpoints(options.home / "checkpoints")
    first, seed = load(checkpoints.newest() or options.initialize_from, options.seed)
    time.sleep(options.compile)
    telemetry.write(first, {"phase": 1.0})
    began = time.monotonic()
    for step in range(first, options.steps):
        if step == options.hang_at:
            telemetry.flush()
            time.sleep(3600)
        if step == options.crash_at:
            telemetry.flush()
            raise RuntimeError(f"the change does not work at step {step}")
        if step > first and step >= options.first_save and (step - options.first_save) % options.save_every == 0:
            checkpoints.save(step, seed)
        figures = figures_of(step, seed, options)
        telemetry.write(step, figures)
        if step % 10 == 0:
            say(f"Progress on:train {step}it/{options.steps}it postfix:loss={figures['train_loss']:.4f}")
        time.sleep(max(0.0, began + (step + 1 - first) * options.step_time * options.slow - time.monotonic()))
    telemetry.write(options.steps, {"phase": 2.0})
    telemetry.flush()


if __name__ == "__main__":
    main()
