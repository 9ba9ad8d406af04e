"""``scripts/calibrate`` makes docs/calibration.md of any labelled corpus; here of one that is made up."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.checks.curves import decay, scaled

ROOT = Path(__file__).parents[2]


def _series(corpus: Path, name: str, label: str, *, spike: bool) -> dict[str, Any]:
    run = decay(rows=400)
    rows = scaled(run, 2.5, 210, 230) if spike else run
    (corpus / name).write_text("\n".join(["step,loss", *(f"{row.step},{row.values['loss']}" for row in rows)]))
    events = [{"type": "loss_spike", "from": 210, "to": 230}] if spike else []
    return {
        "file": name,
        "kind": "series",
        "label": label,
        "alerts": {"loss_spike": "yes" if spike else "no", "nan": "no"},
        "events": events,
    }


def test_it_counts_what_is_found_and_how_late(tmp_path: Path) -> None:
    (tmp_path / "crash.txt").write_text('File "train.py", line 3\nNameError: name "x" is not defined\n')
    entries = [
        _series(tmp_path, "good.csv", "healthy", spike=False),
        _series(tmp_path, "bad.csv", "loss_spike", spike=True),
        {"file": "crash.txt", "kind": "crash", "label": "code_bug_small"},
    ]
    (tmp_path / "index.json").write_text(json.dumps({"entries": entries}))

    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "calibrate"), str(tmp_path)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "2 series, 1 of them healthy" in done.stdout
    assert "| `loss.spike` | 0 | 0 | 1 of 1 | 0 of 1 | 0 of 0 |" in done.stdout
    assert "| `loss.spike` | 1 | every 50 rows | 40, 40 | 41, 41 | 1, 1 |" in done.stdout
    assert "1 of 1 logs get the class of their label" in done.stdout
