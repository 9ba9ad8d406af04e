"""Builders for what the guards of a trial judge: a test names what it is about, the rest is a trial that is in order.

``green_rehearsal()`` passes every guard: an Iris run with a tracker, Kubernetes and an object store, whose child was
never launched. Its parts are built from the contracts that are given, so that a changed contract stays consistent.
"""

from datetime import datetime, timedelta
from typing import Any

from bot.model.agreed_names import names_of
from bot.model.conduct import Review, Stage
from bot.model.contract import Contract
from bot.model.job import Job, TaskState
from bot.model.launched import LaunchedConfig
from bot.model.planned import PlannedCheckpoint, RelaunchPlan
from bot.model.pods import Pod
from bot.model.reading import Known, Reading, Unknown
from bot.model.rehearsal import SERVICES, Alive, Boundary, Limits, MainState, Pin, Rehearsal
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.model.tracker import ForkPoint, TrackerRunState, TrackerState
from bot.model.trialplan import PlannedFork, TrialPlan
from bot.model.value import JobId, PersonName, RunId
from tests.fakes.preparations import OTHER_SHA, SHA, code_state, launch_contract, tracked
from tests.fakes.snapshots import AT, JOB, RUN, attempt, checkpoint, instance, job, pod, snapshot, task

CHILD = RunId("hero-next")
CHILD_JOB = JobId("/me/hero-next-coord")
TRAINER = JobId(f"{JOB}/grug-train-hero")
OLD_SHA, NEW_SHA = SHA, OTHER_SHA
ADA, BOB, EVE = PersonName("ada"), PersonName("bob"), PersonName("eve")
"""The DRI, who submits too; the one who reviewed; somebody else of ``[people]``."""
HANDOFF = 6_000
FORK_ROW = 6_123
OLD_TREE = "gs://bucket/users/ada/hero-12d8b6f0/checkpoints"
CHILD_TREE = "gs://bucket/users/ada/hero-next/checkpoints"
HANDOFF_PATH = f"{OLD_TREE}/step-{HANDOFF}"
MONDAY_NOON = AT.replace(hour=12) + timedelta(days=1)
"""``AT`` is a Sunday."""
GATES = ("loss mean <= +0.002", "tokens_per_second mean >= -1%")


def old_contract(*, trial: dict[str, Any] | None = None, **fields: Any) -> Contract:
    """Return the old run's contract; ``trial`` is merged into its ``[trial]``."""
    table: dict[str, Any] = {
        "child_run_id": CHILD,
        "child_root": CHILD_TREE,
        "handoff_step": HANDOFF,
        "fork_step": FORK_ROW,
        "gates": GATES,
        "coverage_gaps": ("evaluations",),
        "rollback_by": MONDAY_NOON,
        "inventory": ("/srv/reports",),
    }
    given: dict[str, Any] = {
        "environment": {"IRIS_USER": "me"},
        "checkout": "/srv/hero-old",
        "source_sha": OLD_SHA,
        "trial": table | (trial or {}),
    }
    return launch_contract(**(given | fields))


def child_contract(**fields: Any) -> Contract:
    """Return the child's contract, which starts from the handoff."""
    given: dict[str, Any] = {
        "run_id": CHILD,
        "command": "iris job run --no-wait --tpu v5p-64 --job-name hero-next-coord -- python -m train",
        "environment": {"IRIS_USER": "me"},
        "checkout": "/srv/hero-new",
        "source_sha": NEW_SHA,
        "output_root": CHILD_TREE.removesuffix("/checkpoints"),
        "initialize_from": HANDOFF_PATH,
        "orchestrator": {"kind": "iris", "job_id": CHILD_JOB},
        "tracker": {"mode": "online", "entity": "team", "project": "hero", "id": CHILD, "resume": "allow"},
    }
    return launch_contract(**(given | fields))


def planned_fork(**fields: Any) -> PlannedFork:
    given: dict[str, Any] = {
        "entity": "team",
        "project": "hero",
        "parent_id": RUN,
        "child_id": CHILD,
        "fork_step": FORK_ROW,
        "global_step": HANDOFF - 1,
    }
    return PlannedFork.model_validate(given | fields)


def trial_plan(**fields: Any) -> TrialPlan:
    """Return the agreed plan."""
    given: dict[str, Any] = {
        "run_id": RUN,
        "child_run_id": CHILD,
        "child_root": CHILD_TREE,
        "handoff": PlannedCheckpoint(step=HANDOFF, path=HANDOFF_PATH),
        "window_steps": 200,
        "gates": GATES,
        "quiet": True,
        "alpha": 0.05,
        "fork": planned_fork(),
        "coverage_gaps": ("evaluations",),
        "rollback_by": MONDAY_NOON,
        "submitter": ADA,
    }
    given |= fields
    metrics = tuple(gate.split()[0] for gate in given["gates"])
    names = {"control_names": names_of(old_contract(), metrics), "child_names": names_of(child_contract(), metrics)}
    return TrialPlan.model_validate(names | given)


def relaunch(contract: Contract, **fields: Any) -> RelaunchPlan:
    """Return the plan of a launch of that run, without a checkpoint of its own."""
    given: dict[str, Any] = {
        "run_id": contract.run_id,
        "instance": "",
        "stop": None,
        "command": contract.command,
        "command_sha256": contract.command_sha256,
        "environment": tuple(sorted(contract.environment)),
        "directory": contract.checkout,
        "job_id": contract.orchestrator.job_id or "local-job",
        "output_root": contract.output_root,
        "resume_from": None,
        "source_sha": contract.source_sha,
        "code": contract.source_sha or "",
        "config_digest": contract.config_digest,
        "changes": (),
    }
    return RelaunchPlan.model_validate(given | fields)


def launched(contract: Contract, **fields: Any) -> Instance:
    """Return the old run's launch on record, as Hero itself makes one."""
    given: dict[str, Any] = {
        "command": contract.command,
        "source_sha": contract.source_sha,
        "config_digest": contract.config_digest,
    }
    return instance().model_copy(update=given | fields)


def main_state(**fields: Any) -> MainState:
    given: dict[str, Any] = {
        "directory": "/srv/hero-new",
        "head": NEW_SHA,
        "main": "origin/main",
        "main_sha": NEW_SHA,
        "fetched_at": AT,
        "source_sha": NEW_SHA,
        "is_on_main": True,
        "dirty": (),
        "contract_on_main": True,
        "contract_path": "trigger_hero.sh",
    }
    return MainState.model_validate(given | fields)


def old_jobs() -> tuple[Job, ...]:
    """Return the old run's coordinator, and below it its trainer with two tasks."""
    tasks = tuple(
        task(index, TaskState.RUNNING, job_id=TRAINER, attempts=(attempt(uid=f"uid-{index}"),)) for index in range(2)
    )
    return job(), job(job_id=TRAINER, parent=JOB, tasks=tasks)


def old_pods() -> tuple[Pod, ...]:
    return tuple(pod(index, job_id=TRAINER, uid=f"uid-{index}") for index in range(2))


def old_seen(**readings: Any) -> Snapshot:
    """Return what is read of the old run; each reading is given plain, or as an Unknown."""
    given: dict[str, Any] = {
        "jobs": old_jobs(),
        "checkpoints": (checkpoint(HANDOFF), checkpoint(HANDOFF + 500, is_temporary=True)),
        "neighbours": (),
        "pods": old_pods(),
        "code": code_state(directory="/srv/hero-old", head=OLD_SHA),
        "config": LaunchedConfig(origin="gs://bucket/config.yaml", values={"trainer.seed": "0"}),
        "tracker": tracked(TrackerRunState.RUNNING),
    }
    return _read(snapshot(), given | readings)


def child_seen(**readings: Any) -> Snapshot:
    """Return what is read of the child before its first launch: nothing of it is there but its checkout."""
    source = {"sha": NEW_SHA, "pushed_to": ("origin/main",), "is_ancestor": True}
    given: dict[str, Any] = {
        "jobs": (),
        "checkpoints": (),
        "neighbours": (),
        "pods": (),
        "code": code_state(directory="/srv/hero-new", head=NEW_SHA, source=source),
        "tracker": tracked(TrackerRunState.MISSING, name=CHILD),
    }
    return _read(snapshot().model_copy(update={"run_id": CHILD, "instance": None}), given | readings)


def forked_child(**fields: Any) -> TrackerState:
    """Return the child as the tracker shows it once it was forked, and nothing was added."""
    given: dict[str, Any] = {
        "id": CHILD,
        "name": CHILD,
        "last_step": FORK_ROW,
        "forked_from": ForkPoint(run_id=RUN, step=FORK_ROW),
    }
    return tracked(TrackerRunState.FINISHED, **(given | fields))


def green_rehearsal(**changes: Any) -> Rehearsal:
    """Return a rehearsal that every guard passes, but for what is given; the rest follows the contracts given."""
    contract: Contract = changes.get("contract") or old_contract()
    child: Contract | None = changes["child"] if "child" in changes else child_contract()
    given: dict[str, Any] = {
        "at": AT,
        "stage": Stage.RECORDED,
        "plan": trial_plan(),
        "contract": contract,
        "child": child,
        "people": frozenset({ADA, BOB, EVE}),
        "review": Review(by=BOB, at=AT - timedelta(minutes=5)),
        "instance": launched(contract),
        "seen": old_seen(),
        "child_seen": child_seen(),
        "is_recovery": False,
        "main": known(main_state()),
        "boundary": known(boundary()),
        "pins": known((Pin(where="team/reports: weekly.py:12", what=RUN),)),
        "searched": ("team/reports",),
        "limits": known(limits()),
        "credentials": tuple(known(Alive(service=service, said="answers")) for service in SERVICES),
        "services": SERVICES,
        "launch": relaunch(child or child_contract()),
        "rollback": relaunch(
            contract, resume_from=PlannedCheckpoint(step=HANDOFF + 500, path=f"{OLD_TREE}/step-{HANDOFF + 500}")
        ),
        "refusal": f"{JOB} is running, submitted {AT:%Y-%m-%d %H:%M} UTC",
        "is_submitting": False,
        "agreed_at": AT - timedelta(minutes=30),
        "dri_zone": "UTC",
    }
    return Rehearsal.model_validate(given | changes)


def boundary(**fields: Any) -> Boundary:
    given: dict[str, Any] = {"fork_step": FORK_ROW, "global_step": HANDOFF - 1, "next_global_step": HANDOFF}
    return Boundary.model_validate(given | fields)


def limits(**fields: Any) -> Limits:
    given: dict[str, Any] = {
        "startup": timedelta(minutes=45),
        "startup_source": "trainer.startup_watchdog",
        "step": timedelta(minutes=15),
        "step_source": "trainer.step_watchdog",
    }
    return Limits.model_validate(given | fields)


def known[T](value: T, at: datetime = AT) -> Known[T]:
    return Known(value=value, at=at)


def _read(seen: Snapshot, readings: dict[str, Any]) -> Snapshot:
    told: dict[str, Reading[Any]] = {
        name: each if isinstance(each, Unknown) else Known(value=each, at=AT) for name, each in readings.items()
    }
    return seen.model_copy(update=told)
