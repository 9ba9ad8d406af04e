"""Every update as a Discord message: goldens as prose, and limits and escaping in the worst case."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.update import Choice, UpdateKind
from bot.model.value import RunId
from bot.render.discord import (
    DiscordMessage,
    mark_of,
    parse_button,
    render_discord,
    render_moved,
    render_thread_root,
)
from bot.render.text import discord_code_block, discord_escape
from tests.fakes.discord_limits import message_errors
from tests.unit.render.test_slack_render import example

DANA = "300000000000000001"
MARK = mark_of("key-1")


def render(kind: UpdateKind, *, mention: str = DANA, reads_replies: bool = True, **changes: object) -> DiscordMessage:
    update = example(kind).model_copy(update=changes)
    return render_discord(update, timezone="UTC", mark=MARK, mention=mention, reads_replies=reads_replies)


def forms(message: DiscordMessage) -> tuple[DiscordMessage, DiscordMessage]:
    assert message.plain is not None
    return message, message.plain


def shown(message: DiscordMessage) -> str:
    return message.content + json.dumps(message.embeds, ensure_ascii=False)


def payload(message: DiscordMessage) -> dict[str, object]:
    row = [{"type": 2, "style": 3, "label": b.label, "custom_id": b.custom_id} for b in message.buttons]
    components = [{"type": 1, "components": row}] if row else []
    return {"content": message.content, "embeds": list(message.embeds), "components": components}


@pytest.mark.parametrize("kind", UpdateKind)
def test_every_kind_of_update_has_its_golden_message(kind: UpdateKind, golden: Callable[[str, str], None]) -> None:
    message = render(kind)

    rich, plain = forms(message)
    assert [error for form in (rich, plain) for error in message_errors(payload(form))] == []
    content = {
        "content": rich.content.split("\n"),
        "embeds": list(rich.embeds),
        "buttons": [[button.label, button.custom_id] for button in rich.buttons],
        "mentions": list(rich.mentions),
        "plain": plain.content.split("\n"),
    }
    golden(f"discord/{kind}.json", json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def test_buttons_are_there_only_while_the_request_is_open() -> None:
    asked, answered = render(UpdateKind.REQUEST_ASKED), render(UpdateKind.REQUEST_ANSWERED)

    for form in forms(asked):
        assert [parse_button(button.custom_id) for button in form.buttons] == [("R7", True), ("R7", False)]
    for form in forms(answered):
        assert form.buttons == ()
        assert "approved by dana" in shown(form)


@pytest.mark.parametrize("custom_id", ["hero:approve:7", "hero:approve:R7:dana", "hero:maybe:R7", "approve:R7", ""])
def test_a_button_that_hero_never_made_names_no_request(custom_id: str) -> None:
    assert parse_button(custom_id) is None


def test_only_the_person_asked_is_mentioned_and_never_by_the_live_status() -> None:
    asked, live = render(UpdateKind.FAILED), render(UpdateKind.LIVE_STATUS)
    forged = render(UpdateKind.FAILED, mention="&300000000000000001")

    assert (asked.mentions, live.mentions, forged.mentions) == ((int(DANA),), (), ())
    assert f"<@{DANA}>" in asked.content
    assert all("<@" not in shown(form) for message in (live, forged) for form in forms(message))


def test_without_message_content_it_says_how_to_answer_all_the_same() -> None:
    for form in forms(render(UpdateKind.REQUEST_ASKED, reads_replies=False)):
        assert "/hero approve R7" in shown(form)
        assert "Message Content Intent" in shown(form)


def test_a_plan_is_shown_whole_or_not_approvable() -> None:
    fits = render(UpdateKind.REQUEST_ASKED, plan=tuple(f"line {n}: {'x' * 40}" for n in range(80)))
    large = render(UpdateKind.REQUEST_ASKED, plan=tuple(f"line {n}: {'x' * 40}" for n in range(800)))

    assert "line 79" in shown(fits)
    assert fits.buttons
    assert fits.plain is not None
    assert fits.plain.buttons == ()
    for form in forms(large):
        assert form.buttons == ()
        assert "approve R7" not in shown(form)
        assert "too long for Discord" in shown(form)


def test_a_monstrous_failure_keeps_its_first_line_and_says_what_is_cut() -> None:
    """Field report R08."""
    trace = "\n".join(f'```  File "{n}.py"' for n in range(5_000))
    message = render(UpdateKind.FAILED, evidence=(trace,))

    assert "exit code 137" in message.content.split("\n")[0]
    assert re.search(r"evidence cut: \d+ more lines", shown(message))
    assert [error for form in forms(message) for error in message_errors(payload(form))] == []


def test_what_hero_says_besides_updates_ends_with_its_mark() -> None:
    for message in (render_thread_root(RunId("a_b*c"), MARK), render_moved(RunId("a_b*c"), MARK)):
        assert message.content.endswith(MARK)
        assert r"a\_b\*c" in message.content


HOSTILE = st.text(st.sampled_from("@<>#&!:/`*_~|\\[]() \n-+1.everyonehtps30"), max_size=200) | st.text(max_size=200)


@given(HOSTILE)
def test_foreign_text_has_no_mention_formatting_or_masked_link(text: str) -> None:
    escaped = discord_escape(text)
    links = re.compile(r"<https?://[^\s<>]+>")

    rest = links.sub("", escaped)
    assert not re.search(r"<(?!\u200b)", rest)
    assert not re.search(r"@(?:everyone|here)\b", rest, re.IGNORECASE)
    assert not re.search(r"[*_`\[\]]|~~|\|\|", re.sub(r"\\.", "x", rest, flags=re.DOTALL))
    assert not re.search(r"^[ \t]*(?:#|-|\+|>|\d+[.)][ \t])", rest, re.MULTILINE)
    assert "```" not in discord_code_block(text)[4:-4]


@given(text=HOSTILE, size=st.integers(1, 400))
def test_any_text_of_any_size_fits_in_both_forms(text: str, size: int) -> None:
    much = (text + "🙂") * size
    ask = Choice(request="R7", is_open=True)
    message = render(
        UpdateKind.REQUEST_ASKED, headline=much, evidence=(much, much), plan=(much,), next=much, choice=ask
    )

    assert [error for form in forms(message) for error in message_errors(payload(form))] == []
