"""A check's verdicts become incidents, updates and requests: once each, and never from what is not known."""

from datetime import datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bot.model.action import Action, StepName
from bot.model.conduct import Stage
from bot.model.event import RunChecked
from bot.model.incident import Acknowledged, Incident, Open, Resolved, open_incident
from bot.model.job import JobState
from bot.model.plan import Grant, Request, RequestState
from bot.model.planned import NoPlan, RelaunchPlan, StopPlan
from bot.model.reading import Gap, Unknown
from bot.model.record import Decision, Record
from bot.model.run import Progress, Run, RunState
from bot.model.snapshot import Checkpoint, Snapshot, Source
from bot.model.trialplan import RollbackPlan
from bot.model.update import Update, UpdateKind
from bot.model.value import CheckId, PersonName, RunId
from bot.model.verdict import (
    Fail,
    Finding,
    Judgement,
    NotApplicable,
    Pass,
    Severity,
    UnknownVerdict,
    Verdict,
)
from checks import CHECKS
from checks.check import judge_all
from handlers.asking import NEVER_BLINDLY
from handlers.checked import decide_checked
from handlers.context import Context
from tests.fakes.clock import START
from tests.fakes.snapshots import (
    AT,
    JOB,
    RUN,
    blind,
    checkpoint,
    failed_job,
    instance,
    job,
    later,
    row,
    snapshot,
    unknown,
)
from tests.unit.handlers.scene import ADA, EVERYWHERE, RULES, context, kinds, planner, shape

ENDED, STALLED = CheckId("job.ended"), CheckId("progress.stalled")
SAVED = (checkpoint(100, saved_at=START), checkpoint(200, saved_at=START))
FAILED_JOB = failed_job(137)
RUNNING = snapshot(jobs=job(), metrics=[row(210, loss=2.5)], checkpoints=SAVED)
FAILED = snapshot(jobs=FAILED_JOB, metrics=[row(210, loss=2.5)], checkpoints=SAVED)
DARK = UnknownVerdict(reason=Gap.TIMEOUT, detail="no answer in 20 s")


def finding(
    check: CheckId = ENDED,
    *,
    key: str = "",
    severity: Severity = Severity.CRITICAL,
    is_recoverable: bool = True,
) -> Finding:
    return Finding(
        check=check,
        key=key,
        severity=severity,
        summary=f"{check} went wrong: exit code 137",
        evidence=("task 0 exit 137 on node-0",),
        advice="relaunch it from the newest checkpoint",
        since_step=210,
        is_recoverable=is_recoverable,
    )


def verdict_of(check: CheckId, verdict: Verdict) -> Judgement:
    return Judgement(check=check, verdict=verdict)


def fails(check: CheckId = ENDED, **fields: Any) -> Judgement:
    return verdict_of(check, Fail(finding=finding(check, **fields)))


def check(known: Record, seen: Snapshot, *judgements: Judgement, around: Context | None = None) -> Decision:
    around = around or context()
    event = RunChecked(run_id=RUN, snapshot=seen, judgements=judgements)
    return decide_checked(known, event, around, make_plan=planner(around), shape=shape(around))


def fresh() -> Record:
    return Record(run=Run(run_id=RUN))


def after(known: Record, decision: Decision) -> Record:
    """Return the record as the store would hand it out next."""

    def merged(before: tuple[Any, ...], changed: tuple[Any, ...]) -> tuple[Any, ...]:
        by_number = {each.number: each for each in (*before, *changed)}
        return tuple(by_number[number] for number in sorted(by_number))

    incidents = merged(known.incidents, decision.incidents)
    requests = merged(known.requests, decision.requests)
    return known.model_copy(
        update={
            "run": decision.run or known.run,
            "instances": merged(known.instances, decision.instances),
            "incidents": tuple(i for i in incidents if not i.is_resolved),
            "requests": requests,
            "next_incident": max([known.next_incident, *(i.number + 1 for i in incidents)]),
            "next_request": max([known.next_request, *(r.number + 1 for r in requests)]),
        }
    )


def told(decision: Decision, kind: UpdateKind) -> Update:
    (found,) = [t.update for t in decision.tell if t.update.kind is kind]
    return found


def watched(seen: Snapshot = RUNNING) -> Record:
    """Return the record after a first, healthy look."""
    return after(fresh(), check(fresh(), seen, verdict_of(ENDED, Pass())))


def failed() -> Record:
    """Return the record after the failure was seen and R1 was asked."""
    known = watched()
    return after(known, check(known, FAILED, fails()))


# First sight, failure, recovery


def test_a_run_is_greeted_at_first_sight_and_never_again() -> None:
    first = check(fresh(), RUNNING, verdict_of(ENDED, Pass()))
    second = check(after(fresh(), first), RUNNING, verdict_of(ENDED, Pass()))

    assert kinds(first) == [UpdateKind.WATCHING]
    assert kinds(second) == []
    assert first.run is not None
    assert first.run.state is RunState.RUNNING
    assert [i.number for i in first.instances] == [0]
    assert second.instances == ()


def plan_of(request: Request) -> RelaunchPlan:
    assert isinstance(request.plan, RelaunchPlan)
    return request.plan


def test_a_failure_opens_an_incident_tells_it_and_asks_the_dri() -> None:
    known = watched()

    decision = check(known, FAILED, fails())

    assert kinds(decision) == [UpdateKind.FAILED, UpdateKind.REQUEST_ASKED]
    assert [(i.number, i.check) for i in decision.incidents] == [(1, ENDED)]
    (asked,) = decision.requests
    assert (asked.number, asked.incident, asked.dri) == (1, 1, ADA)
    resume = plan_of(asked).resume_from
    assert resume is not None
    assert resume.step == 200
    assert asked.expires_at == AT + timedelta(hours=24)
    assert [entry.what for entry in decision.audit] == ["request_asked"]
    question = told(decision, UpdateKind.REQUEST_ASKED)
    assert question.headline == "R1: may Hero relaunch this run from step 200?"
    lost = "steps to be trained again: 10 (last seen step 210); how long that takes is unknown, as the run's pace is"
    assert lost in question.evidence
    assert question.asked == ADA


def test_a_run_that_has_failed_before_hero_came_is_greeted_told_and_asked_about_at_once() -> None:
    decision = check(fresh(), FAILED, fails())

    assert kinds(decision) == [UpdateKind.WATCHING, UpdateKind.FAILED, UpdateKind.REQUEST_ASKED]


def test_a_restart_with_an_unchanged_incident_is_silent() -> None:
    """Field report R38: what was told is on record and not in memory."""
    known = failed()
    restarted = Record.model_validate_json(known.model_dump_json())

    decision = check(restarted, snapshot(later(15), jobs=FAILED_JOB, checkpoints=SAVED), fails())

    assert kinds(decision) == []
    assert decision.incidents == ()
    assert decision.requests == ()
    assert decision.audit == ()


def test_nothing_new_is_told_in_the_live_status_alone() -> None:
    known = watched()

    decision = check(known, snapshot(later(15), checkpoints=SAVED), verdict_of(ENDED, Pass()))

    (only,) = decision.tell
    assert only.update.kind is UpdateKind.LIVE_STATUS
    assert only.target.slot == "live"
    assert only.channels == EVERYWHERE[:2]
    assert decision.run is not None
    assert decision.run.last_told_at == known.run.last_told_at


def test_the_live_status_is_as_grave_as_what_is_still_open() -> None:
    known = failed()

    decision = check(known, snapshot(later(15), checkpoints=SAVED), verdict_of(ENDED, Pass()))

    live = told(decision, UpdateKind.LIVE_STATUS)
    assert live.severity is Severity.INFO
    assert live.headline == "running; no open incident"


def test_many_findings_at_one_check_are_one_message_and_a_failure_stands_by_itself() -> None:
    others = [CheckId(f"family.fault{n}") for n in range(4)]
    findings = [fails(each, severity=Severity.WARNING, is_recoverable=False) for each in others]

    decision = check(watched(), RUNNING, fails(is_recoverable=False), *findings)

    assert len(decision.incidents) == 5
    assert kinds(decision).count(UpdateKind.FAILED) == 1
    storm = told(decision, UpdateKind.INCIDENT_OPENED)
    assert storm.headline.startswith("4 things at once, the gravest: family.fault0")
    assert [line.split()[1] for line in storm.evidence] == [str(each) for each in others]


def test_an_incident_that_grows_worse_is_told_once_more_and_one_that_eases_is_not() -> None:
    known = watched()
    known = after(known, check(known, RUNNING, fails(STALLED, severity=Severity.WARNING, is_recoverable=False)))

    worse = check(known, RUNNING, fails(STALLED, is_recoverable=False))
    eased = check(after(known, worse), RUNNING, fails(STALLED, severity=Severity.WARNING, is_recoverable=False))

    assert kinds(worse) == [UpdateKind.INCIDENT_OPENED]
    assert told(worse, UpdateKind.INCIDENT_OPENED).headline.startswith("I1 is now critical: ")
    assert kinds(eased) == []


def test_another_key_of_the_same_check_closes_the_old_incident_and_opens_a_new_one() -> None:
    known = after(watched(), check(watched(), RUNNING, fails(STALLED, key="a", is_recoverable=False)))

    decision = check(known, RUNNING, fails(STALLED, key="b", is_recoverable=False))

    assert [(i.number, i.key, i.is_resolved) for i in decision.incidents] == [(1, "a", True), (2, "b", False)]
    assert kinds(decision) == [UpdateKind.INCIDENT_RESOLVED, UpdateKind.INCIDENT_OPENED]


# What is not known


def test_an_unknown_reading_neither_closes_an_incident_nor_takes_a_question_back() -> None:
    known = failed()

    decision = check(known, blind(later(15)), verdict_of(ENDED, DARK))

    assert kinds(decision) == []
    assert decision.incidents == ()
    assert decision.requests == ()
    assert decision.run is not None
    assert decision.run.state is RunState.FAILED
    assert len(decision.run.gaps) == len(Source)


def test_an_unknown_at_first_sight_says_nothing_and_asks_nothing() -> None:
    decision = check(fresh(), blind(), verdict_of(ENDED, DARK))

    assert kinds(decision) == []
    assert decision.instances == ()
    assert decision.requests == ()


def test_without_the_checkpoints_nothing_is_asked_but_why_is_told_once() -> None:
    known = watched()
    first = check(known, snapshot(jobs=FAILED_JOB, checkpoints=unknown(Gap.REFUSED, "403")), fails())
    known = after(known, first)
    second = check(
        known, snapshot(later(15), jobs=FAILED_JOB, checkpoints=unknown(Gap.TIMEOUT, "no answer in 21 s")), fails()
    )

    assert first.requests == second.requests == ()
    (why,) = [t for t in first.tell if t.update.kind is UpdateKind.ACTION_PROGRESS]
    (again,) = [t for t in second.tell if t.update.kind is UpdateKind.ACTION_PROGRESS]
    assert "403" in why.update.headline
    assert why.key == again.key, "the store tells one key once"


def test_what_could_not_be_asked_is_asked_as_soon_as_it_can() -> None:
    known = watched()
    known = after(known, check(known, snapshot(jobs=FAILED_JOB, checkpoints=unknown()), fails()))

    decision = check(known, snapshot(later(15), jobs=FAILED_JOB, checkpoints=SAVED), verdict_of(ENDED, DARK))

    assert [r.incident for r in decision.requests] == [1]


def test_a_state_that_was_ours_is_not_kept_when_the_world_cannot_be_read() -> None:
    for state in (RunState.BLOCKED, RunState.RELAUNCHING):
        known = watched().model_copy(update={"run": Run(run_id=RUN, state=state)})

        decision = check(known, blind(), verdict_of(ENDED, DARK))

        assert decision.run is not None
        assert decision.run.state is RunState.UNKNOWN


READINGS = ("jobs", "log", "metrics", "checkpoints")
WORLDS = st.builds(
    snapshot,
    jobs=st.sampled_from(
        [
            job(),
            job(JobState.PENDING, started_at=None),
            FAILED_JOB,
            failed_job(1, "Traceback: ValueError"),
            failed_job(-9),
            failed_job(None),
            job(JobState.KILLED, finished_at=AT),
            job(JobState.SUCCEEDED, finished_at=AT),
            job(JobState.WORKER_FAILED, finished_at=AT),
            (),
        ]
    ),
    log=st.sampled_from(["", "Traceback\nImportError: no module", "CUDA out of memory", "preempted by a higher job"]),
    metrics=st.sampled_from([(), (row(210, loss=2.5),), (row(210, loss=float("nan")),), (row(9_999, loss=1.0),)]),
    checkpoints=st.sampled_from([(), SAVED, (checkpoint(100, is_complete=False),)]),
)


def decide(seen: Snapshot, known: Record) -> Decision:
    around = context()
    judged = judge_all(CHECKS, seen, around.contract, known.memories)
    event = RunChecked(run_id=RUN, snapshot=seen, judgements=judged.judgements, memories=judged.memories)
    return decide_checked(known, event, around, make_plan=planner(around), shape=shape(around))


def asks(seen: Snapshot, known: Record) -> tuple[Request, ...]:
    return decide(seen, known).requests


@given(seen=WORLDS, hidden=st.sets(st.sampled_from(READINGS), min_size=1))
@settings(max_examples=300)
def test_putting_unknown_in_place_of_any_known_never_produces_a_request_that_does_not_say_so(
    seen: Snapshot, hidden: set[str]
) -> None:
    """Metrics that cannot be read leave open whether the loss was finite: the DRI is asked, and told that first."""
    known = watched()
    dimmed = seen.model_copy(update={name: unknown() for name in hidden})

    decision = decide(dimmed, known)

    if hidden & {"jobs", "checkpoints"}:
        assert decision.requests == ()
    if decision.requests and not asks(seen, known):
        asked = next(t.update for t in decision.tell if t.update.kind is UpdateKind.REQUEST_ASKED)
        assert any(line.startswith("NOT KNOWN: whether the loss was finite") for line in asked.evidence)


@given(seen=WORLDS, hidden=st.sets(st.sampled_from(READINGS), min_size=1))
def test_putting_unknown_in_place_of_any_known_never_closes_what_it_was_needed_for(
    seen: Snapshot, hidden: set[str]
) -> None:
    known = failed()
    around = context()
    dimmed = seen.model_copy(update={name: unknown() for name in hidden})

    def closed(world: Snapshot) -> set[int]:
        judged = judge_all(CHECKS, world, around.contract, known.memories)
        event = RunChecked(run_id=RUN, snapshot=world, judgements=judged.judgements, memories=judged.memories)
        decision = decide_checked(known, event, around, make_plan=planner(around), shape=shape(around))
        return {i.number for i in decision.incidents if i.is_resolved}

    assert closed(dimmed) <= closed(seen)


# An open question and a changing world


def test_a_newer_checkpoint_voids_the_question_and_asks_anew_with_the_difference() -> None:
    """Field report R41."""
    known = failed()

    decision = check(
        known, snapshot(later(15), jobs=FAILED_JOB, checkpoints=(*SAVED, checkpoint(300, saved_at=START))), fails()
    )

    void, anew = decision.requests
    assert (void.number, void.state) == (1, RequestState.VOID)
    assert (anew.number, anew.state, anew.incident) == (2, RequestState.OPEN, 1)
    assert void.digest != anew.digest
    assert kinds(decision) == [UpdateKind.REQUEST_ANSWERED, UpdateKind.REQUEST_ASKED]
    question = told(decision, UpdateKind.REQUEST_ASKED)
    (difference,) = [line for line in question.evidence if line.startswith("new since R1: ")]
    assert "step-200" in difference
    assert "step-300" in difference
    assert any(line.startswith("launches so far") for line in question.evidence)
    assert "run id: the same (no change of the code is known)" in question.evidence


def test_a_changed_command_voids_the_question() -> None:
    known = failed()
    around = context(command="iris job run --no-wait --job-name hero-coord -- python -m train --lr 1e-4")

    decision = check(known, snapshot(later(15), jobs=FAILED_JOB, checkpoints=SAVED), fails(), around=around)

    assert [r.state for r in decision.requests] == [RequestState.VOID, RequestState.OPEN]


def test_a_change_of_dri_puts_the_same_plan_to_the_new_one() -> None:
    known = failed()

    decision = check(known, snapshot(later(15), jobs=FAILED_JOB, checkpoints=SAVED), fails(), around=context(dri="bob"))

    void, anew = decision.requests
    assert void.state is RequestState.VOID
    assert anew.dri == "bob"
    assert anew.digest == void.digest
    assert "new since R1: DRI: ada → bob" in told(decision, UpdateKind.REQUEST_ASKED).evidence


def test_a_job_launched_again_by_hand_takes_the_question_back() -> None:
    known = failed()
    by_hand = job(submitted_at=later(10))

    decision = check(
        known, snapshot(later(15), launch=instance(), jobs=by_hand, checkpoints=SAVED), verdict_of(ENDED, Pass())
    )

    assert [r.state for r in decision.requests] == [RequestState.WITHDRAWN]
    assert [i.number for i in decision.instances] == [1]
    assert set(kinds(decision)) == {
        UpdateKind.LAUNCHED,
        UpdateKind.INCIDENT_RESOLVED,
        UpdateKind.REQUEST_ANSWERED,
    }
    assert "Hero did not make" in told(decision, UpdateKind.LAUNCHED).headline


def test_the_child_of_a_trial_that_appears_in_a_cut_over_is_no_stranger_s_launch() -> None:
    known = failed().model_copy(update={"trial_of": "hero-old", "trial_stage": Stage.LAUNCHED})
    look = snapshot(later(15), launch=instance(), jobs=job(submitted_at=later(10)), checkpoints=SAVED)

    launched = told(check(known, look, verdict_of(ENDED, Pass())), UpdateKind.LAUNCHED)
    after = check(known.model_copy(update={"trial_stage": Stage.CLOSED}), look, verdict_of(ENDED, Pass()))

    assert launched.headline.startswith("launched by the cut-over of hero-old: ")
    assert launched.severity is Severity.INFO
    assert "Hero did not make" in told(after, UpdateKind.LAUNCHED).headline


def test_a_hand_launch_that_has_failed_as_well_is_asked_about_in_the_same_check() -> None:
    known = failed()
    died = failed_job(137, submitted_at=later(10), started_at=later(10), finished_at=later(14))

    decision = check(
        known, snapshot(later(15), launch=instance(), jobs=died, checkpoints=SAVED), fails(key="second launch")
    )

    assert [(r.number, r.state) for r in decision.requests] == [
        (1, RequestState.WITHDRAWN),
        (2, RequestState.OPEN),
    ]


def test_a_job_that_has_succeeded_takes_the_question_back() -> None:
    known = failed()

    decision = check(
        known,
        snapshot(later(15), jobs=job(JobState.SUCCEEDED, finished_at=later(10)), checkpoints=SAVED),
        fails(is_recoverable=False),
    )

    assert [r.state for r in decision.requests] == [RequestState.WITHDRAWN]


def test_a_stall_that_is_over_takes_its_question_back_so_that_no_late_yes_stops_a_healthy_run() -> None:
    known = watched()
    known = after(known, check(known, RUNNING, fails(STALLED)))
    assert plan_of(known.requests[0]).stop == JOB

    decision = check(known, snapshot(later(15), checkpoints=SAVED), verdict_of(STALLED, Pass()))

    (withdrawn,) = decision.requests
    assert withdrawn.state is RequestState.WITHDRAWN
    assert withdrawn.note == "what it was asked for is over: I1"


def test_while_an_action_is_under_way_nothing_is_asked_and_the_live_status_stays_worth_believing() -> None:
    known = failed()
    grant = Grant(request=1, run_id=RUN, digest="0", by=ADA, at=AT, expires_at=later(60))
    granted = known.requests[0].model_copy(update={"state": RequestState.GRANTED})
    acting = known.model_copy(
        update={"requests": (granted,), "actions": (Action(number=1, run_id=RUN, plan=granted.plan, grant=grant),)},
    )

    decision = check(acting, snapshot(later(15), jobs=FAILED_JOB, checkpoints=SAVED), fails())

    (live,) = decision.tell
    assert live.update.kind is UpdateKind.LIVE_STATUS
    assert "if nothing newer stands here by 04:45 UTC, Hero is not looking" in live.update.next
    assert decision.requests == ()
    assert decision.run is not None
    assert decision.run.state is RunState.RELAUNCHING


@pytest.mark.parametrize("grave", sorted(NEVER_BLINDLY))
def test_what_a_blind_relaunch_would_make_worse_is_escalated_and_not_asked_about(grave: CheckId) -> None:
    """Field report R50, and the numerical faults that would only come back."""
    known = watched()

    decision = check(known, FAILED, fails(), fails(grave, is_recoverable=False))

    assert decision.requests == ()
    assert set(kinds(decision)) == {UpdateKind.FAILED, UpdateKind.INCIDENT_OPENED}
    assert all(t.update.asked == ADA for t in decision.tell if t.update.kind is not UpdateKind.LIVE_STATUS)


def test_the_job_that_hero_itself_stops_is_no_incident_and_one_that_others_stop_is() -> None:
    known = watched()
    known = after(known, check(known, RUNNING, fails(STALLED)))
    granted = known.requests[0].model_copy(update={"state": RequestState.GRANTED})
    grant = Grant(request=1, run_id=RUN, digest=granted.digest, by=ADA, at=AT, expires_at=later(60))
    action = Action(number=1, run_id=RUN, plan=granted.plan, grant=grant)
    stopping = known.model_copy(update={"requests": (granted,), "actions": (action.begun(StepName.STOP, AT),)})
    killed = snapshot(later(5), jobs=job(JobState.KILLED, finished_at=later(4)), checkpoints=SAVED)

    by_hero = check(stopping, killed, fails(is_recoverable=False), fails(STALLED))
    by_others = check(known, killed, fails(is_recoverable=False), fails(STALLED))

    assert kinds(by_hero) == []
    assert UpdateKind.FAILED in kinds(by_others)


def test_a_decided_request_of_an_incident_is_not_put_again() -> None:
    known = failed()
    for state in (RequestState.DENIED, RequestState.EXPIRED, RequestState.GRANTED):
        settled = known.model_copy(update={"requests": (known.requests[0].model_copy(update={"state": state}),)})

        decision = check(settled, snapshot(later(15), jobs=FAILED_JOB, checkpoints=SAVED), fails())

        assert decision.requests == (), state


def test_a_request_that_was_void_when_it_was_carried_out_is_asked_afresh() -> None:
    known = failed()
    void = known.model_copy(update={"requests": (known.requests[0].model_copy(update={"state": RequestState.VOID}),)})

    decision = check(void, snapshot(later(15), jobs=FAILED_JOB, checkpoints=SAVED), fails())

    assert [(r.number, r.incident) for r in decision.requests] == [(2, 1)]


def test_a_relaunch_that_somebody_wants_is_put_to_the_dri_once() -> None:
    known = watched()
    known = known.model_copy(update={"run": known.run.model_copy(update={"relaunch_wanted_by": "bob"})})

    decision = check(known, RUNNING, verdict_of(ENDED, Pass()))

    (asked,) = decision.requests
    assert asked.reason == "bob asked for it"
    assert asked.incident is None
    assert plan_of(asked).stop == JOB
    assert decision.run is not None
    assert decision.run.relaunch_wanted_by == ""
    again = check(after(known, decision), RUNNING, verdict_of(ENDED, Pass()))
    assert again.requests == (), "no incident stands behind it, and that is no reason to take it back"


def test_a_first_launch_is_asked_for_as_a_launch() -> None:
    wanted = Record(run=Run(run_id=RUN, relaunch_wanted_by="ada"))

    decision = check(wanted, snapshot(is_first=True, jobs=()), verdict_of(ENDED, Pass()))

    assert told(decision, UpdateKind.REQUEST_ASKED).headline == "R1: may Hero launch this run from step 0?"


# What the run reaches


def test_a_run_at_its_final_step_is_completed_and_told_once() -> None:
    done = snapshot(
        later(15),
        jobs=job(JobState.SUCCEEDED, finished_at=later(10)),
        metrics=[row(9_999, loss=1.0)],
        checkpoints=(checkpoint(10_000, saved_at=later(9)),),
    )
    known = watched()

    first = check(known, done, verdict_of(ENDED, Pass()))
    second = check(after(known, first), done, verdict_of(ENDED, Pass()))

    assert kinds(first) == [UpdateKind.COMPLETED]
    assert "newest complete checkpoint: step 10000" in told(first, UpdateKind.COMPLETED).evidence
    assert kinds(second) == []


def test_a_seal_is_recommended_only_where_one_can_be_made() -> None:
    done = snapshot(
        later(15),
        jobs=job(JobState.SUCCEEDED, finished_at=later(10)),
        metrics=[row(9_999, loss=1.0)],
        checkpoints=(checkpoint(10_000, saved_at=later(9)),),
    )
    unsealable = context(rules=RULES.model_copy(update={"can_seal": False}))

    def next_of(surroundings: Context) -> str:
        return told(check(watched(), done, verdict_of(ENDED, Pass()), around=surroundings), UpdateKind.COMPLETED).next

    assert f"`/hero seal {RUN}`" in next_of(context())
    assert next_of(unsealable) == "verify the final artifacts"


def test_success_without_the_final_step_is_no_completion() -> None:
    short = snapshot(jobs=job(JobState.SUCCEEDED, finished_at=AT), metrics=[row(210, loss=2.0)])

    decision = check(watched(), short, verdict_of(ENDED, Pass()))

    assert UpdateKind.COMPLETED not in kinds(decision)
    assert decision.run is not None
    assert decision.run.state is RunState.ENDED_SHORT


SUCCEEDED = job(JobState.SUCCEEDED, finished_at=later(10))
FINAL = checkpoint(10_000, saved_at=later(9))
MISSING = CheckId("artifacts.missing")


def ending(minutes: float, *found: Checkpoint | Unknown) -> Snapshot:
    """Return a look at a job that has succeeded at its final step, and at what it has left."""
    left = found[0] if found and isinstance(found[0], Unknown) else [c for c in found if isinstance(c, Checkpoint)]
    return snapshot(later(minutes), jobs=SUCCEEDED, metrics=[row(9_999, loss=1.0)], checkpoints=left)


def test_a_success_whose_artifacts_are_missing_is_told_once_and_completed_when_they_appear() -> None:
    known, stories = watched(), []
    for seen, judged in (
        (ending(15, *SAVED), verdict_of(MISSING, NotApplicable(reason="it ended less than 10 min ago"))),
        (ending(30, *SAVED), fails(MISSING, is_recoverable=False)),
        (ending(45, *SAVED), fails(MISSING, is_recoverable=False)),
        (ending(60, unknown()), verdict_of(MISSING, DARK)),
        (ending(75, *SAVED, FINAL), verdict_of(MISSING, Pass())),
    ):
        decision = check(known, seen, verdict_of(ENDED, Pass()), judged)
        known = after(known, decision)
        stories.append((known.run.state, kinds(decision)))

    assert stories == [
        (RunState.ENDED_SHORT, []),
        (RunState.ENDED_SHORT, [UpdateKind.INCIDENT_OPENED]),
        (RunState.ENDED_SHORT, []),
        (RunState.ENDED_SHORT, []),
        (RunState.COMPLETED, [UpdateKind.INCIDENT_RESOLVED, UpdateKind.COMPLETED]),
    ]


def test_an_artifact_that_is_missed_after_completion_takes_it_back_and_the_word_is_not_said_twice() -> None:
    known = watched()
    first = check(known, ending(15, *SAVED, FINAL), verdict_of(MISSING, Pass()))
    lost = check(after(known, first), ending(30, *SAVED, FINAL), fails(MISSING, is_recoverable=False))
    again = check(after(after(known, first), lost), ending(45, *SAVED, FINAL), verdict_of(MISSING, Pass()))

    assert [each.run.state for each in (first, lost, again) if each.run] == [
        RunState.COMPLETED,
        RunState.ENDED_SHORT,
        RunState.COMPLETED,
    ]
    said = {t.key for each in (first, again) for t in each.tell if t.update.kind is UpdateKind.COMPLETED}
    assert len(said) == 1, "one key: what was delivered once is not delivered again"


def test_a_success_whose_checkpoints_cannot_be_read_is_not_called_either_until_they_can() -> None:
    known = watched()
    dark = check(known, ending(15, unknown()), verdict_of(MISSING, DARK))
    light = check(after(known, dark), ending(30, *SAVED, FINAL), verdict_of(MISSING, Pass()))
    cleaned = check(after(after(known, dark), light), ending(45, unknown()), verdict_of(MISSING, DARK))

    assert [each.run.state for each in (dark, light, cleaned) if each.run] == [
        RunState.UNKNOWN,
        RunState.COMPLETED,
        RunState.COMPLETED,
    ]
    assert UpdateKind.COMPLETED not in kinds(dark)


def test_the_newest_milestone_passed_is_told_once_and_those_before_the_first_look_are_history() -> None:
    around = context(milestones={"every": 100, "steps": [350]})
    first = check(fresh(), RUNNING, around=around)
    known = after(fresh(), first)
    passed = snapshot(later(15), metrics=[row(360, loss=2.0)])

    second = check(known, passed, around=around)
    rewound = check(after(known, second), snapshot(later(30), metrics=[row(320, loss=2.0)]), around=around)

    assert kinds(first) == [UpdateKind.WATCHING]
    assert told(second, UpdateKind.MILESTONE).headline == "step 350 is reached (4 %)"
    assert kinds(rewound) == []


def test_of_a_launch_that_hero_made_no_milestone_is_history() -> None:
    around = context(milestones={"steps": [100, 350]})
    launched = instance(from_step=200).model_copy(update={"command": ("iris", "job", "run")})
    run = watched().run.model_copy(update={"milestone_step": None})  # no step was seen yet
    known = watched().model_copy(update={"instances": (launched,), "run": run})

    early = check(known, snapshot(later(15), metrics=[row(220, loss=2.0)]), around=around)
    late = check(known, snapshot(later(15), metrics=[row(360, loss=2.0)]), around=around)

    asked = failed().requests[0]
    grant = Grant(request=1, run_id=RUN, digest=asked.digest, by=ADA, at=AT, expires_at=later(60))
    under_way = (Action(number=1, run_id=RUN, plan=asked.plan, grant=grant),)  # its submission is not on record yet
    begun = check(
        fresh().model_copy(update={"actions": under_way}),
        snapshot(later(15), metrics=[row(360, loss=2.0)]),
        around=around,
    )

    assert begun.run is not None
    assert begun.run.milestone_step is None
    assert UpdateKind.MILESTONE not in kinds(early)
    assert told(late, UpdateKind.MILESTONE).headline == "step 350 is reached (4 %)"


def test_a_command_that_could_not_be_submitted_is_said_at_first_sight() -> None:
    around = context()

    def no_plan(_seen: Snapshot, _known: Record) -> NoPlan:
        return NoPlan(reason="--no-wait is missing", fix="add it", is_unknown=False)

    event = RunChecked(run_id=RUN, snapshot=RUNNING, judgements=())
    decision = decide_checked(fresh(), event, around, make_plan=no_plan, shape={})

    assert kinds(decision) == [UpdateKind.WATCHING, UpdateKind.INCIDENT_OPENED]


def test_a_job_that_the_orchestrator_began_once_more_counts_as_living() -> None:
    known = watched()
    ended = after(known, check(known, FAILED, fails(is_recoverable=False)))
    assert ended.instance is not None
    assert (ended.instance.ended_at, ended.instance.exit_code) == (AT, 137)

    decision = check(ended, snapshot(later(15), checkpoints=SAVED), verdict_of(ENDED, Pass()))

    assert [(i.number, i.ended_at, i.exit_code) for i in decision.instances] == [(0, None, None)]


def test_a_launch_that_is_not_shown_yet_is_not_taken_for_the_one_before_under_its_name() -> None:
    """Else the old job's end and submission would be written down as those of a launch that nobody has seen."""
    known = failed()
    launch = instance(1, submitted_at=None, replaces=FAILED_JOB.instance_id)
    known = known.model_copy(update={"instances": (*known.instances, launch)})

    decision = check(known, FAILED.model_copy(update={"instance": launch}), fails())

    assert decision.instances == ()


def test_exit_codes_that_come_late_are_still_noted() -> None:
    known = watched()
    blank = job(JobState.FAILED, finished_at=AT, tasks=unknown())
    known = after(known, check(known, snapshot(jobs=blank), fails(is_recoverable=False)))

    decision = check(known, snapshot(later(15), jobs=FAILED_JOB), fails(is_recoverable=False))

    assert [(i.ended_at, i.exit_code) for i in decision.instances] == [(AT, 137)]


# Every message can be read alone, at night, on a phone


def every_decision() -> list[Decision]:
    known, around = watched(), context(milestones={"every": 100})
    hurt = failed()
    by_hand = snapshot(later(15), launch=instance(), jobs=job(submitted_at=later(10)), checkpoints=SAVED)
    newer = snapshot(later(15), jobs=FAILED_JOB, checkpoints=(*SAVED, checkpoint(300, saved_at=START)))
    done = ending(15, *SAVED, FINAL)
    milestone = known.model_copy(update={"run": known.run.model_copy(update={"milestone_step": 100})})
    return [
        check(fresh(), RUNNING),
        check(known, FAILED, fails()),
        check(known, snapshot(jobs=FAILED_JOB, checkpoints=unknown()), fails()),
        check(known, RUNNING, fails(STALLED, severity=Severity.WARNING, is_recoverable=False)),
        check(hurt, by_hand, verdict_of(ENDED, Pass())),
        check(hurt, newer, fails()),
        check(known, done, verdict_of(ENDED, Pass())),
        check(milestone, RUNNING, around=around),
    ]


def test_every_update_names_run_step_what_happened_evidence_what_comes_next_and_who_is_asked() -> None:
    updates = [telling.update for decision in every_decision() for telling in decision.tell]

    assert {u.kind for u in updates} >= {
        UpdateKind.WATCHING,
        UpdateKind.LAUNCHED,
        UpdateKind.FAILED,
        UpdateKind.MILESTONE,
        UpdateKind.COMPLETED,
        UpdateKind.LIVE_STATUS,
        UpdateKind.INCIDENT_OPENED,
        UpdateKind.INCIDENT_RESOLVED,
        UpdateKind.REQUEST_ASKED,
        UpdateKind.REQUEST_ANSWERED,
        UpdateKind.ACTION_PROGRESS,
    }
    for update in updates:
        assert update.run_id == RUN
        assert update.standing is not None
        assert update.standing.final_step == 10_000
        assert update.headline
        assert update.next, update
        if update.severity is Severity.CRITICAL and update.kind is not UpdateKind.LIVE_STATUS:
            assert update.asked == ADA, update
        if update.kind not in {UpdateKind.LIVE_STATUS, UpdateKind.ACTION_PROGRESS}:
            assert update.evidence, update
        assert "None" not in f"{update.headline}{update.evidence}{update.next}", update


def test_an_incident_is_told_with_the_number_by_which_it_is_acknowledged() -> None:
    decision = check(watched(), RUNNING, fails(STALLED, is_recoverable=False))

    evidence = told(decision, UpdateKind.INCIDENT_OPENED).evidence
    assert evidence[0] == "I1 progress.stalled, since step 210, 2026-11-29 04:00 UTC"


# The incident as a machine


class IncidentMachine(RuleBasedStateMachine):
    """Whatever verdicts come, an incident goes forward only, and an Unknown moves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.now: datetime = AT
        self.incident: Incident = open_incident(1, RUN, finding(key="a", severity=Severity.WARNING), AT)
        self.past: list[Incident] = [self.incident]

    def _judge(self, verdict: Verdict) -> str:
        self.now += timedelta(minutes=15)
        self.incident, news = self.incident.after(verdict, self.now)
        self.past.append(self.incident)
        return news.value

    @rule(severity=st.sampled_from(list(Severity)))
    def the_same_trouble(self, severity: Severity) -> None:
        before = self.incident

        news = self._judge(Fail(finding=finding(key="a", severity=severity)))

        is_worse = not before.is_resolved and severity.rank > before.finding.severity.rank
        assert news == ("worse" if is_worse else "nothing_new")
        assert self.incident.state == before.state

    @rule(verdict=st.sampled_from([Pass(), NotApplicable(reason="-"), Fail(finding=finding(key="b"))]))
    def it_is_over(self, verdict: Verdict) -> None:
        before = self.incident

        news = self._judge(verdict)

        assert self.incident.is_resolved
        assert news == ("nothing_new" if before.is_resolved else "resolved")

    @rule()
    def nobody_can_tell(self) -> None:
        before = self.incident

        assert self._judge(DARK) == ("nothing_new" if before.is_resolved else "unknown")
        assert self.incident == before

    @precondition(lambda self: not self.incident.is_resolved)
    @rule()
    def somebody_looks_after_it(self) -> None:
        state = Acknowledged(by=PersonName("ada"), at=self.now)
        self.incident = self.incident.model_copy(update={"state": state})
        self.past.append(self.incident)

    @invariant()
    def what_is_resolved_stays_resolved(self) -> None:
        over = [i for i in self.past if i.is_resolved]
        assert all(i == over[0] for i in over)
        assert [i.is_resolved for i in self.past] == sorted(i.is_resolved for i in self.past)

    @invariant()
    def it_stays_the_same_incident(self) -> None:
        assert {(i.number, i.key, i.opened_at) for i in self.past} == {(1, "a", AT)}
        assert isinstance(self.incident.state, Open | Acknowledged | Resolved)


TestIncidentMachine = IncidentMachine.TestCase
TestIncidentMachine.settings = settings(max_examples=60, stateful_step_count=20)


def test_progress_takes_the_pace_of_one_launch_and_forgets_it_with_the_next() -> None:
    known = watched()
    known = after(known, check(known, snapshot(later(10), metrics=[row(810, loss=2.0)])))
    assert known.run.progress.steps_per_s == 1.0
    assert known.run.progress.eta(10_000) == timedelta(seconds=9_190)

    relaunched = check(known, snapshot(later(20), launch=instance(), jobs=job(submitted_at=later(15))))

    assert relaunched.run is not None
    assert relaunched.run.progress == Progress(
        step=810, step_at=later(10), loss=2.0, checkpoint_step=None, steps_per_s=None
    )


def test_a_rollback_of_the_old_run_ends_the_child_and_nobody_is_blamed_for_it() -> None:
    known = watched().model_copy(update={"trial_of": "hero-old", "trial_stage": Stage.NO_GO})
    killed = job(JobState.KILLED, finished_at=later(10))
    plan = RollbackPlan(
        run_id=RunId("hero-old"),
        trial="0",
        child_run_id=RUN,
        stop=StopPlan(run_id=RUN, stop=JOB, instance=killed.instance_id),
        launch=None,
    )
    grant = Grant(request=1, run_id=plan.run_id, digest="0", by=ADA, at=AT, expires_at=later(60))
    rollback = Action(number=1, run_id=plan.run_id, plan=plan, grant=grant).begun(StepName.STOP, AT)

    look = snapshot(later(15), jobs=killed, checkpoints=SAVED)
    ours = check(known.model_copy(update={"rollbacks": (rollback,)}), look, fails(is_recoverable=False))
    a_stranger_s = check(known, look, fails(is_recoverable=False))

    assert ours.incidents == ()
    assert len(a_stranger_s.incidents) == 1
