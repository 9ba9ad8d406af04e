"""The reader of a rehearsal: both runs side by side, each part for itself, and always an end."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.actions.ports import Submission, Unlaunchable
from bot.contracts import BadContract
from bot.model.conduct import Review, Stage, Trial
from bot.model.contract import Contract
from bot.model.hours import WorkingHours
from bot.model.job import JobState
from bot.model.person import Person
from bot.model.planned import NoPlan, PlannedCheckpoint, RelaunchPlan
from bot.model.preflight import PreflightFinding, PreflightReport, Weight
from bot.model.reading import Gap, Known, Unknown
from bot.model.record import Record
from bot.model.rehearsal import Boundary, MainState, Pin, Rehearsal
from bot.model.run import Instance, Run
from bot.model.snapshot import Snapshot
from bot.model.value import CheckId, JobId, RunId
from bot.redaction import Redactor
from bot.rehearsing import Rehearser
from bot.sources.git.pins import Searched, Word
from checks.trial.guards.judging import judge_guards
from tests.fakes.clock import FakeClock
from tests.fakes.launched import config, tree
from tests.fakes.rehearsals import (
    ADA,
    BOB,
    CHILD,
    CHILD_JOB,
    FORK_ROW,
    HANDOFF,
    NEW_SHA,
    child_contract,
    launched,
    old_contract,
    trial_plan,
)
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, instance, job, snapshot, unknown

SECRET = "hunter2-is-the-password"  # a made-up one
DEADLINE = timedelta(milliseconds=20)
HANGS = object()
BREAKS = RuntimeError(f"a detail with {SECRET}")
MAIN = MainState(
    directory="/srv/hero-new",
    head=NEW_SHA,
    main="origin/main",
    main_sha=NEW_SHA,
    fetched_at=AT,
    source_sha=NEW_SHA,
    is_on_main=True,
    dirty=(),
    contract_on_main=True,
    contract_path="trigger_hero.sh",
)
ROW = Boundary(fork_step=FORK_ROW, global_step=HANDOFF - 1, next_global_step=HANDOFF)
PIN = Pin(where="acme/dash: a.json:1", what=RUN)
REPORT = Pin(where="https://wandb.example.org/r/1", what=RUN)
LIMITED = config(tree(trainer__progress_watchdog__startup_timeout="2h"), origin="run.yaml")
QUEUE = PreflightFinding(check=CheckId("launch.start"), weight=Weight.ASKS, message="it is temporary", fix="keep it")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What breaks is logged with its traceback, and printing that takes seconds."""
    with capture_logs():
        yield


def known(value: Any) -> Any:
    return Known(value=value, at=AT)


class World:
    """Stands in for every part that is asked; a test sets what each one says, that it hangs, or that it breaks."""

    service = "wandb"

    def __init__(self) -> None:
        self.old: Any = snapshot(
            jobs=(job(), job(job_id=f"{JOB}/train")), checkpoints=(checkpoint(HANDOFF),), launch=instance()
        )
        self.child: Any = snapshot(jobs=(), is_first=True).model_copy(update={"run_id": CHILD})
        self.contract: Contract | BadContract = child_contract()
        self.record: Any = None
        self.report: Any = PreflightReport(values=(), findings=())
        self.main_says: Any = known(MAIN)
        self.row: Any = known(ROW)
        self.config: Any = known(LIMITED)
        self.places: dict[str, Any] = {"/srv/reports": known(Searched(place="acme/dash at 1a2b", pins=(PIN,)))}
        self.reports: Any = known((REPORT,))
        self.service_says: Any = known(f"the key is ada's, {SECRET}")
        self.submitting: dict[RunId, Any] = {RUN: False, CHILD: False}
        self.words: list[tuple[str, ...]] = []
        self.judged: list[tuple[Contract, Record | None, Snapshot]] = []
        self.read_past: list[tuple[JobId, ...]] = []

    async def _say(self, answer: Any) -> Any:
        if answer is HANGS:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    # Reader

    async def read(
        self, promised: Contract, _launch: Instance | None, _cursor: str, past: tuple[JobId, ...] = ()
    ) -> Snapshot:
        self.read_past.append(past)
        found: Snapshot = await self._say(self.old if promised.run_id == RUN else self.child)
        return found

    # Launcher

    def prepare(self, promised: Contract, *, number: int) -> Submission | Unlaunchable:
        assert number in {0, 1}
        return Submission(job_id=promised.orchestrator.job_id or JobId("x"), command=promised.command)

    async def is_submitting(self, promised: Contract) -> bool:
        held: bool = await self._say(self.submitting[promised.run_id])
        return held

    # Checklist

    async def judge(self, promised: Contract, record: Record | None, seen: Snapshot) -> PreflightReport:
        self.judged.append((promised, record, seen))
        found: PreflightReport = await self._say(self.report)
        return found

    # Contracts

    directory = Path("/srv/runs")

    def load(self, run_id: RunId) -> Contract | BadContract:
        assert run_id == CHILD
        return self.contract

    # What is beside the runs

    async def main(self, promised: Contract, file: Path) -> Any:
        assert (promised.run_id, file) == (CHILD, Path("/srv/runs/hero-next.toml"))
        return await self._say(self.main_says)

    async def boundary(self, promised: Contract, fork_step: int) -> Any:
        assert (promised.run_id, fork_step) == (RUN, FORK_ROW)
        return await self._say(self.row)

    async def coming(self, promised: Contract) -> Any:
        assert promised.run_id == CHILD
        return await self._say(self.config)

    async def search(self, directory: str, words: tuple[Word, ...]) -> Any:
        self.words.append(tuple(each.text for each in words))
        return await self._say(self.places[directory])

    async def pinning(self, entity: str, project: str, words: tuple[str, ...]) -> Any:
        assert (entity, project) == ("team", "hero")
        self.words.append(words)
        return await self._say(self.reports)

    def is_needed(self, contracts: tuple[Contract, ...]) -> bool:
        return any(each.tracker.mode == "online" for each in contracts)

    async def said(self, _contracts: tuple[Contract, ...]) -> Any:
        return await self._say(self.service_says)


class Shelf:
    """The store's part of it."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def record(self, run_id: RunId) -> Any:
        assert run_id == CHILD
        return await self._world._say(self._world.record)


def rehearser(world: Any, **fields: Any) -> Rehearser:
    store: Any = Shelf(world)
    given: dict[str, Any] = {
        "reader": world,
        "launchers": {"iris": world},
        "checklist": world,
        "contracts": world,
        "store": store,
        "clock": FakeClock(AT),
        "redactor": Redactor((SECRET,)),
        "people": (Person(name=ADA, timezone="Europe/Zurich"), Person(name=BOB)),
        "timezone": "UTC",
        "cadence": timedelta(minutes=15),
        "deadline": DEADLINE,
        "main": world,
        "inventory": world,
        "config": world,
        "boundaries": world,
        "reports": world,
        "probes": (world,),
    }
    return Rehearser(**(given | fields))


async def rehearse(world: World, *, trial: Trial | None = None, plan: Any = None, **fields: Any) -> Rehearsal:
    promised = fields.pop("promised", old_contract())
    run = Run(run_id=RUN, trial=trial)
    record = Record(run=run, instances=(launched(promised),))
    return await rehearser(world, **fields).rehearse(promised, record, plan or trial_plan())


def trial_of(**fields: Any) -> Trial:
    given: dict[str, Any] = {
        "plan": trial_plan(),
        "request": 7,
        "agreed_by": ADA,
        "agreed_at": AT,
        "stage": Stage.RECORDED,
        "review": Review(by=BOB, at=AT),
    }
    return Trial.model_validate(given | fields)


async def test_everything_is_read_and_both_launches_are_planned_while_the_old_run_trains() -> None:
    world = World()

    found = await rehearse(world, trial=trial_of())

    assert found.stage is Stage.RECORDED
    assert found.review == Review(by=BOB, at=AT)
    assert found.people == {ADA, BOB}
    assert (found.seen, found.child_seen, found.is_recovery) == (world.old, world.child, False)
    assert found.child is not None
    assert found.child.cadence.check == timedelta(minutes=15)
    assert (found.main, found.boundary) == (known(MAIN), known(ROW))
    assert isinstance(found.pins, Known)
    assert found.pins.value == (PIN, REPORT)
    assert found.searched == ("acme/dash at 1a2b", "W&B reports of team/hero")
    assert isinstance(found.limits, Known)
    assert found.limits.value.startup == timedelta(hours=2)
    assert isinstance(found.launch, RelaunchPlan)
    assert (found.launch.run_id, found.launch.stop, found.launch.resume_from) == (CHILD, None, None)
    assert isinstance(found.rollback, RelaunchPlan)
    assert (found.rollback.run_id, found.rollback.stop, found.rollback.instance) == (RUN, None, job().instance_id)
    assert found.rollback.resume_from == PlannedCheckpoint(step=HANDOFF, path=checkpoint(HANDOFF).path)
    assert found.refusal.startswith(f"{JOB} is running")
    assert not found.is_refusal_unknown
    assert found.services == ("wandb", "storage")
    assert all(isinstance(each, Known) for each in found.credentials)
    assert SECRET not in found.model_dump_json()


async def test_the_checklist_judges_each_launch_as_it_will_be_and_the_child_as_a_trials() -> None:
    world = World()
    world.child = world.child.model_copy(update={"neighbours": known((job(),))})

    await rehearse(world, trial=trial_of())
    judged = {promised.run_id: (record, seen) for promised, record, seen in world.judged}
    theirs, mine = judged[CHILD], judged[RUN]

    assert theirs[0] is not None
    assert (theirs[0].trial_of, theirs[0].trial_stage, theirs[0].instance) == (RUN, Stage.RECORDED, None)
    assert theirs[1].neighbours == known(())
    assert mine[1].job is not None
    assert mine[1].job.state is JobState.KILLED


async def test_what_the_old_run_is_called_and_every_changed_key_is_searched_for() -> None:
    world = World()
    world.places["/srv/hero-old/below"] = known(Searched(place="below at 1", pins=()))
    promised = old_contract(
        trial={"inventory": ("/srv/reports", "below"), "changed_metrics": ("train/loss",)},
        tracker={"mode": "online", "entity": "team", "project": "hero", "id": "x1y2"},
    )

    found = await rehearse(world, promised=promised)

    assert set(world.words) == {(RUN, "x1y2", "train/loss")}
    assert found.searched == ("acme/dash at 1a2b", "below at 1", "W&B reports of team/hero")


async def test_a_review_of_another_plan_or_of_a_trial_that_is_over_counts_for_nothing() -> None:
    other = await rehearse(World(), trial=trial_of(plan=trial_plan(window_steps=300)))
    over = await rehearse(World(), trial=trial_of(stage=Stage.CLOSED))

    assert (other.stage, other.review) == (Stage.PLANNED, None)
    assert (over.stage, over.review) == (Stage.PLANNED, None)


async def test_a_child_that_was_launched_before_is_a_recovery_and_its_past_jobs_are_looked_for() -> None:
    world = World()
    launch = instance(job_id="/me/hero-next-coord-1").model_copy(update={"run_id": CHILD})
    world.record = Record(run=Run(run_id=CHILD), instances=(launch,))
    world.child = snapshot(jobs=(), checkpoints=(checkpoint(HANDOFF + 50),)).model_copy(update={"run_id": CHILD})

    found = await rehearse(world)

    assert found.is_recovery
    assert (JobId("/me/hero-next-coord-1"),) in world.read_past
    assert isinstance(found.launch, RelaunchPlan)
    assert found.launch.resume_from is not None


async def test_without_a_contract_of_the_child_the_old_run_is_read_all_the_same() -> None:
    world = World()
    world.contract = BadContract(run_id=CHILD, problems=("runs/hero-next.toml: no such file",))

    found = await rehearse(world)

    assert (found.child, found.child_seen) == (None, None)
    assert found.child_problems == ("runs/hero-next.toml: no such file",)
    assert isinstance(found.launch, NoPlan)
    assert isinstance(found.rollback, RelaunchPlan)
    assert isinstance(found.main, Unknown)
    assert isinstance(found.credentials[-1], Unknown)
    assert found.is_refusal_unknown
    assert found.seen == world.old


async def test_where_nothing_is_forked_or_configured_that_is_said_and_nothing_is_asked() -> None:
    world = World()
    quiet = {"mode": "disabled"}
    world.contract = child_contract(tracker=quiet)
    promised = old_contract(tracker=quiet, trial={"inventory": ()})
    parts = dict.fromkeys(("main", "inventory", "config", "boundaries", "reports"))

    found = await rehearse(world, promised=promised, plan=trial_plan(fork=None), probes=(), **parts)

    assert found.boundary == known(None)
    assert isinstance(found.main, Unknown)
    assert found.searched == ()
    assert isinstance(found.pins, Unknown)
    assert found.pins.reason is Gap.NOT_CONFIGURED
    assert found.services == ("storage",)


async def test_a_fork_that_cannot_be_looked_at_and_an_orchestrator_that_is_gone_are_told() -> None:
    found = await rehearse(World(), boundaries=None, launchers={}, reports=None)

    assert isinstance(found.boundary, Unknown)
    assert found.searched == ("acme/dash at 1a2b",)
    for plan in (found.launch, found.rollback):
        assert isinstance(plan, NoPlan)
        assert "iris is not configured here" in plan.reason


async def test_a_place_that_cannot_be_searched_is_named_and_makes_the_list_unknown() -> None:
    world = World()
    world.places["/srv/reports"] = unknown(Gap.REFUSED, "it is no git repository")

    found = await rehearse(world)

    assert isinstance(found.pins, Unknown)
    assert found.pins.detail == "/srv/reports: it is no git repository"
    assert found.searched == ("/srv/reports", "W&B reports of team/hero")


async def test_a_tree_that_cannot_be_listed_is_no_sign_of_life_and_an_absent_one_is() -> None:
    world = World()
    listed = (await rehearse(world)).credentials[-1]
    world.child = world.child.model_copy(update={"checkpoints": unknown(Gap.REFUSED, "denied")})
    denied = (await rehearse(world)).credentials[-1]

    assert isinstance(listed, Known)
    assert "is empty" in listed.value.said
    assert isinstance(denied, Unknown)
    assert denied.reason is Gap.REFUSED


async def test_a_live_child_refuses_and_is_named_beside_the_old_job() -> None:
    world = World()
    world.child = snapshot(jobs=(job(job_id=CHILD_JOB),)).model_copy(update={"run_id": CHILD})

    found = await rehearse(world)

    assert JOB in found.refusal
    assert CHILD_JOB in found.refusal
    assert isinstance(found.launch, NoPlan)
    assert isinstance(found.rollback, RelaunchPlan)


async def test_a_launch_that_nothing_forbids_would_pass_and_one_that_cannot_be_told_says_so() -> None:
    world = World()
    world.old = snapshot(jobs=(job(JobState.KILLED),), checkpoints=(checkpoint(HANDOFF),))
    passes = await rehearse(world)
    world.old = world.old.model_copy(update={"jobs": unknown()})
    dark = await rehearse(world)

    assert (passes.refusal, passes.is_refusal_unknown) == ("", False)
    assert dark.is_refusal_unknown
    assert RUN in dark.refusal


PARTS: dict[str, Callable[[Any], Any]] = {
    "old": lambda found: found.seen.jobs,
    "child": lambda found: found.child_seen.checkpoints,
    "main_says": lambda found: found.main,
    "row": lambda found: found.boundary,
    "config": lambda found: found.limits,
    "reports": lambda found: found.pins,
    "service_says": lambda found: found.credentials[0],
}


@pytest.mark.parametrize("answer", [HANGS, BREAKS, "unknown"])
@pytest.mark.parametrize("part", [*PARTS, "places"])
async def test_a_part_that_hangs_breaks_or_cannot_tell_is_unknown_and_costs_no_other(part: str, answer: Any) -> None:
    world = World()
    gap = unknown(Gap.REFUSED, "denied")
    said = gap if answer == "unknown" else answer
    if part in {"old", "child"} and answer == "unknown":
        seen = getattr(world, part)
        said = seen.model_copy(update={"jobs": gap, "checkpoints": gap})
    if part == "places":
        world.places["/srv/reports"] = said
    else:
        setattr(world, part, said)

    found = await rehearse(world)
    reason = Gap.TIMEOUT if answer is HANGS else Gap.BROKEN if answer is BREAKS else Gap.REFUSED
    readings = {name: pick(found) for name, pick in PARTS.items()}
    hit = {"places": "reports"}.get(part, part)

    assert isinstance(readings[hit], Unknown)
    assert readings[hit].reason is reason
    assert SECRET not in found.model_dump_json()
    if part not in {"old", "child"}:
        assert [name for name, each in readings.items() if isinstance(each, Unknown)] == [hit]
        assert isinstance(found.launch, RelaunchPlan)
        assert isinstance(found.rollback, RelaunchPlan)
    assert judge_guards(found)


@pytest.mark.parametrize("answer", [HANGS, BREAKS])
@pytest.mark.parametrize("part", ["report", "record", "old", "child"])
async def test_nothing_is_planned_on_what_could_not_be_read(part: str, answer: Any) -> None:
    world = World()
    setattr(world, part, answer)

    found = await rehearse(world)
    plans = {"report": [found.launch, found.rollback], "old": [found.rollback], "child": [found.launch]}

    for plan in plans.get(part, [found.launch]):
        assert isinstance(plan, NoPlan)
        assert plan.is_unknown


async def test_when_it_was_agreed_and_when_the_dri_works_is_handed_on() -> None:
    agreed = await rehearse(World(), trial=trial_of())
    other = await rehearse(World(), trial=trial_of(plan=trial_plan(window_steps=300)))
    hours = await rehearse(World(), people=(Person(name=ADA, working_hours="10:00-16:00"),))
    stranger = await rehearse(World(), people=(Person(name=BOB),))

    assert (agreed.agreed_at, other.agreed_at) == (AT, None)
    assert (agreed.dri_hours, agreed.dri_zone) == (None, "Europe/Zurich")
    assert hours.dri_hours == WorkingHours(hours="10:00-16:00", timezone="UTC")
    assert (stranger.dri_hours, stranger.dri_zone) == (None, None)


@pytest.mark.parametrize(
    ("old", "child", "found"), [(False, False, False), (True, False, True), (False, True, True), (False, BREAKS, None)]
)
async def test_a_submission_of_either_run_is_under_way_or_nobody_can_say(old: Any, child: Any, found: Any) -> None:
    world = World()
    world.submitting = {RUN: old, CHILD: child}

    assert (await rehearse(world)).is_submitting is found
    assert (await rehearse(world, launchers={})).is_submitting is None


async def test_the_checklists_questions_are_part_of_the_plan_that_is_shown() -> None:
    world = World()
    world.report = PreflightReport(values=(), findings=(QUEUE,))

    found = await rehearse(world)

    assert isinstance(found.launch, RelaunchPlan)
    assert found.launch.accepts == ("launch.start: it is temporary",)
