"""The way back is carried out once: the child ended and seen gone, the old run launched where it ended, no fork."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.actions.relaunch import plan_relaunch
from bot.contracts import BadContract
from bot.model.action import STEPS, ActionState, Refused, StepName
from bot.model.conduct import Stage
from bot.model.contract import Contract
from bot.model.job import JobState
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.preflight import PreflightFinding, PreflightReport, Weight
from bot.model.reading import Known
from bot.model.record import Record
from bot.model.run import Run
from bot.model.trialplan import RollbackPlan
from bot.redaction import Redactor
from checks.preflight.paired import PAIRED
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, instance, job, pod
from tests.unit.actions.trial_world import (
    CHILD,
    CHILD_JOB,
    CHILD_ROOT,
    HANDOFF,
    LATER,
    Bench,
    N,
    child_contract,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
async def bench() -> Bench:
    """Return a world in which the child has taken the old run's place."""
    bench = Bench()
    await bench.after_cutover()
    return bench


async def planned(bench: Bench) -> RollbackPlan | NoPlan:
    promised = bench.world.contracts[RUN]
    assert isinstance(promised, Contract)
    return await bench.planner.plan(promised, bench.store.records[RUN])


def refusal(bench: Bench) -> tuple[StepName, Refused]:
    last = bench.action.records[-1]
    assert isinstance(last.outcome, Refused), bench.action
    return last.step, last.outcome


# The way it should go


async def test_the_child_is_ended_and_the_old_run_launched_once_where_it_ended(bench: Bench) -> None:
    order: list[tuple[int, int]] = []

    def note(_moment: str) -> str:
        order.append((len(bench.world.stops), len(bench.world.submissions)))
        return ""

    bench._touch = note
    await bench.grant_rollback()

    await bench.work()

    assert bench.state() is ActionState.DONE, bench.action.noted
    assert [(r.step, r.outcome.kind if r.outcome else "-") for r in bench.action.records] == [
        (step, "done") for step in STEPS["rollback"]
    ]
    assert list(dict.fromkeys(order)) == [(1, 1), (2, 1), (2, 2)]
    assert bench.world.stops == [JOB, CHILD_JOB]
    assert bench.world.submissions == [CHILD, RUN]
    assert bench.world.live() == [JOB]
    assert bench.world.forks == 1, "that of the cut-over"
    assert bench.world.wrongs == []


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_child_that_has_ended_or_was_never_launched_needs_no_stop(bench: Bench, *, is_known: bool) -> None:
    bench.world.end(CHILD_JOB, JobState.FAILED)
    if not is_known:
        del bench.world.found[CHILD_JOB]

    plan = await bench.rollback_plan()
    bench.grant(plan)
    await bench.work()

    assert plan.stop is None
    assert bench.state() is ActionState.DONE
    assert bench.world.stops == [JOB]


# The plan


async def test_the_plan_is_the_old_runs_own_launch(bench: Bench) -> None:
    plan = await bench.rollback_plan()

    assert plan.stop is not None
    assert plan.launch is not None
    assert (plan.stop.run_id, plan.stop.instance) == (CHILD, bench.world.found[CHILD_JOB].instance_id)
    assert (plan.launch.run_id, plan.launch.job_id, plan.launch.stop) == (RUN, JOB, None)
    assert plan.launch.resume_from is not None
    assert plan.launch.resume_from.path == LATER.path
    assert Redactor().value(plan.model_dump(mode="json")) == plan.model_dump(mode="json")


def the_old_lives(bench: Bench) -> None:
    bench.world.found[JOB] = job()


def only_the_old_lives(bench: Bench) -> None:
    the_old_lives(bench)
    bench.world.end(CHILD_JOB, JobState.FAILED)


def the_old_lives_twice(bench: Bench) -> None:
    the_old_lives(bench)
    bench.world.beside[RUN] = (job(job_id=f"{JOB}-2"),)


def the_childs_contract_was_changed(bench: Bench) -> None:
    """And what shows its jobs now knows none."""
    bench.world.contracts[CHILD] = child_contract(checkout="/elsewhere")
    del bench.world.found[CHILD_JOB]


def the_child_is_asked_elsewhere(bench: Bench) -> None:
    bench.world.contracts[CHILD] = child_contract(orchestrator={"kind": "iris", "job_id": "/me/another"})
    del bench.world.found[CHILD_JOB]


def the_child_is_dark(bench: Bench) -> None:
    bench.world.dark = {CHILD}


def the_childs_contract_broke(bench: Bench) -> None:
    bench.world.contracts[CHILD] = BadContract(run_id=CHILD, problems=("dri is missing",))


def the_child_lives_twice(bench: Bench) -> None:
    bench.world.beside[CHILD] = (job(job_id=f"{CHILD_JOB}-2"),)


def the_tree_is_lost(bench: Bench) -> None:
    bench.world.saved[RUN] = (checkpoint(N - 100),)


def the_tree_is_dark(bench: Bench) -> None:
    bench.world.dark = {"checkpoints"}


def the_child_wrote_into_the_tree(bench: Bench) -> None:
    late = checkpoint(400, saved_at=bench.clock.now() + timedelta(minutes=20))
    bench.world.saved[RUN] = (HANDOFF, LATER, late)


def the_trees_are_mixed(bench: Bench) -> None:
    bench.world.saved[RUN] = (HANDOFF, LATER, checkpoint(400, root=f"{CHILD_ROOT}/checkpoints"))


def the_trial_is_over(bench: Bench) -> None:
    bench.at_stage(Stage.CLOSED)


@pytest.mark.parametrize(
    ("change", "is_unknown", "why"),
    [
        (only_the_old_lives, False, "there is nothing to roll back"),
        (the_old_lives_twice, False, f"several jobs of {RUN} are alive beside the child: {JOB}, {JOB}-2"),
        (the_childs_contract_was_changed, True, "the child's contract was changed since its launch"),
        (the_child_is_asked_elsewhere, True, "the child's contract was changed since its launch"),
        (the_child_is_dark, True, f"whether a job of {CHILD} is alive is not known"),
        (the_childs_contract_broke, True, "dri is missing"),
        (the_child_lives_twice, False, f"several jobs of {CHILD} are alive: {CHILD_JOB}, {CHILD_JOB}-2"),
        (the_tree_is_lost, False, "the old run has lost its checkpoint of step 200"),
        (the_tree_is_dark, True, "the checkpoints cannot be verified"),
        (the_child_wrote_into_the_tree, False, "is not the old run's own checkpoint"),
        (the_trees_are_mixed, False, "is not the old run's own checkpoint"),
        (the_trial_is_over, False, "no trial that is under way"),
    ],
)
async def test_what_stands_in_the_way_is_named_and_nothing_is_guessed(
    bench: Bench, change: Any, *, is_unknown: bool, why: str
) -> None:
    change(bench)

    made = await planned(bench)

    assert isinstance(made, NoPlan)
    assert (made.is_unknown, why in made.reason) == (is_unknown, True), made.reason


async def test_what_the_old_job_saved_at_its_end_is_its_own(bench: Bench) -> None:
    ended = bench.world.found[JOB].finished_at
    assert ended is not None
    last = checkpoint(400, saved_at=ended + timedelta(seconds=30))
    bench.world.saved[RUN] = (HANDOFF, LATER, last)

    plan = await bench.rollback_plan()

    assert plan.launch is not None
    assert plan.launch.resume_from is not None
    assert plan.launch.resume_from.path == last.path


UNSEEN = f"the orchestrator shows no {CHILD_JOB}, and nobody saw it end: see that it trains nowhere"


async def test_a_child_that_vanished_is_said_to_be_unseen_and_is_launched_beside_on_a_yes_to_that_alone(
    bench: Bench,
) -> None:
    clear = await bench.rollback_plan()
    del bench.world.found[CHILD_JOB]

    plan = await bench.rollback_plan()
    bench.grant(plan)
    await bench.work()

    assert (clear.unseen, plan.unseen, plan.stop) == ("", UNSEEN, None)
    assert bench.state() is ActionState.DONE, "it is rebuilt as it was asked"


@pytest.mark.parametrize("ended_after", [timedelta(minutes=1), -timedelta(hours=1)])
async def test_a_child_whose_end_is_on_record_may_vanish(bench: Bench, ended_after: timedelta) -> None:
    launched = bench.world.found.pop(CHILD_JOB)
    of_child = instance().model_copy(
        update={"run_id": CHILD, "job_id": CHILD_JOB, "ended_at": launched.submitted_at + ended_after}
    )
    bench.store.records[CHILD] = Record(run=Run(run_id=CHILD), instances=(of_child,))

    plan = await bench.rollback_plan()

    assert plan.unseen == ("" if ended_after > timedelta() else UNSEEN), "what ended before was another launch"


async def test_a_child_that_was_never_submitted_is_not_looked_for_and_needs_no_contract() -> None:
    """Its contract was deleted between the stop of the old run and its launch."""
    bench = Bench()

    def break_it(moment: str) -> str:
        if moment == "after the stop":
            the_childs_contract_broke(bench)
        return ""

    bench._touch = break_it
    await bench.grant_cutover()
    await bench.work()
    assert (bench.state(), bench.world.submissions) == (ActionState.FAILED, [])
    bench.at_stage(Stage.NO_GO)

    plan = await bench.rollback_plan()
    bench.grant(plan)
    await bench.work()

    assert (plan.stop, plan.unseen) == (None, "")
    assert bench.state() is ActionState.DONE, bench.action.noted
    assert (bench.world.submissions, bench.world.live(), bench.world.wrongs) == ([RUN], [JOB], [])


async def test_an_old_run_that_lives_already_is_left_as_it_is_and_the_child_alone_is_stopped(bench: Bench) -> None:
    the_old_lives(bench)

    plan = await bench.rollback_plan()
    bench.grant(plan)
    await bench.work()

    assert (plan.launch, plan.keeps) == (None, bench.world.found[JOB].instance_id)
    assert plan.parts == (plan.stop,)
    assert bench.state() is ActionState.DONE, bench.action.noted
    assert [r.step for r in bench.action.records] == list(STEPS["rollback"])
    said = {r.step: r.outcome.detail for r in bench.action.records if r.outcome}
    assert said[StepName.SUBMIT] == f"the old run's job {plan.keeps} lives already; it is not launched"
    assert said[StepName.CONFIRM] == f"exactly one live job: {plan.keeps}"
    assert (bench.world.stops, bench.world.submissions, bench.world.live()) == ([JOB, CHILD_JOB], [CHILD], [JOB])
    assert Redactor().value(plan.model_dump(mode="json")) == plan.model_dump(mode="json")
    assert RollbackPlan.model_validate_json(plan.model_dump_json()) == plan


async def test_an_old_run_that_was_left_as_it_is_and_ended_meanwhile_is_asked_about_anew(bench: Bench) -> None:
    the_old_lives(bench)
    await at(bench, "after the stop", lambda bench: bench.world.end(JOB))

    step, refused = refusal(bench)
    assert (step, refused.asks_anew) == (StepName.CONFIRM, True)
    assert "does not live any more; the old run is not launched, and nothing trains" in refused.detail


# VERIFY


async def test_an_expired_yes_begins_nothing(bench: Bench) -> None:
    await bench.grant_rollback(lasts=timedelta(minutes=5))
    bench.clock.advance(timedelta(minutes=6))

    await bench.work()

    assert bench.state() is ActionState.VOID
    assert bench.world.stops == [JOB]


@pytest.mark.parametrize("change", [the_old_lives, the_tree_is_lost])
async def test_a_world_that_changed_since_is_asked_about_anew(bench: Bench, change: Any) -> None:
    await bench.grant_rollback()
    change(bench)

    await bench.work()

    step, refused = refusal(bench)
    assert (step, refused.asks_anew) == (StepName.VERIFY, True)
    assert bench.world.stops == [JOB]


async def test_a_child_that_was_launched_again_meanwhile_is_said_and_asked_about_anew(bench: Bench) -> None:
    await bench.grant_rollback()
    bench.clock.advance(timedelta(minutes=1))
    bench.world.end(CHILD_JOB, JobState.FAILED)
    bench.world.arrive(CHILD)

    await bench.work()

    step, refused = refusal(bench)
    assert (step, refused.asks_anew) == (StepName.VERIFY, True)
    assert f"stop: {CHILD_JOB}@2026" in refused.detail
    assert bench.world.stops == [JOB]


async def test_a_child_that_cannot_be_read_is_waited_for(bench: Bench) -> None:
    await bench.grant_rollback()
    the_child_is_dark(bench)
    await bench.work(until=lambda: False, polls=20)
    assert bench.state() is ActionState.GRANTED
    bench.world.dark = set()

    await bench.work()

    assert bench.state() is ActionState.DONE


# STOP and SUBMIT


async def at(bench: Bench, moment: str, change: Any) -> None:
    """Let something happen at a moment of the rollback."""

    def happen(name: str) -> str:
        if name == moment:
            change(bench)
        return ""

    await bench.grant_rollback()
    bench._touch = happen
    await bench.work()


async def test_nothing_is_launched_while_a_pod_of_the_child_lives(bench: Bench) -> None:
    await bench.grant_rollback()
    bench.world.pods_left = (pod(3, node="node-7", job_id=CHILD_JOB),)

    await bench.work()

    step, refused = refusal(bench)
    assert (step, "1 of its pods still live" in refused.detail) == (StepName.STOP, True)
    assert bench.world.submissions == [CHILD]


async def test_a_job_of_the_child_that_appears_where_none_was_is_not_run_beside(bench: Bench) -> None:
    bench.world.end(CHILD_JOB, JobState.FAILED)
    await bench.grant_rollback()

    def happen(_name: str) -> str:
        verified = bench.action.record(StepName.VERIFY)
        if verified is not None and verified.is_done and CHILD_JOB not in bench.world.live():
            bench.world.arrive(CHILD)
        return ""

    bench._touch = happen

    await bench.work()

    step, refused = refusal(bench)
    assert (step, refused.asks_anew) == (StepName.STOP, True)
    assert bench.world.submissions == [CHILD]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (the_tree_is_lost, "resume_from: step 300"),
        (the_child_lives_twice, f"{CHILD_JOB}-2 lives; nothing is launched beside it"),
    ],
)
async def test_an_old_run_that_may_not_be_launched_is_not_and_it_is_said_that_nothing_trains(
    bench: Bench, change: Any, why: str
) -> None:
    await at(bench, "after the stop", change)

    step, refused = refusal(bench)
    assert step is StepName.SUBMIT
    assert why in refused.detail
    assert refused.detail.endswith("the old run is not launched, and nothing trains in its place")
    assert bench.world.submissions == [CHILD]
    assert bench.world.live() == []


async def test_a_child_that_vanishes_before_it_was_told_to_end_is_no_child_that_ended(bench: Bench) -> None:
    def happen(_moment: str) -> str:
        verified = bench.action.record(StepName.VERIFY)
        if verified is not None and verified.is_done:
            bench.world.found.pop(CHILD_JOB, None)
        return ""

    await bench.grant_rollback()
    bench._touch = happen
    await bench.work()

    step, refused = refusal(bench)
    assert (step, refused.detail, refused.asks_anew) == (StepName.STOP, UNSEEN, True)
    assert bench.world.submissions == [CHILD]


@pytest.mark.parametrize("polls", [50, 400])
async def test_an_old_contract_that_breaks_half_way_is_waited_for_and_given_up_as_unknown(
    bench: Bench, polls: int
) -> None:
    good = bench.world.contracts[RUN]
    await bench.grant_rollback()
    await bench.work(until=lambda: bench.action.next_step is StepName.SUBMIT)
    assert bench.action.record(StepName.SUBMIT) is None
    bench.world.contracts[RUN] = BadContract(run_id=RUN, problems=("dri is missing",))
    bench.a_new_one()

    await bench.work(polls=polls)

    if polls == 50:
        assert bench.state() is ActionState.GRANTED
        bench.world.contracts[RUN] = good
        await bench.work()
        assert bench.state() is ActionState.DONE, bench.action.noted
        return
    step, refused = refusal(bench)
    assert (step, refused.is_unknown, bench.world.submissions) == (StepName.SUBMIT, True, [CHILD])


@pytest.mark.parametrize(
    "change",
    [the_child_is_dark, the_tree_is_dark, the_childs_contract_broke, the_childs_contract_was_changed],
)
async def test_nothing_is_launched_on_an_unknown(bench: Bench, change: Any) -> None:
    good = bench.world.contracts[CHILD]
    await bench.grant_rollback()
    await bench.work(until=lambda: bench.action.next_step is StepName.SUBMIT)
    shown = dict(bench.world.found)
    change(bench)
    bench.a_new_one()
    await bench.work(until=lambda: False, polls=50)
    assert bench.state() is ActionState.GRANTED
    assert bench.world.submissions == [CHILD]
    bench.world.dark = set()
    bench.world.contracts[CHILD] = good
    bench.world.found = shown

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert bench.world.submissions == [CHILD, RUN]


async def test_a_lost_answer_is_looked_up_and_the_old_run_adopted(bench: Bench) -> None:
    left = ["lost"]
    bench._touch = lambda name: left.pop() if name == "before the submission" and left else ""
    await bench.grant_rollback()

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert bench.world.submissions == [CHILD, RUN]


async def test_a_child_that_comes_back_beside_the_old_run_is_said_to_be_a_second_one(bench: Bench) -> None:
    await at(bench, "after the submission", the_child_lives_twice)

    _, refused = refusal(bench)
    assert refused.detail == f"the old run and the child both live: {CHILD_JOB}-2 and {JOB}; stop one by hand now"


async def test_an_old_run_that_loads_something_else_is_not_what_was_approved(bench: Bench) -> None:
    bench.world.loads[RUN] = HANDOFF.path
    await bench.grant_rollback()

    await bench.work()

    step, refused = refusal(bench)
    assert (step, "the lineage is not what was approved" in refused.detail) == (StepName.RESTORE, True)


async def test_the_child_of_a_cut_over_whose_submission_is_not_on_record_is_found(bench: Bench) -> None:
    """A cut-over that failed after its submission leaves a job of which the child's own record knows nothing."""
    assert CHILD not in bench.store.records
    asked: list[Any] = []
    original = bench.world.read

    async def read(promised: Contract, launch: Any, cursor: str, past: Any = ()) -> Any:
        if promised.run_id == CHILD:
            asked.append((launch.job_id, past))
        return await original(promised, launch, cursor, past)

    bench.world.read = read  # type: ignore[method-assign,assignment]

    await bench.rollback_plan()

    assert asked == [(CHILD_JOB, (CHILD_JOB,))]


def test_the_made_up_world_notes_two_live_coordinators() -> None:
    """The fake that other tests rely on can fail."""
    bench = Bench()
    bench.world.arrive(CHILD)

    assert bench.world.wrongs == [f"two live coordinators: ['{JOB}', '{CHILD_JOB}']"]
    assert isinstance(bench.world.found[JOB].tasks, Known)
    assert bench.clock.now() == AT


# The other run, beside an ordinary launch

BESIDE = PreflightFinding(check=PAIRED.id, weight=Weight.BLOCKS, message=f"{CHILD} lives", fix="end it first")


async def test_a_rollback_ends_the_other_run_by_itself_and_is_not_barred_by_it(bench: Bench) -> None:
    clear = await bench.rollback_plan()
    bench.world.checklist = PreflightReport(values=(), findings=(BESIDE,))

    assert await bench.rollback_plan() == clear


@pytest.mark.parametrize("moment", [StepName.VERIFY, StepName.SUBMIT])
async def test_an_ordinary_relaunch_is_not_made_beside_the_other_run_of_a_trial_that_is_over(
    bench: Bench, moment: StepName
) -> None:
    bench.at_stage(Stage.CLOSED)
    promised = bench.world.contracts[RUN]
    assert isinstance(promised, Contract)
    launcher: Any = bench.world
    seen = await bench.world.read(promised, bench.store.records[RUN].instance, "")
    plan = plan_relaunch(promised, seen, bench.store.records[RUN].instance, launcher, Redactor())
    assert isinstance(plan, RelaunchPlan)
    assert plan.stop is None
    bench.grant(plan)
    await bench.work(until=lambda: bench.action.next_step is moment)
    bench.world.checklist = PreflightReport(values=(), findings=(BESIDE,))

    await bench.work()

    step, refused = refusal(bench)
    assert (step, refused.detail) == (moment, f"the launch checklist forbids it: {CHILD} lives")
    assert bench.world.submissions == [CHILD]
