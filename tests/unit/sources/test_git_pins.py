"""What ``git grep -n -z`` prints, read whole; and what names a word."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UnrecognisedError
from bot.model.rehearsal import Pin
from bot.sources.git.parsing import say_path
from bot.sources.git.pins import Word, name_of_remote, pins_in

HEAD = "a" * 40
OLD = Word("hero-a", unless_within=("hero-a-v2",))
KEY = Word("train/loss")
paths = st.binary(min_size=1, max_size=20).filter(lambda path: b"\0" not in path)
texts = st.binary(max_size=30).filter(lambda text: b"\0" not in text and b"\n" not in text)


def record(path: bytes, number: int, text: bytes, mark: bytes = b"\0") -> bytes:
    return HEAD.encode() + b":" + path + b"\0" + str(number).encode() + mark + text + b"\n"


@given(st.lists(st.tuples(paths, st.integers(1, 10**6), texts), max_size=6), st.sampled_from((b"\0", b":")))
def test_of_every_file_the_first_line_that_names_the_word_is_found(
    lines: list[tuple[bytes, int, bytes]], mark: bytes
) -> None:
    printed = b"".join(record(path, number, text + b" hero-a", mark) for path, number, text in lines)
    first: dict[str, int] = {}
    for path, number, text in lines:
        if OLD.is_in((text + b" hero-a").decode(errors="replace")):
            first[say_path(path)] = min(number, first.get(say_path(path), number))

    found = pins_in(printed, "acme/dash", HEAD, (OLD,))

    assert {pin.where for pin in found} == {f"acme/dash: {path}:{number}" for path, number in first.items()}
    assert {pin.what for pin in found} <= {"hero-a"}


@given(st.binary(max_size=80))
def test_what_is_not_understood_is_refused_and_nothing_else_is_raised(printed: bytes) -> None:
    with contextlib.suppress(UnrecognisedError):
        assert pins_in(printed, "acme/dash", HEAD, (OLD, KEY)) == ()


@pytest.mark.parametrize("cut", range(1, len(record(b"a.py", 7, b"hero-a"))))
def test_half_an_answer_is_refused(cut: int) -> None:
    whole = record(b"a.py", 7, b"hero-a")

    with pytest.raises(UnrecognisedError):
        pins_in(whole + whole[:cut], "acme/dash", HEAD, (OLD,))


def test_a_line_that_names_several_words_is_a_pin_for_each() -> None:
    found = pins_in(record(b"d/a.py", 3, b"plot(hero-a, train_loss)"), "acme/dash", HEAD, (OLD, KEY))

    assert found == (
        Pin(where="acme/dash: d/a.py:3", what="hero-a"),
        Pin(where="acme/dash: d/a.py:3", what="train/loss"),
    )


@pytest.mark.parametrize(
    ("word", "line", "is_named"),
    [
        (OLD, "runs = ['hero-a']", True),
        (OLD, "grug-train-hero-a.json", True),
        (OLD, "hero-a_smoothed", True),
        (OLD, "hero-ab", False),
        (OLD, "xhero-a", False),
        (OLD, "hero-a-v2 only", False),
        (OLD, "hero-a-v2 and hero-a", True),
        (OLD, "HERO-A", False),
        (Word("hero-a-v2", unless_within=("hero-a",)), "hero-a-v2", True),
        (KEY, '"train/loss"', True),
        (KEY, "train_loss", True),
        (KEY, "levanter_train_loss", True),
        (KEY, "train/losses", False),
        (KEY, "train.loss", False),
        (Word("a.b"), "axb", False),
    ],
)
def test_a_word_is_named_by_itself_or_joined_by_a_sign_and_never_within_the_childs(
    word: Word, line: str, is_named: bool
) -> None:
    assert word.is_in(line) is is_named


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/acme/dash.git", "acme/dash"),
        ("https://ada:t0ken@github.com/acme/dash", "acme/dash"),
        ("git@github.com:acme/dash.git", "acme/dash"),
        ("ssh://git@host:22/group/sub/dash/", "sub/dash"),
        ("file:///srv/git/dash.git", ""),
        ("/srv/git/dash.git", ""),
        ("../dash", ""),
        ("", ""),
    ],
)
def test_a_repository_goes_by_the_name_of_its_remote_and_never_by_a_credential(url: str, name: str) -> None:
    assert name_of_remote(url) == name
