"""``hero replay``: the JSON that scripts rely on, what people read, and files that are broken."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.commands.exits import Exit
from bot.commands.replay import parse_columns, replay_files
from bot.errors import ConfigurationError
from tests.unit.checks.curves import decay, scaled


def _csv(path: Path, *, name: str = "loss", is_bad: bool = False) -> str:
    run = scaled(decay(rows=400), 2.5, 210, 230)
    lines = [f"step,{name}", *(f"{row.step},{row.values['loss']}" for row in run), *(["401,red"] if is_bad else [])]
    path.write_text("\n".join(lines))
    return str(path)


def _replay(capsys: pytest.CaptureFixture[str], files: list[str], **given: Any) -> tuple[Exit, list[dict[str, Any]]]:
    arguments: dict[str, Any] = {"every": 50, "metrics": [], "plot": None, "as_json": True} | given
    code = replay_files(files, **arguments)
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_is_one_line_an_incident_and_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _csv(tmp_path / "run.csv")

    code, (incident, summary) = _replay(capsys, [file])

    assert code == Exit.DONE
    assert incident.pop("message").startswith("loss 2.")
    assert incident == {
        "file": file,
        "check": "loss.spike",
        "severity": "critical",
        "first_step": 210,
        "opened_step": 250,
        "resolved_step": 300,
    }
    assert summary["file"] == file
    assert summary["summary"].pop("seconds") >= 0
    assert summary["summary"] == {"rows": 400, "incidents": 1}


def test_a_broken_file_is_said_with_its_line_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = _csv(tmp_path / "bad.csv", is_bad=True), _csv(tmp_path / "good.csv")

    code, lines = _replay(capsys, [bad, str(tmp_path / "none.csv"), good])

    assert code == Exit.FAILED
    assert lines[0] == {"file": bad, "error": f"{bad}: line 402: loss is 'red', which is no number"}
    assert "No such file" in lines[1]["error"]
    assert [line["file"] for line in lines[2:]] == [good, good]


def test_columns_of_another_name_are_mapped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _csv(tmp_path / "run.csv", name="train/loss")

    _, lines = _replay(capsys, [file], metrics=["loss=train/loss"])

    assert lines[0]["check"] == "loss.spike"


@pytest.mark.parametrize("given", ["loss", "=x", "loss=", "a b=c"])
def test_a_mapping_that_is_none_is_a_usage_error(given: str) -> None:
    with pytest.raises(ConfigurationError, match="write it as NAME=COLUMN"):
        parse_columns([given])


def test_a_name_is_mapped_once() -> None:
    with pytest.raises(ConfigurationError, match="mapped twice"):
        parse_columns(["loss=a", "loss=b"])


def test_people_read_what_was_found_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _csv(tmp_path / "run.csv")

    replay_files([file], every=50, metrics=[], plot=None, as_json=False)

    said = capsys.readouterr().out
    assert "1 incident (400 rows, 8 looks" in said
    assert "critical loss.spike: loss 2." in said
    assert "opened at step 250, resolved at step 300" in said


def test_a_plot_is_of_one_file_and_goes_where_there_is_a_directory(tmp_path: Path) -> None:
    file = _csv(tmp_path / "run.csv")

    with pytest.raises(ConfigurationError, match="one FILE"):
        replay_files([file, file], every=50, metrics=[], plot=tmp_path / "out.png", as_json=True)
    with pytest.raises(ConfigurationError, match="is no directory"):
        replay_files([file], every=50, metrics=[], plot=tmp_path / "no" / "out.png", as_json=True)


def test_a_plot_is_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.png"

    _replay(capsys, [_csv(tmp_path / "run.csv")], plot=out)

    assert out.read_bytes().startswith(b"\x89PNG")
