"""The README's section "One box" as a newcomer follows it: its files, its trainer, and a terminal."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.e2e.hero import ROOT, free_port
from tests.e2e.terminal import type_in_a_terminal
from tests.unit.test_readme import README, blocks

LIMIT_S = 90


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """The directory that the README describes, with a cadence of a second and a trainer of ten seconds."""
    for example in blocks(README.read_text(encoding="utf-8"), "toml"):
        name, _, text = example.partition("\n")
        if name.startswith("# box/"):
            path = tmp_path / name.removeprefix("# ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    contract = tmp_path / "box" / "runs" / "toy.toml"
    contract.write_text(re.sub(r'= "\d+s"', '= "1s"', contract.read_text()))
    (trainer,) = blocks((ROOT / "docs" / "trainer.md").read_text(encoding="utf-8"), "python")
    assert "time.sleep(0.5)" in trainer, "long enough for a newcomer to see it run"
    trainer = trainer.replace("time.sleep(0.5)", "time.sleep(0.05)")
    (tmp_path / "box" / "train.py").write_text(trainer, encoding="utf-8")
    return tmp_path / "box"


@pytest.mark.timeout(LIMIT_S + 30)
def test_a_first_launch_is_asked_for_at_the_terminal_and_the_log_does_not_stand_between(box: Path) -> None:
    script = [
        (b"hero.log", b"/hero relaunch toy\n"),
        (b"may Hero", b"approve\n"),
        (b"the final step 200 was seen", b"\x03"),
    ]

    code, said = type_in_a_terminal(
        ["run"],
        script,
        limit_s=LIMIT_S,
        where=box,
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        HERO_BOT__HTTP=f"127.0.0.1:{free_port()}",
        HERO_BOT__POLL="0.2s",
        HERO_BOT__JITTER="0s",
    )

    log = (box / "hero.log").read_text()
    assert code == 0, log
    assert '"event": "hero_started"' in log
    assert '"event": "hero_stopped"' in log
    assert b"hero_stopped" not in said
    assert (box / "jobs" / "toy-0" / "exit.json").exists()
    assert (box / "out" / "checkpoints" / "step-200" / "metadata.json").exists()
