"""``hero plan`` over real files, real repositories and a real database: decision, exit code, JSON, and no secrets."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.commands.exits import Exit
from bot.commands.plan import show_plan
from bot.errors import ConfigurationError
from tests.fakes.repositories import Origin, Repository

HERO = '[people.ada]\nconsole = true\n\n[people.bob]\nslack = "U1"\n'
TOY: Mapping[str, Any] = {
    "kind": "diagnostic",
    "dri": "ada",
    "command": "python train.py",
    "output_root": "out",
    "final_step": 100,
}
LOCAL = '[orchestrator]\nkind = "local"\ndirectory = "jobs"\n'


class House:
    """A directory with ``hero.toml``, ``runs/`` and what ``hero plan`` prints there."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capsys = capsys
        (directory / "hero.toml").write_text(HERO)

    def write(self, name: str = "toy", *, where: str = "runs", tables: str = LOCAL, **fields: Any) -> Path:
        path = self.directory / where / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        given = {name: value for name, value in {**TOY, **fields}.items() if value is not None}
        keys = "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
        path.write_text(f"{keys}\n{tables}")
        return path

    def plan(self, path: Path | str) -> tuple[int, dict[str, Any]]:
        code = show_plan(None, str(path), as_json=True)
        return code, json.loads(self._capsys.readouterr().out)

    def text(self, path: Path | str) -> tuple[int, str]:
        code = show_plan(None, str(path), as_json=False)
        return code, self._capsys.readouterr().out


@pytest.fixture
def house(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> House:
    directory = tmp_path / "house"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return House(directory, capsys)


@pytest.fixture
def checkout(tmp_path: Path) -> Repository:
    clone = Origin(tmp_path / "git").clone()
    clone.commit("model.py")
    clone.push()
    return clone


def mine(found: dict[str, Any], check: str) -> list[tuple[str, str]]:
    return [(each["severity"], each["message"]) for each in found["findings"] if each["check"] == check]


def only(found: dict[str, Any], check: str) -> str:
    ((_, message),) = mine(found, check)
    return message


def test_the_json_has_the_promised_shape_and_a_pushed_commit_is_in_order(house: House, checkout: Repository) -> None:
    path = house.write(checkout=str(checkout.path), source_sha=checkout.head)

    code, found = house.plan(path)

    assert set(found) == {"decision", "findings", "values", "command", "digest"}
    assert all(set(each) == {"check", "severity", "message"} for each in found["findings"])
    assert all(set(each) == {"value", "basis"} for each in found["values"].values())
    values = found["values"].values()
    assert {each["basis"] for each in values if each["value"] is not None} <= {"stated", "inferred", "measured"}
    assert found["values"]["resume_root"] == {"value": None, "basis": None}
    assert all(each["basis"] is None for each in values if each["value"] is None)
    assert found["values"]["source_sha"] == {"value": checkout.head, "basis": "stated"}
    assert found["values"]["work_tree"] == {"value": "clean", "basis": "measured"}
    assert found["command"] == "python train.py"
    assert mine(found, "launch.code") == []
    if found["decision"] == "ready":
        assert (code, len(found["digest"])) == (Exit.DONE, 64)
    else:
        assert code in {Exit.BLOCKED, Exit.UNKNOWN}


def test_a_source_that_is_wrong_blocks_with_its_fix(house: House, checkout: Repository) -> None:
    pushed = checkout.head
    branch = house.plan(house.write(checkout=str(checkout.path), source_sha="main"))
    checkout.write("model.py", "x = 2\n")
    dirty = house.plan(house.write(checkout=str(checkout.path), source_sha=pushed))
    approved = house.plan(house.write(checkout=str(checkout.path), source_sha=pushed, dirty_approved=True))
    unpushed_sha = checkout.commit("model.py", "x = 3\n")
    unpushed = house.plan(house.write(checkout=str(checkout.path), source_sha=unpushed_sha))
    stale = house.plan(house.write(checkout=str(checkout.path), source_sha=pushed))

    assert [code for code, _ in (branch, dirty, unpushed, stale)] == [Exit.BLOCKED] * 4
    assert all(found["digest"] is None for _, found in (branch, dirty, stale))
    assert "'main' is no SHA" in only(branch[1], "launch.code")
    assert pushed in only(branch[1], "launch.code")
    assert "not committed" in only(dirty[1], "launch.code")
    assert mine(approved[1], "launch.code")[0][0] == "info"
    assert approved[1]["values"]["patch_sha256"]["basis"] == "measured"
    assert "not pushed" in only(unpushed[1], "launch.code")
    assert "model.py" in only(stale[1], "launch.code")


def test_what_cannot_affect_the_run_blocks_nothing(house: House, checkout: Repository) -> None:
    path = house.write(checkout=str(checkout.path), source_sha=checkout.head)
    for name in ("notes.md", "run.log", "tests/test_model.py", "out/step-1/weights"):
        checkout.write(name, "x")

    _, found = house.plan(path)

    assert mine(found, "launch.code") == []


def test_a_commands_faults_are_told_where_no_cluster_is_configured_either(house: House) -> None:
    path = house.write(
        command="iris job run --reserve v5p-64 --job-name toy -- python train.py",
        tables='[orchestrator]\nkind = "iris"\njob_id = "/ada/toy"\n',
    )

    _, found = house.plan(path)

    told = [message for _, message in mine(found, "launch.command")]
    assert any("iris is not configured here" in message for message in told)
    assert any("--no-wait" in message for message in told)
    assert any("--tpu" in message for message in told)


def test_what_cannot_be_read_is_unknown_and_has_an_exit_code_of_its_own(
    house: House, tmp_path: Path, checkout: Repository
) -> None:
    (tmp_path / "plain").mkdir()
    no_repository = house.plan(house.write(checkout=str(tmp_path / "plain"), source_sha="a" * 40))
    sha = checkout.commit("model.py", "x = 4\n")
    (tmp_path / "git" / "origin.git").rename(tmp_path / "git" / "gone.git")
    remote_gone = house.plan(house.write(checkout=str(checkout.path), source_sha=sha))

    for code, found in (no_repository, remote_gone):
        assert (code, found["decision"], found["digest"]) == (Exit.UNKNOWN, "blocked", None)
        assert mine(found, "launch.code")[0][0] == "warning"
    assert "is no git repository" in only(no_repository[1], "launch.code")


def test_another_runs_output_root_and_tracker_id_block(house: House) -> None:
    tracker = '[tracker]\nmode = "online"\nproject = "p"\nid = "abc"\nresume = "allow"\n'
    house.write("first", tables=LOCAL + tracker, output_root="shared/")
    second = house.write("second", tables=LOCAL + tracker, output_root="./shared/deep")

    code, found = house.plan(second)

    assert code == Exit.BLOCKED
    assert "first" in only(found, "launch.identity")
    assert any("is first's" in message for _, message in mine(found, "launch.tracker"))


@pytest.mark.parametrize(
    ("fields", "check", "named"),
    [
        ({"dri": "carol"}, "launch.people", "nobody in [people]"),
        ({"dri": "bob"}, "launch.people", ""),
        ({"checkout": "/no/such/place"}, "launch.command", "no directory"),
        ({"output_root": "s3://AKIA:hunter2secret@bucket/run"}, "launch.credentials", "holds credentials"),
    ],
)
def test_a_wrong_value_has_its_finding(house: House, fields: dict[str, Any], check: str, named: str) -> None:
    (house.directory / "hero.toml").write_text("console = true\n" + HERO)

    code, found = house.plan(house.write(**fields))

    assert (code, found["decision"], found["digest"]) == (Exit.BLOCKED, "blocked", None)
    assert named in only(found, check)
    assert mine(found, check)[0][0] == "critical"


def test_an_iris_command_that_would_wait_or_only_reserve_is_refused(house: House) -> None:
    (house.directory / "hero.toml").write_text(f'{HERO}\n[iris]\ncontroller_url = "http://127.0.0.1:9"\n')
    iris = '[orchestrator]\nkind = "iris"\njob_id = "/ada/toy"\n'
    path = house.write(command="iris job run --reserve v5p-64 --job-name toy -- python train.py", tables=iris)

    code, found = house.plan(path)

    assert code == Exit.BLOCKED
    said = " ".join(message for _, message in mine(found, "launch.command"))
    assert "--no-wait" in said
    assert "--tpu v5p-64" in said


def test_a_final_step_that_is_not_the_launched_one_blocks_until_it_is_mended(house: House) -> None:
    (house.directory / "run.yaml").write_text("trainer: {num_train_steps: 12000}\n")
    launch = f'{LOCAL}\n[config]\nlaunch = "run.yaml"\n'
    wrong = house.plan(house.write(tables=launch, final_step=10_000))
    mended = house.plan(house.write(tables=launch, final_step=12_000))
    (house.directory / "run.yaml").unlink()
    unread = house.plan(house.write(tables=launch, final_step=12_000))

    assert (wrong[0], wrong[1]["decision"], wrong[1]["digest"]) == (Exit.BLOCKED, "blocked", None)
    assert mine(wrong[1], "launch.final_step")[0][0] == "critical"
    assert "final_step = 10000 (stated) contradicts 12000 from trainer.num_train_steps" in only(
        wrong[1], "launch.final_step"
    )
    assert mine(mended[1], "launch.final_step") == []
    assert mended[1]["values"]["final_step"]["basis"] == "measured"
    assert (unread[0], unread[1]["decision"]) == (Exit.UNKNOWN, "blocked")
    assert "run.yaml does not exist" in only(unread[1], "launch.final_step")


def test_the_owners_command_tells_the_final_step_and_its_failure_is_unknown_without_its_secrets(house: House) -> None:
    config = "[config]\nfinal_step_command = "
    argv = [sys.executable, "-c", "print('final step: 12000')"]
    told = house.plan(house.write(tables=f"{LOCAL}\n{config}{json.dumps(argv)}\n", final_step=None))
    argv = [sys.executable, "-c", "import sys; sys.exit('no: ' + sys.argv[2])", "--token", "hunter2secret"]
    failed = house.plan(house.write(tables=f"{LOCAL}\n{config}{json.dumps(argv)}\n"))

    assert told[1]["values"]["final_step"] == {
        "value": "12000 (from [config] final_step_command)",
        "basis": "inferred",
    }
    assert failed[0] == Exit.UNKNOWN
    assert "ended with exit code 1: no: [redacted]" in only(failed[1], "launch.final_step")
    assert "hunter2secret" not in json.dumps(failed[1])


def test_an_orchestrator_that_does_not_answer_leaves_the_launch_unknown(house: House) -> None:
    sections = '\n[iris]\ncontroller_url = "http://127.0.0.1:9"\ndeadline = "5s"\n'
    (house.directory / "hero.toml").write_text(HERO + sections)
    iris = '[orchestrator]\nkind = "iris"\njob_id = "/ada/toy"\n'
    path = house.write(
        command="iris job run --no-wait --job-name toy -- python train.py", tables=iris, output_root="/srv/toy"
    )

    code, found = house.plan(path)

    assert (code, found["decision"]) == (Exit.UNKNOWN, "blocked")
    assert "/ada/toy" in only(found, "launch.identity")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"final_stepp": 3}, "final_step"),
        ({"final_step": "many"}, "final_step"),
        ({"command": "cd x && python train.py | tee log"}, "shell operator"),
        ({"command": "python 'train.py"}, "cannot be split"),
        ({"output_root": None}, "output_root"),
        ({"params": -1}, "params"),
    ],
)
def test_a_contract_that_cannot_be_used_is_a_finding_and_exit_code_2(
    house: House, fields: dict[str, Any], named: str
) -> None:
    path = house.write(**fields)

    code, found = house.plan(path)

    assert (code, found["decision"], found["values"], found["digest"]) == (Exit.USAGE, "blocked", {}, None)
    assert any(named in message for _, message in mine(found, "launch.contract"))
    with pytest.raises(ConfigurationError, match=named):
        house.text(path)


def test_an_environment_before_the_command_is_no_shell_and_only_its_names_are_shown(house: House) -> None:
    path = house.write(command="SEED=4217881 MODE='a b' python train.py --name 'x y'")

    _, found = house.plan(path)

    assert found["command"] == "python train.py --name 'x y'"
    assert found["values"]["environment"]["value"] == "MODE, SEED"
    assert "4217881" not in json.dumps(found)


def test_secrets_appear_nowhere(
    house: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = ["0123456789abcdef0123456789abcdef01234567", "hunter2secret", "pl4ntedpassword", "1r1st0ken-value"]
    monkeypatch.setenv("HERO_IRIS__TOKEN", planted[3])
    key, flag, password, token = planted
    path = house.write(
        command=f"WANDB_API_KEY={key} train --api-key {flag} --from https://me:{password}@host/x --x {key} {token}",
        initialize_from=f"https://me:{password}@host/ckpt/step-5",
    )

    for is_json in (True, False):
        show_plan(None, str(path), as_json=is_json)
        said = capsys.readouterr()
        for secret in planted:
            assert secret not in said.out + said.err, secret
        assert "WANDB_API_KEY" in said.out


def test_a_contract_may_lie_anywhere_and_be_named_by_its_run_id(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = house.write()
    by_id = house.plan("toy")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    by_path = house.plan(path)

    assert by_id[1]["digest"] == by_path[1]["digest"]
    assert by_path[1]["values"]["dri"]["value"] == "ada (console)"
    assert by_path[1]["values"]["checkout"]["value"] == str(house.directory)


def test_without_any_configuration_the_dri_is_nobody(tmp_path: Path, house: House) -> None:
    (house.directory / "hero.toml").unlink()

    code, found = house.plan(house.write(where="lonely"))

    assert code == Exit.BLOCKED
    assert "nobody in [people]" in only(found, "launch.people")


def test_people_read_signs_and_plain_words(house: House) -> None:
    code, said = house.text(house.write(source_sha=None, dri="carol"))

    assert code == Exit.BLOCKED
    assert said.startswith("toy: blocked by ")
    assert "✗ dri = carol (stated) is nobody in [people]; fix: " in said
    assert "✓ The hardware that the command requests" in said
    assert "digest: none" in said
    assert not (house.directory / "hero.db").exists()
