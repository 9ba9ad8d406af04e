"""Rows of Finelog become rows of figures and signs of life, whatever a trainer or a server made of them."""

import contextlib
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UnrecognisedError
from bot.model.contract import MetricsContract
from bot.model.reading import Known
from bot.model.snapshot import MetricRow, Metrics
from bot.model.telemetry import Phase
from bot.sources.finelog.executions import Executions, executions_of
from bot.sources.finelog.reading_on import Cursor, Question, hand_out, next_question, parse_cursor
from bot.sources.finelog.rows import by_step, figure_names, moment_of, parse_samples
from bot.sources.finelog.signs import parse_signs
from bot.sources.finelog.tables import Form, Table, parse_namespaces, text
from tests.fakes.snapshots import AT, attempt, job, task, unknown

NAMES = figure_names(MetricsContract())
START = datetime(2026, 11, 29, 3, tzinfo=UTC)
NOW = START + timedelta(days=1)
ALL_ROWS = Question(after=None, since=None, limit=10**6)
COLUMNS = {"run_id": "COLUMN_TYPE_STRING", "timestamp_ms": "COLUMN_TYPE_INT64", "execution_uid": "COLUMN_TYPE_STRING"}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
columns = st.sampled_from(["seq", "timestamp_ms", "name", "value", "step", "kind", "execution_uid", "job_id"])
raw_rows = st.lists(st.dictionaries(columns, anything | st.sampled_from(["train_loss", "phase", "step"])), max_size=8)
forms = st.sampled_from(list(Form))


def row(seq: int, step: int | None, name: str = "train_loss", value: float = 2.0, **fields: Any) -> dict[str, Any]:
    at_ms = int((START + timedelta(seconds=seq)).timestamp() * 1000)
    given = {"seq": seq, "timestamp_ms": at_ms, "name": name, "value": value, "step": step, "kind": "scalar"}
    return given | {"execution_uid": "iris:one", "job_id": "/me/j"} | fields


def table(form: Form = Form.METRICS, **fields: Any) -> Table:
    return Table.model_validate({"name": "levanter.metrics", "form": form, "columns": COLUMNS} | fields)


@given(raw_rows, forms)
def test_no_row_breaks_the_reader_and_every_figure_of_it_is_a_float(raw: list[dict[str, Any]], form: Form) -> None:
    parsed = parse_samples(raw, form, NAMES)

    for found in by_step(parsed.samples):
        assert found.step >= 0
        assert all(type(value) is float for value in found.values.values())


@given(raw_rows, forms)
def test_no_row_gives_signs_of_life_that_nobody_understood(raw: list[dict[str, Any]], form: Form) -> None:
    with contextlib.suppress(UnrecognisedError):
        told = parse_signs(tuple(raw), form, Executions())

        assert (told.last_row_at is None) == (not raw)


@given(anything)
def test_no_list_of_tables_breaks_the_reader(answer: Any) -> None:
    for given_answer in (
        answer,
        {"namespaces": answer},
        {"namespaces": [{"namespace": "telemetry_v1"} | {"schema": answer}]},
    ):
        with pytest.raises(UnrecognisedError):
            parse_namespaces(given_answer)


@given(st.text(max_size=30))
def test_a_text_stays_one_text_in_sql_whatever_is_in_it(value: str) -> None:
    spelt = text(value)

    assert spelt[0] == spelt[-1] == "'"
    assert spelt[1:-1].replace("''", "").count("'") == 0
    assert spelt[1:-1].replace("''", "'") == value


@given(st.lists(st.integers(4, 9), min_size=12, max_size=12), st.lists(st.integers(0, 2), min_size=1, max_size=12))
def test_however_the_looks_fall_each_row_is_handed_out_once_and_in_order(limits: list[int], sizes: list[int]) -> None:
    """Rows of consecutive steps, one to three figures each, read in looks of any size."""
    rows: list[dict[str, Any]] = []
    for step, size in enumerate(sizes):
        names = ("train_loss", "grad_norm_total", "throughput_mfu")[: 1 + size]
        rows.extend([row(len(rows) + n, step, name) for n, name in enumerate(names, start=1)])
    written = ""
    handed: list[MetricRow] = []
    for limit in limits:
        cursor = parse_cursor(written)
        question = next_question(cursor, table(max_seq=len(rows)), None)
        behind = [each for each in rows if each["seq"] > (question.after or 0)][:limit]
        found = hand_out(
            parse_samples(behind, Form.METRICS, NAMES),
            table="levanter.metrics",
            question=Question(after=question.after or 0, since=None, limit=limit),
            is_cut=len(behind) == limit,
            cursor=cursor,
            executions=Executions(),
            at=NOW,
        )
        handed.extend(found.rows)
        written = found.cursor

    assert [each.step for each in handed] == list(range(len(sizes)))
    assert sum([len(each.values) for each in handed]) == len(rows)


def test_of_the_newest_rows_of_a_long_run_the_cut_step_is_left_out() -> None:
    rows = [row(1, 7, "grad_norm_total"), row(2, 8), row(3, 8, "grad_norm_total"), row(4, 9)]

    found = hand_out(
        parse_samples(rows, Form.METRICS, NAMES),
        table="levanter.metrics",
        question=ALL_ROWS,
        is_cut=True,
        cursor=None,
        executions=Executions(),
        at=NOW,
    )

    assert [each.step for each in found.rows] == [8, 9]


def test_rows_of_foreign_executions_are_nobodys_even_when_all_were_asked_for() -> None:
    rows = [row(1, 5, execution_uid="iris:foreign"), row(2, 6), row(3, 7, execution_uid=None)]
    own = Executions(current=frozenset({"iris:one"}), all=frozenset({"iris:one"}), is_exact=True)

    found = hand_out(
        parse_samples(rows, Form.METRICS, NAMES),
        table="levanter.metrics",
        question=ALL_ROWS,
        is_cut=False,
        cursor=None,
        executions=own,
        at=NOW,
    )

    assert 5 not in [each.step for each in found.rows]
    assert 6 in [each.step for each in found.rows]


def test_a_cursor_of_another_table_or_of_anything_else_begins_anew() -> None:
    cursor = Cursor(table="telemetry_v1", seq=900)

    assert parse_cursor("") is None
    assert parse_cursor('{"offset": 3}') is None
    assert next_question(cursor, table(max_seq=1000), None).after is None
    assert next_question(cursor, table(name="telemetry_v1", max_seq=1000), None).after == 900


def test_a_row_that_cannot_be_read_is_counted() -> None:
    rows = [row(1, None), row(2, 3, value="soon"), row(3, 3, kind="histogram", value=None), row(4, 4)]  # type: ignore[arg-type]  # what a server may send

    parsed = parse_samples(rows, Form.METRICS, NAMES)

    assert parsed.unreadable == 2
    assert [sample.step for sample in parsed.samples] == [4]


def test_naive_timestamps_mean_utc() -> None:
    assert moment_of(datetime(2026, 11, 29, 3)) == START  # noqa: DTZ001 - as pyarrow hands it out
    assert moment_of(1795921200000) == START
    assert moment_of("yesterday") is None


@pytest.mark.parametrize(("value", "phase"), [(0.0, Phase.INITIALIZING), (1.0, Phase.TRAINING), (2.0, Phase.FINISHED)])
def test_the_newest_phase_counts_and_the_time_of_its_row(value: float, phase: Phase) -> None:
    rows = (row(9, None, "phase", value), row(4, None, "phase", 1.0), row(8, 12, "progress_time_seconds", 1795921200.5))

    told = parse_signs(rows, Form.METRICS, Executions())

    assert (told.phase, told.phase_at, told.last_step) == (phase, START + timedelta(seconds=9), 12)
    assert told.progress_at == START + timedelta(seconds=0.5)


@pytest.mark.parametrize("value", [3.0, math.nan, None])
def test_a_phase_that_is_none_is_not_guessed(value: float | None) -> None:
    with pytest.raises(UnrecognisedError, match="phase is"):
        parse_signs((row(1, None, "phase") | {"value": value},), Form.METRICS, Executions())


def test_executions_are_those_of_the_job_and_of_all_below_it() -> None:
    tried = (attempt(0, uid="a"), attempt(1, uid="b"))
    child = job(job_id="/me/c/train", tasks=(task(attempts=tried),))

    found = executions_of(Known(value=(job(), child), at=AT))
    dark = executions_of(Known(value=(job(tasks=unknown()), child), at=AT))

    assert found.current == {"iris:uid-0-0", "iris:b"}
    assert (found.is_current("iris:b"), found.is_current("iris:a"), found.is_current("")) == (True, False, None)
    assert not found.is_foreign("iris:a")
    assert found.is_foreign("iris:x")
    assert (dark.is_current("iris:b"), dark.is_current("iris:x"), dark.is_foreign("iris:x")) == (True, None, False)
    assert executions_of(unknown()) == Executions()
    assert found.later_than("iris:a") == {"iris:b"}
    assert not found.later_than("iris:b")


def test_a_late_attempt_that_was_taken_for_the_next_one_gives_way_once_the_orchestrator_is_heard() -> None:
    tried = Executions(
        current=frozenset({"iris:two"}),
        all=frozenset({"iris:one", "iris:two"}),
        attempts=(("iris:one", "iris:two"),),
        is_exact=True,
    )

    def look(rows: list[dict[str, Any]], executions: Executions, cursor: Cursor | None) -> Metrics:
        return hand_out(
            parse_samples(rows, Form.METRICS, NAMES),
            table="levanter.metrics",
            question=ALL_ROWS,
            is_cut=False,
            cursor=cursor,
            executions=executions,
            at=NOW,
        )

    first = look([row(1, 5, execution_uid="iris:two")], tried, None)
    dark = look([row(2, 9)], Executions(), parse_cursor(first.cursor))
    heard = look([row(3, 10), row(4, 6, execution_uid="iris:two")], tried, parse_cursor(dark.cursor))
    after = look([row(5, 11), row(6, 7, execution_uid="iris:two")], tried, parse_cursor(heard.cursor))

    assert [[each.step for each in found.rows] for found in (first, heard, after)] == [[5], [6], [7]]
