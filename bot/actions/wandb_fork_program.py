"""Forks one run of W&B, and ends: a program of its own, so that the SDK and its helper process can be cut off.

Run by path as ``python -P wandb_fork_program.py ORDER`` with the key in ``WANDB_API_KEY``; it imports nothing of
Hero's. ORDER is JSON: entity, project, parent, child, step, config, seconds, patience. It begins the child's run and
finishes it at once, without a row: the trainer goes on with it later. On success it prints a line of JSON and exits 0.
"""

import importlib
import json
import signal
import sys
from typing import Any


def main(order: dict[str, Any]) -> None:
    # Nobody may wait any more: whoever began this may have been killed. The helper process ends with this one.
    signal.alarm(order["seconds"])
    wandb = importlib.import_module("wandb")
    run = wandb.init(
        entity=order["entity"] or None,
        project=order["project"],
        id=order["child"],
        name=order["child"],
        fork_from=f"{order['parent']}?_step={order['step']}",
        config=order["config"],
        mode="online",
        settings=wandb.Settings(
            init_timeout=order["patience"],
            console="off",
            # What belongs to the trainer's machine is told by the trainer, and what belongs to Hero's by nobody.
            disable_code=True,
            disable_git=True,
            save_code=False,
            x_disable_machine_info=True,
            x_disable_meta=True,
            x_disable_stats=True,
            x_save_requirements=False,
            program="hero",
        ),
    )
    run.finish()
    sys.stdout.write(json.dumps({"id": run.id, "url": run.url}) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
