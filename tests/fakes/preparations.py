"""Builders for what the launch checklist judges: a test names what it is about, the rest is a launch in order."""

from typing import Any

from bot.model.code import CodeState, SourceCommit
from bot.model.contract import Contract
from bot.model.preflight import LaunchRules, OtherRun, PreflightReport, Preparation, Weight
from bot.model.reading import Known, Reading, Unknown
from bot.model.run import Instance
from bot.model.snapshot import Snapshot
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.value import CheckId, JobId, PersonName, RunId
from checks.preflight.item import Item, judge_preparation
from tests.fakes.snapshots import AT, JOB, RUN, contract, failed_job, instance, snapshot

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
OTHER_SHA = "2c26b46b68ffc68ff99b453c1d30413413422d70"
ADA = PersonName("ada")


def launch_contract(**fields: Any) -> Contract:
    """Return a contract that states everything the checklist wants to know."""
    given: dict[str, Any] = {
        "kind": "production",
        "model_flops": 3e22,
        "hardware": "v5p-64",
        "command": "iris job run --no-wait --tpu v5p-64 --job-name hero-coord -- python -m train",
        "source_sha": SHA,
        "tracker": {"mode": "online", "entity": "team", "project": "hero", "id": RUN, "name": RUN, "resume": "allow"},
        "checkout": "/srv/hero",
    }
    return contract(**(given | fields))


def code_state(**fields: Any) -> CodeState:
    """Return a clean checkout at the pushed source commit, fetched just now."""
    given: dict[str, Any] = {
        "directory": "/srv/hero",
        "head": SHA,
        "branch": "main",
        "dirty": (),
        "patch_sha256": "",
        "upstream": "origin/main",
        "fetched_at": AT,
        "source": SourceCommit(sha=SHA, pushed_to=("origin/main",), is_ancestor=True),
    }
    return CodeState.model_validate(given | fields)


def tracked(state: TrackerRunState = TrackerRunState.MISSING, **fields: Any) -> TrackerState:
    """Return the tracker's answer: by default that it has no such run."""
    given: dict[str, Any] = {
        "entity": "team",
        "project": "hero",
        "id": "" if state is TrackerRunState.MISSING else RUN,
        "name": RUN,
        "state": state,
        "url": "https://wandb.ai/team/hero/runs/x",
    }
    return TrackerState.model_validate(given | fields)


def other_run(**fields: Any) -> OtherRun:
    given: dict[str, Any] = {
        "run_id": RunId("hero-older"),
        "is_live": False,
        "jobs": frozenset(),
        "places": frozenset({"gs://bucket/users/ada/hero-older"}),
    }
    return OtherRun.model_validate(given | fields)


def preparation(
    promised: Contract | None = None,
    *,
    is_first: bool = True,
    jobs: Any = (),
    launch: Instance | None = None,
    code: CodeState | Unknown | None = None,
    tracker: TrackerState | Unknown | None = None,
    **fields: Any,
) -> Preparation:
    """Return a preparation of a first launch in which nothing is wrong; with ``is_first=False`` of a relaunch."""
    promised = promised or launch_contract()
    if not is_first and jobs == ():
        jobs = failed_job(137)
    seen: Snapshot = snapshot(jobs=jobs, is_first=is_first, launch=launch or instance())
    seen = seen.model_copy(update={"code": _read(code or code_state()), "tracker": _read(tracker or tracked())})
    given: dict[str, Any] = {
        "contract": promised,
        "rules": LaunchRules(),
        "at": AT,
        "seen": seen,
        "is_first": is_first,
        "planned_job": JobId(JOB),
        "command": promised.command,
        "planned": Known(value=(), at=AT),
        "others": (),
        "start": Known(value=(), at=AT),
        "checkpoint_bytes": Known(value=None, at=AT),
        "steps": Known(value=None, at=AT),
        "reference": Known(value=None, at=AT),
        "coming": Known(value=None, at=AT),
        "reachable": {ADA: ("slack",)},
    }
    return Preparation.model_validate(given | fields)


def weights(item: Item, prepared: Preparation) -> list[Weight]:
    """Return what one item finds, by weight; an item that raises is the test's failure."""
    return [each.weight for each in report(item, prepared).findings]


def report(item: Item, prepared: Preparation) -> PreflightReport:
    found = judge_preparation((item,), prepared)
    assert not any("broke" in each.message for each in found.findings), found.findings
    assert all(each.check == item.id for each in found.findings)
    return found


def message(item: Item, prepared: Preparation) -> str:
    """Return the only finding's message."""
    (finding,) = report(item, prepared).findings
    return finding.message


def value(item: Item, prepared: Preparation, name: str) -> str:
    """Return a printed value, with its basis behind it."""
    found = {each.name: f"{each.value} ({each.basis})" for each in report(item, prepared).values}
    return found[name]


def check_ids(found: PreflightReport, weight: Weight) -> set[CheckId]:
    return {each.check for each in found.of(weight)}


def _read[T](given: T | Unknown) -> Reading[T]:
    return given if isinstance(given, Unknown) else Known(value=given, at=AT)
