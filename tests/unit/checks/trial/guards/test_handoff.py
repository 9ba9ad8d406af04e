"""The guards of the handoff checkpoint, and of the child that starts from it."""

from typing import Any

import pytest

from bot.model.planned import NoPlan, PlannedCheckpoint
from bot.model.rehearsal import Rehearsal
from tests.fakes.rehearsals import (
    CHILD_JOB,
    CHILD_TREE,
    HANDOFF,
    HANDOFF_PATH,
    OLD_TREE,
    child_contract,
    child_seen,
    green_rehearsal,
    old_contract,
    old_seen,
    relaunch,
    trial_plan,
)
from tests.fakes.snapshots import checkpoint, unknown
from tests.unit.checks.trial.guards.cases import DARK, FAIL, PASS, Case, hold, ids

BARRED = NoPlan(reason="the output root is not empty", fix="name another", is_unknown=False)
BLIND = NoPlan(reason="git did not answer", fix="mend the access", is_unknown=True)
CHILDLESS = green_rehearsal(child=None, child_seen=None)


def old_tree(*found: Any, **changes: Any) -> Rehearsal:
    return green_rehearsal(seen=old_seen(checkpoints=found), **changes)


def child_tree(*found: Any, **changes: Any) -> Rehearsal:
    return green_rehearsal(child_seen=child_seen(checkpoints=found), **changes)


def own(step: int, **fields: Any) -> Any:
    return checkpoint(step, root=CHILD_TREE, **fields)


def launching(child: Any = None, is_recovery: bool = False, **fields: Any) -> Rehearsal:
    child = child or child_contract()
    return green_rehearsal(child=child, launch=relaunch(child, **fields), is_recovery=is_recovery)


def resuming(step: int, path: str, **changes: Any) -> Rehearsal:
    return launching(resume_from=PlannedCheckpoint(step=step, path=path), **changes)


BLIND_OLD = green_rehearsal(seen=old_seen(checkpoints=unknown()))
HOURLY = checkpoint(HANDOFF, is_temporary=True)
CASES = (
    # Complete.
    Case("handoff.complete", green_rehearsal(), PASS, "its metadata.json names step 6000"),
    Case("handoff.complete", old_tree(checkpoint(7000)), FAIL, "step-6000 is not there"),
    Case("handoff.complete", old_tree(), FAIL, "step-6000 is not there"),
    Case("handoff.complete", old_tree(checkpoint(HANDOFF, is_complete=False)), FAIL, "metadata.json is missing"),
    Case("handoff.complete", BLIND_OLD, DARK, "no answer in 20 s"),
    # Retention.
    Case("handoff.retention", green_rehearsal(), PASS, "is permanent"),
    Case("handoff.retention", old_tree(HOURLY, plan=trial_plan(handoff_is_temporary=True)), PASS, "as agreed"),
    Case("handoff.retention", green_rehearsal(plan=trial_plan(handoff_is_temporary=True)), PASS, "is permanent"),
    Case("handoff.retention", old_tree(HOURLY), FAIL, "a permanent one was agreed"),
    Case("handoff.retention", old_tree(), FAIL, "is not there"),
    Case("handoff.retention", BLIND_OLD, DARK, "no answer in 20 s"),
    # Lineage.
    Case("handoff.lineage", green_rehearsal(), PASS, "lies in the old run's tree"),
    Case(
        "handoff.lineage",
        green_rehearsal(child=child_contract(initialize_from=f"{HANDOFF_PATH}/")),
        PASS,
        "what the child starts from",
    ),
    Case("handoff.lineage", green_rehearsal(child=child_contract(initialize_from=None)), FAIL, "starts from nothing"),
    Case(
        "handoff.lineage",
        green_rehearsal(child=child_contract(initialize_from=f"{OLD_TREE}/step-6500")),
        FAIL,
        "the child starts from gs://bucket/users/ada/hero-12d8b6f0/checkpoints/step-6500",
    ),
    Case(
        "handoff.lineage",
        green_rehearsal(contract=old_contract(checkpoint_roots=("gs://bucket/elsewhere",))),
        FAIL,
        "lies in none of the old run's trees",
    ),
    Case(
        "handoff.lineage",
        old_tree(checkpoint(HANDOFF).model_copy(update={"step": 6001})),
        FAIL,
        "is step 6001 to its metadata",
    ),
    Case("handoff.lineage", old_tree(), FAIL, "is not there"),
    Case("handoff.lineage", BLIND_OLD, DARK, "no answer in 20 s"),
    Case("handoff.lineage", CHILDLESS, DARK, "no contract that can be used"),
    # The child's tree.
    Case("child.tree", green_rehearsal(), PASS, "holds no checkpoint"),
    Case("child.tree", child_tree(is_recovery=True), PASS, "begins at the handoff checkpoint again"),
    Case("child.tree", child_tree(own(6100), own(6200), is_recovery=True), PASS, f"is {CHILD_TREE}/step-6200"),
    Case(
        "child.tree",
        child_tree(own(6100), own(6200, is_complete=False), is_recovery=True),
        PASS,
        f"is {CHILD_TREE}/step-6100; not complete: {CHILD_TREE}/step-6200",
    ),
    Case("child.tree", child_tree(own(6100)), FAIL, f"is not empty: {CHILD_TREE}/step-6100"),
    Case("child.tree", child_tree(own(6100, is_complete=False)), FAIL, "is not empty"),
    Case("child.tree", child_tree(own(6100, is_complete=False), is_recovery=True), FAIL, "no complete checkpoint"),
    Case("child.tree", green_rehearsal(child_seen=child_seen(checkpoints=unknown())), DARK, "no answer in 20 s"),
    Case("child.tree", CHILDLESS, DARK, "no contract that can be used"),
    # The child's launch.
    Case("child.launch", green_rehearsal(), PASS, f"makes {CHILD_JOB}"),
    Case("child.launch", launching(accepts=("no hardware is stated",)), PASS, "accepts: no hardware is stated"),
    Case(
        "child.launch",
        launching(child_contract(orchestrator={"kind": "local", "directory": "jobs"})),
        PASS,
        "makes local-job",
    ),
    Case("child.launch", green_rehearsal(launch=BARRED), FAIL, "the output root is not empty"),
    Case("child.launch", launching(job_id="/me/other"), FAIL, "would make /me/other"),
    Case("child.launch", launching(run_id="hero-12d8b6f0"), FAIL, "the launch is hero-12d8b6f0's"),
    Case("child.launch", launching(source_sha="3" * 40), FAIL, "the launch is of 333"),
    Case("child.launch", green_rehearsal(launch=BLIND), DARK, "git did not answer"),
    Case("child.launch", CHILDLESS, DARK, "no contract that can be used"),
    # Where it starts.
    Case("child.start", green_rehearsal(), PASS, f"starts from {HANDOFF_PATH}"),
    Case("child.start", resuming(HANDOFF, HANDOFF_PATH), PASS, f"starts from {HANDOFF_PATH}"),
    Case("child.start", resuming(6100, f"{CHILD_TREE}/step-6100", is_recovery=True), PASS, "goes on from its own"),
    Case("child.start", launching(is_recovery=True), PASS, f"starts from {HANDOFF_PATH}"),
    Case("child.start", launching(child_contract(initialize_from=None)), FAIL, "starts from nothing"),
    Case("child.start", resuming(6100, f"{CHILD_TREE}/step-6100"), FAIL, "and not the handoff"),
    Case("child.start", resuming(50, f"{CHILD_TREE}/step-50", is_recovery=True), FAIL, "from before the handoff's"),
    Case("child.start", green_rehearsal(launch=BARRED), FAIL, "the output root is not empty"),
    Case("child.start", green_rehearsal(launch=BLIND), DARK, "git did not answer"),
    Case("child.start", CHILDLESS, DARK, "no contract that can be used"),
)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_the_child_starts_from_the_complete_handoff_of_the_old_run_and_from_nothing_else(case: Case) -> None:
    hold(case)
