"""Real git repositories on disk: a bare remote, and clones of it that commit, push and are looked at."""

import os
import subprocess
from pathlib import Path

WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(directory: Path, *arguments: str) -> str:
    """Run git and return what it printed; anything but success is the test's failure."""
    ended = subprocess.run(
        ("git", *WHO, *arguments), cwd=directory, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, f"git {' '.join(arguments)}: {ended.stderr}"
    return ended.stdout.strip()


class Repository:
    """A clone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str) -> str:
        return git(self.path, *arguments)

    def write(self, name: str, text: str | bytes = "x = 1\n") -> Path:
        """Put a file into the work tree."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def commit(self, name: str = "train.py", text: str = "x = 1\n") -> str:
        """Commit one file and return the commit's SHA."""
        self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "--quiet", "--message", f"change {name}")
        return self.head

    def push(self, branch: str = "main") -> None:
        self.git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")


class Origin:
    """A bare repository that clones push to and fetch from, at a ``file://`` address."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / "origin.git"
        self.path.mkdir(parents=True)
        git(self.path, "init", "--quiet", "--bare", "--initial-branch", "main")
        first = self.clone("seed")
        first.commit("train.py", "x = 0\n")
        first.push()

    @property
    def url(self) -> str:
        return f"file://{os.fspath(self.path)}"

    def clone(self, name: str = "checkout", *options: str) -> Repository:
        path = self._directory / name
        git(self._directory, "clone", "--quiet", *options, self.url, str(path))
        found = Repository(path)
        if not (path / "train.py").exists():
            found.git("symbolic-ref", "HEAD", "refs/heads/main")
        return found
