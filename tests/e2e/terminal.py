"""The program in a terminal of its own, and somebody who types there."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.hero import ROOT

_TAKE_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def type_in_a_terminal(
    words: Sequence[str],
    script: Sequence[tuple[bytes, bytes]],
    *,
    limit_s: float,
    where: Path = ROOT,
    **environment: str,
) -> tuple[int, bytes]:
    """Run the program, and type each text of the script once its cue has been shown after the one before.

    Returns:
        The exit code, and what was shown after the last cue. A program that outlives the limit is killed.
    """
    ours, theirs = pty.openpty()
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    give_up_at = time.monotonic() + limit_s
    left, shown, seen_to = list(script), b"", 0
    with subprocess.Popen(
        [sys.executable, "-c", _TAKE_THE_TERMINAL, "-m", "bot", *words],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        start_new_session=True,
        **streams,
    ) as program:
        os.close(theirs)
        with contextlib.suppress(OSError):  # what a terminal answers once its last process has gone
            while select.select([ours], [], [], max(0.0, give_up_at - time.monotonic()))[0] and (
                chunk := os.read(ours, 65536)
            ):
                shown += chunk
                while left and (found := shown.find(left[0][0], seen_to)) >= 0:
                    seen_to = found + len(left[0][0])
                    os.write(ours, left.pop(0)[1])
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(5)
        program.kill()
    os.close(ours)
    return program.returncode, shown[seen_to:]
