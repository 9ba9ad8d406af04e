"""The guards of "Agree the plan"."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.hours import WorkingHours
from bot.model.planned import PlannedCheckpoint
from bot.model.rehearsal import Rehearsal
from tests.fakes.rehearsals import (
    CHILD_TREE,
    MONDAY_NOON,
    OLD_TREE,
    child_contract,
    green_rehearsal,
    old_contract,
    planned_fork,
    trial_plan,
)
from tests.fakes.snapshots import AT, JOB, RUN
from tests.unit.checks.trial.guards.cases import DARK, FAIL, PASS, Case, hold, ids

OFF = {"mode": "disabled"}
RENAMED = {"others": {"moe_drops": "x"}}


def agreed(**fields: Any) -> Rehearsal:
    return green_rehearsal(plan=trial_plan(**fields))


def of_child(**fields: Any) -> Rehearsal:
    return green_rehearsal(child=child_contract(**fields))


def tracked_as(**fields: Any) -> Rehearsal:
    given = {"mode": "online", "entity": "team", "project": "hero", "id": "hero-next", "resume": "allow"}
    return of_child(tracker=given | fields)


def scheduled(rollback_by: Any = MONDAY_NOON, *, starts_at: Any = None, **changes: Any) -> Rehearsal:
    return green_rehearsal(plan=trial_plan(rollback_by=rollback_by, starts_at=starts_at), **changes)


LATE_HOURS = WorkingHours(hours="14:00-22:00", timezone="Europe/Berlin")
CASES = (
    # The handoff.
    Case("plan.handoff", green_rehearsal(), PASS, "permanent"),
    Case(
        "plan.handoff",
        green_rehearsal(
            plan=trial_plan(handoff_is_temporary=True), contract=old_contract(trial={"handoff_hourly": True})
        ),
        PASS,
        "hourly, by agreement",
    ),
    Case("plan.handoff", agreed(handoff_is_temporary=True), FAIL, "which nobody agreed to"),
    Case("plan.handoff", green_rehearsal(contract=old_contract(trial={"handoff_step": 7000})), FAIL, "is 7000"),
    Case(
        "plan.handoff",
        agreed(handoff=PlannedCheckpoint(step=6000, path=f"{OLD_TREE}/latest")),
        FAIL,
        "latest is no step-6000",
    ),
    Case("plan.handoff", agreed(handoff=PlannedCheckpoint(step=6000, path="")), FAIL, "is no step-6000"),
    # The child.
    Case("plan.child", green_rehearsal(), PASS, "hero-next is a run of its own"),
    Case("plan.child", agreed(child_root=f"{CHILD_TREE}/"), PASS, "of its own"),
    Case("plan.child", agreed(child_run_id=RUN), FAIL, "has the old run's id"),
    Case("plan.child", of_child(run_id="hero-other"), FAIL, "the contract is hero-other's"),
    Case("plan.child", of_child(orchestrator={"kind": "iris", "job_id": JOB}), FAIL, f"{JOB} is the old run's job too"),
    Case("plan.child", agreed(child_root="gs://bucket/elsewhere"), FAIL, "none of the child's contract"),
    Case("plan.child", of_child(resume_root=OLD_TREE), FAIL, "are one place"),
    Case("plan.child", of_child(export_root=f"{OLD_TREE}/hf"), FAIL, "export_root"),
    Case("plan.child", green_rehearsal(contract=old_contract(traces_root=CHILD_TREE)), FAIL, "traces_root"),
    Case(
        "plan.child",
        green_rehearsal(child=None, child_seen=None, child_problems=("line 3 is no TOML",)),
        FAIL,
        "line 3 is no TOML",
    ),
    Case("plan.child", green_rehearsal(child=None, child_seen=None), FAIL, "there is no such file"),
    # The tracker.
    Case("plan.tracker", green_rehearsal(), PASS, "hero-next forked off hero-12d8b6f0"),
    Case(
        "plan.tracker",
        green_rehearsal(
            plan=trial_plan(fork=None), contract=old_contract(tracker=OFF), child=child_contract(tracker=OFF)
        ),
        PASS,
        "no tracker is used",
    ),
    Case("plan.tracker", tracked_as(project="other"), FAIL, "tracked in team/other"),
    Case("plan.tracker", tracked_as(entity="me"), FAIL, "tracked in me/hero"),
    Case("plan.tracker", tracked_as(mode="offline"), FAIL, "mode is offline"),
    Case("plan.tracker", tracked_as(id=RUN), FAIL, "it needs one of its own"),
    Case("plan.tracker", tracked_as(id=None), FAIL, "not stated, it needs one of its own"),
    Case("plan.tracker", tracked_as(resume="never"), FAIL, "resume is never"),
    Case("plan.tracker", agreed(fork=None), FAIL, "no fork of the tracker's history is agreed"),
    Case("plan.tracker", agreed(fork=planned_fork(parent_id="older")), FAIL, "the agreed fork is of team/hero/older"),
    Case("plan.tracker", agreed(fork=planned_fork(child_id="other")), FAIL, "the agreed fork makes other"),
    Case("plan.tracker", green_rehearsal(contract=old_contract(trial={"fork_step": 1})), FAIL, "row 6123 was agreed"),
    Case("plan.tracker", green_rehearsal(child=None, child_seen=None), DARK, "no contract that can be used"),
    # The window.
    Case("plan.window", green_rehearsal(), PASS, "6000 to 6199"),
    Case(
        "plan.window",
        green_rehearsal(plan=trial_plan(window_steps=50), contract=old_contract(trial={"window_steps": 50})),
        PASS,
        "fewer than the usual 200",
    ),
    Case("plan.window", agreed(window_steps=100), FAIL, "100 were agreed"),
    Case("plan.window", green_rehearsal(contract=old_contract(final_step=6199)), FAIL, "ends at step 6199"),
    Case("plan.window", green_rehearsal(contract=old_contract(final_step=6200)), PASS, "6000 to 6199"),
    Case("plan.window", green_rehearsal(contract=old_contract(final_step=None)), PASS, "6000 to 6199"),
    # The gates.
    Case("plan.gates", green_rehearsal(), PASS, "no gate is about token drops, router metrics, the change's intended"),
    Case(
        "plan.gates",
        agreed(
            gates=("loss p95 within 1%", "mfu mean >= +2%", "token_drops max <= 0", "router_entropy mean within 2%")
        ),
        PASS,
        "4 gates and quiet: loss p95 within 1%; mfu mean >= +2%; token_drops max <= 0; router_entropy mean within 2%",
    ),
    Case("plan.gates", agreed(gates=("loss mean <= 0", "step_time_s mean <= +1%")), PASS, "2 gates"),
    Case("plan.gates", agreed(gates=("loss mean <= 0", "throughput/mfu mean >= 0")), PASS, "2 gates"),
    Case(
        "plan.gates",
        green_rehearsal(
            plan=trial_plan(gates=("train/loss mean <= 0", "tps mean >= 0")),
            contract=old_contract(metrics={"loss": "train/loss", "tokens_per_second": "tps"}),
        ),
        PASS,
        "2 gates",
    ),
    Case("plan.gates", agreed(gates=("tokens_per_second mean >= -1%",)), FAIL, "no gate keeps the loss from rising"),
    Case("plan.gates", agreed(gates=("loss mean >= 0", "mfu mean >= 0")), FAIL, "no gate keeps the loss from rising"),
    Case("plan.gates", agreed(gates=("loss mean <= 0",)), FAIL, "no gate keeps throughput"),
    Case("plan.gates", agreed(gates=("loss mean <= 0", "mfu mean <= 0")), FAIL, "no gate keeps throughput"),
    Case("plan.gates", agreed(gates=("loss mean <= 0", "step_time_s mean >= 0")), FAIL, "no gate keeps throughput"),
    Case("plan.gates", agreed(gates=()), FAIL, "no gate keeps the loss"),
    Case("plan.gates", agreed(gates=(*trial_plan().gates, "loss is fine")), FAIL, "is no gate"),
    Case("plan.gates", agreed(quiet=False), FAIL, "was not made a gate"),
    Case(
        "plan.gates",
        agreed(gates=("loss mean <= 0", "mfu mean >= 0 every 50")),
        FAIL,
        "mfu mean >= 0 every 50 can never pass: 200 steps have 4 rows of it",
    ),
    Case(
        "plan.gates",
        agreed(gates=("loss mean <= 0", "mfu mean >= 0"), window_steps=50),
        PASS,
        "mfu mean >= 0 could not pass if it is logged every 10 steps: 50 steps have 5 rows",
    ),
    Case("plan.gates", agreed(window_steps=8), FAIL, "set [trial] window_steps higher"),
    # The names of what the gates are about.
    Case("plan.metrics", green_rehearsal(), PASS, "the old run: loss, tokens_per_second; the child: loss, tokens_per"),
    Case(
        "plan.metrics",
        green_rehearsal(contract=old_contract(metrics={"loss": "eval/loss"})),
        FAIL,
        f"loss is eval/loss in [metrics] of runs/{RUN}.toml, loss was agreed",
    ),
    Case("plan.metrics", of_child(metrics={"tokens_per_second": "tps"}), FAIL, "tokens_per_second is tps"),
    Case("plan.metrics", of_child(metrics={"file": "other.jsonl"}), FAIL, "file is other.jsonl"),
    Case(
        "plan.metrics",
        green_rehearsal(plan=trial_plan(gates=("moe/drops max <= 0",)), child=child_contract(metrics=RENAMED)),
        FAIL,
        "moe_drops is x in [metrics]",
    ),
    Case("plan.metrics", of_child(metrics={"lr": "optim/lr"}), PASS, "the child: loss"),
    Case("plan.metrics", agreed(control_names={}), FAIL, "was not agreed"),
    Case("plan.metrics", agreed(gates=(*trial_plan().gates, "loss is fine")), PASS, "loss"),
    Case("plan.metrics", green_rehearsal(child=None, child_seen=None), DARK, "no contract that can be used"),
    # The schedule.
    Case("plan.schedule", green_rehearsal(), PASS, "rollback by 2026-11-30 12:00 UTC"),
    Case("plan.schedule", scheduled(MONDAY_NOON.replace(hour=18)), PASS, "18:00"),
    Case("plan.schedule", scheduled(starts_at=MONDAY_NOON - timedelta(hours=2)), PASS, "12:00"),
    Case("plan.schedule", scheduled(MONDAY_NOON.replace(hour=20), dri_hours=LATE_HOURS), PASS, "20:00"),
    Case("plan.schedule", scheduled(MONDAY_NOON.replace(hour=3), dri_zone=None), PASS, "no zone of theirs is"),
    Case("plan.schedule", agreed(submitter="mallory"), FAIL, "mallory, who owns the submission, is nobody"),
    Case("plan.schedule", scheduled(None), FAIL, "is not agreed"),
    Case("plan.schedule", scheduled(AT), FAIL, "has passed"),
    Case("plan.schedule", scheduled(starts_at=MONDAY_NOON), FAIL, "before the cut-over"),
    Case("plan.schedule", scheduled(MONDAY_NOON - timedelta(days=1)), FAIL, "outside ada's working hours"),
    Case("plan.schedule", scheduled(MONDAY_NOON.replace(hour=18, minute=1)), FAIL, "08:00-18:00"),
    Case("plan.schedule", scheduled(MONDAY_NOON, dri_zone="America/Los_Angeles"), FAIL, "in America/Los_Angeles"),
    Case("plan.schedule", scheduled(MONDAY_NOON, dri_hours=LATE_HOURS), FAIL, "14:00-22:00"),
    # Coverage gaps.
    Case("plan.gaps", green_rehearsal(), PASS, "evaluations"),
    Case("plan.gaps", agreed(coverage_gaps=()), FAIL, "nothing is written down"),
    Case("plan.gaps", agreed(coverage_gaps=(" ",)), FAIL, "nothing is written down"),
)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_plan_is_agreed_as_the_checklist_demands(case: Case) -> None:
    assert case.guard.startswith("plan.")
    hold(case)
