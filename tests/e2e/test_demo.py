"""``hero demo`` as a newcomer runs it: without an account, a configuration, or a network."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.hero import ROOT
from tests.e2e.terminal import type_in_a_terminal
from tests.fakes.waiting import block_until

LIMIT_S = 90


def play(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    begun = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "bot", "demo", *options, "--directory", str(directory)],
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


def kinds_of_lines(text: str) -> set[str]:
    """Return what each message and each of its lines begins with, up to the first word that is another each time."""
    lines = (re.sub(r"(?<=demo at )step \S+: |\b[0-9a-f]{12}\b", "", line.strip()) for line in text.splitlines())
    told = (
        line
        for line in lines
        if line.startswith(("🚨", "\N{INFORMATION SOURCE}", "·", "│ ", "→", "> ")) and not line.endswith("│")
    )
    return {re.split(r"\d|/|█|: ", line, maxsplit=1)[0].strip() for line in told}


def transcript() -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return readme[readme.index("This is what `uv run hero demo") : readme.index("The message that begins with `R1:`")]


def first_message() -> str:
    text = transcript()
    return text[text.index("\N{INFORMATION SOURCE}") : text.index("🚨")]


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_demo_shows_failure_request_approval_relaunch_from_the_checkpoint_and_completion(tmp_path: Path) -> None:
    ended = play(tmp_path, "--auto")

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
    shown, printed = kinds_of_lines(transcript()), kinds_of_lines(ended.stdout)
    if "Hero watches this run" not in ended.stdout:
        # On a machine that is slow to begin, the failure is what is seen first.
        shown = kinds_of_lines(transcript().replace(first_message(), ""))
    assert len(shown) > 30
    assert shown <= printed, "the README's transcript is not what is printed any more: paste it anew"
    # A machine so busy that Hero's own looks come late is told of too, and that is no part of the story.
    assert printed <= shown or "monitor.stale" in ended.stdout, "the README's transcript leaves something out"


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_demo_relaunches_nothing_on_a_denial(tmp_path: Path) -> None:
    ended = play(tmp_path, "--deny")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    in_order(ended.stdout, "R1: may Hero relaunch", "> deny R1", "R1 was denied by you", "nothing was relaunched")
    assert launches(tmp_path) == ["demo-0"]


def left_running(directory: Path) -> list[str]:
    """Return every process that was started for the demo in this directory, its supervisors included."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            words = " ".join(process.cmdline())
            if str(directory) in words and process.pid != os.getpid():
                found.append(words)
    return found


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("words", [b"running, step", b"Type approve"], ids=["training", "asked"])
def test_ctrl_c_ends_the_demo_quietly_and_leaves_nothing_behind(tmp_path: Path, words: bytes) -> None:
    code, said = type_in_a_terminal(["demo"], [(words, b"\x03")], limit_s=LIMIT_S, TMPDIR=str(tmp_path))

    assert code == 130
    assert b"Traceback" not in said
    assert b"what happened" not in said
    assert left_running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(LIMIT_S + 30)
def test_what_is_typed_in_the_terminal_is_the_dris_answer(tmp_path: Path) -> None:
    code, said = type_in_a_terminal(
        ["demo", "--directory", str(tmp_path)], [(b"Type approve", b"deny\n")], limit_s=LIMIT_S
    )

    assert code == 0
    in_order(said.decode(), "R1 was denied by you", "nothing was relaunched")


@pytest.mark.timeout(LIMIT_S + 30)
def test_an_interrupted_demo_ends_its_trainer_where_its_files_stay(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "demo", "--auto", "--directory", str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        block_until((tmp_path / "output" / "metrics.jsonl").exists, LIMIT_S, what="the trainer trains")
        demo.send_signal(signal.SIGINT)
        said, _ = demo.communicate(timeout=LIMIT_S)

    assert demo.returncode == 130
    assert "Traceback" not in said
    assert left_running(tmp_path) == []
    assert (tmp_path / "jobs" / "demo-0" / "exit.json").exists()


@pytest.mark.timeout(LIMIT_S + 30)
def test_a_demo_that_nobody_can_answer_says_so_and_ends(tmp_path: Path) -> None:
    ended = play(tmp_path)

    assert ended.returncode == 1
    in_order(ended.stdout, "R1: may Hero relaunch", "The input has ended without an answer", "--auto or --deny")
    assert launches(tmp_path) == ["demo-0"]


@pytest.mark.timeout(LIMIT_S + 30)
def test_two_answers_at_once_are_wrong_usage(tmp_path: Path) -> None:
    ended = play(tmp_path, "--auto", "--deny")

    assert ended.returncode == 2
    assert "hero: --auto and --deny:" in ended.stderr
    assert list(tmp_path.iterdir()) == []
