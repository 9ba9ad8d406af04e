"""Durations as people write them, and as people read them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from bot.model.durations import Duration, parse_duration, say_duration, write_duration

ADAPTER: TypeAdapter[timedelta] = TypeAdapter(Duration)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("15m", 900),
        ("570s", 570),
        ("1h30m", 5400),
        ("0.5s", 0.5),
        ("250ms", 0.25),
        ("2d", 172_800),
        ("90", 90),
        ("1.5", 1.5),
        (" 1 H 30 M ", 5400),
        (90, 90),
        ("PT15M", 900),
    ],
)
def test_a_duration_is_read_as_it_is_written(written: object, seconds: float) -> None:
    assert ADAPTER.validate_python(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written", ["", "soon", "-5m", "5m later", "m", "1h30", "1e5", "5 weeks", "9" * 400, "99999999999d", None, []]
)
def test_what_is_no_duration_is_refused_with_an_example_and_never_breaks(written: object) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(written)


def test_the_refusal_says_how_to_write_one() -> None:
    with pytest.raises(ValueError, match="'soon' is no duration; write it as 15m, 570s, 1h30m or a number of seconds"):
        parse_duration("soon")


@given(st.text(max_size=30))
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        ADAPTER.validate_python(text)
    except ValidationError:
        return


@given(st.integers(0, 10**11))
def test_what_is_written_is_read_back(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)

    assert parse_duration(write_duration(value)) == value


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.5, "0.5 s"),
        (9.99, "10 s"),
        (40, "40 s"),
        (59.6, "1 min"),
        (90, "1 min 30 s"),
        (900, "15 min"),
        (3600, "1 h"),
        (183_600, "2 d 3 h"),
        (86_400 * 9 + 59, "9 d 59 s"),
        (-20, "-20 s"),
        (-3600, "-1 h"),
    ],
)
def test_a_duration_is_said_in_its_two_largest_units(seconds: float, said: str) -> None:
    assert say_duration(timedelta(seconds=seconds)) == said
