"""What goes on a run's record, whichever handler decides: each material event once, and nothing else."""

from datetime import timedelta
from typing import Any

from bot.model.action import Action, ActionState, Done, Refused, StepName
from bot.model.chronicle import (
    ActionEnded,
    Asked,
    Completed,
    ContractChanged,
    Decided,
    Failed,
    HandedOver,
    Happening,
    Launched,
    MilestoneReached,
    Recovered,
    RetentionChanged,
    StepEnded,
    TrackerSeen,
)
from bot.model.code import CodeState
from bot.model.contract import Basis, ChannelsContract
from bot.model.delivery import ChannelName
from bot.model.event import RunChecked
from bot.model.job import JobState
from bot.model.plan import RequestState
from bot.model.reading import Known
from bot.model.record import Decision, Record
from bot.model.run import Progress, Run, RunState
from bot.model.snapshot import Snapshot
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.value import CheckId, JobId
from bot.model.verdict import Fail, Finding, Judgement, Pass, Severity
from handlers.checked import decide_checked
from handlers.context import Context
from handlers.outcome import decide_outcome
from handlers.recorded import RECORD_SLOT, recorded, recorded_without_contract
from handlers.reply import decide_said
from handlers.timers import decide_time_passed
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, instance, job, later, rows, snapshot
from tests.unit.handlers.scene import MEMBER, context, planner, record, request, said, shape

ENDED = CheckId("job.ended")


def checked(before: Record, seen: Snapshot, surroundings: Context, *judgements: Judgement) -> Decision:
    event = RunChecked(run_id=RUN, snapshot=seen, judgements=judgements)
    decision = decide_checked(before, event, surroundings, make_plan=planner(surroundings), shape=shape(surroundings))
    return recorded(before, decision, surroundings, seen.at, shape=shape(surroundings), seen=seen)


def after(before: Record, decision: Decision) -> Record:
    """Return the run as the next transaction reads it."""

    def merged(old: Any, new: Any) -> Any:
        by_number = {each.number: each for each in (*old, *new)}
        return tuple(by_number[number] for number in sorted(by_number))

    return before.model_copy(
        update={
            "run": decision.run or before.run,
            "instances": merged(before.instances, decision.instances),
            "incidents": tuple(i for i in merged(before.incidents, decision.incidents) if not i.is_resolved),
            "requests": merged(before.requests, decision.requests),
            "actions": merged(before.actions, decision.actions),
        }
    )


def kinds(happened: tuple[Happening, ...]) -> list[str]:
    return [each.kind for each in happened]


def failure() -> Judgement:
    finding = Finding(
        check=ENDED,
        severity=Severity.CRITICAL,
        summary="exit code 137",
        advice="relaunch",
        since_step=8_123,
        is_recoverable=True,
    )
    return Judgement(check=ENDED, verdict=Fail(finding=finding))


def fresh() -> Record:
    return record(run=Run(run_id=RUN), instances=())


def facts_of(launched: Happening) -> dict[str, tuple[str | None, Basis | None]]:
    assert isinstance(launched, Launched)
    return {each.label: (each.value, each.basis) for each in launched.facts}


def test_a_launch_that_is_seen_goes_on_record_with_every_field_of_the_procedure_and_its_basis() -> None:
    surroundings = context(
        hardware="v5p-64",
        checkpoint_bytes=2 * 1024**3,
        retention={"resume": 2, "milestones": [5_000]},
        initialize_from="gs://bucket/users/ada/seed/step-100",
        owner="bob",
        deputies=["bob"],
        basis={"final_step": "inferred", "checkpoint_bytes": "measured"},
    )
    tree = CodeState(
        directory="/src", head="a" * 40, branch="main", dirty=("train.py",), patch_sha256="b" * 64,
        upstream="origin/main", fetched_at=None, source=None,
    )  # fmt: skip
    seen = snapshot(jobs=(job(),), is_first=True).model_copy(update={"code": Known(value=tree, at=AT)})

    decision = checked(fresh(), seen, surroundings)

    (launched,) = decision.happened
    assert isinstance(launched, Launched)
    assert (launched.instance, launched.job_id, launched.is_by_hero) == (0, JOB, False)
    facts = facts_of(launched)
    assert facts["kind"] == ("production", Basis.INFERRED)
    assert facts["command"] == ("iris job run --no-wait --job-name hero-coord -- python -m train", Basis.STATED)
    assert facts["working tree"] == (f"1 files differ from {'a' * 40}, patch sha256 {'b' * 64}", Basis.MEASURED)
    assert facts["DRI"] == ("ada", Basis.STATED)
    assert facts["monitoring owner"] == ("bob", Basis.STATED)
    assert facts["hardware"] == ("v5p-64", Basis.STATED)
    assert facts["output root"] == ("gs://bucket/users/ada/hero-12d8b6f0", Basis.STATED)
    assert facts["tracker identity"] == (f"mode online, project hero, id {RUN}", Basis.STATED)
    assert facts["retention"] == ("2 to resume from, milestones 5000", Basis.STATED)
    assert facts["checkpoint size"] == ("2.0 GiB", Basis.MEASURED)
    assert facts["projected resume bytes"] == ("4.0 GiB", Basis.INFERRED)
    assert facts["initialize from"] == ("gs://bucket/users/ada/seed/step-100", Basis.STATED)
    assert facts["final step"] == ("10000, from config trainer.num_train_steps", Basis.INFERRED)
    assert facts["source SHA"] == (None, None), "what is not known has no basis"


def test_what_hero_takes_where_the_contract_is_silent_is_on_record_as_inferred_as_the_checklist_has_it() -> None:
    silent = context(owner=None, checkpoint_roots=[], resume_root="gs://bucket/tmp/resume")

    (launched,) = checked(fresh(), snapshot(jobs=(job(),), is_first=True), silent).happened

    facts = facts_of(launched)
    below = f"{silent.contract.output_root}/checkpoints"
    assert facts["monitoring owner"] == ("ada", Basis.INFERRED)
    assert facts["checkpoint roots"] == (f"{below}, gs://bucket/tmp/resume", Basis.INFERRED)
    assert facts["checkpoint roots"][0] == ", ".join(silent.contract.roots)
    assert facts["retention"] == ("1 to resume from", Basis.INFERRED)


def test_a_look_at_a_run_that_goes_on_as_before_adds_nothing() -> None:
    surroundings = context()
    seen = snapshot(jobs=(job(),), is_first=True)
    first = checked(fresh(), seen, surroundings)

    second = checked(after(fresh(), first), snapshot(jobs=(job(),), at=later(15)), surroundings)

    assert kinds(first.happened) == ["launched"]
    assert second.happened == ()
    assert all(telling.target.slot != RECORD_SLOT for telling in second.tell)


def test_a_run_that_was_watched_before_there_were_records_gets_its_launches_at_the_first_look() -> None:
    surroundings = context()
    before = record(run=Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT))

    decision = checked(before, snapshot(jobs=(job(),), at=later(15)), surroundings)

    assert kinds(decision.happened) == ["launched"]
    assert checked(after(before, decision), snapshot(jobs=(job(),), at=later(30)), surroundings).happened == ()


def test_a_launch_that_hero_made_before_its_first_look_is_on_record_once() -> None:
    surroundings = context()
    fresh_launch = instance().model_copy(update={"command": ("python", "train.py"), "shape": shape(surroundings)})
    made = recorded(fresh(), Decision(instances=(fresh_launch,)), surroundings, AT, shape=shape(surroundings))

    looked_at = checked(after(fresh(), made), snapshot(jobs=(job(),), at=later(15)), surroundings)

    assert kinds(made.happened) == ["launched"]
    assert looked_at.happened == ()


def test_a_failure_its_request_and_its_end_are_on_record_each_once() -> None:
    surroundings = context()
    start = after(fresh(), checked(fresh(), snapshot(jobs=(job(),), is_first=True), surroundings))
    dead = (job(JobState.FAILED, finished_at=later(10)),)
    failed = checked(
        start, snapshot(jobs=dead, at=later(15), checkpoints=(checkpoint(8_000),)), surroundings, failure()
    )
    known = after(start, failed)

    again = checked(known, snapshot(jobs=dead, at=later(30), checkpoints=(checkpoint(8_000),)), surroundings, failure())
    over = checked(known, snapshot(jobs=(job(),), at=later(45)), surroundings, Judgement(check=ENDED, verdict=Pass()))

    happened, asked = failed.happened
    assert happened == Failed(incident=5, check="job.ended", severity="critical", summary="exit code 137", step=8_123)
    assert isinstance(asked, Asked)
    assert (asked.request, asked.plan, asked.dri, asked.digest) == (9, "relaunch", "ada", known.requests[-1].digest)
    assert again.happened == ()
    assert kinds(over.happened) == ["recovered", "decided"]
    assert isinstance(over.happened[0], Recovered)


def test_the_yes_and_every_step_that_changes_the_world_are_on_record() -> None:
    surroundings = context()
    before = record(request(incident=None), run=Run(run_id=RUN, promised={"seed": "1"}))
    yes = decide_said(before, said("approve R7"), MEMBER, surroundings, AT)
    granted = recorded(before, yes, surroundings, AT, shape=shape(surroundings))
    known = after(before, granted)
    (action,) = granted.actions

    moves: list[Happening] = []
    for step, outcome in (
        (StepName.VERIFY, Done(detail="the plan holds")),
        (StepName.SUBMIT, Done(detail=JOB)),
        (StepName.CONFIRM, Done(detail=f"{JOB}@{AT.isoformat()}")),
        (StepName.RESTORE, Done(detail="loaded step 8000")),
    ):
        for moved in (action.begun(step, AT), action.begun(step, AT).ended(step, outcome, AT)):
            decision = decide_outcome(known, moved, surroundings, AT, shape=shape(surroundings))
            whole = recorded(known, decision, surroundings, AT, shape=shape(surroundings))
            known, action = after(known, whole), moved
            moves.extend(whole.happened)
    done = action.model_copy(update={"state": ActionState.DONE})
    decision = decide_outcome(known, done, surroundings, AT, shape=shape(surroundings))
    moves.extend(recorded(known, decision, surroundings, AT, shape=shape(surroundings)).happened)

    assert granted.happened == (
        Decided(request=7, outcome="granted", digest=action.grant.digest, by=before.requests[0].dri, via=_via(granted)),
    )
    assert [(m.kind, getattr(m, "step", "")) for m in moves] == [
        ("launched", ""),
        ("step_ended", "submit"),
        ("step_ended", "restore"),
        ("action_ended", ""),
    ]
    assert isinstance(moves[0], Launched)
    assert moves[0].is_by_hero
    assert moves[-1] == ActionEnded(action=3, request=7, plan="relaunch", outcome="done", job_id=JobId("/ann/hero"))


def _via(decision: Decision) -> str:
    return decision.requests[0].decided_via


def test_a_refused_step_is_on_record_even_when_the_contract_cannot_be_used() -> None:
    granted = request(incident=None, state=RequestState.GRANTED)
    action = _granted(record(request(incident=None)))
    before = record(granted, actions=(action,))
    refused = action.begun(StepName.VERIFY, AT).ended(StepName.VERIFY, Refused(detail="another checkpoint"), AT)
    ended = refused.model_copy(update={"state": ActionState.VOID, "noted": "another checkpoint"})

    decision = recorded_without_contract(before, Decision(actions=(ended,)))

    assert kinds(decision.happened) == ["step_ended", "action_ended"]
    assert decision.happened[0] == StepEnded(action=3, step="verify", outcome="refused", detail="another checkpoint")


def _granted(known: Record) -> Action:
    (action,) = decide_said(known, said("approve R7"), MEMBER, context(), AT).actions
    return action


def test_a_request_that_runs_out_is_on_record() -> None:
    surroundings = context()
    before = record(request(incident=None))
    at = AT + timedelta(hours=25)

    decision = decide_time_passed(before, surroundings, at, since=AT)
    happened = recorded(before, decision, surroundings, at, shape=shape(surroundings)).happened

    assert [(each.kind, getattr(each, "outcome", "")) for each in happened] == [("decided", "expired")]


def test_a_milestone_and_the_completion_are_on_record_once() -> None:
    surroundings = context(milestones={"steps": [5_000]})
    before = record(
        run=Run(run_id=RUN, state=RunState.RUNNING, milestone_step=0, last_checked_at=AT, promised={"a": "1"})
    )
    before = before.model_copy(update={"run": before.run.model_copy(update={"promised": _promised(surroundings)})})

    reached = checked(before, snapshot(jobs=(job(),), at=later(15), metrics=rows(4_990, 5_009)), surroundings)
    known = after(before, reached)
    arrived = checked(
        known,
        snapshot(
            jobs=(job(JobState.SUCCEEDED, finished_at=later(29)),),
            at=later(30),
            metrics=rows(9_990, 10_000),
            checkpoints=(checkpoint(10_000),),
        ),
        surroundings,
    )
    again = checked(after(known, arrived), snapshot(jobs=(job(JobState.SUCCEEDED),), at=later(45)), surroundings)

    assert reached.happened == (MilestoneReached(step=5_000),)
    assert arrived.happened == (Completed(step=10_000, final_step=10_000),)
    assert again.happened == ()


def _promised(surroundings: Context) -> dict[str, str]:
    known = checked(fresh(), snapshot(jobs=(job(),), is_first=True), surroundings).run
    assert known is not None
    return known.promised


def test_a_contract_that_is_edited_leaves_what_was_and_what_is() -> None:
    before = record(run=Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT, promised=_promised(context())))
    edited = context(retention={"resume": 2}, dri="bob", owner="ada", hardware="v5p-128")

    decision = checked(before, snapshot(jobs=(job(),), at=later(15)), edited)
    once_more = checked(after(before, decision), snapshot(jobs=(job(),), at=later(30)), edited)

    retention, people, contract = decision.happened
    assert isinstance(retention, RetentionChanged)
    assert isinstance(people, HandedOver)
    assert [(c.field, c.before, c.after) for c in people.changes] == [
        ("dri", "ada", "bob"),
        ("owner", "not set", "ada"),
    ]
    assert isinstance(contract, ContractChanged)
    assert [(c.field, c.before, c.after) for c in contract.changes] == [("hardware", "not set", "v5p-128")]
    assert once_more.happened == ()


def test_an_address_of_the_tracker_is_on_record_when_it_is_another() -> None:
    surroundings = context()
    before = record(run=Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT, promised=_promised(surroundings)))

    def at_address(url: str, known: Record, minutes: float) -> Decision:
        tracker = TrackerState(
            entity="acme", project="hero", id="h1", name="hero", state=TrackerRunState.RUNNING, url=url
        )
        seen = snapshot(jobs=(job(),), at=later(minutes))
        seen = seen.model_copy(update={"tracker": Known(value=tracker, at=later(minutes))})
        return checked(known, seen, surroundings)

    first = at_address("https://wandb.ai/acme/hero/runs/h1", before, 15)
    known = after(before, first)

    assert first.happened == (TrackerSeen(url="https://wandb.ai/acme/hero/runs/h1", id="h1", name="hero"),)
    assert at_address("https://wandb.ai/acme/hero/runs/h1", known, 30).happened == ()
    assert kinds(at_address("https://wandb.ai/acme/hero/runs/h2", known, 30).happened) == ["tracker_seen"]


def test_the_issue_is_brought_up_to_date_where_the_run_has_one() -> None:
    seen = snapshot(jobs=(job(),), is_first=True)

    def asked_for(surroundings: Context) -> list[tuple[ChannelName, ...]]:
        told = checked(fresh(), seen, surroundings).tell
        return [each.channels for each in told if each.target.slot == RECORD_SLOT]

    assert asked_for(context()) == [(ChannelName.GITHUB,)]
    assert asked_for(context(kind="diagnostic")) == [], "a bounded diagnostic has no record on GitHub"
    assert asked_for(_diagnostic_with_an_issue()) == [(ChannelName.GITHUB,)]
    assert asked_for(_without_github()) == []
    assert kinds(checked(fresh(), seen, context(kind="diagnostic")).happened) == ["launched"]


def _diagnostic_with_an_issue() -> Context:
    surroundings = context(kind="diagnostic")
    named = ChannelsContract(github_issue=4)
    return surroundings.model_copy(update={"contract": surroundings.contract.model_copy(update={"channels": named})})


def _without_github() -> Context:
    return context().model_copy(update={"channels": (ChannelName.SLACK,)})


def test_progress_alone_is_no_news_for_the_record() -> None:
    surroundings = context()
    run = Run(run_id=RUN, state=RunState.RUNNING, last_checked_at=AT, promised=_promised(surroundings))
    before = record(run=run.model_copy(update={"progress": Progress(step=10)}), instances=(instance(),))

    assert checked(before, snapshot(jobs=(job(),), at=later(15), metrics=rows(90, 99)), surroundings).happened == ()
