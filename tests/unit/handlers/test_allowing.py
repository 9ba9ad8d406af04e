"""A yes in advance: only the DRI's, only for what it names, announced at once, and over when it should be."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.action import ActionState
from bot.model.allowance import Allowance, AllowedKind, Use
from bot.model.crash import Classification, CrashClass, RelaunchAdvice
from bot.model.incident import Incident, open_incident
from bot.model.person import Actor
from bot.model.plan import RequestState
from bot.model.planned import PlannedCheckpoint, RelaunchPlan
from bot.model.record import Decision, Record
from bot.model.run import Run, RunState
from bot.model.value import CheckId
from bot.model.verdict import Finding, Severity
from handlers.allowed import carry_out, why_not_allowed
from handlers.command import answer_command
from handlers.commands.question import Answered
from handlers.reply import decide_said
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import AT, RUN
from tests.unit.handlers.scene import ADA, GUEST, MEMBER, context, record, request, said, slack
from tests.unit.handlers.test_command import a_question

ADA_SAYS, BOB_SAYS = slack("U0ADA"), slack("U0BOB")


def an_allowance(**fields: Any) -> Allowance:
    given: dict[str, Any] = {
        "number": 1,
        "kind": AllowedKind.INFRA,
        "most": 3,
        "until": AT + timedelta(hours=8),
        "by": ADA,
        "at": AT,
        "via": "slack:C0HERO:1",
    }
    return Allowance(**given | fields)


def a_crash(crash_class: CrashClass = CrashClass.INFRA_PREEMPTION, **fields: Any) -> Classification:
    given: dict[str, Any] = {
        "crash_class": crash_class,
        "relaunch": RelaunchAdvice.SAME_ID,
        "trajectory_affecting": False,
        "evidence": (),
        "location": None,
        "summary": "preempted",
        "signature": "preempted",
    }
    return Classification(**given | fields)


def an_end(crash: Classification | None = None, check: str = "job.ended") -> Incident:
    finding = Finding(
        check=CheckId(check), severity=Severity.CRITICAL, summary="ended", advice="-", crash=crash or a_crash()
    )
    return open_incident(1, RUN, finding, AT)


def a_relaunch(**fields: Any) -> RelaunchPlan:
    resume = PlannedCheckpoint(step=200, path="gs://bucket/step-200")
    return a_plan(RUN).model_copy(update={"resume_from": resume, **fields})


def command(text: str, who: Actor = ADA_SAYS, known: Record | None = None, **fields: Any) -> Answered:
    known = known or record()
    return answer_command(a_question(text, actor=who, records=(known,), contexts={RUN: context()}, **fields))


def allowed(answered: Answered) -> Allowance | None:
    return answered.decision.run.allowance if answered.decision.run else None


# Saying it


def test_the_dri_allows_so_many_for_a_time_and_a_kind() -> None:
    answered = command("allow relaunch 3 until 09:00 for infra")

    found = allowed(answered)
    assert found is not None
    assert (found.name, found.most, found.kind, found.by) == ("A1", 3, AllowedKind.INFRA, ADA)
    assert found.until == datetime(2026, 11, 29, 9, 0, tzinfo=UTC)
    (told,) = answered.decision.tell
    assert told.update.headline.startswith("A1: ada allows up to 3 relaunches in advance until 2026-11-29 09:00")
    assert [entry.what for entry in answered.decision.audit] == ["allowed"]


def test_a_time_that_has_passed_today_is_tomorrows_in_peoples_own_zone() -> None:
    found = allowed(command("allow relaunch 1 until 03:00 for hardware", timezone="America/Los_Angeles"))

    assert found is not None
    # 04:00 UTC is 20:00 of the day before there.
    assert found.until == datetime(2026, 11, 29, 11, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "until", "lasts"),
    [("00:30", "02:40", 10), ("00:50", "02:40", 50), ("01:30", "02:40", 10), ("00:50", "03:10", 80)],
    ids=["the first of two", "the second of two", "within the second", "behind both"],
)
def test_in_the_night_that_the_clocks_go_back_it_is_the_next_such_time(at: str, until: str, lasts: int) -> None:
    now = datetime.fromisoformat(f"2026-10-25T{at}+00:00")

    found = allowed(command(f"allow relaunch 1 until {until} for infra", timezone="Europe/Berlin", at=now))

    assert found is not None
    assert found.until - now == timedelta(minutes=lasts)


@pytest.mark.parametrize(
    "text",
    [
        "allow relaunch 3",
        "allow relaunch 0 until 09:00 for infra",
        "allow relaunch 11 until 09:00 for infra",
        "allow relaunch ٣ until 09:00 for infra",
        "allow relaunch 3 until 25:00 for infra",
        "allow relaunch 3 until 9d for infra",
        "allow relaunch 3 until 09:00 for code",
        "allow relaunch 3 until 09:00 for numerical",
        "allow rollback 3 until 09:00 for infra",
        "allow stop 1 until 09:00 for infra",
        "allow relaunch 3 until 09:00 for infra please",
    ],
)
def test_what_is_not_exactly_that_allows_nothing(text: str) -> None:
    assert allowed(command(text)) is None


@pytest.mark.parametrize(
    ("who", "fields"),
    [(BOB_SAYS, {}), (slack("U0STRANGER"), {}), (ADA_SAYS, {"standing": GUEST}), (slack("U0ADA", is_bot=True), {})],
)
def test_nobody_but_the_dri_allows_anything(who: Actor, fields: dict[str, Any]) -> None:
    assert allowed(command("allow relaunch 3 until 09:00 for infra", who, **fields)) is None


def test_one_word_ends_it() -> None:
    known = record(run=Run(run_id=RUN, allowance=an_allowance()))

    answered = command("revoke", known=known)

    found = allowed(answered)
    assert found is not None
    assert not found.is_alive(AT)
    assert found.ended == "revoked by ada"


def test_a_run_that_needs_two_yeses_takes_none_in_advance() -> None:
    two = context(deputies=("bob",), approval={"deputies": True, "quorum": 2})
    known = record()
    question = a_question(
        "allow relaunch 3 until 09:00 for infra", actor=ADA_SAYS, records=(known,), contexts={RUN: two}
    )

    assert allowed(answer_command(question)) is None


# Using it


def why(
    allowance: Allowance | None = None,
    plan: RelaunchPlan | None = None,
    incident: Incident | None = None,
    **fields: Any,
) -> str:
    at = fields.pop("at", AT)
    given = (allowance or an_allowance(), plan or a_relaunch(), incident or an_end())
    return why_not_allowed(*given, context(**fields), at)


def test_a_preemption_with_nothing_changed_is_what_it_is_for() -> None:
    assert why() == ""
    assert why(plan=a_relaunch(changes=("added by Hero: --user ada",))) == ""
    assert why(an_allowance(kind=AllowedKind.HARDWARE), incident=an_end(a_crash(CrashClass.INFRA_HARDWARE))) == ""


REFUSED: dict[str, Any] = {
    "too late": lambda: why(at=AT + timedelta(hours=8)),
    "used up": lambda: why(an_allowance(most=1, uses=(Use(at=AT, request=1, step=1),))),
    "revoked": lambda: why(an_allowance(ended="revoked by ada")),
    "another kind": lambda: why(an_allowance(kind=AllowedKind.HARDWARE)),
    "a code bug": lambda: why(incident=an_end(a_crash(CrashClass.CODE_BUG_SMALL))),
    "a numerical failure": lambda: why(incident=an_end(a_crash(CrashClass.NUMERICAL))),
    "out of memory": lambda: why(incident=an_end(a_crash(CrashClass.OOM_HOST))),
    "unknown": lambda: why(incident=an_end(a_crash(CrashClass.UNKNOWN))),
    "in doubt": lambda: why(incident=an_end(a_crash(relaunch=RelaunchAdvice.ASK))),
    "touches the trajectory": lambda: why(incident=an_end(a_crash(trajectory_affecting=True))),
    "a stall": lambda: why(incident=an_end(check="progress.stalled")),
    "asked for by hand": lambda: why_not_allowed(an_allowance(), a_relaunch(), None, context(), AT),
    "a living job": lambda: why(plan=a_relaunch(stop="/ada/hero")),
    "from the beginning": lambda: why(plan=a_relaunch(resume_from=None)),
    "an open point": lambda: why(plan=a_relaunch(accepts=("three are kept",))),
    "a change": lambda: why(plan=a_relaunch(changes=("seed: 1 → 2",))),
    "another dri": lambda: why(dri="bob"),
    "nothing": lambda: why_not_allowed(None, a_relaunch(), an_end(), context(), AT),
}


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_else_it_is_the_dri_is_asked(case: str) -> None:
    assert REFUSED[case]() != ""


def test_a_use_makes_one_grant_of_the_dris_and_is_announced_at_once() -> None:
    known = record(run=Run(run_id=RUN, state=RunState.FAILED, allowance=an_allowance()))
    asked = request(plan=a_relaunch())

    decision = carry_out(asked, an_allowance(), known, context(), AT)

    (granted,) = decision.requests
    assert (granted.state, granted.decided_by) == (RequestState.GRANTED, ADA)
    assert granted.decided_via == "in advance: A1, slack:C0HERO:1"
    (action,) = decision.actions
    assert action.state is ActionState.GRANTED
    assert action.grant.covers(action.plan, AT)
    (told,) = decision.tell
    assert told.update.headline == "relaunching from step 200 as ada allowed in advance (A1)"
    assert told.update.asked == ADA
    assert decision.run is not None
    assert decision.run.allowance is not None
    assert decision.run.allowance.left == 2
    assert [entry.what for entry in decision.audit] == ["approved_in_advance"]


def test_a_no_stops_what_was_allowed_in_advance_before_it_begins() -> None:
    known = record(run=Run(run_id=RUN, state=RunState.FAILED, allowance=an_allowance()), posted=())
    begun = carry_out(request(plan=a_relaunch()), an_allowance(), known, context(), AT)
    assert "`deny R7`" in begun.tell[0].update.next
    under_way = known.model_copy(update={"requests": begun.requests, "actions": begun.actions})

    def no(text: str, who: Actor = ADA_SAYS, at: timedelta = timedelta(minutes=1)) -> Decision:
        return decide_said(under_way, said(text, who, at=AT + at), MEMBER, context(), AT + timedelta(minutes=2))

    for text in ("deny R7", "deny"):
        (ended,) = no(text).actions
        assert ended.state is ActionState.VOID
    # Not by anybody, nor by a no that was about something earlier; and a yes to it is none of its own.
    assert no("deny R7", BOB_SAYS).actions == ()
    assert no("deny", at=timedelta(minutes=-1)).actions == ()
    assert no("approve R7").actions == ()


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=6), st.integers(1, 5))
def test_it_is_never_used_more_often_than_said_nor_after_two_at_one_step(steps: list[int | None], most: int) -> None:
    allowance, used = an_allowance(most=most), []
    for step in steps:
        if allowance.is_alive(AT):
            allowance = allowance.used(Use(at=AT, request=1, step=step))
            used.append(step)

    known = [step for step in used if step is not None]
    assert len(used) <= most
    assert all(known.count(step) <= 2 for step in known)
    assert not allowance.is_alive(AT) or len(set(known)) == len(known)


@pytest.mark.parametrize("text", ["allow nosuch relaunch 3 until 09:00 for infra", "allow nosuch", "revoke nosuch"])
def test_a_mistyped_run_allows_and_revokes_nothing_of_another(text: str) -> None:
    running = record(run=Run(run_id=RUN, allowance=an_allowance()))

    answered = command(text, known=running, here=RUN)

    assert answered.telling.update.headline == "There is no run nosuch."
    assert answered.decision.run is None


def test_revoke_takes_no_word_but_a_run() -> None:
    answered = command(f"revoke {RUN} later", known=record(run=Run(run_id=RUN, allowance=an_allowance())))

    assert answered.telling.update.headline == "`later` was not understood; nothing was done."
    assert answered.decision.run is None
