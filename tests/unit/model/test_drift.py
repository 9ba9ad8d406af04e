"""Two launches' configurations: what differs, whatever they hold, and what is remembered to say so."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.model.drift import SHAPE_CHARS, ConfigShape, changes_since, drift_between, shape_of
from bot.model.launched import LaunchedConfig
from tests.fakes.launched import config, tree

PARTS = st.sampled_from(["trainer", "optimizer", "data", "model", "seed", "lr", "x", "y", "z"])
KEYS = st.lists(PARTS, min_size=1, max_size=4).map(".".join)
TEXTS = (st.integers() | st.text(alphabet="abc", max_size=400) | st.booleans() | st.none()).map(json.dumps)
VALUES = st.dictionaries(KEYS, TEXTS, max_size=12)


def launched(values: dict[str, str]) -> LaunchedConfig:
    return LaunchedConfig(origin="here", values=values, words={"optimizer": ("optimizer",), "data": ("data",)})


@given(VALUES, VALUES)
def test_exactly_the_keys_that_differ_are_told(old: dict[str, str], new: dict[str, str]) -> None:
    changes = drift_between(launched(old), launched(new))

    assert {each.key for each in changes} == {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert {(each.key, each.new, each.old) for each in drift_between(launched(new), launched(old))} == {
        (each.key, each.old, each.new) for each in changes
    }
    assert not any(each.is_intended for each in changes)


@given(VALUES, VALUES, st.integers(200, 3000))
def test_what_is_remembered_in_little_room_sees_every_difference_and_never_one_that_is_none(
    old: dict[str, str], new: dict[str, str], room: int
) -> None:
    shape = shape_of(launched(old), room)
    stored = ConfigShape.model_validate_json(shape.model_dump_json())

    assert changes_since(stored, launched(old)) == ()
    assert bool(changes_since(stored, launched(new))) == bool(drift_between(launched(old), launched(new)))


@given(
    st.dictionaries(
        st.text(alphabet="ab.", min_size=1, max_size=40), st.text(max_size=300).map(json.dumps), max_size=200
    )
)
def test_a_shape_never_grows_beyond_its_room(values: dict[str, str]) -> None:
    assert len(shape_of(launched(values)).model_dump_json()) <= SHAPE_CHARS + 1_000


def test_a_word_of_hero_covers_all_below_its_key_and_what_is_intended_may_be_a_beginning() -> None:
    new = config(tree(optimizer__beta1=0.8, optimizer__new={"a": 1}, model__hidden_dim=2))

    changes = drift_between(config(), new, ["optimizer", "mode"])

    assert [(each.word, each.key, each.old, each.new, each.is_intended) for each in changes] == [
        ("optimizer", "optimizer.beta1", "0.9", "0.8", True),
        ("optimizer", "optimizer.new.a", None, "1", True),
        ("", "model.hidden_dim", "1024", "2", False),
    ]


def test_a_value_that_was_removed_keeps_its_word() -> None:
    without: dict[str, Any] = tree()
    del without["optimizer"]

    changes = drift_between(config(), config(without))

    assert {each.word for each in changes} == {"optimizer"}
    assert {each.new for each in changes} == {None}
