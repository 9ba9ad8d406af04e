"""Runs a program that may hang, fork or flood: own session, own deadline, bounded output, and the whole group's end.

Several verbs of the Iris CLI retry for half an hour when the controller is down (marin-iris 0.2.20 to 0.2.227, run), so
no call is without a deadline of Hero's own.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from bot.sources.wandb.environment import without_own_wandb

_CHUNK_BYTES = 65536
_TERM_GRACE_S = 2.0
_PIPE_GRACE_S = 1.0

# A submission from inside an Iris job becomes a child of that job and dies with it: Hero's own job must not show.
_OWN_JOB = ("IRIS_TASK_ID", "IRIS_JOB_ID", "IRIS_JOB_ENV", "IRIS_ATTEMPT_UID", "IRIS_TASK_TOKEN")


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a program ended; its output may hold secrets."""

    exit_code: int | None
    """None when its deadline ended it; a negative number is the signal that ended it."""
    stdout_raw: bytes = field(repr=False)
    stderr: str = field(repr=False)
    """The end of it when it was longer than the limit."""
    is_cut: bool = False
    """Whether stdout was longer than the limit; then its start is here."""

    @property
    def stdout(self) -> str:
        """What it printed, with a replacement for each byte that is not UTF-8."""
        return self.stdout_raw.decode(errors="replace")


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return Hero's environment without its own secrets and without the job it may run in itself, plus ``extra``."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERO_") and name != "WANDB_SERVICE" and name not in _OWN_JOB
    }
    return {**without_own_wandb(kept), **(extra or {})}


async def run_program(
    argv: Sequence[str],
    *,
    deadline: timedelta,
    environment: Mapping[str, str],
    directory: Path | None = None,
    limit_bytes: int = 32 * 2**20,
    pass_fds: Sequence[int] = (),
    leaves_nothing: bool = False,
) -> Finished:
    """Run ``argv`` to its end or to the deadline; nothing of its process group is left alive after a deadline.

    With ``leaves_nothing`` nothing is left alive after an end in time either.

    Raises:
        OSError: it could not be started.
    """
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out_write,
            stderr=err_write,
            cwd=directory,
            env=dict(environment),
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except BaseException:
        os.close(out_read)
        os.close(err_read)
        raise
    finally:
        os.close(out_write)
        os.close(err_write)
    out, err = _Pipe(limit_bytes, keep_end=False), _Pipe(_CHUNK_BYTES, keep_end=True)
    readers = (asyncio.ensure_future(out.drain(out_read)), asyncio.ensure_future(err.drain(err_read)))
    exit_code: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline.total_seconds()):
                exit_code = await process.wait()
        if exit_code is None:
            await _end_group(process)
        await asyncio.wait(readers, timeout=_PIPE_GRACE_S)
        if leaves_nothing:
            _signal_group(process.pid, signal.SIGKILL)
    finally:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGKILL)
            await process.wait()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    return Finished(exit_code=exit_code, stdout_raw=out.raw(), stderr=err.text(), is_cut=out.is_cut)


class _Pipe:
    """What came out of one pipe, up to a limit; the rest is read and thrown away, so that the writer never blocks."""

    def __init__(self, limit_bytes: int, *, keep_end: bool) -> None:
        self._limit_bytes = limit_bytes
        self._keep_end = keep_end
        self._held = bytearray()
        self.is_cut = False

    async def drain(self, descriptor: int) -> None:
        """Read to the end of the pipe, and close it however this ends."""
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        try:
            while chunk := await reader.read(_CHUNK_BYTES):
                self._take(chunk)
        finally:
            transport.close()

    def raw(self) -> bytes:
        return bytes(self._held)

    def text(self) -> str:
        return self._held.decode(errors="replace")

    def _take(self, chunk: bytes) -> None:
        self._held += chunk
        if len(self._held) > self._limit_bytes:
            self.is_cut = True
            if self._keep_end:
                del self._held[: -self._limit_bytes]
            else:
                del self._held[self._limit_bytes :]


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Ask the whole group to end, then make it."""
    _signal_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_TERM_GRACE_S):
            await process.wait()
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(leader: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, how)
