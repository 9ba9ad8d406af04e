"""Runs a small program that uses the W&B SDK, in a process of its own with everything that the SDK leaves behind.

The SDK works through a helper process, ``wandb-core``, which repeats what failed for minutes and writes to the network
while Python exits. It has a session of its own and goes by itself 1 to 2 s after the program did (wandb 0.31, run);
here it is ended for certain.
"""

import asyncio
import contextlib
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from bot.redaction import Redactor, redact_or_withhold
from bot.settings import WandbSettings
from bot.sources.iris.program import Finished, child_environment, run_program

_GRACE = timedelta(seconds=5)
"""Within it the program's own alarm is later than Hero's deadline, which says more."""
_START = timedelta(seconds=15)
"""To begin and to end may take so long on a machine that is busy."""
_OUTPUT_BYTES = 2**16
_SAID_CHARS = 400
_REPEAT_NEVER_S = "86400"


class WandbProgram:
    """Runs one of the programs beside this file."""

    def __init__(self, settings: WandbSettings, *, deadline: timedelta, redactor: Redactor) -> None:
        """Take the parts.

        Args:
            settings: for the server and the key.
            deadline: after it the program and its helper are killed.
            redactor: for what they print.
        """
        self._settings = settings
        self.deadline = deadline
        self._redactor = redactor

    async def run(
        self, program: Path, order: Mapping[str, Any], *, repeats: bool, pass_fds: Sequence[int] = ()
    ) -> Finished:
        """Run ``program`` with ``order`` as its only argument, which holds no secret, to its end or the deadline.

        Args:
            program: by its path.
            order: as JSON. Added are ``seconds``, after which the program has to end by itself, and ``patience``, after
                which the SDK should give up: it says what it waited for, and one that is killed does not.
            repeats: whether the helper may send again what failed; without it nothing is ever sent twice.
            pass_fds: open files that the program inherits.

        Raises:
            OSError: it could not be started, or there is no place for its files.
        """
        patience = self.deadline - _START if self.deadline > _START else self.deadline
        limits = {
            "seconds": int((self.deadline + _GRACE).total_seconds()),
            "patience": math.ceil(patience.total_seconds()),
        }
        argv = (sys.executable, "-P", str(program), json.dumps({**order, **limits}))
        # A short name: a path of a Unix socket is made of it.
        with tempfile.TemporaryDirectory(prefix="hero-wb-", ignore_cleanup_errors=True) as home:
            try:
                return await run_program(
                    argv,
                    deadline=self.deadline,
                    environment=self._environment(Path(home), repeats=repeats),
                    directory=Path(home),
                    limit_bytes=_OUTPUT_BYTES,
                    pass_fds=pass_fds,
                    leaves_nothing=True,
                )
            finally:
                await asyncio.to_thread(_end_helper, home)

    def said(self, ended: Finished) -> str:
        """Return the last thing that the program printed about why it failed, without secrets."""
        lines = [" ".join(line.split()) for line in ended.stderr.splitlines() if line.strip()]
        last = next((line for line in reversed(lines) if not line.startswith(_NO_REASON)), "it said nothing")
        return redact_or_withhold(self._redactor, last)[:_SAID_CHARS]

    def _environment(self, home: Path, *, repeats: bool) -> dict[str, str]:
        for name in ("cache", "config", "data"):
            (home / name).mkdir(mode=0o700)
        key = self._settings.api_key
        kept = {name: value for name, value in child_environment().items() if not name.startswith("WANDB_")}
        # The helper cannot be told to send nothing twice (0 tries are its twenty), so it would wait for a day first.
        waits = {} if repeats else dict.fromkeys(_WAITS, _REPEAT_NEVER_S)
        return {
            **kept,
            **waits,
            "WANDB_API_KEY": key.get_secret_value() if key else "",
            "WANDB_BASE_URL": self._settings.base_url,
            "WANDB_SILENT": "true",
            "WANDB_CONSOLE": "off",
            "WANDB_ERROR_REPORTING": "false",
            "WANDB_DIR": str(home),
            "WANDB_DATA_DIR": str(home / "data"),
            "WANDB_CACHE_DIR": str(home / "cache"),
            "WANDB_CONFIG_DIR": str(home / "config"),
            "TMPDIR": str(home),
            "PYTHONWARNINGS": "ignore",
        }


_WAITS = ("WANDB_X_GRAPHQL_RETRY_WAIT_MIN_SECONDS", "WANDB_X_GRAPHQL_RETRY_WAIT_MAX_SECONDS")
_NO_REASON = ("Consider increasing", "wandb.init(settings")


def _end_helper(home: str) -> None:
    """Kill what was started with a file of ``home`` in its arguments, as the helper is, and wait for its end."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(word.startswith(home) for word in process.cmdline()):
                process.kill()
                found.append(process)
    psutil.wait_procs(found, timeout=_GRACE.total_seconds())
