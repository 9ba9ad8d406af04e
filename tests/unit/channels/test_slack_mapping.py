"""Slack's payloads as events: what names an act, and what is no act at all."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.slack.api import Me
from bot.channels.slack.mapping import Message, map_deletion, map_edit, map_message, moment
from bot.model.event import Commanded, Said

ME = Me(
    user_id="U0HERO",
    bot_id="B0HERO",
    team_id="T0",
    enterprise_id=None,
    url="https://hero.slack.example/",
    scopes=frozenset(),
)
TS = "1795921200.000100"


def message(text: str = "approve R7", **fields: object) -> Message:
    return Message.model_validate({"ts": TS, "user": "U1", "text": text, "thread_ts": "1795921100.000100"} | fields)


def test_a_link_preview_of_a_message_once_edited_is_no_new_edit() -> None:
    edited = message(edited={"user": "U1", "ts": "1795921201.000000"})

    assert map_edit("C1", edited, edited, ME, is_watched=True) is None
    assert map_edit("C1", edited, message("something else"), ME, is_watched=True) is not None


def test_a_mention_and_its_message_are_one_act() -> None:
    seen = map_message("C1", message("<@U0HERO> status"), ME, is_watched=True)
    again = map_message("C1", message("<@U0HERO> status"), ME, is_watched=True)

    assert seen == again
    assert seen is not None
    assert seen.event_id == f"msg:C1:{TS}"
    assert isinstance(seen.payload, Commanded)


@pytest.mark.parametrize("words", ["approve", "approve R7", "deny R7 because no", "no", "hello"])
def test_only_a_command_word_makes_a_mention_a_command_in_a_runs_thread(words: str) -> None:
    in_thread = map_message("C1", message(f"<@U0HERO> {words}"), ME, is_watched=True)
    elsewhere = map_message("C1", message(f"<@U0HERO> {words}"), ME, is_watched=False)

    assert in_thread is not None
    assert isinstance(in_thread.payload, Said)
    assert elsewhere is not None
    assert isinstance(elsewhere.payload, Commanded)


@pytest.mark.parametrize(
    ("text", "handed_on"),
    [
        ("<@U0HERO> approve R7", "approve R7"),
        ("Hi\n <@U0HERO|hero>: approve R7", "Hi\n approve R7"),
        ("<@UOMAR> approve R7", "<@UOMAR> approve R7"),
        ("<@U0HERO2> approve R7", "<@U0HERO2> approve R7"),
        ("&lt;@U0HERO&gt; approve R7", "<@U0HERO> approve R7"),
        ("ask <@U0HERO> approve R7", "ask <@U0HERO> approve R7"),
        ("approve R7\n<@U0HERO> &gt; no", "approve R7\n<@U0HERO> > no"),
        ("approve R7\n<@U0HERO> -- ", "approve R7\n<@U0HERO> -- "),
    ],
)
def test_only_heros_own_mention_is_taken_from_the_beginning_of_a_line(text: str, handed_on: str) -> None:
    act = map_message("C1", message(text), ME, is_watched=True)

    assert act is not None
    assert isinstance(act.payload, Said)
    assert act.payload.text == handed_on


def test_a_command_in_an_edited_message_or_by_a_bot_is_not_carried_out() -> None:
    edited = map_message("C1", message("<@U0HERO> stop", edited={"ts": TS}), ME, is_watched=True)
    bot = map_message("C1", message("<@U0HERO> stop", bot_id="B1"), ME, is_watched=True)

    assert edited is not None
    assert isinstance(edited.payload, Said)
    assert edited.payload.is_edited
    assert bot is not None
    assert isinstance(bot.payload, Said)
    assert bot.payload.actor.is_bot


@pytest.mark.parametrize("subtype", ["channel_join", "channel_topic", "message_replied", "tombstone", "reminder_add"])
def test_what_nobody_said_is_no_act(subtype: str) -> None:
    assert map_message("C1", message(subtype=subtype), ME, is_watched=True) is None


def test_a_bots_message_may_go_without_notice() -> None:
    assert map_deletion("C1", message(bot_id="B1"), TS, is_watched=True) is None


def test_a_timestamp_keeps_its_microseconds() -> None:
    assert moment("1795921200.000123") == datetime.fromtimestamp(1795921200, UTC).replace(microsecond=123)


@given(
    text=st.text() | st.sampled_from(["<@U0HERO>", "<@U0HERO> ", "<@U0HERO>:", "<@U0HERO|hero> stop"]),
    is_watched=st.booleans(),
)
def test_no_text_breaks_the_mapping(text: str, is_watched: bool) -> None:
    act = map_message("C1", message(text), ME, is_watched=is_watched)

    assert act is not None or not is_watched
