"""The demo's run is a real one: it learns, it is really killed, and what it resumes is what it was."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bot.demo.learner import SYMBOLS, Learner
from bot.demo.trainer import parse_options, progress, train
from bot.model.contract import Contract, LocalContract, MetricsContract
from bot.model.reading import Known
from bot.model.snapshot import Checkpoint, newest_complete
from bot.model.value import PersonName, RunId
from bot.sources.checkpoints import CheckpointReader
from bot.sources.metric_lines import LinePatterns
from bot.sources.metric_rows import Row
from tests.fakes.clock import FakeClock


def launch(output: Path, *words: object, steps: int = 24) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bot.demo.trainer", "--output", output, "--steps", steps, "--checkpoint-every", 5]
    return subprocess.run([*map(str, command), *map(str, words)], capture_output=True, text=True, check=False)


def rows_of(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def losses_of(output: Path) -> dict[int, float]:
    """Return the last loss that was logged for each step."""
    return {int(row["step"]): row["loss"] for row in rows_of(output)}


async def checkpoints_of(output: Path) -> tuple[Checkpoint, ...]:
    contract = Contract(
        run_id=RunId("demo"),
        dri=PersonName("you"),
        command=("train",),
        output_root=str(output),
        orchestrator=LocalContract(kind="local", directory="jobs"),
    )
    reading = await CheckpointReader(FakeClock()).checkpoints(contract)
    assert isinstance(reading, Known)
    return reading.value


async def test_a_run_that_was_killed_goes_on_bit_by_bit_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert launch(whole).returncode == 0

    first = launch(killed, "--crash-at", 13, "--last-words", "the machine goes away")
    newest = newest_complete(await checkpoints_of(killed))
    second = launch(killed, "--crash-at", 13)

    assert first.returncode == -9
    assert first.stdout.rstrip().endswith("the machine goes away")
    assert newest is not None
    assert newest.step == 10
    assert second.returncode == 0
    assert f"Loading checkpoint from {newest.path}\n" in second.stdout
    assert [row["step"] for row in rows_of(killed)] == [*range(1, 13), *range(11, 25)]
    assert losses_of(killed) == losses_of(whole)
    assert [each.step for each in await checkpoints_of(killed) if each.is_complete] == [5, 10, 15, 20, 24]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--raise-at", 7), "NameError: name 'softness' is not defined"),
        (("--nan-at", 7), "RuntimeError: Non-finite loss (nan) at step 7."),
    ],
    ids=["bug", "nan"],
)
async def test_harm_is_done_in_the_first_launch_alone(tmp_path: Path, words: tuple[object, ...], said: str) -> None:
    first = launch(tmp_path, *words)
    newest = newest_complete(await checkpoints_of(tmp_path))
    second = launch(tmp_path, *words)

    assert first.returncode == 1
    assert said in first.stderr
    assert newest is not None
    assert newest.step == 5
    assert second.returncode == 0
    assert all(map(math.isfinite, losses_of(tmp_path).values()))


def test_a_nan_is_logged_before_the_run_ends(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="Non-finite"):
        train(parse_options(["--output", str(tmp_path), "--steps", "9", "--nan-at", "3"]))

    assert [math.isnan(row["loss"]) for row in rows_of(tmp_path)] == [False, False, True]


async def test_a_save_that_was_cut_off_is_not_resumed_from(tmp_path: Path) -> None:
    train(parse_options(["--output", str(tmp_path), "--steps", "6", "--checkpoint-every", "3"]))
    (tmp_path / "checkpoints/step-6/metadata.json").unlink()
    (tmp_path / "checkpoints/step-9").mkdir()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "lo')

    train(parse_options(["--output", str(tmp_path), "--steps", "6", "--checkpoint-every", "3"]))

    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert lines[6] == '{"step": 7, "lo'
    assert [json.loads(line)["step"] for line in lines[7:]] == [4, 5, 6]
    assert [each.step for each in await checkpoints_of(tmp_path) if each.is_complete] == [3, 6]


def test_it_learns() -> None:
    learner = Learner(seed=7, steps=60)

    losses = [learner.advance().loss for _ in range(60)]

    assert abs(losses[0] - math.log(SYMBOLS)) < 0.3
    assert float(np.mean(losses[-5:])) < 2.6


def test_a_restored_learner_takes_the_same_step() -> None:
    one, other = Learner(seed=3, steps=9), Learner(seed=3, steps=9)
    for _ in range(4):
        one.advance()

    other.restore(one.step, one.state())

    assert [one.advance() for _ in range(3)] == [other.advance() for _ in range(3)]


def test_its_progress_lines_are_rows() -> None:
    parsed = LinePatterns(MetricsContract()).parse(progress(120, 100, 1000, 61.0, 2.5))

    assert isinstance(parsed, Row)
    assert (parsed.row.step, parsed.row.values) == (120, {"loss": 2.5})


def test_it_starts_without_the_rest_of_hero() -> None:
    program = "import sys, bot.demo.trainer; print(*sorted({name.split('.')[0] for name in sys.modules}))"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert "numpy" in loaded
    assert not {"pydantic", "structlog", "sqlalchemy", "fsspec"} & set(loaded)
