"""A trainer for the tests of whole stories, run as a script of its own: it waits for the test and not for the clock.

    python trainer.py NAME STEPS [HARM]

All of it lives below the directory NAME: a line in ``lives`` for every start, ``checkpoints/step-N``, and the files by
which the test speaks. Before it trains on from step HARM its first life waits for ``harm`` or ``hang`` to appear: with
``harm`` it says what stands in that file, or a usual word, and loses its machine; with ``hang`` it stays alive and does
nothing more. A later life resumes from the newest checkpoint, and before its last ten steps waits for ``finish``; with
``forget`` there it ends well and saves no final checkpoint.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

CHECKPOINT_EVERY = 10


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def wait_for(*files: Path) -> Path:
    while True:
        for file in files:
            if file.exists():
                return file
        time.sleep(0.02)


def save(checkpoints: Path, step: int) -> None:
    directory = checkpoints / f"step-{step}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "weights").write_text(f"weights after step {step}")
    draft = directory / "draft"
    draft.write_text(json.dumps({"step": step, "timestamp": time.time(), "is_temporary": False}))
    draft.rename(directory / "metadata.json")


def main() -> None:
    home, steps = Path(sys.argv[1]), int(sys.argv[2])
    harm_at = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    home.mkdir(exist_ok=True)
    with (home / "lives").open("a") as lives:
        lives.write(f"{os.getpid()} {time.time()}\n")
    is_first = len((home / "lives").read_text().splitlines()) == 1
    checkpoints = home / "checkpoints"
    saved = sorted(int(each.parent.name.removeprefix("step-")) for each in checkpoints.glob("step-*/metadata.json"))
    start = saved[-1] if saved else 0
    if saved:
        say(f"Loading checkpoint from {checkpoints.absolute()}/step-{start}")
    for step in range(start, steps):
        if is_first and step == harm_at:
            if wait_for(home / "harm", home / "hang").name == "hang":
                wait_for(home / "never")
            say((home / "harm").read_text() or "Received preemption notice: this spot machine will be reclaimed now")
            os.kill(os.getpid(), signal.SIGKILL)
        if not is_first and step == steps - 10:
            wait_for(home / "finish")
        say(f"step={step} loss={4.0 / (1 + step / 10):.4f}")
        if step and step % CHECKPOINT_EVERY == 0:
            save(checkpoints, step)
        time.sleep(0.01)
    if not (home / "forget").exists():
        save(checkpoints, steps)
    say("training is done")


if __name__ == "__main__":
    main()
