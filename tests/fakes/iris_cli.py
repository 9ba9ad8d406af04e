"""An ``iris`` program that prints what each generation printed, as recorded from marin-iris 0.2.20 and 0.2.227."""

import json
import stat
import sys
from pathlib import Path

_PROGRAM = """#!{python}
import json, os, signal, subprocess, sys, time
table = json.load(open({table!r}))
words = sys.argv[3:]  # after the selection of the controller
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(words) + "\\n")
for answer in table:
    if words[: len(answer["words"])] == answer["words"]:
        break
else:
    name = next((w for w in words if not w.startswith("-")), "")
    sys.stderr.write("Usage: iris [OPTIONS] COMMAND [ARGS]...\\n\\nError: No such command '%s'.\\n" % name)
    sys.exit(2)
if answer["hangs"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"])
    with open({pids!r}, "w") as pids:
        pids.write("%d %d" % (os.getpid(), child.pid))
    while True:
        sys.stderr.write("W rigging.timing Operation list_jobs failed (attempt 1/240), retrying in 0.46s: refused\\n")
        sys.stderr.flush()
        time.sleep(0.05)
sys.stdout.buffer.write(answer["stdout"].encode())
sys.stderr.write("StarletteDeprecationWarning: starlette.middleware.wsgi is deprecated\\n" + answer["stderr"])
sys.exit(answer["exit"])
"""


class FakeIris:
    """The program, what it will say, and what it was asked."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "iris"
        self.pids_file = directory / "pids"
        self._table = directory / "answers.json"
        self._calls = directory / "calls.jsonl"
        self._answers: list[dict[str, object]] = []
        paths = {"table": str(self._table), "calls": str(self._calls), "pids": str(self.pids_file)}
        self.path.write_text(_PROGRAM.format(python=sys.executable, **paths))
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self._table.write_text("[]")

    def says(self, *words: str, stdout: str = "", stderr: str = "", exit_code: int = 0, hangs: bool = False) -> None:
        """Answer a command that begins with these words; without any, it knows no such command."""
        answer = {"words": words, "stdout": stdout, "stderr": stderr, "exit": exit_code, "hangs": hangs}
        self._answers.append(answer)
        self._table.write_text(json.dumps(self._answers))

    @property
    def calls(self) -> list[list[str]]:
        """Every command so far, without the selection of the controller."""
        return [json.loads(line) for line in self._calls.read_text().splitlines()] if self._calls.exists() else []
