"""What is read before a launch, from real repositories, a real database and real contracts."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.actions.local import LocalLauncher
from bot.actions.ports import Submission
from bot.clock import SystemClock
from bot.contracts import BadContract, Contracts
from bot.model.conduct import Stage, Trial
from bot.model.contract import Contract
from bot.model.drift import shape_of
from bot.model.job import Job, JobState
from bot.model.preflight import LaunchRules, PairedRun, Preparation, Weight
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Decision, Record
from bot.model.run import Instance, Run, RunState
from bot.model.snapshot import Checkpoint
from bot.model.value import JobId, PersonName, RunId
from bot.preparing import Preparer
from bot.redaction import Redactor
from bot.settings import GitSettings
from bot.sources.config.before_launch import BeforeLaunch
from bot.sources.git.source import GitSource
from bot.store.store import Store
from checks.preflight.drift import DRIFT
from checks.preflight.finalstep import FINAL_STEP
from checks.preflight.identity import IDENTITY
from checks.preflight.trajectory import TRAJECTORY
from tests.fakes.launched import config
from tests.fakes.preparations import report, weights
from tests.fakes.repositories import Origin, Repository
from tests.fakes.snapshots import AT, JOB, contract, instance, job, snapshot, unknown
from tests.unit.actions.trial_world import a_trial_plan, child_contract

CLOCK = SystemClock()
MINE = RunId("hero-12d8b6f0")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(f"sqlite:///{tmp_path / 'hero.db'}", CLOCK, Redactor())
    yield opened
    await opened.close()


@pytest.fixture
def checkout(tmp_path: Path) -> Repository:
    return Origin(tmp_path / "git").clone()


def local(checkout: Path, **fields: Any) -> Contract:
    given: dict[str, Any] = {
        "command": "python train.py",
        "output_root": "out",
        "checkout": str(checkout),
        "orchestrator": {"kind": "local", "directory": "jobs"},
    }
    return contract(**(given | fields))


def preparer(runs: Path, store: Store | None = None, **fields: Any) -> Preparer:
    git = GitSource(GitSettings(deadline=timedelta(seconds=60)), CLOCK)
    given: dict[str, Any] = {
        "launchers": {"local": LocalLauncher(CLOCK)},
        "contracts": Contracts(runs, None),
        "store": store,
        "clock": CLOCK,
        "redactor": Redactor(),
        "rules": LaunchRules(),
        "reachable": {PersonName("ada"): ("console",)},
        "deadline": timedelta(seconds=60),
        "code": git,
    }
    return Preparer(**(given | fields))


async def prepared(made: Preparer, promised: Contract, launch: Instance | None = None) -> Preparation:
    record = Record(run=Run(run_id=MINE), instances=(launch,)) if launch else None
    seen = snapshot(jobs=(), launch=launch, is_first=launch is None)
    return await made.prepare(promised, record, seen)


async def test_a_first_launch_is_told_from_a_relaunch_by_what_is_on_record(tmp_path: Path) -> None:
    first = await prepared(preparer(tmp_path), local(tmp_path))
    again = await prepared(preparer(tmp_path), local(tmp_path), instance())

    assert (first.is_first, first.planned_job) == (True, f"/local/{MINE}-0")
    assert (again.is_first, again.planned_job) == (False, f"/local/{MINE}-1")
    assert isinstance(first.planned, Known)
    assert first.planned.value == ()


class Jobs:
    """Launchers that show what a test says."""

    def __init__(self) -> None:
        self.shown: Reading[tuple[Job, ...]] = Known(value=(), at=AT)
        self.asked: list[tuple[RunId, JobId]] = []

    async def jobs(self, promised: Contract, job_id: JobId) -> Reading[tuple[Job, ...]]:
        self.asked.append((promised.run_id, job_id))
        return self.shown

    def prepare(self, promised: Contract, *, number: int) -> Submission:
        return Submission(job_id=JobId("/me/new"), command=promised.command)


class Written:
    """Contracts by name; what is not there cannot be used."""

    def __init__(self, *promised: Contract) -> None:
        self.kept = {each.run_id: each for each in promised}

    def load(self, run_id: RunId) -> Contract | BadContract:
        return self.kept.get(run_id, BadContract(run_id=run_id, problems=("no such file",)))

    def run_ids(self) -> tuple[RunId, ...]:
        return tuple(self.kept)


@pytest.mark.parametrize("asks", ["the old run", "the child"])
async def test_the_other_run_of_a_trial_is_asked_for_whichever_is_launched_also_when_it_is_over(
    store: Store, asks: str
) -> None:
    plan = a_trial_plan()
    trial = Trial(plan=plan, request=1, agreed_by=plan.submitter, agreed_at=AT, stage=Stage.CLOSED)
    child = child_contract(orchestrator={"kind": "iris", "job_id": "/me/child"})
    old, other = (contract(), child) if asks == "the old run" else (child, contract())
    launched = instance().model_copy(update={"run_id": other.run_id, "job_id": JobId(f"/me/{other.run_id}")})
    async with store.transaction() as tx:
        await tx.apply(Decision(run=Run(run_id=plan.run_id, trial=trial)), plan.run_id, AT)
        await tx.apply(Decision(instances=(launched,)), other.run_id, AT)
    jobs = Jobs()

    async def found(*promised: Contract) -> PairedRun:
        made: Any = preparer(Path(), store, launchers={"iris": jobs}, contracts=Written(*promised))
        prepared: Preparation = await made.prepare(old, None, snapshot(jobs=()))
        (pair,) = prepared.paired
        assert pair.run_id == other.run_id
        return pair

    unseen = await found(old, other)
    assert {job for run, job in jobs.asked if run == other.run_id} >= {launched.job_id, other.orchestrator.job_id}
    jobs.shown = Known(value=(job(state=JobState.KILLED), job(job_id=f"{JOB}/train")), at=AT)
    alive = await found(old, other)
    jobs.shown = Known(value=(job(job_id=launched.job_id, state=JobState.KILLED),), at=AT)
    shown_to_have_ended = await found(old, other)
    later = AT + timedelta(minutes=1)
    jobs.shown = Known(value=(job(job_id=launched.job_id, state=JobState.KILLED, submitted_at=later),), at=AT)
    namesake = await found(old, other)
    jobs.shown = unknown()
    dark, lost = await found(old, other), await found(old)
    ended = launched.model_copy(update={"ended_at": AT})
    async with store.transaction() as tx:
        await tx.apply(Decision(instances=(ended,)), other.run_id, AT)
    jobs.shown = Known(value=(), at=AT)
    seen_to_end, not_shown_any_more = await found(old), await found(old, other)

    assert [each.live.value for each in (shown_to_have_ended, seen_to_end, not_shown_any_more)] == [(), (), ()]  # type: ignore[union-attr]
    assert alive.live.value == (JOB,)  # type: ignore[union-attr]
    assert [isinstance(each.live, Unknown) for each in (dark, lost)] == [True, True]
    for each in (unseen, namesake):  # it may train where the contract pointed at its launch
        assert isinstance(each.live, Unknown)
        assert f"{launched.job_id} was never seen to end and is not shown now" in each.live.detail


async def test_a_child_that_was_never_launched_needs_no_contract_to_be_known_not_to_live(store: Store) -> None:
    plan = a_trial_plan()
    trial = Trial(plan=plan, request=1, agreed_by=plan.submitter, agreed_at=AT, stage=Stage.CLOSED)
    async with store.transaction() as tx:
        await tx.apply(Decision(run=Run(run_id=plan.run_id, trial=trial)), plan.run_id, AT)
    made: Any = preparer(Path(), store, launchers={"iris": Jobs()}, contracts=Written(contract()))

    (pair,) = (await made.prepare(contract(), None, snapshot(jobs=()))).paired

    assert isinstance(pair.live, Known)
    assert pair.live.value == ()


async def test_what_the_code_changed_since_the_launch_before_is_read(tmp_path: Path, checkout: Repository) -> None:
    before = checkout.head
    harmless = checkout.commit("docs/notes.md", "x")
    affecting = checkout.commit("src/model.py", "x = 2\n")
    launch = instance().model_copy(update={"source_sha": before})

    async def changes(sha: str, since: Instance = launch) -> Preparation:
        return await prepared(preparer(tmp_path), local(checkout.path, source_sha=sha), since)

    same, docs, model = await changes(before), await changes(harmless), await changes(affecting)
    lost = await changes(affecting, launch.model_copy(update={"source_sha": "0" * 40}))

    assert same.code_changes is None
    assert isinstance(docs.code_changes, Known)
    assert docs.code_changes.value == ("docs/notes.md",)
    assert isinstance(model.code_changes, Known)
    assert model.code_changes.value == ("docs/notes.md", "src/model.py")
    assert isinstance(lost.code_changes, Unknown)
    assert [weights(TRAJECTORY, each) for each in (same, docs, model, lost)] == [
        [],
        [],
        [Weight.BLOCKS],
        [Weight.ASKS],
    ]


async def test_other_runs_are_read_from_contracts_and_from_the_database(tmp_path: Path, store: Store) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "planned.toml").write_text(
        f'dri = "ada"\ncommand = "x"\noutput_root = "{tmp_path}/planned"\n'
        '[orchestrator]\nkind = "iris"\njob_id = "/ada/planned"\n'
        '[tracker]\nmode = "online"\nentity = "e"\nproject = "p"\nid = "i"\nname = "n"\n'
    )
    gone = instance(job_id="/ada/gone").model_copy(
        update={"run_id": RunId("gone"), "shape": {"output_root": f'"{tmp_path}/gone"', "checkout": '"/"'}}
    )
    async with store.transaction() as tx:
        run = Run(run_id=RunId("gone"), state=RunState.RUNNING)
        await tx.apply(Decision(run=run, instances=(gone,)), RunId("gone"), AT)

    found = await prepared(preparer(runs, store), local(tmp_path))
    others = {each.run_id: each for each in found.others}

    assert set(others) == {"planned", "gone"}
    assert others[RunId("planned")].jobs == {"/ada/planned"}
    assert (others[RunId("planned")].tracker, others[RunId("planned")].tracker_name) == ("e/p/i", "n")
    assert f"{tmp_path}/planned" in others[RunId("planned")].places
    assert others[RunId("gone")].is_live
    assert others[RunId("gone")].jobs == {JobId("/ada/gone")}
    taken = await prepared(preparer(runs, store), local(tmp_path, output_root="gone/again"))
    assert "gone (live)" in report(IDENTITY, taken).findings[0].message


class Storage:
    """Answers as a test says."""

    def __init__(self, answer: Callable[[], Awaitable[Any]]) -> None:
        self._answer = answer

    async def start(self, _contract: Contract) -> Any:
        return await self._answer()

    async def checkpoint_bytes(self, _contract: Contract, _checkpoints: Any) -> Any:
        return await self._answer()

    async def locations(self, _contract: Contract) -> Any:
        return await self._answer()


async def test_what_is_not_there_to_read_is_unknown_only_where_it_is_needed(tmp_path: Path) -> None:
    without = await prepared(preparer(tmp_path), local(tmp_path))
    needed = await prepared(preparer(tmp_path), local(tmp_path, initialize_from="gs://x/step-5"))

    assert isinstance(without.start, Known)
    assert isinstance(needed.start, Unknown)
    assert needed.start.reason is Gap.NOT_CONFIGURED
    assert isinstance(without.reference, Known)


async def test_a_part_that_breaks_is_unknown_and_costs_no_other(tmp_path: Path) -> None:
    async def breaks() -> Any:
        msg = "secret-looking detail"
        raise RuntimeError(msg)

    storage: Any = Storage(breaks)
    found = await prepared(preparer(tmp_path, storage=storage), local(tmp_path, initialize_from="gs://x/step-5"))

    assert isinstance(found.start, Unknown)
    assert isinstance(found.checkpoint_bytes, Unknown)
    assert found.start.reason is Gap.BROKEN
    assert "secret" not in found.start.detail
    assert isinstance(found.locations["output_root"], Unknown)
    assert isinstance(found.planned, Known)


async def test_a_storage_that_answers_is_handed_on(tmp_path: Path) -> None:
    saved = Checkpoint(step=5, path="gs://x/step-5", is_complete=True)

    async def answers() -> Any:
        return Known(value=(saved,), at=AT)

    storage: Any = Storage(answers)
    found = await preparer(tmp_path, storage=storage)._start(local(tmp_path, initialize_from="gs://x/step-5"))

    assert isinstance(found, Known)
    assert found.value == (saved,)


async def test_the_report_holds_no_secret(tmp_path: Path) -> None:
    promised = local(tmp_path, command="train --token hunter2secret", output_root="https://u:hunter2secret@x.y/out")

    found = await preparer(tmp_path, redactor=Redactor(("t0ps3cret",))).judge(
        promised.model_copy(update={"hardware": "t0ps3cret"}), None, snapshot(jobs=(), is_first=True)
    )

    assert "hunter2secret" not in found.model_dump_json()
    assert "t0ps3cret" not in found.model_dump_json()
    assert found.of(Weight.BLOCKS)


def before_launch() -> BeforeLaunch:
    return BeforeLaunch(CLOCK, Redactor(), recorded=None, deadline=timedelta(seconds=60))


async def test_a_relaunch_is_held_against_the_newest_launch_whose_configuration_is_on_record(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"trainer": {"num_train_steps": 10_000, "seed": 7}}))
    launches = tuple(
        instance().model_copy(update={"number": number, "launched": shape})
        for number, shape in enumerate([shape_of(config()), None])
    )
    promised = local(tmp_path, config={"launch": "run.json"})
    made = preparer(tmp_path, config=before_launch())
    record = Record(run=Run(run_id=MINE), instances=launches)

    found = await made.prepare(promised, record, snapshot(jobs=(), launch=launches[-1]))
    agreed = promised.model_copy(update={"config": promised.config.model_copy(update={"intended": ("trainer.seed",)})})
    named = await made.judge(agreed, record, snapshot(jobs=(), launch=launches[-1]))

    assert weights(DRIFT, found) == [Weight.BLOCKS]
    assert weights(FINAL_STEP, found) == []
    assert "seed (trainer.seed): 0 → 7" in report(DRIFT, found).findings[0].message
    assert named.changes == ("[config] as intended: seed (trainer.seed): 0 → 7",)


async def test_a_command_that_outlives_the_deadline_of_a_part_is_unknown_and_costs_no_other(tmp_path: Path) -> None:
    hangs = [sys.executable, "-c", "import time; time.sleep(600)"]
    made = preparer(tmp_path, config=before_launch(), deadline=timedelta(seconds=2))

    found = await prepared(made, local(tmp_path, config={"final_step_command": hangs}))

    assert isinstance(found.steps, Unknown)
    assert found.steps.reason is Gap.TIMEOUT
    assert isinstance(found.coming, Known)
    assert weights(FINAL_STEP, found) == [Weight.UNKNOWN]
