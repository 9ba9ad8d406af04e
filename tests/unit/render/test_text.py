"""Foreign text shows literally, fits, and does nothing."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.text import Text

from bot.render.text import (
    clean,
    console_escape,
    github_code_block,
    github_escape,
    slack_code_block,
    slack_escape,
    split_text,
)

TRACEBACK = "Traceback (most recent call last):\n" + "```\n" + "RuntimeError: <!channel> & @everyone\n" * 2000

SNIPPETS = st.sampled_from(
    [
        "<!channel>",
        "<@U1>",
        "@everyone",
        "@here",
        "<!-- hero:delivery=1 -->",
        "```",
        "`",
        "fixes #12",
        "a/b#3",
        "GH-4",
        "\x1b[31m",
        "\n",
        "\r\n",
        " ",
        "&",
        "\\",
        "[red]",
        "[/]",
        "\u202e",
        "\x00",
        "\ud800",
        "<http://x|y>",
        "@sam",
        "- ",
        "1. ",
        "~~~",
        "_x_",
        "https://github.com/o/r/issues/5",
        "\x1b]0;t\x07",
        "\u2028",
        "\u200b",
        "text",
    ]
)
FOREIGN = st.one_of(st.text(), st.lists(SNIPPETS, max_size=15).map("".join))
LIMITS = st.integers(min_value=-1, max_value=120)


def _visible(escaped: str) -> str:
    """Undo Slack's escapes and take out zero-width spaces: what a reader sees."""
    return escaped.replace("\u200b", "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def test_control_characters_colours_and_direction_changes_are_gone() -> None:
    hostile = "\x1b[1;31mloss\x1b[0m \x00nan\x07 \x1b]0;title\x07\u202egpj.exe\u2066 \ud800 a\r\nb\rc\u2028d\te\x9b2J"

    assert clean(hostile, 200) == "loss \ufffdnan\ufffd gpj.exe \ufffd a\nb\nc\nd\te"


def test_an_unfinished_escape_sequence_hides_no_text() -> None:
    assert clean("\x1b]0;the run failed\nnext", 100) == "0;the run failed\nnext"


def test_a_cut_says_how_much_is_missing() -> None:
    shown = clean("x" * 70_000, 100)

    assert shown == "x" * 76 + "… [cut 69924 characters]"
    assert len(shown) == 100


def test_a_short_text_is_not_cut() -> None:
    assert clean("step 4000", 9) == "step 4000"


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("<@U1>", "&lt;@U1&gt;"),
        ("<http://x|label>", "&lt;http://x|label&gt;"),
        ("R&D", "R&amp;D"),
        ("&lt;!here&gt;", "&amp;lt;!here&amp;gt;"),
        ("@here now", "@\u200bhere now"),
    ],
)
def test_slack_shows_control_syntax_literally(hostile: str, shown: str) -> None:
    assert slack_escape(hostile) == shown
    assert _visible(slack_escape(hostile)) == hostile


def test_a_slack_entity_is_never_cut_in_half() -> None:
    shown = slack_escape("&" * 100, 60)

    assert len(shown) <= 60
    assert re.fullmatch(r"(?:&amp;)+… \[cut \d+ characters\]", shown)


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("@sam @org/team", "@\u200bsam @\u200borg/team"),
        ("Fixes #12", "Fixes #\u200b12"),
        ("closes marin/hero#3", "closes marin/hero#\u200b3"),
        ("resolves GH-4", "resolves GH-\u200b4"),
        ("https://github.com/o/r/pull/5", "https://github.com/o/r/pull/\u200b5"),
        ("<!-- hero:delivery=1 -->", "&lt;!-- hero:delivery=1 --&gt;"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("![a](http://x) [b](http://y)", "!\\[a\\](http://x) \\[b\\](http://y)"),
        ("`@sam`", "\\`@\u200bsam\\`"),
        ("run_id of __init__", "run_id of \\_\\_init\\_\\_"),
        (
            "    code\n# head\n- item\n12. item\n===\n> quote",
            "code\n#\u200b head\n\\- item\n12\\. item\n\\===\n&gt; quote",
        ),
    ],
)
def test_github_text_refers_to_nothing_and_formats_nothing(hostile: str, shown: str) -> None:
    assert github_escape(hostile) == shown


@pytest.mark.parametrize("block", [slack_code_block, github_code_block])
def test_a_code_block_cannot_be_closed_from_inside(block: type) -> None:
    shown = str(block("a\n```\n````\n@everyone `"))

    assert re.findall(r"`{3,}", shown) == ["```", "```"]
    assert shown.startswith("```\n")
    assert shown.endswith("\n```")


def test_a_code_block_cannot_forge_a_hidden_marker() -> None:
    assert "<!--" not in github_code_block("<!-- hero:delivery=1 -->")


def test_a_language_stands_behind_the_fence_unless_it_is_no_language() -> None:
    assert github_code_block("x", language="python") == "```python\nx\n```"
    assert github_code_block("x", language="py`\n@sam") == "```\nx\n```"


def test_a_huge_traceback_is_split_with_balanced_fences_and_nothing_lost() -> None:
    message = f"hero-12d8b6f0 failed at step 4000\n{slack_code_block(TRACEBACK)}\nApprove with: approve R7"

    parts = split_text(message, 3000)

    assert parts[0].startswith("hero-12d8b6f0 failed at step 4000\n```\nTraceback")
    assert parts[-1].endswith("\n```\nApprove with: approve R7")
    assert all(len(part) <= 3000 and part.count("```") % 2 == 0 for part in parts)
    assert sum(part.count("RuntimeError: ") for part in parts) == 2000


def test_a_split_code_block_keeps_its_language() -> None:
    assert split_text("```py\naaaa\nbbbb\n```", 14) == ("```py\naaaa\n```", "```py\nbbbb\n```")


def test_a_split_prefers_line_ends() -> None:
    assert split_text("one two\nthree\nfour", 13) == ("one two\nthree", "four")


def test_an_empty_text_has_no_parts() -> None:
    assert split_text("", 10) == ()


def test_a_megabyte_on_one_line_is_handled() -> None:
    for hostile in ("\x1b[" * 500_000, "\x1b]" * 500_000, "\x9d" * 1_000_000, "`" * 1_000_000, "<@U1>" * 200_000):
        assert len(clean(hostile, 3000)) <= 3000
        assert len(github_escape(hostile, 3000)) <= 3000
        assert len(slack_code_block(hostile, 3000)) <= 3000
        assert all(len(part) <= 3000 for part in split_text(hostile, 3000))


@given(FOREIGN, LIMITS)
def test_no_limit_is_ever_exceeded(text: str, limit: int) -> None:
    for shown in (
        clean(text, limit),
        slack_escape(text, limit),
        github_escape(text, limit),
        slack_code_block(text, limit),
        github_code_block(text, limit),
    ):
        assert len(shown) <= max(0, limit)
    assert all(len(part) <= max(1, limit) for part in split_text(text, limit))


@given(FOREIGN, st.one_of(st.none(), LIMITS))
def test_nothing_on_slack_is_live(text: str, limit: int | None) -> None:
    for shown in (slack_escape(text, limit), slack_code_block(text, limit)):
        assert "<" not in shown
        assert ">" not in shown
        assert not re.search(r"@(?:everyone|here|channel)\b", shown)
    assert "```" not in slack_escape(text, limit)


@given(FOREIGN, st.one_of(st.none(), LIMITS))
def test_nothing_on_github_is_live(text: str, limit: int | None) -> None:
    shown = github_escape(text, limit)

    assert "<" not in shown
    assert not re.search(r"@\w|#\d|\bGH-\d|/(?:issues|pull)/\d", shown, re.IGNORECASE)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`\[*~|]", shown)
    assert "<!--" not in github_code_block(text, limit)


@given(FOREIGN)
def test_cleaning_leaves_nothing_to_clean(text: str) -> None:
    once = clean(text, 10_000)

    assert clean(once, 10_000) == once
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", once)


@given(FOREIGN)
@example("\\")
@example("[red]\\")
@example("\\[")
@example("\\\\[red]")
def test_the_console_shows_markup_as_it_is(text: str) -> None:
    shown = Text.from_markup(f"[bold]{console_escape(text)}[/bold].", emoji=False).plain

    assert shown.replace("\u200b", "") == f"{clean(text, len(text))}.".replace("\u200b", "")


@given(FOREIGN, st.integers(min_value=24, max_value=80))
def test_every_part_of_a_split_has_balanced_fences(text: str, limit: int) -> None:
    message = f"head\n{github_code_block(text, language='py')}\ntail"

    parts = split_text(message, limit)

    for part in parts:
        fences = [line for line in part.split("\n") if re.fullmatch(r"```\w*", line)]
        assert [fence == "```" for fence in fences] == [False, True] * (len(fences) // 2)
    inside = [line for part in parts for line in part.split("\n") if not re.fullmatch(r"```\w*", line)]
    assert "".join(inside) == "".join(line for line in message.split("\n") if line not in {"```", "```py"})
