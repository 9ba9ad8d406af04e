"""A gate as people write it."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.gate import Direction, Gate, Reduce, parse_gate
from bot.model.part import Basis


def test_a_gate_is_read_with_all_that_may_be_said_of_it() -> None:
    gate = parse_gate("  train/router.z p99.5 >= -2% skip 3 every 10 coverage 95% flat inferred ")

    assert gate == Gate(
        metric="train/router.z",
        direction=Direction.DOWN,
        reduce=Reduce.QUANTILE,
        q=0.995,
        tolerance=0.02,
        is_relative=True,
        warmup_rows=3,
        every=10,
        coverage=0.95,
        may_be_flat=True,
        basis=Basis.INFERRED,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("loss", "is no gate; write it as"),
        ("loss mean < 1", "is no gate"),
        ("loss median <= 1", "is no gate"),
        ("loss mean <= 1-2", "is no number"),
        ("loss mean <= 1 soon", "is nothing that may follow"),
        ("loss mean <= 1 flatter", "is nothing that may follow"),
        ("loss p100 <= 1", "less than 1"),
        ("loss p0 <= 1", "greater than 0"),
        ("loss mean within -1", "above zero"),
        ("loss mean <= 1e999", "not finite"),
        ("loss mean <= 1 coverage 0%", "greater than 0"),
        ("loss mean <= 1 coverage 101%", "less than or equal to 1"),
    ],
)
def test_what_is_no_gate_is_refused_with_how_to_write_one(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_gate(text)


_NUMBERS = st.integers(0, 99_999).map(lambda number: number / 1000)


@given(
    sign=st.sampled_from(("<=", ">=", "within")),
    reduce=st.sampled_from(("mean", "max", "p50", "p99.9")),
    limit=_NUMBERS,
    minus=st.booleans(),
    unit=st.sampled_from(("", "%")),
    rest=st.sampled_from(("", " skip 5", " every 10 coverage 90%", " flat measured")),
)
def test_a_gate_reads_back_as_it_is_written(
    sign: str, reduce: str, limit: float, *, minus: bool, unit: str, rest: str
) -> None:
    gate = parse_gate(f"loss {reduce} {sign} {'-' if minus and sign != 'within' else ''}{limit}{unit}{rest}")

    again = parse_gate(str(gate))

    assert str(again) == str(gate)
    assert again.model_copy(update={"tolerance": gate.tolerance}) == gate
    assert again.tolerance == pytest.approx(gate.tolerance)


@given(st.text(max_size=60))
def test_any_text_is_a_gate_or_is_refused_as_none(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_gate(text).metric in text
