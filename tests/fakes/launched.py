"""Builders for launched configurations: Levanter's shape, small, with what a test is about in place of the rest."""

import copy
from typing import Any

from bot.model.contract import Contract
from bot.model.launched import LaunchedConfig
from bot.model.reading import Known, Reading, Unknown
from bot.model.snapshot import Snapshot
from bot.redaction import Redactor
from bot.sources.config.source import launched
from tests.fakes.snapshots import contract

ORIGIN = "gs://bucket/users/ada/hero-12d8b6f0/config.yaml"

TREE: dict[str, Any] = {
    "trainer": {
        "seed": 0,
        "mp": "params=float32,compute=bfloat16,output=bfloat16",
        "train_batch_size": 256,
        "num_train_steps": 10_000,
        "id": "hero-12d8b6f0",
        "mesh": {"axes": {"data": -1, "model": 4}},
        "checkpointer": {
            "base_path": "gs://bucket/users/ada/hero-12d8b6f0/checkpoints",
            "append_run_id_to_base_path": False,
            "save_interval": "15m",
            "keep": [{"every": 1000}],
        },
        "progress_watchdog": {"step_timeout": "0:30:00"},
        "tracker": {"type": "wandb", "id": "hero-12d8b6f0", "tags": ["hero"]},
        "distributed": {"coordinator_address": "10.0.0.7:8476"},
        "log_dir": "logs/2026-11-29T03:00:00Z",
    },
    "optimizer": {"type": "adam", "learning_rate": 3e-4, "beta1": 0.9},
    "data": {"components": {"web": {"cache_dir": "gs://bucket/tokenized/web"}}, "shuffle": True},
    "model": {"hidden_dim": 1024},
}


def tree(**changes: Any) -> dict[str, Any]:
    """Return the tree with values put in place by dotted key, the dots written as two underscores."""
    made = copy.deepcopy(TREE)
    for name, value in changes.items():
        *above, last = name.split("__")
        table = made
        for part in above:
            table = table.setdefault(part, {})
        table[last] = value
    return made


def config(
    of: dict[str, Any] | None = None, *, origin: str = ORIGIN, promised: Contract | None = None
) -> LaunchedConfig:
    return launched(TREE if of is None else of, origin, promised or contract(), Redactor())


def with_config(seen: Snapshot, read: LaunchedConfig | Unknown) -> Snapshot:
    """Return the snapshot with this configuration read at its moment."""
    reading: Reading[LaunchedConfig] = read if isinstance(read, Unknown) else Known(value=read, at=seen.at)
    return seen.model_copy(update={"config": reading})
