"""The guards of the way back."""

from typing import Any

import pytest

from bot.model.launched import LaunchedConfig
from bot.model.planned import NoPlan, PlannedCheckpoint
from bot.model.reading import Gap
from bot.model.rehearsal import Rehearsal
from bot.model.tracker import TrackerRunState
from tests.fakes.preparations import tracked
from tests.fakes.rehearsals import (
    HANDOFF,
    OLD_TREE,
    child_contract,
    green_rehearsal,
    launched,
    old_contract,
    old_seen,
    planned_fork,
    relaunch,
    trial_plan,
)
from tests.fakes.snapshots import JOB, checkpoint, unknown
from tests.unit.checks.trial.guards.cases import DARK, FAIL, PASS, Case, hold, ids

NEWEST = PlannedCheckpoint(step=HANDOFF + 500, path=f"{OLD_TREE}/step-{HANDOFF + 500}")
BARRED = NoPlan(reason="the checkout is dirty", fix="clean it", is_unknown=False, evidence=("model.py",))
BLIND = NoPlan(reason="the checkpoints cannot be verified", fix="mend the access", is_unknown=True)
SCRIPT = "bash trigger_hero.sh --no-wait"


def rolled(contract: Any = None, **fields: Any) -> Rehearsal:
    contract = contract or old_contract()
    return green_rehearsal(contract=contract, rollback=relaunch(contract, **({"resume_from": NEWEST} | fields)))


def recorded(**fields: Any) -> Rehearsal:
    return green_rehearsal(instance=launched(old_contract(), **fields))


def submitted(command: str, environment: dict[str, str] | None = None) -> Rehearsal:
    return green_rehearsal(contract=old_contract(command=command, environment=environment or {}))


def forking(command: str = "", **fields: Any) -> Rehearsal:
    return green_rehearsal(contract=old_contract(**({"command": f"{SCRIPT} {command}"} | fields)))


def configured(**values: str) -> Rehearsal:
    return green_rehearsal(seen=old_seen(config=LaunchedConfig(origin="config.yaml", values=values)))


def tracked_as(**fields: Any) -> Rehearsal:
    given = {"mode": "online", "entity": "team", "project": "hero", "id": "hero-12d8b6f0", "resume": "allow"}
    return green_rehearsal(contract=old_contract(tracker=given | fields))


UNTRACKED = green_rehearsal(
    plan=trial_plan(fork=None),
    contract=old_contract(tracker={"mode": "disabled"}),
    seen=old_seen(tracker=unknown(Gap.NOT_CONFIGURED)),
)
BEFORE = {name: text for name, text in old_contract().shape().items() if name not in {"bundle", "spill"}}
"""The launch's shape as an older Hero kept it, which did not know of two of the fields."""


def upgraded(**fields: Any) -> Rehearsal:
    """Return a rehearsal whose old run was launched by that older Hero."""
    digest = old_contract().digest_without({"bundle", "spill"})
    instance = launched(old_contract(), shape=BEFORE, config_digest=digest)
    return green_rehearsal(contract=old_contract(**fields), instance=instance)


LOCAL = {"kind": "local", "directory": "jobs"}
CASES = (
    # The command.
    Case("rollback.command", green_rehearsal(), PASS, f"as it was at the launch of {JOB}"),
    Case("rollback.command", recorded(command=()), PASS, "as it was"),
    Case("rollback.command", upgraded(), PASS, "as it was"),
    Case("rollback.command", upgraded(spill="/scratch"), FAIL, "is not as it was"),
    Case("rollback.command", upgraded(final_step=9_000), FAIL, "is not as it was"),
    Case("rollback.command", recorded(config_digest=None), PASS, "the command is that of the launch"),
    Case("rollback.command", recorded(config_digest=None, command=("other",)), FAIL, "is not that of the launch"),
    Case("rollback.command", recorded(config_digest="ab"), FAIL, "a value that is not shown"),
    Case(
        "rollback.command",
        green_rehearsal(
            instance=launched(old_contract(), config_digest="ab"),
            rollback=relaunch(old_contract(), changes=("added by Hero: --user me", "command: a → b")),
        ),
        FAIL,
        f"at the launch of {JOB}: command: a → b take",
    ),
    Case("rollback.command", green_rehearsal(instance=None), DARK, "is not on record"),
    Case("rollback.command", recorded(config_digest=None, command=()), DARK, "is not on record"),
    Case(
        "rollback.command",
        green_rehearsal(instance=launched(old_contract(), config_digest=None), rollback=BLIND),
        DARK,
        "no relaunch can be planned",
    ),
    # The user.
    Case("rollback.user", green_rehearsal(), PASS, "as me"),
    Case("rollback.user", submitted("iris job run --no-wait --user=me -- x"), PASS, "as me"),
    Case("rollback.user", submitted(f"env IRIS_USER=me {SCRIPT}"), PASS, "as me"),
    Case("rollback.user", submitted("iris job run --no-wait -- x --user you", {"IRIS_USER": "me"}), PASS, "as me"),
    Case(
        "rollback.user",
        green_rehearsal(contract=old_contract(orchestrator=LOCAL), child=child_contract(orchestrator=LOCAL)),
        PASS,
        "local jobs",
    ),
    Case("rollback.user", submitted("iris job run --no-wait --user you -- x"), FAIL, "you by --user"),
    Case("rollback.user", submitted(SCRIPT, {"IRIS_USER": "marin"}), FAIL, "marin by IRIS_USER"),
    Case(
        "rollback.user",
        green_rehearsal(child=child_contract(environment={"IRIS_USER": "you"})),
        FAIL,
        "you by IRIS_USER of hero-next",
    ),
    Case(
        "rollback.user",
        green_rehearsal(child=child_contract(orchestrator={"kind": "iris", "job_id": "/you/next"})),
        FAIL,
        "you by job /you/next",
    ),
    Case("rollback.user", recorded(job_id="/marin/hero-coord"), FAIL, "marin by the launch on record"),
    Case("rollback.user", rolled(job_id="/carl/hero-coord"), FAIL, "carl by job /carl/hero-coord"),
    Case("rollback.user", submitted(SCRIPT), DARK, "as whom the command of hero-12d8b6f0 submits is not stated"),
    Case("rollback.user", green_rehearsal(child=None, child_seen=None), DARK, "the child has no contract"),
    # The checkpoint.
    Case("rollback.checkpoint", green_rehearsal(), PASS, "step-6500"),
    Case(
        "rollback.checkpoint",
        green_rehearsal(
            seen=old_seen(checkpoints=(checkpoint(HANDOFF), checkpoint(HANDOFF + 500, is_complete=False))),
            rollback=BARRED,
        ),
        PASS,
        "step-6000",
    ),
    Case("rollback.checkpoint", green_rehearsal(seen=old_seen(checkpoints=())), FAIL, "no complete checkpoint"),
    Case("rollback.checkpoint", green_rehearsal(seen=old_seen(checkpoints=(checkpoint(5000),))), FAIL, "from before"),
    Case("rollback.checkpoint", rolled(resume_from=None), FAIL, "would resume nothing"),
    Case("rollback.checkpoint", rolled(resume_from=trial_plan().handoff), FAIL, "step-6000 and not the newest"),
    Case("rollback.checkpoint", green_rehearsal(seen=old_seen(checkpoints=unknown())), DARK, "no answer in 20 s"),
    # No fork.
    Case("rollback.no_fork", green_rehearsal(), PASS, "forks no history"),
    Case("rollback.no_fork", UNTRACKED, PASS, "forks no history"),
    Case("rollback.no_fork", green_rehearsal(seen=old_seen(config=unknown(Gap.NOT_CONFIGURED))), PASS, "forks no"),
    Case("rollback.no_fork", configured(**{"trainer.tracker.fork_from": "null"}), PASS, "forks no history"),
    Case("rollback.no_fork", forking("--fork-from= --wandb.fork_from=none"), PASS, "forks no history"),
    Case("rollback.no_fork", forking(environment={"IRIS_USER": "me", "WANDB_FORK_FROM": ""}), PASS, "forks no"),
    Case("rollback.no_fork", forking("--fork-from hero?_step=3"), FAIL, "names a fork: --fork-from"),
    Case("rollback.no_fork", forking("--trainer.fork_from=hero?_step=3"), FAIL, "--trainer.fork_from"),
    Case("rollback.no_fork", forking("-e WANDB_FORK_FROM hero?_step=3"), FAIL, "WANDB_FORK_FROM"),
    Case("rollback.no_fork", forking("'x; init(fork_from=\"a\")'"), FAIL, "fork_from"),
    Case("rollback.no_fork", forking(environment={"WANDB_FORK_FROM": "hero?_step=3"}), FAIL, "WANDB_FORK_FROM"),
    Case("rollback.no_fork", forking(environment={"OPTIONS": "--fork-from hero"}), FAIL, "--fork-from"),
    Case("rollback.no_fork", configured(**{"tracker.fork_from": '"hero?_step=3"'}), FAIL, "tracker.fork_from"),
    Case("rollback.no_fork", tracked_as(resume="never"), FAIL, "resume = never"),
    Case("rollback.no_fork", tracked_as(resume=None), FAIL, "resume = not stated"),
    Case("rollback.no_fork", tracked_as(id="hero-x"), FAIL, "the old run's tracker id is hero-x"),
    Case("rollback.no_fork", green_rehearsal(plan=trial_plan(fork=planned_fork(parent_id="x"))), FAIL, "parent x"),
    Case(
        "rollback.no_fork",
        green_rehearsal(seen=old_seen(tracker=tracked(TrackerRunState.MISSING))),
        FAIL,
        "the tracker shows no run for the old run",
    ),
    Case("rollback.no_fork", green_rehearsal(seen=old_seen(tracker=unknown())), DARK, "no answer in 20 s"),
    Case("rollback.no_fork", green_rehearsal(seen=old_seen(tracker=unknown(Gap.NOT_CONFIGURED))), DARK, "not known"),
    Case("rollback.no_fork", green_rehearsal(seen=old_seen(config=unknown())), DARK, "no answer in 20 s"),
    # The launch.
    Case("rollback.launch", green_rehearsal(), PASS, f"launched again as {JOB}"),
    Case("rollback.launch", green_rehearsal(rollback=BARRED), FAIL, "the checkout is dirty; model.py"),
    Case("rollback.launch", rolled(accepts=("no hardware is stated",)), FAIL, "no hardware is stated"),
    Case("rollback.launch", rolled(run_id="hero-next"), FAIL, "the relaunch is hero-next's"),
    Case("rollback.launch", rolled(output_root="gs://bucket/x"), FAIL, "in gs://bucket/x"),
    Case("rollback.launch", rolled(source_sha="3" * 40), FAIL, "the relaunch is of 333"),
    Case("rollback.launch", green_rehearsal(rollback=BLIND), DARK, "cannot be verified"),
)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_the_way_back_is_the_old_run_as_it_was(case: Case) -> None:
    hold(case)
