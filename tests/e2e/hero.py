"""Hero as users have it: a process with its own configuration, started, signalled, killed and started again."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.fakes.waiting import until

ROOT = Path(__file__).parents[2]
PROGRAM = ("-m", "bot", "run")

# A proxy of the machine must not stand between a test and its own loopback.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

_PATIENCE = 2
"""Two whole bots side by side are slower than one; a wait ends as soon as what it waits for is there."""


class Hero:
    """One Hero, from its directory: ``hero.toml``, ``runs/``, ``hero.db``, and ``hero.log`` of all its lives.

    Args:
        directory: where all of it is.
        sections: of ``hero.toml``, as TOML values by section and key.
        environment: where the secrets stand.
        name: of its configuration and its log; a second Hero on the same database has another one.
    """

    def __init__(
        self,
        directory: Path,
        sections: Mapping[str, Mapping[str, str]],
        environment: Mapping[str, str],
        *,
        name: str = "hero",
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self.log_file = directory / f"{name}.log"
        self.database = directory / "hero.db"
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None
        self._life_begins_at = 0
        (directory / "runs").mkdir(parents=True, exist_ok=True)
        bot = {
            "http": json.dumps(f"127.0.0.1:{self.port}"),
            "cadence": '"1s"',
            "jitter": '"0s"',
            "poll": '"0.2s"',
            "posts_per_minute": "200",
        }
        table = {**sections, "bot": {**bot, **sections.get("bot", {})}}
        self._configuration = directory / f"{name}.toml"
        self._configuration.write_text(to_toml(table))

    def write_contract(self, run_id: str, text: str) -> None:
        (self.directory / "runs" / f"{run_id}.toml").write_text(text)

    def start(self, program: Sequence[str] = PROGRAM, *, variables: Mapping[str, str] | None = None) -> Self:
        """Start the process; it may take a second or two until it is at work."""
        assert self._process is None, "it runs already"
        self._life_begins_at = len(self.log)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *program, "--config", str(self._configuration)],
                cwd=ROOT,
                env={**self._environment, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything that all lives of it have printed."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def life_log(self) -> str:
        """What it has printed since its last start."""
        return self.log[self._life_begins_at :]

    def last_words(self) -> str:
        """The end of the log, for whoever reads a failed test."""
        return f"the end of {self.log_file}:\n{self.log[-12000:]}"

    async def terminate(self, within_s: float = 10.0) -> int:
        """Send SIGTERM and return the exit code; fail when there is none in time."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return await self.ended(within_s)

    async def ended(self, within_s: float = 10.0) -> int:
        """Wait until it has ended by itself and return its exit code."""
        process = self._process
        assert process is not None
        await self.until(lambda: process.poll() is not None, within_s, "Hero ends")
        self._process = None
        return int(process.returncode)

    def kill(self) -> None:
        """End it as a lost machine would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def health(self) -> tuple[int, dict[str, Any]]:
        """The status and the body of ``/healthz``; 0 while nothing answers."""
        try:
            with _direct.open(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except OSError:
            return 0, {}

    async def until(self, predicate: Any, within_s: float = 20.0, what: str = "") -> None:
        """Wait for something; when it does not come, show what Hero has printed."""
        try:
            await until(predicate, within_s * _PATIENCE, what)
        except AssertionError as error:
            error.add_note(self.last_words())
            raise

    async def until_at_work(self, within_s: float = 20.0) -> None:
        await self.until(lambda: "hero_started" in self.life_log and self.is_alive, within_s, "Hero is at work")


def to_toml(table: Mapping[str, Mapping[str, str]]) -> str:
    """Write sections whose values are TOML already."""
    lines: list[str] = []
    for section, values in table.items():
        lines += [f"[{section}]", *(f"{key} = {value}" for key, value in values.items()), ""]
    return "\n".join(lines)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
