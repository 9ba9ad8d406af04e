"""The doctor finds at noon what would keep a relaunch from being submitted at night."""

import sys
from datetime import timedelta
from pathlib import Path

from bot.clock import SystemClock
from bot.commands.own_probes import probe_contracts
from bot.contracts import Contracts
from bot.model.reading import Unknown
from bot.model.value import PersonName
from bot.sources.iris.client_age import client_build_date

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


async def test_what_can_be_read_and_would_still_fail_is_not_called_usable(tmp_path: Path) -> None:
    (tmp_path / "train.toml").write_text(CONTRACT, encoding="utf-8")
    (tmp_path / "bad.toml").write_text("dri = 7\n", encoding="utf-8")

    *_, last = await probe_contracts(Contracts(tmp_path, frozenset({PersonName("ann")})))

    assert last.detail == "1 of 2 can be read; what would fail of train is said above"


async def test_a_client_in_a_checkout_that_is_not_there_is_missed_for_the_checkout(tmp_path: Path) -> None:
    client = tmp_path / "iris"
    client.write_text(f"#!{sys.executable}\n", encoding="utf-8")
    checkout = tmp_path / "gone"

    found = await client_build_date(
        (str(client),), deadline=timedelta(seconds=30), clock=SystemClock(), directory=checkout
    )

    assert isinstance(found, Unknown)
    assert found.detail == f"the checkout {checkout} is no directory"
