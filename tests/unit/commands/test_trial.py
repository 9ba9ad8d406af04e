"""``hero trial compare``: its exit codes, the JSON that scripts rely on, and what people read."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bot.commands.exits import Exit
from bot.commands.trial import compare_files
from bot.errors import ConfigurationError

_CALM = ["crash=0", "retry=0", "watchdog=0", "alert=0"]
_GATE = "loss mean <= +0.002"


def _write(path: Path, *, shift: float = 0.0, seed: int = 2, until: int = 1200, attempt: int | None = None) -> str:
    """Write a run that logs its loss at every step from 900 on, and its throughput at every tenth."""
    losses = 2.3 + 0.06 * np.random.default_rng(1).standard_normal(400)
    own = np.random.default_rng(seed)
    lines = ["step,loss,tokens_per_second,attempt"]
    for step in range(900, until):
        speed = f"{1e6 + 2000 * own.standard_normal():.0f}" if step % 10 == 0 else ""
        loss = losses[step - 900] + shift + 0.001 * own.standard_normal()
        lines.append(f"{step},{loss:.6f},{speed},{'' if attempt is None else attempt}")
    path.write_text("\n".join(lines))
    return str(path)


def _compare(control: str, child: str, *gates: str, **given: Any) -> Exit:
    arguments: dict[str, Any] = {
        "contract": None,
        "window": "1000:200",
        "counts": [],
        "metrics": [],
        "plot": None,
        "as_json": False,
    } | given
    return compare_files(control, child, gates=list(gates), **arguments)


@pytest.fixture
def control(tmp_path: Path) -> str:
    return _write(tmp_path / "old.csv", seed=1)


def test_the_exit_code_says_pass_fail_and_cannot_tell(tmp_path: Path, control: str) -> None:
    same, worse = _write(tmp_path / "same.csv"), _write(tmp_path / "worse.csv", shift=0.005)
    early = _write(tmp_path / "early.csv", until=1150)

    assert _compare(control, same, _GATE, "tokens_per_second mean >= -1%", counts=_CALM) == Exit.DONE
    assert _compare(control, worse, _GATE) == Exit.BLOCKED
    assert _compare(control, early, _GATE) == Exit.UNKNOWN
    assert _compare(control, same, _GATE, counts=_CALM[:3]) == Exit.UNKNOWN
    assert _compare(control, same, _GATE, counts=["crash=1"]) == Exit.BLOCKED
    assert _compare(control, same, "grad_norm mean <= +1%") == Exit.UNKNOWN


def test_json_has_every_gate_with_its_numbers(tmp_path: Path, control: str, capsys: pytest.CaptureFixture[str]) -> None:
    worse = _write(tmp_path / "worse.csv", shift=0.005)

    _compare(control, worse, _GATE, counts=_CALM, as_json=True)

    found = json.loads(capsys.readouterr().out)
    assert found["outcome"] == "fail"
    assert found["window"] == {"first_step": 1000, "last_step": 1199, "steps": 200}
    (gate,) = found["gates"]
    assert (gate["gate"], gate["outcome"], gate["covered"], gate["expected"]) == (_GATE, "fail", 200, 200)
    low, high = gate["interval"]
    assert 0.002 < low < gate["delta"] < high
    assert gate["margin"] == pytest.approx(0.002 - gate["delta"])
    assert gate["error_rate"]["swapped"] <= 0.05
    assert gate["rows"]["child"]["rows"] == 200
    assert found["quiet"]["outcome"] == "pass"
    assert [each["metric"] for each in found["others"]] == ["tokens_per_second"]


def test_people_read_a_line_a_gate_and_why(tmp_path: Path, control: str, capsys: pytest.CaptureFixture[str]) -> None:
    _compare(control, _write(tmp_path / "early.csv", until=1150), _GATE, "tokens_per_second p50 >= -1%")

    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith(_GATE))
    assert "cannot tell" in row
    assert "150/200" in row
    assert "the child has come to step 1149, and the window goes to 1199" in row
    assert "not judged; count them with --count" in "\n".join(lines)
    assert lines[-1] == "cannot tell: of 2 gates 2 could not be told"


def test_gates_window_and_names_come_from_the_contract(tmp_path: Path, control: str) -> None:
    contract = tmp_path / "hero-8b.toml"
    contract.write_text(
        """
        dri = "alice"
        command = "train"
        output_root = "out"
        orchestrator = { kind = "local", directory = "jobs" }
        [metrics]
        loss = "train/loss"
        [trial]
        handoff_step = 1000
        gates = ["loss mean <= +0.002"]
        """
    )
    child = tmp_path / "child.jsonl.gz"
    rows = [line.split(",") for line in Path(_write(tmp_path / "c.csv", shift=0.003)).read_text().splitlines()[1:]]
    child.write_bytes(
        gzip.compress("\n".join(json.dumps({"step": int(r[0]), "train/loss": float(r[1])}) for r in rows).encode())
    )
    given: dict[str, Any] = {"contract": contract, "window": None}

    renamed = tmp_path / "old2.csv"
    renamed.write_text(Path(control).read_text().replace("step,loss", "step,train/loss", 1))
    assert _compare(str(renamed), str(child), **given, counts=_CALM) == Exit.BLOCKED
    assert _compare(str(renamed), str(child), "loss mean <= +0.005", **given, counts=_CALM) == Exit.DONE
    assert _compare(str(renamed), str(child), "loss mean <= +0.005", **given) == Exit.UNKNOWN  # [trial] quiet


@pytest.mark.parametrize(
    ("gates", "given", "said"),
    [
        ((), {}, "no gate"),
        (("loss mean",), {}, "--gate 'loss mean' is no gate"),
        ((_GATE,), {"window": "now"}, "--window now: write it as"),
        ((_GATE,), {"window": "5:0"}, "--window 5:0"),
        ((_GATE,), {"counts": ["boom=1"]}, "--count boom=1"),
        ((_GATE,), {"counts": ["crash=many"]}, "--count crash=many"),
        ((_GATE,), {"contract": Path("nowhere.toml")}, "no such file"),
        ((_GATE,), {"metrics": ["loss=other"]}, "no column 'other'"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(
    control: str, gates: tuple[str, ...], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        _compare(control, control, *gates, **given)


def test_a_picture_is_drawn_of_figures_that_both_runs_have(tmp_path: Path, control: str) -> None:
    picture = tmp_path / "both.png"
    child = _write(tmp_path / "child.csv", shift=0.005)

    _compare(control, child, _GATE, plot=picture)

    assert picture.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigurationError, match="--plot"):
        _compare(control, child, _GATE, plot=tmp_path / "no" / "where.png")


def test_a_second_attempt_of_the_child_fails_as_a_retry(tmp_path: Path, control: str) -> None:
    first = Path(_write(tmp_path / "one.csv", until=1050, attempt=1)).read_text()
    second = Path(_write(tmp_path / "two.csv", attempt=2)).read_text().partition("\n")[2]
    both = tmp_path / "both.csv"
    both.write_text(f"{first}\n{second}")

    assert _compare(control, str(tmp_path / "two.csv"), _GATE) == Exit.DONE
    assert _compare(control, str(both), _GATE) == Exit.BLOCKED
