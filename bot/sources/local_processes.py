"""Which processes of this machine are still the ones that were written down; a pid alone says nothing."""

import contextlib
import os
import re
import subprocess
from pathlib import Path

import psutil

from bot.sources.local_files import JobRecord, ProcessRecord

_BOOT = re.compile(r"([0-9a-f-]{36}):\d+$")


def start_of(pid: int) -> str:
    """Return what tells this process from a later one of the same pid; empty when there is none.

    On Linux the boot and the clock tick of its start: unlike wall time it does not move when the clock is set.
    ``bot/actions/local_supervisor.py`` holds the same function, since it imports nothing; a test holds them equal.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _start_by_ps(pid)
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"


def boot_of(start: str) -> str:
    """Return which boot of which machine a start belongs to; empty where the system does not tell."""
    return match[1] if (match := _BOOT.match(start)) else ""


def _start_by_ps(pid: int) -> str:
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    told = subprocess.run(  # noqa: S603 - fixed words and a number
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, env=environment, check=False
    )
    return told.stdout.strip()


def find(written: ProcessRecord | None) -> psutil.Process | None:
    """Return the very process that was written down, when it still lives; a zombie does not."""
    if written is None:
        return None
    try:
        process = psutil.Process(written.pid)
    except psutil.NoSuchProcess:
        return None
    return process if is_living(process) and start_of(written.pid) == written.start else None


def living(job: JobRecord) -> list[psutil.Process]:
    """Return every living process of a job, its supervisor excepted.

    They are the supervisor's session and descendants; after its death, the command, what descends from it, and what is
    left of the session, unless a stranger has got the supervisor's pid since.
    """
    roots = [each for each in (find(job.supervisor), find(job.command)) if each]
    found = {each.pid: each for each in roots}
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {each.pid: each for each in root.children(recursive=True)}
    if start_of(job.supervisor.pid) in {"", job.supervisor.start}:
        found |= {each.pid: each for each in psutil.process_iter() if _session_of(each.pid) == job.supervisor.pid}
    found.pop(job.supervisor.pid, None)
    return [each for each in found.values() if is_living(each)]


def is_alive(job: JobRecord) -> bool:
    """Whether anything of the job lives, be it only its supervisor that is about to write down the end."""
    return find(job.supervisor) is not None or bool(living(job))


def is_living(process: psutil.Process) -> bool:
    """Whether this very process, not a later one of its pid, lives; a zombie does not."""
    try:
        return process.is_running() and process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
