"""The doctor finds at noon what would keep a relaunch from being submitted at night."""

from pathlib import Path

from bot.commands.own_probes import probe_contracts
from bot.contracts import Contracts
from bot.model.value import PersonName

CONTRACT = """
dri = "ann"
command = "iris job run --reserve v5p-8 -- python train.py"
output_root = "out"
[orchestrator]
kind = "iris"
job_id = "/ann/train"
"""


async def test_a_command_that_could_not_be_submitted_is_a_line_with_its_fix(tmp_path: Path) -> None:
    (tmp_path / "train.toml").write_text(CONTRACT, encoding="utf-8")

    probes = await probe_contracts(Contracts(tmp_path, frozenset({PersonName("ann")})))

    command = next(probe for probe in probes if probe.connection == "command train")
    assert not command.ok
    assert "--no-wait" in command.detail
    assert "--tpu" in command.detail
    assert str(tmp_path / "train.toml") in command.fix
