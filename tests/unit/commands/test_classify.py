"""``hero classify``: files of any size and any make, in bounded memory, each by itself."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands.classify import classify_files
from bot.commands.exits import Exit
from bot.commands.long_text import condense, read_long_text

BUG = (
    'Traceback (most recent call last):\n  File "/src/train.py", line 3, in main\n    foo()\n'
    "NameError: name 'foo' is not defined\n"
)


def answers(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@given(
    st.lists(st.sampled_from(["", "a", "step 1 loss 2.5", "x" * 30]), max_size=60),
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(1, 50),
)
def test_a_line_of_a_shortened_log_keeps_its_number(lines: list[str], head: int, tail: int, piece: int) -> None:
    numbered = [f"{line} #{number}" for number, line in enumerate(lines, start=1)]
    raw = "\n".join(numbered).encode()

    log = condense((raw[at : at + piece] for at in range(0, len(raw), piece)), head, tail)

    kept = log.text.split("\n")
    for place, line in enumerate(kept, start=1):
        is_whole = line in numbered and place not in (log.head_lines, log.head_lines + 1)
        assert not is_whole or numbered[log.number(place) - 1] == line
    assert len(log.text) <= head + tail + 1 or log.text.encode() == raw
    assert log.text.encode() == raw or len(raw) > min(head, tail)


def test_the_deciding_line_of_a_huge_gzipped_log_is_named_by_its_own_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The evidence is what somebody goes to look for in the file."""
    before = "step 1000 loss 2.5\n" * 400_000
    file = tmp_path / "no-ending-that-tells"
    file.write_bytes(gzip.compress((before + BUG).encode(), compresslevel=1))

    code = classify_files([str(file)], exit_code=1, as_json=True)

    (answer,) = answers(capsys)
    assert code is Exit.DONE
    assert answer["class"] == "code_bug_small"
    assert answer["evidence"] == ["line 400004: NameError: name 'foo' is not defined"]
    assert len(read_long_text(str(file)).text) <= 5_000_000


def test_a_file_that_cannot_be_read_is_said_to_be_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = gzip.compress(BUG.encode() * 100)
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "damaged.gz").write_bytes(whole[:12] + b"\xff" * 20 + whole[32:])
    (tmp_path / "log").write_bytes(b"\xff\xfe not utf-8 \x00\n" + BUG.encode())
    names = [str(tmp_path / name) for name in ("missing", "cut.gz", "damaged.gz", ".", "log")]

    code = classify_files(names, exit_code=None, as_json=True)

    *failed, answer = answers(capsys)
    assert code is Exit.FAILED
    assert [row["file"] for row in failed] == names[:-1]
    assert all(set(row) == {"file", "error"} and row["error"] for row in failed)
    assert answer["class"] == "code_bug_small"
    assert set(answer) >= {"file", "class", "relaunch", "trajectory_affecting", "evidence"}


def test_a_secret_in_a_log_is_in_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "hf_" + "aB3dE6gH9jK2mN5pQ8sT" + "4vW7yZ1cF0"
    file = tmp_path / "log"
    file.write_text(f"RuntimeError: HF_TOKEN={secret} was refused: 401 Client Error: Unauthorized\n")

    classify_files([str(file)], exit_code=1, as_json=True)
    classify_files([str(file)], exit_code=1, as_json=False)

    out = capsys.readouterr().out
    assert "refused" in out
    assert secret not in out
