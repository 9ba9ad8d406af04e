"""Every update as a Slack message: goldens as prose, and limits and escaping in the worst case."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.run import RunState
from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.model.verdict import Severity
from bot.render.slack import SlackMessage, render_moved, render_slack, render_thread_root
from tests.fakes.slack_limits import check_blocks, mistakes_in
from tests.fakes.slack_values import texts_in

AT = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
STANDING = Standing(
    state=RunState.FAILED,
    step=8123,
    final_step=10000,
    final_step_is_inferred=True,
    loss=2.3412,
    tokens_per_second=1_234_567.8,
    checkpoint_step=8000,
    eta=timedelta(hours=3, minutes=20),
    job_id="/dana/hero-coord",
    checked_at=AT,
    gaps=("wandb: no answer in 0:00:20",),
)
PLAN = (
    "run: hero-12d8",
    "from: checkpoint step 8000",
    "command: iris job run --no-wait --tpu v5p-8 -- python train.py",
)
EVIDENCE = ("task 0 exit code 137, peak memory 99.8 %", "log: RuntimeError: <HBM> & host out of memory")
CRITICAL = {
    UpdateKind.FAILED,
    UpdateKind.INCIDENT_OPENED,
    UpdateKind.REQUEST_ASKED,
    UpdateKind.REQUEST_REMINDER,
    UpdateKind.ESCALATION,
}
HEADLINES = {
    UpdateKind.WATCHING: "Hero watches this run",
    UpdateKind.LAUNCHED: "launched as /dana/hero-coord",
    UpdateKind.FAILED: "the job ended with exit code 137 (out of memory on the host)",
    UpdateKind.RELAUNCHED: "relaunched from step 8000; the loss continues",
    UpdateKind.MILESTONE: "80 % of the steps are done",
    UpdateKind.COMPLETED: "the final step was reached",
    UpdateKind.ROUTINE_STATUS: "nothing new in 24 h",
    UpdateKind.LIVE_STATUS: "running",
    UpdateKind.INCIDENT_OPENED: "no new step for 31 min",
    UpdateKind.INCIDENT_RESOLVED: "steps advance again after 42 min",
    UpdateKind.REQUEST_ASKED: "R7 asks to relaunch from step 8000",
    UpdateKind.REQUEST_REMINDER: "R7 still waits for an answer",
    UpdateKind.REQUEST_ANSWERED: "R7 was approved",
    UpdateKind.ACTION_PROGRESS: "the new job is submitted",
    UpdateKind.ESCALATION: "I4 has waited 1 h for a person: progress.stalled: no new step for 31 min",
    UpdateKind.ANSWER: "two runs are watched",
    UpdateKind.NOTICE: "the disk is full: nothing is promised until there is space",
}


def example(kind: UpdateKind) -> Update:
    is_request = kind in {UpdateKind.REQUEST_ASKED, UpdateKind.REQUEST_REMINDER}
    choice = None
    if is_request:
        choice = Choice(request="R7", is_open=True)
    elif kind is UpdateKind.REQUEST_ANSWERED:
        choice = Choice(request="R7", is_open=False, outcome="approved by dana at 2026-11-29 03:05 UTC")
    return Update(
        kind=kind,
        run_id=None if kind in {UpdateKind.NOTICE, UpdateKind.ANSWER} else RunId("hero-12d8"),
        at=AT,
        severity=Severity.CRITICAL if kind in CRITICAL else Severity.INFO,
        headline=HEADLINES[kind],
        standing=None if kind in {UpdateKind.NOTICE, UpdateKind.ANSWER} else STANDING,
        evidence=EVIDENCE if kind in {UpdateKind.FAILED, UpdateKind.INCIDENT_OPENED, UpdateKind.ANSWER} else (),
        plan=PLAN if is_request or kind is UpdateKind.REQUEST_ANSWERED else (),
        next="Hero checks again in 15 min." if kind is not UpdateKind.ANSWER else "",
        asked=PersonName("dana") if kind in CRITICAL | {UpdateKind.LIVE_STATUS} else None,
        also_asked=(PersonName("kim"), PersonName("lou")) if kind is UpdateKind.ESCALATION else (),
        choice=choice,
    )


def render(update: Update, mention: str = "U1") -> SlackMessage:
    return render_slack(update, timezone="UTC", mention=mention)


def shown(message: SlackMessage) -> str:
    return "\n".join(texts_in(list(message.blocks)))


def buttons(message: SlackMessage) -> list[dict[str, Any]]:
    return [e for block in message.blocks if block["type"] == "actions" for e in block["elements"]]


def assert_fits(message: SlackMessage) -> None:
    check_blocks(list(message.blocks))
    assert 0 < len(message.text) <= 3_900
    assert len(message.blocks) <= 50
    assert sum(len(text) for text in texts_in(list(message.blocks))) < 12_000
    args = {"text": message.text, "blocks": list(message.blocks)}
    assert list(mistakes_in(args, frozenset({"<@U1>"}))) == []


@pytest.mark.parametrize("kind", UpdateKind)
def test_every_kind_of_update_has_its_golden_message(kind: UpdateKind, golden: Callable[[str, str], None]) -> None:
    message = render(example(kind))

    assert_fits(message)
    content = {"text": message.text.split("\n"), "blocks": list(message.blocks)}
    golden(f"slack/{kind}.json", json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def test_buttons_are_there_only_while_the_request_is_open() -> None:
    asked, answered = render(example(UpdateKind.REQUEST_ASKED)), render(example(UpdateKind.REQUEST_ANSWERED))

    assert [(b["action_id"], b["value"]) for b in buttons(asked)] == [("hero_approve", "R7"), ("hero_deny", "R7")]
    assert buttons(answered) == []
    assert "approved by dana" in shown(answered)
    assert "approved by dana" in answered.text


def test_only_the_person_asked_is_mentioned_and_never_by_the_live_status() -> None:
    asked = render(example(UpdateKind.FAILED))
    live = render(example(UpdateKind.LIVE_STATUS))
    forged = render(example(UpdateKind.FAILED), mention="!channel")

    assert "<@U1>" in shown(asked)
    assert "<@U1>" in asked.text
    assert "<@" not in shown(live) + live.text
    assert "*dana*" in shown(forged)
    assert "<!channel" not in shown(forged) + forged.text


def test_a_huge_traceback_is_cut_visibly_and_nothing_else_is() -> None:
    """Field report R08: the worse the failure, the more surely its report vanished."""
    traceback = "Traceback (most recent call last):\n" + "\n".join(f"```  File {n} <!channel> &" for n in range(3_000))
    update = example(UpdateKind.REQUEST_ASKED).model_copy(update={"evidence": (traceback,)})

    message = render(update)

    assert_fits(message)
    text = shown(message)
    assert "hero-12d8 at step ~8123/10000" in text.split("\n")[0]
    assert "Traceback (most recent call last)" in text
    assert "evidence cut" in text
    assert all(line in text.replace("&amp;", "&") for line in PLAN)
    assert "Hero checks again in 15 min." in text
    assert len(buttons(message)) == 2
    assert all(
        block["text"]["text"].count("```") % 2 == 0
        for block in message.blocks
        if block["type"] == "section" and "text" in block
    )


def test_a_plan_too_long_to_show_cannot_be_approved_by_a_button() -> None:
    update = example(UpdateKind.REQUEST_ASKED).model_copy(
        update={"plan": tuple(f"{n}: {'x' * 90}" for n in range(400))}
    )

    message = render(update)

    assert_fits(message)
    assert "too long for Slack" in shown(message)
    assert buttons(message) == []


def test_a_long_plan_is_whole_and_its_evidence_gives_way() -> None:
    plan = tuple(f"value {n}: {'x' * 80}" for n in range(90))
    update = example(UpdateKind.REQUEST_ASKED).model_copy(update={"plan": plan, "evidence": ("y" * 9_000,)})

    message = render(update)

    assert_fits(message)
    assert all(line in shown(message) for line in plan)
    assert len(buttons(message)) == 2


def test_the_messages_of_threads_themselves_are_safe() -> None:
    for message in (render_thread_root(RunId("<!here>" * 200)), render_moved(RunId("<@U2>&```"))):
        assert_fits(message)


HOSTILE = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["<!channel>", "<@U2>", "<http://x|label>", "&", "```", "@here", "\x1b[2J", "\u202e", "\ud800", "\x00"]
    ),
    st.builds(
        lambda part, times: part * times, st.sampled_from(["<&", "```\n", "x", "\n", "é", "🚨 "]), st.integers(0, 9_000)
    ),
)
LINES = st.lists(HOSTILE, max_size=8).map(tuple)


@given(
    kind=st.sampled_from(list(UpdateKind)),
    texts=st.tuples(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),
    lines=st.tuples(LINES, LINES, LINES),
    is_open=st.none() | st.booleans(),
)
def test_nothing_breaks_a_limit_or_mentions_anybody(
    kind: UpdateKind,
    texts: tuple[str, str, str, str, str],
    lines: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    is_open: bool | None,
) -> None:
    evidence, plan, gaps = lines
    run, headline, following, asked, job = texts
    update = Update(
        kind=kind,
        run_id=RunId(run),
        at=AT,
        headline=headline,
        standing=STANDING.model_copy(update={"gaps": gaps, "job_id": job}),
        evidence=evidence,
        plan=plan,
        next=following,
        asked=PersonName(asked),
        choice=None if is_open is None else Choice(request="R7", is_open=is_open, outcome=headline),
    )

    assert_fits(render(update))
