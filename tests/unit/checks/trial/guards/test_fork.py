"""The guards of the tracker's fork."""

from typing import Any

import pytest

from bot.model.conduct import Stage
from bot.model.reading import Gap
from bot.model.rehearsal import Rehearsal
from bot.model.tracker import ForkPoint
from tests.fakes.rehearsals import (
    FORK_ROW,
    HANDOFF,
    boundary,
    child_contract,
    child_seen,
    forked_child,
    green_rehearsal,
    known,
    old_contract,
    planned_fork,
    trial_plan,
)
from tests.fakes.snapshots import RUN, unknown
from tests.unit.checks.trial.guards.cases import DARK, FAIL, PASS, Case, hold, ids

OFF = {"mode": "disabled"}
UNTRACKED = green_rehearsal(
    plan=trial_plan(fork=None),
    contract=old_contract(tracker=OFF),
    child=child_contract(tracker=OFF),
    child_seen=child_seen(tracker=unknown(Gap.NOT_CONFIGURED)),
    boundary=known(None),
)


def row(**fields: Any) -> Rehearsal:
    return green_rehearsal(boundary=known(boundary(**fields)))


def there(stage: Stage = Stage.REHEARSED, *, is_recovery: bool = False, **fields: Any) -> Rehearsal:
    seen = child_seen(tracker=forked_child(**fields))
    return green_rehearsal(child_seen=seen, stage=stage, is_recovery=is_recovery)


CASES = (
    # The boundary.
    Case("fork.boundary", green_rehearsal(), PASS, f"row {FORK_ROW} of {RUN} has global_step {HANDOFF - 1}"),
    Case("fork.boundary", row(next_global_step=HANDOFF + 9), PASS, "6000 or more"),
    Case("fork.boundary", UNTRACKED, PASS, "no tracker is used"),
    Case("fork.boundary", row(global_step=HANDOFF), FAIL, "has global_step 6000"),
    Case("fork.boundary", row(global_step=HANDOFF - 2), FAIL, "has global_step 5998"),
    Case("fork.boundary", row(global_step=None), FAIL, "has no global_step"),
    Case("fork.boundary", row(next_global_step=HANDOFF - 1), FAIL, "still below 6000"),
    Case("fork.boundary", row(fork_step=1), FAIL, "row 1 was looked at"),
    Case(
        "fork.boundary",
        green_rehearsal(plan=trial_plan(fork=planned_fork(global_step=HANDOFF))),
        FAIL,
        "before the handoff it has to be 5999",
    ),
    Case("fork.boundary", green_rehearsal(boundary=known(None)), FAIL, "[trial] fork_step"),
    Case("fork.boundary", green_rehearsal(plan=trial_plan(fork=None)), FAIL, "is not stated"),
    Case("fork.boundary", row(next_global_step=None), DARK, "may not be the last of its step"),
    Case("fork.boundary", green_rehearsal(boundary=unknown()), DARK, "no answer in 20 s"),
    # Once.
    Case("fork.once", green_rehearsal(), PASS, "it is forked once"),
    Case("fork.once", there(), PASS, "it is not forked again"),
    Case("fork.once", there(Stage.FORKED, last_step=None), PASS, "it is not forked again"),
    Case("fork.once", there(is_recovery=True, last_step=FORK_ROW + 90), PASS, "it is not forked again"),
    Case("fork.once", UNTRACKED, PASS, "no tracker is used"),
    Case("fork.once", there(last_step=FORK_ROW + 1), FAIL, f"has rows up to {FORK_ROW + 1}"),
    Case("fork.once", there(forked_from=None), FAIL, "is there, and is no fork"),
    Case("fork.once", there(forked_from=ForkPoint(run_id=RUN, step=7)), FAIL, "at row 7"),
    Case("fork.once", there(forked_from=ForkPoint(run_id="x", step=FORK_ROW)), FAIL, "forked off x"),
    Case("fork.once", there(id="hero-other"), FAIL, "the tracker shows hero-other"),
    Case("fork.once", green_rehearsal(stage=Stage.FORKED), FAIL, "the tracker has no run hero-next"),
    Case("fork.once", green_rehearsal(is_recovery=True), FAIL, "the tracker has no run hero-next"),
    Case(
        "fork.once",
        green_rehearsal(child=child_contract(command="bash trigger.sh --no-wait --fork-from hero?_step=3")),
        FAIL,
        "would fork by itself: --fork-from",
    ),
    Case("fork.once", green_rehearsal(plan=trial_plan(fork=None)), FAIL, "no fork of the tracker's history is agreed"),
    Case("fork.once", green_rehearsal(child_seen=child_seen(tracker=unknown())), DARK, "no answer in 20 s"),
    Case("fork.once", green_rehearsal(child_seen=child_seen(tracker=unknown(Gap.NOT_CONFIGURED))), DARK, "not known"),
    Case("fork.once", green_rehearsal(child=None, child_seen=None), DARK, "no contract that can be used"),
)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_the_history_is_forked_once_and_at_the_last_row_before_the_handoff(case: Case) -> None:
    hold(case)
