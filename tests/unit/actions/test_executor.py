"""A granted relaunch is carried out once: whatever dies, hangs, lies or changes in between."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.contracts import BadContract
from bot.errors import LeaseLostError, StoreFullError
from bot.model.action import STEPS, Action, ActionState, Done, StepName, StepOutcome
from bot.model.allowance import AllowedKind, Use
from bot.model.contract import Contract
from bot.model.crash import CrashClass
from bot.model.job import JobState
from bot.model.plan import Grant, RequestState
from bot.model.planned import RelaunchPlan
from bot.model.pods import Pod
from bot.model.reading import Gap
from bot.model.record import Decision
from bot.model.run import RunState
from bot.model.value import JobId
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, contract, failed_job, job, pod
from tests.fakes.waiting import until
from tests.unit.actions.world import FAILED, LOST, NO, POLL, SAVED, SETTLE, SUBMIT_DEADLINE, Bench, Killed, a_bench
from tests.unit.handlers.scene import ADA
from tests.unit.handlers.test_allowing import a_crash, an_allowance, an_end

DECOY = JobId("/me/decoy")
BAD = BadContract(run_id=RUN, problems=("runs/hero.toml: dri is missing",))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Draw no tracebacks: that costs more than the tests."""
    with capture_logs():
        yield


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with a_bench(tmp_path) as bench:
        yield bench


def steps_of(action: Action) -> list[tuple[StepName, str]]:
    return [(r.step, r.outcome.kind if r.outcome else "-") for r in action.records]


ALL_DONE = [(step, "done") for step in STEPS["relaunch"]]


# The way it should go


async def test_every_step_is_taken_once_and_in_order(bench: Bench) -> None:
    await bench.grant()

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.DONE
    assert steps_of(action) == ALL_DONE
    assert bench.world.submissions == 1
    assert bench.world.stops == []
    assert bench.told == [f"submitted {JOB}", "relaunched from step 200 and training again"]
    record = await bench.record()
    assert record.run.state is RunState.RUNNING
    assert [i.number for i in record.instances] == [0, 1]
    assert record.instances[1].submitted_at is not None
    assert record.instances[1].from_step == 200


async def test_each_intent_is_committed_before_its_step_and_each_outcome_before_the_next(bench: Bench) -> None:
    await bench.grant()

    await bench.work()

    audit = [entry.detail.removeprefix("action 1 ").split(":")[0] for entry in await bench.store.audit(RUN)]
    assert audit == [step for step in STEPS["relaunch"] for _ in ("intent", "outcome")] + ["done"]


async def test_a_live_job_is_stopped_and_seen_terminal_before_the_new_one_is_submitted(bench: Bench) -> None:
    bench.world.live()
    await bench.grant()

    await bench.work()

    assert bench.world.stops == [JOB]
    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_nothing_is_submitted_while_pods_of_the_old_job_live_on_or_cannot_be_asked_about(bench: Bench) -> None:
    """A pod that lives on, of a job that is terminal, still writes to the run's output root."""
    answers: list[tuple[Pod, ...] | Gap] = [Gap.TIMEOUT, (pod(0), pod(1, "Failed")), (pod(0, "Unknown"),), (), ()]
    submissions: list[int] = []

    def pass_by() -> None:
        submissions.append(bench.world.submissions)
        bench.world.pods_answer = answers[min(len(submissions), len(answers)) - 1]

    bench.world.on_pods = pass_by
    await bench.grant()

    await bench.work()

    assert submissions == [0, 0, 0, 0]
    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_pods_that_never_go_end_the_relaunch_and_are_named(bench: Bench) -> None:
    bench.world.pods_answer = (pod(3, node="node-7"),)
    await bench.grant()

    await bench.work()

    action = await bench.action()
    assert (action.state, bench.world.submissions) == (ActionState.FAILED, 0)
    assert f"1 of its pods still live and may write: pod iris-3-0-0300 of task {JOB}/3, attempt 0 on node-7" in (
        action.noted
    )


async def test_a_stop_is_repeated_until_the_job_is_terminal(bench: Bench) -> None:
    bench.world.live()
    await bench.grant()
    questions = 0

    def come_back_to_life() -> None:
        nonlocal questions
        questions += 1
        if len(bench.world.stops) == 1 and questions < 6:
            bench.world.live()

    bench.world.on_question = come_back_to_life

    await bench.work()

    assert len(bench.world.stops) == 2
    assert bench.world.submissions == 1


async def test_a_first_launch_needs_no_job_before_it(bench: Bench) -> None:
    bench.world.found.clear()
    bench.world.checkpoints = ()
    bench.world.log, bench.world.steps = "", (0, 1)
    await bench.grant(is_first=True)

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert bench.told[-1] == "launched from step 0 and training"


async def test_a_job_that_is_over_before_it_was_looked_at_is_not_said_to_train(bench: Bench) -> None:
    def over_at_once() -> StepOutcome:
        bench.world.arrive(JobState.SUCCEEDED)
        return Done(detail=JOB)

    bench.world.on_submit = over_at_once
    await bench.grant()

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert bench.told[-1] == "relaunched from step 200, and its job has already succeeded"
    assert (await bench.record()).run.state is RunState.UNKNOWN


async def test_the_first_minutes_are_waited_for(bench: Bench) -> None:
    await bench.grant()
    begun = bench.clock.now()

    await bench.work()

    assert bench.clock.now() - begun >= contract().cadence.stabilise


async def test_the_new_rows_are_those_after_the_submissions_intent(bench: Bench) -> None:
    """A check that reads on while a submission's fate is unknown takes nothing from the new job's rows."""
    await bench.grant()

    def lose_the_answer() -> StepOutcome:
        bench.world.arrive()
        return LOST

    bench.world.on_submit = lose_the_answer
    await bench.work(until=lambda: bench.world.submissions == 1)
    async with bench.store.transaction() as tx:
        known = await tx.record(RUN)
        moved_on = known.run.model_copy(update={"metrics_cursor": "beyond the new rows"})
        await tx.apply(Decision(run=moved_on), RUN, bench.clock.now())
    bench.a_new_one()

    await bench.work()

    assert (await bench.action()).metrics_cursor == "old"
    assert bench.world.cursors[-1] == "old"


# Death at any moment


def a_quick_live_job(bench: Bench) -> None:
    """Begin with a job to be stopped, and with first minutes that are over soon: each look is one more way to die."""
    bench.promised = contract(cadence={"check": "15m", "stabilise": "5s"})
    bench.world.live()


async def moments_to_die_at(directory: Path) -> dict[int, str]:
    """Return every moment after which the world or the database is another; before a thing is after the last one."""
    async with a_bench(directory) as bench:
        a_quick_live_job(bench)
        await bench.grant()
        await bench.work()
        return {place: name for place, name in enumerate(bench.knife.moments) if name.startswith("after")}


async def test_a_hero_killed_at_any_moment_has_submitted_exactly_once_in_the_end(tmp_path: Path) -> None:
    """Law 3, at every boundary: each commit, each question, each change."""
    (tmp_path / "whole").mkdir()
    moments = await moments_to_die_at(tmp_path / "whole")
    assert len(moments) > 20

    for moment, name in moments.items():
        directory = tmp_path / str(moment)
        directory.mkdir()
        async with a_bench(directory) as bench:
            a_quick_live_job(bench)
            await bench.grant()
            bench.knife.at = moment
            with pytest.raises(BaseExceptionGroup) as death:
                await bench.work()
            assert death.group_contains(Killed)
            bench.knife.at = None
            bench.a_new_one()
            if (await bench.action()).state is ActionState.GRANTED:
                await bench.work()

            where = f"killed at {moment}, {name}"
            action = await bench.action()
            assert bench.world.submissions == 1, where
            assert action.state is ActionState.DONE, (where, action.noted)
            assert len((await bench.record()).instances) == 2, where


async def test_a_hero_killed_over_and_over_submits_once(bench: Bench) -> None:
    a_quick_live_job(bench)
    await bench.grant()
    lives = itertools.cycle((2, 5, 3, 8, 13, 21, 34))
    deaths = 0

    while (await bench.action()).state is ActionState.GRANTED and deaths < 100:
        bench.knife.at = len(bench.knife.moments) + next(lives)
        try:
            await bench.work()
        except* Killed:
            deaths += 1
        bench.a_new_one()

    assert 3 < deaths < 100
    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


# Answers that are lost, late or never come


async def test_a_lost_answer_is_looked_up_and_the_job_adopted(bench: Bench) -> None:
    """Field report R49."""
    await bench.grant()

    def lose_the_answer() -> StepOutcome:
        bench.world.arrive()
        return LOST

    bench.world.on_submit = lose_the_answer

    await bench.work()

    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE
    assert bench.told[0] == "it is not known whether the step `submit` happened"
    assert bench.told.count(bench.told[0]) == 1


async def test_a_submission_that_arrives_within_the_settle_window_is_adopted(bench: Bench) -> None:
    await bench.grant()

    def be_late() -> StepOutcome:
        bench.world.arrives_after = 2
        return LOST

    bench.world.on_submit = be_late

    await bench.work()

    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_a_submission_that_was_cut_off_is_made_once_more_only_when_it_can_arrive_no_more(bench: Bench) -> None:
    await bench.grant()
    answers: list[StepOutcome | None] = [LOST, None]
    bench.world.on_submit = lambda: answers.pop(0)
    first_at = bench.clock.now()

    await bench.work(until=lambda: bench.world.submissions == 2)
    assert bench.clock.now() - first_at >= SUBMIT_DEADLINE > SETTLE
    bench.a_new_one()
    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.DONE
    assert (bench.world.submissions, action.submits) == (2, 2)


async def test_a_submission_that_is_always_cut_off_is_started_twice_at_most_also_over_restarts(bench: Bench) -> None:
    await bench.grant()
    bench.world.on_submit = lambda: LOST
    await bench.work(until=lambda: bench.world.submissions == 1)
    bench.a_new_one()
    await bench.work(until=lambda: bench.world.submissions == 2)
    bench.a_new_one()

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert action.noted.startswith("the submit command was started twice without the orchestrator knowing of it")
    assert bench.world.submissions == 2


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_command_that_failed_by_itself_is_refused_once_its_job_is_positively_absent(
    bench: Bench, *, is_restarted: bool
) -> None:
    """A refusal is never tried again in a loop; what was said is told, also by a Hero that came later."""
    await bench.grant()
    bench.world.on_submit = lambda: FAILED
    begun = bench.clock.now()
    if is_restarted:
        await bench.work(until=lambda: bool(bench.moves) and bool(bench.moves[-1].submit_failure))
        bench.a_new_one()

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert action.noted == f"{FAILED.detail}; the orchestrator knows no new {JOB}"
    assert bench.world.submissions == 1
    assert bench.clock.now() - begun >= SETTLE


async def test_a_failure_is_no_proof_while_the_orchestrator_is_away_and_the_job_it_left_is_adopted(
    bench: Bench,
) -> None:
    await bench.grant()

    def fail_after_submitting() -> StepOutcome:
        bench.world.is_reachable = False
        bench.world.arrive()
        return FAILED

    bench.world.on_submit = fail_after_submitting
    await bench.work(until=lambda: False, polls=100)
    assert (await bench.action()).state is ActionState.GRANTED
    bench.world.is_reachable = True
    bench.a_new_one()

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert bench.world.submissions == 1


async def test_a_printed_stranger_never_becomes_the_runs_job(bench: Bench) -> None:
    await bench.grant()
    bench.world.found[DECOY] = job(job_id=DECOY)
    bench.world.on_submit = lambda: Done(detail=DECOY)

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert f"named {DECOY}, which is not the planned {JOB}" in action.noted
    assert [i.job_id for i in (await bench.record()).instances] == [JOB]
    assert bench.world.stops == []


@pytest.mark.parametrize("is_listed", [True, False], ids=["the old one is shown", "none is shown"])
async def test_a_command_that_printed_the_planned_id_and_submitted_nothing_is_told_soon_and_fails_with_advice(
    bench: Bench, *, is_listed: bool
) -> None:
    await bench.grant()

    def lie() -> StepOutcome:
        if not is_listed:
            bench.world.found.clear()
        return Done(detail=JOB)

    bench.world.on_submit = lie
    begun = bench.clock.now()
    await bench.work(until=lambda: any("does not show" in told for told in bench.told))
    told_after = bench.clock.now() - begun
    await bench.work()

    action = await bench.action()
    assert told_after <= 4 * POLL
    assert action.state is ActionState.FAILED
    assert action.noted.startswith("the submitted job was not seen within 10 min")
    assert [told for told in bench.told if "does not show" in told] == [
        f"the orchestrator does not show the submitted {JOB} yet"
    ]
    failed = next(d.update for d in await bench.store.due_deliveries("slack", limit=50) if "/failed/" in d.key)
    assert "see whether the submit command really submits" in failed.next
    assert bench.world.submissions == 1


async def test_a_job_that_is_shown_a_look_or_two_late_is_no_news(bench: Bench) -> None:
    await bench.grant()

    def be_late() -> StepOutcome:
        bench.world.arrives_after = 2
        return Done(detail=JOB)

    bench.world.on_submit = be_late

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert not any("does not show" in told for told in bench.told)


async def test_while_an_earlier_submitter_lives_nothing_is_submitted_and_its_end_begins_the_wait_anew(
    bench: Bench,
) -> None:
    await bench.grant()
    answers: list[StepOutcome | None] = [LOST, None]
    bench.world.on_submit = lambda: answers.pop(0)
    await bench.work(until=lambda: bench.world.submissions == 1)
    bench.world.is_still_submitting = True
    bench.a_new_one()

    await bench.work(until=lambda: False, polls=50)
    assert bench.world.submissions == 1
    bench.world.is_still_submitting = False
    ended_at = bench.clock.now()
    await bench.work(until=lambda: bench.world.submissions == 2)

    assert bench.clock.now() - ended_at >= SETTLE


async def test_an_orchestrator_that_is_long_away_is_waited_for_and_that_is_told_once(bench: Bench) -> None:
    await bench.grant()

    def go_dark() -> StepOutcome:
        bench.world.is_reachable = False
        bench.world.arrive()
        return LOST

    bench.world.on_submit = go_dark
    await bench.work(until=lambda: False, polls=500)

    assert (await bench.action()).state is ActionState.GRANTED, "a submission's fate is never given up"
    keys = [d.key for d in await bench.store.due_deliveries("slack", limit=50)]
    assert sum("uncertain" in key for key in keys) == 1

    bench.world.is_reachable = True
    bench.a_new_one()
    await bench.work()

    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_what_cannot_be_read_before_anything_is_done_is_waited_for_and_then_given_up(bench: Bench) -> None:
    await bench.grant()
    bench.world.is_reachable = False

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.VOID
    assert "not so within 10 min: the job's state is unknown: connection refused" in action.noted
    assert bench.world.submissions == 0


async def test_the_time_in_which_hero_was_down_counts_against_no_deadline(bench: Bench) -> None:
    await bench.grant()
    await bench.work(until=lambda: bool(bench.moves) and bench.moves[-1].next_step is StepName.RESTORE)
    bench.clock.advance(timedelta(hours=3))
    bench.world.steps = ()
    bench.a_new_one()

    await bench.work(until=lambda: False, polls=5)

    assert (await bench.action()).state is ActionState.GRANTED


async def test_an_adapter_that_breaks_at_the_submission_leaves_its_fate_open_and_hero_alive(bench: Bench) -> None:
    await bench.grant()

    def break_down() -> StepOutcome:
        bench.world.arrive()
        msg = "a bug of ours"
        raise RuntimeError(msg)

    bench.world.on_submit = break_down

    await bench.work()

    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


# A world that changed between the yes and the deed


async def test_a_newer_checkpoint_voids_the_grant_before_anything_is_done(bench: Bench) -> None:
    """Field report R41."""
    await bench.grant()
    bench.world.checkpoints = (*SAVED, checkpoint(300))

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.VOID
    assert "step-300" in action.noted
    assert bench.world.submissions == 0
    record = await bench.record()
    assert [r.state for r in record.requests] == [RequestState.VOID], "so that the next check asks afresh"
    assert bench.told == ["R7 was approved, but nothing was done"]


async def test_a_changed_contract_voids_the_grant(bench: Bench) -> None:
    await bench.grant()
    bench.promised = contract(command="iris job run --no-wait --job-name hero-coord -- python -m other")

    await bench.work()

    assert (await bench.action()).state is ActionState.VOID
    assert bench.world.submissions == 0


async def test_a_contract_that_changes_after_the_verification_still_stops_the_submission(bench: Bench) -> None:
    bench.world.live()
    await bench.grant()

    def edit_the_contract() -> None:
        if bench.world.stops:
            bench.promised = contract(output_root="gs://bucket/elsewhere")

    bench.world.on_question = edit_the_contract

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert "the contract has changed since the approval" in action.noted
    assert bench.world.submissions == 0


async def test_a_job_of_another_hand_is_neither_stopped_nor_doubled(bench: Bench) -> None:
    bench.world.live()
    await bench.grant()
    bench.world.arrive()

    await bench.work()

    assert (await bench.action()).state is ActionState.VOID
    assert bench.world.stops == []
    assert bench.world.submissions == 0


async def test_a_job_that_appears_just_before_the_submission_is_left_alone(bench: Bench) -> None:
    await bench.grant()

    def somebody_is_quicker() -> None:
        bench.world.arrive()

    bench.world.on_question = somebody_is_quicker

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert "somebody else has launched" in action.noted
    assert bench.world.submissions == 0


async def test_an_expired_grant_does_nothing(bench: Bench) -> None:
    await bench.grant(lasts=timedelta(minutes=5))
    bench.clock.advance(timedelta(minutes=6))

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.VOID
    assert "no longer valid" in action.noted
    assert bench.world.submissions == 0


async def test_a_grant_that_expires_while_a_submission_is_looked_up_allows_no_second_one(bench: Bench) -> None:
    await bench.grant(lasts=timedelta(minutes=5))

    def go_dark() -> StepOutcome:
        bench.world.is_reachable = False
        return LOST

    bench.world.on_submit = go_dark
    await bench.work(until=lambda: False, polls=100)
    bench.world.is_reachable = True
    bench.a_new_one()

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.FAILED
    assert action.noted == "the approval has expired; nothing was submitted"
    assert bench.world.submissions == 1


async def test_a_contract_that_breaks_before_anything_is_done_stops_it(bench: Bench) -> None:
    await bench.grant()
    bench.promised = BAD

    await bench.work()

    assert (await bench.action()).state is ActionState.VOID
    assert bench.world.submissions == 0


async def test_a_contract_that_breaks_after_the_submission_is_waited_for(bench: Bench) -> None:
    await bench.grant()
    await bench.work(until=lambda: bool(bench.moves) and bench.moves[-1].next_step is StepName.CONFIRM)
    good, bench.promised = bench.promised, BAD
    bench.a_new_one()
    await bench.work(until=lambda: False, polls=5)
    assert (await bench.action()).state is ActionState.GRANTED
    bench.promised = good
    bench.a_new_one()

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE


async def test_a_contract_that_breaks_while_a_submissions_fate_is_unknown_ends_nothing(bench: Bench) -> None:
    await bench.grant()

    def lose_the_answer() -> StepOutcome:
        bench.world.arrive()
        bench.promised = BAD
        return LOST

    bench.world.on_submit = lose_the_answer
    await bench.work(until=lambda: False, polls=300)
    assert (await bench.action()).state is ActionState.GRANTED
    bench.promised = contract()
    bench.a_new_one()

    await bench.work()

    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_an_approval_taken_back_before_the_first_change_ends_the_action_quietly(bench: Bench) -> None:
    """Field report R45: also when the executor has the action in its hands already."""
    action = await bench.grant()
    bench.world.is_reachable = False
    working = asyncio.create_task(bench.executor.run())
    await until(lambda: bool(bench.clock._sleepers))
    begun = await bench.action()
    assert begun.record(StepName.VERIFY) is not None
    async with bench.store.transaction() as tx:
        await tx.apply(Decision(actions=(begun.model_copy(update={"state": ActionState.VOID}),)), RUN, action.grant.at)
    bench.world.is_reachable = True
    bench.clock.advance(POLL)
    await until(lambda: not bench.executor._busy)
    working.cancel()
    await asyncio.wait((working,))

    assert (await bench.action()).state is ActionState.VOID
    assert bench.world.submissions == 0
    assert bench.alarms == []


# Ends that are no success


async def test_a_refused_submission_ends_the_action_and_is_told(bench: Bench) -> None:
    await bench.grant()
    bench.world.on_submit = lambda: NO

    await bench.work()

    assert (await bench.action()).state is ActionState.FAILED
    assert bench.told == ["the relaunch stopped at `submit`: client is too old"]


async def test_a_job_that_dies_at_once_is_told_with_its_exit_codes(bench: Bench) -> None:
    await bench.grant()

    def die() -> StepOutcome:
        bench.world.found[JOB] = failed_job(1, "ImportError", submitted_at=bench.clock.now())
        return Done(detail=JOB)

    bench.world.on_submit = die

    await bench.work()

    assert "the relaunch stopped at `confirm`" in bench.told[-1]
    assert "task 0 exit 1" in bench.told[-1]


async def test_a_job_that_dies_in_its_first_minutes_is_told(bench: Bench) -> None:
    await bench.grant()
    await bench.work(until=lambda: bool(bench.moves) and bench.moves[-1].next_step is StepName.STABILISE)
    bench.world.found[JOB] = bench.world.found[JOB].model_copy(update={"state": JobState.FAILED})
    bench.a_new_one()

    await bench.work()

    assert "stopped at `stabilise`" in bench.told[-1]


async def test_two_live_jobs_of_one_run_are_a_failure_that_says_so(bench: Bench) -> None:
    await bench.grant()
    await bench.work(until=lambda: bool(bench.moves) and bench.moves[-1].next_step is StepName.CONFIRM)
    action = await bench.action()
    old = action.plan.model_copy(update={"instance": "/me/old@2026-11-29T03:00:00+00:00"})
    async with bench.store.transaction() as tx:
        await tx.apply(Decision(actions=(action.model_copy(update={"plan": old}),)), RUN, bench.clock.now())
    bench.world.found["/me/old"] = job(job_id="/me/old")  # type: ignore[index]  # a job id is a string
    bench.a_new_one()

    await bench.work()

    assert "two jobs of the run live: /me/old and /me/hero-coord" in bench.told[-1]


async def test_a_coordinator_that_appears_beside_the_run_keeps_the_relaunch_from_being_submitted(bench: Bench) -> None:
    """It is seen when the plan is verified, and once more right before the submission: a stop may take long."""
    await bench.grant()
    bench.world.neighbours_answer = (job(job_id="/me/hero-coord-2"),)

    await bench.work()

    action = await bench.action()
    assert (action.state, bench.world.submissions) == (ActionState.VOID, 0)
    assert "another job of this run is alive: /me/hero-coord-2" in action.noted


async def test_a_checkpoint_that_the_old_job_saves_as_it_stops_is_asked_about_anew(bench: Bench) -> None:
    """The trainer would resume from it, and that is not what was approved (law 2, before each step that changes)."""
    bench.world.live()
    await bench.grant()
    before = bench.world.stop

    async def save_and_stop(promised: Contract, plan: RelaunchPlan, grant: Grant) -> StepOutcome:
        bench.world.checkpoints = (*SAVED, checkpoint(300))
        return await before(promised, plan, grant)

    bench.world.stop = save_and_stop  # type: ignore[method-assign,assignment] # the trainer's last deed

    await bench.work()

    action = await bench.action()
    assert (action.state, bench.world.submissions, bench.world.stops) == (ActionState.FAILED, 0, [JOB])
    assert "resume_from" in action.noted or "step 300" in action.noted
    assert bench.told[-1].startswith("the relaunch stopped at `submit`")
    assert (await bench.record()).run.relaunch_wanted_by == ADA


async def test_a_coordinator_that_appears_while_the_old_job_is_stopped_is_seen_before_the_submission(
    bench: Bench,
) -> None:
    bench.world.live()
    bench.world.on_pods = lambda: setattr(bench.world, "neighbours_answer", (job(job_id="/me/hero-coord-2"),))
    await bench.grant()

    await bench.work()

    action = await bench.action()
    assert (action.state, bench.world.submissions) == (ActionState.FAILED, 0)
    assert "another job of this run is alive: /me/hero-coord-2" in action.noted


async def test_a_second_coordinator_after_the_submission_is_a_failure_and_a_probe_is_none(bench: Bench) -> None:
    def begin() -> None:
        bench.world.neighbours_answer = (job(job_id="/me/hero-probe"), job(job_id="/me/hero-coord-2"))

    bench.world.on_submit = begin
    await bench.grant()

    await bench.work()

    action = await bench.action()
    assert (action.state, bench.world.submissions) == (ActionState.FAILED, 1)
    assert f"two jobs of the run live: /me/hero-coord-2 and {JOB}" in action.noted


async def test_a_coordinator_that_cannot_be_looked_for_is_waited_for_and_nothing_is_submitted(bench: Bench) -> None:
    await bench.grant()
    bench.world.neighbours_answer = Gap.TIMEOUT

    await bench.work(polls=3)
    assert bench.world.submissions == 0

    bench.world.neighbours_answer = ()
    await bench.work()
    assert ((await bench.action()).state, bench.world.submissions) == (ActionState.DONE, 1)


async def test_another_checkpoint_than_the_approved_one_is_a_failure(bench: Bench) -> None:
    """Field report R48."""
    await bench.grant()
    bench.world.log = "Loading checkpoint from gs://bucket/users/ada/hero-12d8b6f0/checkpoints/step-100"

    await bench.work()

    assert "stopped at `restore`: the lineage is not what was approved" in bench.told[-1]


# The database and the lease


async def test_a_full_disk_lets_nothing_be_done_rings_the_alarm_and_is_got_over(bench: Bench) -> None:
    """Field report R29."""
    await bench.grant()
    bench.store.refusal = StoreFullError("no space is left")

    await bench.work(until=lambda: False, polls=10)
    assert bench.world.submissions == 0
    assert bench.world.stops == []
    assert len(bench.alarms) >= 10
    bench.store.refusal = None
    bench.a_new_one()
    await bench.work()

    assert (await bench.action()).state is ActionState.DONE
    assert bench.world.submissions == 1


async def test_a_disk_that_fills_while_a_submission_is_looked_up_allows_no_second_one(bench: Bench) -> None:
    await bench.grant()
    answers: list[StepOutcome | None] = [LOST, None]
    bench.world.on_submit = lambda: answers.pop(0)
    await bench.work(until=lambda: bool(bench.moves) and bench.moves[-1].noted == "no answer in 180 s")
    bench.store.refusal = StoreFullError("no space is left")
    bench.a_new_one()

    await bench.work(until=lambda: False, polls=30)

    assert bench.world.submissions == 1
    assert bench.alarms


async def test_an_outcome_that_could_not_be_stored_is_found_again(bench: Bench) -> None:
    await bench.grant()

    def fill_the_disk() -> StepOutcome:
        bench.world.arrive()
        bench.store.refusal = StoreFullError("no space is left")
        return Done(detail=JOB)

    bench.world.on_submit = fill_the_disk
    await bench.work(until=lambda: len(bench.alarms) > 3)
    bench.store.refusal = None
    bench.a_new_one()

    await bench.work()

    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_an_outcome_that_could_not_be_stored_is_found_again_in_the_same_life_too(bench: Bench) -> None:
    """The submission stays Hero's own: it is neither forgotten nor taken for that of somebody else."""
    await bench.grant()

    def fill_the_disk() -> StepOutcome:
        bench.world.arrive()
        bench.store.refusal = StoreFullError("no space is left")
        return Done(detail=JOB)

    bench.world.on_submit = fill_the_disk

    def empty_it() -> bool:
        if len(bench.alarms) > 3:
            bench.store.refusal = None
        return False

    await bench.work(until=empty_it)

    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_an_action_that_ended_right_before_the_submission_submits_nothing(bench: Bench) -> None:
    await bench.grant()
    asked = 0

    async def end_it_and_ask(_promised: Contract) -> bool:
        nonlocal asked
        asked += 1
        over = (await bench.action()).model_copy(update={"state": ActionState.VOID})
        async with bench.store._store.transaction() as tx:
            await tx.apply(Decision(actions=(over,)), RUN, bench.clock.now())
        return False

    bench.world.is_submitting = end_it_and_ask  # type: ignore[method-assign]  # the last question before it

    await bench.work(until=lambda: asked > 0 and not bench.executor._busy)

    assert (await bench.action()).state is ActionState.VOID
    assert bench.world.submissions == 0


async def test_a_hero_that_lost_its_lease_stops_before_its_next_change(bench: Bench) -> None:
    """Field report R30."""
    await bench.grant()
    bench.lease = await bench.store.acquire_lease("bot", "old", timedelta(seconds=30))
    assert bench.lease is not None
    await bench.store.release_lease(bench.lease)
    await bench.store.acquire_lease("bot", "new", timedelta(seconds=30))

    with pytest.raises(BaseExceptionGroup) as lost:
        await bench.work()

    assert lost.group_contains(LeaseLostError)
    assert bench.world.submissions == 0
    assert (await bench.action()).records == ()


async def test_a_hero_that_lost_its_lease_while_it_looked_a_submission_up_does_not_submit(bench: Bench) -> None:
    """No commit stands between two looks at one step, so the deed itself is fenced."""
    await bench.grant()
    bench.lease = await bench.store.acquire_lease("bot", "old", timedelta(seconds=30))
    bench.world.on_submit = lambda: LOST
    await bench.work(until=lambda: bool(bench.moves) and bench.moves[-1].noted == "no answer in 180 s")
    assert bench.lease is not None
    await bench.store.release_lease(bench.lease)
    bench.a_new_one()

    with pytest.raises(BaseExceptionGroup) as lost:
        await bench.work()

    assert lost.group_contains(LeaseLostError)
    assert bench.world.submissions == 1


# Stopping


async def test_a_halt_lets_the_step_under_way_note_its_outcome_and_begins_no_other(bench: Bench) -> None:
    """Field report R33."""
    await bench.grant()
    halting: list[asyncio.Task[None]] = []

    def halt_now() -> StepOutcome | None:
        halting.append(asyncio.create_task(bench.executor.halt(timedelta(seconds=5))))
        return None

    bench.world.on_submit = halt_now

    await bench.work(until=lambda: bool(halting) and halting[0].done())

    action = await bench.action()
    assert steps_of(action)[-1] == (StepName.SUBMIT, "done")
    assert action.state is ActionState.GRANTED
    bench.world.on_submit = lambda: None
    bench.a_new_one()
    await bench.work()
    assert bench.world.submissions == 1
    assert (await bench.action()).state is ActionState.DONE


async def test_a_halt_ends_a_pause_at_once(bench: Bench) -> None:
    await bench.grant()
    bench.world.is_reachable = False
    running = asyncio.create_task(bench.executor.run())
    await until(lambda: bool(bench.clock._sleepers))

    async with asyncio.timeout(2):
        await bench.executor.halt(POLL)

    assert not bench.executor._busy
    running.cancel()
    await asyncio.wait((running,))


# What was allowed in advance


async def allowed_in_advance(bench: Bench, crash_class: CrashClass, **ended: str) -> None:
    """Grant a relaunch by an allowance for preemptions, and let this be what is known when it begins."""
    await bench.grant()
    known = await bench.record()
    used = an_allowance(kind=AllowedKind.PREEMPTION, uses=(Use(at=AT, request=7, step=None),), **ended)
    run = known.run.model_copy(update={"allowance": used})
    async with bench.store._store.transaction() as tx:
        await tx.apply(Decision(run=run, incidents=(an_end(a_crash(crash_class)),)), RUN, AT)


async def test_a_yes_in_advance_holds_while_the_failure_is_what_it_is_for(bench: Bench) -> None:
    await allowed_in_advance(bench, CrashClass.INFRA_PREEMPTION)

    await bench.work()

    assert (await bench.action()).state is ActionState.DONE


@pytest.mark.parametrize(
    ("crash_class", "ended", "why"),
    [
        (CrashClass.CODE_BUG_SMALL, "", "is for preemption alone, and the failure is taken for code_bug_small by now"),
        (CrashClass.INFRA_PREEMPTION, "revoked by ada", "was revoked by ada"),
    ],
)
async def test_a_yes_in_advance_is_void_when_it_was_revoked_or_the_failure_turns_out_another(
    bench: Bench, crash_class: CrashClass, ended: str, why: str
) -> None:
    await allowed_in_advance(bench, crash_class, ended=ended)

    await bench.work()

    action = await bench.action()
    assert action.state is ActionState.VOID
    assert why in action.noted
    assert steps_of(action) == [(StepName.VERIFY, "refused")]
