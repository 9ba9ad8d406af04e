"""A cut-over is carried out once and in order, and is never begun on anything but what was approved."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.actions.steps import EXPIRED
from bot.actions.trial_plans import plan_cutover
from bot.contracts import BadContract
from bot.model.action import STEPS, ActionState, Done, Refused, StepName
from bot.model.conduct import Stage
from bot.model.contract import Contract
from bot.model.job import JobState, TaskState
from bot.model.planned import NoPlan, RelaunchPlan, StopPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.record import Decision
from bot.model.rehearsal import Limits
from bot.model.run import Run
from bot.model.trialplan import CutOverPlan
from bot.model.value import RunId
from bot.redaction import Redactor
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, job, pod
from tests.unit.actions.trial_world import (
    CANNOT_TELL,
    CHILD,
    CHILD_JOB,
    CHILD_ROOT,
    FAILS,
    HANDOFF,
    LIMIT,
    POLL,
    SETTLE,
    Bench,
    a_fork,
    a_trial_plan,
    child_contract,
    old_contract,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Draw no tracebacks: that costs more than the tests."""
    with capture_logs():
        yield


@pytest.fixture
def bench() -> Bench:
    return Bench()


def outcomes(bench: Bench) -> list[tuple[StepName, str]]:
    return [(r.step, r.outcome.kind if r.outcome else "-") for r in bench.action.records]


def refusal(bench: Bench) -> tuple[StepName, Refused]:
    """Return the step that ended the action, and its word."""
    last = bench.action.records[-1]
    assert isinstance(last.outcome, Refused), bench.action
    return last.step, last.outcome


def untouched(bench: Bench) -> bool:
    """Whether nothing at all was changed in the world."""
    return not (bench.world.stops or bench.world.submissions or bench.world.forks)


# The way it should go


async def test_the_old_run_is_forked_stopped_and_the_child_launched_once_in_this_order(bench: Bench) -> None:
    seen: list[tuple[int, int, int]] = []

    def note(_moment: str) -> str:
        seen.append((bench.world.forks, len(bench.world.stops), len(bench.world.submissions)))
        return ""

    bench._touch = note
    await bench.grant_cutover()

    await bench.work()

    assert bench.state() is ActionState.DONE, bench.action.noted
    assert outcomes(bench) == [(step, "done") for step in STEPS["cutover"]]
    assert list(dict.fromkeys(seen)) == [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)]
    assert bench.world.stops == [JOB]
    assert bench.world.submissions == [CHILD]
    assert bench.world.live() == [CHILD_JOB]
    assert bench.world.wrongs == []
    assert "loaded gs://bucket/users/ada/hero-12d8b6f0/checkpoints/step-200" in bench.action.noted


async def test_a_run_without_a_tracker_is_not_forked() -> None:
    bench = Bench(plan=a_trial_plan(fork=None))
    await bench.grant_cutover()

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert bench.world.forks == 0


# The plan


async def test_the_plan_names_both_parts_the_limit_and_who_reviewed_it(bench: Bench) -> None:
    plan = await bench.cutover_plan()

    assert (plan.stop.run_id, plan.stop.stop, plan.stop.instance) == (RUN, JOB, bench.world.found[JOB].instance_id)
    assert (plan.launch.run_id, plan.launch.job_id, plan.launch.resume_from) == (CHILD, CHILD_JOB, None)
    assert (plan.startup_limit_s, plan.startup_limit_source) == (1800, "trainer.progress_watchdog")
    assert plan.review == "bob, 2026-11-29 04:00 UTC"
    assert Redactor().value(plan.model_dump(mode="json")) == plan.model_dump(mode="json")


async def planned(bench: Bench, **changes: Any) -> CutOverPlan | NoPlan:
    record = bench.store.records[RUN]
    promised = bench.world.contracts[RUN]
    assert record.run.trial is not None
    assert isinstance(promised, Contract)
    rehearsal = await bench.world.rehearse(promised, record, record.run.trial.plan)
    says = changes.pop("says", bench.world.says)
    return plan_cutover(rehearsal.model_copy(update=changes), record.run.trial, says, Redactor())


@pytest.mark.parametrize(
    ("says", "is_unknown", "why"),
    [
        ((FAILS, CANNOT_TELL), False, "handoff.complete does not hold: metadata.json is missing"),
        ((CANNOT_TELL,), True, "handoff.complete cannot be told: no answer in 20 s"),
        ((), True, "no guard has looked at it"),
    ],
)
async def test_a_guard_that_does_not_pass_bars_the_plan(bench: Bench, says: Any, *, is_unknown: bool, why: str) -> None:
    made = await planned(bench, says=says)

    assert isinstance(made, NoPlan)
    assert (made.is_unknown, made.reason) == (is_unknown, why)


NO_LIMIT = Known(value=Limits(startup=None, startup_source="", step=None, step_source=""), at=AT)


async def test_without_a_watchdog_the_contract_says_how_long_a_start_up_may_take(bench: Bench) -> None:
    trial = old_contract().trial.model_copy(update={"startup_limit": timedelta(minutes=12)})
    bench.world.contracts[RUN] = old_contract(trial=trial)

    made = await planned(bench, limits=NO_LIMIT)

    assert isinstance(made, CutOverPlan)
    assert made.startup_limit_s == 720
    assert made.startup_limit_source == f"[trial] startup_limit in runs/{RUN}.toml"


@pytest.mark.parametrize(
    ("changes", "is_unknown", "why"),
    [
        ({"limits": NO_LIMIT}, False, "says how long a start-up may take"),
        ({"limits": Unknown(reason=Gap.TIMEOUT, detail="no answer", at=AT)}, True, "start-up limit"),
        ({"review": None}, False, "nobody independent"),
        ({"plan": a_trial_plan(window_steps=20)}, False, "another plan was rehearsed"),
        ({"launch": NoPlan(reason="the source is dirty", fix="", is_unknown=False)}, False, "the source is dirty"),
    ],
)
async def test_what_a_plan_needs_is_not_guessed(bench: Bench, changes: Any, *, is_unknown: bool, why: str) -> None:
    made = await planned(bench, **changes)

    assert isinstance(made, NoPlan)
    assert made.is_unknown is is_unknown
    assert why in made.reason


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"job_id": JOB}, "is the old run's own job"),
        ({"output_root": old_contract().output_root}, "would write where the old run does"),
        ({"run_id": RUN}, "not the agreed child's"),
        ({"stop": CHILD_JOB}, "a job of the child is alive"),
    ],
)
async def test_two_launches_that_are_one_and_the_same_thing_are_no_trial(bench: Bench, change: Any, why: str) -> None:
    launch = (await bench.cutover_plan()).launch.model_copy(update=change)

    made = await planned(bench, launch=launch)

    assert isinstance(made, NoPlan)
    assert why in made.reason


async def test_without_a_live_old_job_there_is_nothing_to_cut_over(bench: Bench) -> None:
    bench.world.end(JOB, JobState.FAILED)

    made = await planned(bench)

    assert isinstance(made, NoPlan)
    assert "there is nothing to stop" in made.reason


# VERIFY: the world between the yes and the deed


async def test_an_expired_yes_begins_nothing(bench: Bench) -> None:
    await bench.grant_cutover(lasts=timedelta(minutes=5))
    bench.clock.advance(timedelta(minutes=6))

    await bench.work()

    assert bench.state() is ActionState.VOID
    assert untouched(bench)


async def test_a_guard_that_fails_by_now_voids_the_yes(bench: Bench) -> None:
    await bench.grant_cutover()
    bench.world.says = (FAILS,)

    await bench.work()

    assert bench.state() is ActionState.VOID
    assert bench.action.noted.endswith("metadata.json is missing; nothing was forked or stopped")
    assert untouched(bench)


async def test_a_guard_that_cannot_tell_is_waited_for(bench: Bench) -> None:
    await bench.grant_cutover()
    passes, bench.world.says = bench.world.says, (CANNOT_TELL,)
    await bench.work(until=lambda: False, polls=10)
    assert bench.state() is ActionState.GRANTED
    assert untouched(bench)
    bench.world.says = passes
    bench.a_new_one()

    await bench.work()

    assert bench.state() is ActionState.DONE


async def test_a_changed_launch_is_said_field_by_field(bench: Bench) -> None:
    await bench.grant_cutover()
    bench.world.contracts[CHILD] = child_contract(source_sha="f" * 40)

    await bench.work()

    assert bench.state() is ActionState.VOID
    assert f"source_sha: none → {'f' * 40}" in bench.action.noted
    assert untouched(bench)


async def test_a_changed_part_beside_the_launch_is_said_too(bench: Bench) -> None:
    await bench.grant_cutover()
    bench.world.limits = Known(
        value=Limits(startup=2 * LIMIT, startup_source="trainer.progress_watchdog", step=None, step_source=""), at=AT
    )

    await bench.work()

    assert "startup_limit_s: 1800 → 3600" in bench.action.noted


async def test_another_trial_than_was_approved_for_is_refused(bench: Bench) -> None:
    await bench.grant_cutover()
    bench.at_stage(Stage.CLOSED)

    await bench.work()

    assert bench.state() is ActionState.VOID
    assert untouched(bench)


# FORK: exactly once


def fail_at(bench: Bench, moment: str, *faults: str) -> None:
    """Let these faults come one after the other at that moment."""
    left = list(faults)
    bench._touch = lambda name: left.pop(0) if name == moment and left else ""


async def test_a_fork_whose_answer_was_lost_is_found_and_not_made_again(bench: Bench) -> None:
    fail_at(bench, "before the fork", "lost")
    await bench.grant_cutover()

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert (bench.world.forks, bench.action.tries[StepName.FORK]) == (1, 1)


async def test_a_fork_that_was_cut_off_is_made_once_more_when_the_tracker_has_long_known_of_none(bench: Bench) -> None:
    fail_at(bench, "before the fork", "cut")
    await bench.grant_cutover()
    begun = bench.clock.monotonic()

    await bench.work(until=lambda: bench.world.forks == 1)

    assert bench.clock.monotonic() - begun >= SETTLE.total_seconds()
    await bench.work()
    assert bench.state() is ActionState.DONE
    assert (bench.world.forks, bench.action.tries[StepName.FORK]) == (1, 2)


async def test_a_fork_that_is_always_cut_off_is_begun_twice_at_most_also_over_restarts(bench: Bench) -> None:
    fail_at(bench, "before the fork", *["cut"] * 9)
    await bench.grant_cutover()
    await bench.work(until=lambda: bench.action.tries.get(StepName.FORK) == 1)
    bench.a_new_one()
    await bench.work(until=lambda: bench.action.tries.get(StepName.FORK) == 2)
    bench.a_new_one()

    await bench.work()

    step, refused = refusal(bench)
    assert step is StepName.FORK
    assert "begun twice" in refused.detail
    assert untouched(bench)


async def test_a_tracker_that_is_away_is_waited_for_until_the_approval_ends(bench: Bench) -> None:
    await bench.grant_cutover(lasts=timedelta(minutes=5))
    bench.world.dark = {"tracker"}

    await bench.work()

    step, refused = refusal(bench)
    assert (step, "the approval has expired" in refused.detail) == (StepName.FORK, True)
    assert untouched(bench)


async def test_what_may_have_been_forked_is_asked_for_as_long_as_it_takes(bench: Bench) -> None:
    await bench.grant_cutover(lasts=timedelta(minutes=5))

    def go_dark(moment: str) -> str:
        if moment == "before the fork":
            bench.world.dark = {"tracker"}
            return "lost"
        return ""

    bench._touch = go_dark
    await bench.work(until=lambda: False, polls=300)
    assert bench.state() is ActionState.GRANTED
    assert bench.action.noted.startswith("whether hero-ep-4be0c0de exists in the tracker cannot be asked")
    bench.world.dark = set()
    bench.a_new_one()

    await bench.work()

    assert bench.world.forks == 1
    assert bench.world.stops == [], "the approval has expired meanwhile, and the old run trains on"


@pytest.mark.parametrize("point", [{"step": 1233}, {"run_id": "another"}])
async def test_another_run_under_the_childs_id_is_not_touched(bench: Bench, point: Any) -> None:
    await bench.grant_cutover()
    bench.world.tracked = a_fork(**point)

    await bench.work()

    step, refused = refusal(bench)
    assert step is StepName.FORK
    assert "it was not touched, and nothing was stopped" in refused.detail
    assert untouched(bench)


async def test_the_very_fork_that_is_there_already_is_gone_on_with(bench: Bench) -> None:
    await bench.grant_cutover()
    bench.world.tracked = a_fork()

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert bench.world.forks == 0


# STOP


async def break_before_the_stop(bench: Bench, change: Any) -> None:
    """Let something happen after the fork, before the old job is told to stop."""

    def happen(moment: str) -> str:
        if moment == "after the fork":
            change()
        return ""

    await bench.grant_cutover()
    bench._touch = happen
    await bench.work()


def lose_the_handoff(bench: Bench) -> None:
    bench.world.saved[RUN] = tuple(each for each in bench.world.saved[RUN] if each != HANDOFF)


def break_the_handoff(bench: Bench) -> None:
    broken = checkpoint(HANDOFF.step, is_complete=False)
    bench.world.saved[RUN] = tuple(broken if each == HANDOFF else each for each in bench.world.saved[RUN])


def change_the_child(bench: Bench) -> None:
    bench.world.contracts[CHILD] = child_contract(source_sha="f" * 40)


def break_the_child(bench: Bench) -> None:
    bench.world.contracts[CHILD] = BadContract(run_id=CHILD, problems=("dri is missing",))


def fill_the_tree(bench: Bench) -> None:
    bench.world.saved[CHILD] = (checkpoint(210, is_complete=False, root=f"{CHILD_ROOT}/checkpoints"),)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lose_the_handoff, "is gone"),
        (break_the_handoff, "is not complete: metadata.json is missing"),
        (change_the_child, "the launch is not the approved one any more"),
        (break_the_child, "dri is missing"),
        (fill_the_tree, "the child's tree is not empty any more"),
    ],
)
async def test_the_old_run_trains_on_when_what_the_child_begins_with_is_not_as_approved(
    bench: Bench, change: Any, why: str
) -> None:
    await break_before_the_stop(bench, lambda: change(bench))

    step, refused = refusal(bench)
    assert step is StepName.STOP
    assert why in refused.detail
    assert refused.detail.endswith("nothing was stopped")
    assert bench.world.stops == []
    assert bench.world.live() == [JOB]


async def test_a_tree_that_cannot_be_read_stops_nothing(bench: Bench) -> None:
    await break_before_the_stop(bench, lambda: bench.world.dark.add("checkpoints"))

    _, refused = refusal(bench)
    assert refused.is_unknown
    assert bench.world.stops == []


async def test_a_namesake_of_the_old_job_is_not_touched(bench: Bench) -> None:
    await break_before_the_stop(bench, lambda: bench.world.arrive(RUN))

    step, refused = refusal(bench)
    assert (step, "it was not touched" in refused.detail) == (StepName.STOP, True)
    assert bench.world.stops == []


async def test_nothing_is_launched_while_a_pod_of_the_old_job_lives(bench: Bench) -> None:
    bench.world.pods_left = (pod(3, node="node-7"),)
    await bench.grant_cutover()

    await bench.work()

    step, refused = refusal(bench)
    assert (step, "1 of its pods still live" in refused.detail) == (StepName.STOP, True)
    assert bench.world.submissions == []


async def test_a_stop_that_comes_after_the_time_for_a_rollback_stops_nothing() -> None:
    bench = Bench(plan=a_trial_plan(rollback_by=AT + timedelta(minutes=30)))
    await break_before_the_stop(bench, lambda: bench.clock.advance(timedelta(minutes=31)))

    step, refused = refusal(bench)
    assert (step, refused.detail) == (StepName.STOP, "the time for a rollback is over; nothing was stopped")
    assert (bench.world.stops, bench.world.live()) == ([], [JOB])


async def test_an_old_job_that_vanishes_unseen_is_no_job_that_has_ended(bench: Bench) -> None:
    await break_before_the_stop(bench, lambda: bench.world.found.pop(JOB))

    step, refused = refusal(bench)
    assert (step, refused.is_unknown, bench.world.submissions) == (StepName.STOP, True, [])
    assert f"the orchestrator shows no {JOB} any more, and nobody saw it end" in refused.detail


@pytest.mark.parametrize("is_crash", [True, False])
async def test_an_old_job_that_crashed_before_it_was_told_to_stop_is_told_from_one_that_was(
    bench: Bench, *, is_crash: bool
) -> None:
    await break_before_the_stop(bench, lambda: bench.world.end(JOB, JobState.FAILED) if is_crash else None)

    stopped = bench.action.record(StepName.STOP)
    assert stopped is not None
    assert isinstance(stopped.outcome, Done)
    assert ("had ended by itself before it was told to stop" in stopped.outcome.detail) is is_crash
    assert bench.world.stops == ([] if is_crash else [JOB])


async def test_a_task_that_was_told_to_end_is_seen_to_have(bench: Bench) -> None:
    """Facts of Iris: a cancelled job is KILLED at once, its process lives on for a second or two."""
    submitted: list[int] = []

    def linger(moment: str) -> str:
        if moment == "after the stop":
            old = bench.world.found[JOB]
            assert isinstance(old.tasks, Known)
            slow = tuple(each.model_copy(update={"finished_at": None}) for each in old.tasks.value)
            bench.world.found[JOB] = old.model_copy(update={"tasks": Known(value=slow, at=AT)})
        return ""

    bench._touch = linger
    await bench.grant_cutover()
    await bench.work(until=lambda: bool(bench.world.stops), polls=10)
    await bench.work(until=lambda: False, polls=5)
    submitted.append(len(bench.world.submissions))
    bench.world.end(JOB)

    await bench.work()

    assert submitted == [0]
    assert bench.state() is ActionState.DONE


# SUBMIT: the old run is stopped, and nothing trains


async def break_before_the_launch(bench: Bench, change: Any) -> None:
    def happen(moment: str) -> str:
        if moment == "after the stop":
            change()
        return ""

    await bench.grant_cutover()
    bench._touch = happen
    await bench.work()


def want_it_back(bench: Bench) -> None:
    record = bench.store.records[RUN]
    assert record.run.trial is not None
    wanted = record.run.trial.model_copy(update={"rollback_wanted_by": "ada"})
    bench.store.records[RUN] = record.model_copy(update={"run": Run(run_id=RUN, trial=wanted)})


def hand_launch(bench: Bench) -> None:
    bench.world.beside[RUN] = (job(job_id="/me/hero-coord-2"),)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lose_the_handoff, "is gone"),
        (change_the_child, "the contract has changed since the approval"),
        (break_the_child, "dri is missing"),
        (fill_the_tree, "the child's tree is not empty any more"),
        (want_it_back, "a rollback was asked for; the child was not launched"),
        (hand_launch, "/me/hero-coord-2 lives; nothing is launched beside it"),
    ],
)
async def test_a_child_that_may_not_be_launched_is_not_and_it_is_said_that_nothing_trains(
    bench: Bench, change: Any, why: str
) -> None:
    await break_before_the_launch(bench, lambda: change(bench))

    step, refused = refusal(bench)
    assert step is StepName.SUBMIT
    assert why in refused.detail
    assert refused.detail.endswith("the old run is stopped, and nothing trains in its place")
    assert bench.world.submissions == []
    assert bench.world.live() == []


@pytest.mark.parametrize("what", [RUN, CHILD, "checkpoints", "neighbours"])
async def test_nothing_is_launched_on_an_unknown(bench: Bench, what: str) -> None:
    await bench.grant_cutover()
    went = False

    def go_dark(moment: str) -> str:
        nonlocal went
        if moment == "after a commit" and bench.action.next_step is StepName.SUBMIT and not went:
            went = True
            bench.world.dark = {what}
        return ""

    bench._touch = go_dark
    await bench.work(until=lambda: False, polls=100)
    assert bench.state() is ActionState.GRANTED
    assert bench.world.submissions == []
    bench.world.dark = set()

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert bench.world.submissions == [CHILD]


async def test_a_lost_answer_is_looked_up_and_the_child_adopted(bench: Bench) -> None:
    fail_at(bench, "before the submission", "lost")
    await bench.grant_cutover()

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert bench.world.submissions == [CHILD]


async def test_a_rollback_that_is_wanted_while_nobody_answers_is_possible_as_soon_as_somebody_does(
    bench: Bench,
) -> None:
    faults = ["cut"]

    def go_dark(moment: str) -> str:
        if moment != "before the submission":
            return ""
        bench.world.dark = {CHILD}
        return faults.pop()

    bench._touch = go_dark
    await bench.grant_cutover()
    await bench.work(polls=100)
    want_it_back(bench)
    await bench.work(polls=100)
    assert bench.state() is ActionState.GRANTED, "it may still arrive"
    bench.world.dark = set()

    await bench.work()

    step, refused = refusal(bench)
    assert (step, "a rollback was asked for" in refused.detail) == (StepName.SUBMIT, True)
    assert bench.world.submissions == [CHILD], "the one that was cut off"


async def test_a_submission_is_not_asked_for_where_a_changed_contract_points(bench: Bench) -> None:
    good = bench.world.contracts[CHILD]

    def change(moment: str) -> str:
        if moment == "after the submission":
            change_the_child(bench)
            hidden.append(bench.world.found.pop(CHILD_JOB))
            return "lost"
        return "lost" if moment == "before the submission" else ""

    hidden: list[Any] = []
    bench._touch = change
    await bench.grant_cutover()
    await bench.work(polls=200)
    assert bench.state() is ActionState.GRANTED
    assert "the child's contract was changed since its launch: undo that" in bench.action.noted
    bench.world.contracts[CHILD] = good
    bench.world.found[CHILD_JOB] = hidden[0]

    await bench.work()

    assert bench.state() is ActionState.DONE, bench.action.noted
    assert bench.world.submissions == [CHILD]


async def test_a_child_is_not_watched_by_another_contract_than_it_was_launched_with(bench: Bench) -> None:
    await bench.grant_cutover()
    await bench.work(until=lambda: bench.action.next_step is StepName.CONFIRM)
    change_the_child(bench)
    bench.a_new_one()

    await bench.work()

    _, refused = refusal(bench)
    assert (refused.is_unknown, "was changed since its launch" in refused.detail) == (True, True)


async def test_an_old_contract_that_breaks_after_the_stop_does_not_end_the_cut_over(bench: Bench) -> None:
    good = bench.world.contracts[RUN]
    await bench.grant_cutover()
    await bench.work(until=lambda: bench.action.next_step is StepName.SUBMIT)
    assert bench.action.record(StepName.SUBMIT) is None
    bench.world.contracts[RUN] = BadContract(run_id=RUN, problems=("dri is missing",))
    bench.a_new_one()
    await bench.work(polls=20)
    assert bench.state() is ActionState.GRANTED
    bench.world.contracts[RUN] = good

    await bench.work()

    assert bench.state() is ActionState.DONE, bench.action.noted


async def test_an_adopted_child_is_not_refused_for_what_it_has_written_since(bench: Bench) -> None:
    """What bars a submission is asked before one, and not of one that has happened."""
    fail_at(bench, "before the submission", "lost")
    await bench.grant_cutover()
    await bench.work(until=lambda: bench.world.submissions == [CHILD])
    fill_the_tree(bench)
    bench.a_new_one()

    await bench.work()

    assert bench.state() is ActionState.DONE


async def test_a_child_that_somebody_else_has_launched_is_not_adopted(bench: Bench) -> None:
    await break_before_the_launch(bench, lambda: bench.world.arrive(CHILD))

    step, refused = refusal(bench)
    assert (step, "somebody else has launched" in refused.detail) == (StepName.SUBMIT, True)
    assert bench.world.submissions == []


async def test_a_yes_that_runs_out_after_the_stop_launches_nothing(bench: Bench) -> None:
    await bench.grant_cutover()

    def sleep(moment: str) -> str:
        if moment == "after the stop":
            bench.clock.jump(timedelta(hours=4))
        return ""

    bench._touch = sleep

    await bench.work()

    step, refused = refusal(bench)
    assert (step, EXPIRED in refused.detail, refused.is_unknown) == (StepName.SUBMIT, True, False)
    assert bench.world.submissions == []


async def test_a_yes_that_runs_out_while_the_childs_orchestrator_is_dark_shows_nothing_to_be_wrong(
    bench: Bench,
) -> None:
    await bench.grant_cutover(lasts=timedelta(minutes=5))

    def go_dark(moment: str) -> str:
        if moment == "after the stop":
            bench.world.dark = {CHILD}
        return ""

    bench._touch = go_dark
    await bench.work(until=lambda: bench.clock.now() > AT + timedelta(minutes=10))
    assert bench.action.next_step is StepName.SUBMIT
    bench.world.dark = set()

    await bench.work()

    step, refused = refusal(bench)
    assert (step, EXPIRED in refused.detail, refused.is_unknown) == (StepName.SUBMIT, True, True)
    assert bench.world.submissions == []


# CONFIRM, STABILISE, RESTORE: the child's first minutes


async def after_the_launch(bench: Bench, change: Any) -> None:
    def happen(moment: str) -> str:
        if moment == "after the submission":
            change()
        return ""

    await bench.grant_cutover()
    bench._touch = happen
    await bench.work()


async def test_an_old_run_that_comes_back_ends_it_with_a_word_that_names_both(bench: Bench) -> None:
    await after_the_launch(bench, lambda: hand_launch(bench))

    _, refused = refusal(bench)
    assert refused.detail == (
        f"the old run and the child both live: /me/hero-coord-2 and {CHILD_JOB}; stop one by hand now"
    )


async def test_the_childs_own_jobs_are_no_second_coordinator_of_the_old_run(bench: Bench) -> None:
    def show() -> None:
        bench.world.beside[RUN] = (job(job_id=CHILD_JOB), job(job_id=f"{CHILD_JOB}/train"))

    await after_the_launch(bench, show)

    assert bench.state() is ActionState.DONE


@pytest.mark.parametrize("ended", [TaskState.FAILED, TaskState.PREEMPTED])
async def test_any_retry_ends_a_quiet_trial(bench: Bench, ended: TaskState) -> None:
    await after_the_launch(bench, lambda: bench.world.retry(ended))

    _, refused = refusal(bench)
    assert refused.detail.startswith(f"retry of {CHILD_JOB}/0")


@pytest.mark.parametrize(("ended", "state"), [(TaskState.PREEMPTED, "done"), (TaskState.FAILED, "failed")])
async def test_where_it_need_not_be_quiet_only_a_failure_of_its_own_ends_it(ended: TaskState, state: str) -> None:
    bench = Bench(plan=a_trial_plan(quiet=False))

    await after_the_launch(bench, lambda: bench.world.retry(ended))

    assert bench.state() == state


async def test_a_crash_below_a_coordinator_that_goes_on_ends_it(bench: Bench) -> None:
    crashed = job(JobState.FAILED, job_id=f"{CHILD_JOB}/train", parent=CHILD_JOB, error="boom")
    original = bench.world.jobs

    async def jobs(promised: Contract, job_id: Any) -> Any:
        found = await original(promised, job_id)
        if isinstance(found, Known) and job_id == CHILD_JOB and found.value:
            return Known(value=(*found.value, crashed), at=found.at)
        return found

    bench.world.jobs = jobs  # type: ignore[method-assign]
    await bench.grant_cutover()

    await bench.work()

    _, refused = refusal(bench)
    assert refused.detail == f"{CHILD_JOB}/train is failed: boom; a trial waits for no further attempt"


@pytest.mark.parametrize(
    ("loads", "steps"),
    [
        (f"{old_contract().output_root}/checkpoints/step-300", (300,)),
        (HANDOFF.path, (0, 1)),
    ],
)
async def test_a_child_that_began_elsewhere_is_not_the_approved_lineage(bench: Bench, loads: str, steps: Any) -> None:
    bench.world.loads[CHILD] = loads
    bench.world.steps[CHILD] = steps
    await bench.grant_cutover()

    await bench.work()

    step, refused = refusal(bench)
    assert (step, "the lineage is not what was approved" in refused.detail) == (StepName.RESTORE, True)


async def test_a_start_up_is_no_hang_before_its_own_limit_and_is_one_after_it(bench: Bench) -> None:
    bench.world.steps[CHILD] = ()
    await bench.grant_cutover()
    limit_polls = int(LIMIT / POLL)

    await bench.work(until=lambda: False, polls=limit_polls - 2)
    assert bench.state() is ActionState.GRANTED, bench.action.noted
    assert bench.action.next_step is StepName.RESTORE
    await bench.work(polls=20)

    step, refused = refusal(bench)
    assert step is StepName.RESTORE
    assert refused.detail.startswith("the start-up hangs: it has not entered its training loop 30 min")
    assert not refused.is_unknown


async def test_a_start_up_that_nobody_can_see_is_no_hang_and_ends_as_unknown(bench: Bench) -> None:
    bench.world.steps[CHILD] = ()
    await after_the_launch(bench, lambda: bench.world.dark.add("metrics"))
    assert bench.state() is ActionState.GRANTED

    await bench.work(polls=1000)

    step, refused = refusal(bench)
    assert (step, refused.is_unknown) == (StepName.RESTORE, True)
    assert "its metrics cannot be read" in refused.detail


async def test_a_child_that_waits_for_its_machines_does_not_hang(bench: Bench) -> None:
    bench.world.steps[CHILD] = ()

    def queue() -> None:
        waiting = bench.world.found[CHILD_JOB].model_copy(update={"tasks": Known(value=(), at=AT)})
        bench.world.found[CHILD_JOB] = waiting

    await after_the_launch(bench, queue)
    await bench.work(polls=int(LIMIT / POLL))

    assert bench.state() is ActionState.GRANTED


async def test_a_child_whose_contract_broke_is_still_looked_after(bench: Bench) -> None:
    await after_the_launch(bench, lambda: break_the_child(bench))

    _, refused = refusal(bench)
    assert refused.is_unknown


# Two runs, one action


async def test_no_action_of_the_child_is_carried_out_beside_one_that_touches_it(bench: Bench) -> None:
    plan = await bench.cutover_plan()
    bench.grant(plan)
    bench.grant(plan.launch)
    most = count_at_once(bench)

    await bench.work(until=lambda: bench.state() is not ActionState.GRANTED)

    assert max(most) == 1
    assert bench.world.submissions == [CHILD]


@pytest.mark.parametrize("first", [RUN, CHILD])
async def test_the_two_runs_of_a_closed_trial_are_not_launched_at_the_same_time(bench: Bench, first: RunId) -> None:
    """Each launch would find that the other has no job yet, and both would train."""
    await bench.after_cutover()
    forth = bench.action.relaunch
    back = await bench.rollback_plan()
    assert isinstance(back.launch, RelaunchPlan)
    bench.at_stage(Stage.CLOSED)
    for plan in sorted((back.launch, forth), key=lambda each: each.run_id != first):
        bench.grant(plan)
    most = count_at_once(bench)

    await bench.work()

    assert max(most) == 1
    assert bench.executor._busy == {}


async def test_a_stop_of_the_other_run_does_not_wait_for_a_launch(bench: Bench) -> None:
    await bench.after_cutover()
    back = await bench.rollback_plan()
    assert isinstance(back.launch, RelaunchPlan)
    launch = bench.grant(back.launch)
    stop = launch.model_copy(
        update={"run_id": CHILD, "plan": StopPlan(run_id=CHILD, stop=CHILD_JOB, instance=str(CHILD_JOB))}
    )

    assert not await bench.executor._claims(launch) & await bench.executor._claims(stop)


def count_at_once(bench: Bench) -> list[int]:
    """Return a list that grows by how many actions are under way, whenever anything is asked of the world."""
    counts: list[int] = []

    def count(_moment: str) -> str:
        counts.append(len(set(bench.executor._busy.values())))
        return ""

    bench._touch = count
    return counts


async def test_what_a_crash_left_unfinished_comes_before_what_was_not_begun(bench: Bench) -> None:
    plan = await bench.cutover_plan()
    waiting = bench.grant(plan.launch)
    begun = bench.grant(plan)
    await bench.store.apply(Decision(actions=(begun.begun(StepName.VERIFY, AT),)), RUN, AT)
    assert waiting.number < begun.number

    await bench.work(until=lambda: bench.state() is not ActionState.GRANTED)

    assert bench.state() is ActionState.DONE
    assert bench.world.stops == [JOB]


async def test_a_relaunch_of_a_run_on_trial_is_refused_whatever_was_approved(bench: Bench) -> None:
    plan = await bench.cutover_plan()
    bench.grant(plan.launch)
    child = bench.store.records[CHILD]
    on_trial = {"trial_of": RUN, "trial_stage": Stage.OLD_STOPPED}
    bench.store.records[CHILD] = child.model_copy(update=on_trial)

    await bench.work(until=lambda: bench.store.records[CHILD].actions[-1].state is not ActionState.GRANTED)

    assert "only the cut-over launches it" in bench.store.records[CHILD].actions[-1].noted
    assert bench.world.submissions == []
