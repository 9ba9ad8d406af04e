"""The record as Markdown, whole and cut; and its block in a text that belongs to people."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.chronicle import MilestoneReached, StepEnded
from bot.model.value import RunId
from bot.render.issue_body import block_of, has_block, outside_of, with_block
from bot.render.record import record_markdown
from tests.fakes.chronicles import LIFE, entries_of
from tests.fakes.github_mistakes import MENTION, NOT_RENDERED

RUN = RunId("hero-12d8b6f0")
GOLDEN = Path(__file__).parents[2] / "golden" / "record" / "life.md"
texts = st.text(st.sampled_from("ab \n\r<!->@#|`*"), max_size=60)


def test_a_life_reads_as_the_golden_file() -> None:
    assert record_markdown(RUN, entries_of(RUN)) == GOLDEN.read_text(encoding="utf-8").rstrip("\n")


def test_a_record_that_does_not_fit_keeps_the_newest_and_says_what_is_left_out() -> None:
    entries = entries_of(RUN, (*LIFE, *(MilestoneReached(step=n) for n in range(400))))

    text = record_markdown(RUN, entries, room=6_000)

    assert text is not None
    assert len(text) <= 6_000
    assert "| 411 |" in text
    assert "| 12 |" not in text
    assert "older entries are not shown here" in text
    assert "Launch 1" in text


@given(st.integers(0, 70_000))
def test_a_record_is_never_longer_than_its_room(room: int) -> None:
    text = record_markdown(RUN, entries_of(RUN), room=room)

    assert text is None or len(text) <= room


@given(texts)
def test_what_comes_from_outside_makes_no_mention_no_marker_and_no_further_cell(foreign: str) -> None:
    said = StepEnded(action=1, step="submit", outcome="done", detail=f"{foreign} @dri <!-- hero:record-end=x --> | x")
    text = record_markdown(RUN, entries_of(RUN, (said,)))

    assert text is not None
    assert "<!--" not in text
    assert not MENTION.search(NOT_RENDERED.sub("", text))
    (row,) = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert row.replace("\\|", "").count("|") == 4


@given(texts, texts, st.text("xyz\n", max_size=30))
def test_what_people_wrote_around_the_block_is_left_to_the_byte(before: str, after: str, content: str) -> None:
    first = with_block(before, RUN, block_of(RUN, "old"))
    edited = first + after

    now = with_block(edited, RUN, block_of(RUN, content))

    assert outside_of(now, RUN) == outside_of(edited, RUN)
    assert block_of(RUN, content) in now
    assert with_block(now, RUN, block_of(RUN, content)) == now, "the same once more changes nothing"


def test_an_edit_in_the_browser_that_only_turned_the_line_ends_is_no_change() -> None:
    body = with_block("ours\n", RUN, block_of(RUN, "one\ntwo")).replace("\n", "\r\n")

    assert with_block(body, RUN, block_of(RUN, "one\ntwo")) == body


@pytest.mark.parametrize("lost", [0, 1])
def test_a_block_with_one_marker_gone_is_none_and_takes_nothing_with_it(lost: int) -> None:
    start, *_, end = block_of(RUN, "text").split("\n")
    body = f"{start}\nmine" if lost else f"mine\n{end}"

    assert not has_block(body, RUN)
    assert with_block(body, RUN, block_of(RUN, "new")).startswith(body)
    again = with_block(with_block(body, RUN, block_of(RUN, "new")), RUN, block_of(RUN, "newer"))
    assert again == f"{body}\n\n{block_of(RUN, 'newer')}"


def test_two_runs_have_a_block_each_in_one_issue() -> None:
    other = RunId("hero-2")
    body = with_block(with_block("", RUN, block_of(RUN, "a")), other, block_of(other, "b"))

    assert with_block(body, RUN, block_of(RUN, "c")) == f"{block_of(RUN, 'c')}\n\n{block_of(other, 'b')}"
