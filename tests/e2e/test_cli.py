"""The program as a process: few calls, since each start costs a while."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"slack_sdk", "slack_bolt", "github", "sqlalchemy", "aiohttp", "iris", "fsspec", "apscheduler"}


def hero(*arguments: str, where: Path, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bot", *arguments],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_newcomer_gets_from_nothing_to_a_status(tmp_path: Path) -> None:
    init = hero("init", where=tmp_path)
    again = hero("init", where=tmp_path)
    (tmp_path / "runs" / "my-run.toml").write_text((tmp_path / "runs" / "example.toml.sample").read_text())
    doctor = hero("doctor", "--json", where=tmp_path)
    status = hero("status", "--json", where=tmp_path)

    assert (init.returncode, init.stderr) == (0, "")
    assert "hero doctor" in init.stdout
    assert (again.returncode, again.stdout) == (2, "")
    assert "hero: hero.toml: is there already" in again.stderr
    lines = json.loads(doctor.stdout)
    assert doctor.returncode == 1
    assert [set(line) for line in lines] == [{"connection", "ok", "detail", "fix"}] * len(lines)
    assert [line["connection"] for line in lines if not line["ok"]] == ["alice on console"]
    assert (status.returncode, status.stderr) == (0, "")
    (run,) = json.loads(status.stdout)
    assert set(run) >= {
        *("state", "step", "final_step", "eta", "loss", "throughput", "last_checkpoint"),
        *("monitor", "incidents", "requests"),
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hero.toml", "runs", "slack-manifest.json"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[bot]\ncadence = 15m\n", ["hero.toml:2: cadence:", "quotes"]),
        ('[bot]\n\ncadence = "soon"\n', ["hero.toml:3: [bot] cadence:", "write it as 15m"]),
        ("[bot]\ncadance = 15\n", ["hero.toml:2: [bot] cadance:", "docs/settings.md"]),
        ('[slack]\nbot_token = "xoxb-1-very-secret"\n', ["[slack] bot_token", "HERO_SLACK__BOT_TOKEN"]),
        ("[slack]\nbot_token = xoxb-1-very-secret\n", ["hero.toml:2: bot_token:"]),
    ],
    ids=["broken", "wrong", "unknown", "secret", "broken-secret"],
)
def test_a_wrong_setting_names_its_file_line_key_and_fix(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "hero.toml").write_text(text)

    ended = hero("--debug", "runs", where=tmp_path)

    assert (ended.returncode, ended.stdout) == (2, "")
    said = "\n".join(line for line in ended.stderr.splitlines() if line.startswith("hero: "))
    assert all(name in said for name in names), said
    assert "Traceback" in ended.stderr, "--debug was given"
    assert "very-secret" not in ended.stderr


def test_without_a_configuration_the_program_says_how_to_get_one(tmp_path: Path) -> None:
    ended = hero("run", where=tmp_path)
    named = hero("status", where=tmp_path, HERO_CONFIG="elsewhere.toml")
    usage = hero("status", "--jsn", where=tmp_path)

    assert (ended.returncode, named.returncode, usage.returncode) == (2, 2, 2)
    assert "`hero init` writes one" in ended.stderr
    assert "hero: elsewhere.toml: no such file" in named.stderr
    assert "--jsn" in usage.stderr
    assert not any("Traceback" in each.stderr for each in (ended, named, usage))


def test_the_configuration_may_be_named_before_the_command_or_after_it(tmp_path: Path) -> None:
    hero("init", "there", where=tmp_path)

    before = hero("--config", "there/hero.toml", "runs", "--json", where=tmp_path)
    after = hero("runs", "--config", "there/hero.toml", "--json", where=tmp_path, HERO_CONFIG="elsewhere.toml")

    assert (before.returncode, before.stdout) == (0, "[]\n")
    assert (after.returncode, after.stdout) == (0, "[]\n")


def test_crash_logs_are_classified_and_a_missing_one_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "preempted").write_text(
        "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01 DUE TO PREEMPTION ***\n"
    )

    ended = hero("classify", "preempted", "missing", "-", "--json", where=tmp_path, stdin="NameError: name 'x'\n")

    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.returncode == 1
    assert [row["file"] for row in rows] == ["preempted", "missing", "-"]
    assert rows[0]["class"] == "infra_preemption"
    assert rows[1] == {"file": "missing", "error": "No such file or directory"}
    assert rows[2]["relaunch"] != "same_id"


@pytest.mark.parametrize("arguments", [["--help"], ["classify", "log"], ["checks"]])
def test_help_and_what_reads_files_alone_import_no_service(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "log").write_text("done\n")
    program = f"""
import sys
sys.argv = ["hero", *{arguments!r}]
from bot.cli import main
try:
    main()
except SystemExit as end:
    heavy = {HEAVY!r} & set(sys.modules)
    sys.exit(f"imported {{heavy}}" if heavy else end.code)
"""

    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    """``hero checks --json | head -1``."""
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "checks", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (141, b"")
