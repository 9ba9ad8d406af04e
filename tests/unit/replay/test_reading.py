"""Files that people really have: every format that counts, and a line number for every fault."""

import contextlib
import gzip
import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.commands.long_text import UNREADABLE, read_long_text
from bot.regular_files import NotRegularError, open_stream
from bot.replay.reading import BadFileError, Logged, read_rows


def _write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def _rows(path: Path, content: str | bytes, **columns: str) -> list[Logged]:
    return list(read_rows(_write(path, content), columns))


CSV = "step,loss,tokens_per_second,attempt\n1,2.5,1000,0\n2,nan,,0\n3,Infinity,900,1\n"


def _are_read(rows: list[Logged]) -> None:
    assert [(each.line, each.row.step, each.attempt) for each in rows] == [(2, 1, 0), (3, 2, 0), (4, 3, 1)]
    assert rows[0].row.values == {"loss": 2.5, "tokens_per_second": 1000}
    assert math.isnan(rows[1].row.values["loss"])
    assert "tokens_per_second" not in rows[1].row.values
    assert rows[2].row.values["loss"] == math.inf


def test_csv_is_read_with_nan_blanks_and_attempts(tmp_path: Path) -> None:
    _are_read(_rows(tmp_path / "run.csv", CSV))


def test_gzip_is_known_by_its_bytes_whatever_the_name(tmp_path: Path) -> None:
    _are_read(_rows(tmp_path / "run.csv", gzip.compress(CSV.encode())))


@pytest.mark.parametrize("content", ["\ufeff" + CSV, CSV.replace("\n", "\r\n"), CSV.replace(",", "\t")])
def test_marks_line_ends_and_tabs_of_other_programs_are_read(tmp_path: Path, content: str) -> None:
    _are_read(_rows(tmp_path / "run.csv", content))


def test_jsonl_is_read_and_lines_about_something_else_are_passed_over(tmp_path: Path) -> None:
    """Field report R21: what is not finite comes as text, as a bare constant, or as null."""
    lines = [
        '{"step": 1, "train/loss": 2.5, "timestamp": "2026-07-01T00:00:00+00:00"}',
        '{"event": "saved"}',
        "",
        '{"step": 2, "train/loss": "NaN"}',
        '{"step": 3, "train/loss": -Infinity, "timestamp": 1782864000}',
        '{"step": 4, "train/loss": null}',
    ]

    rows = _rows(tmp_path / "run.jsonl", "\n".join(lines), loss="train/loss")

    assert [(each.line, each.row.step) for each in rows] == [(1, 1), (4, 2), (5, 3), (6, 4)]
    assert not any(math.isfinite(each.row.values["loss"]) for each in rows[1:])
    assert rows[0].row.at == rows[2].row.at == datetime(2026, 7, 1, tzinfo=UTC)


def test_timestamps_that_count_from_the_start_keep_their_distances(tmp_path: Path) -> None:
    first, second = _rows(tmp_path / "run.csv", "step,loss,timestamp\n1,2,0.5\n2,2,60.5\n")

    assert first.row.at is not None
    assert second.row.at == first.row.at + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("step,loss\n", "holds no row"),
        ("iteration,loss\n1,2\n", "line 1: no column 'step' among iteration, loss; name it with --metric"),
        ("Loading checkpoint…\n", "a column 'step' and figures beside it (`hero classify` reads logs)"),
        ("step,colour\n1,2\n", "line 1: none of the columns"),
        ("step,loss,loss\n1,2,3\n", "line 1: a column is named twice"),
        ("step,loss\n1,2\n2\n", "line 3: 1 cells"),
        ("step,loss\n1,2\n2,2,2\n", "line 3: 3 cells"),
        ("step,loss\n1,2\nx,2\n", "line 3: step is 'x'"),
        ("step,loss\n1,2\n,2\n", "line 3: step is missing"),
        ("step,loss\n1.5,2\n", "line 2: step is '1.5'"),
        ("step,loss\n-1,2\n", "line 2: step is '-1'"),
        ("step,loss\nnan,2\n", "line 2: step is 'nan'"),
        ("step,loss\n1,red\n", "line 2: loss is 'red'"),
        ("step,loss\n1,1_0\n", "line 2: loss is '1_0'"),
        ("step,loss,timestamp\n1,2,yesterday\n", "line 2: timestamp is 'yesterday'"),
        ("step,loss,attempt\n1,2,first\n", "line 2: attempt is 'first'"),
        ('{"step": 1, "loss": 2}\n{"step": 2, "loss"\n', "line 2: is no JSON"),
        ('{"step": 1, "loss": 2}\n[1]\n', "line 2: is JSON, but no object"),
        ('{"step": 1, "loss": true}\n', "line 1: loss is 'True'"),
        ('{"step": 1, "loss": [2]}\n', "line 1: loss is '[2]'"),
        ('{"loss": 2}\n', "line 1: step is missing"),
        ('{"a": ' * 100_000, "line 1: is no JSON"),
        (b"\x00\xff\xfe\x00" * 50, "line 1: no table of figures; wanted is CSV with a header line, or JSONL"),
    ],
)
def test_what_cannot_be_read_names_its_line(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(BadFileError) as caught:
        _rows(tmp_path / "run", content)

    assert says in str(caught.value)


def test_a_mapped_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="line 1: no column 'train/loss' among step, loss"):
        _rows(tmp_path / "run.csv", CSV, loss="train/loss")


@pytest.mark.parametrize("keep", [0.5, 0.999])
def test_a_gzip_that_ends_too_early_is_damaged(tmp_path: Path, keep: float) -> None:
    whole = gzip.compress(("step,loss\n" + "".join(f"{n},{n * 0.7}\n" for n in range(2_000))).encode())

    with pytest.raises(BadFileError, match="is damaged"):
        _rows(tmp_path / "run.csv.gz", whole[: int(keep * len(whole))])


def test_a_file_that_is_none_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="No such file"):
        list(read_rows(str(tmp_path / "nothing"), {}))
    with pytest.raises(BadFileError, match="Is a directory"):
        list(read_rows(str(tmp_path), {}))


def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(pipe.write_text, "step,loss\n1,2\n")
        rows = list(read_rows(str(pipe), {}))

    assert [each.row.step for each in rows] == [1]


def test_a_pipe_into_which_nobody_writes_does_not_hang(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)

    with pytest.raises(NotRegularError, match="nobody wrote"), open_stream(pipe, patience_s=0.1):
        pass


def test_a_device_is_no_file() -> None:
    """It may never end."""
    with pytest.raises(BadFileError, match="no regular file"):
        list(read_rows("/dev/zero", {}))
    with pytest.raises(UNREADABLE, match="no regular file"):
        read_long_text("/dev/zero")


def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="line 2: is longer than"):
        _rows(tmp_path / "run.csv", "step,loss\n" + "1" * 4_100_000)


@settings(max_examples=150, deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=300),
        st.text(max_size=300).map(str.encode),
        st.text(alphabet='step,los\n0123456789.-einfa"{}:[]', max_size=300).map(
            lambda text: f"step,loss\n{text}".encode()
        ),
        st.lists(
            st.dictionaries(
                st.sampled_from(["step", "loss", "timestamp", "attempt"]),
                st.one_of(st.integers(), st.floats(), st.text(max_size=5), st.none(), st.booleans()),
            ),
            max_size=6,
        ).map(lambda rows: "\n".join(map(json.dumps, rows)).encode()),
    )
)
def test_no_content_is_a_traceback(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz"
    with contextlib.suppress(BadFileError):
        assert _rows(path, content)
