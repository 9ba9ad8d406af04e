"""A trainer that writes down what it resolved, in the README's one box: its end and wrong output are known by it."""

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.hero import free_port
from tests.e2e.terminal import type_in_a_terminal
from tests.e2e.test_one_box import LIMIT_S, box

__all__ = ["box"]

WRITES = """
Path("out").mkdir(exist_ok=True)
resolved = {"num_train_steps": FINAL, "output_dir": "elsewhere", "api_key": "hunter2-hunter2"}
Path("out/config.json").write_text(json.dumps(resolved))
"""


@pytest.mark.timeout(LIMIT_S + 30)
def test_a_wrong_output_is_told_and_the_resolved_final_step_ends_a_run_whose_contract_names_none(box: Path) -> None:
    contract = box / "runs" / "toy.toml"
    promised = "\n".join(line for line in contract.read_text().splitlines() if not line.startswith("final_step"))
    told = 'file = "{output_root}/config.json"\nfinal_step_command = "python -c print(200)"\n'
    contract.write_text(f"{promised}\n[config]\n{told}")
    trainer = box / "train.py"
    trainer.write_text(trainer.read_text().replace("checkpoints =", f"{WRITES}checkpoints =", 1))
    script = [
        (b"hero.log", b"/hero relaunch toy\n"),
        (b"may Hero", b"approve\n"),
        (b"wrong output path: output goes to elsewhere", b""),
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
    assert b"hunter2" not in said
    assert "hunter2" not in log
    assert not any(b"hunter2" in path.read_bytes() for path in box.glob("*.db*"))
