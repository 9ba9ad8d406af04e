"""What Hero demands of, and adds to, a contract's Iris submit command."""

import pytest

from bot.actions.iris_command import prepare_submission
from bot.actions.ports import Submission, Unlaunchable
from bot.model.contract import Contract, IrisContract
from bot.model.value import JobId, PersonName, RunId


def contract_of(command: str, *, hardware: str | None = None, environment: dict[str, str] | None = None) -> Contract:
    return Contract(
        run_id=RunId("hero-1"),
        dri=PersonName("ana"),
        command=tuple(command.split()),
        environment=environment or {},
        hardware=hardware,
        output_root="/nowhere",
        orchestrator=IrisContract(kind="iris", job_id=JobId("/marin/hero-coord")),
    )


def submission_of(command: str, *, environment: dict[str, str] | None = None) -> Submission:
    prepared = prepare_submission(contract_of(command, environment=environment), default_name="hero-1-r2")
    assert isinstance(prepared, Submission), prepared
    return prepared


def problems_of(command: str, *, hardware: str | None = None) -> str:
    prepared = prepare_submission(contract_of(command, hardware=hardware), default_name="hero-1-r2")
    assert isinstance(prepared, Unlaunchable), prepared
    return "; ".join(prepared.problems)


def test_a_job_without_a_name_gets_one_that_can_be_looked_up() -> None:
    prepared = submission_of("uv run iris --config c.yaml job run --no-wait -- python train.py --no-wait")

    assert prepared.job_id == "/marin/hero-1-r2"
    assert " ".join(prepared.command) == (
        "uv run iris --config c.yaml job run --job-name hero-1-r2 --user marin --no-wait -- python train.py --no-wait"
    )
    assert len(prepared.notes) == 2


@pytest.mark.parametrize("given", ["--job-name hero-x --user bo", "--job-name=hero-x --user=bo"])
def test_a_job_with_name_and_user_keeps_its_words(given: str) -> None:
    command = f"iris job run --no-wait {given} -- python train.py --job-name other"

    prepared = submission_of(command)

    assert (prepared.job_id, prepared.notes) == ("/bo/hero-x", ())
    assert " ".join(prepared.command) == command


def test_the_contracts_environment_may_name_the_user() -> None:
    prepared = submission_of("iris job run --no-wait --job-name x -- true", environment={"IRIS_USER": "cy"})

    assert (prepared.job_id, prepared.notes) == ("/cy/x", ())


@pytest.mark.parametrize(
    "command",
    [
        "iris job run -- python train.py --no-wait",
        "iris job run python train.py --no-wait",
        "iris job run -e FLAG --no-wait -- python train.py",
        "bash launch.sh",
    ],
)
def test_a_command_that_would_wait_is_refused_with_the_fix(command: str) -> None:
    assert "add --no-wait" in problems_of(command)


@pytest.mark.parametrize("device", ["2:H100x8", "v5p-8:spot"])
def test_a_reservation_of_any_other_device_alone_is_refused_too(device: str) -> None:
    assert "add --tpu or --gpu" in problems_of(f"iris job run --no-wait --reserve {device} -- python train.py --gpu 8")


@pytest.mark.parametrize(
    "reserve", ["--reserve v5p-8", "--reserve=4:v5litepod-16", "--reserve v6e-4", "--reserve v4-8"]
)
def test_a_reservation_alone_is_refused_with_the_fix(reserve: str) -> None:
    variant = reserve.replace("=", " ").split()[-1].split(":")[-1]

    assert f"add --tpu {variant}" in problems_of(f"iris job run --no-wait {reserve} -- python train.py --tpu v5p-8")


def test_other_signs_of_a_tpu_job_want_a_tpu_too() -> None:
    assert "add --tpu" in problems_of("iris job run --no-wait --extra tpu -- python train.py")
    assert "add --tpu v5p-64" in problems_of("iris job run --no-wait -- python train.py", hardware="v5p-64")


@pytest.mark.parametrize(
    "command",
    [
        "iris job run --no-wait --extra tpu --tpu v5p-8 --reserve v5p-8 -- python train.py",
        "iris job run --no-wait --reserve H100x8 --gpu H100x8 -- python train.py",
        "iris job run -e NOTE --tpu --no-wait -- python train.py",
    ],
)
def test_what_is_complete_may_be_launched(command: str) -> None:
    assert submission_of(command).job_id == "/marin/hero-1-r2"


@pytest.mark.parametrize("given", ["--job-name a/b", "--job-name=", "--user /me"])
def test_a_name_that_iris_would_refuse_is_refused_before(given: str) -> None:
    assert "without '/'" in problems_of(f"iris job run --no-wait {given} -- true")


def test_a_launch_script_keeps_its_words_and_makes_the_contracts_job() -> None:
    prepared = submission_of("bash launch.sh --no-wait --big")

    assert prepared.job_id == "/marin/hero-coord"
    assert " ".join(prepared.command) == "bash launch.sh --no-wait --big"
