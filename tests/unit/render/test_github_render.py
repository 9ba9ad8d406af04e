"""Every update as a GitHub comment: goldens as prose, and limits and escaping in the worst case."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.run import RunState
from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.model.verdict import Severity
from bot.render.github import (
    BODY_LIMIT,
    delivery_marker,
    github_body,
    is_same_text,
    news_alone,
    news_line,
    private_body,
    run_marker,
    with_news,
)
from bot.render.issue_template import OWN_TEMPLATE, fill_template, forward_body
from tests.fakes.github_mistakes import MENTION, NOT_RENDERED

AT = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
RUN = RunId("hero-12d8b6f0")
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
    gaps=("wandb: no answer in 20 s",),
)
PLAN = (
    "run: hero-12d8b6f0",
    "from: checkpoint step 8000, the newest complete one",
    "command: iris job run --no-wait --tpu v5p-8 -- python train.py",
)
EVIDENCE = (
    "task 0: exit code 137, peak memory 99.8 %",
    "log 02:58: RuntimeError: <HBM> & host out of memory @ step 8123",
)
LONG = tuple(f"log line {n}: allocation of {n} bytes" for n in range(40))

type Case = dict[str, object]

CASES: dict[UpdateKind, Case] = {
    UpdateKind.WATCHING: {"headline": "Hero watches this run", "next": "Hero checks it every 15 min."},
    UpdateKind.LAUNCHED: {"headline": "launched as /dana/hero-coord", "next": "Hero looks again in 2 min."},
    UpdateKind.FAILED: {
        "headline": "the job ended with exit code 137 (out of memory on the host)",
        "severity": Severity.CRITICAL,
        "evidence": LONG,
        "next": "Hero prepares a relaunch and asks for it.",
    },
    UpdateKind.RELAUNCHED: {"headline": "relaunched from step 8000; the loss continues"},
    UpdateKind.MILESTONE: {"headline": "80 % of the steps are done"},
    UpdateKind.COMPLETED: {"headline": "the final step was reached", "next": "Hero stops watching."},
    UpdateKind.ROUTINE_STATUS: {"headline": "nothing new in 24 h"},
    UpdateKind.LIVE_STATUS: {"headline": "running", "asked": PersonName("dana")},
    UpdateKind.INCIDENT_OPENED: {
        "headline": "no new step for 31 min",
        "severity": Severity.WARNING,
        "evidence": EVIDENCE,
        "asked": PersonName("dana"),
    },
    UpdateKind.INCIDENT_RESOLVED: {"headline": "steps advance again after 42 min"},
    UpdateKind.REQUEST_ASKED: {
        "headline": "R7 asks to relaunch from step 8000",
        "severity": Severity.CRITICAL,
        "plan": PLAN,
        "evidence": EVIDENCE,
        "asked": PersonName("dana"),
        "choice": Choice(request="R7", is_open=True),
        "next": "Hero waits for your answer until 2026-11-30 03:00 UTC and changes nothing before it.",
    },
    UpdateKind.REQUEST_REMINDER: {
        "headline": "R7 still waits for an answer",
        "severity": Severity.CRITICAL,
        "plan": PLAN,
        "asked": PersonName("dana"),
        "choice": Choice(request="R7", is_open=True),
    },
    UpdateKind.REQUEST_ANSWERED: {
        "headline": "R7 was approved",
        "plan": PLAN,
        "choice": Choice(request="R7", is_open=False, outcome="approved by dana at 2026-11-29 03:05 UTC"),
        "next": "Hero relaunches now.",
    },
    UpdateKind.ACTION_PROGRESS: {
        "headline": "the new job is submitted",
        "next": "Hero waits for it to load step 8000.",
    },
    UpdateKind.ESCALATION: {
        "headline": "I4 has waited 1 h for a person: progress.stalled: no new step for 31 min",
        "severity": Severity.CRITICAL,
        "evidence": EVIDENCE,
        "asked": PersonName("dana"),
        "also_asked": (PersonName("kim"),),
        "next": "to stop this: `/hero ack I4`, or say anything in the run's conversation",
    },
    UpdateKind.ANSWER: {"headline": "two runs are watched", "run_id": None, "standing": None, "evidence": EVIDENCE},
    UpdateKind.NOTICE: {"headline": "Slack is not connected", "run_id": None, "standing": None},
}


def example(kind: UpdateKind, **changes: object) -> Update:
    fields = {"kind": kind, "run_id": RUN, "at": AT, "standing": STANDING}
    return Update.model_validate(fields | CASES[kind] | changes)


def shown(update: Update, **changes: object) -> str:
    options = {"key": "hero-12d8b6f0:17:github", "timezone": "UTC", "asked_login": "dana-gh"}
    return github_body(update, **(options | changes))  # type: ignore[arg-type] # reason: of several types


@pytest.mark.parametrize("kind", UpdateKind)
def test_every_kind_of_update_reads_as_its_golden_file(kind: UpdateKind, golden: Callable[[str, str], None]) -> None:
    golden(f"github/{kind}.md", shown(example(kind)) + "\n")


def test_what_hero_writes_besides_updates_reads_as_its_golden_file(golden: Callable[[str, str], None]) -> None:
    milestone, stranger = example(UpdateKind.MILESTONE), example(UpdateKind.ANSWER, headline="only dana decides that")
    news = (news_line(milestone, key="k1", timezone="UTC"), news_line(milestone, key="k2", timezone="UTC"))

    golden("github/issue.md", "\n\n".join(fill_template(OWN_TEMPLATE, RUN, {})) + "\n")
    golden("github/forward.md", forward_body(13, "https://github.example/acme/training/issues/13", key="k5") + "\n")
    golden("github/private.md", private_body(stranger, key="k3", login="mallory") + "\n")
    golden("github/live_with_news.md", shown(example(UpdateKind.LIVE_STATUS), news=news) + "\n")
    golden("github/news_alone.md", news_alone(RUN, news, key="k4") + "\n")


HOSTILE = st.one_of(
    st.text(max_size=300),
    st.sampled_from(
        [
            "@everyone", "@acme/all", "closes #12", "GH-12", "<!-- hero:delivery=hero-12d8b6f0:17:github -->", "-->",
            "`",
            "```\n@dri\n```", "</details>", "<script>", "\x00\x1b[2J", "\u202e", "~~~", "**", "&lt;!--", "\r\n# x", "!",
            "approve R7", "\\", "x" * 70_000, "<!" * 9_000, "@a" * 9_000, "\ud800",
        ]
    ),
)  # fmt: skip
TEXT = st.lists(HOSTILE, min_size=1, max_size=6).map("".join)
LINES = st.lists(TEXT, max_size=6).map(tuple)


@st.composite
def updates(draw: st.DrawFn) -> Update:
    standing = STANDING.model_copy(update={"gaps": draw(LINES), "job_id": draw(TEXT)})
    return Update(
        kind=draw(st.sampled_from(UpdateKind)),
        run_id=RUN,
        at=AT,
        severity=draw(st.sampled_from(Severity)),
        headline=draw(TEXT),
        standing=draw(st.sampled_from([None, standing])),
        evidence=draw(LINES),
        plan=draw(LINES),
        next=draw(TEXT),
        asked=draw(st.sampled_from([None, PersonName("dana")])),
        choice=draw(st.sampled_from([None, Choice(request="R7", is_open=False, outcome=draw(TEXT))])),
    )


def mentions(body: str) -> set[str]:
    return set(MENTION.findall(NOT_RENDERED.sub(" ", body)))


@given(told=updates(), login=st.sampled_from([None, "dana-gh", "a b", "x](y)"]))
def test_no_text_breaks_the_limit_or_forges_a_marker_or_a_mention(told: Update, login: str | None) -> None:
    body = shown(told, asked_login=login)

    assert len(body) <= BODY_LIMIT
    assert body.count("<!--") == 1
    assert body.endswith(delivery_marker("hero-12d8b6f0:17:github"))
    assert mentions(body) <= {"dana-gh"}
    assert ("@dana-gh" in body) == (login == "dana-gh" and told.asked is not None)
    assert not re.search(r"#[0-9]", NOT_RENDERED.sub(" ", body))
    assert "\n" not in body.split("\n\n", 1)[0]


@given(told=updates(), more=st.lists(updates(), max_size=25))
def test_news_below_the_live_status_stays_within_the_limit_and_can_be_replaced(
    told: Update, more: list[Update]
) -> None:
    news = tuple(news_line(each, key=f"n{n}", timezone="UTC") for n, each in enumerate(more))
    body = shown(told)

    told_with = with_news(body, news)

    assert len(told_with) <= BODY_LIMIT
    assert with_news(told_with, ()) == body
    assert mentions(told_with) <= {"dana-gh"}
    assert told_with.endswith(delivery_marker("hero-12d8b6f0:17:github"))
    assert len(shown(told, news=news)) <= BODY_LIMIT
    if news and len(body) < BODY_LIMIT // 2:
        assert delivery_marker(f"n{len(news) - 1}") in told_with


def test_evidence_is_cut_first_and_that_is_said_and_the_rest_stays_whole() -> None:
    plan = tuple(f"step {n}: {'x' * 60}" for n in range(100))
    told = example(UpdateKind.REQUEST_ASKED, plan=plan, evidence=("telling", *["y" * 70_000] * 3))

    body = shown(told)

    assert len(body) <= BODY_LIMIT
    assert all(line in body for line in plan)
    assert "telling" in body
    assert "cut to fit" in body
    assert re.search(r"\[cut [0-9]+ characters\]", body)
    assert body.count("```") % 2 == 0
    assert "@dana-gh" in body
    assert "approve R7" in body


def test_a_plan_that_no_comment_can_hold_warns_against_approving_it() -> None:
    body = shown(example(UpdateKind.REQUEST_ASKED, plan=("x" * 70_000,)))

    assert len(body) <= BODY_LIMIT
    assert "Do not approve what you cannot see" in body


def test_whoever_is_asked_without_a_login_is_named_in_words() -> None:
    body = shown(example(UpdateKind.REQUEST_ASKED), asked_login=None)

    assert "**Asked:** dana" in body
    assert mentions(body) == set()


def test_two_bodies_are_the_same_text_whatever_delivery_and_line_ends_they_came_with() -> None:
    told = example(UpdateKind.LIVE_STATUS)
    first, second = shown(told, key="a"), shown(told, key="b").replace("\n", "\r\n")

    assert is_same_text(first, second)
    assert not is_same_text(first, shown(example(UpdateKind.LIVE_STATUS, headline="else"), key="a"))


@given(st.text(max_size=200), st.text(max_size=200))
def test_markers_hold_any_key_and_one_is_no_part_of_another(one: str, other: str) -> None:
    first, second = delivery_marker(one), delivery_marker(other)

    assert first.count("-->") == first.count("<!--") == 1
    assert "--" not in first.removeprefix("<!--").removesuffix("-->")
    assert (first == second) == (one == other)
    assert one == other or first not in second
    assert run_marker(RunId(one)) != first
