"""The form that asks which run `/hero plan` and `/hero watch` mean, through the real slack_bolt."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.modals import form_for
from bot.model.event import Commanded
from tests.contract.test_slack_channel import Desk, desk, serving
from tests.fakes.slack_limits import check_view
from tests.fakes.slack_values import ApiError, LostAfterPerforming, RateLimited, Stall

__all__ = ["desk"]  # a fixture

RUNS = ("hero-12d8", "other-run")
MODES = ("socket", "http")


@asynccontextmanager
async def listening(desk: Desk, mode: str, runs: tuple[str, ...] = RUNS) -> AsyncIterator[SlackChannel]:
    """A Hero that hears of commands the one way or the other."""
    channel = desk.channel(mode=mode, runs=runs)
    async with AsyncExitStack() as stack:
        if mode == "http":
            desk.slack.deliver_to(await stack.enter_async_context(serving(channel)))
        await stack.enter_async_context(desk.listening(channel))
        yield channel
    desk.slack.deliver_to(None)


def commanded(desk: Desk) -> list[Commanded]:
    return [event for event in desk.inbox.events.values() if isinstance(event, Commanded)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verb", ["plan", "watch"])
async def test_a_command_without_a_run_opens_a_form_and_what_it_sends_in_is_the_typed_command(
    desk: Desk, verb: str, mode: str
) -> None:
    async with listening(desk, mode):
        asked = await desk.slack.slash("U1", "C1", "/hero", f" {verb.upper()} ")
        assert desk.inbox.events == {}, "nothing is commanded yet"
        (view,) = desk.slack.api.views.values()
        sent = await desk.slack.user_submits("U1", view["id"], "other-run")
        again = await desk.slack.user_submits("U1", view["id"], "other-run")
        typed = await desk.slack.slash("U1", "C1", "/hero", f"{verb} other-run")

    assert all(ack.acked and ack.latency_s is not None and ack.latency_s < 3 for ack in (asked, sent, again, typed))
    assert sent.payload in ({}, None, "", {"response_action": "clear"}), "the form closes"
    by_form, by_words = commanded(desk)
    assert by_form.text == by_words.text == f"{verb} other-run"
    assert by_form.actor == by_words.actor
    assert by_form.place == by_words.place
    assert view["private_metadata"] == "C1"


async def test_what_needs_no_form_opens_none(desk: Desk) -> None:
    async with listening(desk, "socket"):
        for text in ("plan hero-12d8", "watch hero-12d8", "status", "plan it", "relaunch", ""):
            await desk.slack.slash("U1", "C1", "/hero", text)
    async with listening(desk, "socket", ("hero-12d8",)):
        await desk.slack.slash("U1", "C1", "/hero", "plan")

    assert desk.slack.api.views == {}
    assert [event.text for event in commanded(desk)][-1] == "plan"
    assert len(commanded(desk)) == 7


@pytest.mark.parametrize(
    "fault",
    [ApiError("expired_trigger_id"), RateLimited(30), LostAfterPerforming(), Stall()],
    ids=lambda f: str(f)[:12],
)
async def test_a_form_that_slack_does_not_open_is_answered_in_words_in_time(desk: Desk, fault: Any) -> None:
    async with listening(desk, "socket"):
        desk.slack.fail_next("views.open", fault)
        ack = await desk.slack.slash("U1", "C1", "/hero", "plan")

    assert ack.acked
    assert ack.latency_s is not None
    assert ack.latency_s < 3
    assert [event.text for event in commanded(desk)] == ["plan"]


async def test_nothing_in_a_form_but_who_sent_it_and_the_choice_is_believed(desk: Desk) -> None:
    async with listening(desk, "socket"):
        desk.slack.add_user("U2", "Omar")
        for _ in range(4):
            await desk.slack.slash("U1", "C1", "/hero", "plan")
        first, second, third, fourth = desk.slack.api.views
        await desk.slack.user_submits("U2", first, "other-run", private_metadata='{"user": "U1", "run": "x"}')
        await desk.slack.user_submits("U1", second, "other-run", private_metadata="C1" * 2_000)
        await desk.slack.user_submits("U1", third, "other-run", callback_id="hero_choose_stop")
        await desk.slack.user_submits("U1", fourth, "other-run", state={"values": {}})

    (only,) = commanded(desk)
    assert (only.actor.user_id, only.place.conversation, only.text) == ("U2", "C1", "plan other-run")


async def test_what_could_not_be_stored_leaves_the_form_open(desk: Desk) -> None:
    async with listening(desk, "http"):
        await desk.slack.slash("U1", "C1", "/hero", "plan")
        (view,) = desk.slack.api.views
        desk.inbox.is_full = True
        refused = await desk.slack.user_submits("U1", view, "other-run")
        desk.inbox.is_full = False
        taken = await desk.slack.user_submits("U1", view, "other-run")

    assert (refused.status, taken.acked) == (503, True)
    assert len(commanded(desk)) == 1


def test_a_form_stays_within_slacks_limits_or_is_none() -> None:
    for runs in (("a", "b"), tuple(f"run-{n}" for n in range(100)), ("r" * 150, "s" * 76)):
        for verb in ("plan", "watch"):
            check_view(form_for(verb, runs, "C0HERO"))

    assert form_for("plan", tuple(f"run-{n}" for n in range(101)), "C1") is None
    assert form_for("plan", ("r" * 151, "s"), "C1") is None
    assert form_for("plan", ("only",), "C1") is None
    view = form_for("plan", ("a", "b"), "<not a channel>")
    assert view is not None
    assert view["private_metadata"] == ""
