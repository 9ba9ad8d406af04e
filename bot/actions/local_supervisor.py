"""The process that stands above one local job: starts its command, outlives Hero, and writes down how it ended.

A program of its own, run by path as ``python -I local_supervisor.py DIRECTORY LOCK_FD`` with an order on its standard
input (``{"argv": [...], "cwd": "...", "grace_s": 10}``); so it needs nothing but the standard library, and neither
Hero's death nor an update of Hero's code touches it. ``bot/sources/local_files.py`` reads what it writes:

    DIRECTORY/job.json    when it was submitted; pid and start of supervisor and command; never the arguments (secrets)
    DIRECTORY/output.log  what the command printed, byte for byte
    DIRECTORY/exit.json   how it ended; written only when no process of the job is left

Exactly once: the directory appears together with its job.json in one rename, which fails when there is one by that
name. Exit codes: 0 the job has begun; 3 there is a job of that name; 4 it could not begin and nothing is left of it;
anything else: look for yourself.

A job whose directory has been deleted belongs to nobody any more: no Hero finds it, and nobody could stop it. The
supervisor then ends it (SIGTERM, the grace, SIGKILL) and goes.
"""

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGUN, UNSURE, TAKEN, REFUSED = 0, 1, 3, 4
NOT_RUNNABLE, NOT_FOUND = 126, 127
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): processes that detach from the job stay below us, so that none is lost."""
_POLL_S = 0.05
_LOOK_S = 1.0
"""How often it is seen whether the job's directory is still there."""
_WRITE_TRIES = 600
"""How many seconds a full disk may keep the job's end from being written down."""


def main(arguments: list[str]) -> int:
    """Detach, start the job, and return as soon as it is known whether it has begun."""
    directory, lock_fd = Path(arguments[0]), int(arguments[1])
    order = json.load(sys.stdin)
    listen, tell = os.pipe()
    if os.fork() == 0:
        os.close(listen)
        Supervisor(directory, order, lock_fd=lock_fd, tell=tell).run()
        return 0
    os.close(tell)
    with os.fdopen(listen, encoding="utf-8") as pipe:
        code, _, detail = pipe.read().partition(" ")
    sys.stderr.write(detail)
    return int(code) if code else UNSURE


class Supervisor:
    """One job, from its directory to its end."""

    def __init__(self, directory: Path, order: dict[str, Any], *, lock_fd: int, tell: int) -> None:
        self._directory = directory
        self._order = order
        self._lock_fd = lock_fd
        self._tell = tell
        self._is_stopping = False
        self._is_begun = False
        self._kill_at: float | None = None

    def run(self) -> None:
        os.setsid()
        os.chdir("/")
        # Handlers, not SIG_IGN: what is ignored would stay ignored in the command.
        signal.signal(signal.SIGHUP, lambda *_: None)
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._pass_on_stop())
        signal.signal(signal.SIGALRM, lambda *_: self._look())
        _adopt_orphans()
        if not self._claim():
            return
        self._redirect()
        self._answer(BEGUN)
        os.close(self._lock_fd)
        exit_code = self._supervise()
        self._clear()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._write_end(
            {
                "exit_code": exit_code,
                "finished_at": datetime.now(UTC).isoformat(),
                "peak_rss_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            }
        )

    def _answer(self, code: int, detail: str = "") -> None:
        os.write(self._tell, f"{code} {detail}".encode())
        os.close(self._tell)

    def _claim(self) -> bool:
        """Make the job's directory, complete with its record, or say why not."""
        draft = self._directory.with_name(f".{self._directory.name}.{os.getpid()}")
        self._record: dict[str, Any] = {
            "submitted_at": datetime.now(UTC).isoformat(),
            "host": socket.gethostname(),
            "supervisor": {"pid": os.getpid(), "start": start_of(os.getpid())},
            "command": None,
        }
        try:
            draft.mkdir()
            write_json(draft / "job.json", self._record)
            draft.rename(self._directory)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            if self._directory.exists():
                self._answer(TAKEN, f"{self._directory} exists")
            else:
                self._answer(REFUSED, f"{self._directory} cannot be made: {error.strerror}")
            return False
        return True

    def _redirect(self) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(self._directory / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(nothing)
        os.close(output)

    def _supervise(self) -> int:
        """Run the command to its end; return its exit code, or minus the signal that ended it."""
        try:
            # A group of its own: a trainer that kills its own process group must not take us along.
            command = subprocess.Popen(  # noqa: S603 - the command that the DRI has granted
                self._order["argv"], cwd=self._order["cwd"], stdin=subprocess.DEVNULL, process_group=0
            )
        except OSError as error:
            os.write(2, f"hero: {error.filename} cannot be run: {error.strerror}\n".encode(errors="replace"))
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
        self._record["command"] = {"pid": command.pid, "start": start_of(command.pid)}
        with contextlib.suppress(OSError):  # a full disk: the supervisor's own identity is on record already
            write_json(self._directory / "job.json", self._record)
        self._is_begun = True
        if self._is_stopping:
            signal_members(signal.SIGTERM)
        # The alarm interrupts the wait below; a command does not inherit the timer.
        signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
        while True:
            pid, status = os.wait()
            if pid == command.pid:
                signal.setitimer(signal.ITIMER_REAL, 0)
                command.returncode = os.waitstatus_to_exitcode(status)
                return command.returncode

    def _pass_on_stop(self) -> None:
        """Pass the first SIGTERM on to every process of the job; a second one would make many trainers die unsaved."""
        if not self._is_stopping and self._is_begun:
            signal_members(signal.SIGTERM)
        self._is_stopping = True

    def _look(self) -> None:
        """End the job once its directory is gone: first by asking, after the grace by force."""
        if self._kill_at is None:
            if has_been_deleted(self._directory, output=1):
                self._kill_at = time.monotonic() + float(self._order.get("grace_s", 10))
                signal_members(signal.SIGTERM)
        elif time.monotonic() >= self._kill_at:
            signal_members(signal.SIGKILL)

    def _clear(self) -> None:
        """End what the command left behind: two trainers must never write to one output root."""
        if not members():
            return
        signal_members(signal.SIGTERM)
        kill_at = time.monotonic() + float(self._order.get("grace_s", 10))
        while members():
            if time.monotonic() > kill_at:
                signal_members(signal.SIGKILL)
            time.sleep(_POLL_S)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass

    def _write_end(self, end: dict[str, Any]) -> None:
        for _ in range(_WRITE_TRIES):
            try:
                return write_json(self._directory / "exit.json", end)
            except FileNotFoundError:
                return None  # the directory has been deleted or moved: there is nobody to tell
            except OSError:
                time.sleep(1)
        return None


def has_been_deleted(directory: Path, *, output: int) -> bool:
    """Whether a job's directory was deleted, by its path and by the output that is still open in it.

    A directory that was moved keeps its output; one that cannot be looked into, as when a disk was unmounted or a
    server does not answer, may be there again later. Neither is a reason to end a training run.
    """
    try:
        directory.stat()
    except FileNotFoundError:
        return os.fstat(output).st_nlink == 0
    except OSError:
        return False
    return False


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file that is there whole or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def start_of(pid: int) -> str:
    """Return what tells this process from a later one of the same pid; empty when there is none.

    On Linux the boot and the clock tick of its start: unlike wall time it does not move when the clock is set.
    ``bot/sources/local_processes.py`` holds the same function, and a test holds them equal.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _start_by_ps(pid)
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"


def _start_by_ps(pid: int) -> str:
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    told = subprocess.run(  # noqa: S603 - fixed words and a number
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, env=environment, check=False
    )
    return told.stdout.strip()


def members() -> list[int]:
    """Return the job's living processes but ourselves: our session's, and all that descend from us."""
    table = _processes()
    us = os.getpid()

    def is_ours(pid: int) -> bool:
        seen = set()
        while pid in table and pid not in seen:
            seen.add(pid)
            parent, session, _ = table[pid]
            if us in (parent, session):
                return True
            pid = parent
        return False

    return [pid for pid, (_, _, is_dead) in table.items() if pid != us and not is_dead and is_ours(pid)]


def _processes() -> dict[int, tuple[int, int, bool]]:
    """Return pid → (parent, session, whether it is a zombie) of every process."""
    return _processes_by_proc() if Path("/proc/self/stat").exists() else _processes_by_ps()


def _processes_by_proc() -> dict[int, tuple[int, int, bool]]:
    table = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended since
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                state, parent, _, session = stat.rpartition(")")[2].split()[:4]
                table[int(folder.name)] = (int(parent), int(session), state in "ZX")
    return table


def _processes_by_ps() -> dict[int, tuple[int, int, bool]]:
    table = {}
    with subprocess.Popen(["/bin/ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True) as listing:
        lines, _ = listing.communicate()
    for line in lines.splitlines():
        pid, parent, state = line.split(None, 2)
        with contextlib.suppress(OSError):
            table[int(pid)] = (int(parent), os.getsid(int(pid)), state.startswith("Z"))
    table.pop(listing.pid, None)
    return table


def signal_members(signum: int) -> None:
    """Send a signal to every process of the job but ourselves."""
    for pid in members():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
