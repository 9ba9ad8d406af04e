"""The variables that the W&B SDK is steered with: set once before it is first used, and kept from child processes.

The SDK reads them when it is imported and when it starts its helper process, ``wandb-core``. A trainer or a submit
command that Hero starts must not inherit them: it would share Hero's helper, its folders and its silence.
"""

import atexit
import math
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from bot.settings import WandbSettings

_SERVICE = "WANDB_SERVICE"
"""The SDK puts its helper's address here, and would use one that it finds."""

_guard = threading.Lock()
_before: dict[str, str | None] = {}


def prepare_environment(settings: WandbSettings) -> None:
    """Set what the SDK reads, once in the life of this process; later calls change nothing.

    Raises:
        OSError: there is no place for its files.
    """
    with _guard:
        if _before:
            return
        home = Path(tempfile.mkdtemp(prefix="hero-wandb-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        own = _variables(settings, home)
        _before.update({name: os.environ.get(name) for name in (*own, _SERVICE)})
        os.environ.pop(_SERVICE, None)
        os.environ.update(own)


def without_own_wandb(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` without what ``prepare_environment`` set, and with what it replaced, for a child."""
    with _guard:
        before = dict(_before)
    kept = {name: value for name, value in environment.items() if name not in before and name != _SERVICE}
    return {**kept, **{name: value for name, value in before.items() if value is not None and name != _SERVICE}}


def _variables(settings: WandbSettings, home: Path) -> dict[str, str]:
    for name in ("cache", "config"):
        (home / name).mkdir(mode=0o700)
    return {
        "WANDB_SILENT": "true",
        "WANDB_CONSOLE": "off",
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_DIR": str(home),
        "WANDB_CACHE_DIR": str(home / "cache"),
        "WANDB_CONFIG_DIR": str(home / "config"),
        "WANDB_BASE_URL": settings.base_url,
        # Whole seconds, a little longer than Hero's own deadline. Reading history has no other bound: with the SDK's
        # own twenty tries a sick server holds a thread for many minutes (wandb 0.31, run).
        "WANDB_HTTP_TIMEOUT": str(sdk_timeout_s(settings)),
        "WANDB_X_GRAPHQL_RETRY_MAX": "1",
    }


def sdk_timeout_s(settings: WandbSettings) -> int:
    """Return the SDK's own limit for one request, the second fence behind Hero's deadline."""
    return math.ceil(settings.deadline.total_seconds()) + 1
