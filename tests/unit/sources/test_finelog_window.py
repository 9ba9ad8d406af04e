"""Pages of Finelog's rows become arrays, as a loop over the rows would make them."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UnrecognisedError
from bot.model.contract import MetricsContract
from bot.sources.finelog.columns import Gathered, Labels, Page
from bot.sources.finelog.rows import figure_names, parse_samples
from bot.sources.finelog.tables import Form, Table
from bot.sources.finelog.window import names_of, parse_executions
from bot.sources.finelog.window_sql import Wanted, who_logged

_WHO = ("one", "two", "")
_NAMES = ("train_loss", "mfu", "step")
_ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(_WHO), st.sampled_from(_NAMES), st.integers(-1, 6)), max_size=25
)
type _Row = tuple[int, str, str, int]


def page(first_seq: int, rows: list[_Row]) -> Page:
    """Rows of (moment or step, execution, name, value)."""
    marks, who, names, values = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    return Page(
        seqs=np.arange(first_seq, first_seq + len(rows)),
        marks=np.array(marks, np.int64),
        values=np.array(values, np.float64),
        figures=Labels(np.array([_NAMES.index(name) for name in names], np.int64), _NAMES),
        executions=Labels(np.array([_WHO.index(each) for each in who], np.int64), _WHO),
    )


def gather(form: Form, rows: list[_Row], cuts: list[int]) -> Gathered:
    gathered = Gathered(form, _WHO)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for start, end in pairwise(edges):
        gathered.add(page(start, rows[start:end]))
    return gathered


@given(_ROWS, st.lists(st.integers(0, 25), max_size=3), st.sampled_from(list(Form)))
def test_arrays_hold_what_a_loop_over_the_rows_finds_wherever_pages_end(
    rows: list[_Row], cuts: list[int], form: Form
) -> None:
    raw: list[dict[str, Any]] = [
        {"seq": n, "timestamp_ms": mark, "step": mark, "execution_uid": who, "name": name, "value": float(value)}
        for n, (mark, who, name, value) in enumerate(rows)
    ]
    words = {name: name for name in _NAMES if form is Form.METRICS or name != "step"}
    samples = [each for each in parse_samples(raw, form, words).samples if 1 <= (each.step or 0) <= 4]
    if form is Form.GAUGES:
        samples = [each for each in samples if each.name != "step"]

    found = gather(form, rows, cuts).figures(1, 4)

    if form is Form.METRICS:  # there the server leaves out what is not of these steps
        found = {name: each for name, each in found.items() if (each.steps >= 1).any()}
    expected = {
        name: [(each.step, _WHO.index(each.execution), each.value) for each in samples if each.name == name]
        for name in {each.name for each in samples}
    }
    assert found.keys() == expected.keys()
    for name, figure in found.items():
        columns = zip(figure.steps.tolist(), figure.executions.tolist(), figure.values.tolist(), strict=True)
        assert [row for row in columns if row[0] >= 1] == expected[name]


def test_pages_that_overlap_or_name_somebody_new_are_refused() -> None:
    gathered = gather(Form.METRICS, [(1, "one", "mfu", 1)] * 3, [])

    with pytest.raises(UnrecognisedError, match="out of order"):
        gathered.add(page(2, [(1, "one", "mfu", 1)]))
    with pytest.raises(UnrecognisedError, match="nobody told"):
        Gathered(Form.METRICS, ("one",)).add(page(0, [(1, "two", "mfu", 1)]))


def test_executions_stand_in_the_order_in_which_they_began_and_those_without_a_clock_last() -> None:
    def row(name: str, began: object, first: int) -> dict[str, Any]:
        return {"execution_uid": name, "began": began, "first_seq": first, "last_seq": 99, "newest_step": None}

    at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    rows = (
        row("late", int((at + timedelta(seconds=3)).timestamp() * 1000), 1),
        row("tie-b", at.replace(tzinfo=None), 9),  # a timestamp comes naive
        row("tie-a", int(at.timestamp() * 1000), 3),
        row("never", None, 0),
    )

    found = parse_executions(rows)

    assert [each.name for each in found] == ["tie-a", "tie-b", "late", "never"]
    assert found[0].began_at == at
    assert found[-1].began_at is None


def test_a_figure_is_looked_for_under_its_likeliest_name_first() -> None:
    words = figure_names(MetricsContract())
    own = figure_names(MetricsContract(loss="train/xent.loss"))

    assert names_of("loss", words) == ("loss", "train_loss")
    assert names_of("loss", own) == ("train_xent_loss",)
    assert names_of("mfu", words)[0] == "mfu"
    assert names_of("moe/dropped-assignments", words) == ("moe_dropped_assignments",)


@pytest.mark.parametrize("form", list(Form))
def test_whatever_a_run_or_a_figure_is_called_the_question_stays_one(form: Form) -> None:
    columns = {"run_id": "STRING", "timestamp_ms": "INT64", "value": "FLOAT64", "step": "INT64", "kind": "STRING"}
    table = Table(name="levanter.metrics", form=form, columns=columns)
    odd = "o'hara\\' OR 1=1 --"

    wanted = Wanted(table=table, run_ids=(odd,), names=(odd,), first_step=1, last_step=9, last_seq=100)

    for sql in (wanted.count(), wanted.page(7, 50), who_logged(table, (odd,))):
        assert "'o''hara\\'' OR 1=1 --'" in sql
        assert sql.replace("''", "").count("'") % 2 == 0
    assert wanted.page(7, 50).endswith("AND seq > 7 ORDER BY seq LIMIT 50")
