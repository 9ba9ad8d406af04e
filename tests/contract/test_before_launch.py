"""The final step, the coming configuration and the reference from real files, real commands and a real database."""

import asyncio
import json
import os
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from bot.building_looks import recorded_in
from bot.clock import SystemClock
from bot.model.contract import Basis, Contract
from bot.model.drift import ConfigShape, shape_of
from bot.model.launched import LaunchedConfig
from bot.model.preflight import StepCount
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Decision
from bot.model.run import Run
from bot.model.snapshot import Snapshot
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.sources.config.before_launch import BeforeLaunch, Recorded
from bot.store.store import Store
from tests.fakes.launched import TREE, config, tree, with_config
from tests.fakes.snapshots import AT, contract, instance, snapshot
from tests.fakes.waiting import until

CLOCK = SystemClock()
GENEROUS = timedelta(seconds=60)
SECRET = "pl4nted-hunter2-s3cret"
KNOWN = "0f-the-settings-s3cret"


def promised(checkout: Path, *, environment: dict[str, str] | None = None, **fields: Any) -> Contract:
    command = fields.pop("command", "python -m train")
    return contract(checkout=str(checkout), command=command, environment=environment or {}, config=fields)


def prints(code: str) -> dict[str, Any]:
    return {"final_step_command": [sys.executable, "-c", code]}


def reader(*, command_deadline: timedelta = GENEROUS, recorded: Recorded | None = None) -> BeforeLaunch:
    return BeforeLaunch(
        CLOCK,
        Redactor([KNOWN]),
        recorded=recorded,
        deadline=GENEROUS,
        command_deadline=command_deadline,
    )


async def told(of: Contract, seen: Snapshot | None = None) -> StepCount | Unknown | None:
    found = await reader().steps(of, seen or snapshot(jobs=(), is_first=True))
    return found.value if isinstance(found, Known) else found


def gap(found: object) -> Unknown:
    assert isinstance(found, Unknown), found
    return found


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("run.json", json.dumps(TREE), "trainer.num_train_steps"),
        ("run.yaml", "trainer:\n  num_train_steps: 1e4\n", "trainer.num_train_steps"),
        ("run.toml", "[trainer]\nnum_train_steps = 10_000\n", "trainer.num_train_steps"),
        ("run.yml", "stop_after_steps: 10000\ntrainer:\n  num_train_steps: 20000\n", "stop_after_steps"),
    ],
)
async def test_the_file_that_is_launched_with_tells_the_final_step(
    tmp_path: Path, name: str, text: str, key: str
) -> None:
    (tmp_path / name).write_text(text)

    found = await told(promised(tmp_path, launch=name, **prints("print(1)")))

    assert isinstance(found, StepCount)
    assert (found.steps, found.basis) == (10_000, Basis.MEASURED)
    assert found.origin == f"{key} of {tmp_path / name}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, Gap.REFUSED),
        ("trainer: [", Gap.UNRECOGNISED),
        ("[1, 2]", Gap.UNRECOGNISED),
        ("trainer: {num_train_steps: many}", Gap.UNRECOGNISED),
        ("trainer: {num_train_steps: -5}", Gap.UNRECOGNISED),
        ("trainer: {num_train_steps: 1.5}", Gap.UNRECOGNISED),
    ],
)
async def test_a_file_that_is_named_and_tells_nothing_usable_is_unknown_and_nothing_takes_its_place(
    tmp_path: Path, text: str | None, reason: Gap
) -> None:
    if text is not None:
        (tmp_path / "run.yaml").write_text(text)

    found = gap(
        await told(promised(tmp_path, launch="run.yaml", command="t --num_train_steps 7", **prints("print(9)")))
    )

    assert found.reason is reason
    assert "run.yaml" in found.detail


async def test_a_file_that_may_not_be_read_is_unknown(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.yaml")

    assert gap(await told(promised(tmp_path, launch="run.yaml"))).reason is Gap.UNRECOGNISED


@pytest.mark.parametrize(
    "code",
    [
        "print('loading\\nfinal step: 12_000\\n\\n')",
        "print('12000')",
        "print('steps=1.2e4')",
        "import json; print('noise'); print(json.dumps({'final_step': 12000}))",
        "import json; print(json.dumps({'trainer': {'num_train_steps': 12000, 'seed': 3}}, indent=2))",
        "import os; print(os.environ['STEPS'])",
        "import pathlib; print(pathlib.Path('steps').read_text())",
    ],
)
async def test_the_owners_command_tells_where_the_file_does_not(tmp_path: Path, code: str) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "steps").write_text("12000")
    of = promised(tmp_path, launch="run.json", environment={"STEPS": "12000"}, **prints(code))

    assert await told(of) == StepCount(steps=12_000, origin="[config] final_step_command", basis=Basis.MEASURED)


@pytest.mark.parametrize(
    "code",
    [
        "print()",
        "print('no number')",
        "print('500/12000 [01:00<20:00, loss=2.0]')",
        "print(' 4%|#     | 500/12k')",
        "print('about 12k')",
        "print('step1 12000')",
        "print('0')",
        "print('-5')",
        "print('1.5')",
        "print('12,000')",
        "print('{')",
        "print('{\"other\": 3}')",
        "print('[12000]]' * 2)",
        "print('9' * 300)",
        "import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\x00')",
        "print('x' * 300_000); print(12000)",
    ],
)
async def test_what_is_not_clearly_one_number_is_unknown(tmp_path: Path, code: str) -> None:
    found = gap(await told(promised(tmp_path, command="t --num_train_steps 7", **prints(code))))

    assert found.reason is Gap.UNRECOGNISED
    assert len(found.detail) < 700


async def test_a_command_that_fails_is_unknown_by_its_last_words(tmp_path: Path) -> None:
    code = "import sys; print(12000); sys.stderr.write('Traceback\\nKeyError: num_train_steps\\n'); sys.exit(3)"

    failed = gap(await told(promised(tmp_path, **prints(code))))
    absent = gap(await told(promised(tmp_path, final_step_command=["/no/such/program"])))
    nowhere = gap(await told(promised(tmp_path / "gone", **prints("print(1)"))))

    assert failed.reason is Gap.REFUSED
    assert failed.detail.endswith("ended with exit code 3: KeyError: num_train_steps")
    assert absent.reason is nowhere.reason is Gap.REFUSED
    assert "program) cannot be started" in absent.detail
    assert "gone" in nowhere.detail


async def test_a_command_that_hangs_is_ended_with_its_children_and_unknown(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path('pids.new').write_text(f'{os.getpid()} {child.pid}')\n"
        "os.rename('pids.new', 'pids')\n"
        "time.sleep(600)\n"
    )
    of = promised(tmp_path, **prints(code))
    asked = asyncio.ensure_future(reader(command_deadline=timedelta(seconds=5)).steps(of, snapshot(jobs=())))

    found = gap(await asked)

    assert found.reason is Gap.TIMEOUT
    assert "no answer in 5 s" in found.detail
    for pid in (tmp_path / "pids").read_text().split():
        await until(partial(_is_gone, int(pid)), 30, f"{pid} ended")


async def test_what_a_command_leaves_behind_is_ended(tmp_path: Path) -> None:
    code = (
        "import pathlib, subprocess, sys\n"
        "quiet = subprocess.DEVNULL\n"
        "argv = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "child = subprocess.Popen(argv, stdout=quiet, stderr=quiet)\n"
        "pathlib.Path('pid').write_text(str(child.pid))\n"
        "print(12000)\n"
    )

    found = await told(promised(tmp_path, **prints(code)))

    assert found == StepCount(steps=12_000, origin="[config] final_step_command", basis=Basis.MEASURED)
    await until(partial(_is_gone, int((tmp_path / "pid").read_text())), 30, "what was left behind ended")


async def test_a_command_is_ended_when_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    code = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)"
    asked = asyncio.ensure_future(reader().steps(promised(tmp_path, **prints(code)), snapshot(jobs=())))
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 60)

    asked.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked
    await until(partial(_is_gone, int((tmp_path / "pid").read_text())), 30, "it ended")


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has reaped has."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("code", "argument"),
    [
        ("import sys; sys.exit('bad password=' + sys.argv[-1])", SECRET),
        ("import sys; sys.exit('refused: ' + sys.argv[-1])", SECRET),
        ("import os; print('no step, only ' + os.environ['MY_API_KEY'])", "x"),
        ("import os; raise SystemExit(os.environ['MY_API_KEY'])", "x"),
        (f"print('x {KNOWN} y')", "x"),
        (f"print('postgres://me:{SECRET}@host/db')", "x"),
        (f"import sys; sys.exit('token:\\n{KNOWN}')", "x"),
    ],
)
async def test_a_secret_that_a_command_prints_is_told_nowhere(
    tmp_path: Path, code: str, argument: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", code, "--password", argument]
    of = promised(tmp_path, final_step_command=command, environment={"MY_API_KEY": SECRET})

    found = gap(await told(of))

    printed = capfd.readouterr()
    for secret in (SECRET, KNOWN):
        assert secret not in found.model_dump_json() + caplog.text + printed.out + printed.err + repr(of)


async def test_the_owners_command_gets_none_of_heros_own_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERO_SLACK__BOT_TOKEN", SECRET)
    code = "import os; print(1 + sum(name.startswith('HERO_') for name in os.environ))"

    found = await told(promised(tmp_path, **prints(code)))

    assert isinstance(found, StepCount)
    assert found.steps == 1


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_a_python_command_leaves_nothing_in_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("STEPS = 12000\n")

    found = await told(
        promised(tmp_path, final_step_command=[sys.executable, "-c", "import model; print(model.STEPS)"])
    )

    assert isinstance(found, StepCount)
    assert names(tmp_path) == ["model.py"]


@pytest.mark.parametrize(
    ("command", "steps", "keys"),
    [
        ("python -m train --trainer.num_train_steps 9000", 9000, {}),
        ("python -m train --trainer.num_train_steps=9_000 --seed 3", 9000, {}),
        ("python -m train trainer.num_train_steps=9000", 9000, {}),
        ("python -m train --train-iters 1 --train-iters 9000", 9000, {}),
        ("bash -c 'python -m train --num_train_steps 9e3'", 9000, {}),
        ("python -m train --num_train_steps 20000 --stop_after_steps 9000", 9000, {}),
        ("python -m train --schedule.total 9000 --num_train_steps 4", 9000, {"final_step": "schedule.total"}),
        ("python -m train --eval_num_train_steps 9000", None, {}),
        ("python -m train --max_train_seconds 9000", None, {}),
        ("python -m train", None, {}),
    ],
)
async def test_the_commands_own_argument_tells_where_nothing_else_does(
    tmp_path: Path, command: str, steps: int | None, keys: dict[str, str]
) -> None:
    found = await told(promised(tmp_path, command=command, keys=keys))

    assert (found.steps if isinstance(found, StepCount) else found) == steps
    if isinstance(found, StepCount):
        assert found.basis is Basis.STATED
        assert found.origin.startswith("the command's ")


async def test_an_argument_that_is_no_number_is_unknown(tmp_path: Path) -> None:
    found = gap(await told(promised(tmp_path, command="python -m train --num_train_steps $STEPS")))

    assert found.reason is Gap.UNRECOGNISED
    assert "$STEPS" in found.detail


async def test_what_the_launch_before_resolved_counts_last_and_is_inferred(tmp_path: Path) -> None:
    seen = snapshot(
        launch=instance().model_copy(update={"launched": shape_of(config(tree(trainer__num_train_steps=7)))})
    )
    of = promised(tmp_path)

    remembered = await told(of, seen)
    read = await told(of, with_config(seen, config(tree(trainer__num_train_steps=8))))
    argued = await told(promised(tmp_path, command="t --num_train_steps 9"), seen)

    assert isinstance(remembered, StepCount)
    assert (remembered.steps, remembered.basis) == (7, Basis.INFERRED)
    assert isinstance(read, StepCount)
    assert read.steps == 8
    assert isinstance(argued, StepCount)
    assert argued.steps == 9


def values_of(reading: Reading[LaunchedConfig | None] | Reading[ConfigShape | None]) -> dict[str, str]:
    assert isinstance(reading, Known), reading
    assert reading.value is not None
    return reading.value.values


async def test_the_coming_configuration_and_the_reference_are_read_without_their_secrets(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.yaml").write_text(f"api_key: {SECRET}\ntrainer: {{train_batch_size: 64}}\n")
    of = promised(tmp_path, launch="out/run.yaml", reference=f"{tmp_path}/out/run.yaml")

    coming, reference = await reader().coming(of), await reader().reference(of)

    assert values_of(coming)["trainer.train_batch_size"] == values_of(reference)["trainer.train_batch_size"] == "64"
    assert SECRET not in coming.model_dump_json() + reference.model_dump_json()


async def test_without_names_nothing_is_read_and_what_is_missing_is_unknown(tmp_path: Path) -> None:
    bare, lost = promised(tmp_path), promised(tmp_path, launch="gone.yaml", reference="s/gone.json")

    found = [await reader().coming(bare), await reader().reference(bare)]
    assert all(isinstance(each, Known) and each.value is None for each in found)
    assert gap(await reader().coming(lost)).detail.endswith("gone.yaml does not exist")
    assert gap(await reader().reference(lost)).detail.endswith("gone.json does not exist")


async def test_a_reference_that_is_a_run_is_the_newest_launch_on_record_whose_configuration_was_read(
    tmp_path: Path,
) -> None:
    store = await Store.open(f"sqlite:///{tmp_path / 'hero.db'}", CLOCK, Redactor())
    try:
        older = RunId("hero-1.5b")
        launches = [
            instance().model_copy(
                update={"run_id": older, "number": number, "job_id": f"/me/{number}", "launched": shape}
            )
            for number, shape in enumerate(
                [shape_of(config(tree(trainer__seed=1))), shape_of(config(tree(trainer__seed=2))), None]
            )
        ]
        async with store.transaction() as tx:
            await tx.apply(Decision(run=Run(run_id=older), instances=tuple(launches)), older, AT)

        found = await reader(recorded=recorded_in(store)).reference(promised(tmp_path, reference=older))
        lost = await reader(recorded=recorded_in(store)).reference(promised(tmp_path, reference="hero-never"))
        nowhere = await reader().reference(promised(tmp_path, reference=older))
    finally:
        await store.close()

    assert values_of(found)["trainer.seed"] == "2"
    assert isinstance(found, Known)
    assert found.value is not None
    assert found.value.origin.endswith("as launched by hero-1.5b")
    assert "hero-never" in gap(lost).detail
    assert gap(nowhere).reason is Gap.NOT_CONFIGURED
