"""A rehearsal as the settings build it: real repositories, a real job, a real database, contracts on disk."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from bot.actions.local import LocalLauncher
from bot.building_looks import build_looks
from bot.building_trial import build_rehearser
from bot.clock import SystemClock
from bot.contracts import Contracts
from bot.model.contract import Contract
from bot.model.plan import Grant
from bot.model.planned import PlannedCheckpoint, RelaunchPlan
from bot.model.reading import Gap, Known, Unknown
from bot.model.record import Decision
from bot.model.rehearsal import Pin
from bot.model.run import Instance, Run
from bot.model.trial import Outcome
from bot.model.trialplan import TrialPlan
from bot.model.value import JobId, PersonName, RunId
from bot.redaction import Redactor
from bot.rehearsing import Rehearser
from bot.run_contracts import contracts_of
from bot.settings import BotSettings, GitSettings, PersonSettings, Settings
from bot.store.store import Store
from checks.trial.guards.judging import judge_guards
from tests.fakes.fence import no_fence
from tests.fakes.repositories import Origin, Repository
from tests.fakes.waiting import until

CLOCK = SystemClock()
ADA = PersonName("ada")
OLD, CHILD = RunId("hero"), RunId("hero-next")
WAIT = "import signal; print('up', flush=True); signal.pause()"


@dataclass
class Scene:
    """Two checkouts of one repository, and a rehearser over them."""

    root: Path
    old: Repository
    child: Repository
    reports: Repository
    contracts: Contracts
    store: Store
    rehearser: Rehearser

    @property
    def plan(self) -> TrialPlan:
        return TrialPlan(
            run_id=OLD,
            child_run_id=CHILD,
            child_root=str(self.root / "next/checkpoints"),
            handoff=PlannedCheckpoint(step=100, path=str(self.root / "out/checkpoints/step-100")),
            window_steps=200,
            gates=("loss mean <= +0.002",),
            quiet=True,
            alpha=0.05,
            fork=None,
            submitter=ADA,
        )

    def contract(self, run_id: RunId = OLD) -> Contract:
        found = self.contracts.load(run_id)
        assert isinstance(found, Contract), found
        return found

    def save(self, step: int) -> None:
        directory = self.root / f"out/checkpoints/step-{step}"
        directory.mkdir(parents=True)
        (directory / "metadata.json").write_text(json.dumps({"step": step, "is_temporary": False}))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    origin = Origin(tmp_path / "git")
    old, child, reports = origin.clone("old"), origin.clone("child"), origin.clone("reports")
    child.write(".gitignore", "jobs/\n")
    child.commit("trigger_hero.sh", "exec python train.py\n")
    child.push()
    reports.commit("loss.yaml", "run: hero\nnext: hero-next\n")
    runs = tmp_path / "runs"
    runs.mkdir()
    _write(runs, OLD, old, command=[sys.executable, "-c", WAIT], out=tmp_path / "out", more=_trial(reports))
    more = f'initialize_from = "{tmp_path}/out/checkpoints/step-100"\n'
    _write(runs, CHILD, child, command=["bash", "trigger_hero.sh"], out=tmp_path / "next", more=more)
    settings = Settings(
        bot=BotSettings(runs=runs, database=f"sqlite:///{tmp_path}/hero.db"),
        git=GitSettings(deadline=timedelta(seconds=60)),
        people={ADA: PersonSettings(console=True)},
    )
    redactor = Redactor()
    store = await Store.open(settings.bot.database, CLOCK, redactor)
    contracts = contracts_of(settings)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        looks = build_looks(settings, CLOCK, stack, contracts=contracts, store=store, redactor=redactor)
        rehearser = build_rehearser(
            settings, CLOCK, stack, looks=looks, contracts=contracts, store=store, redactor=redactor
        )
        yield Scene(tmp_path, old, child, reports, contracts, store, rehearser)


def _trial(reports: Repository) -> str:
    return f'[trial]\nchild_run_id = "{CHILD}"\nstartup_limit = "40m"\ninventory = ["{reports.path}"]\n'


def _write(runs: Path, run_id: RunId, checkout: Repository, *, command: list[str], out: Path, more: str) -> None:
    tables = more if more.startswith("[") else ""
    (runs / f"{run_id}.toml").write_text(
        f'dri = "ada"\ncommand = {json.dumps(command)}\ncheckout = "{checkout.path}"\nsource_sha = "{checkout.head}"\n'
        'final_step = 1000\nfinal_step_source = "the recipe"\n'
        f'output_root = "{out}"\nresume_root = "{out}/checkpoints"\n{"" if tables else more}'
        f'[orchestrator]\nkind = "local"\ndirectory = "{runs.parent}/jobs"\n{tables}'
    )


async def _launch(scene: Scene) -> Instance:
    """Start the old run's job, and put its launch on record."""
    contract, launcher = scene.contract(), LocalLauncher(CLOCK)
    job_id = JobId(f"/local/{OLD}-0")
    plan = RelaunchPlan(
        run_id=OLD,
        instance="",
        stop=None,
        command=contract.command,
        command_sha256=contract.command_sha256,
        directory=contract.checkout,
        job_id=job_id,
        output_root=contract.output_root,
        resume_from=None,
        source_sha=contract.source_sha,
        config_digest=contract.config_digest,
        changes=(),
    )
    now = CLOCK.now()
    yes = Grant(request=1, run_id=OLD, digest=plan.digest, by=ADA, at=now, expires_at=now + timedelta(hours=1))
    await launcher.submit(contract, plan, yes, fence=no_fence)
    launch = Instance(run_id=OLD, number=0, job_id=job_id, submitted_at=None, launched_at=now)
    async with scene.store.transaction() as tx:
        await tx.apply(Decision(run=Run(run_id=OLD), instances=(launch,)), OLD, now)

    async def is_alive() -> bool:
        jobs = await launcher.jobs(contract, job_id)
        return isinstance(jobs, Known) and bool(jobs.value)

    await until(is_alive, what=f"{job_id} is there")
    return launch


async def _end(scene: Scene, launch: Instance) -> None:
    contract, launcher = scene.contract(), LocalLauncher(CLOCK)
    jobs = await launcher.jobs(contract, launch.job_id)
    assert isinstance(jobs, Known)
    plan = RelaunchPlan(
        run_id=OLD,
        instance=jobs.value[0].instance_id,
        stop=launch.job_id,
        command=(),
        command_sha256="",
        directory=contract.checkout,
        job_id=launch.job_id,
        output_root="",
        resume_from=None,
        source_sha=None,
        config_digest="",
        changes=(),
    )
    now = CLOCK.now()
    yes = Grant(request=2, run_id=OLD, digest=plan.digest, by=ADA, at=now, expires_at=now + timedelta(hours=1))
    await launcher.stop(contract, plan, yes)


async def test_two_runs_that_do_not_see_one_another_are_rehearsed_while_the_old_one_trains(scene: Scene) -> None:
    scene.save(100)
    scene.save(200)
    launch = await _launch(scene)
    record = await scene.store.record(OLD)
    assert record is not None

    try:
        found = await scene.rehearser.rehearse(scene.contract(), record, scene.plan)
    finally:
        await _end(scene, launch)

    assert isinstance(found.main, Known), found.main
    assert (found.main.value.is_on_main, found.main.value.dirty) == (True, ())
    assert (found.main.value.contract_path, found.main.value.contract_on_main) == ("trigger_hero.sh", True)
    assert isinstance(found.pins, Known), found.pins
    assert found.pins.value == (Pin(where="reports: loss.yaml:1", what="hero"),)
    assert found.searched == (f"reports at {scene.reports.head[:12]}",)
    assert isinstance(found.limits, Known)
    assert found.limits.value.startup == timedelta(minutes=40)
    assert found.boundary == Known(value=None, at=found.boundary.at)
    assert found.services == ("storage",)
    assert isinstance(found.credentials[0], Known)
    assert isinstance(found.launch, RelaunchPlan), found.launch
    assert (found.launch.job_id, found.launch.resume_from) == (f"/local/{CHILD}-0", None)
    assert isinstance(found.rollback, RelaunchPlan), found.rollback
    assert (found.rollback.stop, found.rollback.job_id) == (None, f"/local/{OLD}-1")
    assert found.rollback.resume_from is not None
    assert found.rollback.resume_from.step == 200
    assert found.child_seen is not None
    assert found.child_seen.neighbours == Known(value=(), at=found.child_seen.neighbours.at)
    assert found.refusal.startswith(f"{launch.job_id} is running")
    says = {each.guard: each for each in judge_guards(found)}
    for name in ("record.main", "record.values", "record.inventory", "credentials.storage"):
        assert says[name].outcome is Outcome.PASS, says[name]


async def test_before_anything_of_it_is_there_a_rehearsal_says_what_is_missing_and_passes_nothing(scene: Scene) -> None:
    for each in (scene.old, scene.child):
        each.write("train.py", "dirty = True\n")
    (scene.root / "git/origin.git").rename(scene.root / "git/gone.git")
    (scene.root / "runs/hero-next.toml").write_text("dri = 'nobody-we-know'\n")
    async with scene.store.transaction() as tx:
        await tx.apply(Decision(run=Run(run_id=OLD)), OLD, CLOCK.now())
    record = await scene.store.record(OLD)
    assert record is not None

    bad = await scene.rehearser.rehearse(scene.contract(), record, scene.plan)
    _write(scene.root / "runs", CHILD, scene.child, command=["bash", "x.sh"], out=scene.root / "next", more="")
    dark = await scene.rehearser.rehearse(scene.contract(), record, scene.plan)

    assert bad.child is None
    assert bad.child_problems
    assert isinstance(bad.main, Unknown)
    assert isinstance(dark.main, Unknown)
    assert dark.main.reason is Gap.UNREACHABLE
    for found in (bad, dark):
        assert not isinstance(found.launch, RelaunchPlan)
        assert not isinstance(found.rollback, RelaunchPlan)
        says = {each.guard: each.outcome for each in judge_guards(found)}
        assert says["record.main"] is not Outcome.PASS
        assert says["record.values"] is not Outcome.PASS
