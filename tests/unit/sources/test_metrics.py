"""Figures are read from files and logs as trainers really write them, and none is invented."""

import json
import math
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.model.contract import Contract, LocalContract, MetricsContract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.snapshot import LogLine, LogTail, MetricRow, Metrics
from bot.model.value import PersonName, RunId
from bot.sources.metric_lines import LinePatterns, parse_lines
from bot.sources.metric_rows import Other, Row, Unreadable, parse_json_row, parse_moment
from bot.sources.metrics import MetricsReader, rows_after
from bot.threads import BoundedThreads
from tests.fakes.clock import START, FakeClock
from tests.fakes.forbidding import forbidden
from tests.fakes.snapshots import unknown
from tests.fakes.waiting import until

NAMES = MetricsContract()
LEVANTER = MetricsContract(step="global_step", loss="train/loss", tokens_per_second="throughput/tokens_per_second")
NO_LOG = Unknown(reason=Gap.NOT_CONFIGURED, detail="no job", at=START)


class Run:
    """A run with a metrics file in its checkout, read again and again by one reader."""

    def __init__(self, root: Path, *, file: str | None = "metrics.jsonl", read_bytes: int = 4_000_000) -> None:
        self.file = root / (file or "")
        self.contract = Contract(
            run_id=RunId("hero-1"),
            dri=PersonName("ada"),
            command=("train",),
            checkout=str(root),
            output_root="out",
            orchestrator=LocalContract(kind="local", directory="jobs"),
            metrics=MetricsContract(file=file),
        )
        self.reader = MetricsReader(FakeClock(), read_bytes=read_bytes)
        self.cursor = ""

    async def ask(self, *, since: datetime | None = None, log: Reading[LogTail] = NO_LOG) -> Reading[Metrics]:
        reading = await self.reader.metrics(self.contract, since=since, cursor=self.cursor, log=log, jobs=unknown())
        if isinstance(reading, Known):
            self.cursor = reading.value.cursor
        return reading

    async def read(self, *, since: datetime | None = None, log: Reading[LogTail] = NO_LOG) -> Metrics:
        reading = await self.ask(since=since, log=log)
        assert isinstance(reading, Known), reading
        return reading.value

    async def steps(self, *, since: datetime | None = None) -> list[int]:
        return [row.step for row in (await self.read(since=since)).rows]

    def append(self, *steps: int) -> None:
        with self.file.open("a") as file:
            file.writelines(f'{{"step": {step}, "loss": 2.5}}\n' for step in steps)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


async def test_each_row_is_handed_out_once_also_when_its_line_was_half_written(run: Run) -> None:
    run.append(1, 2)
    first = await run.steps()
    with run.file.open("a") as file:
        file.write('{"step": 3, "lo')
    half = await run.steps()
    with run.file.open("a") as file:
        file.write('ss": 2.5}\n{"step": 4, "loss": 2.5}\n')

    assert (first, half, await run.steps(), await run.steps()) == ([1, 2], [], [3, 4], [])


async def test_further_figures_come_under_heros_words_whatever_the_trainer_calls_them(run: Run) -> None:
    run.file.write_text(
        '{"step": 1, "loss": 2.5, "optim/skipped_step": true, "eval/paloma/macro_loss": "NaN"}\n'
        '{"step": 2, "optim_skipped_step": 0, "throughput/mfu": 0.2, "eval/loss": null, "hobby": 7}\n'
    )

    first, second = (await run.read()).rows

    assert first.values["skipped_step"] == 1.0
    assert math.isnan(first.values["eval_paloma_macro_loss"])
    assert second.values == {"skipped_step": 0.0, "mfu": 0.2}


def test_a_contract_names_further_figures_of_its_own_and_replaces_the_usual_names() -> None:
    names = MetricsContract(others={"eval_code": "eval/code/bpb", "skipped_step": "bad_steps/now"})
    line = '{"step": 3, "eval/code/bpb": Infinity, "bad_steps/now": 1, "optim/skipped_step": 0}'
    expected = Row(row=MetricRow(step=3, values={"eval_code": math.inf, "skipped_step": 1.0}))

    assert parse_json_row(line, names) == expected
    assert LinePatterns(names).parse("step 3 | eval/code/bpb inf | bad_steps/now: 1") == expected


@pytest.mark.parametrize("others", [{"loss": "train/loss"}, {"two words": "x"}, {"eval_code": " "}])
def test_a_further_figure_is_refused_that_no_row_could_have(others: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        MetricsContract(others=others)


async def test_duplicate_and_out_of_order_steps_stay_as_they_were_logged(run: Run) -> None:
    run.append(110, 161, 111, 111, 112)

    assert await run.steps() == [110, 161, 111, 111, 112]


async def test_a_file_that_was_replaced_is_read_from_its_beginning(run: Run, tmp_path: Path) -> None:
    run.append(1, 2, 3)
    await run.steps()

    (tmp_path / "new").write_text('{"step": 7}\n' * 20)
    (tmp_path / "new").rename(run.file)

    assert await run.steps() == [7] * 20


@pytest.mark.parametrize("later", [(1,), (901, 902, 903, 904)], ids=["shorter", "longer than before"])
async def test_a_file_that_was_cut_in_place_is_read_from_its_beginning(run: Run, later: tuple[int, ...]) -> None:
    run.append(101, 102, 103)
    await run.steps()

    os.truncate(run.file, 0)
    run.append(*later)

    assert await run.steps() == list(later)


async def test_a_long_file_is_read_in_pieces_and_a_line_longer_than_a_piece_is_counted(tmp_path: Path) -> None:
    run = Run(tmp_path, read_bytes=100)
    run.append(1, 2, 3, 4)
    with run.file.open("a") as file:
        file.write("x" * 350 + "\n")
    run.append(5)

    reads = [await run.read() for _ in range(5)]

    assert [row.step for read in reads for row in read.rows] == [1, 2, 3, 4, 5]
    assert max(len(read.rows) for read in reads) < 5
    assert sum(read.unreadable for read in reads) == 1


async def test_rows_that_say_they_are_older_than_the_instance_are_anothers(run: Run) -> None:
    old, new = START - timedelta(seconds=1), START + timedelta(seconds=1)
    moments = (old.timestamp(), new.timestamp(), new.timestamp() * 1000, old.isoformat(), "2020-01-01T00:00:00", None)
    run.file.write_text("".join(json.dumps({"step": n, "timestamp": at}) + "\n" for n, at in enumerate(moments)))

    assert await run.steps(since=START) == [1, 2, 4, 5]


async def test_a_file_that_is_not_written_yet_holds_no_rows_and_keeps_the_cursor(run: Run) -> None:
    run.cursor = "kept"

    reading = await run.read()

    assert reading == Metrics(rows=(), cursor="kept")


async def test_a_place_that_cannot_be_looked_into_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    nowhere = Run(tmp_path / "no-checkout")

    readings = [await Run(tmp_path, file=file).ask() for file in ("taken/metrics.jsonl", "loop", "folder")]
    readings.append(await nowhere.ask())

    assert [type(reading) for reading in readings] == [Unknown] * 4
    assert [reading.reason for reading in readings if isinstance(reading, Unknown)] == [
        Gap.REFUSED,
        Gap.UNREACHABLE,
        Gap.REFUSED,
        Gap.REFUSED,
    ]


async def test_a_forbidden_file_is_unknown(run: Run) -> None:
    run.append(1)

    with forbidden(run.file):
        reading = await run.ask()

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED


async def test_a_pipe_in_place_of_the_file_is_refused_at_once(run: Run) -> None:
    os.mkfifo(run.file)

    reading = await run.ask()

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.UNRECOGNISED
    assert "is no regular file" in reading.detail


async def test_a_file_system_that_hangs_is_a_timeout_and_takes_no_second_thread(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr("bot.sources.metrics.open_regular", lambda _path: release.wait(10))
    threads = BoundedThreads("metrics", 4)
    run.reader = MetricsReader(FakeClock(), threads=threads, deadline=timedelta(milliseconds=20))

    readings = [await run.ask() for _ in range(3)]
    held = threads.held
    release.set()
    await until(lambda: threads.held == 0)

    assert [each.reason for each in readings if isinstance(each, Unknown)] == [Gap.TIMEOUT, Gap.BUSY, Gap.BUSY]
    assert held == 1


@pytest.mark.parametrize(
    "spelling", ['"NaN"', '"nan"', "NaN", "null", '"Infinity"', '"-Infinity"', "Infinity", "1e999"]
)
async def test_a_loss_that_is_no_number_is_handed_on_in_every_spelling(run: Run, spelling: str) -> None:
    """R21: comparing text with numbers crashed the consumer, and every later row was lost too."""
    run.file.write_text(f'{{"step": 7, "loss": {spelling}}}\n{{"step": 8, "loss": 2.5}}\n')

    metrics = await run.read()

    assert [row.step for row in metrics.rows] == [7, 8]
    assert not math.isfinite(metrics.rows[0].values["loss"])
    assert metrics.unreadable == 0


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ('{"step": 7, "loss": "high", "lr": 1}', Row(row=MetricRow(step=7, values={"lr": 1.0}), has_faults=True)),
        ('{"step": 7, "loss": true}', Row(row=MetricRow(step=7, values={}), has_faults=True)),
        ('{"step": 7, "grad_norm": null}', Row(row=MetricRow(step=7, values={}))),
        ('{"step": 7.0}', Row(row=MetricRow(step=7, values={}))),
        ('{"step": 7.5, "loss": 1}', Unreadable()),
        ('{"step": true, "loss": 1}', Unreadable()),
        ('{"step": -1, "loss": 1}', Unreadable()),
        ('{"step": NaN, "loss": 1}', Unreadable()),
        ('{"loss": 1}', Unreadable()),
        ('{"event": "eval"}', Other()),
        ("[1, 2]", Unreadable()),
        ('{"step": 7, "los', Unreadable()),
        ("[" * 100_000, Unreadable()),
        ('{"step": ' + "9" * 5000 + "}", Unreadable()),
    ],
)
def test_a_line_is_a_row_or_counted_or_something_else(line: str, parsed: object) -> None:
    assert parse_json_row(line, NAMES) == parsed


def test_figures_go_by_the_names_of_the_contract() -> None:
    line = '{"global_step": 7, "train/loss": 2.5, "loss": 9, "throughput/tokens_per_second": 1000}'

    parsed = parse_json_row(line, LEVANTER)

    assert parsed == Row(row=MetricRow(step=7, values={"loss": 2.5, "tokens_per_second": 1000.0}))


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists), st.text())
def test_no_content_breaks_the_row_parser(raw: object, text: str) -> None:
    for line in (json.dumps({"step": 1, "loss": raw, "timestamp": raw}), json.dumps({"step": raw}), text):
        parsed = parse_json_row(line, NAMES)
        assert isinstance(parsed, Row | Unreadable | Other)


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001 - hypothesis adds the zone
def test_a_moment_is_the_same_in_every_spelling(at: datetime) -> None:
    for spelling in (at.isoformat(), at.timestamp(), at.timestamp() * 1000):
        moment = parse_moment(spelling)
        assert moment is not None
        assert abs(moment - at) < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        ("step=120 loss=3.21 grad_norm=0.5 lr=3e-4", 120, {"loss": 3.21, "grad_norm": 0.5, "lr": 3e-4}),
        ("2026-11-29 03:00:00 INFO step 120 | loss 3.21", 120, {"loss": 3.21}),
        ("Step: 1,200/5,000, Loss: 3.21.", 1200, {"loss": 3.21}),
        ('INFO {"step": 120, "loss": 3.21}', 120, {"loss": 3.21}),
        ("{'step': 120, 'loss': 3.21}", 120, {"loss": 3.21}),
        ("global_step=120 train/loss=3.21 eval/loss=9", 120, {"loss": 3.21, "eval_loss": 9.0}),
        ("throughput/tokens_per_second=12,345 step=120", 120, {"tokens_per_second": 12345.0}),
        (" iteration      120/    1000 | lm loss: 3.21E+00 | grad norm: 0.5 |", 120, {"loss": 3.21, "grad_norm": 0.5}),
        ("step 120: val loss 9.0, train loss 3.21", 120, {"loss": 3.21}),
        (" 12%|█▏   | 120/1000 [00:10<01:20, 11.0it/s, loss=3.2]", 120, {"loss": 3.2}),
        ("Epoch 1/3:  12%|█▏   | 120/1000 [00:10<01:20, 11.0it/s, loss=3.2]", 120, {"loss": 3.2}),
        ("Progress on:train 120it/1.00kit rate:2.0it/s remaining:07:20 postfix:loss=3.2", 120, {"loss": 3.2}),
        ("Progress on:train 6.00it/4.65Mit rate:2.0it/s postfix:loss=3.2", 6, {"loss": 3.2}),
        ("step=120 loss=-inf", 120, {"loss": -math.inf}),
    ],
)
def test_a_printed_step_is_a_row(line: str, step: int, values: dict[str, float]) -> None:
    parsed = LinePatterns(NAMES).parse(line)

    assert parsed == Row(row=MetricRow(step=step, values=values))


@pytest.mark.parametrize(
    "line",
    [
        "loss=3.2 at last",
        "step=1.2k loss=3.2",
        "Progress on:train 1.20kit/10.0kit rate:2.0it/s postfix:loss=3.2",
        "step=120 test_loss=3.2 eval loss 3.2 aux loss: 0.1",
        "Saving checkpoint at step 20.",
        "Saved checkpoint to /out/step-20 for step 20",
        "step=120 loss=3.2M",
        "Downloading: 50/100 [00:10<00:10]",
        "step time 0.3 s",
        "x" * 100_000 + " step=1 loss=2",
    ],
)
def test_what_is_not_surely_a_row_is_none(line: str) -> None:
    assert LinePatterns(NAMES).parse(line) is None


@pytest.mark.parametrize(
    ("line", "step"),
    [("Loss: nan", 119), ("Loss is NaN", 119), ("RuntimeError: Non-finite loss (nan) at step 120.", 120)],
)
def test_a_loss_that_dies_in_prose_is_a_row(line: str, step: int) -> None:
    found = parse_lines(tail_of("step=119 loss=3.2", line), NAMES)

    assert [row.step for row in found.rows] == [119, step]
    assert math.isnan(found.rows[-1].values["loss"])


def test_a_nan_of_which_nobody_knows_the_step_is_counted_and_not_guessed() -> None:
    cut = parse_lines(tail_of("Loss: nan", is_cut=True), NAMES)
    whole = parse_lines(tail_of("Loss: nan"), NAMES)

    assert (len(cut.rows), cut.unreadable) == (0, 1)
    assert [row.step for row in whole.rows] == [0]


def test_of_many_hosts_only_the_first_counts() -> None:
    lines = tuple(LogLine(text=f"step={step} loss=2", task=f"/me/run/{task}") for step in (1, 2) for task in (10, 9))

    found = parse_lines(LogTail(lines=lines, is_cut=False), NAMES)

    assert [row.step for row in found.rows] == [1, 2]


@given(st.lists(st.text() | st.from_regex(r"(step|loss|Progress on:|\d|nan|[=:{}, \[/])+"), max_size=8), st.booleans())
def test_no_log_breaks_the_line_parser(lines: list[str], is_cut: bool) -> None:
    found = parse_lines(tail_of(*lines, is_cut=is_cut), NAMES)

    assert all(row.step >= 0 for row in found.rows)


async def test_without_a_file_the_log_is_read_and_its_moving_window_repeats_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, file=None)
    lines = [f"step={step} loss=2.{step}" for step in range(40)]

    windows = [tail_of(*lines[start:stop], is_cut=start > 0) for start, stop in ((0, 9), (3, 12), (11, 12), (20, 40))]
    read = [await run.read(log=Known(value=window, at=START)) for window in windows]

    assert [[row.step for row in each.rows] for each in read] == [
        [*range(9)],
        [9, 10, 11],
        [],
        [*range(20, 40)],
    ]


async def test_without_a_file_an_unknown_log_makes_the_metrics_unknown(tmp_path: Path) -> None:
    reading = await Run(tmp_path, file=None).ask(log=NO_LOG)

    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.NOT_CONFIGURED
    assert "names no metrics file" in reading.detail


async def test_a_launch_that_prints_the_last_ones_lines_again_is_read_from_its_own_first_step(tmp_path: Path) -> None:
    """Killed at step 115 and launched again from step 100: a run that can be reproduced prints 101 to 115 once more."""
    run = Run(tmp_path, file=None)
    lines = [f"step={step} loss={3 - step / 100:.4f}" for step in range(201)]
    first, second = START, START + timedelta(minutes=5)
    await run.read(since=first, log=Known(value=tail_of(*lines[:116]), at=START))

    relaunched = await run.read(since=second, log=Known(value=tail_of(*lines[101:]), at=START))
    again = await run.read(since=second, log=Known(value=tail_of(*lines[101:]), at=START))

    assert [row.step for row in relaunched.rows] == [*range(101, 201)]
    assert again.rows == ()
    assert relaunched.is_from_start


async def test_of_a_log_that_has_scrolled_the_first_row_may_be_gone(tmp_path: Path) -> None:
    cut = Known(value=tail_of("step 116 loss 2.0", is_cut=True), at=START)

    assert not (await Run(tmp_path, file=None).read(log=cut)).is_from_start


@given(
    total=st.integers(1, 60),
    window=st.integers(1, 20),
    stops=st.lists(st.integers(0, 60), max_size=10),
)
def test_any_windows_over_distinct_rows_hand_out_each_row_at_most_once(
    total: int, window: int, stops: list[int]
) -> None:
    rows = tuple(MetricRow(step=step, values={"loss": 2.0}) for step in range(total))
    cursor, seen = "", list[int]()

    for stop in sorted(stops):
        new, cursor = rows_after(rows[max(0, stop - window) : stop], cursor)
        seen += [row.step for row in new]

    assert seen == sorted(set(seen))


def tail_of(*lines: str, is_cut: bool = False) -> LogTail:
    return LogTail(lines=tuple(LogLine(text=line) for line in lines), is_cut=is_cut)
