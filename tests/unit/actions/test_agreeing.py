"""What is carried out of an agreement and of a go: nothing but one more look at whether it still holds."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.actions.trial_agreement import plan_trial
from bot.contracts import BadContract
from bot.model.action import ActionState
from bot.model.contract import Contract
from bot.model.job import JobState
from bot.model.reading import Known
from bot.model.trial import Outcome
from bot.model.trialplan import TrialPlan
from bot.redaction import Redactor
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, job, unknown
from tests.unit.actions.trial_world import (
    CHILD,
    CHILD_JOB,
    HANDOFF,
    LATER,
    Bench,
    a_comparison,
    child_contract,
    old_contract,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


async def agreement(bench: Bench) -> TrialPlan:
    old, child = bench.world.contracts[RUN], bench.world.contracts[CHILD]
    assert isinstance(old, Contract)
    assert isinstance(child, Contract)
    made = plan_trial(old, child, await bench.world.read(old, None, ""), Redactor())
    assert isinstance(made, TrialPlan)
    return made


async def carried_out(change: Any, **given: Any) -> Bench:
    bench = Bench()
    bench.grant(await agreement(bench), **given)
    change(bench)
    await bench.work()
    assert (bench.world.stops, bench.world.submissions, bench.world.forks) == ([], [], 0)
    return bench


def nothing(_bench: Bench) -> None:
    pass


def a_newer_checkpoint(bench: Bench) -> None:
    bench.world.saved[RUN] += (checkpoint(400),)


@pytest.mark.parametrize("change", [nothing, a_newer_checkpoint])
async def test_an_agreement_that_holds_is_done(change: Any) -> None:
    assert (await carried_out(change)).action.state is ActionState.DONE


def no_handoff(bench: Bench) -> None:
    bench.world.saved[RUN] = (LATER,)


def a_broken_handoff(bench: Bench) -> None:
    bench.world.saved[RUN] = (checkpoint(HANDOFF.step, is_complete=False), LATER)


def another_tracker(bench: Bench) -> None:
    tracker = {"mode": "online", "entity": "team", "project": "hero", "id": "another"}
    bench.world.contracts[CHILD] = child_contract(tracker=tracker)


def other_gates(bench: Bench) -> None:
    trial = {"child_run_id": CHILD, "fork_step": 1234, "gates": ["loss mean <= +0.01"], "handoff_step": HANDOFF.step}
    bench.world.contracts[RUN] = old_contract(trial=trial)


def no_child(bench: Bench) -> None:
    bench.world.contracts[CHILD] = BadContract(run_id=CHILD, problems=("runs/x.toml: no such file",))


def too_late(bench: Bench) -> None:
    bench.clock.advance(timedelta(hours=4))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (no_handoff, "is gone"),
        (a_broken_handoff, "is not complete: metadata.json is missing"),
        (another_tracker, "the contracts do not say any more what was agreed: fork:"),
        (other_gates, "gates: ('loss mean <= +0.002',) → ('loss mean <= +0.01',)"),
        (no_child, "no such file"),
        (too_late, "the approval is no longer valid"),
    ],
)
async def test_an_agreement_that_does_not_hold_is_void(change: Any, why: str) -> None:
    bench = await carried_out(change)

    assert bench.state() is ActionState.VOID
    assert why in bench.action.noted


async def test_an_agreement_is_not_void_for_what_cannot_be_read() -> None:
    bench = Bench()
    bench.grant(await agreement(bench))
    bench.world.dark = {"checkpoints"}
    await bench.work(until=lambda: False, polls=5)
    assert bench.state() is ActionState.GRANTED
    bench.world.dark = set()

    await bench.work()

    assert bench.state() is ActionState.DONE


# The go


async def test_a_go_is_done_while_the_child_that_was_judged_lives() -> None:
    bench = Bench()
    await bench.after_cutover()
    bench.grant(bench.go_plan())
    changes = (bench.world.stops, bench.world.submissions, bench.world.forks)

    await bench.work()

    assert bench.state() is ActionState.DONE
    assert changes == (bench.world.stops, bench.world.submissions, bench.world.forks)


async def test_a_go_is_done_for_the_very_child_that_has_reached_its_end_well_while_the_gates_pass() -> None:
    bench = Bench()
    await bench.after_cutover()
    bench.grant(bench.go_plan())
    bench.world.end(CHILD_JOB, JobState.SUCCEEDED)

    await bench.work()

    assert bench.state() is ActionState.DONE, bench.action.noted
    assert "has succeeded: it reached its end well" in bench.action.noted


async def test_a_child_that_has_reached_its_end_is_not_accepted_on_a_gate_that_cannot_be_told() -> None:
    bench = Bench()
    await bench.after_cutover()
    a_gate_is_open(bench)
    bench.grant(bench.go_plan())
    bench.world.end(CHILD_JOB, JobState.SUCCEEDED)

    await bench.work()

    assert bench.state() is ActionState.VOID
    assert "the child has ended, and not every gate passes: ? loss mean <= +0.002: cannot tell" in bench.action.noted


def it_ended(bench: Bench) -> None:
    bench.world.end(CHILD_JOB, JobState.FAILED)


def it_is_another(bench: Bench) -> None:
    bench.clock.advance(timedelta(minutes=1))
    bench.world.end(CHILD_JOB)
    bench.world.arrive(CHILD)


def the_old_run_lives(bench: Bench) -> None:
    bench.world.found[JOB] = job()


def the_old_run_is_dark(bench: Bench) -> None:
    bench.world.dark = {RUN}


def the_rows_are_dark(bench: Bench) -> None:
    bench.world.gates = unknown()


def the_childs_contract_was_changed(bench: Bench) -> None:
    bench.world.contracts[CHILD] = child_contract(checkout="/elsewhere")


def a_gate_fails(bench: Bench) -> None:
    bench.world.gates = Known(value=a_comparison(Outcome.FAIL), at=AT)


def something_went_wrong(bench: Bench) -> None:
    bench.world.gates = Known(value=a_comparison(quiet=Outcome.FAIL), at=AT)


def a_gate_is_open(bench: Bench) -> None:
    bench.world.gates = Known(value=a_comparison(Outcome.CANNOT_TELL), at=AT)


def it_is_gone(bench: Bench) -> None:
    del bench.world.found[CHILD_JOB]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (it_ended, "the child that was judged is failed"),
        (it_is_another, "and the orchestrator shows /me/hero-ep-coord@"),
        (it_is_gone, "and the orchestrator shows none"),
        (the_old_run_lives, f"the old run and the child both live: {JOB} and {CHILD_JOB}; stop one by hand now"),
        (a_gate_fails, "a gate fails by now: ✗ loss mean <= +0.002: FAIL"),
        (something_went_wrong, "a gate fails by now: ✗ no crash, retry, watchdog, alert: FAIL"),
        (a_gate_is_open, "the gates say something else now: NOT CLEAR: gate loss mean <= +0.002: cannot tell"),
        (too_late, "the approval is no longer valid"),
    ],
)
async def test_a_go_for_a_child_that_is_not_there_any_more_is_void(change: Any, why: str) -> None:
    bench = Bench()
    await bench.after_cutover()
    bench.grant(bench.go_plan())
    change(bench)

    await bench.work()

    assert bench.state() is ActionState.VOID
    assert why in bench.action.noted


@pytest.mark.parametrize("change", [the_old_run_is_dark, the_rows_are_dark, the_childs_contract_was_changed])
async def test_a_go_waits_for_what_cannot_be_read_and_is_not_done_on_a_guess(change: Any) -> None:
    bench = Bench()
    await bench.after_cutover()
    bench.grant(bench.go_plan())
    good, gates = bench.world.contracts[CHILD], bench.world.gates
    change(bench)
    await bench.work(polls=5)
    assert bench.state() is ActionState.GRANTED
    bench.world.dark, bench.world.gates, bench.world.contracts[CHILD] = set(), gates, good

    await bench.work()

    assert bench.state() is ActionState.DONE


async def test_a_yes_to_a_gate_that_could_not_be_told_holds_while_it_still_cannot() -> None:
    bench = Bench()
    await bench.after_cutover()
    a_gate_is_open(bench)
    bench.grant(bench.go_plan())

    await bench.work()

    assert bench.state() is ActionState.DONE
