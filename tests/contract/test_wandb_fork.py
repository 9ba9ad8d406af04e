"""Forking a run through the real SDK against a local server: exactly once, whatever becomes of the answer."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from bot.actions.submission_lock import SubmissionLocks
from bot.actions.wandb_fork import WandbForker
from bot.clock import SystemClock
from bot.model.action import Done, Refused, Uncertain
from bot.model.reading import Gap, Known, Unknown
from bot.model.tracker import ForkPoint, TrackerRunState, TrackerState
from bot.model.trialplan import PlannedFork
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.settings import WandbSettings
from tests.fakes.waiting import until
from tests.fakes.wandb import FakeWandb, StoredRun, fresh_sdk

FORK = PlannedFork(
    entity="acme",
    project="hero",
    parent_id="old",
    child_id="new",
    fork_step=69,
    global_step=69,
    lineage={"hero_launch_commit": "abc"},
)
POINT = ForkPoint(run_id="old", step=69)


@pytest.fixture(scope="module", autouse=True)
def helper_process() -> Iterator[None]:
    with fresh_sdk():
        yield


@pytest.fixture
def wb() -> Iterator[FakeWandb]:
    with FakeWandb() as server:
        server.log_steps(server.run("hero", "old"), range(100))
        yield server


@pytest.fixture
def forker(wb: FakeWandb, tmp_path: Path) -> WandbForker:
    return forker_of(wb, tmp_path)


def forker_of(wb: FakeWandb, locks: Path, *, seconds: float = 40, **fields: Any) -> WandbForker:
    given = {"base_url": wb.url, "api_key": wb.key, "deadline": timedelta(seconds=3)} | fields
    settings = WandbSettings.model_validate(given)
    redactor = Redactor([wb.key])
    return WandbForker(settings, SystemClock(), locks=locks, redactor=redactor, deadline=timedelta(seconds=seconds))


async def found(forker: WandbForker) -> TrackerState | None:
    reading = await forker.find(FORK)
    assert isinstance(reading, Known), reading
    return reading.value


def child(wb: FakeWandb) -> StoredRun:
    return next(run for run in wb.stored("hero") if run.id == "new")


def train(wb: FakeWandb, tmp_path: Path, *, resume: str, rows: int) -> int:
    """Go on with the child as a trainer does, in a process of its own, and return the step at which it began."""
    program = f"""
        import wandb
        run = wandb.init(entity="acme", project="hero", id="new", resume={resume!r}, config={{"lr": 1}},
                         settings=wandb.Settings(disable_git=True, x_disable_meta=True, x_disable_stats=True))
        for n in range({rows}):
            run.log({{"train/loss": 1.5, "global_step": 70 + n}})
        print("STARTED", run.starting_step)
        run.finish()
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")} | {
        "WANDB_API_KEY": wb.key,
        "WANDB_BASE_URL": wb.url,
        "WANDB_DIR": str(tmp_path),
        "WANDB_CACHE_DIR": str(tmp_path),
        "WANDB_CONFIG_DIR": str(tmp_path),
        "WANDB_ERROR_REPORTING": "false",
    }
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return int(ended.stdout.split("STARTED ")[1].split()[0])


async def test_a_fork_takes_the_history_over_up_to_its_row_and_logs_none_of_its_own(
    wb: FakeWandb, forker: WandbForker
) -> None:
    assert await found(forker) is None

    outcome = await forker.create(FORK)

    assert outcome == Done(detail=f"{wb.url}/acme/hero/runs/new goes on from row 69 of old")
    state = await found(forker)
    assert state is not None
    assert (state.state, state.forked_from, state.last_step) == (TrackerRunState.FINISHED, POINT, 69)
    assert [row["_step"] for row in child(wb).rows] == list(range(70))
    assert child(wb).config == {"hero_launch_commit": "abc", "hero_wandb_fork_from": "old?_step=69"}
    assert wb.begun == ["new"]


@pytest.mark.parametrize("resume", ["allow", "must"])
async def test_the_trainer_goes_on_behind_the_fork_and_the_fork_stays_known(
    wb: FakeWandb, forker: WandbForker, tmp_path: Path, resume: str
) -> None:
    await forker.create(FORK)

    started = train(wb, tmp_path, resume=resume, rows=3)

    assert started == 70
    assert [(row["_step"], row["global_step"]) for row in child(wb).rows[-3:]] == [(70, 70), (71, 71), (72, 72)]
    assert "branch_point" not in child(wb).internals, "the SDK would keep its own note of the fork by now"
    state = await found(forker)
    assert state is not None
    assert (state.forked_from, state.last_step) == (POINT, 72)
    assert wb.begun == ["new"]


async def test_nothing_of_this_machine_is_told(wb: FakeWandb, forker: WandbForker) -> None:
    await forker.create(FORK)

    sent = json.dumps([wb.variables[n] for n, name in enumerate(wb.queries) if name == "UpsertBucket"])
    assert str(Path(__file__).parents[2]) not in sent
    assert "wandb_fork_program" not in sent
    assert child(wb).config.keys() == {"hero_launch_commit", "hero_wandb_fork_from"}


async def test_a_second_call_finds_the_fork_and_makes_no_other(wb: FakeWandb, forker: WandbForker) -> None:
    await forker.create(FORK)
    asked = len(wb.queries)

    assert isinstance(await forker.create(FORK), Done)

    assert "UpsertBucket" not in wb.queries[asked:]
    assert wb.begun == ["new"]


async def test_a_run_of_that_id_that_is_another_fork_or_none_is_left_alone(wb: FakeWandb, forker: WandbForker) -> None:
    wb.run("hero", "new")
    outcome = await forker.create(FORK)

    assert outcome == Refused(detail="acme/hero/new is there already, and is no fork; nothing was forked")

    wb.delete("hero", "new")
    wb.fork("hero", next(run for run in wb.stored("hero") if run.id == "old"), "new", 68)
    outcome = await forker.create(FORK)

    assert isinstance(outcome, Refused)
    assert "forked off row 68 of old" in outcome.detail
    assert "UpsertBucket" not in wb.queries


async def test_an_answer_that_is_lost_is_repeated_by_the_helper_and_makes_one_run(
    wb: FakeWandb, forker: WandbForker
) -> None:
    wb.lose("UpsertBucket")

    assert isinstance(await forker.create(FORK), Done)

    assert wb.queries.count("UpsertBucket") >= 2
    assert wb.begun == ["new"]


async def test_a_fork_that_never_answers_is_cut_off_with_its_helper_and_found_afterwards(
    wb: FakeWandb, tmp_path: Path
) -> None:
    forker = forker_of(wb, tmp_path, seconds=10)
    locks = SubmissionLocks(tmp_path)
    wb.lose("UpsertBucket", is_silent=True)
    task = asyncio.create_task(forker.create(FORK))
    await until(lambda: "UpsertBucket" in wb.queries)
    family = [each for each in psutil.Process().children(recursive=True) if _is_of_the_fork(each)]
    arguments = [word for each in family for word in each.cmdline()]

    assert any(word.endswith("wandb_fork_program.py") for word in arguments)
    assert any(word.endswith("wandb-core") for word in arguments)
    assert not any(wb.key in word for word in arguments)
    assert locks.is_held(RunId("fork-new"))

    outcome = await task

    assert isinstance(outcome, Uncertain)
    assert not outcome.is_over
    assert "did not end in 10 s" in outcome.detail
    assert not any(_lives(each) for each in family)
    assert not locks.is_held(RunId("fork-new"))
    state = await found(forker)
    assert state is not None
    assert state.forked_from == POINT
    assert isinstance(await forker.create(FORK), Done)
    assert wb.begun == ["new"]


def _is_of_the_fork(process: psutil.Process) -> bool:
    """Return whether it is the program or its helper, and not the helper of Hero's own looks."""
    with contextlib.suppress(psutil.Error):
        return any("hero-wb-" in word or word.endswith("wandb_fork_program.py") for word in process.cmdline())
    return False


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


async def test_a_server_that_takes_nothing_leaves_it_uncertain_and_nothing_behind(
    wb: FakeWandb, tmp_path: Path
) -> None:
    forker = forker_of(wb, tmp_path)
    wb.keep_failing(403, "UpsertBucket")

    outcome = await forker.create(FORK)

    assert isinstance(outcome, Uncertain)
    assert outcome.is_over, "the SDK gave up by itself"
    assert "Forbidden" in outcome.detail
    assert await found(forker) is None


async def test_an_id_that_was_deleted_once_is_told_of_before_the_deadline(wb: FakeWandb, tmp_path: Path) -> None:
    forker = forker_of(wb, tmp_path, seconds=18)
    wb.keep_failing(409, "UpsertBucket")  # the service's answer to such an id, for ever

    outcome = await forker.create(FORK)

    assert isinstance(outcome, Uncertain)
    assert outcome.is_over
    assert "409" in outcome.detail


async def test_a_plan_without_a_project_is_of_the_settings_and_without_any_refused(
    wb: FakeWandb, tmp_path: Path
) -> None:
    bare = FORK.model_copy(update={"entity": "", "project": ""})

    assert isinstance(await forker_of(wb, tmp_path).create(bare), Refused)
    assert isinstance(await forker_of(wb, tmp_path).find(bare), Unknown)
    assert isinstance(await forker_of(wb, tmp_path, entity="acme", project="hero").create(bare), Done)
    assert wb.begun == ["new"]


async def test_a_parent_that_is_missing_or_shorter_is_refused_before_anything_is_sent(
    wb: FakeWandb, forker: WandbForker
) -> None:
    missing = await forker.create(FORK.model_copy(update={"parent_id": "older"}))
    shorter = await forker.create(FORK.model_copy(update={"fork_step": 100}))

    assert missing == Refused(detail="W&B has no run acme/hero/older to fork; nothing was forked")
    assert shorter == Refused(detail="the history of acme/hero/old goes to row 99, and not to 100; nothing was forked")
    assert "UpsertBucket" not in wb.queries


async def test_a_wrong_key_is_refused_and_never_shown(wb: FakeWandb, tmp_path: Path) -> None:
    wrong = "local-" + "f" * 48
    forker = forker_of(wb, tmp_path, api_key=wrong)

    outcome = await forker.create(FORK)

    assert isinstance(outcome, Refused)
    assert wrong not in outcome.detail
    reading = await forker.find(FORK)
    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.REFUSED


async def test_a_sick_server_is_no_answer_and_nothing_is_begun(wb: FakeWandb, forker: WandbForker) -> None:
    wb.keep_failing(503)

    outcome = await forker.create(FORK)

    assert isinstance(outcome, Uncertain)
    assert "not begun" in outcome.detail
    assert isinstance(await forker.find(FORK), Unknown)
    assert "UpsertBucket" not in wb.queries


async def test_while_an_earlier_try_lives_there_is_no_second_and_no_word_of_none(
    wb: FakeWandb, forker: WandbForker, tmp_path: Path
) -> None:
    with SubmissionLocks(tmp_path).hold(RunId("fork-new")):
        outcome = await forker.create(FORK)
        reading = await forker.find(FORK)

    assert isinstance(outcome, Uncertain)
    assert isinstance(reading, Unknown)
    assert reading.reason is Gap.BUSY
    assert wb.queries == []
