"""``hero demo`` as a newcomer runs it: without an account, a configuration, or a network."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.hero import ROOT

LIMIT_S = 90


def play(mode: str, directory: Path) -> subprocess.CompletedProcess[str]:
    begun = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "bot", "demo", mode, "--directory", str(directory)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S + 20,
        check=False,
    )
    assert time.monotonic() - begun < LIMIT_S
    return ended


def launches(directory: Path) -> list[str]:
    return sorted(each.name for each in (directory / "jobs").iterdir() if each.is_dir())


def in_order(text: str, *words: str) -> None:
    """The words come one after another, wherever the terminal breaks its lines and draws its tables."""
    text = " ".join(text.replace("│", " ").split())
    place = 0
    for word in words:
        found = text.find(word, place)
        assert found >= 0, f"{word!r} does not come after what came before it:\n{text}"
        place = found


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_demo_shows_failure_request_approval_relaunch_from_the_checkpoint_and_completion(tmp_path: Path) -> None:
    ended = play("--auto", tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    in_order(
        ended.stdout,
        "infra preemption",
        "R1: may Hero relaunch this run from step 60?",
        "> approve R1",
        "R1 was approved by you",
        "relaunched from step 60 and training again",
        "the final step 160 was seen",
        "the loss goes on as before",
    )
    assert launches(tmp_path) == ["demo-0", "demo-1"]
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_demo_relaunches_nothing_on_a_denial(tmp_path: Path) -> None:
    ended = play("--deny", tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    in_order(ended.stdout, "R1: may Hero relaunch", "> deny R1", "R1 was denied by you", "nothing was relaunched")
    assert launches(tmp_path) == ["demo-0"]
