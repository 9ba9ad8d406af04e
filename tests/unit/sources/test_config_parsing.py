"""From the bytes of a configuration to dotted keys: every language alike, bounded, never a guess and never a secret."""

import contextlib
import json
import math
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UnrecognisedError
from bot.model.launched import WORDS, parse_span
from bot.redaction import Redactor
from bot.sources.config.flatten import KEYS_AT_MOST, flatten, weigh
from bot.sources.config.parse import parse_config
from bot.sources.config.source import launched
from bot.sources.config.words import known_keys, words_of
from tests.fakes.launched import TREE, config, tree
from tests.fakes.snapshots import contract

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=20)
TREES = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_size=5,
)


def read(raw: bytes | str, name: str = "config.yaml") -> dict[str, str]:
    parsed = parse_config(raw if isinstance(raw, bytes) else raw.encode(), name)
    weigh(parsed)
    return flatten(parsed)


@given(TREES)
def test_json_and_yaml_of_one_tree_read_the_same_and_every_value_is_json(made: dict[str, Any]) -> None:
    as_json = read(json.dumps(made), "config.json") if made else {}
    as_yaml = read(yaml.safe_dump(made), "config.yaml") if made else {}

    assert as_json == as_yaml
    for text in as_json.values():
        json.loads(text)


@given(st.binary(max_size=300), st.sampled_from(["c.json", "c.yaml", "c.toml", "config"]))
def test_whatever_a_file_holds_it_is_a_table_or_refused(raw: bytes, name: str) -> None:
    with contextlib.suppress(UnrecognisedError):
        for text in read(raw, name).values():
            json.loads(text)


@given(TREES)
def test_keys_and_values_come_back_whatever_dots_quotes_and_control_characters_they_hold(made: dict[str, Any]) -> None:
    flat = flatten(made)

    assert flat == flatten(dict(reversed(made.items())))
    assert all(key.isprintable() for key in flat)
    assert len(flat) == _leaves(made)


def _leaves(table: dict[str, Any]) -> int:
    return sum(_leaves(v) if isinstance(v, dict) and v else 1 for v in table.values())


def test_a_dot_within_a_key_is_told_from_one_between_two() -> None:
    assert flatten({"model": {"lm.head": 1}, 'a"b': {"": 2}}) == {'model."lm.head"': "1", '"a\\"b".""': "2"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "NaN"), (math.inf, "Infinity"), (1.0, "1"), (1, "1"), (-0.0, "0"), (3e-4, "0.0003"), (True, "true"),
        (1e300, "1e+300"), (10**302, '"a whole number of 1004 bits"'),
        ([1.0, {"b": 2, "a": None}], '[1, {"a": null, "b": 2}]'), ({}, "{}"), ("é", '"é"'), ("\ud800", '"\\ud800"'),
    ],
)  # fmt: skip
def test_values_have_one_text_each(value: object, text: str) -> None:
    assert flatten({"key": value}) == {"key": text}


def test_a_value_that_is_long_is_told_by_its_digest() -> None:
    one, other = flatten({"key": list(range(5000))}), flatten({"key": list(range(1, 5001))})

    assert len(one["key"]) < 120
    assert one != other


@pytest.mark.parametrize(
    ("raw", "name", "detail"),
    [
        ('{"a": 1, "a": 2}', "c.json", "c.json: the key 'a' is there twice"),
        ("a: 1\nb: 2\na: 3\n", "c.yaml", "c.yaml: a key is there twice in the table from line 1 on"),
        ("a = 1\na = 2\n", "c.toml", "c.toml is no TOML that is read here"),
        ("x: &x {a: 1}\ny:\n  <<: *x\n", "c.yaml", "c.yaml: line 3 has a merge key (<<), which is not read"),
        ("!!python/object/apply:os.system [echo]", "c.yaml", "c.yaml, line 1 is no YAML that is read here"),
        ("a: [1, 2", "c.yaml", "c.yaml, line 2 is no YAML that is read here"),
        ("[1, 2]", "c.json", "c.json is a list; a table of keys is expected"),
        ("", "c.yaml", "c.yaml is empty; a table of keys is expected"),
        (b"\xff\xfe", "c.yaml", "c.yaml is no UTF-8 text"),
        ("{" * 100_000, "c.json", "c.json, line 1 is no JSON: Expecting property name enclosed in double quotes"),
        ("[" * 100_000, "c.json", "c.json is nested too deep"),
        ('{"a": 1', "c", "c, line 1 is no JSON: Expecting ',' delimiter"),
        ("1: a\n'1': b\n", "c.yaml", "two keys of the configuration read '1'"),
        ("day: 2026-13-45", "c.yaml", "c.yaml is no YAML that is read here"),
    ],
)
def test_what_is_ambiguous_broken_or_dangerous_is_refused_with_its_place(raw: Any, name: str, detail: str) -> None:
    with pytest.raises(UnrecognisedError) as refused:
        read(raw, name)

    assert refused.value.detail == detail


def test_aliases_are_read_and_a_bomb_of_them_is_refused_before_it_is_written_out() -> None:
    assert read("x: &x [1, 2]\ny: *x\n") == {"x": "[1, 2]", "y": "[1, 2]"}
    bomb = "a0: &a0 [lol, lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))
    for raw in (bomb, "a: &a\n  b: *a\n", "a: &a [*a]\n"):
        with pytest.raises(UnrecognisedError):
            read(raw)
    with pytest.raises(UnrecognisedError, match="larger than any"):
        read("s: &s " + "x" * 1_000_000 + "\n" + "".join(f"k{n}: *s\n" for n in range(20)))
    with pytest.raises(UnrecognisedError, match="more than 20000 keys"):
        flatten({str(n): n for n in range(KEYS_AT_MOST + 1)})


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ('{"trainer": {"seed": 1.0}}', "config"),
        ("trainer:\n  seed: 1\n", "config"),
        ("[trainer]\nseed = 1\n", "config"),
        ("[trainer]\nseed = 1\n", "CONFIG.TOML"),
        ('{"trainer": {"value": {"seed": 1}, "desc": null}, "_wandb": {"value": {}}}', "config.json"),
        ("wandb_version: 1\ntrainer:\n  desc: null\n  value:\n    seed: 1\n", "config.yaml"),
        ("\ufefftrainer: {seed: 1}", "config.yml"),
    ],
)
def test_the_language_is_told_by_the_name_or_by_the_content_and_w_and_bs_wrapping_comes_off(
    raw: str, name: str
) -> None:
    assert read(raw, name) == {"trainer.seed": "1"}


def test_secrets_do_not_leave_the_source() -> None:
    given_away = tree(trainer__tracker__api_key="0123456789abcdef0123456789abcdef01234567")
    given_away["env"] = [["HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"]]
    given_away["store"] = "https://ada:hunter2-pass@example.org/x"

    made = launched(given_away, "here", contract(), Redactor(["known-secret"]))

    text = made.model_dump_json()
    assert not any(secret in text for secret in ("0123456789abcdef", "hf_abc", "hunter2-pass"))
    assert made.values["trainer.train_batch_size"] == "256"


def test_levanters_keys_are_known_and_the_contracts_own_stand_alone() -> None:
    plain = config()
    grug = config(
        {"trainer": {"trainer": TREE["trainer"], "expert_axis_size": 4}, "optimizer": {}, "stop_after_steps": None}
    )
    tracked = config({"trainer.num_train_steps": 7, "steps": 9})
    own = config({"trainer": TREE["trainer"], "steps": 9}, promised=contract(config={"keys": {"final_step": "steps"}}))

    assert plain.key("batch_size") == "trainer.train_batch_size"
    assert plain.words["optimizer"] == ("optimizer",)
    assert (plain.count("final_step"), grug.count("final_step"), tracked.count("final_step")) == (10_000, 10_000, 7)
    assert grug.words["mesh"] == ("trainer.expert_axis_size", "trainer.trainer.mesh")
    assert own.words["final_step"] == ("steps",)
    assert own.count("final_step") == 9
    assert config({"steps": 1}, promised=contract(config={"keys": {"seed": "no.such"}})).words == {}


def test_every_word_has_keys_or_is_the_contracts_to_name() -> None:
    assert all(known_keys(word) for word in WORDS)
    assert words_of({}, {}) == {}


@pytest.mark.parametrize(
    ("value", "count"),
    [(1, 1), (1.0, 1), ("20_000", 20_000), ("2e4", 20_000), (1.5, None), (0, None), (-1, None), (True, None),
     (None, None), (math.nan, None), (math.inf, None), ("many", None), ([1], None), (10**20, None)],
)  # fmt: skip
def test_a_count_is_a_whole_number_above_zero(value: object, count: int | None) -> None:
    assert config({"num_train_steps": value}).count("final_step") == count


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(900, 900), (0.5, 0.5), ("15m", 900), ("1h30m", 5400), ("0:15:00", 900), ("1 day, 0:00:01.5", 86401.5),
     ("2 days, 1:00:00", 176400), ("PT15M", 900), ("900", 900), (0, None), (-5, None), (True, None), (None, None),
     (math.nan, None), (math.inf, None), (1e300, None), ("soon", None), ("9" * 400 + "s", None), ([900], None)],
)  # fmt: skip
def test_a_time_is_read_in_every_form_that_trainers_write(value: object, seconds: float | None) -> None:
    assert parse_span(value) == (None if seconds is None else timedelta(seconds=seconds))
